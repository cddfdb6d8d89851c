"""The checkpoint of the context agent's training: weights and history after every stage that is finished."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rlea.agent.context import ContextAgent


class Stages:
    """Weights and history after every finished stage of a training, in a file; nothing without one."""

    def __init__(self, path: str | Path | None, run: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.run = json.loads(json.dumps(run))
        self.weights: dict[str, dict[str, np.ndarray]] = {}
        self.histories: dict[str, list[dict[str, Any]]] = {}
        if self.path is not None and self.path.exists():
            from rlea.models.checkpoint import load_checkpoint

            arrays, state = load_checkpoint(self.path, self.run)
            self.histories = state["histories"]
            for name, array in arrays.items():
                stage, part = name.split("|")
                self.weights.setdefault(stage, {})[part] = np.array(array)

    def load(self, stage: str, agent: ContextAgent) -> bool:
        """Put the agent as it was after a stage; whether it was finished before."""
        if stage not in self.weights:
            return False
        assert agent.key is not None
        agent.key.load_state(self.weights[stage])
        agent.history = list(self.histories[stage])
        return True

    def save(self, stage: str, agent: ContextAgent) -> None:
        """Keep the agent as it is now, after a stage."""
        assert agent.key is not None
        self.weights[stage] = {name: array.copy() for name, array in agent.key.state().items()}
        self.histories[stage] = list(agent.history)
        if self.path is not None:
            from rlea.models.checkpoint import save_checkpoint

            arrays = {f"{s}|{name}": value for s, part in self.weights.items() for name, value in part.items()}
            save_checkpoint(self.path, arrays, {"run": self.run, "histories": self.histories})
