"""Links between two graphs: their entities found in the graphs, cleaned, and put together to a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.text import error_at, shown

if TYPE_CHECKING:
    from rlea.matching import Matching


CARDINALITIES = ("1:1", "1:n", "n:1", "n:m")
ONE_TO_ONE = CARDINALITIES[0]
# Seeds count as certain, so one of a smaller confidence is none: its own file says that it is rather wrong than right.
LEAST_OF_SEEDS = 0.5


@dataclass(frozen=True, eq=False)
class PlacedLinks:
    """Links found in two graphs: link i is that of row `rows[i]` of the file."""

    links_file: LinkFile
    rows: tuple[int, ...]
    links: Links
    notes: tuple[str, ...]


def make_pair(
    name: str,
    graphs: Sequence[KnowledgeGraph],
    splits: Sequence[LinkFile | None],
    *,
    notes: Sequence[str] = (),
    cardinality: str = ONE_TO_ONE,
    **more: Any,
) -> GraphPair:
    """A pair with its links: train, valid and test in this order, None for a split without a file.

    The splits are made disjoint. A link with an entity of an earlier split is left out with a note: if it
    is the same link, the training has seen it, and if not, it contradicts that link. Only where people give their own
    seeds (`default_pool` is "all"), gold links that contradict one stay: nothing can find them any more, so they count
    as missed, and wrong seeds cannot raise a score. Links of confidence 0 are left out, as they are said to be wrong,
    and so are seeds of less than `LEAST_OF_SEEDS`. `cardinality` says of which side entities may have several links,
    such as 1:n.
    """
    source, target = graphs
    all_notes = [*source.notes, *target.notes, *notes]
    separated: list[Links] = []
    target_of: dict[int, set[int]] = {}
    source_of: dict[int, set[int]] = {}
    seeds: list[tuple[int, int]] = []
    for place, file in enumerate(splits):
        if file is None:
            separated.append(Links.empty())
            continue
        split = place_links(file, source, target, cardinality, least=LEAST_OF_SEEDS if place == 0 else 0.0)
        ids = zip(split.rows, split.links.source_ids.tolist(), split.links.target_ids.tolist(), strict=True)
        kept, same, contradicting = _sift(ids, target_of, source_of, cardinality)
        all_notes += split.notes
        all_notes += _left_out(file, same, "that also stand in another split")
        if place == len(splits) - 1 and more.get("default_pool") == "all":
            ends = [set(side) for side in zip(*seeds, strict=True)] or [set(), set()]
            missed = [link for link in contradicting if link[1] in ends[0] or link[2] in ends[1]]
            contradicting = [link for link in contradicting if link[1] not in ends[0] and link[2] not in ends[1]]
            kept = sorted([*kept, *missed], key=lambda link: link[1])
            all_notes += _counted(file, missed, "contradict a seed, and count as missed")
        elif place == 0:
            seeds = [(first, second) for _, first, second in kept]
        all_notes += _left_out(file, [row for row, _, _ in contradicting], "that contradict a link of another split")
        separated.append(Links.of([first for _, first, _ in kept], [second for _, _, second in kept]))
    train, valid, test = separated
    return GraphPair(name, source, target, train, valid, test, notes=tuple(all_notes), **more)


def check_cardinality(cardinality: str) -> None:
    """Refuse what is no cardinality."""
    if cardinality not in CARDINALITIES:
        raise InputError(f"unknown cardinality {cardinality!r}", remedy=f"use one of {', '.join(CARDINALITIES)}")


def place_links(
    file: LinkFile,
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    cardinality: str = ONE_TO_ONE,
    *,
    least: float = 0.0,
) -> PlacedLinks:
    """Links between the two graphs, sorted by source entity, and notes on what was left out of the file.

    Real files are dirty, so some links are left out and counted in a note: those with an entity that its graph does
    not have, those of confidence 0 or below `least`, repeated ones, and those that contradict an earlier one (the same
    source with another target, or the other way round: only the first is kept). More than half of the links with
    unknown entities is an error, because then the two sides are swapped or the identifiers are of another kind.
    """
    pairs = zip(map(source.entity_index.get, file.sources), map(target.entity_index.get, file.targets), strict=True)
    coded = [(row, s, t) for row, (s, t) in enumerate(pairs) if s is not None and t is not None]
    unknown = sorted({*range(len(file))}.difference(row for row, _, _ in coded))
    wrong = {row for row, confidence in enumerate(file.confidences.tolist()) if confidence == 0}
    unsure = {row for row, confidence in enumerate(file.confidences.tolist()) if 0 < confidence < least}
    believed = [link for link in coded if link[0] not in wrong and link[0] not in unsure]
    kept, repeated, contradicting = _sift(believed, {}, {}, cardinality)
    if 2 * len(unknown) > len(file):
        raise _mostly_unknown(file, unknown, source, target)
    notes = [*file.notes]
    notes += _left_out(file, unknown, "whose entities the graphs do not have")
    notes += _left_out(file, sorted(wrong), "of confidence 0")
    notes += _left_out(file, sorted(unsure), f"of a confidence below {least:g}, as seeds count as certain")
    notes += _left_out(file, repeated, "that stand there more than once")
    notes += _left_out(file, [row for row, _, _ in contradicting], "that contradict an earlier link of the same entity")
    kept.sort(key=lambda link: link[1:])  # so that nothing downstream depends on the order of lines in a file
    links = Links.of([first for _, first, _ in kept], [second for _, _, second in kept])
    return PlacedLinks(file, tuple(row for row, _, _ in kept), links, tuple(notes))


def _sift(
    links: Iterable[tuple[int, int, int]],
    target_of: dict[int, set[int]],
    source_of: dict[int, set[int]],
    cardinality: str,
) -> tuple[list[tuple[int, int, int]], list[int], list[tuple[int, int, int]]]:
    """New links (row, source, target), the rows of those that are known, and those that contradict a known one.

    New links are added to `target_of` and `source_of`.
    """
    new: list[tuple[int, int, int]] = []
    known: list[int] = []
    contradicting: list[tuple[int, int, int]] = []
    one_source, one_target = (part == "1" for part in cardinality.split(":"))
    for row, first, second in links:
        if second in target_of.get(first, ()):
            known.append(row)
        elif (one_target and first in target_of) or (one_source and second in source_of):
            contradicting.append((row, first, second))
        else:
            target_of.setdefault(first, set()).add(second)
            source_of.setdefault(second, set()).add(first)
            new.append((row, first, second))
    return new, known, contradicting


def read_matching_and_gold(links: str | Path, gold: str | Path) -> tuple[Matching, Links]:
    """Found links and gold links by identifiers alone, without graphs: both sides are numbered across the two files.

    Links without a confidence count as certain (1.0). Gold must hold links; found links may be none. Two files that
    have no entity in common are an error, as every score would be zero for the wrong reason.
    """
    from rlea.matching import Matching

    found, known = read_link_rows(links), read_link_rows(gold)
    if not len(known):
        raise InputError("holds no links", path=known.path, remedy="give at least one gold link")
    sources, targets = {*found.sources}, {*found.targets}
    if len(found) and sources.isdisjoint(known.sources) and targets.isdisjoint(known.targets):
        is_swapped = not sources.isdisjoint(known.targets) or not targets.isdisjoint(known.sources)
        raise error_at(
            found.path,
            found.unit,
            found.numbers[0],
            f"no entity of these links, such as {shown(found.sources[0])}, stands in {known.path.name}",
            "exchange the columns of one of the two files" if is_swapped else "compare links of the same two graphs",
        )
    source_index = {name: number for number, name in enumerate(sorted(sources.union(known.sources)))}
    target_index = {name: number for number, name in enumerate(sorted(targets.union(known.targets)))}
    found_ids, known_ids = (
        ([source_index[name] for name in file.sources], [target_index[name] for name in file.targets])
        for file in (found, known)
    )
    confidences = np.where(np.isnan(found.confidences), 1.0, found.confidences)
    return Matching.of(*found_ids, confidences), Links.of(*known_ids)


def _left_out(file: LinkFile, rows: Sequence[int], reason: str) -> list[str]:
    """A note on rows that were left out, none where there are none."""
    return (
        [f"{file.path.name}: left out {len(rows)} of {len(file)} links {reason}, {_first(file, rows)}"] if rows else []
    )


def _counted(file: LinkFile, links: Sequence[tuple[int, int, int]], what: str) -> list[str]:
    """A note on links that are of another kind than the rest, none where there are none."""
    first = _first(file, [row for row, _, _ in links]) if links else ""
    return [f"{file.path.name}: {len(links)} of {len(file)} links {what}, {first}"] if links else []


def _first(file: LinkFile, rows: Sequence[int]) -> str:
    row = min(rows)
    example = f"{shown(file.sources[row])} - {shown(file.targets[row])}"
    return f"the first at {file.unit} {file.numbers[row]} ({example})"


def _mostly_unknown(
    rows: LinkFile, unknown: Sequence[int], source: KnowledgeGraph, target: KnowledgeGraph
) -> InputError:
    """The error that says what is probably wrong with links of which most lead nowhere."""
    row = unknown[0]
    is_source = rows.sources[row] not in source.entity_index
    side, graph = ("source", source) if is_source else ("target", target)
    name = rows.sources[row] if is_source else rows.targets[row]

    def would_do(first: Iterable[str], second: Iterable[str]) -> bool:
        pairs = zip(first, second, strict=True)
        hits = sum(one in source.entity_index and other in target.entity_index for one, other in pairs)
        return 2 * hits >= len(rows)

    def bare(names: Iterable[str]) -> list[str]:
        return [text.strip().removeprefix("<").removesuffix(">") for text in names]

    if would_do(rows.targets, rows.sources):
        remedy = "the two sides are swapped: exchange the columns or the two graphs"
    elif would_do(bare(rows.sources), bare(rows.targets)):
        remedy = "write the identifiers without angle brackets and spaces around them"
    else:
        example = f" such as {shown(graph.entities[0])}" if graph.entities else ""
        remedy = f"use the identifiers of the graphs (the {side} graph has entities{example})"
    problem = f"the {side} graph has no entity {shown(name)}, and {len(unknown)} of {len(rows)} links are like this"
    return error_at(rows.path, rows.unit, rows.numbers[row], problem, remedy)
