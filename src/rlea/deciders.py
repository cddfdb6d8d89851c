"""Who decides: the agent, PARIS, the paper's agent, or one of the classic matchers. All see the same inputs.

A decider is a function of `Inputs`, which hold no gold link, and returns a `Decision`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rlea import peak_memory
from rlea.evidence import CHANNELS, DICTIONARY, STRUCTURE
from rlea.graph.schema import Schema
from rlea.matchers import MATCHERS
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    from rlea.agent.agent import Aligner
    from rlea.agent.kept import Kept
    from rlea.agent.overlap import RightLinks
    from rlea.agent.trace import Trace
    from rlea.evidence.channel import Channel
    from rlea.evidence.dictionary.channel import Entry
    from rlea.graph import GraphPair, Ids
    from rlea.matching import Matching, Task
    from rlea.paper.agent import Agent
    from rlea.search.candidates import CandidateLists, Candidates
    from rlea.search.embeddings import Embeddings
    from rlea.settings import AlignSettings

# Pairs up to which `auto` searches exactly: 20 s of one core for names (from 10,000 a side on the index is no slower),
# about two minutes on two cores for dense vectors of 64 to 100 dimensions.
MOST_EXACT_NAMES, MOST_EXACT_VECTORS = 40_000**2, 200_000**2
NEAREST = 10  # best pairs of every entity that count as its candidates, where channels proposed them


class Clock:
    """Seconds by stage; a stage entered again starts anew."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class Decision:
    """Links, and what there is to tell about them."""

    matching: Matching
    candidates: CandidateLists  # the pairs that were weighed, the best of every entity
    trace: Trace | None = None  # what was decided, step by step
    schema: Schema = field(default_factory=Schema)  # what corresponds besides entities
    info: dict[str, Any] = field(default_factory=dict)  # for the record
    contributions: Callable[[Matching], list[dict[str, Any]]] | None = None  # what channels contributed to links
    right: RightLinks | None = None  # how many of the links are; None where confidences are not calibrated
    recall: float = 1.0  # share of all right links that are among them, as far as is known
    kept: Kept | None = None  # what the run keeps so that it can go on
    dictionary: tuple[Entry, ...] = ()  # that was learned


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that a decider may see. Vectors and candidates are made on first use and shared by all deciders of a run."""

    pair: GraphPair  # without gold, and without what is hidden
    named: GraphPair  # without gold; identifiers as in the files, under which vectors are stored
    source_ids: Ids
    target_ids: Ids
    settings: AlignSettings
    clock: Clock = field(default_factory=Clock)
    device: str = "auto"
    checkpoint: Path | None = None  # beside which trainings are kept
    deciders: tuple[str, ...] = ()  # all of a comparison; their compiled code is loaded at once
    progress: Progress = silent
    shared: dict[Any, Any] = field(default_factory=dict)  # between the deciders of one comparison

    def begin(self, settings: AlignSettings) -> Inputs:
        """The same inputs for a decider that begins now: its seconds and its peak memory are its own."""
        for stage in ("train", "match"):
            self.clock.seconds.pop(stage, None)
        peak_memory.reset_peak()
        self.progress("match", 0, 1, settings.matcher)
        return replace(self, settings=settings)

    @property
    def vectors(self) -> list[Embeddings]:
        """Those of every embedding that the settings name."""
        missing = [name for name in self.settings.embedding if ("vectors", name) not in self.shared]
        if missing:
            with self.clock("embed"):
                for name in missing:
                    self.shared["vectors", name] = self._embed(name, self.pair)
        return [self.shared["vectors", name] for name in self.settings.embedding]

    def embed_again(self, pair: GraphPair, number: int) -> Embeddings:
        """Vectors of the first embedding, trained on a pair with more seeds; round 0 is the pair itself."""
        return self._embed(self.settings.embedding[0], pair, number)

    def _embed(self, name: str, pair: GraphPair, number: int = 0) -> Embeddings:
        from rlea.models import MODELS
        from rlea.models.embed import embed_entities
        from rlea.search.name_pieces import embed_name_pieces

        is_model = name in MODELS
        # The index of names makes its own vectors, with a third of the work.
        if name == "names" and self.search_kind == "approximate":
            return embed_name_pieces(pair, self.progress)
        return embed_entities(
            pair if is_model else self.named,
            name,
            seed=self.settings.seed,
            progress=self.progress,
            device=self.device,
            checkpoint=checkpoint_of(self.checkpoint, name, number),
            hidden=self.settings.hide,
        )

    @property
    def search_kind(self) -> str:
        """Whether candidates are searched exactly or approximately."""
        return choose_search(self.settings, len(self.source_ids), len(self.target_ids))

    @property
    def candidates(self) -> Candidates:
        """The nearest partners of every entity, both ways, by the first embedding."""
        if "candidates" not in self.shared:
            vectors = self.vectors[0]
            self._load_compiled(vectors)
            with self.clock("candidates"):
                found, search = self._search(vectors)
                found = found.allowed(self.pair.cannot_link)
                _ = found.pairs  # shared by all deciders, so not charged to the first
            self.shared["candidates"], self.shared["search"] = found, search
        return cast("Candidates", self.shared["candidates"])

    @property
    def search(self) -> dict[str, Any]:
        """How candidates were found, for the record."""
        return dict(self.shared.get("search", {"kind": "evidence"}))

    def _search(self, vectors: Embeddings) -> tuple[Candidates, dict[str, Any]]:
        settings, pools = self.settings, (self.source_ids, self.target_ids)
        asked = {"asked": settings.search}
        if self.search_kind == "exact":
            from rlea.search.candidates import find_candidates

            return find_candidates(vectors, *pools, settings.candidates, self.progress), {**asked, "kind": "exact"}
        from rlea.search.approximate import search_approximately
        from rlea.search.name_index import search_names
        from rlea.search.name_pieces import NamePieces

        more: dict[str, Any] = {"seed": settings.seed, "progress": self.progress}
        if isinstance(vectors, NamePieces):
            by_name = search_names(vectors, *pools, settings.candidates, **more)
            return by_name.candidates, {**asked, **by_name.as_dict()}
        found = search_approximately(vectors, *pools, settings.candidates, **more)
        return found.candidates, {**asked, **found.as_dict()}

    def _load_compiled(self, vectors: Embeddings) -> None:
        """Load compiled code on a toy task, so that timings are of the work and not of compiling."""
        from rlea.matching import toy_task

        with self.clock("compile"):
            self.progress("compile matchers", 0, 1, "once, then kept on disk")
            task = toy_task(vectors)
            toy = task.candidates
            if self.search_kind == "approximate" and vectors.is_sparse:
                from rlea.search.name_index import search_names

                search_names((task.source, task.target), toy.source_ids, toy.target_ids, 2, budget=1)
            elif self.search_kind == "approximate":
                from rlea.search.approximate import search_approximately

                search_approximately(toy.embeddings, toy.source_ids, toy.target_ids, 2, probes=1)
            for name in self.deciders or (self.settings.matcher,):
                if name in MATCHERS and MATCHERS[name].takes_vectors:
                    MATCHERS[name](task)
            self.progress("compile matchers", 1, 1)

    @property
    def task(self) -> Task:
        """For classic matchers. Of very large graphs it leaves out the edges of hubs, which take most of the time."""
        from rlea.graph.hubs import LARGE, prune_hubs
        from rlea.matching import Task

        if "task" not in self.shared:
            source, target = self.pair.source, self.pair.target
            if max(source.num_entities, target.num_entities) > LARGE:
                source, target = prune_hubs(source), prune_hubs(target)
            self.shared["task"] = Task(
                source, target, self.pair.train, self.candidates, self.settings.seed, self.pair.cannot_link
            )
        return cast("Task", self.shared["task"])


def choose_search(settings: AlignSettings, num_rows: int, num_columns: int) -> str:
    """How candidates are found in pools of these sizes: exact or approximate."""
    if settings.search != "auto":
        return settings.search
    most = MOST_EXACT_NAMES if settings.embedding == ("names",) else MOST_EXACT_VECTORS
    return "approximate" if num_rows * num_columns > most else "exact"


def checkpoint_of(checkpoint: Path | None, name: str = "", number: int = 0) -> Path | None:
    """Where a training is kept until it is done: a file for the paper's agent, for every embedding and joint round."""
    if checkpoint is None or not name:
        return checkpoint
    return checkpoint.with_name(f"{checkpoint.stem}-{Path(name).stem}.checkpoint" + (f"-{number}" if number else ""))


