"""A run goes on with more: new entities and triples against the links that stand.

    read -> evidence over both whole graphs -> the kept agent decides about what is new and what it touches -> write

Nothing is learned again, no null model is played, and links far from what is new are not looked at. Evidence is made
over the whole graphs: how rare a word or a value is, and what PARIS makes of all, changes with every batch.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rlea import pipeline
from rlea.agent.live import CHANGED, LiveRun
from rlea.agent.overlap import RightLinks
from rlea.agent.passes import Decisions
from rlea.agent.trace import Trace
from rlea.deciders import NEAREST, Decision, entries_of, tell_channels
from rlea.errors import InputError
from rlea.evidence import PARIS, VECTORS
from rlea.evidence.contribution import contributions, feature_columns, readable_features
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.schema import Schema
from rlea.io.apart import keep_apart
from rlea.io.union import new_ids, placed
from rlea.io.writers.run_folder import add_files, claimed
from rlea.matching import Matching
from rlea.progress import Progress, counted, silent, ticking
from rlea.record import as_dict, is_number
from rlea.result import LEAST_RECALL, Result
from rlea.resumed import Resumed, go_on
from rlea.search.candidates import CandidateLists
from rlea.search.pairs import Pairs, numbers
from rlea.views.explain.folder import read_inputs

CHANGES = "changes.tsv"  # in the folder of a run that was updated
COLUMNS = ("source", "old_target", "new_target", "old_confidence", "new_confidence", "why")


@dataclass(frozen=True)
class ChangedLink:
    """A link of the earlier run that is another one now, or has another confidence; a target "" is no link."""

    source: str
    old_target: str
    new_target: str
    old_confidence: float
    new_confidence: float
    why: str


@dataclass(frozen=True, eq=False)
class News:
    """What is new in a graph: entities, and known entities of which more is known now, by their new numbers."""

    entities: Ids
    told_of: Ids

    @staticmethod
    def of(old: KnowledgeGraph, new: KnowledgeGraph) -> News:
        """By comparison, so that a file may repeat what was known."""
        ids = new_ids(old, new)
        is_old = np.zeros(new.num_entities, np.bool_)
        is_old[ids] = True
        known = set(_facts(old))
        told = {entity for fact in _facts(new) if fact not in known for entity in fact[0] if entity}
        index = new.entity_index
        told_of = np.array(sorted(index[name] for name in told if is_old[index[name]]), np.int32)
        return News(np.flatnonzero(~is_old).astype(np.int32), told_of)

    @property
    def all(self) -> Ids:
        """All that must be decided about."""
        return np.union1d(self.entities, self.told_of).astype(np.int32)


def _facts(graph: KnowledgeGraph) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Triples and literals by name: the entities that each is about, and all else."""
    names, literals = graph.entities, graph.literals
    facts = [((names[h], names[t]), (graph.relations[r],)) for h, r, t in graph.triples.tolist()]
    rows = zip(literals.entity_ids.tolist(), literals.attribute_ids.tolist(), strict=True)
    texts = zip(literals.values, literals.datatypes, literals.languages, strict=True)
    return facts + [((names[e],), (graph.attributes[a], *text)) for (e, a), text in zip(rows, texts, strict=True)]


@dataclass(frozen=True, eq=False)
class Update:
    """What came out of an update."""

    result: Result
    changes: list[ChangedLink]
    news: tuple[News, News]
    num_decided: int  # links that were decided, those that were left out among them

    def summary(self) -> dict[str, Any]:
        """For machines."""
        kinds = {
            "added": sum(not one.old_target for one in self.changes),
            "gone": sum(not one.new_target for one in self.changes),
            "other_target": sum(
                "" not in (a := one.old_target, one.new_target) and a != one.new_target for one in self.changes
            ),
            "other_confidence": sum(one.old_target == one.new_target for one in self.changes),
        }
        sides = zip(("source", "target"), self.news, strict=True)
        new = {f"new_{side}_entities": len(news.entities) for side, news in sides}
        return {**new, "links": len(self.result.matching), "changes": kinds, "seconds": self.result.seconds}


