"""What all channels say together: a small network, trained on links that were held out.

    worth(pair) = scale * (key - nobody) + correction(features of the pair)

As for `LearnedKey` of the agent that looks at structure alone, a worth is a logit: of an entity's pairs, and of nobody
with the worth 0, the softmax says who is the counterpart.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from rlea.agent.learned_key import Examples, NetworkSettings, supervise, worth_in_parts
from rlea.agent.memory import Floats


class Weigher(nn.Module):
    """Worth of pairs from their features and a key that is worth something already."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __init__(self, width: int, hidden: int, scale: float, nobody: float = 0.0) -> None:
        super().__init__()
        self.scale, self.nobody = nn.Parameter(torch.tensor(scale)), nn.Parameter(torch.tensor(nobody))
        last = nn.Linear(hidden, 1)
        self.correction = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def forward(self, features: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        correction: torch.Tensor = self.correction((features - self.mean) / self.spread)[:, 0]
        return self.scale * (keys - self.nobody) + correction

    def worth(self, features: Floats, keys: Floats) -> Floats:
        """For any number of pairs, without gradients."""
        return worth_in_parts(self, features, keys)


def make_weigher(examples: Examples, settings: NetworkSettings, scale: float, seed: int) -> Weigher:
    """Untrained, with the features of the examples brought to one scale."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        weigher = Weigher(examples.features.shape[1], settings.hidden, scale)
    weigher.mean.copy_(torch.from_numpy(examples.features.mean(axis=0)))
    weigher.spread.copy_(torch.from_numpy(np.maximum(examples.features.std(axis=0), 1e-3)))
    return weigher


def train(weigher: Weigher, examples: Examples, settings: NetworkSettings) -> list[float]:
    """Raise the chance of the true pair among the pairs of its source, and of its target, and nobody; the losses."""
    return supervise(weigher, examples, settings, settings.epochs)
