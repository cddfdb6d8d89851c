"""Verdicts of people as links of a pair: accepted pairs are seeds, rejected ones are never linked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.verdicts import Verdict, VerdictStore

_PLACE = re.compile(r"(.*)@(\d+)", re.DOTALL)

Pairs = dict[tuple[int, int], None]  # in the order in which they were said


def with_verdicts(pair: GraphPair, places: Sequence[str | Path]) -> GraphPair:
    """The pair with what people said in the folders of some runs; of a folder `RUN@57` the first 57 entries.

    A later folder counts more than an earlier one, and all of them more than seeds: a person has looked. Links that are
    not seeds go where an entity of theirs is one now, as for any other seeds.
    """
    accepted: Pairs = {}
    rejected: Pairs = {}
    notes, recorded = [], []
    for place in places:
        folder, until = parse_place(place)
        with VerdictStore.of_run(folder, must_exist=True) as store:
            entries = store.entries(until=until)
            found = store.current(until=until)
        recorded.append(f"{folder.absolute()}@{entries[-1].number if entries else 0}")
        if found.disputed:
            count = len(found.disputed)
            pairs = "1 pair is disputed" if count == 1 else f"{count:,} pairs are disputed"
            notes.append(f"{folder.name}: {pairs} and counts neither way; rlea verdicts lists what was said")
        kept, other = _placed(pair, found.accepted), _placed(pair, found.rejected)
        num_lost = len(found.accepted) + len(found.rejected) - len(kept) - len(other)
        if num_lost and not kept and not other:
            raise InputError("no verdict is about these graphs", path=folder, remedy="give the run of the same graphs")
        if num_lost:
            notes.append(f"{folder.name}: left out {num_lost:,} verdicts on entities that the graphs do not have")
        accepted = {one: None for one in _apart(accepted, kept) if one not in other} | kept
        rejected = {one: None for one in rejected if one not in kept} | other
    seeds = [one for one in _apart(_rows(pair.train), accepted) if one not in rejected]
    num_gone = len(pair.train) - len(seeds) - sum(one in accepted for one in _rows(pair.train))
    if num_gone:
        notes.append(f"left out {num_gone:,} seeds that people have rejected, or accepted another pair for")
    if accepted:
        what = (
            "1 accepted pair is a seed, and"
            if len(accepted) == 1
            else f"{len(accepted):,} accepted pairs are seeds, and"
        )
        notes.append(f"{what} not repeated among the links; rlea verdicts writes accepted pairs into a file")
    others = []
    for name, split in (("validation", pair.valid), ("gold", pair.test)):
        free = _apart(_rows(split), accepted)
        if len(free) < len(split):
            notes.append(f"left out {len(split) - len(free):,} {name} links of entities that people have accepted")
        others.append(_links(free))
    return replace(
        pair,
        train=_links(sorted([*seeds, *accepted])),
        valid=others[0],
        test=others[1],
        cannot_link=pair.cannot_link.with_pairs(rejected),
        notes=(*pair.notes, *notes),
        inputs={**pair.inputs, "verdicts": "\n".join(recorded)},
    )


def parse_place(place: str | Path) -> tuple[Path, int | None]:
    """A folder, and up to which entry of its log; a folder whose own name ends like that is taken whole."""
    found = _PLACE.fullmatch(str(place))
    if found is None or Path(place).is_dir():
        return Path(place), None
    return Path(found.group(1)), int(found.group(2))


def _placed(pair: GraphPair, verdicts: Sequence[Verdict]) -> Pairs:
    """The pairs of ids of verdicts; those of unknown entities are left out."""
    source, target = pair.source.entity_index, pair.target.entity_index
    known = [one for one in verdicts if one.source in source and one.target in target]
    return {(source[one.source], target[one.target]): None for one in known}


def _apart(pairs: Iterable[tuple[int, int]], others: Pairs) -> list[tuple[int, int]]:
    """The pairs that have no entity in common with any of the others."""
    sources, targets = {source for source, _ in others}, {target for _, target in others}
    return [one for one in pairs if one[0] not in sources and one[1] not in targets]


def _rows(links: Links) -> list[tuple[int, int]]:
    return list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def _links(pairs: Sequence[tuple[int, int]]) -> Links:
    return Links.of(np.array([s for s, _ in pairs], np.int32), np.array([t for _, t in pairs], np.int32))
