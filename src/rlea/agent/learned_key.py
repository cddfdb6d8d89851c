"""The policy of the context agent: what a pair is worth, learned on top of best-first's key.

    worth(s, t) = scale * (key(s, t) - nobody) + correction(features of (s, t))

`key` is best-first's, `correction` a small network that begins at zero: training starts at the strongest order that
nobody had to learn, and what it learns is what that order gets wrong. The worth is a logit: of a source's pairs, and of
nobody with the worth 0, the softmax says whom to match; a worth of 0 is where matching and not matching are level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rlea.agent.memory import Floats
from rlea.agent.sight import COLUMNS, GROUPS

ROWS_AT_A_TIME = 1 << 17


@dataclass(frozen=True)
class NetworkSettings:
    """A network that says what pairs are worth, and how it is trained."""

    hidden: int = 32  # two layers of it
    rate: float = 3e-3  # Adam's
    decay: float = 1e-4
    epochs: int = 100  # of supervision, over all examples at once


@dataclass(frozen=True)
class KeySettings(NetworkSettings):
    """The same on top of best-first's key."""

    start_scale: float = 8.0  # one over best-first's temperature
    start_nobody: float = 0.3  # best-first's key at which nobody is as likely
    without: tuple[str, ...] = ()  # groups of features that are not seen (for measuring what they add)

    def __post_init__(self) -> None:
        unknown = [name for name in self.without if name not in GROUPS]
        if unknown:
            raise ValueError(f"no such group of features: {', '.join(unknown)}")


class LearnedKey(nn.Module):
    """Worth of pairs from their features and keys."""

    mean: torch.Tensor
    spread: torch.Tensor
    seen: torch.Tensor

    def __init__(self, settings: KeySettings) -> None:
        super().__init__()
        width = len(COLUMNS)
        self.scale = nn.Parameter(torch.tensor(settings.start_scale))
        self.nobody = nn.Parameter(torch.tensor(settings.start_nobody))
        self.correction = nn.Sequential(
            nn.Linear(width, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, settings.hidden),
            nn.ReLU(),
            nn.Linear(settings.hidden, 1),
        )
        last = self.correction[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        hidden_from = {name for group in settings.without for name in GROUPS[group]}
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))
        self.register_buffer("seen", torch.tensor([float(name not in hidden_from) for name in COLUMNS]))

    def measure(self, features: Floats) -> None:
        """Take mean and spread of the features that training meets, by which they are brought to one scale."""
        self.mean.copy_(torch.from_numpy(features.mean(axis=0)))
        self.spread.copy_(torch.from_numpy(np.maximum(features.std(axis=0), 1e-3)))

    def forward(self, features: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        scaled = (features - self.mean) / self.spread * self.seen
        result: torch.Tensor = self.scale * (keys - self.nobody) + self.correction(scaled)[:, 0]
        return result

    def worth(self, features: Floats, keys: Floats) -> Floats:
        """The same for any number of pairs, without gradients."""
        return worth_in_parts(self, features, keys)


def worth_in_parts(key: nn.Module, features: Floats, keys: Floats) -> Floats:
    """What a network makes of features and keys, (num_pairs,), so many rows at a time and without gradients."""
    result = np.empty(len(keys), np.float32)
    with torch.no_grad():
        for low in range(0, len(keys), ROWS_AT_A_TIME):
            part = slice(low, low + ROWS_AT_A_TIME)
            result[part] = key(torch.from_numpy(features[part]), torch.from_numpy(keys[part])).numpy()
    return result


@dataclass(frozen=True, eq=False)
class Examples:
    """Pairs of entities whose link was held out, in groups: one entity's pairs each, with the true one or none."""

    features: Floats  # (num_pairs, len(COLUMNS))
    keys: Floats  # (num_pairs,)
    places: NDArray[np.int64]  # (num_places,) pairs of the groups, one group after another
    starts: NDArray[np.int64]  # (num_groups + 1,)
    truths: NDArray[np.int64]  # (num_groups,) the pair, or -1 where nobody is right: its counterpart is not among them

    @staticmethod
    def join(parts: list[Examples]) -> Examples:
        """All examples of several scenes, or of several states of one."""
        shifts = np.cumsum([0] + [len(part.keys) for part in parts[:-1]])
        starts, total = [np.zeros(1, np.int64)], 0
        for part in parts:  # one may be without a group
            starts.append(part.starts[1:] + total)
            total += int(part.starts[-1])
        return Examples(
            np.concatenate([part.features for part in parts]),
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.places + shift for part, shift in zip(parts, shifts, strict=True)]),
            np.concatenate(starts),
            np.concatenate(
                [np.where(part.truths < 0, -1, part.truths + shift) for part, shift in zip(parts, shifts, strict=True)]
            ),
        )


