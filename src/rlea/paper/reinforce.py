"""REINFORCE with a baseline (Algorithm 1), an episode at a time.

Within an episode the policy stands still: all pairs are scored in one pass, the sequential part runs compiled
(`deck.play_deck`), and the steps are learned from in batches. Every random number is drawn from a generator made of the
seed and the number of the episode, so a run that is taken up again goes on exactly as if it had not been stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.paper.deck import Deck, Steps, play_deck, returns, rewards
from rlea.paper.env import EnvSettings
from rlea.paper.policy import GraphView, Policy, Value

PAIRS_AT_A_TIME = 1 << 20  # scored in one pass when nothing is learned: a quarter of a GB at 64 hidden units


SCALINGS = {"root": 0.5, "size": 1.0, "not": 0.0}  # powers of the batch's size


@dataclass(frozen=True)
class TrainSettings:
    """How the agent learns; where the paper is silent, what its authors' program does."""

    episodes: int = 500
    learning_rate: float = 0.0001
    discount: float = 0.95  # gamma
    discount_steps: bool = True  # the factor gamma^i of equation 7, which leaves the later steps of an episode unheard
    baseline: bool = True
    batch_steps: int = 8192  # steps per update: an episode of the 15K data; the paper updates after every step
    # How the rate grows with the size of a full batch (`batch_steps`, also where an episode has fewer steps), so that
    # fewer updates go about as far as the paper's, one per step: by its "root", as far as steps of random direction
    # go; by its "size", as far as steps of one direction go; or "not".
    scale_rate: str = "root"
    update_share: float = 1.0  # of the steps, drawn at random; the authors' program: 1/8
    valid_every: int = 20  # episodes between two looks at the validation links

    def __post_init__(self) -> None:
        for name in ("episodes", "batch_steps", "valid_every", "update_share"):
            if getattr(self, name) <= 0:
                raise InputError(f"the agent's setting {name} is {getattr(self, name)}", remedy="it must be above zero")
        if self.scale_rate not in SCALINGS:
            raise InputError(
                f"the agent's setting scale_rate is {self.scale_rate!r}", remedy=f"use one of {', '.join(SCALINGS)}"
            )


@dataclass(frozen=True, eq=False)
class Table:
    """A deck with the entities of its rows and places: what the network needs to score it."""

    deck: Deck
    source_ids: torch.Tensor  # (rows,)
    target_ids: torch.Tensor  # (rows, k), -1 for none

    def per_pair(self, values: torch.Tensor) -> torch.Tensor:
        """Values of (row, place), (rows, k, ...), in the order of the deck."""
        rows, places = (
            torch.as_tensor(ids.astype(np.int64), device=values.device) for ids in (self.deck.rows, self.deck.places)
        )
        return values[rows, places]


@dataclass
class Learner:
    """All that changes during training."""

    policy: Policy
    value: Value
    settings: TrainSettings
    policy_optimiser: torch.optim.Adam = field(init=False)
    value_optimiser: torch.optim.Adam = field(init=False)
    episode: int = 0

    def __post_init__(self) -> None:
        rate = self.settings.learning_rate * self.settings.batch_steps ** SCALINGS[self.settings.scale_rate]
        self.policy_optimiser = torch.optim.Adam(self.policy.parameters(), lr=rate)
        self.value_optimiser = torch.optim.Adam(self.value.parameters(), lr=rate)


@dataclass(frozen=True)
class EpisodeResult:
    """What one training episode came to (the curves of the paper's Figure 7)."""

    episode: int
    aligned: int  # right matches
    length: int  # decisions
    reward: float
    accepted: float  # share of the decisions that were matches


