"""The application, the options that several commands have, and how all of them answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.table import Table

from rlea.cli import failures
from rlea.evidence import CHANNELS
from rlea.views.terminal import out, print_json

app = typer.Typer(
    name="rlea",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="[bold]Link two knowledge graphs[/bold]: two graphs in, one-to-one links with a confidence out.\n\n"
    "Begin with [cyan]rlea demo[/cyan].",
    epilog="Examples:  [cyan]rlea align source.nt target.nt.gz --seeds links.tsv --output out[/cyan]   "
    "[cyan]rlea bench D_W_15K_V1 --matchers all[/cyan]",
)
ALIGN, STUDY, FILES = "Align", "Compare and measure", "Files"  # families of commands
INPUT, EVIDENCE, DECISION, OUTPUT, ADVANCED = "Input", "Evidence", "Decision", "Output", "Advanced"  # of options

Seed = Annotated[int, typer.Option(help="Random seed.", rich_help_panel=ADVANCED)]
Fold = Annotated[str | None, typer.Option(help="Fold of a benchmark folder; 1 by default.", rich_help_panel=INPUT)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no notes.", rich_help_panel=OUTPUT)]
Embeddings = Annotated[
    list[str] | None,
    typer.Option(
        "--embedding",
        help="Vectors as further evidence: a model ([cyan]aligne[/cyan]; `rlea embeddings` lists them) or a file. "
        "May be repeated.",
        show_default=False,
        rich_help_panel=EVIDENCE,
    ),
]
Channels = Annotated[
    str,
    typer.Option(
        help=f"Evidence to use, separated by commas: {', '.join(CHANNELS)}. All by default.",
        show_default=False,
        rich_help_panel=EVIDENCE,
    ),
]
Encoder = Annotated[
    str,
    typer.Option(
        help="Folder of a sentence encoder; names are then compared by meaning as well.",
        show_default=False,
        rich_help_panel=EVIDENCE,
    ),
]
Hide = Annotated[
    str,
    typer.Option(
        help="[cyan]names[/cyan], [cyan]attributes[/cyan] or both: align as if the graphs had none.",
        rich_help_panel=EVIDENCE,
    ),
]
Disjoint = Annotated[
    Path | None,
    typer.Option(
        help="Pairs of classes that have no entity in common, a file of two columns or with owl:disjointWith: their "
        "entities are never linked.",
        rich_help_panel=INPUT,
    ),
]
Added = Annotated[
    list[str] | None,
    typer.Option(
        help="A file with more of this graph: further entities, triples and values. May be repeated.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
Candidates = Annotated[
    int, typer.Option(help="Candidates per entity and direction, for matchers over vectors.", rich_help_panel=ADVANCED)
]
Pool = Annotated[
    str,
    typer.Option(
        help="Entities to match: those of the [cyan]test[/cyan] links (default for benchmark folders), or "
        "[cyan]all[/cyan] without a seed (default for two graphs).",
        rich_help_panel=INPUT,
    ),
]
Search = Annotated[
    str,
    typer.Option(
        help="[cyan]exact[/cyan], or [cyan]approximate[/cyan] for very many entities (its recall is measured); "
        "[cyan]auto[/cyan] chooses by their number.",
        rich_help_panel=ADVANCED,
    ),
]
Device = Annotated[str, typer.Option(help="For training: auto, cpu or cuda.", rich_help_panel=ADVANCED)]
Preset = Annotated[
    str,
    typer.Option(
        help="Take the agent of the paper, with these settings: paper, released, paper-no-estimator, paper-random.",
        rich_help_panel=ADVANCED,
    ),
]
IdColumn = Annotated[
    str,
    typer.Option(
        "--id",
        help="Of tables with one row per entity: the column that identifies rows; one for each table, separated by "
        "commas, if they differ (a,b, or ,b to leave the first). Detected automatically if omitted.",
        rich_help_panel=INPUT,
    ),
]
NameColumn = Annotated[
    str,
    typer.Option(
        "--name",
        help="The column that names rows, or the attribute that names entities; same syntax as --id.",
        rich_help_panel=INPUT,
    ),
]
ColumnList = Annotated[
    str,
    typer.Option("--columns", help="The columns to use, separated by commas; all by default.", rich_help_panel=INPUT),
]
GoldComplete = Annotated[
    bool,
    typer.Option(
        "--gold-complete",
        help="An entity without a gold link has no counterpart: links between such entities count as wrong.",
        rich_help_panel=INPUT,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="Folder for links in several formats, report.html, run.json and run.toml.", rich_help_panel=OUTPUT
    ),
]


def read_options(context: typer.Context, path: Path | None) -> Path | None:
    """Take the options of a file as the defaults of a command; those of the command line go before."""
    if path is not None and not context.resilient_parsing:
        from rlea.config import read_config

        declared = get_type_hints(context.command.callback)
        options = {name.rstrip("_"): kind for name, kind in declared.items() if name not in NOT_IN_FILES}
        context.default_map = read_config(path, options)
    return path


def is_given(context: typer.Context, name: str) -> bool:
    """Whether an option stands on the command line itself."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


NOT_IN_FILES = ("config", "context", "json_", "return")
Config = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file with options, such as the run.toml of a run; those given here go before.",
        callback=read_options,
        is_eager=True,
        rich_help_panel=INPUT,
    ),
]
Formats = Annotated[
    str,
    typer.Option(
        "--format",
        help="Links in further formats, separated by commas: csv, parquet, jsonl.",
        show_default=False,
        rich_help_panel=OUTPUT,
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print the seconds of every stage.", rich_help_panel=OUTPUT)
]
Log = Annotated[
    Path | None,
    typer.Option(help="A file that gets the seconds of every stage, each with the time.", rich_help_panel=OUTPUT),
]


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error of the program.")] = False,
) -> None:
    """Options before the command."""
    failures.SHOW = debug
    if version:
        import rlea

        out.print(f"rlea {rlea.__version__}", highlight=False)
        raise typer.Exit


def answer(as_json: bool, summary: Any, view: Callable[[], Any]) -> None:
    """Print what came out: one JSON object, or the view of it."""
    if as_json:
        print_json(summary)
    else:
        out.print(view())


def answer_list(as_json: bool, title: str, things: Mapping[str, Any], **columns: str) -> None:
    """Print a table of what can be named; `columns` has the headings of attributes."""
    rows = {name: {key: getattr(thing, key) for key in columns} for name, thing in things.items()}

    words = {True: "yes", False: "no"}

    def view() -> Table:
        table = Table(title.lower().removesuffix("s"), *columns.values(), title=title, title_justify="left")
        for name, row in rows.items():
            table.add_row(name, *(words.get(value, value) for value in row.values()))
        return table

    answer(as_json, rows, view)
