"""The command that finds duplicates within one graph."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rlea.cli.options import (
    ALIGN,
    DECISION,
    INPUT,
    OUTPUT,
    ColumnList,
    Config,
    Disjoint,
    IdColumn,
    Json,
    NameColumn,
    Quiet,
    app,
)
from rlea.progress import counted
from rlea.views.terminal import as_text, err, out, print_json, progress_bars

SHOWN, MEMBERS_SHOWN = 10, 6  # clusters on the terminal, and of each its members


@app.command(rich_help_panel=ALIGN)
def dedupe(
    graph: Annotated[str, typer.Argument(help="A graph in any format that can be read.")],
    id_column: IdColumn = "",
    name_column: NameColumn = "",
    columns: ColumnList = "",
    threshold: Annotated[
        float,
        typer.Option(help="Least mean confidence of the pairs by which a cluster is joined.", rich_help_panel=DECISION),
    ] = 0.5,
    different: Annotated[
        Path | None,
        typer.Option(help="Pairs that are known to be two things, a file of links.", rich_help_panel=INPUT),
    ] = None,
    disjoint: Disjoint = None,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for clusters.tsv, pairs.tsv and the record.", rich_help_panel=OUTPUT),
    ] = None,
    config: Config = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find entities of one graph or table that are the same thing.

    Examples:

      rlea dedupe customers.csv --output out

      rlea dedupe --config out/run.toml --output again
    """
    from rlea import duplicates
    from rlea.io.writers.clusters import CLUSTER_FILES
    from rlea.io.writers.run_folder import check_free, claimed

    with claimed(output), progress_bars(quiet or json_) as report:
        if output is not None:
            check_free(output, CLUSTER_FILES, [graph, *(path for path in (different, disjoint) if path)])
        found = duplicates.dedupe(
            graph,
            id_column=id_column,
            name_column=name_column,
            columns=columns,
            threshold=threshold,
            different=different,
            disjoint=disjoint,
            for_files=output is not None,
            progress=report,
        )
        written = [] if output is None else found.write(output)
    summary = found.summary()
    if json_:
        print_json(summary)
        return
    for note in [] if quiet else found.graph.notes:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}")
    told = f"{summary['duplicates']:,} of {summary['entities']:,} entities repeat another one"
    out.print(f"{counted(summary['clusters'], 'group')} of duplicates: {told}", highlight=False)
    table = Table("cluster", "entity", "label", "confidence")
    for number, own in groupby(found.cluster_rows(), key=lambda row: row[0]):
        if number > SHOWN:
            break
        members = list(own)
        for _, entity, label, confidence in members[:MEMBERS_SHOWN]:
            table.add_row(str(number), as_text(entity), as_text(label), f"{confidence:.3f}")
        if len(members) > MEMBERS_SHOWN:
            table.add_row("", f"and {len(members) - MEMBERS_SHOWN:,} more", "", "")
    if len(found):
        out.print(table)
    if summary["clusters"] > SHOWN:
        out.print(f"[dim]and {summary['clusters'] - SHOWN:,} more[/dim]")
    if written:
        out.print("Written: " + ", ".join(as_text(str(path)) for path in written))
    elif not quiet:
        out.print("[dim]Add --output DIR to keep the clusters.[/dim]")