def match_probabilities(policy: Policy, source: GraphView, target: GraphView, table: Table) -> NDArray[np.float32]:
    """pi(match | s) of every pair of the deck."""
    step = max(PAIRS_AT_A_TIME // max(table.target_ids.shape[1], 1), 1)
    with torch.no_grad():
        parts = [
            policy(source, target, table.source_ids[begin : begin + step], table.target_ids[begin : begin + step])[
                ..., 1
            ]
            for begin in range(0, len(table.source_ids), step)
        ]
        result: NDArray[np.float32] = table.per_pair(torch.cat(parts)).exp().cpu().numpy()
    return result


def decode(deck: Deck, probability: NDArray[np.float32], draws: NDArray[np.float32] | None = None) -> Steps:
    """A test episode: nothing is skipped; a match where it is the likelier action, or drawn where `draws` are given."""
    never = np.zeros(len(deck), np.float32)
    if draws is None:
        return play_deck(
            deck, (probability >= 0.5).astype(np.float32), never, never, np.full(len(deck), 0.5, np.float32)
        )
    return play_deck(deck, probability, never, never, draws)


def run_episode(
    learner: Learner,
    source: GraphView,
    target: GraphView,
    table: Table,
    rules: EnvSettings,
    skip_rates: Callable[[int], NDArray[np.float32]],
    seed: int,
) -> EpisodeResult:
    """Play one episode and learn from it."""
    learner.episode += 1
    rng = np.random.default_rng([seed, learner.episode])
    deck = table.deck
    probability = match_probabilities(learner.policy, source, target, table)
    steps = roll_out(deck, probability, skip_rates(learner.episode), rules, rng)
    reward = rewards(
        deck,
        steps,
        true_match=rules.true_match,
        false_mismatch=rules.false_mismatch,
        false_match=rules.false_match,
        true_mismatch=rules.true_mismatch,
    )
    learn(learner, source, target, table, steps, returns(reward, learner.settings.discount), rng)
    matched = steps.actions == 1
    return EpisodeResult(
        learner.episode,
        int((matched & deck.labels[steps.pairs]).sum()),
        len(steps.pairs),
        float(reward.sum()),
        float(matched.mean()) if len(matched) else 0.0,
    )


def roll_out(
    deck: Deck,
    probability: NDArray[np.float32],
    skip_rate: NDArray[np.float32],
    rules: EnvSettings,
    rng: np.random.Generator,
) -> Steps:
    """The decisions of an episode, numbered by the deck's own order also where it is shuffled first."""
    size = len(deck)
    order = rng.permutation(size) if rules.random_order else np.arange(size)
    skip_draws, action_draws = rng.random(size, dtype=np.float32), rng.random(size, dtype=np.float32)
    if not rules.random_order:
        return play_deck(deck, probability, skip_rate, skip_draws, action_draws)
    shuffled = replace(deck, rows=deck.rows[order], columns=deck.columns[order])
    steps = play_deck(shuffled, probability[order], skip_rate[order], skip_draws[order], action_draws[order])
    return Steps(order[steps.pairs], steps.actions)


def learn(
    learner: Learner,
    source: GraphView,
    target: GraphView,
    table: Table,
    steps: Steps,
    return_: NDArray[np.float32],
    rng: np.random.Generator,
) -> None:
    """Equation 7 over the steps of an episode, in batches."""
    settings = learner.settings
    count = len(steps.pairs)
    chosen = rng.permutation(count)[: int(np.ceil(settings.update_share * count))]
    factor = settings.discount ** np.arange(count) if settings.discount_steps else np.ones(count)
    for begin in range(0, len(chosen), settings.batch_steps):
        part = np.sort(chosen[begin : begin + settings.batch_steps])
        update(
            learner,
            source,
            target,
            table,
            steps.pairs[part],
            torch.as_tensor(steps.actions[part].astype(np.int64)),
            torch.as_tensor(return_[part]),
            torch.as_tensor(factor[part].astype(np.float32)),
        )


def update(
    learner: Learner,
    source: GraphView,
    target: GraphView,
    table: Table,
    pairs: NDArray[np.int64],
    actions: torch.Tensor,  # (steps,)
    return_: torch.Tensor,  # (steps,) G
    factor: torch.Tensor,  # (steps,) gamma^i, or ones
) -> None:
    """One step of Adam for the policy along delta * grad log pi, and one for the baseline towards the return."""
    device = source.vectors.device
    # A source comes up with several of its candidates: its row is computed once.
    rows, own = np.unique(table.deck.rows[pairs].astype(np.int64), return_inverse=True)
    places = torch.as_tensor(table.deck.places[pairs].astype(np.int64), device=device)
    source_ids, target_ids = table.source_ids[rows], table.target_ids[rows]
    actions, return_, factor = actions.to(device), return_.to(device), factor.to(device)
    number = torch.as_tensor(own, device=device)
    advantage = return_
    if learner.settings.baseline:
        estimate = learner.value(source, target, source_ids, target_ids)[number, places]
        loss = (return_ - estimate).square().mean()
        learner.value_optimiser.zero_grad()
        loss.backward()
        learner.value_optimiser.step()
        advantage = return_ - estimate.detach()  # delta of equation 8
    log_probability = learner.policy(source, target, source_ids, target_ids)[number, places, actions]
    objective = -(factor * advantage * log_probability).mean()
    learner.policy_optimiser.zero_grad()
    objective.backward()
    learner.policy_optimiser.step()


def as_numbers(result: EpisodeResult) -> dict[str, Any]:
    """An episode's outcome for a record."""
    return {
        "episode": result.episode,
        "aligned": result.aligned,
        "length": result.length,
        "reward": result.reward,
        "accepted": result.accepted,
    }
