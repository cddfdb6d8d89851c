"""The whole program on one page: read graphs -> embed entities -> candidates -> decide -> evaluate -> write.

Every function here is a stage or a chain of stages; each stage is one call into the module that does the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea import peak_memory as memory
from rlea.errors import InputError
from rlea.evaluation.string_baseline import StringProbe, probe_strings
from rlea.evidence import CHANNELS, EVIDENCE
from rlea.graph import GraphPair, Ids, choose_pool
from rlea.graph.schema import Schema
from rlea.io.readers import read_graph, read_pair
from rlea.masking import hide
from rlea.matchers import MATCHERS
from rlea.models import MODELS
from rlea.models.embed import embed_entities, shown_uses
from rlea.progress import Progress, counted, silent
from rlea.settings import AlignSettings, check_seeds, check_settings, choose_search, evidence_uses, settle

if TYPE_CHECKING:
    from rlea.agent.context import ContextAgent
    from rlea.agent.trace import Trace
    from rlea.evaluation.gold_ranks import Standing
    from rlea.evaluation.metrics import LinkMetrics
    from rlea.evaluation.ranks import RankMetrics
    from rlea.matching import Matching, Task
    from rlea.paper.agent import Agent
    from rlea.search.approximate import Search
    from rlea.search.candidates import Candidates
    from rlea.search.embeddings import Embeddings
    from rlea.search.name_index import NameSearch


AGENT_CHECKPOINT = "agent.checkpoint"  # beside the checkpoint of the vectors
DECISIONS = "decisions.safetensors"  # what the context agent decided, in the folder of a run
STANDING = "standing.safetensors"  # where the right targets stood among the candidates, where gold links are known


@dataclass(frozen=True, eq=False)
class Result:
    """What came out of one run: the links, and the scores where gold links are known."""

    pair: GraphPair
    settings: AlignSettings
    pool: str
    matching: Matching
    links: LinkMetrics | None
    ranks: RankMetrics | None
    coverage: float | None  # share of the gold pairs that are among the candidates
    seconds: dict[str, float]
    peak_memory_mb: float
    info: dict[str, Any] = field(default_factory=dict)
    trace: Trace | None = None  # what the context agent decided, step by step
    standing: Standing | None = None  # of the gold links among the candidates
    search: dict[str, Any] = field(default_factory=lambda: {"kind": "exact"})  # how candidates were found, its recall
    strings: StringProbe | None = None  # what equal strings would solve of the gold links, nothing hidden
    schema: Schema = field(default_factory=Schema)  # relations, attributes and classes that correspond

    @property
    def cut(self) -> str:
        """Which links were left out, in the words of the command line; empty where none was."""
        precision = f"--precision {self.settings.precision:g}" if self.settings.precision else ""
        return "--abstain" if self.settings.abstain else precision

    def summary(self) -> dict[str, Any]:
        """One flat object for machines; scores are null where no gold links are known."""
        links = self.links
        return {
            "pair": self.pair.name,
            "fold": self.pair.fold,
            "embedding": self.settings.embedding,
            "matcher": self.settings.matcher,
            "candidates": self.settings.candidates,
            "search": self.search,
            "began": self.info.get("beginning", {}).get("told", ""),
            "channels": self.info.get("channels", []),
            "pool": self.pool,
            "cut": self.cut,
            "hidden": list(self.settings.hide),
            "hits@1": None if links is None else links.hits_at_1,
            "precision": None if links is None else links.precision,
            "recall": None if links is None else links.recall,
            "f1": None if links is None else links.f1,
            "matched": len(self.matching),
            "judged": None if links is None else links.matched,
            "correct": None if links is None else links.correct,
            "coverage": self.coverage,
            "ranks": None if self.ranks is None else self.ranks.as_dict(),
            "strings": None if self.strings is None else self.strings.as_dict(),
            "seconds": {stage: round(value, 3) for stage, value in self.seconds.items()},
            "peak_memory_mb": round(self.peak_memory_mb, 1),
            "seed": self.settings.seed,
            "notes": [*self.pair.notes, *self.cautions],
        }

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be known before links are trusted."""
        beginning = self.info.get("beginning")
        if not beginning or not self.cut:
            return ()
        from rlea.agent.fused import FEW_SEEDS

        option, _, _ = self.cut.partition(" ")
        caution = f"confidences were learned from pairs that nobody has confirmed, so {option} may miss its aim"
        return (caution,) if beginning["seeds"] < FEW_SEEDS else ()


# ---- the flow -------------------------------------------------------------------------------------------------------