def is_paper(settings: AlignSettings) -> bool:
    """Whether the agent that decides is the paper's, by its preset or by its file."""
    has_file = bool(settings.agent) and not is_aligner(settings.agent)
    return settings.matcher == "rlea" and (bool(settings.preset) or has_file)


def uses_candidates(settings: AlignSettings) -> bool:
    """Whether candidates are searched by vectors: for classic matchers and the paper's agent."""
    decider = DECIDERS[settings.matcher]
    return decider.needs_vectors and (not decider.channels or is_paper(settings))


def by_matcher(inputs: Inputs) -> Decision:
    """A classic matcher over the candidates."""
    task = inputs.task
    sides = ((inputs.pair.source, task.source), (inputs.pair.target, task.target))
    pruned = [graph.num_triples - seen.num_triples for graph, seen in sides]
    info = dict(inputs.vectors[0].info) | ({"triples_left_out": pruned} if any(pruned) else {})
    with inputs.clock("match"):
        matching = MATCHERS[inputs.settings.matcher](task)
    return Decision(matching, task.candidates, info=info)


def by_paris(inputs: Inputs) -> Decision:
    """PARIS alone, from the seeds or from nothing."""
    import numpy as np

    from rlea.evidence.paris import run_paris
    from rlea.matchers.paris import take_pairs
    from rlea.search.candidates import CandidateLists
    from rlea.search.pairs import Pairs

    pair, pools = inputs.pair, (inputs.source_ids, inputs.target_ids)
    with inputs.clock("match"):
        found = run_paris(pair, progress=inputs.progress)
        kept = np.isin(found.source_ids, pools[0]) & np.isin(found.target_ids, pools[1])
        matching = take_pairs(found, pair.source, pair.target, inputs.settings.seed, kept)
    pairs = Pairs(found.source_ids[kept], found.target_ids[kept])
    candidates = CandidateLists.of_pairs(pairs, found.probabilities[kept].astype(np.float32), *pools, NEAREST)
    return Decision(matching, candidates, schema=found.schema, info={"iterations": len(found.iterations)})


