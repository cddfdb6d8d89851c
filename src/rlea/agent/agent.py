"""The agent: it learns how far to trust each kind of evidence, and decides with what it has matched in mind.

Learning holds links out (`holdout.py`). First a scorer of pairs is learned from the channels alone; the fixed passes
play with it. Then a second scorer is learned from what channels and matches say together, in the states in which such
games leave the pairs; the learned passes play with that. Confidences are calibrated on the links that held-out
entities get in the end.

Without enough seeds the agent learns from pseudo-seeds on which several channels agree (`bootstrap.py`), and decides
about these as about all others. Vectors that were fitted to the seeds take no part in learning: they would give the
held-out ones away. Their CSLS is added to the logits with a weight that is chosen on validation links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.bootstrap import ENOUGH_SEEDS, Bootstrap, are_enough, bootstrap, count_votes
from rlea.agent.calibration import Calibration, log_odds
from rlea.agent.features import SIGNS, Features
from rlea.agent.holdout import HeldOut, HoldoutSettings, hold_out, hold_out_together, unseeded
from rlea.agent.kept import Rating
from rlea.agent.learning import Examples, all_and_true, supervise
from rlea.agent.memory import Graphs
from rlea.agent.null_model import Played, Player, open_pairs, play_null
from rlea.agent.overlap import RightLinks, shift_share, shift_to
from rlea.agent.pair_scorer import PairScorer, ScorerSettings
from rlea.agent.passes import (
    LOWEST,
    Decisions,
    PassSettings,
    Prior,
    Problem,
    features_of,
    no_decisions,
    play_fixed,
    play_learned,
    replay_fixed,
)
from rlea.agent.propagation import PropagationSettings
from rlea.agent.representative import are_like_the_rest, share_found
from rlea.agent.verification import STAGES, KnownGame, Verified, believed, verify_games
from rlea.errors import InputError
from rlea.evidence import CHANNELS, DICTIONARY, PARIS, STRUCTURE, VECTORS
from rlea.evidence.channel import (
    Channel,
    ScoreTable,
    allowed,
    describe_by_channel,
    describe_pairs,
    join_proposals,
    silent_channel,
)
from rlea.evidence.collect import Evidence
from rlea.evidence.dictionary.channel import LEAST_LINKS
from rlea.evidence.vectors import Csls, vector_channels
from rlea.evidence.words import CODES
from rlea.graph import GraphPair, Ids, Links, choose_pool
from rlea.graph.size import is_large
from rlea.io.agent_files import check_like, load_agent_file, save_agent_file, whole_agent
from rlea.matching import Matching, keep_sure
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Floats, Pairs, find_pairs, is_around, is_near, leads, numbers

FORMAT = "rlea aligner 4"
FEW_SEEDS = 100  # from so many on the pair scorer and the confidences are learned, from seeds and not from pseudo-seeds
# Null models know more the larger the graphs are, seeds the more there are: seeds for a smaller share of the entities,
# if they are not enough for networks either, have their say beside null models.
FEW_SHARE = 0.03
# With fewer, structure and fitted vectors alone, and no validation links to say otherwise, fixed passes do better.
FEW_FOR_STRUCTURE = 1000
DROPOUT_SHARE = 5  # each way of dropping channels is shown for one pseudo-seed in so many
LEAST_TRUST = 0.1  # in a link for it to be evidence for others
TAUGHT = 0.9  # confidence from which on links teach the dictionary
SURE = 0.5  # confidence from which on a link that stands is a seed for entities that are decided again
# What equal codes are worth beside the log-odds among rivals: a rare code says who is meant, where rivals are variants.
CODE_SLOPE = 8.0
MOST_LEAD = 12.0  # of logits: a larger lead says no more

Layout = tuple[tuple[str, tuple[str, ...]], ...]  # channels and their columns, in the order of the features


@dataclass(frozen=True)
class AgentSettings:
    """Settings that a user hardly changes.

    >>> import rlea
    >>> fewer = rlea.AgentSettings(kept=5, nearest=10)
    >>> aligner = rlea.Aligner(channels=("names", "structure"), settings=fewer)
    """

    kept: int = 10  # best pairs of every entity by channel logit that the passes begin with
    votes: float = 4.0  # logit of a channel's vote where there is nothing to learn from
    nearest: int = 20  # of every entity, both ways, that fitted vectors propose
    states: int = 2  # of every game that are learned from: after the fixed passes, and after a learned one
    # Weights to choose from: of propagated vectors in the fixed passes, of fitted vectors' CSLS in the learned ones.
    propagation_weights: tuple[float, ...] = (0.67, 0.0)
    vector_weights: tuple[float, ...] = (3.0, 1.0, 0.0, 10.0, 30.0, 100.0)
    holdout: HoldoutSettings = field(default_factory=HoldoutSettings)
    passes: PassSettings = field(default_factory=PassSettings)
    # Channels have many examples: curves for every feature do as well as networks, and there is one answer.
    channel_scorer: ScorerSettings = field(default_factory=lambda: ScorerSettings(epochs=0, members=1, bends=3))
    pair_scorer: ScorerSettings = field(default_factory=lambda: ScorerSettings(epochs=60, rate=5e-3))

    @staticmethod
    def from_dict(values: dict[str, Any]) -> AgentSettings:
        """Settings from their JSON form."""
        passes = {**values["passes"], "vectors": PropagationSettings(**values["passes"]["vectors"])}
        parts: dict[str, Any] = {
            "holdout": HoldoutSettings(**values["holdout"]),
            "passes": PassSettings(**passes),
            "channel_scorer": ScorerSettings(**values["channel_scorer"]),
            "pair_scorer": ScorerSettings(**values["pair_scorer"]),
        }
        weights = {name: tuple(values[name]) for name in ("propagation_weights", "vector_weights")}
        return AgentSettings(**{**values, **weights, **parts})


@dataclass(frozen=True)
class Weights:
    """How much vectors count, and by what that was chosen."""

    propagation: float  # of propagated vectors in the fixed passes
    vectors: tuple[float, ...] = ()  # of each fitted embedding's CSLS in the learned passes
    is_learned: bool = True  # whether there are learned passes at all
    chosen_by: str = "default"  # or "validation links"


@dataclass(frozen=True, eq=False)
class State:
    """What it takes to decide some entities of a pair again: `Aligner.decide_some`."""

    problem: Problem
    channels: list[Channel]
    fitted: list[Channel]
    rating: Rating  # how links are given confidences
    proposals: Pairs
    described: _Described  # of the proposals
    lowest: float  # logit at which a pair begins that a match brings in

    def some(self, is_source: NDArray[np.bool_], is_target: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which proposals have one of these entities, marked by id; (num_proposals,)."""
        return is_source[self.proposals.source_ids] | is_target[self.proposals.target_ids]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What was decided, pass by pass, and the evidence behind it."""

    passes: list[Decisions]  # the last of the fixed ones, then the learned ones
    channels: list[Channel]
    bootstrap: Bootstrap
    right: RightLinks | None = None  # how many of the links are, where that is known
    recall: float = 1.0  # share of all right links that were found, where held-out links say so
    state: Callable[[], State] | None = None  # for deciding again; made when it is asked for, which takes a while
    rating: Rating | None = None  # what it takes to make the state in another process, beside the agent

    @property
    def last(self) -> Decisions:
        """The pass that counts."""
        return self.passes[-1]


@dataclass(frozen=True, eq=False)
class _Described:
    """Pairs of a game: their channel features and channel logits, the same all through the learned passes."""

    features: Floats
    logits: Floats


class Aligner:
    """Aligns two graphs by all evidence there is.

    >>> import rlea
    >>> pair = rlea.read_demo()
    >>> aligner = rlea.Aligner(channels=("names", "attributes")).fit(pair)
    >>> links = aligner.match(pair, precision=0.95)
    >>> links.is_one_to_one
    True
    """

    def __init__(
        self,
        *,
        channels: Sequence[str] = CHANNELS,
        encoder: str = "",
        seed: int = 0,
        settings: AgentSettings | None = None,
    ) -> None:
        channels = (channels,) if isinstance(channels, str) else channels
        unknown = [name for name in channels if name not in CHANNELS]
        if unknown or not channels:
            raise InputError(
                f"unknown channel {unknown[0]!r}" if unknown else "no channel is named",
                remedy=f"use some of {', '.join(CHANNELS)}",
            )
        if not 0 <= seed < 2**63:
            raise InputError(f"the seed is {seed}", remedy="give a number from 0 to 2^63 - 1")
        self.channels, self.encoder, self.seed = tuple(channels), encoder, seed
        self.settings = settings or AgentSettings()
        self._forget()

    def _forget(self) -> None:
        self.is_fitted = False
        self.layout: Layout = ()
        self.channel_scorer: PairScorer | None = None  # None where there was nothing to learn from
        self.pair_scorer: PairScorer | None = None  # None without structure or with few seeds, too
        self.calibration = Calibration()  # of learned passes, from held-out games
        self.final_calibration: Calibration | None = None  # of the last pass, where fitted vectors have their say
        self.weights = Weights(self.settings.passes.propagation)
        self.history: list[dict[str, Any]] = []
        self._evidence: Evidence | None = None
        self._started: tuple[Evidence, Links, Bootstrap] | None = None  # votes take a while to count

    def __getstate__(self) -> dict[str, Any]:  # evidence stays where it was made
        return {**self.__dict__, "_evidence": None, "_started": None}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments of the constructor, by name, as scikit-learn has it."""
        return {name: getattr(self, name) for name in ("channels", "encoder", "seed", "settings")}

    def __repr__(self) -> str:
        state = "fitted" if self.is_fitted else "not fitted"
        return f"Aligner(channels={','.join(self.channels)}, seed={self.seed}, {state})"

    # ---- learning ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        pair: GraphPair,
        vectors: Sequence[Embeddings] = (),
        *,
        evidence: Evidence | None = None,
        progress: Progress = silent,
    ) -> Aligner:
        """Learn from the seeds, or from pseudo-seeds where these are few; weigh fitted vectors by validation links.

        Seeds (`train`) and validation links are the pair's; its test links are not read. `evidence` holds channels of
        the same pair and vectors: made before, or with some of one's own. It serves `choose` and `match` of this pair,
        too; for another pair, and after `load`, they have to be given one.
        """
        self._forget()
        evidence = self._evidence_for(pair, vectors, evidence, progress)
        evidence.teach(Links.empty())
        self._fit(evidence, pair, vectors, progress)
        taught = self._to_teach(evidence, pair, vectors, progress)
        if len(taught) >= LEAST_LINKS:
            self._forget()
            self._evidence = evidence
            evidence.teach(taught)
            self._fit(evidence, pair, vectors, progress)
        if any(part.is_fitted for part in vectors):
            self.choose(pair, vectors, progress=progress)
        return self

    def _fit(self, evidence: Evidence, pair: GraphPair, vectors: Sequence[Embeddings], progress: Progress) -> None:
        start = self._start(evidence, pair.train)
        hold = hold_out_together if _is_large(pair) else hold_out
        games = hold(Graphs.of_pair(pair), start.links, len(start.seeds), self.settings.holdout)
        if games:
            # Null models will say how sure links are, unless fitted vectors or channels of one's own have a part.
            by_null = type(evidence) is Evidence and not any(part.is_fitted for part in vectors)
            self._learn(evidence, start, games, progress, is_calibrated=not (_is_large(pair) and by_null))
        self.is_fitted = True

    def _to_teach(
        self, evidence: Evidence, pair: GraphPair, vectors: Sequence[Embeddings], progress: Progress
    ) -> Links:
        """Without enough seeds: sure links of a first decision, where names need a dictionary to learn from them."""
        is_fitted = any(part.is_fitted for part in vectors)
        if DICTIONARY not in self.channels or len(evidence.taught) or is_fitted or not evidence.has_two_scripts:
            return Links.empty()
        outcome = self.decide(pair, *unseeded(pair, pair.train), vectors, evidence=evidence, progress=progress)
        if outcome.right is None:  # nobody knows how sure the links are
            return Links.empty()
        sure = outcome.last.matching.at_least(TAUGHT)
        return Links.union([pair.train, Links.of(sure.source_ids, sure.target_ids)])

    def _teach_seeds(self, evidence: Evidence, seeds: Links) -> None:
        """Let the dictionary learn from the seeds, and from what PARIS makes of them."""
        if DICTIONARY not in self.channels or not are_enough(seeds) or not evidence.has_two_scripts:
            return
        known = [seeds]
        for channel in evidence.collect(seeds, seeds, [name for name in self.channels if name == PARIS]):
            if channel.name == PARIS:
                assert channel.shown is not None
                best = channel.proposals.some(channel.is_best())
                best = best.some(channel.shown(best)[:, 0] >= TAUGHT)
                is_new = ~np.isin(best.source_ids, seeds.source_ids) & ~np.isin(best.target_ids, seeds.target_ids)
                best = best.some(is_new)
                known.append(Links.of(best.source_ids, best.target_ids))
        evidence.teach(Links.union(known))

    def _make_evidence(self, pair: GraphPair, vectors: Sequence[Embeddings], progress: Progress) -> Evidence:
        own = [part for part in vectors if not part.is_fitted]
        return Evidence(pair, encoder=self.encoder, vectors=own, progress=progress)

    def _start(self, evidence: Evidence, seeds: Links) -> Bootstrap:
        if self._started is not None and self._started[0] is evidence and self._started[1] is seeds:
            return self._started[2]
        graphs = (evidence.pair.source, seeds.source_ids), (evidence.pair.target, seeds.target_ids)
        if any(ids.min(initial=0) < 0 or ids.max(initial=-1) >= graph.num_entities for graph, ids in graphs):
            raise InputError("a seed names an entity that is not in its graph", remedy="give seeds of these two graphs")
        self._teach_seeds(evidence, seeds)
        voters = [] if are_enough(seeds) else evidence.collect(seeds, seeds, self.channels)
        voters = allowed(voters, evidence.pair.cannot_link)
        start = bootstrap(seeds, voters)
        if not len(start.links):
            raise InputError(
                "there is nothing to begin with: no seeds, and no names or attributes that both graphs show",
                remedy="give --seeds, or leave --channels and --hide out",
            )
        self._started = evidence, seeds, start
        return start

    def _learn(
        self, evidence: Evidence, start: Bootstrap, games: list[HeldOut], progress: Progress, *, is_calibrated: bool
    ) -> None:
        """Both scorers and the calibration. Games of one problem (`hold_out_together`) are played once for all parts.

        Without `is_calibrated`, games from pseudo-seeds are not played: all they would give is a calibration.
        """
        is_one = all(game.problem is games[0].problem for game in games)
        found = []
        for game in games[:1] if is_one else games:
            evidence.prepare(game.problem.seeds, start.links, self.channels)
        for part, game in enumerate(games[:1] if is_one else games):
            progress("agent: evidence", part, len(games))
            found.append(self._collect(evidence, start, game.problem.seeds))
        self.layout = layout_of([*self._collect(evidence, start, start.seeds), *(c for part in found for c in part)])
        channels = [self._arrange(part) for part in found]
        proposals = [
            self._proposals(game.problem, part) for game, part in zip(games[: len(channels)], channels, strict=True)
        ]
        if is_one:  # features of the pairs that are learned from, and of their rivals
            asked = Links.union([game.links for game in games])
            proposals = [part.some(is_around(part, asked.source_ids, asked.target_ids)) for part in proposals]
        described = [describe_pairs(part, pairs) for part, pairs in zip(channels, proposals, strict=True)]
        progress("agent: evidence", len(games), len(games))
        progress("agent: channels", 0, 1)
        times = len(games) if is_one else 1
        self._learn_channels(start, games, channels * times, proposals * times, described * times)
        if self.channel_scorer is None and len(start.seeds) < FEW_SEEDS:  # no held-out pair was ever proposed
            return
        if len(start.seeds) >= FEW_SEEDS:
            games = [_keep_links(game, start.seeds) for game in games]
        elif not is_calibrated:
            return
        for part, game in enumerate(games):
            if is_one and part:
                first = games[0].first
            else:
                progress("agent: games", part, len(games))
                known = None if is_one else (proposals[part], described[part])
                prior = self._prior(game.problem, channels[part], unseen=None if is_one else part, described=known)
                first = play_fixed(game.problem, self.settings.passes, prior)
            games[part] = replace(game, first=first, decisions=first)
        del proposals, described
        if is_one:
            told = [self._describe(channels[0], games[0].first.pairs)] * len(games)
        else:
            told = [self._describe(channels[part], game.first.pairs, part) for part, game in enumerate(games)]
        # Pseudo-seeds are the easy links: a scorer learned from them misjudges the others (docs/agent.md).
        if STRUCTURE in self.channels and len(start.seeds) >= FEW_SEEDS:
            self._learn_pairs(start, games, told, progress)
        self._calibrate(games, told, progress, is_seeded=len(start.seeds) >= FEW_SEEDS)

    def _learn_channels(
        self,
        start: Bootstrap,
        games: list[HeldOut],
        channels: list[list[Channel]],
        proposals: list[Pairs],
        described: list[Floats],
    ) -> None:
        """The channel scorer, from held-out links.

        Pseudo-seeds are pairs on which several channels agree: they would teach that a channel alone is wrong. So they
        are shown with channel dropout as well: without one channel, and with all but one, for each in turn.
        """
        parts = []
        for game, own, pairs, features in zip(games, channels, proposals, described, strict=True):
            examples = game.then(no_decisions(pairs)).examples(Features(features, first_priorities(features, own)))
            dropped = [] if start.is_seeded else drop_channels(examples, own)
            parts.append(Examples.join([examples, *dropped]))
        if sum(len(part.priorities) for part in parts):
            self.channel_scorer = self._make_scorer(parts, self.settings.channel_scorer)
            self._note("channels", supervise(self.channel_scorer, parts))

    def _learn_pairs(self, start: Bootstrap, games: list[HeldOut], told: list[_Described], progress: Progress) -> None:
        """The pair scorer, from the states of the games after the fixed passes and after a learned one."""
        seen: list[list[Examples]] = [[] for _ in games]
        for state in range(self.settings.states):
            progress("agent: supervision", state, self.settings.states)
            every: Features | None = None
            for place, (own, game, what) in enumerate(zip(seen, games, told, strict=True)):
                if every is None or not _is_same(games, place):
                    features = features_of(game.problem, self.settings.passes, game.decisions)
                    every = combine(features, game.decisions.pairs, what, self.settings.passes)
                own.append(game.examples(every))
            parts = [Examples.join(own) for own in seen]
            if not sum(len(part.priorities) for part in parts):
                return
            if self.pair_scorer is None:
                self.pair_scorer = self._make_scorer(parts, self.settings.pair_scorer)
            self._note(f"pairs {state}", supervise(self.pair_scorer, parts, networks=start.is_seeded))
            if state + 1 < self.settings.states:
                states: list[Decisions] = []
                for part, (game, what) in enumerate(zip(games, told, strict=True)):
                    if not _is_same(games, part):
                        unseen = None if _is_same(games, 1) else part
                        rules = self.settings.passes, game.decisions, self._score_with(what, unseen=unseen), self._rate
                        states.append(play_learned(game.problem, *rules, num_passes=1)[-1])
                    else:
                        states.append(states[0])
                games[:] = [game.then(state) for game, state in zip(games, states, strict=True)]

    def _calibrate(self, games: list[HeldOut], told: list[_Described], progress: Progress, *, is_seeded: bool) -> None:
        """Confidences from the links that held-out entities get in the end, right and wrong."""
        rows, right, num_there = [], [], 0
        final = games[0].first
        for part, (game, what) in enumerate(zip(games, told, strict=True)):
            progress("agent: calibration", part, len(games))
            last, settings = game.first, self.settings.passes
            num_there += int(np.count_nonzero(~game.is_dangling))
            if self.pair_scorer is not None and _is_same(games, part):
                last = final
            elif self.pair_scorer is not None:
                unseen = None if _is_same(games, 1) else part
                rules = settings, last, self._score_with(what, unseen=unseen), self._rate
                last = play_learned(game.problem, *rules, settings.learned)[-1]
            final = last
            known, is_right = game.judge(last)
            rows.append(log_odds(last.pairs, last.logits)[last.places[known]])
            right.append(is_right[known])
        answers = np.concatenate(right)
        fitted = Calibration.fit(np.concatenate(rows), answers) or Calibration()
        # Pseudo-seeds say nothing of how many links are right.
        facts = {"recall": float(answers.sum()) / max(1, num_there)} if is_seeded else {"base": 0.0}
        self.calibration = replace(fitted, **facts)

    def _make_scorer(self, parts: list[Examples], settings: ScorerSettings) -> PairScorer:
        features, true_features = all_and_true(parts)
        scorer = PairScorer(features.shape[1], settings, self.seed, parts=len(parts), rows=len(features))
        scorer.measure(features, true_features)
        return scorer

    def _note(self, stage: str, losses: list[dict[str, float]]) -> None:
        self.history += [{"stage": stage, **row} for row in losses]

    def choose(
        self,
        pair: GraphPair,
        vectors: Sequence[Embeddings],
        *,
        evidence: Evidence | None = None,
        progress: Progress = silent,
    ) -> Aligner:
        """Choose how much fitted vectors count: the weights that find most validation links, or the defaults.

        What is learned does not depend on fitted vectors, so an agent that was trained once serves all vectors of a
        pair. Confidences of the last pass are calibrated on the validation links, too.
        """
        self._check_fitted()
        settings, seeds, valid = self.settings, pair.train, pair.valid
        count = sum(part.is_fitted for part in vectors)
        default = Weights(settings.passes.propagation, (settings.vector_weights[0],) * count)
        self.final_calibration = None
        if not count or not len(valid):
            few = count > 0 and self.channel_scorer is None and len(seeds) < FEW_FOR_STRUCTURE
            self.weights = replace(default, propagation=0.0, is_learned=False) if few else default
            return self
        evidence = self._evidence_for(pair, vectors, evidence, progress)
        start = self._start(evidence, seeds)
        channels = self._arrange(self._collect(evidence, start, start.seeds))
        problem = Problem(Graphs.of_pair(pair), seeds, *unseeded(pair, seeds))
        fitted = self._fitted_channels(vectors, problem, progress)
        best: tuple[int, Weights, Decisions] | None = None

        def attempt(weights: Weights) -> None:
            nonlocal best
            last = first
            if weights.is_learned:
                rules = settings.passes, first, self._score_with(what, weigh(csls, weights.vectors)), self._rate
                last = play_learned(problem, *rules, settings.passes.learned)[-1]
            score = num_right(last, valid)
            tried = {
                "propagation": weights.propagation,
                "vectors": list(weights.vectors),
                "is_learned": weights.is_learned,
            }
            self.history.append({"stage": "choice", **tried, "valid_aligned": score})
            if best is None or score > best[0]:
                best = score, weights, last
            progress("agent: choice", len(self.history), len(self.history) + 1, f"aligned {best[0]}")

        prior = self._prior(problem, channels, fitted)
        for number, propagation in enumerate(settings.propagation_weights):
            first = play_fixed(problem, settings.passes, replace(prior, propagation=propagation))
            what = self._describe(channels, first.pairs)
            csls = [channel.score(first.pairs)[:, 0] for channel in fitted]
            if self.pair_scorer is not None and number == 0:
                for place in range(count):  # one embedding after the other, beside the best weights so far
                    beside = (0.0,) * count if best is None else best[1].vectors
                    for weight in settings.vector_weights:
                        attempt(Weights(propagation, (*beside[:place], weight, *beside[place + 1 :])))
            elif self.pair_scorer is not None and best is not None:
                attempt(replace(best[1], propagation=propagation, is_learned=True))
            beside = default.vectors if best is None else best[1].vectors
            attempt(Weights(propagation, beside, is_learned=False))
        assert best is not None
        self.weights = replace(best[1], chosen_by="validation links")
        self.final_calibration = calibrate_on(best[2], valid)
        return self

    # ---- deciding ---------------------------------------------------------------------------------------------------

    def match(
        self,
        pair: GraphPair,
        vectors: Sequence[Embeddings] = (),
        *,
        evidence: Evidence | None = None,
        pool: str = "auto",
        precision: float | None = None,
    ) -> Matching:
        """One-to-one links with confidences; with `precision` only the surest, of that mean confidence.

        No promise is made: `rlea.align` refuses a precision where there is too little to learn from.

        The seeds are those of the pair; `vectors` are those that were given to `fit` or `choose`. Another pair than the
        one that was fitted wants the same channels; `evidence` has those of one's own for it.
        """
        if precision is not None and not 0 <= precision <= 1:
            raise InputError(f"the precision is {precision}", remedy="give a number from 0 to 1, such as 0.95")
        _, source_ids, target_ids = choose_pool(pair, pool)
        matching = self.decide(pair, source_ids, target_ids, vectors, evidence=evidence).last.matching
        return matching if precision is None else keep_sure(matching, precision)

    def decide(
        self,
        pair: GraphPair,
        source_ids: Ids,
        target_ids: Ids,
        vectors: Sequence[Embeddings] = (),
        *,
        evidence: Evidence | None = None,
        progress: Progress = silent,
    ) -> Outcome:
        """All passes over the given entities: the fixed ones, then the learned ones."""
        self._check_fitted()
        evidence = self._evidence_for(pair, vectors, evidence, progress)
        start = self._start(evidence, pair.train)
        found = self._collect(evidence, start, start.seeds)
        problem = Problem(Graphs.of_pair(pair), start.seeds, source_ids, target_ids)
        if not len(source_ids) or not len(target_ids):
            return Outcome([no_decisions()], found, start)
        channels, fitted = self._arrange(found), self._fitted_channels(vectors, problem, progress)
        weights = self.weights
        if len(weights.vectors) != len(fitted):
            raise InputError(
                f"the agent was fitted with {len(weights.vectors)} trained embeddings and is given {len(fitted)}",
                remedy="give the same embeddings, or call choose with these first",
            )
        progress("agent: decisions", 0, 1)
        first = self._play(problem, channels, fitted)
        passes = [first]
        # Pseudo-seeds are the easy links: confidences that are calibrated on them do not hold. Null models do.
        # Nor do those that are calibrated on seeds unlike the rest.
        start = replace(start, are_alike=are_like_the_rest(pair, start.seeds))
        needed = max(FEW_SEEDS, min(ENOUGH_SEEDS, FEW_SHARE * min(pair.source.num_entities, pair.target.num_entities)))
        is_known = len(start.seeds) >= needed and start.are_alike
        by_null = not is_known and channels and not fitted and type(evidence) is Evidence
        if self.pair_scorer is not None and weights.is_learned and not by_null:  # they play the fixed passes
            what = self._describe(channels, first.pairs)
            add = weigh([channel.score(first.pairs)[:, 0] for channel in fitted], weights.vectors)
            score = self._score_with(what, add)
            passes = play_learned(problem, self.settings.passes, first, score, self._rate, self.settings.passes.learned)
        is_rated = weights.is_learned or self.pair_scorer is None  # as the held-out games were decided
        final = self.final_calibration or (self.calibration if is_rated else Calibration())
        passes[-1] = _rated(passes[-1], final)
        right, recall, rate = None, 1.0, None
        if by_null:
            known = self._known_games(evidence, start) if start.are_alike else []
            verified = self._verify(evidence, self._told(problem, channels, first), known, progress)
            passes[-1] = replace(first, confidences=np.asarray(verified.confidences, np.float32))
            right, rate = verified.right, verified.rate
            recall = share_found(pair, (source_ids, target_ids), passes[-1].matching)
        elif final.base:
            shifted, right = shift_share(passes[-1].confidences.astype(np.float64), final.base)
            recall = final.recall
            passes[-1] = replace(passes[-1], confidences=np.asarray(shifted, np.float32))

        share = right.value / max(1, len(passes[-1].source_ids)) if right is not None else 0.0
        rating = Rating(start.pseudo_seeds, rate, final, share, evidence.taught)

        def state() -> State:
            return self._state(problem, channels, fitted, rating)

        return Outcome(passes, [*found, *fitted], start, right, recall, state, rating)

    def resume(
        self,
        pair: GraphPair,
        source_ids: Ids,
        target_ids: Ids,
        rating: Rating,
        vectors: Sequence[Embeddings] = (),
        *,
        evidence: Evidence | None = None,
        progress: Progress = silent,
    ) -> State:
        """The state that `decide` ends with, without deciding: `rating` is what it found out about confidences."""
        self._check_fitted()
        evidence = self._evidence_for(pair, vectors, evidence, progress)
        evidence.teach(rating.taught)
        start = Bootstrap(pair.train, rating.pseudo_seeds, {})
        channels = self._arrange(self._collect(evidence, start, start.seeds))
        problem = Problem(Graphs.of_pair(pair), start.seeds, source_ids, target_ids)
        return self._state(problem, channels, self._fitted_channels(vectors, problem, progress), rating)

    def _state(self, problem: Problem, channels: list[Channel], fitted: list[Channel], rating: Rating) -> State:
        proposals = self._proposals(problem, [*channels, *fitted])
        told = self._describe(channels, proposals)
        lowest = float(np.quantile(told.logits, LOWEST)) if len(proposals) else 0.0
        return State(problem, channels, fitted, rating, proposals, told, lowest)

    def decide_some(self, state: State, problem: Problem, standing: Matching) -> Decisions:
        """Decide the entities of a problem again, a few of those that were decided; `standing` are all other links.

        Fixed passes take standing links for seeds, if they are sure; the learned pass for what was matched before. The
        channels, the scorers and the calibration stay as they are.
        """
        problem = replace(problem, is_part=True)
        settings, graphs, seeds = self.settings.passes, problem.graphs, problem.seeds
        is_source, is_target = np.zeros(graphs.num_source, np.bool_), np.zeros(graphs.num_target, np.bool_)
        is_source[problem.source_ids], is_target[problem.target_ids] = True, True
        near = state.some(is_source, is_target)
        near[near] = graphs.cannot_link.allows(state.proposals.source_ids[near], state.proposals.target_ids[near])
        around = state.proposals.some(near)
        is_open = is_source[around.source_ids] & is_target[around.target_ids]
        known = ScoreTable(around, state.described.logits[near])
        csls = [part.csls for part in state.fitted if part.csls is not None]
        scores = known if state.channels else None
        structure, propagation = STRUCTURE in self.channels, self.weights.propagation
        prior = Prior(around.some(is_open), scores, state.lowest, csls, structure, propagation)
        sure = standing.at_least(SURE)
        certain = Links.union([seeds, Links.of(sure.source_ids, sure.target_ids)])
        first = play_fixed(replace(problem, seeds=certain), replace(settings, fixed=1), prior)
        pairs = Pairs.union([around, first.pairs])
        what = self._describe_some(state, pairs)
        logits = what.logits if state.channels else np.zeros(len(pairs), np.float32)
        logits[find_pairs(pairs, first.pairs.source_ids, first.pairs.target_ids)] = first.logits
        last = replace(first, pairs=pairs, logits=logits)
        rating = state.rating
        if rating.rater is not None:
            game = Played(problem, state.channels, last, what.features[last.places], what.logits)
            own = believed(game, np.minimum(first.confidences.astype(np.float64), SURE))
            rows = self._link_rows(game, standing.joined(own))
            return replace(last, confidences=np.asarray(rating.rater(rows), np.float32))
        if self.pair_scorer is not None and self.weights.is_learned:
            links = standing.joined(first.matching)
            before = Decisions(
                *(links.source_ids, links.target_ids, np.zeros(len(links), np.float32)),
                np.asarray(links.confidences, np.float32),
                *(pairs, logits),
            )
            score = self._score_with(
                what, weigh([part.score(pairs)[:, 0] for part in state.fitted], self.weights.vectors)
            )
            last = play_learned(problem, settings, before, score, self._rate, 1)[-1]
        last = _rated(last, rating.calibration)
        shifted = shift_to(last.confidences.astype(np.float64), rating.calibration.base, rating.share)
        return replace(last, confidences=np.asarray(shifted, np.float32))

    def _describe_some(self, state: State, pairs: Pairs) -> _Described:
        """Proposals as they were described among all of them; pairs that matches brought in beside these here."""
        places = np.searchsorted(numbers(state.proposals), numbers(pairs))
        places = np.minimum(places, max(0, len(state.proposals) - 1))
        is_known = np.zeros(len(pairs), np.bool_)  # by structure alone nothing is proposed
        if len(state.proposals):
            is_known = numbers(state.proposals)[places] == numbers(pairs)
        if is_known.all():
            return _Described(state.described.features[places], state.described.logits[places])
        here = self._describe(state.channels, pairs)
        features, logits = here.features.copy(), here.logits.copy()
        features[is_known] = state.described.features[places[is_known]]
        logits[is_known] = state.described.logits[places[is_known]]
        return _Described(features, logits)

    def _verify(self, evidence: Evidence, own: Played, known: Sequence[KnownGame], progress: Progress) -> Verified:
        """Confidences by null models: the same agent plays games in which every link is wrong."""

        def play(problem: Problem, channels: list[Channel]) -> Played:
            return self._told(problem, channels, self._play(problem, channels))

        def replay(problem: Problem, before: Played) -> Played:
            known = None
            if problem.is_part:  # of a large pair: by the pairs that were near the top, not by all that were proposed
                around = open_pairs(before.decisions.pairs, problem)
                known = around, describe_pairs(before.channels, around)
            prior = self._prior_of_game(problem, before.channels, described=known)
            decisions = replay_fixed(problem, self.settings.passes, prior, before.decisions)
            return self._told(problem, before.channels, decisions)

        null = play_null(Player(play, replay, self.channels), evidence, own, progress)
        progress("agent: confidences", 0, 1)
        has_edges = all(len(graph.triples) for graph in (evidence.pair.source, evidence.pair.target))
        num_stages = STAGES if STRUCTURE in self.channels and has_edges else 1
        signs, prior = self._link_signs(own.channels)
        return verify_games(self._link_rows, own, null, known, signs, prior, num_stages)

    def _known_games(self, evidence: Evidence, start: Bootstrap) -> list[KnownGame]:
        """Games without some of the seeds, by the fixed passes."""
        graphs = Graphs.of_pair(evidence.pair)
        hold = hold_out_together if _is_large(evidence.pair) else hold_out
        games = hold(graphs, start.links, len(start.seeds), self.settings.holdout) if len(start.seeds) else []
        known: list[KnownGame] = []
        for part, game in enumerate(_keep_links(game, start.seeds) for game in games):
            if _is_same(games, part):  # played already: its links are described once, too
                before = known.pop()
                places, is_right = game.judge(before.game.decisions)
                both = np.concatenate([before.places, places]), np.concatenate([before.right, is_right[places]])
                known.append(KnownGame(before.game, *both))
                continue
            channels = self._arrange(self._collect(evidence, start, game.problem.seeds))
            decisions = self._play(game.problem, channels, unseen=part)
            places, is_right = game.judge(decisions)
            told = replace(self._told(game.problem, channels, decisions, part), channels=[])
            known.append(KnownGame(told, places, is_right[places]))
        return known

    def _play(
        self,
        problem: Problem,
        channels: list[Channel],
        fitted: Sequence[Channel] = (),
        unseen: int | None = None,
    ) -> Decisions:
        """The fixed passes."""
        return play_fixed(problem, self.settings.passes, self._prior_of_game(problem, channels, fitted, unseen))

    def _prior_of_game(
        self,
        problem: Problem,
        channels: list[Channel],
        fitted: Sequence[Channel] = (),
        unseen: int | None = None,
        described: tuple[Pairs, Floats] | None = None,
    ) -> Prior:
        """The prior, with the weight of propagated vectors that was chosen."""
        prior = self._prior(problem, channels, fitted, unseen, described)
        return replace(prior, propagation=self.weights.propagation)

    def _told(
        self, problem: Problem, channels: list[Channel], decisions: Decisions, unseen: int | None = None
    ) -> Played:
        """A game with what channels say of its links, and what they make of all pairs that were candidates."""
        if is_large(problem.graphs.num_source, problem.graphs.num_target) and not problem.is_part:
            features, logits = self._describe_some_of(channels, decisions.pairs, decisions.places, unseen)
            return Played(problem, channels, decisions, features, logits)
        what = self._describe(channels, decisions.pairs, unseen)
        return Played(problem, channels, decisions, what.features[decisions.places], what.logits)

    def _link_rows(self, game: Played, beside: Matching | None) -> Floats:
        """Features of links, (num_links, num_features): channels, their logit, matches around, lead over rivals.

        `beside` are the links around them, each as far as it is believed; None leaves out what links say of each other.
        """
        decisions, logits, settings = game.decisions, game.logits, self.settings.passes
        places, around = decisions.places, np.zeros((len(decisions.source_ids), len(SIGNS)), np.float32)
        if beside is not None:
            links = beside.at_least(LEAST_TRUST)
            matches = replace(
                decisions,
                source_ids=links.source_ids,
                target_ids=links.target_ids,
                confidences=np.asarray(links.confidences, np.float32),
            )
            told = features_of(game.problem, settings, matches)
            logits = np.asarray(logits + told.priorities / np.float32(settings.temperature), np.float32)
            around = told.columns[places]
        odds = log_odds(decisions.pairs, logits)[places]
        return np.column_stack([game.features, game.logits[places], around, odds]).astype(np.float32)

    def _link_signs(self, channels: list[Channel]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Of the features of links: which way each points, and the slopes to begin with.

        These are those of the mean log-odds, and one for equal codes.
        """
        of_channels = [sign for channel in channels for sign in channel.signs]
        signs = np.array([*of_channels, 1, *SIGNS, 1, 1, 1], np.float64)
        prior = np.zeros(len(signs))
        prior[-3:-1] = 0.5
        ends = np.cumsum([channel.width for channel in channels], dtype=np.int64)
        for end, channel in zip(ends, channels, strict=True):
            if channel.columns == (CODES,):
                prior[end - channel.width] = CODE_SLOPE
        return signs, prior

    def _check_fitted(self) -> None:
        if not self.is_fitted:
            raise InputError("the agent has not been trained", remedy="call fit or load first")

    def _evidence_for(
        self, pair: GraphPair, vectors: Sequence[Embeddings], given: Evidence | None, progress: Progress
    ) -> Evidence:
        """The channels given, or those kept from before where graphs and vectors are the same, or new ones."""
        known, own = given or self._evidence, [part for part in vectors if not part.is_fitted]
        is_same = known is not None and all(
            getattr(known.pair, name) is getattr(pair, name) for name in ("source", "target", "cannot_link")
        )
        if known is None or not is_same or known.vectors != own:
            is_own = any(name not in (*CHANNELS, VECTORS) for name, _ in self.layout)
            if is_own or given is not None or (known is not None and type(known) is not Evidence):
                problem = "the evidence was made for another pair or other vectors"
                if given is None:
                    problem = "the agent was fitted with evidence of your own; there is none for this pair and vectors"
                raise InputError(problem, remedy="give Aligner.match evidence= that is made for them")
            known = self._make_evidence(pair, vectors, progress)
        # What is given for another pair must not take the place of the evidence that the agent was fitted with.
        if given is None or self._evidence is None:
            self._evidence = known
        return known

    def _collect(self, evidence: Evidence, start: Bootstrap, certain: Links) -> list[Channel]:
        found = allowed(evidence.collect(certain, start.links, self.channels), evidence.pair.cannot_link)
        if any(channel.is_fitted for channel in found):
            raise InputError(
                "evidence has a channel that was fitted to the seeds, which would give held-out ones away",
                remedy="make its scores without the seeds, or give its vectors as embeddings",
            )
        return found

    def _arrange(self, channels: Sequence[Channel]) -> list[Channel]:
        """Channels in the order of what was learned, silent ones in place of those that found nothing."""
        is_learned = self.channel_scorer is not None or self.pair_scorer is not None
        if not self.layout and not is_learned:
            return list(channels)
        there = {(channel.name, channel.columns): channel for channel in channels}
        if is_learned:  # an agent that learned without a dictionary does without one
            there = {key: one for key, one in there.items() if key[0] != DICTIONARY or key in self.layout}
        unknown = [columns[0] for name, columns in there if (name, columns) not in self.layout]
        if unknown and is_learned:
            raise InputError(
                f"the agent has not learned what {unknown[0]} means, which this pair has",
                remedy="leave that channel out, or fit an agent to this pair",
            )
        return [there.get((name, columns)) or silent_channel(name, columns) for name, columns in self.layout]

    def _fitted_channels(self, vectors: Sequence[Embeddings], problem: Problem, progress: Progress) -> list[Channel]:
        fitted = [part for part in vectors if part.is_fitted]
        return vector_channels(fitted, problem.source_ids, problem.target_ids, progress, nearest=self.settings.nearest)

    def _proposals(self, problem: Problem, channels: Sequence[Channel]) -> Pairs:
        graphs = problem.graphs
        is_source, is_target = np.zeros(graphs.num_source, np.bool_), np.zeros(graphs.num_target, np.bool_)
        is_source[problem.source_ids], is_target[problem.target_ids] = True, True
        return join_proposals(channels, is_source, is_target).allowed(graphs.cannot_link)

    def _prior(
        self,
        problem: Problem,
        channels: list[Channel],
        fitted: Sequence[Channel] = (),
        unseen: int | None = None,
        described: tuple[Pairs, Floats] | None = None,
    ) -> Prior:
        """What channels and fitted vectors make of pairs before any decision; `described`: proposals and features."""
        settings, structure = self.settings, STRUCTURE in self.channels
        proposals, features = described or (self._proposals(problem, [*channels, *fitted]), None)
        csls = [part.csls for part in fitted if part.csls is not None]
        if not channels:
            return Prior(proposals, csls=csls, structure=structure)
        large = is_large(problem.graphs.num_source, problem.graphs.num_target) and not problem.is_part
        logits = self._logits(channels, proposals, unseen, features, large)
        near = near_best(proposals, logits, csls, settings.kept)
        kept = proposals.some(near)
        known = ScoreTable(kept, logits[near])

        def score(pairs: Pairs) -> Floats:
            if np.array_equal(numbers(pairs), numbers(kept)):  # the first pass: leads were over all proposals
                return known(pairs)
            return self._logits(channels, pairs, unseen, None, large)

        lowest = float(np.quantile(logits, LOWEST)) if len(logits) else 0.0
        return Prior(kept, score, lowest, csls, structure)

    def _describe(
        self, channels: list[Channel], pairs: Pairs, unseen: int | None = None, features: Floats | None = None
    ) -> _Described:
        """Channel features and logits; where nothing was learned, by how many channels find a pair mutual best.

        `unseen` is a held-out game: the members of the scorer that have not learned from it are asked. `features` are
        the channels', if they are known already.
        """
        features = describe_pairs(channels, pairs) if features is None else features
        if self.channel_scorer is not None:
            priorities = first_priorities(features, channels)
            return _Described(features, self.channel_scorer.logits(features, priorities, unseen))
        best, votes, _ = count_votes(channels)
        logits = ScoreTable(best, votes)(pairs) * np.float32(self.settings.votes)
        return _Described(features, logits - np.float32(self.settings.votes / 2))

    def _logits(
        self, channels: list[Channel], pairs: Pairs, unseen: int | None, features: Floats | None, large: bool
    ) -> Floats:
        """The channel logits of pairs alone."""
        if large and features is None:
            return self._describe_some_of(channels, pairs, np.zeros(0, np.int64), unseen)[1]
        return self._describe(channels, pairs, unseen, features).logits

    def _describe_some_of(
        self, channels: list[Channel], pairs: Pairs, places: NDArray[np.int64], unseen: int | None
    ) -> tuple[Floats, Floats]:
        """The features of the pairs at some places, and the logits of all: never the features of all at once."""
        scorer = self.channel_scorer
        if scorer is not None and not scorer.is_linear:
            what = self._describe(channels, pairs, unseen)
            return what.features[places], what.logits
        logits, priorities = np.zeros(len(pairs), np.float32), np.zeros(len(pairs), np.float32)
        kept, first = [np.zeros((len(places), 0), np.float32)], 0
        for columns in describe_by_channel(channels, pairs):
            kept.append(columns[places])
            if scorer is not None:
                scorer.add_columns(logits, columns, first, unseen)
                priorities += columns[:, -2] + columns[:, -1]
            first += columns.shape[1]
        if scorer is not None:
            scorer.add_priorities(logits, priorities, unseen)
        else:
            best, votes, _ = count_votes(channels)
            logits = (ScoreTable(best, votes)(pairs) - np.float32(0.5)) * np.float32(self.settings.votes)
        return np.concatenate(kept, axis=1), logits

    def _score_with(
        self, what: _Described, add: Floats | None = None, unseen: int | None = None
    ) -> Callable[[Features, Pairs], Floats]:
        """The pair scorer as a function of what matches say; `add` is what fitted vectors add to its logits."""
        scorer = self.pair_scorer
        assert scorer is not None

        def score(features: Features, pairs: Pairs) -> Floats:
            every = combine(features, pairs, what, self.settings.passes)
            logits = scorer.logits(every.columns, every.priorities, unseen)
            return logits if add is None else np.asarray(logits + add, np.float32)

        return score

    def _rate(self, pairs: Pairs, logits: Floats) -> Floats:
        return self.calibration.confidences(log_odds(pairs, logits))

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """All that was learned as safetensors with JSON; no pickle. Graphs and evidence are not kept."""
        save_agent_file(path, *self.as_file())

    def as_file(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What `save` writes: the JSON, and the arrays."""
        self._check_fitted()
        scorers = {"channels": self.channel_scorer, "pairs": self.pair_scorer}
        about = {
            "format": FORMAT,
            "channels": self.channels,
            "encoder": self.encoder,
            "seed": self.seed,
            "settings": asdict(self.settings),
            "layout": self.layout,
            "scorers": {name: [part.width, part.parts] for name, part in scorers.items() if part is not None},
            "calibration": asdict(self.calibration),
            "final_calibration": None if self.final_calibration is None else asdict(self.final_calibration),
            "weights": asdict(self.weights),
            "history": self.history,
        }
        arrays = {
            f"{name}.{key}": array
            for name, part in scorers.items()
            if part is not None
            for key, array in part.state().items()
        }
        return about, arrays

    @staticmethod
    def load(path: str | Path) -> Aligner:
        """An agent as it was saved."""
        return Aligner.from_file(path, *load_agent_file(path))

    @staticmethod
    def from_file(path: str | Path, about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Aligner:
        """An agent from the content of its file; `path` is named in errors."""
        if about.get("format") != FORMAT:
            raise InputError("is no trained agent of this version", path=path, remedy="train it again")
        with whole_agent(path):
            return Aligner._from_file(about, arrays)

    @staticmethod
    def _from_file(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Aligner:
        check_like(about["settings"], asdict(AgentSettings()), "settings")
        check_like(about["weights"], asdict(Weights(0.0)), "weights")
        for name in ("calibration", "final_calibration"):
            if about[name] is not None or name == "calibration":
                check_like(about[name], asdict(Calibration()), name)
        if not all(isinstance(row, dict) and isinstance(row.get("stage"), str) for row in about["history"]):
            raise ValueError("history is no list of rows with their stage")
        if not isinstance(about["encoder"], str) or not isinstance(about["seed"], int):
            raise ValueError("encoder or seed has another type")
        settings = AgentSettings.from_dict(about["settings"])
        agent = Aligner(channels=about["channels"], encoder=about["encoder"], seed=about["seed"], settings=settings)
        agent.layout = tuple((name, tuple(columns)) for name, columns in about["layout"])
        kinds = {"channels": settings.channel_scorer, "pairs": settings.pair_scorer}
        loaded: dict[str, PairScorer] = {}
        for name, (width, parts) in about["scorers"].items():
            scorer = loaded[name] = PairScorer(width, kinds[name], parts=parts)
            start = f"{name}."
            own = {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
            scorer.load_state(own)
        agent.channel_scorer, agent.pair_scorer = loaded.get("channels"), loaded.get("pairs")
        agent.calibration = Calibration(**about["calibration"])
        final = about["final_calibration"]
        agent.final_calibration = None if final is None else Calibration(**final)
        weights = about["weights"]
        agent.weights = Weights(**{**weights, "vectors": tuple(weights["vectors"])})
        agent.history, agent.is_fitted = about["history"], True
        return agent


def _is_large(pair: GraphPair) -> bool:
    return is_large(pair.source.num_entities, pair.target.num_entities)


def _is_same(games: Sequence[HeldOut], place: int) -> bool:
    """Whether a game is the one that was played before it: another part of the links, held out of one problem."""
    return 0 < place < len(games) and games[place].problem is games[place - 1].problem


def near_best(pairs: Pairs, logits: Floats, csls: Sequence[Csls], kept: int) -> NDArray[np.bool_]:
    """Which pairs are among the best of either entity, by channels or by some fitted vectors; (num_pairs,)."""
    near = is_near(pairs, logits, kept)
    for part in csls:
        near |= is_near(pairs, part(pairs), kept)
    return near


def layout_of(channels: Sequence[Channel]) -> Layout:
    """Every channel with its columns once, in the order of the channels' names."""
    every = dict.fromkeys((channel.name, channel.columns) for channel in channels)
    order = list(dict.fromkeys([*CHANNELS, VECTORS, *(name for name, _ in every)]))  # a user's own come last
    return tuple(sorted(every, key=lambda one: order.index(one[0])))


def combine(features: Features, pairs: Pairs, what: _Described, settings: PassSettings) -> Features:
    """All features of pairs: what matches say, what channels say, and how the priorities of both lead."""
    priorities = np.asarray(what.logits + features.priorities / np.float32(settings.temperature), np.float32)
    if not what.features.shape[1]:  # structure alone: its own features have the leads
        return Features(features.columns, priorities)
    rivals = [leads(ids, priorities, MOST_LEAD) for ids in (pairs.source_ids, pairs.target_ids)]
    columns = np.column_stack([features.columns, what.features, what.logits, *rivals])
    return Features(np.ascontiguousarray(columns, np.float32), priorities)


def first_priorities(features: Floats, channels: list[Channel]) -> Floats:
    """What the channel scorer begins at: by how much a pair leads in all channels together."""
    ends = np.cumsum([channel.width for channel in channels])
    places = np.concatenate([ends - 2, ends - 1]) if len(ends) else np.zeros(0, np.int64)
    return np.asarray(features[:, places].sum(axis=1), np.float32)


def dropouts(count: int) -> list[tuple[int, ...]]:
    """Places of the channels to drop, in every way that learning from pseudo-seeds has them."""
    if count < 2:
        return []
    each: list[tuple[int, ...]] = [(place,) for place in range(count)]
    all_but = [tuple(other for other in range(count) if other != place) for place in range(count)]
    return each if count == 2 else [*each, *all_but]


def drop_channels(examples: Examples, channels: list[Channel]) -> Iterator[Examples]:
    """The same examples, had some channels no evidence: each example in some of the ways, each way with its share."""
    ends = np.cumsum([channel.width for channel in channels])
    groups = np.arange(len(examples.truths)) % DROPOUT_SHARE
    for number, dropped in enumerate(dropouts(len(channels))):
        some = examples.some(groups == number % DROPOUT_SHARE)
        for place in dropped:
            some.features[:, ends[place] - channels[place].width : ends[place]] = 0
        yield replace(some, priorities=first_priorities(some.features, channels))


def weigh(csls: Sequence[Floats], weights: Sequence[float]) -> Floats | None:
    """What fitted vectors add to logits; None without any."""
    if not csls:
        return None
    return np.asarray(sum(np.float32(weight) * part for weight, part in zip(weights, csls, strict=True)), np.float32)


def num_right(found: Decisions | Matching, links: Links) -> int:
    """How many of the links were found."""
    own = Pairs(found.source_ids, found.target_ids)
    return int(np.isin(numbers(Pairs(links.source_ids, links.target_ids)), numbers(own)).sum())


def calibrate_on(decisions: Decisions, links: Links) -> Calibration | None:
    """Confidences from the links that a pass gave to the sources of `links`.

    Not those of their targets as well: a wrong pair would count twice, once for either end, and a right one once.
    """
    known = np.isin(decisions.source_ids, links.source_ids)
    pairs = Pairs(decisions.source_ids[known], decisions.target_ids[known])
    right = np.isin(numbers(pairs), numbers(Pairs(links.source_ids, links.target_ids)))
    found = Calibration.fit(log_odds(decisions.pairs, decisions.logits)[decisions.places[known]], right)
    return None if found is None else replace(found, recall=int(right.sum()) / len(links))


def _rated(decisions: Decisions, calibration: Calibration) -> Decisions:
    """The same links with confidences by a calibration."""
    if not len(decisions.source_ids):
        return decisions
    odds = log_odds(decisions.pairs, decisions.logits)[decisions.places]
    return replace(decisions, confidences=calibration.confidences(odds))


def _keep_links(game: HeldOut, links: Links) -> HeldOut:
    """The game with those of its held-out links that are among these."""
    known: NDArray[np.bool_] = np.isin(game.links.source_ids, links.source_ids)
    kept = Links.of(game.links.source_ids[known], game.links.target_ids[known])
    return replace(game, links=kept, is_dangling=game.is_dangling[known])
