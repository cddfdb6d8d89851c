"""The command that serves a graph to other programs."""

from __future__ import annotations

from typing import Annotated

import typer

from rlea.cli.options import FILES, ColumnList, IdColumn, NameColumn, Quiet, app
from rlea.views.terminal import as_text, err, out, progress_bars


@app.command(rich_help_panel=FILES)
def serve(
    graph: Annotated[str, typer.Argument(help="A graph in any format that can be read.")],
    id_column: IdColumn = "",
    name_column: NameColumn = "",
    columns: ColumnList = "",
    host: Annotated[str, typer.Option(help="Address to listen at; others than loopback open it to the network.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.", min=0, max=65535)] = 8000,
    quiet: Quiet = False,
) -> None:
    """Serve a graph to OpenRefine and others, by the Reconciliation Service API 0.2.

    Example:  rlea serve people.nt.gz
    """
    from rlea.io.read import row_options
    from rlea.serve.local import LOOPBACK
    from rlea.serve.web import open_server

    if host not in LOOPBACK and not quiet:
        err.print(f"[yellow]Note:[/yellow] {as_text(host)} is no loopback address: others may read this graph.")
    with progress_bars(quiet) as report:
        (rows,) = row_options(id_column, name_column, columns, 1)
        server = open_server(graph, host, port, rows=rows, progress=report)
    with server:
        entities = server.service.graph.num_entities
        out.print(f"{entities:,} entities at {server.address}/ (Ctrl-C ends)", highlight=False, soft_wrap=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            out.print("Ended.")
