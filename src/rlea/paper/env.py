"""The alignment game as a Gymnasium environment: one candidate pair after another, match or mismatch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.paper.deck import Deck, skip_rates

MATCH, MISMATCH = 1, 0


@dataclass(frozen=True)
class EnvSettings:
    """Rules of the game. The paper leaves all but the rewards open; the defaults are its authors' program's."""

    true_match: float = 1.0  # rewards of equation 6
    false_mismatch: float = -10.0
    # The paper's 0 "elsewise", in two. With both at 0 a wrong match costs only what it blocks, later in the episode.
    false_match: float = 0.0
    true_mismatch: float = 0.0
    basic_skip_rate: float = 0.5  # p_s of equation 10
    skip_discount: float = 0.99  # eta
    least_skip_rate: float = 0.2  # p_s^min
    curriculum: bool = True  # skip by difficulty; without it every pair alike
    dynamics: bool = True  # skip at all; without it every episode has the same pairs
    random_order: bool = False  # the paper's RandEnv: shuffled anew in every episode, no curriculum, no skipping


class Vectors(NamedTuple):
    """What can be seen of the entities of the two pools."""

    source: NDArray[np.float32]  # (num_rows, dim)
    target: NDArray[np.float32]  # (num_columns, dim)
    source_neighbours: NDArray[np.float32]  # (num_rows, dim) means over the neighbourhood
    target_neighbours: NDArray[np.float32]  # (num_columns, dim)


class AlignmentEnv(gymnasium.Env[Any, Any]):
    """Decide candidate pairs in descending similarity; a match removes every other pair of its two entities.

    ## Action space
    `Discrete(2)`: 0 says mismatch (the entities stay in the game), 1 says match.

    ## Observation space
    A dictionary of boxes for the pair at hand: `source` and `target`, the vectors of its entities; `source_neighbours`
    and `target_neighbours`, the means of their neighbours' vectors (zeros where there are none); `opponents`, the
    vectors of the source's other candidates (zeros where there are fewer); `similarity`, the pair's score.
    `info["pair"]` is its number in the deck, for policies that score pairs by number.

    ## Reward
    With labels (training): +1 for a right match, -10 for mismatching a right pair, 0 otherwise; settable. Without
    labels (test time) the reward is always 0, and nothing is skipped.

    ## Episode end
    Terminated when no pair is left whose two entities are free. Never truncated.

    Every episode draws all its random numbers at `reset`, one to skip by for every pair, from `self.np_random`; the
    compiled path (`deck.play_deck`) given the same numbers plays the same episode.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, deck: Deck, vectors: Vectors, settings: EnvSettings | None = None) -> None:
        self.deck = deck
        self.settings = settings or EnvSettings()
        self._vectors = vectors
        dim, k = vectors.source.shape[1], int(deck.places.max(initial=0)) + 1
        self._columns = np.full((deck.num_rows, k), -1, dtype=np.int32)
        self._columns[deck.rows, deck.places] = deck.columns
        shapes = {
            "source": (dim,),
            "target": (dim,),
            "source_neighbours": (dim,),
            "target_neighbours": (dim,),
            "opponents": (k - 1, dim),
            "similarity": (1,),
        }
        largest = max((float(np.abs(array).max(initial=1.0)) for array in self._vectors), default=1.0)
        bounds = dict.fromkeys(shapes, largest) | {"similarity": float(np.abs(deck.scores).max(initial=1.0))}
        self.observation_space = spaces.Dict(
            {
                name: spaces.Box(-bounds[name], bounds[name], shape, np.float32)
                for name, shape in shapes.items()
                if 0 not in shape
            }
        )
        self.action_space = spaces.Discrete(2)
        self.episode = 0
        self._order: NDArray[np.intp] = np.arange(len(deck))
        self._place = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
        """Begin the next episode; `options={"episode": t}` says which one the curriculum is in."""
        super().reset(seed=seed)
        before = self.episode if seed is None else 0  # the same seed is the same episode, whatever was played before
        self.episode = int((options or {}).get("episode", before + 1))
        size = len(self.deck)
        self._order = self.np_random.permutation(size) if self.settings.random_order else np.arange(size)
        self.skip_rate = self.skip_rates(self.episode)
        self.skip_draws = self.np_random.random(size, dtype=np.float32)
        while size and (self.skip_draws < self.skip_rate).all():  # of a small deck all may be skipped: drawn again
            if (self.skip_rate >= 1).all():
                raise InputError("every pair is skipped", remedy="give skip rates below 1")
            self.skip_draws = self.np_random.random(size, dtype=np.float32)
        self._free_row = np.ones(self.deck.num_rows, np.bool_)
        self._free_column = np.ones(self.deck.num_columns, np.bool_)
        self._place = 0
        self._advance()
        return self._observe(), self._info()

    def step(self, action: int) -> tuple[dict[str, NDArray[np.float32]], float, bool, bool, dict[str, Any]]:
        """Decide the pair at hand and move on to the next that comes up."""
        if self._place >= len(self._order):
            raise InputError("the episode is over", remedy="call reset first")
        pair = self._order[self._place]
        reward = 0.0
        if self.deck.is_labelled:
            rules = self.settings
            if self.deck.labels[pair]:
                reward = rules.true_match if action == MATCH else rules.false_mismatch
            else:
                reward = rules.false_match if action == MATCH else rules.true_mismatch
        if action == MATCH:
            self._free_row[self.deck.rows[pair]] = False
            self._free_column[self.deck.columns[pair]] = False
        self._place += 1
        self._advance()
        done = self._place >= len(self._order)
        return self._observe(), reward, done, False, self._info()

    def skip_rates(self, episode: int) -> NDArray[np.float32]:
        """Skip rates of an episode under this environment's variant; zeros at test time."""
        rules = self.settings
        if not self.deck.is_labelled or rules.random_order or not rules.dynamics:
            return np.zeros(len(self.deck), np.float32)
        return skip_rates(
            self.deck,
            episode,
            basic=rules.basic_skip_rate,
            discount=rules.skip_discount,
            least=rules.least_skip_rate,
            curriculum=rules.curriculum,
        )

    def _advance(self) -> None:
        """Go to the next pair with two free entities that is not skipped."""
        deck = self.deck
        while self._place < len(self._order):
            pair = self._order[self._place]
            is_free = self._free_row[deck.rows[pair]] and self._free_column[deck.columns[pair]]
            if is_free and not self.skip_draws[pair] < self.skip_rate[pair]:
                return
            self._place += 1

    def _info(self) -> dict[str, Any]:
        return {"pair": int(self._order[self._place]) if self._place < len(self._order) else -1}

    def _observe(self) -> dict[str, NDArray[np.float32]]:
        space = self.observation_space
        assert isinstance(space, spaces.Dict)
        seen = {name: np.zeros(box.shape or (), np.float32) for name, box in space.items()}
        if self._place >= len(self._order):
            return seen
        pair = self._order[self._place]
        row, column = self.deck.rows[pair], self.deck.columns[pair]
        known = self._vectors
        seen["source"], seen["target"] = known.source[row].copy(), known.target[column].copy()
        seen["source_neighbours"] = known.source_neighbours[row].copy()
        seen["target_neighbours"] = known.target_neighbours[column].copy()
        seen["similarity"][0] = self.deck.scores[pair]
        if "opponents" in seen:
            others = np.delete(self._columns[row], self.deck.places[pair])
            seen["opponents"][others >= 0] = known.target[others[others >= 0]]
        return seen
