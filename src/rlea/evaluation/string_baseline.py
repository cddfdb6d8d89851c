"""How much of a benchmark needs no alignment at all: the links that equal strings already solve.

Gold links are read here, so this belongs to the evaluation: no model and no matcher is told. What is looked at are the
graphs as they are, also where a run had names or attributes hidden.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rlea.evaluation.metrics import link_metrics
from rlea.graph import GraphPair, Ids, KnowledgeGraph, Links, choose_pool
from rlea.graph.names import local_name
from rlea.graph.plain_names import spelling
from rlea.matching import Matching

RARE = 3  # a value of at most so many entities in either graph nearly names them
EASY = 0.5  # from here on a benchmark says more about strings than about alignment


@dataclass(frozen=True)
class Equality:
    """What comes of linking equal strings; shares of 1."""

    equal: float  # share of the gold links whose two strings are equal
    linked: int  # pairs of the pool with a string that nobody else in the pool has on either side
    precision: float  # of these pairs, as far as gold can judge them
    recall: float  # share of the gold links among them


@dataclass(frozen=True)
class StringProbe:
    """What equal strings say about the gold links; strings are compared without case, accents and punctuation."""

    pool: str
    gold: int
    names: Equality
    local_names: Equality  # the last parts of the identifiers
    rare_values: float  # share of the gold links with a literal value in common that at most RARE entities a side have

    @property
    def solved(self) -> float:
        """Share of the gold links that linking equal names, or equal last parts of identifiers, gets right."""
        return max(self.names.recall, self.local_names.recall)

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        return {"solved": self.solved, **asdict(self)}


def probe_strings(pair: GraphPair, pool: str = "auto") -> StringProbe | None:
    """Judge what linking equal strings would find of the test links; None without any.

    `pool` is as in `choose_pool`: who else bears a name, and makes it ambiguous, is looked for there.
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
    """A `StringProbe`, as its `as_dict` or a record has it, in one line."""
    names, local = strings["names"], strings["local_names"]
    by, best = ("names", names) if names["recall"] >= local["recall"] else ("last parts of identifiers", local)
    text = f"String equality alone solves {_percent(strings['solved'])} of these links"
    if best["linked"]:
        text += f" (equal {by} that nobody else has; {_percent(best['precision'])} of such pairs are right)"
    return (
        f"{text}. Of all gold links {_percent(names['equal'])} have equal names, {_percent(local['equal'])} equal last "
        f"parts of identifiers, and {_percent(strings['rare_values'])} share a rare literal value."
    )


def is_easy(strings: Mapping[str, Any]) -> bool:
    """Whether strings solve more than half of the links, so that a reader should be warned."""
    return bool(strings["solved"] > EASY)


def _judge_equal(
    first: Sequence[str], second: Sequence[str], source_ids: Ids, target_ids: Ids, gold: Links
) -> Equality:
    """`first` and `second` have a string for every entity; empty ones are equal to nothing."""
    pairs = zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True)
    equal = sum(bool(first[source]) and first[source] == second[target] for source, target in pairs)
    there, back = _owners(first, source_ids), _owners(second, target_ids)
    both = [(source, back[text]) for text, source in there.items() if source >= 0 and back.get(text, -1) >= 0]
    linked = np.array(both, dtype=np.int32).reshape(-1, 2)
    found = link_metrics(Matching.of(linked[:, 0], linked[:, 1], np.ones(len(linked))), gold)
    return Equality(equal / len(gold), len(linked), found.precision, found.recall)


def _owners(texts: Sequence[str], ids: Ids) -> dict[str, int]:
    """Text -> the one entity of a pool that has it, -1 where several do."""
    owners: dict[str, int] = {}
    for entity in ids.tolist():
        if texts[entity] and owners.setdefault(texts[entity], entity) != entity:
            owners[texts[entity]] = -1
    return owners


def _share_rare_values(source: KnowledgeGraph, target: KnowledgeGraph, gold: Links) -> float:
    """Share of the gold links whose entities have a value in common that is rare in both graphs."""
    sides = (source, gold.source_ids), (target, gold.target_ids)
    numbers: dict[str, int] = {"": 0}
    facts = []  # of each side (num_facts, 2): entity and value, each once and sorted; without empty values
    for graph, _ in sides:
        values = graph.literals.values
        distinct = list(dict.fromkeys(values))  # values recur
        number = {
            value: numbers.setdefault(text, len(numbers))
            for value, text in zip(distinct, _plain_all(distinct), strict=True)
        }
        keys = np.fromiter(map(number.__getitem__, values), np.int64, len(values))
        rows = np.unique(graph.literals.entity_ids.astype(np.int64) << 32 | keys)
        facts.append(np.stack([rows >> 32, rows & 0xFFFFFFFF], axis=1)[(rows & 0xFFFFFFFF) > 0])
    bearers = [np.bincount(told[:, 1], minlength=len(numbers)) for told in facts]
    rare = (bearers[0] <= RARE) & (bearers[1] <= RARE)
    had = []  # of each side: number of the gold link << 32 | rare value that its entity has
    for told, (graph, ids) in zip(facts, sides, strict=True):
        told = told[rare[told[:, 1]]]
        starts = np.searchsorted(told[:, 0], np.arange(graph.num_entities + 1))
        counts = starts[ids + 1] - starts[ids]
        links = np.repeat(np.arange(len(ids)), counts)
        places = np.arange(len(links)) - np.repeat(np.cumsum(counts) - counts - starts[ids], counts)
        had.append(links << 32 | told[places, 1])
    return len(np.unique(np.intersect1d(*had) >> 32)) / len(gold)


def _plain_all(texts: Sequence[str]) -> list[str]:
    """`rlea.graph.plain_names.plain` of every text, all at once, which is several times as fast."""
    whole = "\n".join(text.replace("\n", " ") for text in texts)
    whole = unicodedata.normalize("NFKD", whole).casefold()
    kept = spelling(whole) | {ord("\n"): "\n"}
    return [" ".join(text.split()) for text in whole.translate(kept).split("\n")] if texts else []


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
