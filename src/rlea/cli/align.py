"""Commands that align, and that look at what was aligned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlea.cli import options
from rlea.cli.options import ADVANCED, ALIGN, DECISION, INPUT, Json, Quiet, app
from rlea.progress import counted
from rlea.views import terminal
from rlea.views.terminal import as_text, describe, err, out, print_json, progress_bars

if TYPE_CHECKING:
    from rlea.progress import Progress
    from rlea.settings import AlignSettings

CLASSIC = ("nearest", "hungarian", "best-first")  # what the demo compares all evidence with


@app.command(rich_help_panel=ALIGN)
def demo(
    output: Annotated[Path, typer.Option(help="Folder for links, report.html, run.json and run.toml.")] = Path(
        "rlea-demo"
    ),
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Align two real graphs that come with the package: places of the world in English and in French.

    Example:  rlea demo
    """
    from rlea import commands, pipeline
    from rlea.agent.compile_ahead import compiling_ahead, finish_compiling
    from rlea.io.read import read_demo
    from rlea.io.writers.run_folder import add_files, claimed
    from rlea.settings import AlignSettings, check_settings

    with claimed(output), progress_bars(quiet or json_) as report, compiling_ahead() as begun:
        settings = AlignSettings(pool="all")
        check_settings(settings, output=output / "links.tsv")
        pipeline.check_output(output)
        pair = read_demo()
        results = []
        for result in pipeline.compare(pair, [*CLASSIC, "fused"], settings, progress=report):
            results.append(result)
            if len(results) == len(CLASSIC):
                finish_compiling(begun, report)
        written = pipeline.write(output, results[-1])
        add_files(output, {"bench.json": commands.bench_text(results)})
    if json_:
        print_json({"rows": [result.summary() for result in results], "output": [str(path) for path in written]})
        return
    out.print(f"\n[bold]{as_text(describe(pair))}[/bold]")
    terminal.show_notes(pair, quiet)
    out.print(terminal.bench_table(results))
    out.print(terminal.channel_table(results[-1]))
    out.print(f"[dim]{as_text(results[-1].summary()['started'])}.[/dim]")
    terminal.show_overlap(results[-1])
    out.print(terminal.link_table(results[-1]))
    out.print(f"Links, the record and a report: [bold]{as_text(str(output))}/report.html[/bold]")


