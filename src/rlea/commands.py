"""What the commands beside `align` do: small chains of the stages in `pipeline`, and errands between files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlea import peak_memory
from rlea.deciders import DECIDERS, train_agent, train_paper
from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.evaluation.ranks import rank_metrics
from rlea.graph import choose_pool
from rlea.io.readers import is_pair, read_pair
from rlea.io.readers.link_files import looks_like_links, read_link_rows
from rlea.io.readers.links import read_matching_and_gold
from rlea.io.readers.places import read_place
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.io.writers import LinkRows, write_links_file
from rlea.io.writers.atomic import atomic, check_writable
from rlea.io.writers.graphs import write_graph, write_pair
from rlea.io.writers.run_folder import add_files, put_text, read_json, refuse_inputs
from rlea.io.writers.vectors import check_storable, write_embeddings
from rlea.models import MODELS
from rlea.models.checkpoint import remove_checkpoint
from rlea.models.embed import check_hidden, embed_entities
from rlea.pipeline import make_inputs, remove_checkpoints
from rlea.progress import Progress, silent
from rlea.record import as_json, describe_run
from rlea.result import Result
from rlea.settings import AlignSettings, check_settings, settle, suggest

if TYPE_CHECKING:
    from rlea.agent.agent import Aligner
    from rlea.graph import GraphPair
    from rlea.matching import Matching
    from rlea.paper.agent import Agent
    from rlea.views.explain import Run

PAGE = "report.html"  # in the folder of a run
CURVES = ("aligned", "length", "reward", "accepted", "valid_aligned", "loss")


def bench_summary(results: Sequence[Result]) -> dict[str, Any]:
    """The rows of a comparison for machines, with what they have in common beside them."""
    first = common_result(results).summary()
    shared = {
        key: first[key]
        for key in ("pair", "fold", "embedding", "candidates", "search", "pool", "coverage", "ranks", "seed")
    } | {key: first[key] for key in ("hidden", "strings", "gold_complete")}
    columns = (
        "matcher",
        "hits@1",
        "precision",
        "recall",
        "f1",
        "matched",
        "judged",
        "correct",
        "precision_of_all",
        "peak_memory_mb",
    )
    rows = []
    for result in results:
        summary = result.summary()
        row = {key: summary[key] for key in columns}
        seconds = {"seconds": summary["seconds"]["match"], "train_seconds": summary["seconds"].get("train", 0.0)}
        rows.append({**row, **seconds, "one_to_one": result.matching.is_one_to_one})
    return {**shared, "rows": rows}


def common_result(results: Sequence[Result]) -> Result:
    """The one that tells what the rows of a comparison share: the first over vectors."""
    return next((result for result in results if DECIDERS[result.settings.matcher].needs_vectors), results[0])


def bench_text(results: Sequence[Result]) -> str:
    """A comparison with the record of its run, as JSON."""
    pair, info = results[0].pair, common_result(results).info
    more = {"fingerprint": pair.fingerprint, "embedding_info": info, "notes": list(pair.notes)}
    return as_json(describe_run(**bench_summary(results), **more))


def write_bench(path: Path, results: Sequence[Result]) -> None:
    """A comparison with the record of its run, as one JSON file."""
    with atomic(path) as temporary:
        put_text(temporary, bench_text(results))


def _write_record(path: Path, facts: dict[str, Any], save: Callable[[], None]) -> None:
    """Write the record of a run, and save what it is about; if either fails, there is no new record."""
    with atomic(path) as temporary:
        put_text(temporary, as_json(describe_run(**facts)))
        save()


def _check_record(path: Path) -> None:
    """Refuse to write the record of a run over a file that is none."""
    check_writable(path)
    if os.path.lexists(path) and "command" not in read_json(path):
        remedy = "name another output, or move the file away"
        raise InputError("is not the record of a run, and would be overwritten", path=path, remedy=remedy)


def embed_to_file(
    folder: Path,
    model: str,
    output: Path,
    *,
    fold: str | None,
    seed: int,
    hidden: Sequence[str] = (),
    progress: Progress = silent,
    **more: Any,
) -> dict[str, Any]:
    """Train a model on a pair and keep its vectors, with the record of the run beside them (.json).

    An interrupted training goes on from its checkpoint. `seconds` are those of the whole training, without what was
    lost between the last checkpoint and an interruption.
    """
    if model not in MODELS:
        raise InputError(f"unknown model {model!r}", remedy=suggest(model, MODELS))
    if not MODELS[model].trained:
        raise InputError(f"{model} has no vectors worth keeping", remedy=f"name it directly: --embedding {model}")
    if output.suffix != ".safetensors":
        raise InputError("vectors are written as safetensors", path=output, remedy="end the name in .safetensors")
    if not 0 <= seed < 2**63:
        raise InputError(f"--seed is {seed}", remedy="give a number from 0 to 2^63 - 1")
    check_hidden(hidden, model)
    checkpoint, run = output.with_suffix(".checkpoint"), output.with_suffix(".json")
    for path in (output, checkpoint):
        check_writable(path)
    _check_record(run)
    refuse_inputs([output, run, checkpoint], [folder])
    pair = read_pair(folder, fold)
    check_storable(pair.source, pair.target, output)
    peak_memory.reset_peak()
    more |= {"seed": seed, "checkpoint": checkpoint, "hidden": hidden}
    vectors = embed_entities(pair, model, progress=progress, **more)
    summary: dict[str, Any] = {
        "pair": pair.name,
        "fold": pair.fold,
        "model": model,
        "hidden": list(hidden),
        "seed": seed,
        "output": str(output),
    }
    if len(pair.test):
        _, _, target_ids = choose_pool(pair, "test")
        summary |= rank_metrics(vectors, pair.test, target_ids, pool="test").as_dict()
    summary["seconds"] = round(vectors.info["seconds"], 1)
    summary["peak_memory_mb"] = round(peak_memory.peak_mb(), 1)
    summary["training"] = dict(vectors.info)
    facts = {"result": summary, "fingerprint": pair.fingerprint, "notes": list(pair.notes)}
    _write_record(run, facts, lambda: write_embeddings(output, vectors, pair.source, pair.target))
    remove_checkpoint(checkpoint)
    return summary


def train_to_file(
    folder: Path,
    embedding: Sequence[str],
    preset: str,
    output: Path,
    *,
    channels: str | Sequence[str] = (),
    fold: str | None,
    seed: int,
    device: str,
    episodes: int | None,
    tensorboard: Path | None = None,
    hidden: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Train an agent on a pair and keep it, with the record of the run beside it (.json).

    `tensorboard` is a folder for TensorBoard; the curves go into a run of it that has the name of the output.
    """
    if output.suffix != ".safetensors":
        raise InputError("agents are written as safetensors", path=output, remedy="end the name in .safetensors")
    is_paper = bool(preset)
    if episodes is not None and (episodes < 1 or not is_paper):
        remedy = "give a number of at least 1" if is_paper else "leave it out, or name a preset of the paper's agent"
        raise InputError(f"--episodes is {episodes}", remedy=remedy)
    settings = AlignSettings(
        matcher="rlea" if is_paper else "fused",
        embedding=tuple(embedding),
        channels=channels,  # type: ignore[arg-type]
        preset=preset,
        seed=seed,
        hide=tuple(hidden),
    )
    check_settings(settings, output=output, device=device)
    checkpoint, run = output.with_suffix(".checkpoint"), output.with_suffix(".json")
    check_writable(checkpoint)
    _check_record(run)
    refuse_inputs([output, run, checkpoint], [folder, *embedding])
    curves = None if tensorboard is None else tensorboard / output.stem
    if curves is not None:
        check_writable(curves / "events")
        load_tensorboard()
    pair = read_pair(folder, fold)
    settings = settle(settings)
    inputs = make_inputs(pair, settings, progress, device, checkpoint)
    agent: Agent | Aligner
    with inputs.clock("train"):
        if is_paper:
            agent, outcome = train_paper(inputs, episodes, lambda one: drawn_curves(curves, one))
        else:
            agent, _, _ = train_agent(inputs)
            with drawn_curves(curves, agent):
                pass
            outcome = {"channels": ", ".join(agent.channels)}
            if agent.weights.vectors:
                tried = [row["valid_aligned"] for row in agent.history if row["stage"] == "choice"]
                outcome |= {"vector_weights": ", ".join(f"{weight:g}" for weight in agent.weights.vectors)}
                outcome |= {"chosen_by": agent.weights.chosen_by, "valid_aligned": max(tried, default=None)}
    summary = {
        "pair": pair.name,
        "fold": pair.fold,
        "preset": preset,
        "hidden": list(hidden),
        "seed": seed,
        **outcome,
        "seconds": round(inputs.clock.seconds["train"], 1),
        "peak_memory_mb": round(peak_memory.peak_mb(), 1),
        "output": str(output),
    }
    facts = {
        "result": summary,
        "settings": asdict(agent.settings),
        "embedding": list(settings.embedding),
        "embedding_info": [dict(part.info) for part in inputs.vectors],
        "fingerprint": pair.fingerprint,
        "notes": list(pair.notes),
    }
    _write_record(run, facts, lambda: agent.save(output))
    remove_checkpoints(checkpoint, settings)
    return summary