def by_agent(inputs: Inputs) -> Decision:
    """The agent: it learns from the seeds, or from pairs on which channels agree, and decides."""
    settings = inputs.settings
    if is_paper(settings):
        return by_paper(inputs)
    from rlea.agent.kept import Kept
    from rlea.agent.trace import Trace
    from rlea.evidence import PARIS, VECTORS
    from rlea.evidence.contribution import contributions, feature_columns, readable_features
    from rlea.search.candidates import CandidateLists

    aligner, vectors, info = train_agent(inputs)
    pools = inputs.source_ids, inputs.target_ids
    with inputs.clock("match"):
        outcome = aligner.decide(inputs.pair, *pools, vectors, progress=inputs.progress)
    last, channels = outcome.last, outcome.channels
    wanted = dict.fromkeys([*aligner.channels, *([VECTORS] if vectors else []), *(one.name for one in channels)])
    about = {
        "bootstrap": outcome.bootstrap.as_dict(),
        "evidence": tell_channels(channels),
        "agent": {"history": aligner.history, "calibration": asdict(aligner.calibration)}
        | {"weights": asdict(aligner.weights), "file": settings.agent},
    }
    return Decision(
        last.matching,
        CandidateLists.of_pairs(last.pairs, last.logits, *pools, NEAREST),
        Trace.of(last, lambda pairs: readable_features(channels, pairs), feature_columns(channels)),
        next((one.info["schema"] for one in channels if one.name == PARIS), Schema()),
        {**info, **about},
        lambda links: contributions(channels, links, list(wanted), pools),
        outcome.right,
        outcome.recall,
        None if outcome.rating is None or settings.matcher != "fused" else Kept.of(aligner, outcome.rating),
        entries_of(channels),
    )


def entries_of(channels: Sequence[Channel]) -> tuple[Entry, ...]:
    """The dictionary that was learned, empty without one."""
    return next((one.info["dictionary"] for one in channels if one.name == DICTIONARY and one.info), ())


def tell_channels(channels: Sequence[Channel]) -> list[dict[str, Any]]:
    """What every channel is, for the record."""
    return [
        {"channel": one.name, "columns": list(one.columns), "meanings": list(one.meanings or one.columns)}
        | {key: value for key, value in one.info.items() if key not in ("schema", "dictionary")}
        for one in channels
    ]


def train_agent(inputs: Inputs) -> tuple[Aligner, list[Embeddings], dict[str, Any]]:
    """A fitted agent (trained here, or loaded from a file), the vectors that it goes with, and facts for the record."""
    from rlea.agent.agent import AgentSettings, Aligner
    from rlea.agent.joint import train_jointly
    from rlea.budget import choose_frugality, frugal_settings
    from rlea.evidence.collect import Evidence

    settings, pair, progress = inputs.settings, inputs.pair, inputs.progress
    level, _ = choose_frugality(pair, settings.memory)
    own = None if level is None else frugal_settings(AgentSettings(), level)
    fresh = Aligner(channels=settings.used_channels, encoder=settings.encoder, seed=settings.seed, settings=own)
    if settings.joint:
        with inputs.clock("train"):
            joint = train_jointly(pair, inputs.embed_again, settings.joint, fresh, progress=progress)
        return joint.agent, [joint.vectors], {"joint": joint.rounds, **joint.vectors.info}
    vectors = inputs.vectors
    info: dict[str, Any] = dict(vectors[0].info) if len(vectors) == 1 else {}
    if len(vectors) > 1:
        info["embeddings"] = [dict(part.info) for part in vectors]
        notes = [part.info["hidden_note"] for part in vectors if part.info.get("hidden_note")]
        info |= {"hidden_note": notes[0]} if notes else {}
    with inputs.clock("train"):
        if not settings.agent:
            evidence = None
            if level is not None:
                free = [part for part in vectors if not part.is_fitted]
                more: dict[str, Any] = {"encoder": settings.encoder, "vectors": free, "progress": progress}
                evidence = Evidence(pair, **more, proposed=(level.names, level.words))
            return fresh.fit(pair, vectors, evidence=evidence, progress=progress), vectors, info
        agent = Aligner.load(settings.agent)
        fitted = [part for part in vectors if part.is_fitted]
        if len(agent.weights.vectors) != len(fitted) or (fitted and len(pair.valid)):
            agent.choose(pair, vectors, progress=progress)  # it may have been trained with other vectors
    return agent, vectors, info