def update(
    run: str | Path,
    source: Sequence[str | Path] = (),
    target: Sequence[str | Path] = (),
    *,
    progress: Progress = silent,
) -> Update:
    """Go on with the run in a folder: `source` and `target` are files with more of its two graphs."""
    if not source and not target:
        raise InputError("there is nothing new", remedy="give files with --source, --target or both")
    before = Resumed.open(run, progress=progress)
    _check(before, Path(run))
    progress("read", 0, 1)
    pair = read_inputs(Path(run), before.run.record, source, target)
    given = as_dict(before.run.record.get("inputs"))
    pair = keep_apart(pair, given.get("different"), given.get("disjoint"))
    old = before.run.pair
    ids = new_ids(old.source, pair.source), new_ids(old.target, pair.target)
    news = News.of(old.source, pair.source), News.of(old.target, pair.target)
    progress("read", 1, 1)
    inputs = pipeline.make_inputs(pair, before.settings, progress).begin(before.settings)
    kept = before.kept
    if kept is not None:
        kept = kept.placed(lambda links: placed(links, *ids))
    standing = _moved(before.links, *ids)
    is_seed = np.isin(standing.source_ids, pair.train.source_ids) | np.isin(standing.target_ids, pair.train.target_ids)
    with inputs.clock("match"), ticking(progress) as report:
        live, kept = go_on(replace(inputs, progress=report), kept, standing.some(~is_seed))
        report("agent: decisions", 0, 1)
        if any(len(part.all) for part in news) or is_seed.any():
            live.decide_about(*(part.all for part in news))
        report("agent: decisions", 1, 1)
    decision = _decision(live, inputs.source_ids, inputs.target_ids, before)
    result = pipeline.conclude(pair, inputs, replace(decision, kept=kept))
    links_before = _moved(Matching.of(before.run.source_ids, before.run.target_ids, before.run.confidences), *ids)
    changes = compare_links(pair, links_before, result.matching, live.links, news)
    return Update(result, changes, news, len(live.links))


def _check(before: Resumed, run: Path) -> None:
    settings = before.settings
    for option, is_given in (("--embedding", settings.embedding), ("--hide", settings.hide)):
        if is_given:
            what = f"this run was made with {option}, and cannot be updated"
            raise InputError(what, path=run, remedy="align again")


def _moved(links: Matching, source_ids: Ids, target_ids: Ids) -> Matching:
    return Matching.of(source_ids[links.source_ids], target_ids[links.target_ids], links.confidences)


def _decision(live: LiveRun, source_ids: Ids, target_ids: Ids, before: Resumed) -> Decision:
    """What the live run says now, as a decider would have said it."""
    state, links = live.state, live.links
    own = Pairs(links.source_ids, links.target_ids)
    pairs = Pairs.union([state.proposals, own])
    logits = np.full(len(pairs), state.lowest, np.float32)
    logits[np.isin(numbers(pairs), numbers(state.proposals))] = state.described.logits
    of_links = logits[np.searchsorted(numbers(pairs), numbers(own))]
    order = np.argsort(-links.confidences, kind="stable")
    confidences = links.confidences.astype(np.float32)
    ends = links.source_ids[order], links.target_ids[order]
    decisions = Decisions(*ends, of_links[order], confidences[order], pairs, logits)
    channels = [*state.channels, *state.fitted]
    wanted = dict.fromkeys([*live.aligner.channels, *(one.name for one in channels)])
    right, recall = _right(links, before)
    info = {
        "bootstrap": {"told": "Went on from an earlier run"},
        "evidence": tell_channels(channels),
        "agent": {"history": live.aligner.history, "file": ""},
    }
    return Decision(
        links,
        CandidateLists.of_pairs(pairs, logits, source_ids, target_ids, NEAREST),
        Trace.of(decisions, lambda some: readable_features(channels, some), feature_columns(channels)),
        next((one.info["schema"] for one in channels if one.name == PARIS), Schema()),
        info,
        lambda some: contributions(
            channels, some, [name for name in wanted if name != VECTORS], (source_ids, target_ids)
        ),
        right,
        recall,
        dictionary=entries_of(channels),
    )