@contextmanager
def drawn_curves(folder: Path | None, agent: Agent | Aligner) -> Iterator[Callable[[dict[str, Any]], None] | None]:
    """A hook for `Agent.fit` that draws the agent's history for TensorBoard in `folder`; without a folder, none.

    Every start draws the whole history anew, from the checkpoint's if there is one, and takes away what earlier starts
    drew: episodes that a killed run had drawn but not kept do not stand there twice, those it had kept but not yet
    drawn are not missing.
    """
    if folder is None:
        yield None
        return
    own = "events.out.tfevents.*.rlea"
    earlier = list(folder.glob(own))
    # A page that is open already has read the earlier curves: `purge_step` tells it to forget them.
    writer = load_tensorboard()(str(folder), purge_step=0, filename_suffix=".rlea", flush_secs=10)
    drawn = 0

    def draw() -> None:
        nonlocal drawn
        for row in agent.history[drawn:]:
            step = row.get("episode", row.get("epoch"))
            stage = f"{row['stage']}: " if "stage" in row else ""  # each has epochs of its own
            for name in CURVES:
                if name in row and step is not None:
                    writer.add_scalar(stage + name, row[name], step)
        if drawn == 0:
            writer.flush()
            for path in earlier:
                path.unlink(missing_ok=True)
        drawn = len(agent.history)

    try:
        yield lambda row: draw()
        draw()  # a run that was stopped after its last episode has none left that would call the hook
    finally:
        writer.close()