def align(
    pair: GraphPair, settings: AlignSettings | None = None, *, progress: Progress = silent, **more: Any
) -> Result:
    """Align a pair: embed, find candidates, decide, evaluate. `more` reaches `embed_entities` (device, checkpoint).

    The agent, where it is the matcher, works on the same device.
    """
    settings = settle(settings or AlignSettings(), pair)
    clock = Clock()
    device = more.get("device", "auto")
    check_settings(settings, device=device)
    if not MATCHERS[settings.matcher].takes_vectors:
        return align_by_evidence(pair, settings, clock, progress)
    pool, source_ids, target_ids = choose_pool(pair, settings.pool)
    search_kind = choose_search(settings, len(source_ids), len(target_ids))
    check_seeds(pair, settings, [settings.matcher])
    agent, rounds = None, None
    seen = hide(pair, settings.hide)  # all that models and matchers are given
    shown = seen if settings.embedding in MODELS else pair  # a file has its vectors under the true identifiers
    with clock("embed"):
        if settings.joint:
            vectors, agent, rounds = embed_jointly(seen, settings, progress, **more)
        else:
            more |= {"hidden": settings.hide}
            vectors = embed_for_search(shown, settings, search_kind, progress, **more)
    with clock("compile"):
        warm_up([settings.matcher], vectors, progress, search_kind)
    with clock("candidates"):
        candidates, search = find(vectors, source_ids, target_ids, settings, progress)
    task = make_task(seen, candidates, settings.seed)
    info = {**vectors.info, **crowds_left_out(seen, task)}
    kept = more.get("checkpoint")
    kept = None if kept is None else kept.with_name(AGENT_CHECKPOINT)
    matching, trace = decide(seen, task, settings, clock, info, progress, device, kept, agent)
    if rounds is not None:
        info["joint"] = rounds
    with clock("evaluate"):
        links, ranks, coverage = evaluate(pair, matching, candidates, pool, progress)
        standing = look_up_gold(pair, candidates, info)
        strings = probe_strings(pair, pool)
    peak = memory.peak_mb()
    seconds = clock.seconds
    return Result(
        pair, settings, pool, matching, links, ranks, coverage, seconds, peak, info, trace, standing, search, strings
    )


def align_by_evidence(pair: GraphPair, settings: AlignSettings, clock: Clock, progress: Progress) -> Result:
    """Align a pair with a matcher that looks at the graphs themselves: decide, evaluate."""
    from rlea.agent.fused_matcher import find_by_all, find_by_paris

    if not pair.source.num_entities or not pair.target.num_entities:
        raise InputError("a graph has no entities", remedy="give two graphs with something in them")
    settings = replace(settings, embedding="")  # a comparison may have one, for others
    pool, source_ids, target_ids = choose_pool(pair, settings.pool)
    seen = hide(pair, settings.hide)
    hidden = {"hidden": list(settings.hide), "fingerprint_seen": seen.fingerprint} if settings.hide else {}
    seen = GraphPair(seen.name, seen.source, seen.target, train=seen.train)  # gold has no place in what decides
    memory.reset_peak()
    most = min(len(source_ids), len(target_ids))
    more: dict[str, Any] = {"seed": settings.seed, "progress": progress}
    more["cut"] = lambda matching: cut_links(matching, settings, most)
    with clock("match"):
        if settings.matcher == "paris":
            found = find_by_paris(seen, source_ids, target_ids, **more)
        else:
            channels = settings.channels or CHANNELS
            found = find_by_all(seen, source_ids, target_ids, channels, encoder=settings.encoder, **more)
    matching = found.matching
    peak = memory.peak_mb()
    with clock("evaluate"):
        links, _, coverage = evaluate(pair, matching, found.candidates, pool, progress)
        standing = look_up_gold(pair, found.candidates, {})
        strings = probe_strings(pair, pool)
    parts = ({**found.info, **hidden}, found.trace, standing, {"kind": "evidence"}, strings, found.schema)
    return Result(pair, settings, pool, matching, links, None, coverage, clock.seconds, peak, *parts)


