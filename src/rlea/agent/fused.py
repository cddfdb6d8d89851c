"""The agent with all evidence: it learns how far to trust each channel, and decides with what it matched in mind.

Training holds links out, as the context agent's does (`rlea.agent.context`). PARIS is run from the others only. Names,
words and attributes are the same for all games: links teach them no more than which attributes correspond and which
hold names, where a single link hardly shows. So all channels take part in the games. First an opinion of pairs is
learned from the channels alone; the game is played with it; then a key is learned from what channels and matches say
together, in the states in which such games leave the pairs.

Without enough seeds the agent learns from pairs that several channels agree on (`rlea.agent.bootstrap`). In the end it
decides about these as about all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.bootstrap import Beginning, are_enough, begin, vote
from rlea.agent.calibration import Calibration, log_odds
from rlea.agent.context import find
from rlea.agent.features import Sight
from rlea.agent.fused_passes import play_opinions
from rlea.agent.holdout import ASKED, HIDDEN, Game, GameSettings, draw, hold_out
from rlea.agent.learning import Examples, features_of, supervise
from rlea.agent.memory import Board, Floats
from rlea.agent.pair_scorer import PairScorer, ScorerSettings
from rlea.agent.passes import Decisions, PassSettings, Scene, play_learned, see
from rlea.errors import InputError
from rlea.evidence import CHANNELS, PARIS, STRUCTURE
from rlea.evidence.channel import (
    Channel,
    Table,
    describe_pairs,
    join_proposals,
)
from rlea.evidence.channels import Evidence
from rlea.graph import GraphPair, Ids, Links
from rlea.matching import Matching
from rlea.progress import Progress, silent
from rlea.search.pairs import Pairs, is_near, leads

_Said = tuple[Floats, Floats]  # what the channels say of pairs, and the opinion that follows
FEW_SEEDS = 100  # from so many on the key and the confidences are learned from seeds, and agreed pairs teach opinions
SILENCED_SHARE = 5  # each way of silencing channels is shown of one agreed pair in so many
MOST_LEAD = 12.0  # of keys that are logits: beyond, a lead says no more


@dataclass(frozen=True)
class FusionSettings:
    """All settings."""

    channels: tuple[str, ...] = CHANNELS
    kept: int = 10  # best pairs of every entity by opinion that the game is played with
    asked: int = 1000  # held-out links of a game that are learned from: more cost time and teach no more
    least: float = 0.05  # share of the proposals whose opinion is below that of a pair that matches bring in
    votes: float = 4.0  # what a witness is worth where there is nothing to learn from
    games: GameSettings = field(default_factory=GameSettings)
    # Opinions put the right pair near the top, so fewer pairs are kept than by structure alone.
    passes: PassSettings = field(default_factory=lambda: PassSettings(kept=10))
    # Opinions are learned from many examples: curves for every feature do as well as networks, and there is one answer.
    opinion: ScorerSettings = field(default_factory=lambda: ScorerSettings(epochs=0, members=1, bends=3))
    key: ScorerSettings = field(default_factory=lambda: ScorerSettings(epochs=60, rate=5e-3))

    def __post_init__(self) -> None:
        unknown = [name for name in self.channels if name not in CHANNELS]
        if unknown or not self.channels:
            raise ValueError(f"channels are some of {', '.join(CHANNELS)}")


class FusedAgent:
    """Aligns one pair of graphs by all that is known of them.

    >>> pair = rlea.read("people.nt", "staff.ttl")  # doctest: +SKIP
    >>> agent = FusedAgent().fit(pair)              # doctest: +SKIP
    >>> links = agent.match(pair)                   # doctest: +SKIP
    """

    def __init__(self, settings: FusionSettings | None = None, *, seed: int = 0) -> None:
        self.settings = settings or FusionSettings()
        self.seed = seed
        self.beginning: Beginning | None = None
        self.opinion: PairScorer | None = None  # None where there was nothing to learn from
        self.key: PairScorer | None = None  # None without structure or without seeds, too
        self.calibration = Calibration()
        self.history: list[dict[str, Any]] = []
        self.evidence: Evidence | None = None

    # ---- training ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        pair: GraphPair,
        seeds: Links | None = None,
        *,
        evidence: Evidence | None = None,
        encoder: str = "",
        progress: Progress = silent,
    ) -> FusedAgent:
        """Learn from the seeds (the pair's own unless others are given), or from what channels agree on.

        Validation and test links are not read. `evidence` holds channels made before for the same pair.
        """
        settings = self.settings
        self.evidence = evidence = evidence or Evidence(pair, encoder=encoder, progress=progress)
        seeds = pair.train if seeds is None else seeds
        self.opinion = self.key = None
        self.history, self.calibration = [], Calibration()
        witnesses: list[Channel] = []
        if not are_enough(seeds):
            witnesses = [*evidence.collect(seeds, settings.channels), *self._reason(seeds)]
        self.beginning = beginning = begin(seeds, witnesses)
        if not len(beginning.links):
            raise InputError(
                "there is nothing to begin with: no seeds, and no names or attributes that both graphs show",
                remedy="give --seeds, or leave --channels and --hide out",
            )
        games = self._make_games(pair, beginning, progress)
        if not games:
            return self
        self._learn_opinion(games)
        if self.opinion is None and len(beginning.seeds) < FEW_SEEDS:  # no pair of a held-out entity was ever proposed
            return self
        boards = [self._open(game, part) for part, game in enumerate(games)]
        progress("agent: games", len(games), len(games))
        heard = [
            self._hear(game.channels, board.decisions.pairs, part)
            for part, (game, board) in enumerate(zip(games, boards, strict=True))
        ]
        # Agreed pairs are the easy ones: a key learned from them misjudges the others (docs/evidence.md).
        if STRUCTURE in settings.channels and len(beginning.seeds) >= FEW_SEEDS:
            self._learn_key(boards, heard, progress)
        self._calibrate(boards, heard, progress)
        return self

    def _make_games(self, pair: GraphPair, beginning: Beginning, progress: Progress) -> list[_HeldOut]:
        """Games with a part of the links held out each. PARIS is told the seeds that are not."""
        parts, pool, num_seeds = self.settings.games.parts, beginning.links, len(beginning.seeds)
        if len(pool) < 2 * parts:
            return []
        random = np.random.default_rng(3)  # of positions, which say nothing
        part_of = hold_out(pool, parts)
        board = Board.of(pair.source, pair.target)
        games = []
        for part in range(parts):
            held = np.flatnonzero(part_of == part)
            certain = np.flatnonzero(part_of[:num_seeds] != part)
            known = Links.of(pool.source_ids[certain], pool.target_ids[certain])
            some = _some(pool, held, num_seeds, self.settings.asked)
            asked = Links.of(pool.source_ids[some], pool.target_ids[some])
            hidden = draw(asked, HIDDEN) < self.settings.games.dangling
            sides = (
                _without(pair.source.num_entities, known.source_ids),
                _without(pair.target.num_entities, np.concatenate([known.target_ids, asked.target_ids[hidden]])),
            )
            ids = [random.permutation(np.flatnonzero(side).astype(np.int32)) for side in sides]
            scene = Scene(board, known, ids[0], ids[1])
            channels = self.channels_for(known)
            proposed = join_proposals(channels, *sides)
            games.append(_HeldOut(scene, asked, hidden, channels, proposed, describe_pairs(channels, proposed)))
            progress("agent: evidence", part + 1, parts)
        return games

    def _learn_opinion(self, games: list[_HeldOut]) -> None:
        """From what channels say of held-out links.

        Agreed pairs are those that several channels find the best: on them it would seem that whoever is alone is
        wrong. So they are shown with a channel silenced as well, and with all but one, for each in turn.
        """
        parts = []
        for game in games:
            examples = game.examples()
            silent_ones = [] if self.is_seeded else silence(examples, game.channels)
            parts.append(Examples.join([examples, *silent_ones]))
        if sum(len(part.keys) for part in parts):
            self.opinion = self._make_scorer(parts, self.settings.opinion)
            self._note("opinion", supervise(self.opinion, parts))

    def _make_scorer(self, parts: list[Examples], settings: ScorerSettings) -> PairScorer:
        features, true_features = features_of(parts)
        scorer = PairScorer(features.shape[1], settings, self.seed, parts=len(parts), rows=len(features))
        scorer.measure(features, true_features)
        return scorer

    def _open(self, game: _HeldOut, part: int) -> Game:
        decisions = self._play_opinions(game.scene, game.channels, game.proposed, game.features, part)
        asked, hidden = game.asked, game.hidden
        if self.beginning is not None and len(self.beginning.seeds) >= FEW_SEEDS:
            known = np.flatnonzero(np.isin(asked.source_ids, self.beginning.seeds.source_ids))
            asked, hidden = Links.of(asked.source_ids[known], asked.target_ids[known]), hidden[known]
        return Game(game.scene, asked, hidden, decisions)

    def _learn_key(self, boards: list[Game], heard: list[_Said], progress: Progress) -> None:
        seen: list[list[Examples]] = [[] for _ in boards]
        states = 2  # after the passes with opinions, and after a learned one
        for state in range(states):
            for own, board, said in zip(seen, boards, heard, strict=True):
                sight = see(board.scene, self.settings.passes, board.decisions)
                own.append(board.examples(self._combine(sight, board.decisions.pairs, said)))
            parts = [Examples.join(own) for own in seen]
            if not sum(len(part.keys) for part in parts):
                return
            if self.key is None:
                self.key = self._make_scorer(parts, self.settings.key)
            self._note(f"key {state}", supervise(self.key, parts, networks=self.is_seeded))
            progress("agent: supervision", state + 1, states)
            if state + 1 < states:
                for part, (board, said) in enumerate(zip(boards, heard, strict=True)):
                    board.decisions = self._play_learned(board.scene, board.decisions, said, part)

    def _calibrate(self, boards: list[Game], heard: list[_Said], progress: Progress) -> None:
        rows, right = [], []
        for number, (board, said) in enumerate(zip(boards, heard, strict=True)):
            decisions = self._finish(board.scene, board.first, said, number)[-1]
            known, is_right = board.judge(decisions)
            assert decisions.worth is not None
            rows.append(log_odds(decisions.pairs, decisions.worth)[find(decisions)[known]])
            right.append(is_right[known])
            progress("agent: calibration", number + 1, len(boards))
        self.calibration = Calibration.fit(np.concatenate(rows), np.concatenate(right)) or Calibration()

    @property
    def is_seeded(self) -> bool:
        """Whether it learns from seeds alone."""
        return self.beginning is not None and self.beginning.is_seeded

    def _note(self, stage: str, losses: list[dict[str, float]]) -> None:
        self.history += [{"stage": stage, **row} for row in losses]

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def match(self, pair: GraphPair, *, pool: str = "auto") -> Matching:
        """One-to-one links of the pair that it was trained on, with calibrated confidences.

        What it has learned is how far to trust the channels of these two graphs; others want an agent of their own.
        """
        from rlea.graph import choose_pool

        known = None if self.evidence is None else self.evidence.pair
        if known is not None and (pair.source is not known.source or pair.target is not known.target):
            raise InputError("the agent was trained on other graphs", remedy="call fit with these first")
        _, source_ids, target_ids = choose_pool(pair, pool)
        return self.decide(source_ids, target_ids)[-1].matching

    def decide(self, source_ids: Ids, target_ids: Ids) -> list[Decisions]:
        """All passes over the given entities of the pair that it was trained on: with opinions, then with the key."""
        if self.beginning is None or self.evidence is None:
            raise InputError("the agent has not been trained", remedy="call fit first")
        pair, seeds = self.evidence.pair, self.beginning.seeds
        scene = Scene(Board.of(pair.source, pair.target), seeds, source_ids, target_ids)
        channels = self.channels_for(seeds)
        proposed = join_proposals(
            channels, _mark(pair.source.num_entities, source_ids), _mark(pair.target.num_entities, target_ids)
        )
        first = self._play_opinions(scene, channels, proposed, describe_pairs(channels, proposed))
        said = None if self.key is None else self._hear(channels, first.pairs)
        return self._finish(scene, first, said)

    def channels_for(self, known: Links) -> list[Channel]:
        """The channels where these links, and no others, are certain."""
        assert self.evidence is not None
        assert self.beginning is not None
        static = self.evidence.collect(self.beginning.links, self.settings.channels)
        return [*static, *self._reason(known)]

    def _reason(self, known: Links) -> list[Channel]:
        assert self.evidence is not None
        return self.evidence.reason(known) if PARIS in self.settings.channels else []

    def _play_opinions(
        self, scene: Scene, channels: list[Channel], proposed: Pairs, features: Floats, unseen: int | None = None
    ) -> Decisions:
        settings = self.settings
        worth = self._opine(channels, proposed, features, unseen)
        least = float(np.quantile(worth, settings.least)) if len(worth) else 0.0
        near = is_near(proposed, worth, settings.kept)
        kept = Pairs(proposed.source_ids[near], proposed.target_ids[near])
        known = Table(kept, worth[near])
        structure = STRUCTURE in settings.channels

        def opinion(pairs: Pairs) -> Floats:
            if len(pairs) == len(kept):  # the first pass
                return known(pairs)
            return self._opine(channels, pairs, describe_pairs(channels, pairs), unseen)

        return play_opinions(scene, settings.passes, kept, opinion, least, structure=structure)

    def _finish(self, scene: Scene, first: Decisions, said: _Said | None, unseen: int | None = None) -> list[Decisions]:
        """The learned passes after the first, with confidences."""
        if self.key is None or said is None:
            if first.worth is None or not len(first.source_ids):
                return [first]
            odds = log_odds(first.pairs, first.worth)[find(first)]
            return [replace(first, confidences=self.calibration.confidences(odds))]
        decisions = [first]
        for _ in range(self.settings.passes.learned):
            decisions.append(self._play_learned(scene, decisions[-1], said, unseen))
        return decisions

    def _opine(self, channels: list[Channel], pairs: Pairs, features: Floats, unseen: int | None = None) -> Floats:
        """What the channels together make of pairs: as learned, or by how many find them the best both ways.

        `unseen` is a game: what was learned without it is asked.
        """
        if self.opinion is not None:
            return self.opinion.logits(features, first_keys(features, channels), unseen)
        best, counts, _ = vote(channels)
        return Table(best, counts)(pairs) * np.float32(self.settings.votes) - np.float32(self.settings.votes / 2)

    def _hear(self, channels: list[Channel], pairs: Pairs, unseen: int | None = None) -> _Said:
        """What the channels say of pairs, and the opinion that follows: the same all through the learned passes."""
        features = describe_pairs(channels, pairs)
        return features, self._opine(channels, pairs, features, unseen)

    def _combine(self, seen: Sight, pairs: Pairs, said: _Said) -> Sight:
        """All that is known of the pairs: what matches say, what channels say, and how keys of both stand out."""
        features, opinions = said
        keys = np.asarray(opinions + seen.keys / np.float32(self.settings.passes.temperature), np.float32)
        standing = [leads(ids, keys, MOST_LEAD) for ids in (pairs.source_ids, pairs.target_ids)]
        columns = np.column_stack([seen.features, features, opinions, *standing])
        return Sight(np.ascontiguousarray(columns, np.float32), keys)

    def _play_learned(self, scene: Scene, before: Decisions, said: _Said, unseen: int | None = None) -> Decisions:
        key = self.key
        assert key is not None

        def value(seen: Sight, pairs: Pairs) -> Floats:
            sight = self._combine(seen, pairs, said)
            return key.logits(sight.features, sight.keys, unseen)

        def rate(_: Sight, pairs: Pairs, values: Floats) -> Floats:
            return self.calibration.confidences(log_odds(pairs, values))

        return play_learned(scene, self.settings.passes, before, value, rate)


class _HeldOut:
    """A game before its first pass: what was held out, and what the channels say of the pairs."""

    def __init__(
        self,
        scene: Scene,
        asked: Links,
        hidden: NDArray[np.bool_],
        channels: list[Channel],
        proposed: Pairs,
        features: Floats,
    ) -> None:
        self.scene, self.asked, self.hidden = scene, asked, hidden
        self.channels, self.proposed, self.features = channels, proposed, features

    def examples(self) -> Examples:
        nobody, nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
        game = Game(self.scene, self.asked, self.hidden, Decisions(nobody, nobody, nothing, nothing, self.proposed))
        return game.examples(Sight(self.features, first_keys(self.features, self.channels)))


def first_keys(features: Floats, channels: list[Channel]) -> Floats:
    """What opinions begin at: by how much a pair leads in all channels together."""
    ends = np.cumsum([len(channel.columns) + 2 for channel in channels])
    places = np.concatenate([ends - 2, ends - 1]) if len(ends) else np.zeros(0, np.int64)
    return np.asarray(features[:, places].sum(axis=1), np.float32)


def _some(pool: Links, held: NDArray[np.int64], num_seeds: int, most: int) -> NDArray[np.int64]:
    """At most so many of the held-out links. Seeds come first: they are like any other link, agreed pairs easier."""
    drawn = draw(pool, ASKED)[held]
    return np.sort(held[np.lexsort((drawn, held >= num_seeds))][:most])


def silenced(count: int) -> list[tuple[int, ...]]:
    """Places of the channels to be silent, in every way that learning from agreed pairs has them."""
    if count < 2:
        return []
    each: list[tuple[int, ...]] = [(place,) for place in range(count)]
    all_but = [tuple(other for other in range(count) if other != place) for place in range(count)]
    return each if count == 2 else [*each, *all_but]


def silence(examples: Examples, channels: list[Channel]) -> Iterator[Examples]:
    """The same examples, had some channels nothing to say: each in some of the ways, each way with its share."""
    ends = np.cumsum([len(channel.columns) + 2 for channel in channels])
    groups = np.arange(len(examples.truths)) % SILENCED_SHARE
    for number, hidden in enumerate(silenced(len(channels))):
        some = examples.some(groups == number % SILENCED_SHARE)
        for place in hidden:
            some.features[:, ends[place] - len(channels[place].columns) - 2 : ends[place]] = 0
        yield replace(some, keys=first_keys(some.features, channels))


def _mark(count: int, ids: Ids) -> NDArray[np.bool_]:
    result = np.zeros(count, np.bool_)
    result[ids] = True
    return result


def _without(count: int, ids: Ids) -> NDArray[np.bool_]:
    return ~_mark(count, ids)
