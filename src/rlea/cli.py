"""The command line: parse, call the pipeline, print. No logic, and heavy imports only inside the commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from rlea.views.terminal import (
    as_text,
    bench_table,
    channel_table,
    describe,
    err,
    fact_table,
    link_table,
    markdown_view,
    out,
    print_json,
    progress_bars,
    result_table,
    show_notes,
    show_strings,
)

# Worker threads that wait must sleep: by default they spin, and on a busy machine take the time of those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

app = typer.Typer(
    name="rlea",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="[bold]Entity alignment as a sequence of decisions[/bold]: two knowledge graphs in, one-to-one links with a "
    "confidence out.\n\nBegin with [cyan]rlea demo[/cyan].",
    epilog="Examples:  [cyan]rlea align source.nt target.nt.gz --seeds links.tsv --output out[/cyan]   "
    "[cyan]rlea bench D_W_15K_V1 --embedding aligne --matchers all[/cyan]",
)
ALIGN, STUDY, FILES = "Align", "Compare and measure", "Files"
BEFORE_FUSED = ("nearest", "hungarian", "best-first")  # what the demo compares all evidence with

Seed = Annotated[int, typer.Option(help="Random seed.")]
Fold = Annotated[str | None, typer.Option(help="Fold of a benchmark folder; 1 if not given.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no notes.")]
Embedding = Annotated[
    str, typer.Option(help="A model ([cyan]names[/cyan], [cyan]aligne[/cyan]) or a file of vectors made anywhere.")
]
Candidates = Annotated[int, typer.Option(help="Candidates per entity, in each direction.")]
Pool = Annotated[
    str,
    typer.Option(
        help="Entities to be matched: those of the [cyan]test[/cyan] links (default for benchmark folders), or "
        "[cyan]all[/cyan] without a seed (default for two graphs)."
    ),
]
Search = Annotated[
    str,
    typer.Option(
        help="Of candidates: [cyan]exact[/cyan], or [cyan]approximate[/cyan] for very many entities (its recall is "
        "measured); [cyan]auto[/cyan] chooses by their number."
    ),
]
Device = Annotated[str, typer.Option(help="For training, and for the agent: auto, cpu or cuda.")]
Preset = Annotated[
    str, typer.Option(help="Of the agent: context, or paper, released, paper-no-estimator, paper-random.")
]
Hide = Annotated[
    str,
    typer.Option(
        help="[cyan]names[/cyan], [cyan]attributes[/cyan] or both with a comma: models then see graphs without them."
    ),
]
Output = Annotated[Path | None, typer.Option(help="Folder for links in all formats, report.html and run.json.")]


@app.command(rich_help_panel=ALIGN)
def demo(
    output: Annotated[Path, typer.Option(help="Folder for links, report.html and run.json.")] = Path("rlea-demo"),
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Align two real graphs that come with the package: places of the world in English and in French.

    Example:  rlea demo
    """
    from rlea import commands, pipeline
    from rlea.agent.compile_ahead import compiling_ahead, finish_compiling
    from rlea.demo import demo_folder
    from rlea.settings import AlignSettings, check_settings

    with progress_bars(quiet or json_) as report, compiling_ahead() as begun:
        settings = AlignSettings(pool="all")
        check_settings(settings, output=output / "links.tsv")
        pair = pipeline.read(demo_folder())
        results = []
        for result in pipeline.bench(pair, [*BEFORE_FUSED, "fused"], settings, progress=report):
            results.append(result)
            if len(results) == len(BEFORE_FUSED):
                finish_compiling(begun, report)
        written = pipeline.write(output, results[-1])
        commands.write_bench(output / "bench.json", results)
    if json_:
        print_json({"rows": [result.summary() for result in results], "output": [str(path) for path in written]})
        return
    out.print(f"\n[bold]{as_text(describe(pair))}[/bold]")
    show_notes(pair, quiet)
    out.print(bench_table(results))
    out.print(channel_table(results[-1]))
    began = results[-1].summary()["began"]
    out.print(f"[dim]{as_text(began[:1].upper() + began[1:])}.[/dim]")
    out.print(link_table(results[-1]))
    out.print(f"Links in four formats, the record and a report: [bold]{as_text(str(output))}/report.html[/bold]")


