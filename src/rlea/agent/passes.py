"""Passes over the candidate pairs: each one matches best first, from the seeds, remembering the pass before.

Within a pass every pair has a priority. The best pair is matched, its two entities leave, and the match raises the
priorities of their neighbours' pairs (`rlea.agent.engine`). The first passes have a fixed priority:

    what the channels make of the pair + CSLS of propagated vectors + CSLS of vectors that were fitted to the seeds

with weights for the last two (`rlea.agent.propagation` makes vectors from links alone). The passes after them take
priorities from the learned scorer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.engine import Extra, Game, Rules, Side, make_vectors, no_extra, no_vectors, play, sort_rows
from rlea.agent.features import Features, compute_features
from rlea.agent.memory import Graphs, Memory, supposed_correspondence
from rlea.agent.propagation import PropagationSettings, propagate
from rlea.evidence.vectors import Csls
from rlea.graph import Ids, Links
from rlea.graph.size import is_large
from rlea.matching import Matching
from rlea.progress import tick
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Floats, Pairs, find_pairs, is_near, mean_of_best, numbers
from rlea.search.rows import inner_products

LOWEST = 0.05  # share of the proposals that score lower than a pair that a match brings in is taken to do
SEARCHED = 2  # every second column of propagated vectors is searched: enough to propose pairs, in half the time
# Dimensions of a step of propagated vectors in large graphs: those of a million entities take a gigabyte a side.
DIM_IN_LARGE = 64

# Seeds below which hardly two of them are neighbours: by structure alone relations correspond as entities have them.
FEW_FOR_RELATIONS = 1000

# How a pass is played: one pair after another, or in the rounds of `rlea.scale.supersteps`.
_player: ContextVar[Callable[..., Any]] = ContextVar("player", default=play)


@contextmanager
def playing_by(player: Callable[..., Any]) -> Iterator[None]:
    """Within the block, passes are played by a function with the arguments and results of `engine.play`."""
    token = _player.set(player)
    try:
        yield
    finally:
        _player.reset(token)


@dataclass(frozen=True)
class PassSettings:
    """Rules of the passes; those that the matcher best-first has too are explained and measured there."""

    fixed: int = 2  # passes with the fixed priority; a third adds nothing
    learned: int = 2  # passes with the learned one
    candidates: int = 10  # nearest by propagated vectors, both ways
    # Above so many pairs of entities propagated vectors are not searched: what channels propose and matches bring in
    # must do.
    most_searched: int = 2_000_000_000
    sure: float = 0.9  # confidence of a match from which on no other candidates are searched for its two entities
    propagation: float = 0.67  # weight of propagated vectors beside other evidence; alone they have weight 1
    least_linked: float = 0.1  # share of entities with a link; of fewer, propagated vectors are mostly noise
    evidence_weight: float = 3.0
    creation: float = 0.03
    floor: float = 0.005
    kept_weight: float = 0.5  # of the matches of the pass before, in a fixed pass
    temperature: float = 0.12  # of confidence in a fixed pass
    no_match: float = 0.3  # priority at which no match is as likely
    # Best pairs of every entity after the fixed passes that learned passes look at. Channels put the right pair near
    # the top, so fewer are enough than by structure alone.
    kept: int = 10
    kept_by_structure: int = 20
    rivals: int = 10  # best of every entity by logit that a learned pass plays with; the others never come to the top
    moves: float = 24.0  # how far the root of evidence that came or went since the pass before moves a learned priority
    vectors: PropagationSettings = field(default_factory=PropagationSettings)

    def __post_init__(self) -> None:
        if min(self.fixed, self.candidates, self.kept, self.kept_by_structure, self.rivals) < 1 or self.learned < 0:
            raise ValueError("needs a fixed pass, a candidate, a kept pair and a rival or more")


@dataclass(frozen=True, eq=False)
class Problem:
    """What a pass decides: two graphs, the seeds, the entities still to be matched. It has no place for gold links."""

    graphs: Graphs
    seeds: Links
    source_ids: Ids
    target_ids: Ids
    is_part: bool = False  # a few entities are decided again: vectors are propagated to these alone


Scores = Callable[[Pairs], Floats]  # (num_pairs,)


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of pairs before any decision: proposals, and what channels and fitted vectors make of pairs."""

    proposals: Pairs
    logits: Scores | None = None  # by the channels; None where there are none
    lowest: float = 0.0  # logit at which a pair begins that a match brings into the pass; a later pass asks `logits`
    csls: Sequence[Csls] = ()  # of vectors fitted to the seeds, on the scale of cosines; their mean counts
    structure: bool = True  # whether matches raise the priorities of their neighbours' pairs
    propagation: float | None = None  # weight of propagated vectors, in place of the settings'

    @property
    def is_alone(self) -> bool:
        """Structure is all the evidence there is."""
        return self.logits is None and not self.csls


