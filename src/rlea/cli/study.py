"""Commands that compare and measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rlea.cli import options
from rlea.cli.options import STUDY, Json, Quiet, answer, answer_list, app
from rlea.views import terminal
from rlea.views.terminal import as_text, err, fact_table, out, print_json, progress_bars


@app.command(rich_help_panel=STUDY)
def bench(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark folder: links are known.")],
    embedding: options.Embeddings = None,
    matchers: Annotated[
        str, typer.Option(help="[cyan]all[/cyan] that need no training, or names separated by commas.")
    ] = "all",
    candidates: options.Candidates = 50,
    search: options.Search = "auto",
    pool: options.Pool = "auto",
    hide: options.Hide = "",
    gold_complete: options.GoldComplete = False,
    fold: options.Fold = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    output: Annotated[
        Path | None, typer.Option(help="Keep the table with the record of the run in this JSON file.")
    ] = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare matchers on the same vectors (names by default), in one table.

    Example:  rlea bench D_W_15K_V1 --embedding vectors.safetensors --matchers nearest,hungarian,fused
    """
    from rlea import commands, pipeline
    from rlea.deciders import DECIDERS
    from rlea.errors import InputError
    from rlea.graph.masking import parse_hidden
    from rlea.settings import AlignSettings, check_settings

    untrained = [name for name, one in DECIDERS.items() if not one.is_trained]
    names = untrained if matchers == "all" else [name.strip() for name in matchers.split(",") if name.strip()]
    if not names:
        raise InputError("--matchers names none", remedy="use all, or names with commas between them")
    with progress_bars(quiet or json_) as report:
        settings = AlignSettings(
            keep="all",  # matchers are compared by all that they decide
            embedding=tuple(embedding or ()),
            matcher=names[0],
            candidates=candidates,
            pool=pool,
            seed=seed,
            search=search,
            hide=parse_hidden(hide),
            gold_complete=gold_complete,
        )
        check_settings(settings, names, output, device)
        pair = pipeline.read(pair_folder, fold=fold)
        if not len(pair.test):
            raise InputError("bench needs test links to score matchers with", path=pair_folder, remedy="add test.tsv")
        results = list(pipeline.compare(pair, names, settings, progress=report, device=device))
        if output is not None:
            commands.write_bench(output, results)
    if json_:
        print_json(commands.bench_summary(results))
        return
    out.print(f"[bold]{as_text(terminal.describe(pair))}[/bold]")
    terminal.show_notes(pair, quiet)
    out.print(terminal.bench_table(results))
    terminal.show_cautions(results[0])
    terminal.show_strings(results[0])


@app.command(rich_help_panel=STUDY)
def embed(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark or pair folder.")],
    model: Annotated[str, typer.Option(help="The model to train.")] = "aligne",
    output: Annotated[Path, typer.Option(help="A .safetensors file.")] = Path("vectors.safetensors"),
    hide: options.Hide = "",
    fold: options.Fold = None,
    seed: options.Seed = 0,
    epochs: Annotated[int | None, typer.Option(help="At most so many; the model's own number if not given.")] = None,
    device: options.Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train entity vectors and keep them. Stopped in the middle, the same command goes on where it was.

    Example:  rlea embed D_W_15K_V1 --model aligne --output d_w.safetensors
    """
    from rlea import commands
    from rlea.graph.masking import parse_hidden

    with progress_bars(quiet or json_) as report:
        more: dict[str, Any] = {"hidden": parse_hidden(hide), "device": device, "epochs": epochs, "progress": report}
        summary = commands.embed_to_file(pair_folder, model, output, fold=fold, seed=seed, **more)
    facts = {**summary["training"], **{key: value for key, value in summary.items() if key != "training"}}
    answer(json_, summary, lambda: fact_table(f"{model} on {summary['pair']}", facts))


@app.command(rich_help_panel=STUDY)
def train(
    pair_folder: Annotated[Path, typer.Argument(metavar="PAIR", help="A benchmark or pair folder.")],
    embedding: options.Embeddings = None,
    channels: options.Channels = "",
    preset: options.Preset = "",
    episodes: Annotated[int | None, typer.Option(help="Of the paper's agent, in place of the preset's number.")] = None,
    output: Annotated[Path, typer.Option(help="A .safetensors file.")] = Path("agent.safetensors"),
    hide: options.Hide = "",
    tensorboard: Annotated[
        Path | None, typer.Option(help="Folder for TensorBoard: the curves go into a run named like the output.")
    ] = None,
    fold: options.Fold = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent and keep it, for `rlea align --agent`. The training of vectors goes on where it was stopped.

    Example:  rlea train D_Y_15K_V1 --output agent.safetensors
    """
    from rlea import commands
    from rlea.graph.masking import parse_hidden

    with progress_bars(quiet or json_) as report:
        summary = commands.train_to_file(
            pair_folder,
            tuple(embedding or ()),
            preset,
            output,
            channels=channels,
            fold=fold,
            seed=seed,
            device=device,
            episodes=episodes,
            tensorboard=tensorboard,
            hidden=parse_hidden(hide),
            progress=report,
        )
    which = "agent" if not preset else f"agent ({preset})"
    answer(json_, summary, lambda: fact_table(f"{which} on {summary['pair']}", summary))


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
    device: options.Device = "auto",
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment of the paper again. Stopped, it goes on where it was; finished cells are not run twice.

    Examples:

      rlea reproduce main --quick

      rlea reproduce main --data data --folds 1-5 --models sea
    """
    from rlea.experiments.grid_view import grid_view
    from rlea.experiments.options import Options
    from rlea.experiments.reproduce import reproduce as run
    from rlea.experiments.typed_lists import parse_folds, parse_names, parse_sizes

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
            out.print(terminal.markdown_view(table))
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

    answer_list(json_, "Experiments", EXPERIMENTS, repeats="of the paper", summary="what it asks")


@app.command(rich_help_panel=STUDY)
def evaluate(
    links: Annotated[Path, typer.Argument(help="Links to be judged, in any format that rlea writes.")],
    gold: Annotated[Path, typer.Argument(help="The right ones.")],
    gold_complete: options.GoldComplete = False,
    json_: Json = False,
) -> None:
    """Precision, recall and F1 of a file of links.

    Example:  rlea evaluate out/links.tsv test_links
    """
    from rlea import commands

    summary = commands.evaluate_files(links, gold, complete=gold_complete)
    answer(json_, summary, lambda: fact_table(f"{links} against {gold}", summary))


@app.command(rich_help_panel=STUDY)
def matchers(json_: Json = False) -> None:
    """List the matchers."""
    from rlea.deciders import DECIDERS

    answer_list(json_, "Matchers", DECIDERS, one_to_one="one-to-one", summary="what it does")


@app.command(rich_help_panel=STUDY)
def embeddings(json_: Json = False) -> None:
    """List the embeddings that can be named; files of vectors from anywhere can be given in their place."""
    from rlea.models import MODELS

    answer_list(json_, "Embeddings", MODELS, uses="looks at", trained="trained", summary="what it is")