def by_paper(inputs: Inputs) -> Decision:
    """The agent of the paper over the candidates, trained on the seeds unless a trained one is given."""
    from rlea.paper.agent import Agent

    settings, task = inputs.settings, inputs.task
    with inputs.clock("train"):
        if settings.agent:
            agent = Agent.load(settings.agent, device=inputs.device)
        else:
            agent, _ = train_paper(inputs)
    with inputs.clock("match"):
        matching = agent.match(task)
    about: dict[str, Any] = {"preset": "" if settings.agent else settings.preset, "file": settings.agent}
    about |= {"settings": asdict(agent.settings), "history": agent.history, "best_episode": agent.best_episode}
    info = {**task.candidates.embeddings.info, "agent": {**about, "device": agent.device.type}}
    return Decision(matching, task.candidates.best(agent.settings.candidates), info=info)


def train_paper(
    inputs: Inputs,
    episodes: int | None = None,
    curves: Callable[[Agent], AbstractContextManager[Any]] | None = None,
) -> tuple[Agent, dict[str, Any]]:
    """The paper's agent, trained; and how that went. `curves` opens a hook that draws every episode."""
    from rlea.paper.agent import Agent
    from rlea.paper.presets import PRESETS

    settings = PRESETS[inputs.settings.preset]
    if episodes is not None:
        settings = replace(settings, train=replace(settings.train, episodes=episodes))
    agent = Agent(settings, seed=inputs.settings.seed, device=inputs.device)
    more: dict[str, Any] = {"progress": inputs.progress, "checkpoint": inputs.checkpoint}
    with nullcontext() if curves is None else curves(agent) as on_episode:
        agent.fit(inputs.pair, inputs.vectors[0], on_episode=on_episode, **more)
    best = agent.history[agent.best_episode - 1]
    outcome = {
        "device": agent.device.type,
        "episodes": len(agent.history),
        "best_episode": agent.best_episode,
        **{name: best[name] for name in ("aligned", "reward", "accepted")},
        "valid_aligned": best.get("valid_aligned"),
    }
    return agent, outcome


def is_aligner(path: str) -> bool:
    """Whether a file holds the agent, and not the paper's."""
    from rlea.agent.agent import FORMAT
    from rlea.io.agent_files import load_agent_file

    return str(load_agent_file(path)[0].get("format")).startswith(FORMAT.rpartition(" ")[0])


@dataclass(frozen=True)
class Decider:
    """A decider by name: its function, and what a user should know."""

    decide: Callable[[Inputs], Decision]
    one_to_one: bool
    summary: str
    uses_structure: bool = False  # looks at the graphs and not only at similarity
    needs_vectors: bool = False  # decides over candidates by vectors; names if no embedding is given
    is_trained: bool = False  # learns first, which takes a while
    channels: tuple[str, ...] = ()  # of the agent: all that it listens to unless told otherwise

    @property
    def takes_vectors(self) -> bool:
        """Whether an embedding would be used."""
        return self.needs_vectors or bool(self.channels)


DECIDERS: dict[str, Decider] = {
    name: Decider(by_matcher, one.one_to_one, one.summary, one.uses_structure, needs_vectors=True)
    for name, one in MATCHERS.items()
    if one.takes_vectors
}
DECIDERS |= {
    "paris": Decider(by_paris, True, MATCHERS["paris"].summary, uses_structure=True),
    "rlea": Decider(
        by_agent,
        True,
        "the agent with vectors and structure alone; --preset paper: the agent of the paper",
        uses_structure=True,
        needs_vectors=True,
        is_trained=True,
        channels=(STRUCTURE,),
    ),
    "fused": Decider(
        by_agent,
        True,
        "the agent with all evidence: structure, names, words, attributes, PARIS, embeddings; with or without seeds",
        uses_structure=True,
        is_trained=True,
        channels=CHANNELS,
    ),
}