@dataclass(frozen=True, eq=False)
class Decisions:
    """One pass: links in the order in which they were matched, and all pairs that were candidates."""

    source_ids: Ids
    target_ids: Ids
    priorities: Floats  # of the links, when they were matched
    confidences: Floats
    pairs: Pairs
    logits: Floats  # of `pairs`: before the first decision in a learned pass, after the last in a fixed one
    before: Decisions | None = None  # of the last fixed pass: the one before, where there was one

    @property
    def matching(self) -> Matching:
        """The links alone, by their ids."""
        return Matching.of(self.source_ids, self.target_ids, self.confidences)

    @property
    def places(self) -> NDArray[np.int64]:
        """The places of the links among all pairs."""
        return find_pairs(self.pairs, self.source_ids, self.target_ids)


def no_decisions(pairs: Pairs | None = None) -> Decisions:
    """Nothing matched yet, over these pairs."""
    no_ids, nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
    pairs = pairs or Pairs(no_ids, no_ids)
    return Decisions(no_ids, no_ids, nothing, nothing, pairs, np.zeros(len(pairs), np.float32))


def play_fixed(problem: Problem, settings: PassSettings, prior: Prior) -> Decisions:
    """The fixed passes: the first from prior and seeds, the others from what the one before decided as well.

    Without structure one pass is all: matches say nothing of each other.
    """
    before: Decisions | None = None
    for _ in range(settings.fixed - 1 if prior.structure else 0):
        before = _fixed_pass(problem, settings, prior, before)
    return _last_fixed_pass(problem, settings, prior, before)


def replay_fixed(problem: Problem, settings: PassSettings, prior: Prior, decided: Decisions) -> Decisions:
    """The last fixed pass again, for a problem with fewer entities than the one that was decided.

    Links that the pass before had found for entities that are gone stand, for their neighbours.
    """
    before = decided.before
    if before is not None:
        is_source = np.zeros(problem.graphs.num_source, np.bool_)
        is_target = np.zeros(problem.graphs.num_target, np.bool_)
        is_source[problem.source_ids], is_target[problem.target_ids] = True, True
        is_open = is_source[before.pairs.source_ids] & is_target[before.pairs.target_ids]
        before = replace(before, pairs=before.pairs.some(is_open), logits=before.logits[is_open])
    return _last_fixed_pass(problem, settings, prior, before)


def play_learned(
    problem: Problem,
    settings: PassSettings,
    first: Decisions,
    score: Callable[[Features, Pairs], Floats],
    rate: Callable[[Pairs, Floats], Floats],
    num_passes: int,
) -> list[Decisions]:
    """The first decisions, then passes with learned priorities.

    `score` gives the logit of every pair, `rate` the confidence of its match. Both depend on features that do not
    change within a pass, so all pairs are scored in bulk. The pairs are those of the first decisions, which have
    brought in what matches create.
    """
    pairs, passes = first.pairs, [first]
    for _ in range(num_passes):
        before = passes[-1]
        tick("learned pass")
        memory = memory_of(problem, before)
        logits = score(features_of(problem, settings, before, memory), pairs)
        near = is_near(pairs, logits, settings.rivals)
        game, rules = _game(problem, pairs.some(near), logits[near], no_extra()), _rules(settings, anchored=True)
        known = _known_links(problem, before)
        (source_ids, target_ids, priorities, _), _, _ = _player.get()(game, *known, memory.correspondence, True, rules)
        confidences = rate(pairs, logits)[find_pairs(pairs, source_ids, target_ids)]
        passes.append(Decisions(source_ids, target_ids, priorities, confidences, pairs, logits))
    return passes


def vectors_for(problem: Problem, settings: PassSettings) -> PropagationSettings:
    """How labels are propagated in graphs of this size."""
    own = settings.vectors
    if is_large(problem.graphs.num_source, problem.graphs.num_target):
        own = replace(own, dim=min(own.dim, DIM_IN_LARGE))
    return own


def features_of(
    problem: Problem, settings: PassSettings, decisions: Decisions, memory: Memory | None = None
) -> Features:
    """Features of the pairs of a pass, given what it decided; `memory` is that of the decisions, if there is one."""
    memory = memory or memory_of(problem, decisions)
    pairs = decisions.pairs
    wanted = (np.unique(pairs.source_ids), np.unique(pairs.target_ids)) if problem.is_part else None
    vectors = propagate(memory, vectors_for(problem, settings), wanted)
    tick("features of pairs")
    return compute_features(decisions.pairs, memory, vectors, evidence_weight=settings.evidence_weight)


