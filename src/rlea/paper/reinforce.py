"""REINFORCE with a baseline (Algorithm 1 of the paper), one episode at a time.

The policy does not change within an episode: all pairs are scored in one pass, the sequential part runs compiled
(`episode.play`), and the steps are learned from in batches. Every random number comes from a generator made of the seed
and the number of the episode, so a resumed run continues exactly as if it had not been stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.models.torch_optimisers import descend
from rlea.paper.episode import EnvSettings, Floats, PairSequence, Steps, play, returns, rewards, skip_rates
from rlea.paper.policy import GraphView, Network, Policy, Value, check_settings

PAIRS_AT_A_TIME = 1 << 20  # scored in one pass when nothing is learned: a quarter of a GB at 64 hidden units
SCALINGS = {"root": 0.5, "size": 1.0, "not": 0.0}  # powers of the batch's size


@dataclass(frozen=True)
class TrainSettings:
    """How the agent learns; where the paper is silent, what its authors' program does."""

    episodes: int = 500
    learning_rate: float = 0.0001
    discount: float = 0.95  # gamma
    discount_steps: bool = True  # the factor gamma^i of equation 7, under which later steps of an episode hardly count
    baseline: bool = True
    batch_steps: int = 8192  # steps per update: an episode of the 15K data; the paper updates after every step
    # How the rate grows with the size of a full batch (`batch_steps`, also where an episode has fewer steps), so that
    # fewer updates go about as far as the paper's, one per step: by its "root", as far as steps of random direction
    # go; by its "size", as far as steps of one direction go; or "not".
    scale_rate: str = "root"
    update_share: float = 1.0  # of the steps, drawn at random; the authors' program: 1/8
    valid_every: int = 20  # episodes between two evaluations on the validation links

    def __post_init__(self) -> None:
        counts = "episodes", "batch_steps", "valid_every", "update_share"
        check_settings(self, counts, {"scale_rate": SCALINGS})


@dataclass(frozen=True, eq=False)
class PolicyInput:
    """A sequence of pairs with what the networks need to score it: the graphs, and the entities of its rows."""

    sequence: PairSequence
    source: GraphView
    target: GraphView
    source_ids: torch.Tensor  # (rows,)
    target_ids: torch.Tensor  # (rows, k), -1 for none

    def run(self, network: Network, rows: slice | NDArray[np.int64]) -> torch.Tensor:
        """What a network says of all candidates of some rows, (rows, k) or (rows, k, 2)."""
        result: torch.Tensor = network(self.source, self.target, self.source_ids[rows], self.target_ids[rows])
        return result

    def per_pair(self, values: torch.Tensor) -> torch.Tensor:
        """Values of (row, place), (rows, k, ...), in the order of the sequence."""
        places = self.sequence.rows, self.sequence.places
        return values[tuple(torch.as_tensor(ids.astype(np.int64), device=values.device) for ids in places)]


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

    def _parts(self) -> tuple[tuple[str, torch.nn.Module, torch.optim.Adam], ...]:
        return ("policy", self.policy, self.policy_optimiser), ("value", self.value, self.value_optimiser)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Weights and moments of the optimisers by name, for a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {}
        for title, network, optimiser in self._parts():
            arrays |= {f"{title}.{name}": tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
            for number, moments in optimiser.state_dict()["state"].items():
                arrays |= {f"{title}-adam.{number}.{name}": np.asarray(one.cpu()) for name, one in moments.items()}
        return arrays

    def load(self, tensors: dict[str, torch.Tensor]) -> None:
        """Take over what `arrays` gave."""
        for title, network, optimiser in self._parts():
            network.load_state_dict(under(tensors, f"{title}."))
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for name, tensor in under(tensors, f"{title}-adam.").items():
                number, key = name.split(".")
                moments.setdefault(int(number), {})[key] = tensor
            optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})