def load_tensorboard() -> Any:
    """The class that writes TensorBoard's files."""
    try:
        return import_module("torch.utils.tensorboard").SummaryWriter
    except ImportError as problem:
        raise InputError(
            "--tensorboard needs the package tensorboard", remedy="run pip install 'rlea[tensorboard]'"
        ) from problem


def write_report(run: str | Path, output: str | Path | None = None, *, pair: GraphPair | None = None) -> Path:
    """The page of a run folder, made again from its files; into the folder (report.html) unless `output` is given.

    The graphs are read again from where the run read them, unless the same `pair` is given. A folder that `reproduce`
    wrote has a page, too: that of its experiments.
    """
    from rlea.evaluation.gold_ranks import GOLD_RANKS, GoldRanks
    from rlea.experiments.page import html as experiments_html
    from rlea.experiments.page import is_reproduction
    from rlea.io.readers.schema import read_schema
    from rlea.views.explain import Run
    from rlea.views.report.run import render_run

    folder = Path(run)
    if not (folder / "run.json").exists() and is_reproduction(folder):
        return _write_page(folder / "report.html" if output is None else Path(output), lambda: experiments_html(folder))
    opened = Run.open(folder, pair=pair)
    matching = _links_of(folder, opened)
    ranks, notes = None, list(opened.notes)
    if (folder / GOLD_RANKS).exists():
        ranks = GoldRanks.load(folder / GOLD_RANKS)
        if not ranks.is_of(opened.pair.test):
            ranks = None
            notes.append(f"{GOLD_RANKS} belongs to other gold links, so it is not known which of them were candidates")
    schema = read_schema(folder)

    def render() -> str:
        return render_run(
            opened.pair, matching, opened.record, trace=opened.trace, gold_ranks=ranks, notes=notes, schema=schema
        )

    if output is None:
        check_writable(folder / PAGE)
        return add_files(folder, {PAGE: render()})[0]
    return _write_page(Path(output), render)


