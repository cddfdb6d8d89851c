"""The agent that remembers: what it matched speaks for, and against, what it decides next.

Training holds seeds out. The seeds are cut into parts; for each part the game is played from the others, and the policy
learns from the pairs of the entities that were held out, in the states in which such a game leaves them. The given
vectors were fitted to all seeds and would give them away, so these games look at the graphs alone; how much the given
vectors count beside what is learned is chosen on validation links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.calibration import Calibration, log_odds
from rlea.agent.features import COLUMNS, GROUPS, Sight
from rlea.agent.holdout import CHOOSING, Game, GameSettings, draw, make_games, others
from rlea.agent.learning import ENOUGH_LINKS, Examples, ReinforceSettings, features_of, reinforce, supervise
from rlea.agent.memory import Board, Floats
from rlea.agent.pair_scorer import PairScorer, ScorerSettings
from rlea.agent.passes import Decisions, PassSettings, Scene, given_csls, play_fixed, play_learned, see
from rlea.agent.propagation import SpreadSettings
from rlea.agent.stages import Stages
from rlea.errors import InputError
from rlea.graph import GraphPair, Ids, Links, choose_pool
from rlea.io.agent_files import load_agent_file, save_agent_file
from rlea.matching import Matching, Task, keep_sure
from rlea.progress import Progress, silent
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs, find_pairs

FORMAT = "rlea context agent 4"
FEW_SEEDS = 1000  # with fewer, and no validation links to say otherwise, best-first's key is the safer one


@dataclass(frozen=True)
class Chosen:
    """What was chosen for the given vectors: their weights, and what a worth means beside them."""

    likeness: float  # of the re-estimated vectors in the fixed key
    given_weight: float  # of the given vectors' CSLS in the learned key
    learned: bool = True  # whether there are learned passes at all: with few seeds best-first's key may do better
    calibration: Calibration = field(default_factory=Calibration)
    by: str = "default"  # or "validation links", or "seeds held out"


@dataclass(frozen=True)
class KeySettings(ScorerSettings):
    """A scorer that begins at best-first's key."""

    scale: float = 8.0  # one over best-first's temperature
    offset: float = 0.3  # best-first's key at which no match is as likely
    without: tuple[str, ...] = ()  # groups of features that are not seen (for measuring what they add)

    def __post_init__(self) -> None:
        super().__post_init__()
        unknown = [name for name in self.without if name not in GROUPS]
        if unknown:
            raise ValueError(f"no such group of features: {', '.join(unknown)}")


@dataclass(frozen=True)
class ContextSettings:
    """All settings of the agent."""

    candidates: int = 20  # best by the given vectors, both ways; matches bring the others
    supervised: bool = True  # learn from the held-out links directly, before reinforcement
    states: int = 2  # states of every game that are learned from: after the fixed passes, and after learned ones
    episodes: int = 0  # of reinforcement; see docs/context.md for what they add
    likenesses: tuple[float, ...] = (0.67, 0.0)  # weights of re-estimated vectors in the fixed key to choose from
    given_weights: tuple[float, ...] = (3.0, 1.0, 0.0, 10.0, 30.0, 100.0)  # of the given vectors' CSLS, likewise
    games: GameSettings = field(default_factory=GameSettings)
    passes: PassSettings = field(default_factory=PassSettings)
    key: KeySettings = field(default_factory=KeySettings)
    reinforce: ReinforceSettings = field(default_factory=ReinforceSettings)

    def __post_init__(self) -> None:
        if self.states < 1 or self.episodes < 0:
            raise ValueError("needs a state or more, and episodes from 0")


