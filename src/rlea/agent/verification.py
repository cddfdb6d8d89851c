"""Is a link better than coincidence? Links of the pair beside links of the null models, and a confidence for each.

A scorer of links (`link_scorer.py`) learns to tell the pair's links from what entities get whose match was taken out,
each link counted as right as far as the scorer before believed it. Scores of unrelated halves are never learned from:
the scorer would learn to tell the two graphs apart. They only calibrate (`overlap.py`).

Matches support each other, wrong ones too. So links are first judged by what channels say of them alone, and then by
their neighbours as well, each of which counts as far as it is believed. Where no link is believed, none is supported.

Links without a match are judged beside the pair's own links, with themselves in place of the match. The scorer finds
whatever else sets the two apart, and its next round believes what this one found: strangers of one department, who have
nothing but that department in common with the linked ones, became sure within four rounds.

A few seeds are too few to calibrate on. But they show that graphs share something, and their links are known to be
right or wrong: the scorer learns from these as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.link_scorer import Segments, apply_slopes, fit_slopes
from rlea.agent.null_model import NullGame, NullGames, Played
from rlea.agent.overlap import DIGITS, FEWEST_KNOWN, RightLinks, Scored, grow, rate_links
from rlea.matching import Matching
from rlea.progress import tick
from rlea.search.pairs import Floats

Doubles = NDArray[np.float64]

FOLDS = 3  # a link is scored by slopes that have not seen it
ROUNDS = 4  # of scoring and learning
STAGES = 3  # of judging links, the first without their neighbours; a fourth changes next to nothing
TENTATIVE = 0.5  # belief in the best tenth of the links, at least: something must be learned from
MOST_LEARNED = 3000  # links that slopes are learned from
ROWS_AT_A_TIME = 1 << 16  # links rated at once
MOST_COMPARED = 20_000  # links of a large pair that are compared with null models; the others are rated like these
NULL_WEIGHT = 0.5  # of links without a match beside the pair's own


@dataclass(frozen=True, eq=False)
class NullRows:
    """Features of links that are all wrong, each (num, num_features)."""

    taken_out: Floats  # of entities whose match was taken out ...
    places: NDArray[np.int64]  # (num,) ... and the place of that match among the pair's links
    halves: Floats  # between halves of one graph
    num_halved: int  # entities that could have had such a link
    quarters: Floats  # between halves of these halves
    num_quartered: int
    ratio: float = 2.0  # of the number of rivals in halves to that in quarters
    growth: int = 1  # how often rivals grow so from halves to the pair


@dataclass(frozen=True, eq=False)
class KnownGame:
    """A game without some seeds: the links of their sources are known to be right or wrong."""

    game: Played
    places: NDArray[np.intp]  # of these links ...
    right: NDArray[np.bool_]  # ... and whether they are


@dataclass(frozen=True, eq=False)
class KnownLinks:
    """Links that sources of seeds got in games without these seeds."""

    rows: Floats  # (num, num_features)
    right: NDArray[np.bool_]  # (num,)
    games: NDArray[np.int64]  # (num,) the game of each: what is learned from the others has not seen it


@dataclass(frozen=True, eq=False)
class Rater:
    """Confidences of links that were not compared with null models themselves, by those of links that were."""

    used: NDArray[np.bool_]  # (num_features,) those that the scorer looks at
    segments: Segments
    slopes: tuple[Doubles, ...]  # one of each fold
    scores: Doubles  # (num_rated,) ascending ...
    confidences: Doubles  # ... and the confidence that each led to

    def __call__(self, rows: Floats) -> Doubles:
        """(num_links,)"""
        if not len(self.scores):
            return np.zeros(len(rows))
        found = np.empty(len(rows))
        for low in range(0, len(rows), ROWS_AT_A_TIME):
            part = slice(low, low + ROWS_AT_A_TIME)
            made = self.segments.columns(rows[part][:, self.used])
            logits = np.mean([apply_slopes(made, one) for one in self.slopes], axis=0)
            found[part] = np.round(np.interp(logits, self.scores, self.confidences), DIGITS)
        return found

    @staticmethod
    def of_nothing() -> Rater:
        """For a pair without links: no link is believed."""
        return Rater(np.zeros(0, np.bool_), Segments((), np.zeros(0), np.zeros(0)), (), np.zeros(0), np.zeros(0))

    def as_arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as named arrays. Between two links of one confidence the others say nothing more."""
        same = np.zeros(len(self.scores), np.bool_)
        same[1:-1] = (self.confidences[1:-1] == self.confidences[:-2]) & (
            self.confidences[1:-1] == self.confidences[2:]
        )
        counts = np.array([len(part) for part in self.segments.knots], np.int64)
        return {
            "used": self.used,
            "knots": np.concatenate([np.zeros(0), *self.segments.knots]),
            "num_knots": counts,
            "signs": self.segments.signs,
            "scales": self.segments.scales,
            "slopes": np.array(self.slopes).reshape(len(self.slopes), -1),
            "scores": self.scores[~same],
            "confidences": self.confidences[~same],
        }

    @staticmethod
    def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Rater:
        """What `as_arrays` gave; a `ValueError` if the arrays do not fit together."""
        counts = arrays["num_knots"]
        knots = tuple(np.split(arrays["knots"], np.cumsum(counts)[:-1])) if len(counts) else ()
        segments = Segments(knots, arrays["signs"], arrays["scales"])
        num_columns = sum(len(part) + 1 for part in knots)
        fits = (
            len(arrays["knots"]) == counts.sum()
            and int(arrays["used"].sum()) == len(counts) == len(segments.signs)
            and len(segments.scales) == num_columns
            and arrays["scores"].shape == arrays["confidences"].shape
            and (not len(arrays["scores"]) or arrays["slopes"].shape[1:] == (num_columns + 1,))
        )
        if not fits:
            raise ValueError("the arrays of the rater do not fit together")
        slopes = tuple(np.ascontiguousarray(row) for row in arrays["slopes"])
        return Rater(arrays["used"], segments, slopes, arrays["scores"], arrays["confidences"])


