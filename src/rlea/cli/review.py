"""Commands by which people check links, and by which their verdicts leave the folder of a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from rlea.cli.options import ALIGN, Json, Quiet, app
from rlea.progress import counted
from rlea.views.terminal import as_text, err, out, print_json, progress_bars

RunFolder = Annotated[Path, typer.Argument(help="A folder that `rlea align --output` wrote.")]
Reviewer = Annotated[str, typer.Option(help="Who answers; the name on this machine by default.", show_default=False)]
Blind = Annotated[bool, typer.Option("--blind", help="Hide scores and what the run decided.")]


@app.command(rich_help_panel=ALIGN)
def review(
    run: RunFolder,
    reviewer: Reviewer = "",
    host: Annotated[str, typer.Option(help="Address to listen at; others than loopback open it to the network.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.", min=0, max=65535)] = 8001,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    quiet: Quiet = False,
) -> None:
    """Check links on a web page: accept, reject, choose another one. Answers go into the folder of the run.

    Example:  rlea review out
    """
    from rlea.review.session import Review
    from rlea.review.web import ReviewServer
    from rlea.serve.local import LOOPBACK

    if host not in LOOPBACK and not quiet:
        told = "whoever has the token and reads the traffic, which is not encrypted, can see these graphs"
        err.print(f"[yellow]Note:[/yellow] {as_text(host)} is no loopback address: {told}.")
    with progress_bars(quiet) as report:
        opened = Review.open(run, progress=report, live=True)
    with opened, ReviewServer(opened, host, port, reviewer=reviewer or user_name()) as server:
        pairs = counted(len(opened.questions), "pair")
        out.print(f"{pairs} to review at {server.url} (Ctrl-C ends)", highlight=False, soft_wrap=True, markup=False)
        if not no_browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            out.print("Ended.")


@app.command(rich_help_panel=ALIGN)
def label(
    run: RunFolder,
    number: Annotated[int, typer.Option(help="How many questions to ask.", min=1)] = 20,
    order: Annotated[
        str,
        typer.Option(
            help="Which questions come first: least confident (default), least margin, doubt x reach (default for runs "
            "by structure alone), learned or random.",
            show_default=False,
        ),
    ] = "",
    reviewer: Reviewer = "",
    blind: Blind = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check links in the terminal. Keys: y same, n not the same, 1-5 another one, s skip, u undo, q quit.

    Example:  rlea label out --number 10
    """
    from dataclasses import asdict

    from rlea.review.session import Filters, Review
    from rlea.review.terminal import ask_questions

    filters = Filters(order=order) if order else None
    with progress_bars(quiet or json_) as report:
        opened = Review.open(run, progress=report, live=True)

    def show(thing: Any) -> None:
        (err if json_ else out).print(thing, highlight=False)

    more: dict[str, Any] = {"reviewer": reviewer or user_name(), "is_blind": blind, "read": read_key, "show": show}
    with opened:
        filters = filters or Filters(order=opened.default_order)
        asked = ask_questions(opened, number, filters=filters, **more)
    if json_:
        print_json({**asdict(asked), "verdicts": str(opened.store.path)})
        return
    kept = f"{counted(asked.answers, 'answer')} kept in {as_text(str(opened.store.path))}"
    out.print(f"{kept}; {counted(asked.left, 'question')} left.", highlight=False, soft_wrap=True)


def read_key() -> str:
    """A key of a terminal, else a line of standard input; "" at its end and for Ctrl-C and Ctrl-D."""
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    try:
        key = typer.getchar()
    except (KeyboardInterrupt, EOFError):
        return ""
    return "" if key in ("\x03", "\x04") else key if key.strip() else "?"


def user_name() -> str:
    """The name of whoever runs the program."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name in the environment, and none in the list of users
        return "reviewer"


@app.command("verdicts", rich_help_panel=ALIGN)
def list_verdicts(
    run: Annotated[Path, typer.Argument(help="The folder of a run that was reviewed.")],
    output: Annotated[
        Path | None,
        typer.Option(
            help="A file to write: .sssom.tsv for all verdicts with reviewers; another format of links (.tsv, .csv "
            "and others) for the accepted pairs, to be used as --seeds."
        ),
    ] = None,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Write the rejected pairs, to be used as --different.")
    ] = False,
    json_: Json = False,
) -> None:
    """Say what people have answered and where they contradict each other, or write it to a file.

    Examples:

      rlea verdicts out

      rlea verdicts out --output curated.sssom.tsv
    """
    from rlea.review.export import verdicts_of_run

    summary = verdicts_of_run(run, output, rejected=rejected)
    if json_:
        print_json(summary)
        return
    for note in summary["notes"]:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}.")
    counts = ("accepted", "rejected", "skipped", "disputed")
    out.print(", ".join(f"{summary[name]:,} {name}" for name in counts), highlight=False)
    for who, answers in summary["reviewers"].items():
        out.print(as_text(f"  {who}: {counted(answers, 'answer')}"), highlight=False)
    for one in summary["disputes"]:
        ends = as_text(f"{one['source']} - {one['target']}")
        out.print(f"[yellow]Disputed:[/yellow] {ends} ({as_text(one['reason'])})", highlight=False, soft_wrap=True)
    if output is not None:
        out.print("Written: " + as_text(str(output)), highlight=False, soft_wrap=True)