@app.command(rich_help_panel=ALIGN)
def align(
    source: Annotated[Path, typer.Argument(help="A benchmark folder, or the first of two graphs.")],
    target: Annotated[Path | None, typer.Argument(help="The second graph.")] = None,
    seeds: Annotated[
        Path | None, typer.Option(help="Known links to start from (TSV, CSV, Parquet, SSSOM, RDF).")
    ] = None,
    valid: Annotated[
        Path | None,
        typer.Option(
            help="Known links for stopping training early (of vectors and --matcher rlea), never for matching."
        ),
    ] = None,
    gold: Annotated[Path | None, typer.Option(help="Known links to score the result with.")] = None,
    embedding: Annotated[
        str,
        typer.Option(
            help="For matchers that take vectors: a model ([cyan]names[/cyan], [cyan]aligne[/cyan]) or a file of "
            "vectors made anywhere.",
            show_default=False,
        ),
    ] = "",
    matcher: Annotated[
        str,
        typer.Option(
            help="How pairs are decided; `rlea matchers` lists them. [cyan]auto[/cyan] is [cyan]fused[/cyan] (all "
            "evidence), or [cyan]best-first[/cyan] with --embedding and for more than 100,000 entities."
        ),
    ] = "auto",
    channels: Annotated[
        str,
        typer.Option(
            help="Evidence that [cyan]fused[/cyan] listens to, with commas: structure, names, words, attributes, paris."
            " All if not given.",
            show_default=False,
        ),
    ] = "",
    encoder: Annotated[
        str,
        typer.Option(
            help="Folder of a sentence encoder, by which [cyan]fused[/cyan] compares names as well.",
            show_default=False,
        ),
    ] = "",
    candidates: Candidates = 50,
    search: Search = "auto",
    pool: Pool = "auto",
    preset: Preset = "context",
    agent: Annotated[str, typer.Option(help="A trained agent (`rlea train`) for --matcher rlea.")] = "",
    precision: Annotated[
        float, typer.Option(help="Keep only the surest links: this share should be right, by what seeds teach (0.95).")
    ] = 0.0,
    abstain: Annotated[
        bool,
        typer.Option(
            "--abstain",
            help="Leave out links that should cost more F1 than they bring; for graphs where many have no counterpart.",
        ),
    ] = False,
    joint: Annotated[
        int, typer.Option(help="Rounds in which the agent's sure links train the vectors anew (--matcher rlea).")
    ] = 0,
    hide: Hide = "",
    fold: Fold = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Output = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find the links between two graphs.

    Examples:

      rlea align D_W_15K_V1 --fold 1 --embedding aligne

      rlea align people.nt.gz staff.ttl --seeds known.tsv --output out
    """
    from rlea import pipeline
    from rlea.masking import parse_hidden
    from rlea.models.checkpoint import remove_checkpoint
    from rlea.settings import AlignSettings, check_settings

    with progress_bars(quiet or json_) as report:
        hidden = parse_hidden(hide)
        settings = AlignSettings(
            embedding, matcher, candidates, pool, seed, preset, agent, precision, joint, abstain, search, hidden,
            tuple(name.strip() for name in channels.split(",") if name.strip()), encoder,
        )  # fmt: skip
        check_settings(settings, output=None if output is None else output / "links.tsv", device=device)
        clock = pipeline.Clock()
        with clock("read"):
            pair = pipeline.read(source, target, fold=fold, seeds=seeds, valid=valid, gold=gold)
        checkpoint = None if output is None else output / f"{Path(embedding or 'names').stem}.checkpoint"
        result = pipeline.align(pair, settings, progress=report, device=device, checkpoint=checkpoint)
        result.seconds.update({"read": clock.seconds["read"]})
        written = [] if output is None else pipeline.write(output, result)
        if checkpoint is not None:
            rounds = (pipeline.joint_checkpoint(checkpoint, number) for number in range(joint + 1))
            for path in (*rounds, checkpoint.with_name(pipeline.AGENT_CHECKPOINT)):
                remove_checkpoint(path)
    if json_:
        print_json(result.summary())
        return
    out.print(f"[bold]{as_text(describe(pair))}[/bold]")
    show_notes(pair, quiet)
    out.print(result_table(result))
    for caution in result.cautions:
        out.print(f"[yellow]Note:[/yellow] {as_text(caution)}.")
    show_strings(result)
    if (contributed := channel_table(result)) is not None:
        out.print(contributed)
    out.print(link_table(result))
    if written:
        out.print("Written: " + ", ".join(as_text(str(path)) for path in written))
    elif not quiet:
        out.print("[dim]Add --output DIR to keep the links.[/dim]")


@app.command(rich_help_panel=STUDY)
def bench(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark folder: links are known.")],
    embedding: Embedding = "names",
    matchers: Annotated[
        str, typer.Option(help="[cyan]all[/cyan] that need no training, or names with commas.")
    ] = "all",
    candidates: Candidates = 50,
    search: Search = "auto",
    pool: Pool = "auto",
    hide: Hide = "",
    fold: Fold = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Annotated[
        Path | None, typer.Option(help="Keep the table with the record of the run in this JSON file.")
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare matchers on the same vectors, in one table.

    Example:  rlea bench D_W_15K_V1 --embedding vectors.safetensors --matchers nearest,hungarian,best-first
    """
    from rlea import commands, pipeline
    from rlea.errors import InputError
    from rlea.masking import parse_hidden
    from rlea.matchers import MATCHERS
    from rlea.settings import AlignSettings, check_settings

    untrained = [name for name, matcher in MATCHERS.items() if not matcher.trained]
    names = untrained if matchers == "all" else [name.strip() for name in matchers.split(",") if name.strip()]
    if not names:
        raise InputError("--matchers names none", remedy="use all, or names with commas between them")
    with progress_bars(quiet or json_) as report:
        hidden = parse_hidden(hide)
        settings = AlignSettings(embedding, names[0], candidates, pool, seed, search=search, hide=hidden)
        check_settings(settings, names, output, device)
        pair = pipeline.read(pair_folder, fold=fold)
        if not len(pair.test):
            raise InputError("bench needs test links to score matchers with", path=pair_folder, remedy="add test.tsv")
        results = list(pipeline.bench(pair, names, settings, progress=report, device=device))
        if output is not None:
            commands.write_bench(output, results)
    if json_:
        print_json(commands.bench_summary(results))
        return
    out.print(f"[bold]{as_text(describe(pair))}[/bold]")
    show_notes(pair, quiet)
    out.print(bench_table(results))
    show_strings(results[0])


@app.command(rich_help_panel=STUDY)
def embed(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark or pair folder.")],
    model: Annotated[str, typer.Option(help="The model to train.")] = "aligne",
    output: Annotated[Path, typer.Option(help="A .safetensors file.")] = Path("vectors.safetensors"),
    hide: Hide = "",
    fold: Fold = None,
    seed: Seed = 0,
    epochs: Annotated[int | None, typer.Option(help="At most so many; the model's own number if not given.")] = None,
    device: Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train entity vectors and keep them. Stopped in the middle, the same command goes on where it was.

    Example:  rlea embed D_W_15K_V1 --model aligne --output d_w.safetensors
    """
    from rlea import commands
    from rlea.masking import parse_hidden

    with progress_bars(quiet or json_) as report:
        more = {"device": device, "epochs": epochs}
        hidden = parse_hidden(hide)
        summary = commands.embed_to_file(
            pair_folder, model, output, fold=fold, seed=seed, hidden=hidden, progress=report, **more
        )
    if json_:
        print_json(summary)
        return
    facts = {**summary["training"], **{key: value for key, value in summary.items() if key != "training"}}
    out.print(fact_table(f"{model} on {summary['pair']}", facts))


@app.command(rich_help_panel=STUDY)
def train(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark or pair folder with seeds.")],
    embedding: Embedding = "aligne",
    preset: Preset = "context",
    episodes: Annotated[int | None, typer.Option(help="In place of the preset's number.")] = None,
    output: Annotated[Path, typer.Option(help="A .safetensors file.")] = Path("agent.safetensors"),
    hide: Hide = "",
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for TensorBoard: the curves go into a run named like the output.")
    ] = None,
    fold: Fold = None,
    seed: Seed = 0,
    device: Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent and keep it. Stopped, it goes on where it was.

    It decodes whatever has vectors in the space it was trained in: other folds and new entities of the same file.

    Example:  rlea train D_Y_15K_V1 --embedding vectors.safetensors --output agent.safetensors
    """
    from rlea import commands
    from rlea.masking import parse_hidden

    with progress_bars(quiet or json_) as report:
        summary = commands.train_to_file(
            pair_folder,
            embedding,
            preset,
            output,
            fold=fold,
            seed=seed,
            device=device,
            episodes=episodes,
            tensorboard=tensorboard,
            hidden=parse_hidden(hide),
            progress=report,
        )
    if json_:
        print_json(summary)
        return
    out.print(fact_table(f"{preset} agent on {summary['pair']}", summary))


@app.command(rich_help_panel=STUDY)
def reproduce(
    experiment: Annotated[str, typer.Argument(help="One of those that [cyan]rlea experiments[/cyan] lists.")],
    data: Annotated[Path | None, typer.Option(help="Folder of the data sets (EN_FR_15K_V1 and so on).")] = None,
    folds: Annotated[str, typer.Option(help="Such as 1, or 1-5, or 1,3.")] = "1",
    pairs: Annotated[
        str, typer.Option(help="Data sets with commas (EN_FR,D_W), in place of the experiment's own.")
    ] = "",
    models: Annotated[
        str,
        typer.Option(help="Embeddings with commas, in place of the experiment's own; of evidence: seeds, no-seeds."),
    ] = "",
    deciders: Annotated[
        str,
        typer.Option(help="Deciders with commas, in place of the experiment's own; of evidence: all, no-names, ..."),
    ] = "",
    sizes: Annotated[str, typer.Option(help="Entities a side with commas, for the experiment scale.")] = "",
    work: Annotated[
        Path, typer.Option(help="Folder for vectors and agents; vectors found there are used, others trained.")
    ] = Path("runs"),
    output: Annotated[
        Path | None,
        typer.Option(help="Folder for tables, pictures and records: results, or runs/quick/results with --quick."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small synthetic pair: that it works, not how well.")
    ] = False,
    device: Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper again. Stopped, it goes on where it was; finished cells are not run twice.

    Examples:

      rlea reproduce main --quick

      rlea reproduce main --data data --folds 1-5 --models sea
    """
    from rlea.experiments.options import Options
    from rlea.experiments.reproduce import reproduce as run
    from rlea.experiments.typed_lists import parse_folds, parse_names, parse_sizes
    from rlea.views.grid import grid_view

    options = Options(
        data=data,
        work=work / "quick" if quick else work,
        output=output or (work / "quick" / "results" if quick else Path("results")),
        pairs=parse_names(pairs),
        folds=parse_folds(folds),
        models=parse_names(models),
        deciders=parse_names(deciders),
        sizes=parse_sizes(sizes),
        device=device,
        quick=quick,
    )
    with grid_view(quiet or json_) as (report, watch):
        outcome, written, table = run(experiment, options, progress=report, watch=watch)
    if json_:
        counts = {"done": outcome.done, "there": outcome.there, "failed": outcome.failed}
        print_json({**counts, "written": [str(path) for path in written]})
    else:
        if table:
            out.print(markdown_view(table))
        for key, reason in outcome.failed.items():
            err.print(f"[red]{as_text(key)}:[/red] {as_text(reason)}", soft_wrap=True, highlight=False)
        out.print(f"{outcome.done} cells run, {outcome.there} there before, {len(outcome.failed)} failed.")
        if written:
            out.print("Written: " + ", ".join(as_text(str(path)) for path in written))
    if outcome.failed:
        raise typer.Exit(2)


@app.command(rich_help_panel=STUDY)
def experiments(json_: Json = False) -> None:
    """List the experiments that `rlea reproduce` knows."""
    from rlea.experiments import EXPERIMENTS

    if json_:
        print_json({name: {"repeats": one.repeats, "summary": one.summary} for name, one in EXPERIMENTS.items()})
        return
    table = Table("experiment", "of the paper", "what it asks", title="Experiments", title_justify="left")
    for name, one in EXPERIMENTS.items():
        table.add_row(name, one.repeats, one.summary)
    out.print(table)


@app.command(rich_help_panel=STUDY)
def evaluate(
    links: Annotated[Path, typer.Argument(help="Links to be judged, in any format that rlea writes.")],
    gold: Annotated[Path, typer.Argument(help="The right ones.")],
    json_: Json = False,
) -> None:
    """Precision, recall and F1 of a file of links.

    Example:  rlea evaluate out/links.tsv test_links
    """
    from rlea import commands

    summary = commands.evaluate_files(links, gold)
    if json_:
        print_json(summary)
        return
    out.print(fact_table(f"{links} against {gold}", summary))


@app.command(rich_help_panel=STUDY)
def matchers(json_: Json = False) -> None:
    """List the matchers."""
    from rlea.matchers import MATCHERS

    if json_:
        print_json({name: {"one_to_one": m.one_to_one, "summary": m.summary} for name, m in MATCHERS.items()})
        return
    table = Table("matcher", "one-to-one", "what it does", title="Matchers", title_justify="left")
    for name, matcher in MATCHERS.items():
        table.add_row(name, "yes" if matcher.one_to_one else "no", matcher.summary)
    out.print(table)


@app.command(rich_help_panel=STUDY)
def embeddings(json_: Json = False) -> None:
    """List the embeddings that can be named; files of vectors from anywhere can be given in their place."""
    from rlea.models import MODELS

    if json_:
        print_json({name: {"uses": m.uses, "trained": m.trained, "summary": m.summary} for name, m in MODELS.items()})
        return
    table = Table("embedding", "looks at", "trained", "what it is", title="Embeddings", title_justify="left")
    for name, model in MODELS.items():
        table.add_row(name, model.uses, "yes" if model.trained else "no", model.summary)
    out.print(table)


@app.command(rich_help_panel=FILES)
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A pair folder, a graph or a file of links.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="A folder for a pair, else a file.")],
    to: Annotated[str, typer.Option(help="For a pair: nt, nt.gz, ttl, rdf, nq, tsv, csv, parquet or openea.")] = "nt",
    fold: Fold = None,
    json_: Json = False,
) -> None:
    """Turn pairs, graphs and links into other formats.

    Examples:

      rlea convert D_W_15K_V1 d_w --to nt

      rlea convert links.tsv links.sssom.tsv
    """
    from rlea import commands

    summary = commands.convert(source, target, to=to, fold=fold)
    if json_:
        print_json(summary)
        return
    for note in summary["notes"]:
        err.print(f"[yellow]Note:[/yellow] {as_text(note)}")
    out.print(f"Written: {as_text(summary['written'])}")


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
            seed=seed,
        )
    if json_:
        print_json(summary)
        return
    out.print("Written: " + as_text(str(output)))


@app.command("explain", rich_help_panel=ALIGN)
def explain_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` wrote.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="ENTITY", help="Its identifier, or a name of its own. With TARGET, one of the first graph."
        ),
    ],
    target: Annotated[str | None, typer.Argument(help="One of the second graph, matched with it or not.")] = None,
    json_: Json = False,
) -> None:
    """Say why an entity has the link that it has, or why a pair was not matched.

    Example:  rlea explain out Berlin
    """
    from dataclasses import asdict

    from rlea.views.explain import explain
    from rlea.views.explanation import explanation_view

    answer = explain(run, source, target)
    if json_:
        print_json(asdict(answer))
        return
    out.print(explanation_view(answer))


@app.command("report", rich_help_panel=ALIGN)
def report_run(
    run: Annotated[Path, typer.Argument(help="A folder that `rlea align --output` or `rlea reproduce` wrote.")],
    output: Annotated[Path | None, typer.Option(help="The HTML file; report.html in the folder if not given.")] = None,
    json_: Json = False,
) -> None:
    """Make the page of a run: scores, curves, calibration, where errors come from, the hardest pairs.

    Example:  rlea report out --output page.html
    """
    from rlea.commands import write_report

    written = str(write_report(run, output))
    if json_:
        print_json({"written": written})
        return
    out.print("Written: " + as_text(written), soft_wrap=True, highlight=False)


@app.callback(invoke_without_command=True)
def about(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Options before the command."""
    if version:
        from importlib.metadata import version as installed

        out.print(f"rlea {installed('rlea')}", highlight=False)
        raise typer.Exit


def main() -> None:
    """Run the command line; bad input ends in one sentence and exit code 2, never in a traceback."""
    from rlea.errors import InputError

    try:
        app()
    except InputError as problem:
        err.print(f"[red]Error:[/red] {as_text(str(problem))}", soft_wrap=True, highlight=False)
        raise SystemExit(2) from None
    except MemoryError:
        err.print(
            "[red]Error:[/red] out of memory; try --pool test, or --matcher best-first with fewer --candidates.",
            soft_wrap=True,
        )
        raise SystemExit(1) from None
    except OSError as problem:
        err.print(f"[red]Error:[/red] {as_text(str(problem))}.", soft_wrap=True, highlight=False)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