def bench(
    pair: GraphPair,
    matchers: Sequence[str],
    settings: AlignSettings | None = None,
    *,
    progress: Progress = silent,
    **more: Any,
) -> Iterator[Result]:
    """The same vectors and candidates for every matcher that takes vectors, one result after the other."""
    settings = settings or AlignSettings()
    settings = replace(settings, matcher=matchers[0], embedding=settings.embedding or "names")
    clock = Clock()
    device = more.get("device", "auto")
    check_settings(settings, matchers, device=device)
    if not any(MATCHERS[name].takes_vectors for name in matchers):
        for number, name in enumerate(matchers):
            progress("matchers", number, len(matchers), name)
            yield align_by_evidence(pair, replace(settings, matcher=name), Clock(), progress)
        progress("matchers", len(matchers), len(matchers))
        return
    check_seeds(pair, settings, matchers)
    pool, source_ids, target_ids = choose_pool(pair, settings.pool)
    search_kind = choose_search(settings, len(source_ids), len(target_ids))
    seen = hide(pair, settings.hide)
    shown = seen if settings.embedding in MODELS else pair  # a file has its vectors under the true identifiers
    with clock("embed"):
        more |= {"hidden": settings.hide}
        vectors = embed_for_search(shown, settings, search_kind, progress, **more)
    with clock("compile"):
        warm_up(matchers, vectors, progress, search_kind)
    with clock("candidates"):
        candidates, search = find(vectors, source_ids, target_ids, settings, progress)
        _ = candidates.pairs  # shared by all, so not charged to the first
    task = make_task(seen, candidates, settings.seed)
    ranks, strings = None, None
    for number, name in enumerate(matchers):
        progress("matchers", number, len(matchers), name)
        if not MATCHERS[name].takes_vectors:
            yield align_by_evidence(pair, replace(settings, matcher=name), Clock(), progress)
            continue
        chosen, info = replace(settings, matcher=name), {**vectors.info, **crowds_left_out(seen, task)}
        memory.reset_peak()
        clock.seconds.pop("train", None)  # that of an earlier matcher
        matching, trace = decide(seen, task, chosen, clock, info, progress, device)
        peak = memory.peak_mb()
        with clock("evaluate"):
            links, ranks, coverage = evaluate(pair, matching, candidates, pool, progress, ranks)
            standing = look_up_gold(pair, candidates, info)
            strings = strings or probe_strings(pair, pool)
        seconds = dict(clock.seconds)
        yield Result(
            pair, chosen, pool, matching, links, ranks, coverage, seconds, peak, info, trace, standing, search, strings
        )
    progress("matchers", len(matchers), len(matchers))


# ---- the stages -----------------------------------------------------------------------------------------------------


def read(
    source: str | Path,
    target: str | Path | None = None,
    *,
    fold: str | None = None,
    seeds: str | Path | None = None,
    valid: str | Path | None = None,
    gold: str | Path | None = None,
) -> GraphPair:
    """A benchmark folder, or two graphs of one's own with optional links. Paths may be text."""
    source = Path(source)
    if target is None:
        if seeds is not None or valid is not None or gold is not None:
            raise InputError("links are given for a folder that has its own", remedy="name two graphs, or no links")
        return read_pair(source, fold)
    if fold is not None:
        raise InputError("--fold is for benchmark folders", remedy="leave it out for two graphs of your own")
    from rlea.io.readers.links import no_links, read_placed_links, separate_splits

    first, second = read_graph(source), read_graph(target)
    placed = [
        no_links(Path()) if path is None else read_placed_links(path, first, second) for path in (seeds, valid, gold)
    ]
    (train, known, test), notes = separate_splits(placed)
    if gold is not None and not len(test):
        raise InputError("no gold link is left to score with", path=gold, remedy="give links that are not seeds")
    if not len(train):
        notes = (*notes, "there are no seeds: matching starts from what the two graphs have in common")
    return GraphPair(
        f"{stem(source)}-{stem(Path(target))}", first, second, train, known, test, notes=notes, default_pool="all"
    )


def embed_jointly(
    pair: GraphPair, settings: AlignSettings, progress: Progress, checkpoint: Path | None = None, **more: Any
) -> tuple[Embeddings, ContextAgent, list[dict[str, Any]]]:
    """Vectors and agent trained in turn; one checkpoint a round of vectors, one of the agent."""
    from rlea.agent.joint import train_jointly

    def embed(grown: GraphPair, number: int) -> Embeddings:
        kept = None if checkpoint is None else joint_checkpoint(checkpoint, number)
        chosen = {**more, "seed": settings.seed, "hidden": settings.hide, "checkpoint": kept}
        return embed_entities(grown, settings.embedding, progress=progress, **chosen)

    kept = None if checkpoint is None else checkpoint.with_name(AGENT_CHECKPOINT)
    joint = train_jointly(pair, embed, settings.joint, seed=settings.seed, progress=progress, checkpoint=kept)
    return joint.vectors, joint.agent, joint.rounds


def joint_checkpoint(checkpoint: Path, number: int) -> Path:
    """Where the vectors of a joint round are kept while they are trained."""
    return checkpoint if number == 0 else checkpoint.with_name(f"{checkpoint.name}-{number}")


