"""Two agents by the names of their presets: the default one (`context`) and the paper's."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rlea.agent.context import FORMAT, ContextAgent, ContextSettings
from rlea.io.agent_files import load_agent_file
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS

CONTEXT = "context"
PRESET_NAMES = (CONTEXT, *PRESETS)


def make_agent(
    preset: str, *, seed: int = 0, device: str = "auto", episodes: int | None = None
) -> Agent | ContextAgent:
    """An untrained agent; `episodes` replaces the preset's number."""
    if preset == CONTEXT:
        settings = ContextSettings() if episodes is None else ContextSettings(episodes=episodes)
        return ContextAgent(settings, seed=seed)
    chosen = PRESETS[preset]
    if episodes is not None:
        chosen = replace(chosen, train=replace(chosen.train, episodes=episodes))
    return Agent(chosen, seed=seed, device=device)


def load_agent(path: str | Path, *, device: str = "auto") -> Agent | ContextAgent:
    """An agent of either kind from its file."""
    about, _ = load_agent_file(path)
    return ContextAgent.load(path) if about.get("format") == FORMAT else Agent.load(path, device=device)


def describe_agent(agent: Agent | ContextAgent) -> dict[str, Any]:
    """What the record of a run says of the agent that decided it."""
    common = {"settings": asdict(agent.settings), "candidates": agent.settings.candidates, "history": agent.history}
    if isinstance(agent, ContextAgent):
        return {**common, "device": "cpu", "chosen": asdict(agent.chosen)}
    return {**common, "device": agent.device.type, "best_episode": agent.best_episode}
