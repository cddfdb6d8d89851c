"""The deciders of experiments: their code, their settings, how agents are trained and asked.

`paper` is the agent as the paper describes it, `rlea` the agent of this package; all other deciders are matchers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rlea.agent import agent as aligner
from rlea.agent.agent import Aligner
from rlea.agent.overlap import RightLinks
from rlea.evaluation import metrics
from rlea.evidence import STRUCTURE
from rlea.evidence.collect import Evidence
from rlea.experiments.code_version import code_version
from rlea.experiments.options import SEED, Options
from rlea.experiments.store import plain
from rlea.graph import GraphPair, Ids
from rlea.matching import Matching, Task
from rlea.progress import Progress, silent
from rlea.result import Overlap
from rlea.search import candidates as search
from rlea.search.embeddings import Embeddings

if TYPE_CHECKING:
    from rlea.paper.agent import Agent
    from rlea.paper.presets import AgentSettings

DECIDERS = ("nearest", "csls", "rinf", "sinkhorn", "hungarian", "stable", "seq", "best-first", "paper", "rlea")
CALIBRATED = ("best-first", "rlea")  # deciders whose confidences are meant as probabilities

AGENT_CODE = aligner  # the module whose code decides


def module_of(decider: str) -> ModuleType:
    """The module that a decider's links come from."""
    from rlea.matchers import best_first, csls, hungarian, nearest, rinf, seq, sinkhorn, stable
    from rlea.paper import agent as paper

    classic = (nearest, csls, rinf, sinkhorn, hungarian, stable, seq, best_first)
    return dict(zip(DECIDERS, (*classic, paper, AGENT_CODE), strict=True))[decider]


def code_of(decider: str) -> str:
    """The version of the code that a decider's links come from; that of the vectors is in the vectors."""
    return code_version(module_of(decider), search, metrics)


def settings_of(decider: str, options: Options, candidates: int | None = None) -> dict[str, Any]:
    """What a decider is trained with, as a record has it; nothing for those that are not trained."""
    if decider == "paper":
        return dict(plain(asdict(paper_settings(options, candidates=candidates))))
    if decider == "rlea":
        return dict(plain(asdict(with_nearest(aligner.AgentSettings(), candidates))))
    return {}


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


def with_nearest(settings: aligner.AgentSettings, candidates: int | None) -> aligner.AgentSettings:
    """Settings with so many nearest by vectors per entity; None leaves them as they are."""
    return settings if candidates is None else replace(settings, nearest=candidates)


def train_agent(pair: GraphPair, vectors: Embeddings | None = None, progress: Progress = silent) -> Aligner:
    """An agent of structure and vectors, trained on the seeds; without vectors it still has to choose their weight."""
    given = [] if vectors is None else [vectors]
    return Aligner(channels=(STRUCTURE,), seed=SEED).fit(pair, given, progress=progress)


def decide(agent: Aligner, task: Task, candidates: int | None = None) -> Matching:
    """The agent's links; with `candidates`, from so many candidates per entity."""
    usual, given = agent.settings, task.candidates
    pair = GraphPair("task", task.source, task.target, train=task.seeds)
    try:
        agent.settings = with_nearest(usual, candidates)
        return agent.decide(pair, given.source_ids, given.target_ids, [given.embeddings]).last.matching
    finally:
        agent.settings = usual


def describe(agent: Agent | Aligner) -> dict[str, Any]:
    """What a record says of an agent beside its settings; of its history, the evaluations on validation links."""
    history = [row for row in agent.history if "valid_aligned" in row]
    if isinstance(agent, Aligner):
        return {"device": "cpu", "weights": asdict(agent.weights), "history": history}
    return {"device": agent.device.type, "best_episode": agent.best_episode, "history": history}


# ---- the agent with channels of evidence ----------------------------------------------------------------------------


def channel_settings(channels: Sequence[str]) -> dict[str, Any]:
    """Settings of an agent with some channels, as a record has them."""
    return dict(plain({"channels": list(channels), **asdict(aligner.AgentSettings())}))


def decide_by_channels(
    pair: GraphPair, evidence: Evidence, channels: Sequence[str], source_ids: Ids, target_ids: Ids, progress: Progress
) -> tuple[Matching, Overlap, dict[str, Any]]:
    """Links of an agent that is trained on a pair with some channels, how much is shared, and what it started from."""
    agent = Aligner(channels=channels, seed=SEED).fit(pair, evidence=evidence, progress=progress)
    outcome = agent.decide(pair, source_ids, target_ids)
    total = float(outcome.last.confidences.sum())
    right, most = outcome.right or RightLinks(total, total, total), min(len(source_ids), len(target_ids))
    return outcome.last.matching, Overlap.of(right, outcome.recall, most, len(pair.train)), outcome.bootstrap.as_dict()
