"""The agent as a matcher: trained on the seeds of a task, then applied to its candidates.

There are no validation links here; `pipeline.decide` uses the agent itself, with these, a preset and a checkpoint.
"""

from __future__ import annotations

from rlea.graph import GraphPair
from rlea.matching import Matching, Task
from rlea.paper.agents import CONTEXT, make_agent


def match(task: Task, preset: str = CONTEXT) -> Matching:
    """One-to-one links by an agent that learns from `task.seeds`."""
    agent = make_agent(preset, seed=task.seed, device="cpu")
    agent.fit(GraphPair("task", task.source, task.target, task.seeds), task.candidates.embeddings)
    return agent.match(task)