def embed_for_search(
    pair: GraphPair, settings: AlignSettings, kind: str, progress: Progress, **more: Any
) -> Embeddings:
    """Vectors as the search needs them: the index of names makes its own, with a third of the work."""
    if kind == "approximate" and settings.embedding == "names":
        from rlea.search.name_pieces import embed_name_pieces

        return embed_name_pieces(pair, progress)
    return embed_entities(pair, settings.embedding, seed=settings.seed, progress=progress, **more)


def find(
    vectors: Embeddings, source_ids: Ids, target_ids: Ids, settings: AlignSettings, progress: Progress
) -> tuple[Candidates, dict[str, Any]]:
    """The best partners of every entity, both ways, and how they were found."""
    k, seed = settings.candidates, settings.seed
    asked = {"asked": settings.search}
    if choose_search(settings, len(source_ids), len(target_ids)) == "exact":
        from rlea.search.candidates import find_candidates

        return find_candidates(vectors, source_ids, target_ids, k, progress), {**asked, "kind": "exact"}
    from rlea.search.approximate import search_approximately
    from rlea.search.name_index import search_names
    from rlea.search.name_pieces import NamePieces

    found: Search | NameSearch
    if isinstance(vectors, NamePieces):
        found = search_names(vectors, source_ids, target_ids, k, seed=seed, progress=progress)
    else:
        found = search_approximately(vectors, source_ids, target_ids, k, seed=seed, progress=progress)
    return found.candidates, {**asked, **found.as_dict()}


def make_task(pair: GraphPair, candidates: Candidates, seed: int) -> Task:
    """What a matcher may see: graphs, training seeds, candidates; no validation and no test links.

    Of very large graphs it sees no crowds, which would cost it nearly all its time.
    """
    from rlea.graph.hubs import LARGE, leave_out_crowds
    from rlea.matching import Task

    source, target = pair.source, pair.target
    if max(source.num_entities, target.num_entities) > LARGE:
        source, target = leave_out_crowds(source), leave_out_crowds(target)
    return Task(source, target, pair.train, candidates, seed)


def crowds_left_out(pair: GraphPair, task: Task) -> dict[str, Any]:
    """For the record: the triples of either graph that the matcher did not see, where there are such."""
    sides = ((pair.source, task.source), (pair.target, task.target))
    unseen = [graph.num_triples - seen.num_triples for graph, seen in sides]
    return {"triples_left_out": unseen} if any(unseen) else {}


def decide(
    pair: GraphPair,
    task: Task,
    settings: AlignSettings,
    clock: Clock,
    info: dict[str, Any],
    progress: Progress,
    device: str = "auto",
    checkpoint: Path | None = None,
    agent: Agent | ContextAgent | None = None,
) -> tuple[Matching, Trace | None]:
    """Let the matcher decide; the agent is trained on the seeds first, unless a trained one is given."""
    match: Callable[[Task], Matching] = MATCHERS[settings.matcher]
    context: ContextAgent | None = None
    trace: Trace | None = None
    if MATCHERS[settings.matcher].trained:
        from rlea.agent.context import ContextAgent
        from rlea.agent.trace import Trace
        from rlea.paper.agents import describe_agent, load_agent, make_agent

        with clock("train"):
            if settings.agent:
                agent = load_agent(settings.agent, device=device)
                if isinstance(agent, ContextAgent) and len(pair.valid):
                    agent.choose(pair, task.candidates.embeddings, progress=progress)  # it may have met other vectors
            elif agent is None:
                agent = make_agent(settings.preset, seed=settings.seed, device=device)
                agent.fit(pair, task.candidates.embeddings, progress=progress, checkpoint=checkpoint)
            info["agent"] = {"preset": "" if settings.agent else settings.preset, "file": settings.agent}
            info["agent"] |= describe_agent(agent)
            info["agent"]["candidates"] = min(agent.settings.candidates, settings.candidates)
        match, context = agent.match, agent if isinstance(agent, ContextAgent) else None
    progress("match", 0, 1, settings.matcher)
    with clock("match"):
        if context is not None:
            decisions = context.decide(task)[-1]
            matching, trace = decisions.matching, Trace.of(decisions)
        else:
            matching = match(task)
        matching = cut_links(matching, settings, min(task.candidates.num_rows, task.candidates.num_columns))
    progress("match", 1, 1, counted(len(matching), "link"))
    return matching, trace


def cut_links(matching: Matching, settings: AlignSettings, most: int) -> Matching:
    """Leave out what `--precision` or `--abstain` would not have; `most` is how many links there could be."""
    from rlea.matchers.confidence import keep_sure, keep_worthwhile

    if settings.precision:
        matching = keep_sure(matching, settings.precision)
    return keep_worthwhile(matching, most) if settings.abstain else matching


