"""The episode as a Gymnasium environment: one candidate pair after another, match or mismatch."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.paper.episode import EnvSettings, Floats, PairSequence, skip_rates
from rlea.paper.policy import GraphView
from rlea.search.candidates import Candidates

MATCH, MISMATCH = 1, 0


class PoolVectors(NamedTuple):
    """What can be seen of the entities of the two pools."""

    source: Floats  # (num_rows, dim)
    target: Floats  # (num_columns, dim)
    source_neighbours: Floats  # (num_rows, dim) means over the neighbourhood
    target_neighbours: Floats  # (num_columns, dim)

    @classmethod
    def of(cls, source: GraphView, target: GraphView, candidates: Candidates) -> PoolVectors:
        """The rows of the two graphs that are in the pools of the candidates."""
        rows, columns = candidates.source_ids.astype(np.int64), candidates.target_ids.astype(np.int64)
        tensors = source.vectors[rows], target.vectors[columns], source.averaged[rows], target.averaged[columns]
        return cls(*(tensor.cpu().numpy() for tensor in tensors))


class AlignmentEnv(gymnasium.Env[Any, Any]):
    """Decide candidate pairs in descending similarity; a match removes every other pair of its two entities.

    ## Action space
    `Discrete(2)`: 0 says mismatch (the entities stay in the game), 1 says match.

    ## Observation space
    A dictionary of boxes for the current pair: `source` and `target`, the vectors of its entities; `source_neighbours`
    and `target_neighbours`, the means of their neighbours' vectors (zeros where there are none); `opponents`, the
    vectors of the source's other candidates (zeros where there are fewer); `similarity`, the pair's score.
    `info["pair"]` is its position in the sequence, for policies that score pairs by position.

    ## Reward
    With labels (training): +1 for a correct match, -10 for mismatching a correct pair, 0 otherwise; settable. Without
    labels (test time) the reward is always 0, and nothing is skipped.

    ## Episode end
    Terminated when no pair is left whose two entities are free. Never truncated.

    Every episode draws all its random numbers at `reset`, one for every pair, from `self.np_random`; the compiled path
    (`episode.play`) given the same numbers plays the same episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, sequence: PairSequence, vectors: PoolVectors, settings: EnvSettings | None = None) -> None:
        self.sequence = sequence
        self.settings = settings or EnvSettings()
        self._vectors = vectors
        dim, k = vectors.source.shape[1], int(sequence.places.max(initial=0)) + 1
        self._columns = np.full((sequence.num_rows, k), -1, dtype=np.int32)
        self._columns[sequence.rows, sequence.places] = sequence.columns
        shapes = {
            "source": (dim,),
            "target": (dim,),
            "source_neighbours": (dim,),
            "target_neighbours": (dim,),
            "opponents": (k - 1, dim),
            "similarity": (1,),
        }
        largest = max(float(np.abs(array).max(initial=1.0)) for array in vectors)
        bounds = dict.fromkeys(shapes, largest) | {"similarity": float(np.abs(sequence.scores).max(initial=1.0))}
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(-bounds[name], bounds[name], shape, np.float32)
                for name, shape in shapes.items()
                if 0 not in shape
            }
        )
        self.action_space = spaces.Discrete(2)
        self.episode = 0
        self._order: NDArray[np.intp] = np.arange(len(sequence))
        self._place = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Begin the next episode; `options={"episode": t}` says which one the curriculum is in."""
        super().reset(seed=seed)
        before = self.episode if seed is None else 0  # the same seed is the same episode, whatever was played before
        self.episode = int((options or {}).get("episode", before + 1))
        size = len(self.sequence)
        self._order = self.np_random.permutation(size) if self.settings.random_order else np.arange(size)
        self.skip_rate = skip_rates(self.sequence, self.episode, self.settings)
        if size and (self.skip_rate >= 1).all():
            raise InputError("every pair is skipped", remedy="give skip rates below 1")
        self.skip_draws = self.np_random.random(size, dtype=np.float32)
        while size and (self.skip_draws < self.skip_rate).all():  # may happen with few pairs
            self.skip_draws = self.np_random.random(size, dtype=np.float32)
        self._free_row = np.ones(self.sequence.num_rows, np.bool_)
        self._free_column = np.ones(self.sequence.num_columns, np.bool_)
        self._place = 0
        self._advance()
        return self._observe(), self._info()

    def step(self, action: int) -> tuple[dict[str, Floats], float, bool, bool, dict[str, Any]]:
        """Decide the current pair and move on to the next that comes up."""
        if self._is_over:
            raise InputError("the episode is over", remedy="call reset first")
        pair, rules, reward = self._order[self._place], self.settings, 0.0
        if self.sequence.is_labelled:  # equation 6
            if self.sequence.labels[pair]:
                reward = rules.true_match if action == MATCH else rules.false_mismatch
            else:
                reward = rules.false_match if action == MATCH else rules.true_mismatch
        if action == MATCH:
            self._free_row[self.sequence.rows[pair]] = False
            self._free_column[self.sequence.columns[pair]] = False
        self._place += 1
        self._advance()
        return self._observe(), reward, self._is_over, False, self._info()

    @property
    def _is_over(self) -> bool:
        return self._place >= len(self._order)

    def _advance(self) -> None:
        """Go to the next pair with two free entities that is not skipped."""
        sequence = self.sequence
        while not self._is_over:
            pair = self._order[self._place]
            is_free = self._free_row[sequence.rows[pair]] and self._free_column[sequence.columns[pair]]
            if is_free and not self.skip_draws[pair] < self.skip_rate[pair]:
                return
            self._place += 1

    def _info(self) -> dict[str, Any]:
        return {"pair": -1 if self._is_over else int(self._order[self._place])}

    def _observe(self) -> dict[str, Floats]:
        space = self.observation_space
        assert isinstance(space, spaces.Dict)
        seen = {name: np.zeros(box.shape or (), np.float32) for name, box in space.items()}
        if self._is_over:
            return seen
        pair = self._order[self._place]
        row, column = self.sequence.rows[pair], self.sequence.columns[pair]
        known = self._vectors
        seen["source"], seen["target"] = known.source[row].copy(), known.target[column].copy()
        seen["source_neighbours"] = known.source_neighbours[row].copy()
        seen["target_neighbours"] = known.target_neighbours[column].copy()
        seen["similarity"][0] = self.sequence.scores[pair]
        if "opponents" in seen:
            others = np.delete(self._columns[row], self.sequence.places[pair])
            seen["opponents"][others >= 0] = known.target[others[others >= 0]]
        return seen
