"""The files of a run, and the graphs that it was made of, read again."""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea import pipeline
from rlea.agent.trace import Trace
from rlea.errors import InputError
from rlea.graph import GraphPair, Ids
from rlea.io.readers.link_files import LinkFile
from rlea.matchers import MATCHERS
from rlea.record import as_dict, as_list

POOLS = ("auto", "test", "all")
FLAGS = ("--abstain", "--json", "--quiet", "-q")  # the options of `rlea align` that take no value


def read_record(folder: Path) -> dict[str, Any]:
    """What run.json holds, if the folder is that of a run."""
    path = folder / "run.json"
    remedy = "give the folder that `rlea align --output` wrote"
    if not folder.exists():
        raise InputError("there is no such folder", path=folder, remedy=_similar_folder(folder) or remedy)
    lost = [name for name in (path.name, "links.tsv") if not (folder / name).is_file()]
    if lost:
        is_inside = folder.is_file() and (folder.parent / path.name).is_file()
        remedy = f"give the folder that it lies in, {folder.parent}" if is_inside else remedy
        what = "a file," if folder.is_file() else f"without {' and '.join(lost)}, so it is"
        raise InputError(f"is {what} not the folder of a run", path=folder, remedy=remedy)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as problem:
        raise InputError("cannot be read as the record of a run", path=path, remedy=remedy) from problem
    result = record.get("result") if isinstance(record, dict) else None
    texts = [record.get("command"), record.get("fingerprint")] if isinstance(result, dict) else []
    texts += [result.get(name) for name in ("matcher", "embedding", "pool")] if isinstance(result, dict) else [None]
    is_whole = all(isinstance(text, str) for text in texts)
    if result is None or not is_whole or result["matcher"] not in MATCHERS or result["pool"] not in POOLS:
        raise InputError("is not the record of an alignment", path=path, remedy=remedy)
    return dict(record)


def read_heard(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What the record says about every channel that had its say."""
    return [as_dict(channel) for channel in as_list(as_dict(record.get("embedding_info")).get("heard"))]


def _similar_folder(folder: Path) -> str:
    """A question after the run that was meant, where a folder with nearly that name is one; empty where none is."""
    beside = folder.parent if folder.parent.is_dir() else Path()
    runs = [place.parent.name for place in beside.glob("*/run.json")]
    close = difflib.get_close_matches(folder.name, runs, n=1)
    return f"did you mean {beside / close[0]}" if close else ""


def read_inputs(folder: Path, command: str) -> GraphPair:
    """The pair that a command read, from the same files."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if words[:2] == ["rlea", "demo"]:
        from rlea.demo import demo_folder

        return pipeline.read(demo_folder())
    if words[:2] != ["rlea", "align"]:
        raise InputError(
            f"the run was made by {command!r}, which does not tell where its graphs are",
            path=folder,
            remedy="in Python, give the pair to `explain` of rlea.views.explain or `write_report` of rlea.commands",
        )
    places, options = _parse(words[2:])
    links = {name: options[name] for name in ("seeds", "valid", "gold") if name in options}
    files = [*places, *links.values()]
    # Paths stand there as they were typed: they hold from here, or from where the output was written from.
    bases = [Path.cwd()]
    output = Path(options.get("output", "."))
    if not output.is_absolute() and folder.resolve().parts[-len(output.parts) :] == output.parts:
        bases.insert(0, folder.resolve().parents[len(output.parts) - 1])
    for base in bases:
        if all((base / file).exists() for file in files):
            source, *target = (base / place for place in places)
            return pipeline.read(
                source, *target[:1], fold=options.get("fold"), **{name: base / file for name, file in links.items()}
            )
    lost = next(file for file in files if not (bases[0] / file).exists())
    raise InputError(
        f"{lost} of this run is not there", path=folder, remedy=f"put it back, or go to where `{command}` was typed"
    )


def _parse(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Arguments and options (without their dashes) of an `rlea align` that was accepted once."""
    places: list[str] = []
    options: dict[str, str] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            return places + left, options
        if word in FLAGS:
            continue
        if word.startswith("--"):
            name, has_value, value = word[2:].partition("=")
            options[name] = value if has_value or not left else left.pop(0)
        else:
            places.append(word)
    return places, options


def place_links(rows: LinkFile, pair: GraphPair) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """The links of a run by id, the least sure first: where two speak of one entity, the surer counts."""
    index, other = pair.source.entity_index, pair.target.entity_index
    for number, source, target in zip(rows.numbers, rows.sources, rows.targets, strict=True):
        if source not in index or target not in other:
            lost = source if source not in index else target
            raise InputError(
                f"the graphs have no entity {lost!r}", path=rows.path, line=number, remedy="align them again"
            )
    order = np.argsort(rows.confidences, kind="stable")
    source_ids = np.array([index[name] for name in rows.sources], np.int32)[order]
    target_ids = np.array([other[name] for name in rows.targets], np.int32)[order]
    return source_ids, target_ids, rows.confidences[order].astype(np.float32)


def read_trace(
    path: Path, pair: GraphPair, links: tuple[Ids, Ids, NDArray[np.float32]]
) -> tuple[Trace | None, tuple[str, ...]]:
    """The order of the decisions, where the run has kept it; one that other links came from is left out with a note."""
    if not path.exists():
        return None, ()
    trace = Trace.load(path)
    decided = {
        (source, target): confidence
        for source, target, confidence in zip(
            trace.source_ids.tolist(), trace.target_ids.tolist(), trace.confidences.tolist(), strict=True
        )
    }
    is_same = all(
        abs(decided.get((source, target), -1.0) - confidence) < 1e-5
        for source, target, confidence in zip(*(array.tolist() for array in links), strict=True)
    )
    limits = (pair.source.num_entities, pair.target.num_entities) * 2
    every = (trace.source_ids, trace.target_ids, trace.pair_source_ids, trace.pair_target_ids)
    is_inside = all(((ids >= 0) & (ids < limit)).all() for ids, limit in zip(every, limits, strict=True))
    if not is_same or not is_inside:
        return None, (f"{path.name} is of other links than links.tsv, so the steps are not known",)
    return trace, ()
