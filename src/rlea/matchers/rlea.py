"""The agent of the paper as a matcher: trained on the seeds of the task, then let loose on its candidates.

This is the plain way, without validation links; `pipeline.decide` uses the agent itself, with these, a preset and a
checkpoint.
"""

from __future__ import annotations

from rlea.agent.agent import Agent
from rlea.agent.presets import AgentSettings
from rlea.graph import GraphPair
from rlea.matching import Matching, Task


def match(task: Task, settings: AgentSettings | None = None) -> Matching:
    """One-to-one links by an agent that learns from `task.seeds`; the confidence is the policy's probability."""
    agent = Agent(settings or "paper", seed=task.seed)
    agent.fit(GraphPair("task", task.source, task.target, task.seeds), task.candidates.embeddings)
    return agent.match(task)