def _right(links: Matching, before: Resumed) -> tuple[RightLinks | None, float]:
    """How many links are right, by their confidences, and what share of all is found: that of the earlier run.

    Bounds are as far from the estimate as they were.
    """
    told = as_dict(as_dict(before.run.record.get("result")).get("overlap"))
    shared, low, high = (float(told[name]) if is_number(told.get(name)) else 0.0 for name in ("shared", "low", "high"))
    found = float(before.links.confidences.sum())
    if not told:
        return None, 1.0
    value = float(links.confidences.sum())
    recall = min(1.0, max(LEAST_RECALL, found / shared)) if shared else 1.0
    ratio = value / found if found else 1.0
    return RightLinks(value, low * ratio, high * recall * ratio), recall


# ---- what changed ---------------------------------------------------------------------------------------------------


def compare_links(
    pair: GraphPair, before: Matching, now: Matching, decided: Matching, news: tuple[News, News]
) -> list[ChangedLink]:
    """Every link that came, went, has another target or a confidence that moved, with the reason; by source.

    `decided` are all links of the agent now, those that were left out among them.
    """
    sides = [
        dict(zip(m.source_ids.tolist(), zip(m.target_ids.tolist(), m.confidences.tolist(), strict=True), strict=True))
        for m in (before, now)
    ]
    source_of = dict(zip(decided.target_ids.tolist(), decided.source_ids.tolist(), strict=True))
    target_of = {source: target for target, source in source_of.items()}
    new = [set(part.entities.tolist()) for part in news]
    told = [set(part.told_of.tolist()) for part in news]
    names = pair.source.entities, pair.target.entities
    nothing = (-1, 0.0)

    def why(source: int, old: int, target: int) -> str:
        is_new = source in new[0], target in new[1]
        if any(is_new):
            return "both are new" if all(is_new) else "the source is new" if is_new[0] else "the target is new"
        if old >= 0 and target != old and (other := source_of.get(old, -1)) not in (-1, source):
            return f"its target is now linked with {names[0][other]}" + (", which is new" if other in new[0] else "")
        if source in told[0] or target in told[1] or old in told[1]:
            return "more is known of it now"
        if target < 0 and target_of.get(source) == old:
            return "too doubtful now to be kept"
        return "what is around it has changed"

    found = []
    for source in sorted(sides[0].keys() | sides[1].keys()):
        (old, sure), (target, surer) = (side.get(source, nothing) for side in sides)
        if old == target and abs(sure - surer) < CHANGED:
            continue
        was, now_is = (names[1][end] if end >= 0 else "" for end in (old, target))
        found.append(ChangedLink(names[0][source], was, now_is, sure, surer, why(source, old, target)))
    return found


def changes_text(changes: Sequence[ChangedLink]) -> str:
    """The file of changes: tab-separated, with a header."""
    text = io.StringIO()
    rows = csv.writer(text, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, escapechar="\\")
    rows.writerow(COLUMNS)
    for one in changes:
        confidences = (
            f"{value:.6f}" if name else ""
            for name, value in ((one.old_target, one.old_confidence), (one.new_target, one.new_confidence))
        )
        rows.writerow((one.source, one.old_target, one.new_target, *confidences, one.why))
    return text.getvalue()


def write_update(folder: str | Path, found: Update) -> list[Path]:
    """The folder of a run with the links as they are now, and the file of changes."""
    with claimed(folder):
        written = pipeline.write(folder, found.result)
        return [*written, *add_files(folder, {CHANGES: changes_text(found.changes)})]


def tell(found: Update) -> str:
    """What came of it, in a sentence."""
    told, new = found.summary(), [len(part.entities) for part in found.news]
    kinds = told["changes"]
    parts = [f"{kinds['added']:,} added", f"{kinds['gone']:,} gone", f"{kinds['other_target']:,} with another target"]
    first = f"{counted(new[0], 'new source entity')} and {counted(new[1], 'new target entity')}"
    return f"{first}: {counted(len(found.result.matching), 'link')}, {', '.join(parts)}"
