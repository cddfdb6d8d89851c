"""A baseline that only compares strings: how many gold links equal names already solve.

It reads gold links, so it is part of the evaluation; no model or matcher sees the result. It looks at the complete
graphs, even if a run had names or attributes hidden.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rlea.evaluation.metrics import link_metrics
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links, choose_pool
from rlea.graph.names import local_name, spelling
from rlea.matching import Matching

RARE = 3  # a value shared by at most this many entities of a graph nearly identifies them
EASY = 0.5  # above this share, a benchmark tests string comparison rather than alignment


@dataclass(frozen=True)
class Equality:
    """The outcome of linking entities with equal strings; all shares in [0, 1]."""

    equal: float  # share of gold links whose two strings are equal
    linked: int  # pairs with equal strings that are unique in the pool on both sides
    precision: float  # of these pairs, where gold can judge them
    recall: float  # share of gold links among them


@dataclass(frozen=True)
class StringProbe:
    """What equal strings solve; strings are compared without case, accents and punctuation."""

    pool: str
    gold: int
    names: Equality
    local_names: Equality  # the last parts of the identifiers
    rare_values: float  # share of gold links that share a literal value which at most RARE entities per graph have

    @property
    def solved(self) -> float:
        """Share of gold links found by linking equal names, or equal last parts of identifiers, whichever is better."""
        return max(self.names.recall, self.local_names.recall)

    def as_dict(self) -> dict[str, Any]:
        """A dict for JSON."""
        return {"solved": self.solved, **asdict(self)}


def probe_strings(pair: GraphPair, pool: str = "auto") -> StringProbe | None:
    """Score links between entities with equal strings against the test links; None without test links.

    `pool` is as in `choose_pool`; a string counts as unique if no other entity of the pool has it.
    """
    gold = pair.test
    if not len(gold):
        return None
    pool, source_ids, target_ids = choose_pool(pair, pool)
    sides = pair.source, pair.target
    first, second = (_plain_all(graph.names) for graph in sides)
    local_first, local_second = (_plain_all(list(map(local_name, graph.entities))) for graph in sides)
    return StringProbe(
        pool,
        len(gold),
        _judge_equal(first, second, source_ids, target_ids, gold),
        _judge_equal(local_first, local_second, source_ids, target_ids, gold),
        _share_rare_values(pair.source, pair.target, gold),
    )


def describe_probe(strings: Mapping[str, Any]) -> str:
    """`StringProbe.as_dict`, or the same from a record, in two sentences."""
    names, local = strings["names"], strings["local_names"]
    by, best = ("names", names) if names["recall"] >= local["recall"] else ("last parts of identifiers", local)
    text = f"String equality alone solves {_percent(strings['solved'])} of the gold links"
    if best["linked"]:
        text += f" (equal {by} that are unique; {_percent(best['precision'])} of such pairs are correct)"
    return (
        f"{text}. Of the gold links, {_percent(names['equal'])} have equal names, {_percent(local['equal'])} have "
        f"equal last parts of identifiers, and {_percent(strings['rare_values'])} share a rare literal value."
    )


def is_easy(strings: Mapping[str, Any]) -> bool:
    """Whether strings alone solve more than half of the links, which deserves a warning."""
    return bool(strings["solved"] > EASY)


def _judge_equal(
    first: Sequence[str], second: Sequence[str], source_ids: Ids, target_ids: Ids, gold: Links
) -> Equality:
    """`first` and `second` have one string per entity; empty strings equal nothing."""
    pairs = zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True)
    equal = sum(bool(first[source]) and first[source] == second[target] for source, target in pairs)
    there, back = _owners(first, source_ids), _owners(second, target_ids)
    both = [(source, back[text]) for text, source in there.items() if source >= 0 and back.get(text, -1) >= 0]
    linked = np.array(both, dtype=np.int32).reshape(-1, 2)
    found = link_metrics(Matching.of(linked[:, 0], linked[:, 1], np.ones(len(linked))), gold)
    return Equality(equal / len(gold), len(linked), found.precision, found.recall)


def _owners(texts: Sequence[str], ids: Ids) -> dict[str, int]:
    """Text -> the only entity of a pool that has it; -1 if several do."""
    owners: dict[str, int] = {}
    for entity in ids.tolist():
        if texts[entity] and owners.setdefault(texts[entity], entity) != entity:
            owners[texts[entity]] = -1
    return owners


def _share_rare_values(source: KnowledgeGraph, target: KnowledgeGraph, gold: Links) -> float:
    """Share of gold links whose entities have a value in common that is rare in both graphs."""
    sides = (source, gold.source_ids), (target, gold.target_ids)
    numbers: dict[str, int] = {"": 0}
    facts = []  # per side (num_facts, 2): entity and value, distinct and sorted, without empty values
    for graph, _ in sides:
        values = graph.literals.values
        distinct = list(dict.fromkeys(values))  # values repeat
        number = {
            value: numbers.setdefault(text, len(numbers))
            for value, text in zip(distinct, _plain_all(distinct), strict=True)
        }
        keys = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
        rows = np.unique(graph.literals.entity_ids.astype(np.int64) << 32 | keys)
        facts.append(np.stack([rows >> 32, rows & 0xFFFFFFFF], axis=1)[(rows & 0xFFFFFFFF) > 0])
    bearers = [np.bincount(told[:, 1], minlength=len(numbers)) for told in facts]
    rare = (bearers[0] <= RARE) & (bearers[1] <= RARE)
    had = []  # per side: number of the gold link << 32 | rare value of its entity
    for told, (graph, ids) in zip(facts, sides, strict=True):
        told = told[rare[told[:, 1]]]
        starts = np.searchsorted(told[:, 0], np.arange(graph.num_entities + 1))
        counts = starts[ids + 1] - starts[ids]
        links = np.repeat(np.arange(len(ids)), counts)
        places = np.arange(len(links)) - np.repeat(np.cumsum(counts) - counts - starts[ids], counts)
        had.append(links << 32 | told[places, 1])
    return len(np.unique(np.intersect1d(*had) >> 32)) / len(gold)


def _plain_all(texts: Sequence[str]) -> list[str]:
    """`rlea.graph.names.plain` of every text, joined into one string: several times as fast as one by one."""
    whole = "\n".join(text.replace("\n", " ") for text in texts)
    whole = unicodedata.normalize("NFKD", whole).casefold()
    kept = spelling(whole) | {ord("\n"): "\n"}
    return [" ".join(text.split()) for text in whole.translate(kept).split("\n")] if texts else []


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
