"""All that is chosen about an agent before training, and the choices that have a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlea.errors import InputError
from rlea.paper.episode import EnvSettings
from rlea.paper.policy import PolicySettings
from rlea.paper.reinforce import TrainSettings


@dataclass(frozen=True)
class AgentSettings:
    """Everything about an agent that is chosen before training."""

    candidates: int = 10  # per source, as in the paper
    pool: str = "seeds"  # targets met in training: those of the "seeds", as test pools are made, or "all"
    tau: float = 1.0  # of the difficulty
    best_of: str = "source"  # whose best similarity difficulty is measured from: "source" (paper) or "all" (program)
    sampled: bool = False  # draw actions when decoding, as the authors' program does, in place of the likelier one
    complete: bool = False  # match by similarity what the agent left over among its candidates
    env: EnvSettings = field(default_factory=EnvSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    train: TrainSettings = field(default_factory=TrainSettings)

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise InputError(f"the agent's setting candidates is {self.candidates}", remedy="it must be above zero")
        for name, known in (("pool", ("seeds", "all")), ("best_of", ("source", "all"))):
            if getattr(self, name) not in known:
                raise InputError(
                    f"the agent's setting {name} is {getattr(self, name)!r}", remedy=f"use {' or '.join(known)}"
                )


PRESETS: dict[str, AgentSettings] = {
    # As the text of the paper says.
    "paper": AgentSettings(),
    # As the authors' program behaves: all layers start at zero, one linear layer, the best similarity of all pairs in
    # the difficulty, one step in eight learned from, no gamma^i, actions drawn at test time. One number is all that can
    # be learned then, and every update moves it the same way, so larger batches at a larger rate go about as far.
    "released": AgentSettings(
        best_of="all",
        sampled=True,
        policy=PolicySettings(activation=False, zero_start=True),
        train=TrainSettings(update_share=0.125, discount_steps=False, batch_steps=64, scale_rate="size"),
    ),
    # The paper's ablations.
    "paper-no-estimator": AgentSettings(policy=PolicySettings(estimator=False)),
    "paper-random": AgentSettings(env=EnvSettings(random_order=True)),
}


def settings_of(values: dict[str, Any]) -> AgentSettings:
    """Settings from their dictionary."""
    nested = {"env": EnvSettings, "policy": PolicySettings, "train": TrainSettings}
    return AgentSettings(**{key: nested[key](**value) if key in nested else value for key, value in values.items()})
