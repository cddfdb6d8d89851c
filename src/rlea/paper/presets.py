"""Settings of the paper's agent, and the presets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rlea.paper.episode import EnvSettings
from rlea.paper.policy import PolicySettings, check_settings
from rlea.paper.reinforce import TrainSettings


@dataclass(frozen=True)
class AgentSettings:
    """All settings of an agent."""

    candidates: int = 10  # per source, as in the paper
    pool: str = "seeds"  # targets in training: those of the "seeds", as test pools are made, or "all"
    tau: float = 1.0  # of the difficulty, equation 9
    best_of: str = "source"  # whose best similarity difficulty is measured from: "source" (paper) or "all" (program)
    sampled: bool = False  # draw actions when decoding, as the authors' program does, in place of the likelier one
    complete: bool = False  # match by similarity what the agent left unmatched among its candidates
    env: EnvSettings = field(default_factory=EnvSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    train: TrainSettings = field(default_factory=TrainSettings)

    def __post_init__(self) -> None:
        check_settings(self, ("candidates",), {"pool": ("seeds", "all"), "best_of": ("source", "all")})


PRESETS: dict[str, AgentSettings] = {
    # As the text of the paper says.
    "paper": AgentSettings(),
    # As the authors' program behaves: all layers start at zero, one linear layer, the best similarity of all pairs in
    # the difficulty, one step in eight used for learning, no gamma^i, actions drawn at test time. Only one number can
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
