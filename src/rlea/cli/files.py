"""Commands that turn files into others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rlea.cli.options import FILES, Fold, Json, Quiet, Seed, answer, app
from rlea.views.terminal import as_text, err, progress_bars


@app.command(rich_help_panel=FILES)
def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="A pair folder, a graph or a file of links.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A folder for a pair, else a file.")],
    to: Annotated[
        str, typer.Option(help="For a pair: nt, nt.gz, ttl, rdf, nq, tsv, csv, parquet, rlea or openea.")
    ] = "nt",
    fold: Fold = None,
    json_: Json = False,
) -> None:
    """Turn pairs, graphs and links into other formats.

    A graph may be several RDF files, an address or an endpoint, as for `rlea align`.

    Examples:

      rlea convert D_W_15K_V1 d_w --to nt

      rlea convert people.nt.gz people.rlea

      rlea convert links.tsv links.sssom.tsv
    """
    from rlea import commands

    with progress_bars(json_) as report:
        summary = commands.convert(source, target, to=to, fold=fold, progress=report)
    for note in [] if json_ else summary["notes"]:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}")
    answer(json_, summary, lambda: f"Written: {as_text(summary['written'])}")


@app.command(rich_help_panel=FILES)
def synthesize(
    output: Annotated[Path, typer.Argument(help="A new folder.")],
    entities: Annotated[int, typer.Option(help="Entities on each side.")] = 1000,
    triples: Annotated[float, typer.Option(help="Relation triples per entity.")] = 5.0,
    drop: Annotated[float, typer.Option(help="Share of triples missing on each side.")] = 0.1,
    add: Annotated[float, typer.Option(help="Share of triples of its own on each side.")] = 0.05,
    name_noise: Annotated[float, typer.Option(help="Share of letters changed in target names.")] = 0.1,
    respell: Annotated[
        float, typer.Option(help="Share of target names by other rules of spelling, half with the words swapped.")
    ] = 0.0,
    nameless: Annotated[float, typer.Option(help="Share of entities without a name, on each side.")] = 0.0,
    dangling: Annotated[float, typer.Option(help="Share of entities without a counterpart.")] = 0.0,
    hubs: Annotated[int, typer.Option(help="Entities that very many others refer to.")] = 0,
    hub_edges: Annotated[int, typer.Option(help="Triples of each hub, one of every other entity at most.")] = 100_000,
    seed: Seed = 0,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a pair of graphs with a planted alignment, of any size.

    Example:  rlea synthesize million --entities 1000000
    """
    from rlea import commands

    with progress_bars(quiet or json_) as report:
        summary = commands.synthesize(
            output,
            report,
            num_entities=entities,
            triples_per_entity=triples,
            drop=drop,
            add=add,
            name_noise=name_noise,
            respell=respell,
            nameless=nameless,
            dangling=dangling,
            hubs=hubs,
            hub_edges=hub_edges,
            seed=seed,
        )
    answer(json_, summary, lambda: "Written: " + as_text(str(output)))
