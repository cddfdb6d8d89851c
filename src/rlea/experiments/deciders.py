"""What experiments ask of the agents. No other module of the experiments names an agent's class.

`paper` is the agent as the paper describes it, `rlea` the agent of this package; all other deciders are matchers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rlea.agent import context, fused, joint
from rlea.agent.context import ContextAgent
from rlea.evaluation import metrics
from rlea.evidence.channels import Evidence
from rlea.experiments.code_version import code_version
from rlea.experiments.options import SEED, Options
from rlea.experiments.store import plain
from rlea.graph import GraphPair, Ids
from rlea.matchers import MATCHERS
from rlea.matching import Matching, Task
from rlea.progress import Progress, silent
from rlea.search import candidates as search
from rlea.search.embeddings import Embeddings

if TYPE_CHECKING:
    from rlea.paper.agent import Agent
    from rlea.paper.presets import AgentSettings

DECIDERS = ("nearest", "csls", "rinf", "sinkhorn", "hungarian", "stable", "seq", "best-first", "paper", "rlea")
CALIBRATED = ("best-first", "rlea")  # deciders whose confidences are meant as probabilities

TrainedAgent = ContextAgent
# Modules whose code decides: of a trained agent, of joint rounds, of an agent with channels of evidence.
AGENT_CODE, JOINT_CODE, EVIDENCE_CODE = context, joint, fused


def module_of(decider: str) -> ModuleType:
    """The module that a decider's links come from."""
    if decider == "paper":
        from rlea.paper import agent as module

        return module
    return AGENT_CODE if decider == "rlea" else import_module(f"rlea.{MATCHERS[decider].module}")


def code_of(decider: str) -> str:
    """The version of the code that a decider's links come from; that of the vectors is in the vectors."""
    return code_version(module_of(decider), search, metrics)


def settings_of(decider: str, options: Options, candidates: int | None = None) -> dict[str, Any]:
    """What a decider is trained with, as a record has it; nothing for those that are not trained."""
    if decider not in ("paper", "rlea"):
        return {}
    settings: Any = paper_settings(options) if decider == "paper" else ContextAgent().settings
    return dict(plain(asdict(settings if candidates is None else replace(settings, candidates=candidates))))


# ---- the paper's agent ----------------------------------------------------------------------------------------------


def paper_settings(options: Options, preset: str = "paper", candidates: int | None = None) -> AgentSettings:
    """The agent as in the paper, or a preset near it; of few episodes in a quick run."""
    from rlea.paper.presets import PRESETS  # imported on use, as the agent itself below: torch takes seconds to load

    settings = PRESETS[preset]
    if candidates is not None:
        settings = replace(settings, candidates=candidates)
    if options.episodes is None:
        return settings
    return replace(settings, train=replace(settings.train, episodes=options.episodes))


def train_paper_agent(
    settings: AgentSettings, pair: GraphPair, vectors: Embeddings, options: Options, progress: Progress
) -> Agent:
    """The paper's agent, trained on the seeds of a pair."""
    from rlea.paper.agent import Agent

    return Agent(settings, seed=SEED, device=options.agent_device).fit(pair, vectors, progress=progress)


# ---- the agent of this package --------------------------------------------------------------------------------------


def train_agent(pair: GraphPair, vectors: Embeddings | None = None, progress: Progress = silent) -> TrainedAgent:
    """An agent trained on the seeds of a pair; without vectors it still has to choose how much those count."""
    return ContextAgent(seed=SEED).fit(pair, vectors, progress=progress)


def load_agent(path: Path) -> TrainedAgent:
    """An agent from its file."""
    return ContextAgent.load(path)


def choose_weights(agent: TrainedAgent, pair: GraphPair, vectors: Embeddings, progress: Progress) -> None:
    """Choose how much the vectors count, on validation links."""
    agent.choose(pair, vectors, progress=progress)


def decide(agent: TrainedAgent, task: Task, candidates: int | None = None) -> Matching:
    """The agent's links; with `candidates`, from so many candidates per entity."""
    usual = agent.settings
    try:
        agent.settings = usual if candidates is None else replace(usual, candidates=candidates)
        return agent.match(task)
    finally:
        agent.settings = usual


def describe(agent: Agent | TrainedAgent) -> dict[str, Any]:
    """What a record says of an agent beside its settings; of its history, the evaluations on validation links."""
    from rlea.paper.agents import describe_agent

    about = describe_agent(agent)
    evaluations = [row for row in about.pop("history") if "valid_aligned" in row]
    del about["settings"]
    return {**about, "history": evaluations}


def train_jointly(
    pair: GraphPair,
    embed: Callable[[GraphPair, int], Embeddings],
    num_rounds: int,
    agent: TrainedAgent,
    on_round: Callable[[int, TrainedAgent, Embeddings], None],
    progress: Progress,
) -> list[dict[str, Any]]:
    """Train a model and the agent in turn; what is noted of every round."""
    trained = joint.train_jointly(pair, embed, num_rounds, seed=SEED, progress=progress, agent=agent, on_round=on_round)
    return trained.rounds


# ---- the agent with channels of evidence ----------------------------------------------------------------------------


def channel_settings(channels: Sequence[str]) -> dict[str, Any]:
    """Settings of an agent with some channels, as a record has them."""
    return dict(plain(asdict(fused.FusionSettings(channels=tuple(channels)))))


def decide_by_channels(
    pair: GraphPair, evidence: Evidence, channels: Sequence[str], source_ids: Ids, target_ids: Ids, progress: Progress
) -> tuple[Matching, dict[str, Any]]:
    """Links of an agent that is trained on a pair with some channels, and what it started from."""
    agent = fused.FusedAgent(fused.FusionSettings(channels=tuple(channels)), seed=SEED)
    agent.fit(pair, evidence=evidence, progress=progress)
    assert agent.beginning is not None
    return agent.decide(source_ids, target_ids)[-1].matching, agent.beginning.as_dict()