@app.command(rich_help_panel=ALIGN)
def align(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            help="A benchmark folder, or the first of two graphs: a file, a folder, a pattern in quotes "
            "('dumps/*.nt'), https://..., or an endpoint as sparql+https://..."
        ),
    ],
    target: Annotated[str | None, typer.Argument(help="The second graph.")] = None,
    others: Annotated[
        list[str] | None,
        typer.Argument(help="Further graphs: links become clusters with one entity of every graph."),
    ] = None,
    seeds: Annotated[
        Path | None,
        typer.Option(
            help="Known links to start from (TSV, CSV, Parquet, SSSOM, owl:sameAs, Alignment API).",
            rich_help_panel=INPUT,
        ),
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(help="Known links to choose weights of vectors with, never to match.", rich_help_panel=INPUT),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Known links to score the result with.", rich_help_panel=INPUT)
    ] = None,
    gold_complete: options.GoldComplete = False,
    id_column: options.IdColumn = "",
    name_column: options.NameColumn = "",
    columns: options.ColumnList = "",
    source_query: Annotated[
        Path | None,
        typer.Option(help="A CONSTRUCT query in a file, if SOURCE is an endpoint.", rich_help_panel=INPUT),
    ] = None,
    target_query: Annotated[
        Path | None,
        typer.Option(help="A CONSTRUCT query in a file, if TARGET is an endpoint.", rich_help_panel=INPUT),
    ] = None,
    endpoint_limit: Annotated[
        int, typer.Option(help="Most triples to read from an endpoint.", rich_help_panel=INPUT)
    ] = 1_000_000,
    fold: options.Fold = None,
    pool: options.Pool = "auto",
    channels: options.Channels = "",
    embedding: options.Embeddings = None,
    encoder: options.Encoder = "",
    hide: options.Hide = "",
    matcher: Annotated[
        str,
        typer.Option(
            help="How pairs are decided; `rlea matchers` lists them. [cyan]auto[/cyan] is [cyan]fused[/cyan]: all "
            "evidence.",
            rich_help_panel=DECISION,
        ),
    ] = "auto",
    precision: Annotated[
        float,
        typer.Option(
            help="Keep only the surest links, so many that this share is right (0.95); refused where that cannot be "
            "promised.",
            rich_help_panel=DECISION,
        ),
    ] = 0.0,
    threshold: Annotated[
        float, typer.Option(help="Keep only links with at least this confidence.", rich_help_panel=DECISION)
    ] = 0.0,
    add_source: options.Added = None,
    add_target: options.Added = None,
    cardinality: Annotated[
        str,
        typer.Option(
            help="Links of a source and of a target: [cyan]1:1[/cyan], [cyan]1:n[/cyan] (a source may have several "
            "targets), [cyan]n:1[/cyan] or [cyan]n:m[/cyan].",
            rich_help_panel=DECISION,
        ),
    ] = "1:1",
    different: Annotated[
        Path | None,
        typer.Option(help="Pairs that are known to be two things: they are never linked.", rich_help_panel=INPUT),
    ] = None,
    disjoint: options.Disjoint = None,
    verdicts: Annotated[
        list[str] | None,
        typer.Option(
            help="A run that people have reviewed (`rlea review`): what they accepted are seeds, what they rejected is "
            "never linked. RUN@57 takes the first 57 entries. May be repeated.",
            show_default=False,
            rich_help_panel=INPUT,
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(
            help="Which links are written: [cyan]worthwhile[/cyan], those that the expected F1 gains from (the default "
            "where the agent decides), or [cyan]all[/cyan], however doubtful.",
            rich_help_panel=DECISION,
        ),
    ] = "auto",
    agent: Annotated[
        str, typer.Option(help="A trained agent (`rlea train`), in place of training one.", rich_help_panel=DECISION)
    ] = "",
    candidates: options.Candidates = 50,
    search: options.Search = "auto",
    memory: Annotated[
        str,
        typer.Option(
            help="Memory that a run on more than 50,000 entities may take, such as 8GB: fewer pairs are looked at if "
            "it would take more, which the run says.",
            rich_help_panel=ADVANCED,
        ),
    ] = "",
    joint: Annotated[
        int,
        typer.Option(help="Rounds in which the agent's sure links train the vectors anew.", rich_help_panel=ADVANCED),
    ] = 0,
    preset: options.Preset = "",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    cluster: Annotated[
        str,
        typer.Option(
            help="Do the agent's work on several processes: [cyan]local:4[/cyan] for four on this machine, or the "
            "address of a Ray cluster.",
            show_default=False,
            rich_help_panel=ADVANCED,
        ),
    ] = "",
    work: Annotated[
        Path | None,
        typer.Option(
            help="With --cluster: a folder that all machines see. A run that was stopped goes on from it.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    config: options.Config = None,
    output: options.Output = None,
    format: options.Formats = "",  # noqa: A002
    json_: Json = False,
    quiet: Quiet = False,
    verbose: options.Verbose = False,
    log: options.Log = None,
) -> None:
    """Find the links between two graphs.

    Examples:

      rlea align customers.csv clients.xlsx --output out

      rlea align people.nt.gz staff.ttl --seeds known.tsv --output out

      rlea align D_W_15K_V1 --fold 1 --embedding aligne

      rlea align shop.ttl catalogue.ttl stock.ttl --output out

      rlea align --config out/run.toml --output again
    """
    from rlea import pipeline
    from rlea.deciders import Clock
    from rlea.graph.masking import parse_hidden
    from rlea.io.writers import check_formats
    from rlea.io.writers.clusters import CLUSTER_FILES
    from rlea.io.writers.run_folder import check_free, claimed
    from rlea.plan import plan_stages
    from rlea.settings import AlignSettings, check_settings

    if options.is_given(context, "source"):  # the others of a configuration belong to its own source
        target = target if options.is_given(context, "target") else None
        others = others if options.is_given(context, "others") else None
    formats = check_formats(format)
    with claimed(output), progress_bars(quiet or json_, verbose=verbose, log=log) as report:
        settings = AlignSettings(
            matcher=matcher,
            embedding=tuple(embedding or ()),
            channels=channels,  # type: ignore[arg-type]
            encoder=encoder,
            hide=parse_hidden(hide),
            candidates=candidates,
            search=search,
            memory=memory,
            pool=pool,
            precision=precision,
            threshold=threshold,
            keep=keep,
            cardinality=cardinality,
            joint=joint,
            agent=agent,
            preset=preset,
            gold_complete=gold_complete,
            seed=seed,
        )
        check_settings(settings, output=None if output is None else output / "links.tsv", device=device)
        if output is not None:
            more = (*(others or ()), *(add_source or ()), *(add_target or ()))
            inputs = (source, target, *more, seeds, valid, gold, different, disjoint, source_query, target_query)
            inputs = (*inputs, agent, encoder, *settings.embedding)
            if others:
                check_free(output, CLUSTER_FILES, [one for one in inputs if one])
            else:
                pipeline.check_output(output, inputs, formats)
        if others and target is not None:
            given: dict[str, object] = {"--seeds": seeds, "--valid": valid, "--gold": gold, "--fold": fold}
            given |= {"--verdicts": verdicts, "--source-query": source_query, "--target-query": target_query}
            given |= {"--cluster": cluster or None, "--work": work}
            given |= {"--add-source": add_source, "--add-target": add_target, "--format": format or None}
            rows: dict[str, Any] = {"id_column": id_column, "name_column": name_column, "columns": columns}
            rows |= {"different": different, "disjoint": disjoint}
            answer_several([source, target, *others], rows, settings, given, report, output, json_)
            return
        clock = Clock()
        report("read", 0, 1)
        with clock("read"):
            pair = pipeline.read(
                source,
                target,
                fold=fold,
                seeds=seeds,
                valid=valid,
                gold=gold,
                source_query=source_query,
                target_query=target_query,
                endpoint_limit=endpoint_limit,
                id_column=id_column,
                name_column=name_column,
                columns=columns,
                cardinality=cardinality,
                verdicts=verdicts or (),
                add_source=add_source or (),
                add_target=add_target or (),
                progress=report,
            )
        if output is not None:
            pipeline.check_identifiers(pair)
        report.expect(plan_stages(pair, settings))
        checkpoint = None if output is None else output / "training.checkpoint"
        more_about: dict[str, Any] = {"different": different, "disjoint": disjoint, "cluster": cluster, "work": work}
        result = pipeline.align(pair, settings, progress=report, device=device, checkpoint=checkpoint, **more_about)
        result.seconds.update({"read": clock.seconds["read"]})
        report("write", 0, 1)
        written = [] if output is None else pipeline.write(output, result, formats=formats)
        if checkpoint is not None:
            pipeline.remove_checkpoints(checkpoint, settings)
    if json_:
        print_json(result.summary())
        return
    out.print(f"[bold]{as_text(describe(pair))}[/bold]")
    terminal.show_notes(result.pair, quiet)
    out.print(terminal.result_table(result))
    terminal.show_overlap(result)
    terminal.show_cautions(result)
    terminal.show_strings(result)
    if (contributed := terminal.channel_table(result)) is not None:
        out.print(contributed)
    out.print(terminal.link_table(result))
    if written:
        out.print("Written: " + ", ".join(as_text(str(path)) for path in written))
    elif not quiet:
        out.print("[dim]Add --output DIR to keep the links.[/dim]")


def answer_several(
    graphs: list[str],
    rows: Mapping[str, Any],
    settings: AlignSettings,
    given: Mapping[str, object],
    report: Progress,
    output: Path | None,
    json_: bool,
) -> None:
    """Align three graphs or more; options about the links of two graphs are refused."""
    from rlea.several import align_several, refuse_pairwise

    refuse_pairwise(given)
    found = align_several(graphs, settings, **rows, for_files=output is not None, progress=report)
    written = [] if output is None else found.write(output)
    if json_:
        print_json(found.summary())
        return
    summary = found.summary()
    out.print(f"{summary['clusters']:,} clusters of {summary['graphs']} graphs", highlight=False)
    for row in summary["pairwise"]:
        out.print(as_text(f"  {row['graphs'][0]} - {row['graphs'][1]}: {row['links']:,} links, {row['kept']:,} kept"))
    if written:
        out.print("Written: " + ", ".join(as_text(str(path)) for path in written))


@app.command("update", rich_help_panel=ALIGN)
def update_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` wrote.")],
    source: options.Added = None,
    target: options.Added = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder of the updated run; by default that of the run, which it replaces.")
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add new entities and triples to a run: the same agent links them, and what they do not touch stays as it is.

    Example:  rlea update out --source new_people.nt --target new_staff.ttl
    """
    from rlea import pipeline
    from rlea.io.writers.run_folder import claimed
    from rlea.update import CHANGES, tell, update, write_update

    folder = output or run
    with claimed(folder if folder.is_dir() or output is not None else None), progress_bars(quiet or json_) as report:
        if output is not None:
            pipeline.check_output(output, (*(source or ()), *(target or ())))
        found = update(run, source or (), target or (), progress=report)
        pipeline.check_identifiers(found.result.pair)
        report("write", 0, 1)
        written = write_update(folder, found)
    if json_:
        print_json(found.summary())
        return
    terminal.show_notes(found.result.pair, quiet)
    out.print(tell(found), highlight=False, soft_wrap=True)
    out.print(terminal.link_table(found.result))
    changes = next(path for path in written if path.name == CHANGES)
    out.print(f"Every change: [bold]{as_text(str(changes))}[/bold]", soft_wrap=True)


@app.command("explain", rich_help_panel=ALIGN)
def explain_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` wrote.")],
    source: Annotated[
        str, typer.Argument(metavar="ENTITY", help="Its identifier or name. With TARGET, one of the first graph.")
    ],
    target: Annotated[str | None, typer.Argument(help="One of the second graph, matched with it or not.")] = None,
    json_: Json = False,
) -> None:
    """Say why an entity has its link, or why a pair was not matched.

    Example:  rlea explain out Berlin
    """
    from dataclasses import asdict

    from rlea.views.explain import explain
    from rlea.views.explanation import explanation_view

    told = explain(run, source, target)
    if json_:
        print_json(asdict(told))
    else:
        out.print(explanation_view(told))


@app.command("report", rich_help_panel=ALIGN)
def report_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` or `rlea reproduce` wrote.")],
    output: Annotated[Path | None, typer.Option(help="The HTML file; report.html in the folder by default.")] = None,
    json_: Json = False,
) -> None:
    """Make the report of a run again: scores, curves, calibration, where errors come from, the hardest pairs.

    Example:  rlea report out --output page.html
    """
    from rlea.commands import write_report

    written = str(write_report(run, output))
    if json_:
        print_json({"written": written})
    else:
        out.print("Written: " + as_text(written), soft_wrap=True, highlight=False)


@app.command("merge", rich_help_panel=ALIGN)
def merge_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option(
            help="One file: .csv, .parquet, .jsonl or .nt; by default merged.csv and merged.nt in the folder."
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Make one table and one graph of both: linked entities joined, the others kept, contradictions marked.

    Example:  rlea merge out
    """
    from rlea.commands import merge_run as make

    summary = make(run, output)
    if json_:
        print_json(summary)
        return
    for note in summary["notes"]:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}.")
    counts = [counted(summary["entities"], "entity"), f"{summary['joined']:,} joined"]
    out.print(", ".join([*counts, counted(summary["conflicts"], "conflict")]), highlight=False)
    if summary["renamed"]:
        told = sorted(" = ".join(names) for names in summary["renamed"])
        out.print("Columns that are one: " + as_text(", ".join(told)), highlight=False)
    out.print("Written: " + as_text(", ".join(summary["written"])), soft_wrap=True, highlight=False)