def memory_of(problem: Problem, decisions: Decisions | None) -> Memory:
    """The seeds, and the links of a pass as far as it is sure of them."""
    if decisions is None:
        return Memory.of(problem.graphs, problem.seeds)
    return Memory.of(problem.graphs, problem.seeds, decisions.source_ids, decisions.target_ids, decisions.confidences)


def to_logits(priorities: Floats, settings: PassSettings) -> Floats:
    """Fixed priorities on the scale of logits: that of no match is 0."""
    return np.asarray((priorities - np.float32(settings.no_match)) / np.float32(settings.temperature), np.float32)


def from_logits(logits: Floats, settings: PassSettings) -> Floats:
    """The other way round."""
    return np.asarray(np.float32(settings.temperature) * logits + np.float32(settings.no_match), np.float32)


def unsure(problem: Problem, before: Decisions | None, sure: float) -> tuple[Ids, Ids]:
    """Source and target entities without a match, still to be had, that the pass before was sure of."""
    if before is None:
        return problem.source_ids, problem.target_ids
    done = _may_recur(problem, before) & (before.confidences >= sure)
    return (
        problem.source_ids[~np.isin(problem.source_ids, before.source_ids[done])],
        problem.target_ids[~np.isin(problem.target_ids, before.target_ids[done])],
    )


def _may_recur(problem: Problem, before: Decisions) -> NDArray[np.bool_]:
    """Which links of the pass before could be found again; an entity of the others is no longer to be matched."""
    return np.isin(before.source_ids, problem.source_ids) & np.isin(before.target_ids, problem.target_ids)