def under(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The entries whose name begins with a prefix, by the rest of their name."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def match_probabilities(policy: Policy, inputs: PolicyInput) -> Floats:
    """pi(match | s) of every pair of the sequence, (num_pairs,)."""
    size, k = inputs.target_ids.shape
    step = max(PAIRS_AT_A_TIME // max(k, 1), 1)
    with torch.no_grad():
        parts = [inputs.run(policy, slice(begin, begin + step))[..., 1] for begin in range(0, size, step)]
        result: Floats = inputs.per_pair(torch.cat(parts)).exp().cpu().numpy()
    return result


def decode(sequence: PairSequence, probability: Floats, draws: Floats | None = None) -> Steps:
    """A test episode: nothing is skipped; the likelier action is taken, or one drawn where `draws` are given."""
    never = np.zeros(len(sequence), np.float32)
    if draws is None:
        probability, draws = (probability >= 0.5).astype(np.float32), np.full(len(sequence), 0.5, np.float32)
    return play(sequence, probability, never, never, draws)


def run_episode(learner: Learner, inputs: PolicyInput, rules: EnvSettings, seed: int) -> dict[str, Any]:
    """Play one episode, learn from it, and return how it went (the curves of the paper's Figure 7)."""
    learner.episode += 1
    rng = np.random.default_rng([seed, learner.episode])
    sequence = inputs.sequence
    probability = match_probabilities(learner.policy, inputs)
    steps = roll_out(sequence, probability, skip_rates(sequence, learner.episode, rules), rules, rng)
    reward = rewards(sequence, steps, rules)
    learn(learner, inputs, steps, returns(reward, learner.settings.discount), rng)
    matched = steps.actions == 1
    return {
        "episode": learner.episode,
        "aligned": int((matched & sequence.labels[steps.pairs]).sum()),  # correct matches
        "length": len(steps.pairs),  # decisions
        "reward": float(reward.sum()),
        "accepted": float(matched.mean()) if len(matched) else 0.0,  # share of the decisions that were matches
    }


def roll_out(
    sequence: PairSequence, probability: Floats, skip_rate: Floats, rules: EnvSettings, rng: np.random.Generator
) -> Steps:
    """The decisions of a training episode; pairs keep their positions in the sequence even if it is shuffled first."""
    size = len(sequence)
    order = rng.permutation(size) if rules.random_order else np.arange(size)
    skip_draws, action_draws = rng.random(size, dtype=np.float32), rng.random(size, dtype=np.float32)
    shuffled = replace(sequence, rows=sequence.rows[order], columns=sequence.columns[order])
    steps = play(shuffled, probability[order], skip_rate[order], skip_draws[order], action_draws[order])
    return Steps(order[steps.pairs], steps.actions)


def learn(learner: Learner, inputs: PolicyInput, steps: Steps, return_: Floats, rng: np.random.Generator) -> None:
    """Equation 7 over the steps of an episode, in batches: a step of Adam for the baseline, and one for the policy."""
    settings, sequence = learner.settings, inputs.sequence
    count = len(steps.pairs)
    chosen = rng.permutation(count)[: int(np.ceil(settings.update_share * count))]
    factor = settings.discount ** np.arange(count) if settings.discount_steps else np.ones(count)  # gamma^i

    def tensor(values: NDArray[Any], kind: type) -> torch.Tensor:
        return torch.as_tensor(values.astype(kind), device=inputs.source.vectors.device)

    for begin in range(0, len(chosen), settings.batch_steps):
        part = np.sort(chosen[begin : begin + settings.batch_steps])
        # A source comes up with several of its candidates: its row is computed once.
        rows, own = np.unique(sequence.rows[steps.pairs[part]].astype(np.int64), return_inverse=True)
        pair = tensor(own, np.int64), tensor(sequence.places[steps.pairs[part]], np.int64)
        actions = tensor(steps.actions[part], np.int64)  # (steps,)
        advantage = target = tensor(return_[part], np.float32)  # (steps,) G
        if settings.baseline:
            estimate = inputs.run(learner.value, rows)[pair]
            descend(learner.value_optimiser, (target - estimate).square().mean())
            advantage = target - estimate.detach()  # delta of equation 8
        log_probability = inputs.run(learner.policy, rows)[*pair, actions]
        loss = -(tensor(factor[part], np.float32) * advantage * log_probability).mean()
        descend(learner.policy_optimiser, loss)
