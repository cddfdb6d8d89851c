"""The folder of a run: its record, its links and decisions, and the graphs it was made from."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.trace import DECISIONS, Trace
from rlea.deciders import DECIDERS
from rlea.errors import InputError
from rlea.evaluation.gold_ranks import GOLD_RANKS
from rlea.graph import GraphPair, Ids
from rlea.graph.schema import SCHEMA_FILES
from rlea.io.readers.link_files import LinkFile
from rlea.io.writers.clusters import CLUSTERS
from rlea.io.writers.run_folder import check_whole
from rlea.record import DOUBTFUL, as_dict, as_rows

POOLS = ("auto", "test", "all")
READ = ("links.tsv", DOUBTFUL, DECISIONS, GOLD_RANKS, *SCHEMA_FILES)  # what views read of a run
REMEDY = "give the folder that `rlea align --output` wrote"


def read_record(folder: Path) -> dict[str, Any]:
    """The contents of run.json."""
    path = folder / "run.json"
    if not folder.exists():
        raise InputError("there is no such folder", path=folder, remedy=_similar_folder(folder) or REMEDY)
    lost = [name for name in (path.name, "links.tsv") if not (folder / name).is_file()]
    if (folder / CLUSTERS).is_file() and not (folder / "links.tsv").is_file():
        what = f"has clusters of one graph or of several, in {CLUSTERS}, and no links"
        raise InputError(what, path=folder, remedy="give the folder of a run of two graphs")
    if lost:
        is_inside = folder.is_file() and (folder.parent / path.name).is_file()
        remedy = f"give the folder that contains it, {folder.parent}" if is_inside else REMEDY
        what = "a file," if folder.is_file() else f"without {' and '.join(lost)}, so it is"
        raise InputError(f"is {what} not the folder of a run", path=folder, remedy=remedy)
    try:
        record = as_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, RecursionError, OSError) as problem:
        raise InputError("cannot be read as the record of a run", path=path, remedy=REMEDY) from problem
    result = as_dict(record.get("result"))
    texts = [record.get("fingerprint"), *(result.get(name) for name in ("matcher", "embedding", "pool"))]
    is_whole = all(isinstance(text, str) for text in texts)
    if not is_whole or result["matcher"] not in DECIDERS or result["pool"] not in POOLS:
        raise InputError("is not the record of an alignment", path=path, remedy=REMEDY)
    check_whole(folder, record, READ)
    return record


def read_channels(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What the record says about every channel that the run used."""
    info = as_dict(record.get("embedding_info"))
    return as_rows(info.get("evidence", info.get("heard")))  # of 0.2.0: heard, without meanings


def _similar_folder(folder: Path) -> str:
    """ "did you mean" a run folder with nearly that name; empty if there is none."""
    parent = folder.parent if folder.parent.is_dir() else Path()
    runs = [place.parent.name for place in parent.glob("*/run.json")]
    close = difflib.get_close_matches(folder.name, runs, n=1)
    return f"did you mean {parent / close[0]}" if close else ""


def read_inputs(
    folder: Path, record: dict[str, Any], add_source: Sequence[str | Path] = (), add_target: Sequence[str | Path] = ()
) -> GraphPair:
    """Read the graphs and links of a run again, from where its record says they are; with more, where more is given."""
    from rlea.io.read import read

    inputs = {name: str(value) for name, value in as_dict(record.get("inputs")).items()}
    reviewed = [_find_reviewed(folder, place) for place in inputs.get("verdicts", "").split("\n") if place]
    more: dict[str, Any] = {"verdicts": reviewed}
    for name, given in (("add_source", add_source), ("add_target", add_target)):
        known = [_find_file(folder, place) for place in inputs.get(name, "").split("\n") if place]
        more[name] = [*known, *given]
    if inputs.get("demo"):
        from rlea.demo import demo_folder

        return read(demo_folder(), **more)
    if "source" not in inputs:
        raise InputError(
            "run.json does not say where the graphs are: the run is of an earlier version, of graphs made in Python, "
            "or of standard input",
            path=folder,
            remedy="align again, or in Python give the pair to `rlea.views.explain.explain` or "
            "`rlea.commands.write_report`",
        )
    files = ("source", "target", "seeds", "valid", "gold", "source_query", "target_query")
    places: dict[str, Any] = {name: _find_file(folder, inputs[name]) for name in files if name in inputs}
    if inputs.get("endpoint_limit", "").isdigit():
        places["endpoint_limit"] = int(inputs["endpoint_limit"])
    places |= {name: inputs[name] for name in ("id_column", "name_column", "columns") if name in inputs}
    settings = as_dict(record.get("settings"))
    places |= {"cardinality": str(settings.get("cardinality", "1:1")), **more}
    return read(places.pop("source"), places.pop("target", None), fold=inputs.get("fold"), **places)


def _find_reviewed(folder: Path, recorded: str) -> str:
    """The folder of a run whose verdicts were taken, as `_find_file` finds it, and up to which entry of its log."""
    from rlea.io.readers.verdicts import parse_place

    place, until = parse_place(recorded)
    return f"{_find_file(folder, str(place))}@{until}"


def _find_file(folder: Path, recorded: str) -> Path | str:
    """A file where it was recorded or, if it was moved together with the run, at the same place relative to the run."""
    from rlea.io.readers.places import is_elsewhere

    if is_elsewhere(recorded):
        return recorded
    path = Path(recorded)
    tails = [Path(*path.parts[first:]) for first in range(1, len(path.parts))]
    for place in (path, *(parent / tail for parent in folder.resolve().parents[:2] for tail in tails)):
        if place.exists():
            return place
    raise InputError(f"{recorded} of this run is not there", path=folder, remedy="put it back, or align again")


def place_links(rows: LinkFile, pair: GraphPair) -> tuple[Ids, Ids, NDArray[np.float32]]:
    """The links of a run by id, the least confident first: if an entity has two, the last one wins."""
    index, other = pair.source.entity_index, pair.target.entity_index
    for number, source, target in zip(rows.numbers, rows.sources, rows.targets, strict=True):
        if source not in index or target not in other:
            lost = source if source not in index else target
            raise InputError(f"the graphs have no entity {lost!r}", path=rows.path, line=number, remedy="align again")
    order = np.argsort(rows.confidences, kind="stable")
    source_ids = np.array([index[name] for name in rows.sources], np.int32)[order]
    target_ids = np.array([other[name] for name in rows.targets], np.int32)[order]
    return source_ids, target_ids, rows.confidences[order].astype(np.float32)


def read_trace(
    path: Path, pair: GraphPair, links: tuple[Ids, Ids, NDArray[np.float32]]
) -> tuple[Trace | None, tuple[str, ...]]:
    """The decisions of a run, if it has kept them; those of other links are ignored, with a note."""
    if not path.exists():
        return None, ()
    trace = Trace.load(path)
    pairs = zip(trace.source_ids.tolist(), trace.target_ids.tolist(), strict=True)
    decided = dict(zip(pairs, trace.confidences.tolist(), strict=True))
    is_same = all(
        abs(decided.get((source, target), -1.0) - confidence) < 1e-5
        for source, target, confidence in zip(*(array.tolist() for array in links), strict=True)
    )
    limits = (pair.source.num_entities, pair.target.num_entities) * 2
    every = (trace.source_ids, trace.target_ids, trace.pair_source_ids, trace.pair_target_ids)
    is_inside = all(((ids >= 0) & (ids < limit)).all() for ids, limit in zip(every, limits, strict=True))
    if not is_same or not is_inside:
        return None, (f"{path.name} belongs to other links than links.tsv, so the steps are not known",)
    return trace, ()