def _fixed_pass(problem: Problem, settings: PassSettings, prior: Prior, before: Decisions | None) -> Decisions:
    tick("first pass" if before is None else "next pass")
    memory = memory_of(problem, before)
    weight = settings.propagation if prior.propagation is None else prior.propagation
    weight = 1.0 if prior.is_alone else weight
    num_entities = min(problem.graphs.num_source, problem.graphs.num_target)
    if not prior.structure or len(memory.source_ids) < settings.least_linked * max(1, num_entities):
        weight = 0.0
    parts = [prior.proposals] if before is None else [prior.proposals, before.pairs]
    # The first pass makes do with fewer dimensions and without a search where there are proposals: a better one is to
    # come.
    is_rough = before is None and len(prior.proposals) > 0
    own, vectors = vectors_for(problem, settings), None
    if weight > 0:
        wanted = (problem.source_ids, problem.target_ids) if problem.is_part else None
        vectors = propagate(memory, replace(own, dim=own.dim // 2 if is_rough else own.dim), wanted)
        if not is_rough and len(problem.source_ids) * len(problem.target_ids) <= settings.most_searched:
            some = Embeddings(vectors[0][:, ::SEARCHED], vectors[1][:, ::SEARCHED], measure="inner")
            tick("searching")
            found = find_candidates(some, *unsure(problem, before, settings.sure), settings.candidates, coarse=True)
            parts.append(Pairs.of_candidates(found))
    pairs = Pairs.union(parts).allowed(problem.graphs.cannot_link)
    priorities, start, extra, compiled = np.zeros(len(pairs), np.float32), 0.0, no_extra(), None
    if prior.logits is not None:
        priorities += from_logits(prior.logits(pairs), settings)
        start += float(from_logits(np.array([prior.lowest], np.float32), settings)[0])
    for number, csls in enumerate(prior.csls):
        share = (1 - weight) / len(prior.csls)
        scores = csls(pairs)
        priorities += np.float32(share) * scores
        if number == 0:  # compiled code knows one set of vectors; by the others such a pair scores as low as few do
            compiled = csls, share
        elif len(scores):
            start += share * float(np.quantile(scores, LOWEST))
    if vectors is not None:
        similar = np.float32(weight)
        similarity = inner_products(*vectors, pairs.source_ids, pairs.target_ids)
        means = [np.zeros(len(part), np.float32) for part in vectors]
        for part, ids in zip(means, (pairs.source_ids, pairs.target_ids), strict=True):
            best = mean_of_best(ids, similarity)
            part[: len(best)] = best
        priorities += similar * (2 * similarity - means[0][pairs.source_ids] - means[1][pairs.target_ids])
        extra = Extra(similar, *vectors, *means)
    tick("deciding")
    game = _game(problem, pairs, priorities, extra, compiled)
    shape = (len(problem.graphs.source.functionality), len(problem.graphs.target.functionality))
    correspondence = np.zeros(shape, np.float32) if before is None else memory.correspondence
    if before is None and prior.is_alone and len(problem.seeds) < FEW_FOR_RELATIONS:
        correspondence = supposed_correspondence(problem.graphs, problem.seeds)
    is_frozen = before is not None or not prior.structure
    links, _, grown = _player.get()(
        game, *_known_links(problem, before), correspondence, is_frozen, _rules(settings, start=start)
    )
    source_ids, target_ids, when, confidences = links
    return Decisions(source_ids, target_ids, when, confidences, Pairs(grown[0], grown[1]), grown[2])


def _last_fixed_pass(problem: Problem, settings: PassSettings, prior: Prior, before: Decisions | None) -> Decisions:
    """A fixed pass as learned passes take it: the best pairs of every entity alone, sorted, with logits."""
    count = settings.kept_by_structure if prior.logits is None else settings.kept
    decisions = _fixed_pass(problem, settings, prior, before)
    pairs, near = decisions.pairs, is_near(decisions.pairs, decisions.logits, count)
    # An entity that was left over may be matched with one that is not among its best.
    near |= np.isin(numbers(pairs), numbers(Pairs(decisions.source_ids, decisions.target_ids)))
    places = np.flatnonzero(near)
    places = places[np.lexsort((pairs.target_ids[places], pairs.source_ids[places]))]
    kept = Pairs(pairs.source_ids[places], pairs.target_ids[places])
    logits, priorities = (to_logits(part, settings) for part in (decisions.logits[places], decisions.priorities))
    return replace(decisions, pairs=kept, logits=logits, priorities=priorities, before=before)


def _known_links(problem: Problem, before: Decisions | None) -> tuple[Ids, Ids, Ids, Ids]:
    """Seeds and links of the pass before, for `play`: read-only, as best-first has them, or it is compiled twice.

    Links that cannot be found again stand like seeds.
    """
    seeds, earlier = problem.seeds, Links.empty()
    if before is not None:
        recurs = _may_recur(problem, before)
        standing, earlier = (Links.of(before.source_ids[part], before.target_ids[part]) for part in (~recurs, recurs))
        seeds = Links.union([seeds, standing])
    return seeds.source_ids, seeds.target_ids, earlier.source_ids, earlier.target_ids


def _game(
    problem: Problem, pairs: Pairs, priorities: Floats, extra: Any, compiled: tuple[Csls, float] | None = None
) -> Any:
    """The pairs for compiled code; by `compiled`, CSLS and its weight, pairs are scored that a match brings in."""
    sides = []
    means = [np.zeros(count, np.float32) for count in (problem.graphs.num_source, problem.graphs.num_target)]
    vectors = no_vectors()
    if compiled is not None:
        csls, share = compiled
        vectors = make_vectors(csls.found, csls.scale * share)
        pools = csls.found.source_ids, csls.found.target_ids
        for part, ids, known in zip(means, pools, csls.means, strict=True):
            part[ids] = known
    for around, ids, own in (
        (problem.graphs.source, problem.source_ids, means[0]),
        (problem.graphs.target, problem.target_ids, means[1]),
    ):
        count = len(around.starts) - 1
        is_open = np.zeros(count, np.bool_)
        is_open[ids] = True
        sides.append(Side(around.starts, around.relation_ids, around.neighbour_ids, around.functionality, own, is_open))
    starts = np.searchsorted(pairs.source_ids, np.arange(problem.graphs.num_source + 1)).astype(np.int64)
    source_ids, target_ids, bases = pairs.source_ids.copy(), pairs.target_ids.copy(), priorities.copy()
    sort_rows(starts, source_ids, target_ids, bases, np.uint64(0))
    return Game(
        *(sides[0], sides[1], vectors, extra, source_ids, target_ids, bases, starts[:-1].copy(), starts[1:].copy()),
        problem.graphs.cannot_link,
    )


def _rules(settings: PassSettings, *, anchored: bool = False, start: float = 0.0) -> Any:
    """For compiled code; `anchored` are learned passes, whose priorities move with what changed since the pass before.

    `start` is the priority of a pair that a match brings into the pass.
    """
    return Rules(
        np.float32(settings.moves if anchored else settings.evidence_weight),
        np.float32(np.inf if anchored else settings.creation),
        np.float32(settings.floor),
        np.float32(1.0),
        np.float32(1.0 if anchored else settings.kept_weight),
        np.float32(settings.temperature),
        np.float32(settings.no_match),
        np.uint64(0),
        anchored,
        np.float32(start),
    )