@dataclass(frozen=True, eq=False)
class Verified:
    """Confidences of the pair's links, and of links of other games if they were the pair's."""

    confidences: Doubles  # (num_links,)
    right: RightLinks  # how many of the links are
    rate: Rater  # features of any links -> their confidences


def verify_games(
    describe: Callable[[Played, Matching | None], Floats],
    own: Played,
    null: NullGames,
    known: Sequence[KnownGame],
    signs: Doubles,
    prior: Doubles,
    num_stages: int = STAGES,
) -> Verified:
    """Probabilities that the links of a game are right.

    `describe` gives the features of the links of a game, (num_links, num_features), beside the links around them, each
    as far as it is believed; for None without what links say of each other. `signs` and `prior` as in `verify`.
    """
    games = [own, *null.played, *(one.game for one in known)]
    num_entities, first_known = min(len(own.problem.source_ids), len(own.problem.target_ids)), 1 + len(null.played)
    rows = [describe(game, None) for game in games]
    for stage in range(num_stages):
        of_null, of_known = _null_rows(null, rows[1:first_known]), _known_links(known, rows[first_known:])
        if len(null.drawn):
            found = verify_some(rows[0], num_entities, of_null, signs, prior, of_known, null.drawn)
        else:
            found = verify(rows[0], num_entities, of_null, signs, prior, of_known)
        if stage + 1 < num_stages:
            links = believed(own, found.confidences)
            around = [
                links,
                *(believed(game, found.rate(part)) for game, part in zip(games[1:], rows[1:], strict=True)),
            ]
            for place, one in enumerate(null.taken_out, 1):
                around[place] = put_in_place(links, believed(one.game, found.rate(rows[place]), one.is_null))
            rows = [describe(game, beside) for game, beside in zip(games, around, strict=True)]
    return found


def believed(game: Played, trust: Doubles, some: NDArray[np.bool_] | slice = slice(None)) -> Matching:
    """Some links of a game, each as far as it is believed."""
    return Matching.of(game.decisions.source_ids[some], game.decisions.target_ids[some], trust[some])


def put_in_place(links: Matching, others: Matching) -> Matching:
    """The other links, and those of the links that share no entity with them."""
    is_taken = np.isin(links.source_ids, others.source_ids) | np.isin(links.target_ids, others.target_ids)
    return links.some(~is_taken).joined(others)


def _null_rows(null: NullGames, rows: Sequence[Floats]) -> NullRows:
    """The links that are known to be wrong, by null model; `rows` has those of all games in order."""
    nothing, left = np.zeros((0, rows[0].shape[1]), np.float32), list(rows)

    def joined(games: list[NullGame]) -> tuple[Floats, int]:
        own = [left.pop(0)[one.is_null] for one in games]
        return np.concatenate([nothing, *own]), sum(one.num_entities for one in games)

    taken_out, _ = joined(null.taken_out)
    places = [one.places[one.is_null] for one in null.taken_out]
    return NullRows(
        taken_out, np.concatenate(places), *joined(null.halves), *joined(null.quarters), null.ratio, null.growth
    )


def _known_links(known: Sequence[KnownGame], rows: Sequence[Floats]) -> KnownLinks | None:
    if not known:
        return None
    return KnownLinks(
        np.concatenate([part[one.places] for one, part in zip(known, rows, strict=True)]),
        np.concatenate([one.right for one in known]),
        np.repeat(np.arange(len(known)), [len(one.places) for one in known]),
    )