def merge_run(run: str | Path, output: str | Path | None = None, *, pair: GraphPair | None = None) -> dict[str, Any]:
    """Both graphs of a run as one: merged.csv and merged.nt in its folder, or one file of the format of `output`.

    The graphs are read again from where the run read them, unless the same `pair` is given.
    """
    from rlea.io.readers.schema import read_schema
    from rlea.io.writers.atomic import write_all
    from rlea.io.writers.rdf import put_rdf
    from rlea.merging import MERGED_FILES, OTHER, merge, merged_graph
    from rlea.views.explain import Run

    folder = Path(run)
    paths = [folder / name for name in MERGED_FILES] if output is None else [Path(output)]
    formats = (".csv", ".parquet", ".jsonl", ".nt")
    for path in paths:
        if path.suffix.lower() not in formats:
            problem = "has no extension that names a format of merged graphs"
            raise InputError(problem, path=path, remedy=f"use one of {', '.join(formats)}")
        if folder.is_dir():  # if not, `Run.open` says so, and nothing is made
            check_writable(path)
    opened = Run.open(folder, pair=pair)
    matching = _links_of(folder, opened)
    merged = merge(opened.pair, matching, read_schema(folder))
    tables: dict[str, Callable[[Path], Any]] = {
        ".csv": merged.frame.write_csv,
        ".parquet": merged.frame.write_parquet,
        ".jsonl": merged.frame.write_ndjson,
    }

    def put(path: Path) -> Callable[[Path], Any]:
        is_graph = path.suffix.lower() == ".nt"
        # The graph is made late: it and the table need not be in memory at once.
        return lambda temporary: (
            put_rdf(temporary, path, merged_graph(opened.pair, matching), "nt")
            if is_graph
            else tables[path.suffix.lower()](temporary)
        )

    if output is None:
        written = add_files(folder, {path.name: put(path) for path in paths})
    else:
        written = write_all({path: put(path) for path in paths})
    notes = []
    if merged.others:
        told = f"{len(merged.others):,} attributes with few values are in the column {OTHER}"
        notes = [f"the {len(merged.columns)} most filled attributes have columns of their own; {told}"]
    return {
        "written": [str(path) for path in written],
        "entities": len(merged.frame),
        "joined": int(merged.frame["confidence"].is_not_null().sum()),
        "conflicts": int(merged.frame["conflicts"].sum()),
        "columns": {title: list(names) for title, names in merged.columns.items()},
        "renamed": [list(names) for names in merged.renamed],
        "notes": notes,
    }


def _links_of(folder: Path, opened: Run) -> Matching:
    """The links of a run folder."""
    from rlea.matching import Matching

    if np.isnan(opened.confidences).any():
        raise InputError("has a link without a confidence", path=folder / "links.tsv", remedy="align again")
    return Matching.of(opened.source_ids, opened.target_ids, opened.confidences)


def _write_page(path: Path, render: Callable[[], str]) -> Path:
    """A page as a file, asked for only once it is known that it can be written."""
    check_writable(path)
    page = render()
    with atomic(path) as temporary:
        put_text(temporary, page)
    return path


def evaluate_files(links: Path, gold: Path, *, complete: bool = False) -> dict[str, Any]:
    """Scores of a file of links against a file of gold links, by identifiers alone."""
    matching, known = read_matching_and_gold(links, gold)
    return link_metrics(matching, known, pool="as in the files", complete=complete).as_dict()


def convert(
    source: str | Path, target: Path, *, to: str = "nt", fold: str | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """A pair, a graph or a file of links in another format; what IN is decides."""
    refuse_inputs([target], [source])
    if is_pair(source):
        pair = read_pair(source, fold)
        notes = (*pair.notes, *write_pair(target, pair, to))
    elif fold is not None:
        raise InputError("--fold is for benchmark folders", path=source, remedy="leave it out")
    elif looks_like_links(source):
        links = read_link_rows(source)
        certain = np.where(np.isnan(links.confidences), 1.0, links.confidences)
        labels = links.source_labels, links.target_labels
        more = write_links_file(target, LinkRows.sort(links.sources, links.targets, certain, *labels))
        notes = (*links.notes, *more)
    else:
        graph = read_place(source, progress=progress)
        notes = (*graph.notes, *write_graph(target, graph))
    return {"written": str(target), "notes": list(notes)}


def synthesize(folder: Path, progress: Progress = silent, **settings: Any) -> dict[str, Any]:
    """Write a pair with a planted alignment, in pieces, so that size is bounded by the disk."""
    chosen = SyntheticSettings(**settings)
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError("the folder is not empty", path=folder, remedy="name a new one")
    check_writable(folder / "source.nt")
    write_synthetic(folder, chosen, progress=progress)
    return {"written": str(folder), **settings}
