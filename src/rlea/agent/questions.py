"""Which pair to ask a person about: the agent's third action beside matching two entities and passing on.

A strategy gives every link that stands a value; the best are asked about. It sees a `Situation`: the links of a live
run, how sure each is, and what hangs on it. `STRATEGIES` has them all. Most are formulas. The one that is learned,
`learned_policy`, is two regressions: what an answer brings if it is *yes* and what if it is *no*, by the same
features, weighed by the confidence of the link (`rlea.agent.sessions` plays the answers out that it learns from).

How to add a strategy: a function of a situation and a random generator, and its name in `STRATEGIES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.live import LiveRun
from rlea.agent.memory import Graphs
from rlea.arithmetic import exp, log, log1p
from rlea.graph import Ids
from rlea.graph.neighbourhood import Neighbourhood
from rlea.matching import Matching
from rlea.search.pairs import leads
from rlea.search.ties import tie_hash

Doubles = NDArray[np.float64]

WEIGHTS = "question_values.json"  # of the learned policy; `scripts/learn_questions.py` writes it
MOST_LEAD = 8.0  # of logits: a larger lead over rivals says no more
CLOSE = 2.0  # logits by which a rival may be behind, to count
DAMPING, STEPS = 0.85, 20  # of PageRank
FEATURES = (
    "confidence",
    "doubt",
    "lead source",
    "lead target",
    "close rivals",
    "degree",
    "pagerank",
    "agreeing",
    "hanging",
    "undecided",
    "disagreeing",
    "doubt x hanging",
    "doubt x undecided",
    "correction",
    "surprise near",
    "answered near",
)


@dataclass(frozen=True, eq=False)
class Situation:
    """The links that can be asked about, and what is known of each. Nothing here knows which are right."""

    source_ids: Ids  # (num_links,)
    target_ids: Ids  # (num_links,)
    features: Doubles  # (num_links, len(FEATURES))

    def __len__(self) -> int:
        return len(self.source_ids)

    def column(self, name: str) -> Doubles:
        """One feature of every link."""
        return np.asarray(self.features[:, FEATURES.index(name)])


class Asker:
    """Chooses questions for a live run. What does not change with answers is computed once."""

    def __init__(self, run: LiveRun) -> None:
        self._run = run
        problem, state = run.state.problem, run.state
        self._sides = tuple(_Side.of(side) for side in (problem.graphs.source, problem.graphs.target))
        pairs, logits = state.proposals, state.described.logits
        self._keys = _keys(pairs.source_ids, pairs.target_ids)
        self._leads = [leads(ids, logits, MOST_LEAD) for ids in (pairs.source_ids, pairs.target_ids)]
        self._rivals = [
            _close(ids, logits, size)
            for ids, size in (
                (pairs.source_ids, problem.graphs.num_source),
                (pairs.target_ids, problem.graphs.num_target),
            )
        ]

    def situation(self) -> Situation:
        """All links without an answer, as they stand now."""
        run = self._run
        links = run.links
        asked = np.array([_key(*pair) for pair in run.answers], np.int64)
        is_new = ~np.isin(_keys(links.source_ids, links.target_ids), asked)
        source, target = links.source_ids[is_new], links.target_ids[is_new]
        confidences = links.confidences[is_new]
        raw = np.array([run.confidence(*pair) for pair in zip(source.tolist(), target.tolist(), strict=True)])
        seeds = run.state.problem.seeds
        around = self._around(
            np.concatenate([links.source_ids, seeds.source_ids]),
            np.concatenate([links.target_ids, seeds.target_ids]),
            np.concatenate([links.confidences, np.ones(len(seeds))]),
        )
        is_told = np.append(is_new, np.zeros(len(seeds), np.bool_))
        surprises = self._surprises()
        doubt = 4 * confidences * (1 - confidences)
        places = np.minimum(np.searchsorted(self._keys, _keys(source, target)), max(0, len(self._keys) - 1))
        is_known = self._keys[places] == _keys(source, target) if len(self._keys) else np.zeros(len(source), np.bool_)
        lead = [np.where(is_known, part[places], 0.0) if len(part) else np.zeros(len(source)) for part in self._leads]
        sides, ids = self._sides, (source, target)
        hanging, undecided = around.hanging[is_told], around.undecided[is_told]
        columns = [
            confidences,
            doubt,
            *(part / MOST_LEAD for part in lead),
            log1p(sum(part[own] for part, own in zip(self._rivals, ids, strict=True))),
            log1p(sum(side.degrees[own] for side, own in zip(sides, ids, strict=True))),
            sum(side.pagerank[own] for side, own in zip(sides, ids, strict=True)),
            log1p(around.agreeing[is_told]),
            log1p(hanging),
            log1p(undecided),
            log1p(around.disagreeing[is_told]),
            doubt * log1p(hanging),
            doubt * log1p(undecided),
            confidences - raw,
            *(sum(part[own] for part, own in zip(each, ids, strict=True)) for each in surprises),
        ]
        table = np.column_stack([np.asarray(column, np.float64) for column in columns])
        return Situation(source, target, table.reshape(len(source), len(FEATURES)))

    def _around(self, source_ids: Ids, target_ids: Ids, confidences: Doubles) -> _Around:
        """For every link: neighbours that are linked to each other, and what is undecided around."""
        source, target = self._sides
        target_of, trust = np.full(source.size, -1, np.int64), np.zeros(source.size)
        target_of[source_ids], trust[source_ids] = target_ids, confidences
        own, near = source.owners, source.neighbours
        mapped = (target_of[own] >= 0) & (target_of[near] >= 0)
        agrees = np.zeros(len(own), np.bool_)
        agrees[mapped] = np.isin(_keys(target_of[own[mapped]], target_of[near[mapped]]), target.edge_keys)
        doubt = np.where(target_of >= 0, 4 * trust * (1 - trust), 0.5)
        agreeing = _sums(own, agrees, source.size)
        # A neighbour's link hangs on this one the more, the fewer others agree with it.
        share = doubt[near] / (1.0 + agreeing[near]) * agrees
        hanging = _sums(own, share, source.size)
        undecided = _undecided(source, source_ids, confidences), _undecided(target, target_ids, confidences)
        sure = _sums(own, (trust[near] > 0.5) & ~agrees, source.size)
        return _Around(
            agreeing[source_ids],
            hanging[source_ids],
            undecided[0][source_ids] + undecided[1][target_ids],
            sure[source_ids],
        )

    def _surprises(self) -> tuple[tuple[Doubles, Doubles], tuple[Doubles, Doubles]]:
        """How far answers about neighbours were from the confidences, and how many there are; by entity, both sides."""
        sums, counts = [], []
        answers = self._run.asked
        for place, side in enumerate(self._sides):
            surprise, is_asked = np.zeros(side.size), np.zeros(side.size)
            for pair, confidence, is_right in answers:
                surprise[pair[place]] = float(is_right) - confidence
                is_asked[pair[place]] = 1.0
            number = np.bincount(side.owners, is_asked[side.neighbours], side.size)
            sums.append(np.bincount(side.owners, surprise[side.neighbours], side.size) / (1.0 + number))
            counts.append(log1p(number))
        return (sums[0], sums[1]), (counts[0], counts[1])

    def choose(self, strategy: str, number: int, random: np.random.Generator) -> list[tuple[int, int]]:
        """The pairs to ask about next, at most so many, the best first."""
        situation = self.situation()
        return best(situation, STRATEGIES[strategy](situation, random), number)


def best(situation: Situation, values: Doubles, number: int) -> list[tuple[int, int]]:
    """The pairs of the highest values; ties are broken by a hash of the pair."""
    ties = tie_hash(situation.source_ids, situation.target_ids)
    order = np.lexsort((ties, -values))[:number]
    return list(zip(situation.source_ids[order].tolist(), situation.target_ids[order].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class _Around:
    """Of every link, (num_links,)."""

    agreeing: Doubles  # neighbours that are linked to each other
    hanging: Doubles  # doubt about the links of these, each over the number of links that agree with it
    undecided: Doubles  # doubt about all neighbours, on either side
    disagreeing: Doubles  # neighbours with a likely link that leads elsewhere


@dataclass(frozen=True, eq=False)
class _Side:
    """The edges of a graph, and how central its entities are."""

    size: int
    owners: NDArray[np.int64]  # (num_edges,)
    neighbours: NDArray[np.int64]  # (num_edges,)
    identifying: Doubles  # (num_edges,)
    edge_keys: NDArray[np.int64]  # both ends of every edge
    degrees: Doubles
    pagerank: Doubles  # logarithm of the share, times the number of entities

    @staticmethod
    def of(around: Neighbourhood) -> _Side:
        size = len(around.starts) - 1
        owners = np.repeat(np.arange(size, dtype=np.int64), np.diff(around.starts))
        neighbours = around.neighbour_ids.astype(np.int64)
        degrees = np.diff(around.starts).astype(np.float64)
        identifying = around.functionality[around.relation_ids].astype(np.float64)
        keys = np.unique(_keys(owners, neighbours))
        return _Side(size, owners, neighbours, identifying, keys, degrees, log(_pagerank(owners, neighbours, degrees)))


def reach(graphs: Graphs, links: Matching, source_ids: Ids, target_ids: Ids) -> Doubles:
    """How much is undecided around pairs, given the links so far; (num_pairs,)."""
    sides = ((graphs.source, links.source_ids, source_ids), (graphs.target, links.target_ids, target_ids))
    return np.asarray(sum(_undecided(_Side.of(one), own, links.confidences)[ids] for one, own, ids in sides))


def _undecided(side: _Side, linked_ids: Ids, confidences: Doubles) -> Doubles:
    """Doubt about all neighbours of every entity, less about those that many others have; (num_entities,).

    An entity without a link may have none: that counts half.
    """
    doubt = np.full(side.size, 0.5)
    doubt[linked_ids] = 4 * confidences * (1 - confidences)
    return _sums(side.owners, doubt[side.neighbours] * side.identifying, side.size)


def _pagerank(owners: NDArray[np.int64], neighbours: NDArray[np.int64], degrees: Doubles) -> Doubles:
    """The share of a random walk that each entity has, times their number; edges go both ways."""
    ranks = np.ones(len(degrees))
    for _ in range(STEPS):
        sent = ranks / np.maximum(degrees, 1.0)
        ranks = (1 - DAMPING) + DAMPING * _sums(neighbours, sent[owners], len(degrees))
    return ranks


def _sums(ids: NDArray[np.int64], values: NDArray[Any], size: int) -> Doubles:
    """The sum of the values of every id, in their order; (size,)."""
    return np.bincount(ids, np.asarray(values, np.float64), size).astype(np.float64)


def _close(ids: Ids, logits: NDArray[np.float32], size: int) -> Doubles:
    """How many proposals of each entity are nearly as good as its best, that one not counted; (num_entities,)."""
    highest = np.full(size, -np.inf)
    np.maximum.at(highest, ids, logits)
    counts = np.bincount(ids, logits >= highest[ids] - CLOSE, size)
    return np.asarray(np.maximum(counts - 1.0, 0.0))


def _keys(source: NDArray[Any], target: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(source, np.int64) << 32 | np.asarray(target, np.int64)


def _key(source: int, target: int) -> int:
    return source << 32 | target


# ---- strategies -----------------------------------------------------------------------------------------------------

Strategy = Callable[[Situation, np.random.Generator], Doubles]


def at_random(situation: Situation, random: np.random.Generator) -> Doubles:
    """No link before another."""
    return random.random(len(situation))


def least_confident(situation: Situation, random: np.random.Generator) -> Doubles:
    """Links that are as likely to be right as to be wrong."""
    return -np.abs(situation.column("confidence") - 0.5)


def least_margin(situation: Situation, random: np.random.Generator) -> Doubles:
    """Links whose best rival is as good, by what the channels say of the pairs."""
    return -np.abs(np.minimum(situation.column("lead source"), situation.column("lead target")))


def most_neighbours(situation: Situation, random: np.random.Generator) -> Doubles:
    """Entities with the most edges."""
    return situation.column("degree")


def pagerank(situation: Situation, random: np.random.Generator) -> Doubles:
    """Entities where a random walk is most often."""
    return situation.column("pagerank")


def doubt_by_reach(situation: Situation, random: np.random.Generator) -> Doubles:
    """Doubt about a link, times all that is undecided around it."""
    return situation.column("doubt") * exp(situation.column("undecided"))


def learned_policy(situation: Situation, random: np.random.Generator) -> Doubles:
    """What an answer is expected to bring, by what answers in played-out sessions brought."""
    return shipped_values()(situation)


@dataclass(frozen=True, eq=False)
class Values:
    """Two linear regressions on the same features: what an answer brings if it is *yes*, and if it is *no*."""

    means: Doubles  # (num_features,)
    scales: Doubles  # (num_features,)
    yes: Doubles  # (num_features + 1,) the intercept last
    no: Doubles
    price: float = 0.0  # of a question, in right links

    def __call__(self, situation: Situation) -> Doubles:
        """The expected gain of a question about each link, less its price."""
        rows = scaled(situation.features, self.means, self.scales)
        yes, no = ((rows * slopes).sum(axis=1) for slopes in (self.yes, self.no))
        chance = situation.column("confidence")
        return np.asarray(chance * yes + (1 - chance) * no - self.price)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "features": list(FEATURES),
            **{name: [round(float(one), 6) for one in getattr(self, name)] for name in _ARRAYS},
            "price": self.price,
        }

    @staticmethod
    def of_dict(found: dict[str, Any]) -> Values:
        """From what `as_dict` gave."""
        if tuple(found["features"]) != FEATURES:
            raise ValueError("values were learned with other features: learn them again")
        means, scales, yes, no = (np.array(found[name], np.float64) for name in _ARRAYS)
        return Values(means, scales, yes, no, float(found["price"]))


_ARRAYS = ("means", "scales", "yes", "no")


def scaled(features: Doubles, means: Doubles, scales: Doubles) -> Doubles:
    """Features in units of their spread, cut where training has hardly seen any, and a column of ones."""
    rows = np.clip((features - means) / scales, -3.0, 3.0)
    return np.column_stack([rows, np.ones(len(rows))])


@cache
def shipped_values() -> Values:
    """The weights that come with the package."""
    return Values.of_dict(json.loads(files("rlea.agent").joinpath(WEIGHTS).read_text(encoding="utf-8")))


STRATEGIES: dict[str, Strategy] = {
    "random": at_random,
    "least confident": least_confident,
    "least margin": least_margin,
    "degree": most_neighbours,
    "pagerank": pagerank,
    "doubt x reach": doubt_by_reach,
    "learned": learned_policy,
}


def next_questions(
    run: LiveRun, strategy: str, number: int = 1, random: np.random.Generator | None = None
) -> Sequence[tuple[int, int]]:
    """The pairs of a live run to ask about next. For many questions of one run, keep an `Asker`."""
    return Asker(run).choose(strategy, number, random or np.random.default_rng(0))