def verify(
    rows: Floats,
    num_entities: int,
    null: NullRows,
    signs: Doubles,
    prior: Doubles,
    known: KnownLinks | None = None,
) -> Verified:
    """Probabilities that links are right, by their features beside those of null models.

    `rows` are features of the pair's links, (num_links, num_features); `num_entities` could have had one. `signs` has 1
    for a feature that speaks for a link, -1 against it, 0 for one that is left out. `prior` are the slopes to begin
    with, which little data leaves as they are. `known` are links of seeds.
    """
    if not len(rows):
        return Verified(np.zeros(0), RightLinks(0.0, 0.0, 0.0), Rater.of_nothing())
    if known is None:
        known = KnownLinks(np.zeros((0, rows.shape[1]), np.float32), np.zeros(0, np.bool_), np.zeros(0, np.int64))
    used = signs != 0
    parts = [part[:, used] for part in (rows, null.taken_out, null.halves, null.quarters, known.rows)]
    segments = Segments.of(np.concatenate(parts[:2]), signs[used])
    columns = [segments.columns(part) for part in parts]
    random = np.random.default_rng(21)
    own = random.integers(0, FOLDS, len(rows))
    unlearned = [random.integers(0, FOLDS, len(part)) for part in (null.halves, null.quarters)]
    folds = [own, own[null.places], *unlearned, known.games % FOLDS]
    start = np.append(np.repeat(prior[used], [len(part) + 1 for part in segments.knots]) * segments.scales, 0.0)
    slopes = [start] * FOLDS
    learned = np.sort(random.permutation(len(rows))[:MOST_LEARNED])
    beside = np.sort(random.permutation(len(null.taken_out))[:MOST_LEARNED])
    for number in range(ROUNDS + 1):
        tick("comparing links with coincidence")
        scores = [_score(part, fold, slopes) for part, fold in zip(columns, folds, strict=True)]
        # Of entities whose match was taken out, most that get no link found none free: that tells nothing here.
        confidences, right = rate_links(
            Scored(scores[0], num_entities),
            grow(Scored(scores[2], null.num_halved), Scored(scores[3], null.num_quartered), null.ratio, null.growth),
            Scored(scores[1], len(scores[1])),
            null.places,
            scores[4][known.right] if len(known.right) >= FEWEST_KNOWN else None,
        )
        if number == ROUNDS:
            break
        belief = np.maximum(confidences, TENTATIVE * _is_best(scores[0]))[learned]
        slopes = _learn(
            np.concatenate([columns[0][:, learned], columns[4]], axis=1),
            np.concatenate([belief, known.right]),
            columns[1][:, beside],
            np.concatenate([folds[0][learned], folds[4], folds[1][beside]]),
            start,
            slopes,
        )
    order = np.argsort(scores[0], kind="stable")
    rater = Rater(used, segments, tuple(slopes), scores[0][order], np.round(confidences, DIGITS)[order])
    return Verified(np.round(confidences, DIGITS), right, rater)


def verify_some(
    rows: Floats,
    num_entities: int,
    null: NullRows,
    signs: Doubles,
    prior: Doubles,
    known: KnownLinks | None,
    drawn: NDArray[np.int64],
) -> Verified:
    """The same for very many links: some are compared with null models, and all are rated like these.

    `drawn` are the places of links whose matches were taken out; they are among those that are compared.
    """
    more = np.random.default_rng(22).permutation(len(rows))[: max(0, MOST_COMPARED - len(drawn))]
    some = np.union1d(drawn, more)
    share = len(some) / max(1, len(rows))
    own = replace(null, places=np.searchsorted(some, null.places))
    found = verify(rows[some], round(share * num_entities), own, signs, prior, known)
    right = RightLinks(*(value / share for value in (found.right.value, found.right.low, found.right.high)))
    return Verified(found.rate(rows), right, found.rate)


def _is_best(scores: Doubles) -> NDArray[np.bool_]:
    """The best tenth, or five."""
    result = np.zeros(len(scores), np.bool_)
    result[np.argsort(-scores, kind="stable")[: max(5, len(scores) // 10)]] = True
    return result


def _score(columns: Doubles, folds: NDArray[np.int64], slopes: list[Doubles]) -> Doubles:
    result = np.empty(columns.shape[1])
    for fold, own in enumerate(slopes):
        here = folds == fold
        result[here] = apply_slopes(np.ascontiguousarray(columns[:, here]), own)
    return result


def _learn(
    own: Doubles,
    belief: Doubles,
    wrong: Doubles,
    fold_of: NDArray[np.int64],
    prior: Doubles,
    slopes: list[Doubles],
) -> list[Doubles]:
    """New slopes: every link is right as far as it is believed, and wrong for the rest; right ones weigh as wrong."""
    count, more = own.shape[1], wrong.shape[1]
    columns = np.concatenate([own, wrong], axis=1)
    null_weight = NULL_WEIGHT if more else 0.0
    odds = (count * (1 + null_weight) - belief.sum()) / belief.sum()  # of wrong to right, over all
    weights = np.concatenate([odds * belief + (1 - belief), np.full(more, null_weight * count / max(1, more))])
    answers = np.concatenate([odds * belief, np.zeros(more)]) / weights
    weights *= (count + more) / weights.sum()
    result = []
    for fold, before in enumerate(slopes):
        seen = fold_of != fold
        result.append(fit_slopes(columns[:, seen], answers[seen], weights[seen], prior, before))
    return result