def supervise(key: nn.Module, examples: Examples, settings: NetworkSettings, epochs: int) -> list[float]:
    """Raise the chance of the true pair among all pairs of its source, and of its target, and nobody; the losses.

    The loss of a group is log(1 + sum of exp(worth)) - worth(true pair); without the second term where nobody is right.
    """
    features, keys = torch.from_numpy(examples.features), torch.from_numpy(examples.keys)
    places = torch.from_numpy(examples.places)
    sizes = np.diff(examples.starts)
    groups = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    truths = torch.from_numpy(examples.truths[examples.truths >= 0])
    optimiser = torch.optim.Adam(key.parameters(), lr=settings.rate, weight_decay=settings.decay)
    losses = []
    for _ in range(epochs):
        worth = key(features, keys)
        loss = (_log_totals(worth[places], groups, len(sizes)).sum() - worth[truths].sum()) / len(sizes)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    return losses


def _log_totals(values: torch.Tensor, groups: torch.Tensor, count: int) -> torch.Tensor:
    """log(1 + sum of exp(value)) of every group."""
    highest = values.new_zeros(count).scatter_reduce(0, groups, values.detach(), "amax")  # at least 0: nobody's
    sums = torch.exp(-highest).index_add(0, groups, torch.exp(values - highest[groups]))
    return highest + torch.log(sums)


@dataclass(frozen=True, eq=False)
class Trial:
    """A scene for reinforcement: its pairs in full, and which of them are right or wrong for certain."""

    features: Floats
    keys: Floats
    source_ids: NDArray[np.int32]
    target_ids: NDArray[np.int32]
    rewards: NDArray[np.float32]  # (num_pairs,) of matching it: 1 right, -1 wrong, 0 where nothing is known


@numba.njit(cache=True)
def play_episode(order, source_ids, target_ids, rewards, chances, draws, num_source, num_target):  # type: ignore[no-untyped-def]
    """Walk down the order; of a pair whose entities are both free, match it if the draw is below its chance.

    Returns the actions (1 match, 0 mismatch, -1 never met), and what every source and target entity got in the end.
    """
    actions = np.full(len(order), -1, np.int8)
    free_source, free_target = np.ones(num_source, np.bool_), np.ones(num_target, np.bool_)
    got_source, got_target = np.zeros(num_source, np.float32), np.zeros(num_target, np.float32)
    for pair in order:
        s, t = source_ids[pair], target_ids[pair]
        if not free_source[s] or not free_target[t]:
            continue
        actions[pair] = draws[pair] < chances[pair]
        if actions[pair] == 1:
            free_source[s], free_target[t] = False, False
            got_source[s], got_target[t] = rewards[pair], rewards[pair]
    return actions, got_source, got_target


def reinforce(
    key: LearnedKey, trials: list[Trial], settings: ReinforceSettings, episodes: int, seed: int, on_episode: Any = None
) -> list[dict[str, float]]:
    """REINFORCE: episodes in which match or mismatch is drawn, judged against the same episode decided without draws.

    A decision about (s, t) touches only what s and t get in the end. Its return is what these two got, its baseline
    what they get where every decision is the likelier one (self-critical), and the policy moves along
    (return - baseline) * gradient of log pi(decision).
    """
    optimiser = torch.optim.Adam(key.parameters(), lr=settings.rate)
    history = []
    for episode in range(episodes):
        trial = trials[episode % len(trials)]
        random = np.random.default_rng([seed, 5, episode])
        worth = key.worth(trial.features, trial.keys)
        order = np.argsort(-worth, kind="stable")
        chances = 1 / (1 + np.exp(-worth.astype(np.float64)))
        size = (int(trial.source_ids.max()) + 1, int(trial.target_ids.max()) + 1)
        fixed = (order, trial.source_ids, trial.target_ids, trial.rewards)
        draws = random.random(len(order))
        actions, got_source, got_target = play_episode(*fixed, chances, draws, *size)
        _, base_source, base_target = play_episode(*fixed, chances, np.full(len(order), 0.5), *size)
        better = (got_source - base_source)[trial.source_ids] + (got_target - base_target)[trial.target_ids]
        chosen = np.flatnonzero((actions >= 0) & (better != 0))
        if len(chosen):
            logits = key(torch.from_numpy(trial.features[chosen]), torch.from_numpy(trial.keys[chosen]))
            taken = torch.from_numpy(actions[chosen].astype(np.float32))
            log_pi = -nn.functional.binary_cross_entropy_with_logits(logits, taken, reduction="none")
            loss = -(log_pi * torch.from_numpy(better[chosen])).sum() / len(chosen)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(key.parameters(), settings.clip)
            optimiser.step()
        row = {
            "reward": float(got_source.sum()),
            "aligned": float((got_source > 0).sum()),
            "length": float((actions >= 0).sum()),
            "aligned_undrawn": float((base_source > 0).sum()),
            "reward_undrawn": float(base_source.sum()),
        }
        history.append(row)
        if on_episode is not None:
            on_episode(row)
    return history


@dataclass(frozen=True)
class ReinforceSettings:
    """REINFORCE's own."""

    rate: float = 3e-4
    clip: float = 1.0
