"""A learned pass step by step, as a Gymnasium environment: the pair that is worth most now, match or mismatch."""

from __future__ import annotations

import heapq
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlea.agent.features import COLUMNS
from rlea.agent.memory import Floats
from rlea.agent.passes import Decisions, PassSettings, Scene, memory_of, see
from rlea.errors import InputError
from rlea.graph import Links
from rlea.search.candidates import tie_hash
from rlea.search.pairs import is_near

MATCH, MISMATCH = 1, 0


class ContextEnv(gymnasium.Env[Any, Any]):
    """Decide pairs in the order of what they are worth now; every match changes what its neighbours' pairs are worth.

    ## Action space
    `Discrete(2)`: 0 says mismatch, and the pair is set aside until a match changes its evidence; 1 says match, and
    every other pair of its two entities leaves the game.

    ## Observation space
    A box: the features of the pair at hand (`rlea.agent.features.COLUMNS`, as they were before the first decision), and
    what it is worth now. `info["pair"]` is (source id, target id).

    ## Reward
    With answers (links that were held out): +1 for a match that is right, -1 for one that is wrong, of an entity that
    is asked for; 0 otherwise and without answers.

    ## Episode end
    Terminated when no pair is left whose two entities are free and that is not set aside. Never truncated.

    Nothing is drawn at random. The compiled pass (`passes.play_learned`) is this game played by the policy that matches
    from some worth on.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        scene: Scene,
        before: Decisions,
        worth: Floats,  # of `before.pairs`, before the first decision
        settings: PassSettings | None = None,
        answers: Links | None = None,
    ) -> None:
        self.scene, self.before = scene, before
        self.settings = settings or PassSettings()
        near = np.flatnonzero(is_near(before.pairs, worth, self.settings.rivals))
        self._source_ids, self._target_ids = before.pairs.source_ids[near], before.pairs.target_ids[near]
        self._worth = worth[near]
        self._features = see(scene, self.settings, before).features[near]
        self._ties = tie_hash(self._source_ids, self._target_ids, scene.seed)
        pairs = zip(self._source_ids.tolist(), self._target_ids.tolist(), strict=True)
        self._number = {pair: number for number, pair in enumerate(pairs)}
        answers = Links.empty() if answers is None else answers
        self._answers = dict(zip(answers.source_ids.tolist(), answers.target_ids.tolist(), strict=True))
        self._answers_back = {t: s for s, t in self._answers.items()}
        self._memory = memory_of(scene, before)
        self.observation_space = spaces.Box(-np.inf, np.inf, (len(COLUMNS) + 1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._at_hand = -1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin the pass: seeds and the matches of the pass before speak, nothing is decided."""
        super().reset(seed=seed)
        scene, before = self.scene, self.before
        self._free_source = set(scene.source_ids.tolist())
        self._free_target = set(scene.target_ids.tolist())
        self._evidence = np.zeros(len(self._worth), np.float32)
        self._supposed_evidence = np.zeros(len(self._worth), np.float32)
        self._supposed = dict(zip(before.source_ids.tolist(), before.target_ids.tolist(), strict=True))
        self._supposed_back = {t: s for s, t in self._supposed.items()}
        for s, t in zip(scene.seeds.source_ids.tolist(), scene.seeds.target_ids.tolist(), strict=True):
            self._speak(s, t, 1.0)
        for s, t in zip(before.source_ids.tolist(), before.target_ids.tolist(), strict=True):
            self._speak(s, t, 1.0, supposed=True)
        moves = np.float32(self.settings.moves)
        self._base = self._worth - moves * np.sqrt(np.maximum(self._evidence, 0))
        self._heap = [(-self._key(k), int(self._ties[k]), k) for k in range(len(self._worth))]
        heapq.heapify(self._heap)
        self._set_aside: set[int] = set()
        self._advance()
        return self._observe(), self._info()

    def step(self, action: int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Decide the pair at hand and move on to the one that is then worth most."""
        if self._at_hand < 0:
            raise InputError("the episode is over", remedy="call reset first")
        s, t = int(self._source_ids[self._at_hand]), int(self._target_ids[self._at_hand])
        reward = 0.0
        if action == MATCH:
            if s in self._answers or t in self._answers_back:
                reward = 1.0 if self._answers.get(s) == t else -1.0
            self._free_source.discard(s)
            self._free_target.discard(t)
            self._speak(s, t, 1.0, wake=True)
            if s in self._supposed:  # what the pass before supposed of either entity no longer speaks
                other = self._supposed.pop(s)
                del self._supposed_back[other]
                self._speak(s, other, -1.0)
            if t in self._supposed_back:
                other = self._supposed_back.pop(t)
                del self._supposed[other]
                self._speak(other, t, -1.0)
        else:
            self._set_aside.add(self._at_hand)
        self._advance()
        return self._observe(), reward, self._at_hand < 0, False, self._info()

    def _key(self, pair: int) -> float:
        root = np.sqrt(max(self._evidence[pair], np.float32(0)))
        return float(np.float32(self._base[pair] + np.float32(self.settings.moves) * root))

    def _speak(self, s: int, t: int, share: float, *, supposed: bool = False, wake: bool = False) -> None:
        """Add (or take back) what a link says of the pairs of its entities' free neighbours."""
        source, target = self.scene.board.source, self.scene.board.target
        like = self._memory.correspondence
        for i in range(source.starts[s], source.starts[s + 1]):
            o, n = source.relation_ids[i], int(source.neighbour_ids[i])
            if n not in self._free_source:
                continue
            for j in range(target.starts[t], target.starts[t + 1]):
                p, m = target.relation_ids[j], int(target.neighbour_ids[j])
                pair = self._number.get((n, m))
                if pair is None or m not in self._free_target:
                    continue
                step = like[o, p] * min(source.functionality[o], target.functionality[p])
                if step < self.settings.floor:
                    continue
                gain = np.float32(share) * step
                if share < 0:
                    gain = -min(-gain, self._supposed_evidence[pair])
                if supposed or share < 0:
                    self._supposed_evidence[pair] += gain
                self._evidence[pair] += gain
                if wake:
                    self._set_aside.discard(pair)
                    heapq.heappush(self._heap, (-self._key(pair), int(self._ties[pair]), pair))

    def _advance(self) -> None:
        """Find the free pair that is worth most and not set aside; a pair that lost evidence queues again."""
        self._at_hand = -1
        while self._heap:
            negative, _, pair = heapq.heappop(self._heap)
            s, t = int(self._source_ids[pair]), int(self._target_ids[pair])
            if s not in self._free_source or t not in self._free_target or pair in self._set_aside:
                continue
            key = self._key(pair)
            if -negative > key:
                heapq.heappush(self._heap, (-key, int(self._ties[pair]), pair))
                continue
            self._at_hand = pair
            return

    def _info(self) -> dict[str, Any]:
        if self._at_hand < 0:
            return {"pair": None}
        return {"pair": (int(self._source_ids[self._at_hand]), int(self._target_ids[self._at_hand]))}

    def _observe(self) -> NDArray[np.float32]:
        if self._at_hand < 0:
            return np.zeros(len(COLUMNS) + 1, np.float32)
        return np.append(self._features[self._at_hand], np.float32(self._key(self._at_hand)))