class ContextAgent:
    """Decides pairs best first by a learned key, pass after pass.

    >>> pair = rlea.read("D_W_15K_V1")                              # doctest: +SKIP
    >>> vectors = rlea.embed_entities(pair, "vectors.safetensors")  # doctest: +SKIP
    >>> agent = rlea.ContextAgent().fit(pair, vectors)              # doctest: +SKIP
    >>> links = agent.match(pair, vectors, precision=0.95)          # doctest: +SKIP
    """

    def __init__(self, settings: ContextSettings | None = None, *, seed: int = 0) -> None:
        if not 0 <= seed < 2**63:
            raise InputError(f"the seed is {seed}", remedy="give a number from 0 to 2^63 - 1")
        self.settings = settings or ContextSettings()
        self.seed = seed
        self.key: PairScorer | None = None
        self.chosen = Chosen(self.settings.likenesses[0], self.settings.given_weights[0])
        self.history: list[dict[str, Any]] = []
        # How far a match of one pass is trusted in the next: fitted on the games, whatever vectors are given later.
        self.trust = Calibration()

    # ---- training ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        pair: GraphPair,
        embeddings: Embeddings | None = None,
        seeds: Links | None = None,
        valid: Links | None = None,
        *,
        progress: Progress = silent,
        checkpoint: str | Path | None = None,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
    ) -> ContextAgent:
        """Learn from the seeds; with validation links choose how much the given vectors count.

        Seeds and validation links are the pair's own unless others are given; its test links are not read. With
        `checkpoint` a stopped run goes on after the last stage that it finished.
        """
        seeds = pair.train if seeds is None else seeds
        valid = pair.valid if valid is None else valid
        self.check_seeds(seeds)
        board = Board.of(pair.source, pair.target)
        games = make_games(board, pair, seeds, self.settings.games, self.settings.passes, progress)
        stages = Stages(checkpoint, self._identity(pair, seeds))
        self.learn(games, progress=progress, stages=stages, on_episode=on_episode)
        self.calibrate(games, progress)
        if embeddings is not None and len(valid):
            self.choose(pair, embeddings, seeds, valid, progress=progress)
        elif embeddings is not None and embeddings.is_sparse:
            # Names were not fitted to the seeds, so a fifth of these can stand for validation links.
            order = np.argsort(draw(seeds, CHOOSING), kind="stable")
            parts = np.split(order, [max(1, len(seeds) // 5)])
            asked, known = (Links.of(seeds.source_ids[part], seeds.target_ids[part]) for part in parts)
            self.choose(pair, embeddings, known, asked, progress=progress)
            self.chosen = replace(self.chosen, by="seeds held out")
        elif embeddings is not None and len(seeds) < FEW_SEEDS:
            self.chosen = replace(self.chosen, likeness=0.0, learned=False, calibration=Calibration())
        return self

    def check_seeds(self, seeds: Links) -> None:
        """Refuse too few seeds to hold some out."""
        if len(seeds) < 2 * self.settings.games.parts:
            raise InputError(
                f"the agent is trained on seed links, some of them held out, and there are {len(seeds)}",
                remedy="give more, or use --matcher best-first, which learns nothing",
            )

    def learn(
        self,
        games: list[Game],
        *,
        progress: Progress = silent,
        stages: Stages | None = None,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        """Learn the key from games, beginning at best-first's; the games go on from where they stand."""
        self.chosen = Chosen(self.settings.likenesses[0], self.settings.given_weights[0])
        self.history, self.trust = [], Calibration()
        stages = stages or Stages(None, {})
        settings, states = self.settings, self.settings.states
        seen: list[list[Examples]] = [[] for _ in games]
        for state in range(states):
            name = f"state {state}"
            sights = [see(game.scene, settings.passes, game.decisions) for game in games]
            for own, game, sight in zip(seen, games, sights, strict=True):
                own.append(game.examples(sight))
            parts = [Examples.join(own) for own in seen]
            num_rows = sum(len(part.keys) for part in parts)
            if state == 0:
                self.key = make_key(settings.key, self.seed, parts=len(games), rows=num_rows)
            assert self.key is not None
            if not num_rows:  # no pair of a held-out entity ever came into a game
                self.chosen = replace(self.chosen, likeness=0.0, learned=False)
                return
            if state == 0:
                self.key.measure(*features_of(parts))
            if not stages.load(name, self) and settings.supervised:
                first = sum("epoch" in row for row in self.history)
                enough = sum(len(game.asked) for game in games) >= ENOUGH_LINKS
                rows = supervise(self.key, parts, networks=enough)
                self.history += [{"stage": name, **row, "epoch": first + row["epoch"]} for row in rows]
                stages.save(name, self)
            progress("agent: supervision", state + 1, states)
            if state + 1 < states or settings.episodes:
                for part, game in enumerate(games):
                    game.decisions = self.run_pass(game.scene, game.decisions, None, unseen=part)
        if settings.episodes and not stages.load("reinforced", self):
            trials = [game.trial(see(game.scene, settings.passes, game.decisions)) for game in games]

            def report(row: dict[str, Any]) -> None:
                done = len(self.history) - before + 1
                self.history.append({"stage": "reinforcement", "episode": done, **row})
                if on_episode is not None:
                    on_episode(self.history[-1])
                progress("agent: episodes", done, settings.episodes, f"aligned {row['aligned_undrawn']:.0f}")

            before = len(self.history)
            assert self.key is not None
            reinforce(self.key, trials, settings.reinforce, settings.episodes, self.seed, report)
            stages.save("reinforced", self)

    def calibrate(self, games: list[Game], progress: Progress = silent) -> None:
        """Confidences from the links that the held-out entities get in the end, right and wrong."""
        if self.chosen.learned:
            self.trust = self._fit_on(games, progress)
        # Games are played without the given vectors: of best-first's key over these they tell nothing.
        self.chosen = replace(self.chosen, calibration=self.trust if self.chosen.learned else Calibration())

    def _fit_on(self, games: list[Game], progress: Progress) -> Calibration:
        """Chances of links after the learned passes."""
        rows, right = [], []
        for number, game in enumerate(games):
            decisions = game.first
            for _ in range(self.settings.passes.learned):
                decisions = self.run_pass(game.scene, decisions, None, unseen=number)
            known, is_right = game.judge(decisions)
            assert decisions.worth is not None
            rows.append(log_odds(decisions.pairs, decisions.worth)[find(decisions)[known]])
            right.append(is_right[known])
            progress("agent: calibration", number + 1, len(games))
        return Calibration.fit(np.concatenate(rows), np.concatenate(right)) or Calibration()

    def choose(
        self,
        pair: GraphPair,
        embeddings: Embeddings,
        seeds: Links | None = None,
        valid: Links | None = None,
        *,
        progress: Progress = silent,
    ) -> ContextAgent:
        """Fit the trained agent to (other) vectors: how much they count, by the most right validation links.

        What is learned does not depend on the given vectors, so an agent trained once serves all vectors of a pair.
        Confidences are fitted to the validation links, too: with other vectors the same worth means another chance.
        """
        seeds = pair.train if seeds is None else seeds
        valid = pair.valid if valid is None else valid
        if self.key is None:
            raise InputError("the agent has not been trained", remedy="call fit or load first")
        if not len(valid):
            raise InputError(
                "how much vectors count is chosen on validation links and there are none", remedy="give some"
            )
        board = Board.of(pair.source, pair.target)
        source_ids, target_ids = (shuffled(ids, k) for k, ids in enumerate(others(pair, seeds)))
        given = find_candidates(embeddings, source_ids, target_ids, self.settings.candidates)
        scene = Scene(board, seeds, source_ids, target_ids, given)
        best, tried = -1, 0
        likenesses, weights = self.settings.likenesses, self.settings.given_weights
        total = len(weights) + 2 * len(likenesses) - 1
        last: Decisions | None = None
        chosen = self.chosen
        for likeness in likenesses:
            first = play_fixed(scene, replace(self.settings.passes, likeness=likeness))
            csls = given_csls(scene, first.pairs)
            # One after the other: all weights beside the first likeness, the other likenesses beside the best weight.
            options: list[float | None] = [*(weights if likeness == likenesses[0] else (chosen.given_weight,)), None]
            for weight in options:  # None: the fixed passes alone
                decisions = first
                for _ in range(self.settings.passes.learned if weight is not None else 0):
                    decisions = self.run_pass(scene, decisions, (weight or 0.0) * csls)
                score = num_right(decisions, valid)
                row = {"stage": "choice", "likeness": likeness, "given_weight": weight, "valid_aligned": score}
                self.history.append(row)
                if score > best:
                    best, last = score, decisions
                    kept = chosen.given_weight if weight is None else weight
                    chosen = Chosen(likeness, kept, weight is not None)
                tried += 1
                progress("agent: choice", tried, total, f"aligned {best} of {len(valid)}")
        assert last is not None
        otherwise = self.trust if chosen.learned else Calibration()
        self.chosen = replace(chosen, calibration=calibrate_on(last, valid) or otherwise, by="validation links")
        return self

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def match(
        self,
        what: Task | GraphPair,
        embeddings: Embeddings | None = None,
        *,
        pool: str = "auto",
        precision: float | None = None,
    ) -> Matching:
        """One-to-one links with calibrated confidences; with `precision` only the surest, that share of them right.

        Of a task, or of a pair with vectors: then the candidates are found here, over the entities of the test links or
        all without a seed (see `choose_pool`).
        """
        matching = self.decide(what, embeddings, pool=pool)[-1].matching
        return matching if precision is None else keep_sure(matching, precision)

    def decide(
        self, what: Task | GraphPair, embeddings: Embeddings | None = None, *, pool: str = "auto"
    ) -> list[Decisions]:
        """All passes: the last of the fixed ones, then the learned ones."""
        if self.key is None:
            raise InputError("the agent has not been trained", remedy="call fit or load first")
        if isinstance(what, GraphPair):
            if embeddings is None:
                raise InputError("a pair is matched by its vectors and there are none", remedy="give embeddings")
            _, source_ids, target_ids = choose_pool(what, pool)
            candidates = find_candidates(embeddings, source_ids, target_ids, self.settings.candidates)
            what = Task(what.source, what.target, what.train, candidates, self.seed)
        given = what.candidates.best(self.settings.candidates)
        if given.num_rows == 0 or given.num_columns == 0:
            nobody, nothing = np.zeros(0, np.int32), np.zeros(0, np.float32)
            return [Decisions(nobody, nobody, nothing, nothing, Pairs(nobody, nobody))]
        board = Board.of(what.source, what.target)
        scene = Scene(board, what.seeds, given.source_ids, given.target_ids, given)
        decisions = [play_fixed(scene, replace(self.settings.passes, likeness=self.chosen.likeness))]
        more = self.chosen.given_weight * given_csls(scene, decisions[0].pairs)
        num_learned = self.settings.passes.learned if self.chosen.learned else 0
        for number in range(num_learned):
            last = self.chosen.calibration if number == num_learned - 1 else None
            decisions.append(self.run_pass(scene, decisions[-1], more, last))
        if not num_learned:
            fixed = decisions[0]
            assert fixed.worth is not None
            odds = log_odds(fixed.pairs, fixed.worth)[find(fixed)]
            decisions[0] = replace(fixed, confidences=self.chosen.calibration.confidences(odds))
        return decisions

    def run_pass(
        self,
        scene: Scene,
        before: Decisions,
        more: Floats | None,
        calibration: Calibration | None = None,
        unseen: int | None = None,
    ) -> Decisions:
        """One learned pass; `more` is added to the worth of pairs. Confidences: as fitted on the games, or as given.

        With `unseen` the pass is decided by the networks that have not learned from that game.
        """
        key, calibration = self.key, calibration or self.trust
        assert key is not None

        def value(sight: Sight, pairs: Pairs) -> Floats:
            worth = key.logits(sight.features, sight.keys, unseen)
            return worth if more is None else np.asarray(worth + more, np.float32)

        def rate(sight: Sight, pairs: Pairs, worth: Floats) -> Floats:
            return calibration.confidences(log_odds(pairs, worth))

        return play_learned(scene, self.settings.passes, before, value, rate)

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Weights and settings as safetensors with JSON; no pickle."""
        if self.key is None:
            raise InputError("the agent has not been trained", remedy="call fit before save")
        about = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "chosen": asdict(self.chosen),
            "trust": asdict(self.trust),
            "history": self.history,
        }
        save_agent_file(path, about, self.key.state())

    @staticmethod
    def load(path: str | Path) -> ContextAgent:
        """An agent as it was saved."""
        about, weights = load_agent_file(path)
        if about.get("format") != FORMAT:
            raise InputError("is no trained agent of this version", path=path, remedy="train it again")
        agent = ContextAgent(settings_of(about["settings"]), seed=about["seed"])
        agent.key = make_key(agent.settings.key, parts=agent.settings.games.parts)
        try:
            agent.key.load_state(weights)
        except ValueError as problem:
            raise InputError(f"is no whole agent: {problem}", path=path, remedy="train it again") from problem
        chosen = about["chosen"]
        agent.chosen = Chosen(**{**chosen, "calibration": Calibration(**chosen["calibration"])})
        agent.trust = Calibration(**about["trust"])
        agent.history = about["history"]
        return agent

    def _identity(self, pair: GraphPair, seeds: Links) -> dict[str, Any]:
        digest = hashlib.sha256(seeds.source_ids.tobytes() + seeds.target_ids.tobytes()).hexdigest()
        return {
            "format": FORMAT,
            "source": pair.source.fingerprint,
            "target": pair.target.fingerprint,
            "seeds": digest,
            "seed": self.seed,
            "settings": asdict(self.settings),
        }


def make_key(settings: KeySettings, seed: int = 0, *, parts: int = 1, rows: int = 0) -> PairScorer:
    """An untrained scorer of pairs by what matches say of them; it orders them by best-first's key."""
    hidden_from = {name for group in settings.without for name in GROUPS[group]}
    seen = [float(name not in hidden_from) for name in COLUMNS]
    return PairScorer(len(COLUMNS), settings, seed, parts=parts, rows=rows, seen=seen)


def shuffled(ids: Ids, number: int) -> Ids:
    """Ids in a random order, so that no order of links can be read from positions."""
    return np.random.default_rng([number, 9]).permutation(ids)


def calibrate_on(decisions: Decisions, links: Links) -> Calibration | None:
    """Confidences from the links that a pass gave to the sources of `links`.

    Not those of their targets as well: a wrong pair would count twice, once for either end, and a right one once.
    """
    answers = dict(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))
    known = np.isin(decisions.source_ids, links.source_ids)
    pairs = zip(decisions.source_ids[known].tolist(), decisions.target_ids[known].tolist(), strict=True)
    right = np.array([answers.get(s) == t for s, t in pairs], np.bool_)
    assert decisions.worth is not None
    return Calibration.fit(log_odds(decisions.pairs, decisions.worth)[find(decisions)[known]], right)


def num_right(decisions: Decisions | Matching, links: Links) -> int:
    """How many of the links were found."""
    found = dict(zip(decisions.source_ids.tolist(), decisions.target_ids.tolist(), strict=True))
    return sum(found.get(s) == t for s, t in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def find(decisions: Decisions) -> NDArray[np.int64]:
    """The places of the links among all pairs."""
    return find_pairs(decisions.pairs, decisions.source_ids, decisions.target_ids)


def settings_of(values: dict[str, Any]) -> ContextSettings:
    """Settings from their JSON form."""
    values = dict(values)
    passes = dict(values.pop("passes"))
    passes["spread"] = SpreadSettings(**passes["spread"])
    key = dict(values.pop("key"))
    key["without"] = tuple(key["without"])
    for name in ("likenesses", "given_weights"):
        values[name] = tuple(values[name])
    return ContextSettings(
        games=GameSettings(**values.pop("games")),
        passes=PassSettings(**passes),
        key=KeySettings(**key),
        reinforce=ReinforceSettings(**values.pop("reinforce")),
        **values,
    )