def evaluate(
    pair: GraphPair,
    matching: Matching,
    candidates: Candidates,
    pool: str,
    progress: Progress = silent,
    ranks: RankMetrics | None = None,
) -> tuple[LinkMetrics | None, RankMetrics | None, float | None]:
    """Score the links. No stage before this one knows which source belongs to which target of the test links."""
    from rlea.evaluation import metrics
    from rlea.evaluation.ranks import rank_metrics

    if not len(pair.test):
        return None, None, None
    links = metrics.link_metrics(matching, pair.test, pool=pool)
    if candidates.embeddings.name != EVIDENCE:  # of evidence only the pairs that were weighed have a place
        ranks = ranks or rank_metrics(
            candidates.embeddings, pair.test, candidates.target_ids, pool=pool, progress=progress
        )
    return links, ranks, metrics.coverage(candidates, pair.test)


def look_up_gold(pair: GraphPair, candidates: Candidates, info: dict[str, Any]) -> Standing | None:
    """Where the gold links stood among the candidates that the matcher saw; an agent sees the best of them only."""
    from rlea.evaluation.gold_ranks import Standing

    if not len(pair.test):
        return None
    seen = candidates.best(info["agent"]["candidates"]) if "agent" in info else candidates
    return Standing.of(seen, pair.test)


def write(folder: str | Path, result: Result) -> list[Path]:
    """Links in all formats, the record of the run and the report: all of them or none. Seeds are not repeated."""
    from rlea.io.writers import LinkRows, MappingSet, justification_of, write_links
    from rlea.io.writers.schema import SCHEMA_FILES, schema_files
    from rlea.record import as_json, describe_run
    from rlea.views.report.run import render_run

    pair, settings = result.pair, result.settings
    rows = LinkRows.of(result.matching, pair.source, pair.target)
    record = describe_run(
        result=result.summary(), fingerprint=pair.fingerprint, embedding_info=result.info, notes=list(pair.notes)
    )
    uses = shown_uses(settings.embedding, settings.hide) if settings.embedding in MODELS else ""
    looks_around = MATCHERS[settings.matcher].uses_structure
    if not MATCHERS[settings.matcher].takes_vectors:
        uses, looks_around = evidence_uses(settings), False  # whether it does is part of what it uses
    about = MappingSet(
        mapping_tool_version=record["versions"]["rlea"],
        mapping_date=record["time"][:10],
        justification=justification_of(uses, looks_around),
    )
    told: dict[str, Any] = {"trace": result.trace, "standing": result.standing, "schema": result.schema}
    page = render_run(pair, result.matching, record, **told)
    extra: dict[str, Any] = {"run.json": as_json(record), "report.html": page}
    kept = {DECISIONS: result.trace, STANDING: result.standing}
    extra |= {name: part.put for name, part in kept.items() if part is not None}
    extra |= schema_files(result.schema)
    written = write_links(folder, rows, about=about, extra=extra)
    for name in (*kept, *SCHEMA_FILES):
        if name not in extra:
            (Path(folder) / name).unlink(missing_ok=True)  # of an earlier run, whose links are gone
    return written


# ---- small parts ----------------------------------------------------------------------------------------------------


class Clock:
    """Seconds by stage; a stage entered again starts anew."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start


def warm_up(matchers: Sequence[str], vectors: Embeddings, progress: Progress, search: str = "exact") -> None:
    """Load compiled code on a toy task, so that timings are of the work and not of compiling (which is done once)."""
    from rlea.matching import toy_task

    progress("compile", 0, len(matchers), "once, then kept on disk")
    task = toy_task(vectors)
    toy = task.candidates
    if search == "approximate" and vectors.is_sparse:
        from rlea.search.name_index import search_names

        search_names((task.source, task.target), toy.source_ids, toy.target_ids, 2, budget=1)
    elif search == "approximate":
        from rlea.search.approximate import search_approximately

        search_approximately(toy.embeddings, toy.source_ids, toy.target_ids, 2, probes=1)
    for number, name in enumerate(matchers, 1):
        if not MATCHERS[name].trained:
            MATCHERS[name](task)
        progress("compile", number, len(matchers))


def common_result(results: Sequence[Result]) -> Result:
    """The one that tells what the rows of a comparison have in common: the first by a matcher that takes vectors."""
    return next((result for result in results if MATCHERS[result.settings.matcher].takes_vectors), results[0])


def stem(path: Path) -> str:
    """A file's name without its extensions."""
    return path.name.split(".")[0] or path.name
