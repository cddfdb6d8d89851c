"""A review of a run: what is asked next, what the answers say so far, and what they changed."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.live import CHANGED, Change
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.names import local_name, plain
from rlea.progress import Progress, silent
from rlea.record import as_dict, is_number
from rlea.resumed import why_not
from rlea.review.card import make_card
from rlea.review.live import DECIDING, MAKING, READY, Decided, LiveAnswers
from rlea.review.questions import BY_STRUCTURE, DEFAULT_ORDER, LEARNED, ORDERS, Questions, in_order
from rlea.serve.facts import Facts
from rlea.verdicts import Entry, Verdicts, VerdictStore, resolve
from rlea.views.explain import Run

Mask = NDArray[np.bool_]

SCOPES = ("open", "second opinion", "skipped", "disputed")
KINDS = ("all", "links", "left out")
MOST_CLASSES = 200  # that can be filtered by
MOST_FOUND = 20  # entities that a search lists
MOST_LISTED = 50  # disputes and changes that are listed
STEPS = 100  # thresholds between 0 and 1


@dataclass(frozen=True)
class Filters:
    """Which questions are asked, and in which order."""

    order: str = DEFAULT_ORDER
    scope: str = "open"
    kind: str = "all"
    low: float = 0.0  # confidences
    high: float = 1.0
    class_: str = ""  # identifier of a class that one of the two entities has
    channel: str = ""  # "names for", "names against": what a channel says of the pair
    disagree: bool = False  # only pairs about which channels disagree

    def __post_init__(self) -> None:
        for what, value, known in (
            ("order", self.order, ORDERS),
            ("scope", self.scope, SCOPES),
            ("kind", self.kind, KINDS),
        ):
            if value not in known:
                raise InputError(f"unknown {what} {value!r}", remedy=f"use one of {', '.join(known)}")
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(f"confidences from {self.low} to {self.high}", remedy="give numbers from 0 to 1")


class Review:
    """A run, its verdicts and its questions, indexed. Threads may share it; other processes may write verdicts, too."""

    def __init__(
        self, run: Run, store: VerdictStore, progress: Progress = silent, live: LiveAnswers | None = None
    ) -> None:
        self.run, self.store, self.live = run, store, live
        pair = run.pair
        progress("index", 0, 4)
        self.questions = Questions.of(run)
        self.facts = Facts(pair.source), Facts(pair.target)
        progress("index", 1, 4)
        self._orders: dict[str, NDArray[np.int64]] = {}
        self._decided: Decided | None = None  # what the live part has said last
        self._now = self.questions.confidences.astype(np.float64)  # confidences, by the live part if there is one
        self._is_link = self.questions.is_link  # likewise
        self._least = float(np.min(run.confidences, initial=1.0))  # confidence of a link that the run has kept
        for name in ORDERS:
            self._order(name)
        sources, targets = self.questions.source_ids.tolist(), self.questions.target_ids.tolist()
        self.places = {ends: place for place, ends in enumerate(zip(sources, targets, strict=True))}
        progress("index", 2, 4)
        self._folded = [plain(name) for name in pair.source.names], [plain(name) for name in pair.target.names]
        progress("index", 3, 4)
        _ = run.memory.correspondence, self.classes
        if run.comparison is not None and len(self.questions):
            run.explain_ids(sources[0], targets[0])  # makes what the first card would wait for
        progress("index", 4, 4)
        self._lock = threading.RLock()
        self._entries: list[Entry] = []
        self.verdicts = Verdicts()
        self._forget()

    @staticmethod
    def open(
        folder: str | Path, *, pair: GraphPair | None = None, progress: Progress = silent, live: bool = False
    ) -> Review:
        """Read the folder of a run, its graphs and its verdicts; the store is made if there is none.

        With `live`, answers count at once, where the run is one that can go on.
        """
        progress("read", 0, 1)
        run = Run.open(folder, pair=pair)
        progress("read", 1, 1)
        store = VerdictStore.of_run(folder)
        answers = LiveAnswers.of_run(folder, run.record) if live and not why_not(run.record) else None
        return Review(run, store, progress, answers)

    def close(self) -> None:
        """Close the store, and end the live part."""
        self.store.close()
        if self.live is not None:
            self.live.close()

    def __enter__(self) -> Review:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cardinality(self) -> str:
        """How many links an entity of the run may have."""
        return str(as_dict(self.run.record.get("settings")).get("cardinality", "1:1"))

    @property
    def is_calibrated(self) -> bool:
        """Whether the confidences of the run are probabilities."""
        return bool(as_dict(as_dict(self.run.record.get("result")).get("overlap")))

    # ---- what was answered ------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Read what was added to the log, by this process or another."""
        with self._lock:
            more = self.store.entries(after=self._entries[-1].number if self._entries else 0)
            self._entries += more
            decided = None if self.live is None else self.live.decided
            if decided is not None and decided is not self._decided:
                self._take(decided)
                self._forget()
            elif more:
                self._forget()

    def _take(self, decided: Decided) -> None:
        """Have the links of the live part in place of those of the run; pairs that are new become questions."""
        self._decided, links = decided, decided.links
        pairs = list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))
        new = [pair for pair in pairs if pair not in self.places]
        if new:
            ends = np.array(new, np.int32)
            self.places |= {pair: len(self.questions) + number for number, pair in enumerate(new)}
            self.questions = self.questions.joined(self.run, ends[:, 0], ends[:, 1])
        places = [self.places[pair] for pair in pairs]
        self._now, gains = np.zeros(len(self.questions)), np.full(len(self.questions), np.nan, np.float32)
        self._now[places], gains[places] = links.confidences, decided.gains
        self.questions = replace(self.questions, gains=gains)
        self._is_link = (self._now > 0) & (self._now >= self._least - 1e-9)
        self._orders.clear()

    def _order(self, name: str) -> NDArray[np.int64]:
        """The places of all questions, the first to be asked first."""
        if name not in self._orders:
            now = replace(self.questions, confidences=self._now.astype(np.float32))
            self._orders[name] = in_order(now, name)
        return self._orders[name]

    def _forget(self) -> None:
        """Work out anew what the log says."""
        self.verdicts = resolve(self._entries, self.cardinality)
        count, ids = len(self.questions), self._ids
        self._answered, self._skipped, self._disputed = (np.zeros(count, np.bool_) for _ in range(3))
        self._by: dict[str, list[int]] = {}  # reviewer -> the questions that they have answered
        self.confidences = self._now.copy()  # as they are after the answers
        for one in self.verdicts:
            place = self.places.get(ids(one.source, one.target), -1)
            if place < 0:
                continue
            self._answered[place] = True
            for reviewer in one.reviewers:
                self._by.setdefault(reviewer, []).append(place)
        for verdicts, marked in ((self.verdicts.skipped, self._skipped), (self.verdicts.disputed, self._disputed)):
            for one in verdicts:
                if (place := self.places.get(ids(one.source, one.target), -1)) >= 0:
                    marked[place] = True
        self._implied = np.zeros(count, np.bool_)  # pairs of entities that are accepted with another one
        accepted = [ids(one.source, one.target) for one in self.verdicts.accepted]
        sources, targets = self.questions.source_ids, self.questions.target_ids
        if self.cardinality in ("1:1", "n:1"):
            self._implied |= np.isin(sources, [s for s, _ in accepted])
        if self.cardinality in ("1:1", "1:n"):
            self._implied |= np.isin(targets, [t for _, t in accepted])
        self.confidences[self._implied] = 0.0
        for verdicts, value in ((self.verdicts.accepted, 1.0), (self.verdicts.rejected, 0.0)):
            for one in verdicts:
                if (place := self.places.get(ids(one.source, one.target), -1)) >= 0:
                    self.confidences[place] = value
        self._beside = [ends for ends in accepted if ends not in self.places]  # accepted, and never decided by the run
        self._links_now = self._is_link & ~self._implied
        for verdicts, is_right in ((self.verdicts.accepted, True), (self.verdicts.rejected, False)):
            for one in verdicts:
                if (place := self.places.get(ids(one.source, one.target), -1)) >= 0:
                    self._links_now[place] = is_right
        if self.live is not None:
            every = [(one, True) for one in self.verdicts.accepted] + [(one, False) for one in self.verdicts.rejected]
            found = {ids(one.source, one.target): is_right for one, is_right in every}
            self.live.tell({ends: is_right for ends, is_right in found.items() if min(ends) >= 0})

    def _ids(self, source: str, target: str) -> tuple[int, int]:
        """The ids of a pair, -1 for an entity that is not there."""
        pair = self.run.pair
        return pair.source.entity_index.get(source, -1), pair.target.entity_index.get(target, -1)

    def find(self, source: str, target: str) -> tuple[int, int]:
        """The ids of a pair by identifiers; an unknown one is refused."""
        ids = self._ids(source, target)
        for name, number, side in ((source, ids[0], "source"), (target, ids[1], "target")):
            if number < 0:
                raise InputError(f"the {side} graph has no entity {name[:200]!r}", remedy="give its identifier")
        return ids

    def confidence_of(self, source: int, target: int) -> float | None:
        """The run's own confidence in a pair; None if it has not decided on it."""
        place = self.places.get((source, target))
        return None if place is None else float(self.questions.confidences[place])

    def answer(
        self, source: str, target: str, answer: str, *, reviewer: str, key: str, instead: str = "", blind: bool = False
    ) -> Entry:
        """Keep an answer; when this returns it is on the disk. Entities that the graphs do not have are refused."""
        confidence = self.confidence_of(*self.find(source, target))
        if instead:
            self.find(source, instead)
        more: dict[str, Any] = {"reviewer": reviewer, "key": key, "instead": instead, "is_blind": blind}
        entry = self.store.answer(source, target, answer, confidence=confidence, **more)
        self.refresh()
        return entry

    def undo(self, *, reviewer: str, key: str) -> Entry | None:
        """Undo the last answer of a reviewer; None if there is none."""
        entry = self.store.undo(reviewer=reviewer, key=key)
        self.refresh()
        return entry

    # ---- what is asked ----------------------------------------------------------------------------------------------

    def chosen(self, filters: Filters, reviewer: str) -> Mask:
        """Which questions the filters leave; (num_questions,)."""
        questions = self.questions
        mine = np.zeros(len(questions), np.bool_)
        mine[self._by.get(reviewer, [])] = True
        scopes = {
            "open": ~self._answered & ~self._implied,
            "second opinion": self._answered & ~mine,
            "skipped": self._skipped,
            "disputed": self._disputed,
        }
        left: Mask = scopes[filters.scope].copy()
        if self._decided is not None and filters.scope == "open":
            left &= self._now > 0  # what the agent would no longer link is no question
        if filters.kind != "all":
            is_link = np.where(self._answered, questions.is_link, self._is_link)
            left &= is_link == (filters.kind == "links")
        if filters.low > 0 or filters.high < 1:
            confidences = np.where(self._answered, questions.confidences, self._now)
            left &= (confidences >= filters.low) & (confidences <= filters.high)
        if filters.class_:
            of_source, of_target = (facts.having([filters.class_]) for facts in self.facts)
            left &= of_source[questions.source_ids] | of_target[questions.target_ids]
        if filters.channel:
            name, _, what = filters.channel.rpartition(" ")
            if name not in questions.channels or what not in ("for", "against"):
                raise InputError(f"unknown channel {filters.channel!r}", remedy="use a channel of the run")
            left &= questions.says[:, questions.channels.index(name)] == (1 if what == "for" else -1)
        if filters.disagree:
            left &= questions.disagree
        return left

    def next(self, filters: Filters, *, reviewer: str, holder: str) -> tuple[int, int] | None:
        """The ids of the next pair, kept from others for some minutes; None if none is left."""
        self.refresh()
        with self._lock:
            left, order = self.chosen(filters, reviewer), self._order(filters.order)
            pair, taken = self.run.pair, self.store.leased_to_others(holder)
            for place in order[left[order]].tolist():
                source, target = int(self.questions.source_ids[place]), int(self.questions.target_ids[place])
                names = pair.source.entities[source], pair.target.entities[target]
                if names not in taken and self.store.lease(*names, holder):
                    return source, target
        return None

    def card(self, source: int, target: int, *, reviewer: str, is_blind: bool) -> dict[str, Any]:
        """All that is shown of a pair, with what was answered about it."""
        card = make_card(self.run, self.facts, source, target, is_blind=is_blind)
        said = [one for one in self.entries_of(source, target) if not is_blind or one.reviewer == reviewer]
        card["said"] = [
            {"answer": one.answer, "reviewer": one.reviewer, "time": one.time, "instead": one.instead} for one in said
        ]
        if not is_blind:
            card["confidence"] = self.confidence_of(source, target)
            card["now"] = self._tell_now(source, target)
            place = self.places.get((source, target))
            if place is not None:
                said_by = dict(zip(self.questions.channels, self.questions.says[place].tolist(), strict=True))
                for row in card["channels"]:
                    if row["channel"] in said_by:  # of its first column
                        row["says"] = said_by.pop(row["channel"])
        return card

    def _tell_now(self, source: int, target: int) -> str:
        """What the answers so far have made of a pair, in a sentence; empty where that is nothing."""
        if self._decided is None:
            return ""
        links, place = self._decided.links, self.places.get((source, target))
        now, was = (0.0, 0.0) if place is None else (self._now[place], self.questions.confidences[place])
        if now > 0:
            return f"After the answers so far, its confidence is {now:.2f}." if abs(now - was) >= 0.005 else ""
        others = links.target_ids[links.source_ids == source].tolist()
        if others and self.questions.is_link[self.places[source, others[0]]]:
            return ""  # as the run has it
        return f"After the answers so far, the source is {self.run.pair.target.names[others[0]]}." if others else ""

    def entries_of(self, source: int, target: int) -> list[Entry]:
        """The answers about a pair that were not undone."""
        pair = self.run.pair
        names = pair.source.entities[source], pair.target.entities[target]
        undone = {one.undoes for one in self._entries}
        return [
            one
            for one in self._entries
            if one.undoes is None and one.number not in undone and one.source == names[0]
            if names[1] in (one.target, one.instead)
        ]

    # ---- what is told -----------------------------------------------------------------------------------------------

    @cached_property
    def classes(self) -> list[tuple[str, str]]:
        """Identifiers and readable names of the classes of both graphs, those of most entities first."""
        counts: Counter[str] = Counter()
        for facts in self.facts:
            for name in facts.all_types:
                counts[name] += int(facts.having([name]).sum()) if len(facts.all_types) <= MOST_CLASSES else 1
        return [(name, local_name(name)) for name, _ in counts.most_common(MOST_CLASSES)]

    @property
    def default_order(self) -> str:
        """The order that brings most on runs of this kind (docs/questions.md)."""
        by_structure = self.run.trace is not None and not self.questions.channels
        return BY_STRUCTURE if by_structure else DEFAULT_ORDER

    def choices(self) -> dict[str, Any]:
        """What can be filtered by; the first order is the one to begin with."""
        orders = [name for name in ORDERS if name != LEARNED or self.live is not None]
        return {
            "orders": sorted(orders, key=lambda name: name != self.default_order),
            "scopes": list(SCOPES),
            "kinds": list(KINDS),
            "classes": self.classes,
            "channels": [f"{name} {what}" for name in self.questions.channels for what in ("for", "against")],
            "calibrated": self.is_calibrated,
            "title": str(as_dict(self.run.record.get("result")).get("pair", "")),
        }

    def state(self, filters: Filters, reviewer: str, *, is_blind: bool = False) -> dict[str, Any]:
        """Progress, the curve of thresholds, what the answers changed, and where reviewers contradict each other."""
        self.refresh()
        with self._lock:
            verdicts, names = self.verdicts, self.run.pair
            undone = {one.undoes for one in self._entries}
            standing = [one for one in self._entries if one.undoes is None and one.number not in undone]
            was_link = self.questions.is_link
            added = self._pairs(~was_link & self._links_now) + self._beside
            removed = self._pairs(was_link & ~self._links_now)
            was = float(self.questions.confidences[was_link].astype(np.float64).sum())
            now = float(self.confidences[self._links_now].sum()) + len(self._beside)

            def told(pairs: list[tuple[int, int]]) -> list[list[str]]:
                return [[names.source.names[s], names.target.names[t]] for s, t in pairs[:MOST_LISTED]]

            return {
                "answers": len(standing),
                "mine": sum(one.reviewer == reviewer for one in standing),
                "accepted": len(verdicts.accepted),
                "rejected": len(verdicts.rejected),
                "skipped": len(verdicts.skipped),
                "disputed": [asdict(one) for one in verdicts.disputed[:MOST_LISTED]],
                "reviewers": sorted({one.reviewer for one in standing}),
                "left": int(self.chosen(filters, reviewer).sum()),
                "pairs": len(self.questions),
                "links_before": int(was_link.sum()),
                "links_now": int(self._links_now.sum()) + len(self._beside),
                "expected_before": was,
                "expected_now": now,
                "removed": told(removed),
                "added": told(added),
                "num_removed": len(removed),
                "num_added": len(added),
                "curve": self._curve(),
                "live": self._tell_live(is_blind),
            }

    def _pairs(self, chosen: Mask) -> list[tuple[int, int]]:
        """The ids of some questions."""
        places = np.flatnonzero(chosen)
        ends = self.questions.source_ids[places].tolist(), self.questions.target_ids[places].tolist()
        return list(zip(*ends, strict=True))

    def _tell_live(self, is_blind: bool) -> dict[str, Any]:
        """Whether answers count at once, and what the last ones changed beside their own pairs.

        To somebody for whom scores are hidden no link and no confidence is told.
        """
        if self.live is None:
            return {"status": "off", "text": ""}
        status = self.live.status
        told: dict[str, Any] = {"status": status, "text": self.live.text, "changes": [], "moved": 0}
        if self._decided is None or status == MAKING:
            return told
        asked = {place for places in self._by.values() for place in places}
        sources = {int(self.questions.source_ids[place]) for place in asked}
        changes = [one for one in self._decided.changes if one.source_id not in sources]
        moved = np.abs(self._now - self.questions.confidences) >= CHANGED
        told |= {"moved": int((moved & ~self._answered).sum()), "num_changes": len(changes)}
        told["milliseconds"] = round(1000 * self._decided.seconds)
        if not is_blind and status in (READY, DECIDING):
            told["changes"] = [self._tell_change(one) for one in changes[:MOST_LISTED]]
        return told

    def _tell_change(self, one: Change) -> dict[str, Any]:
        """A change by name, and the pair that can be looked at."""
        pair = self.run.pair
        other = one.target_id if one.target_id >= 0 else one.target_before

        def side(target: int, confidence: float) -> dict[str, Any]:
            return {"name": "" if target < 0 else pair.target.names[target], "confidence": round(confidence, 4)}

        return {
            "source": pair.source.names[one.source_id],
            "before": side(one.target_before, one.confidence_before),
            "after": side(one.target_id, one.confidence),
            "pair": [pair.source.entities[one.source_id], pair.target.entities[other]],
        }

    def _curve(self) -> dict[str, Any]:
        """Links and expected precision and recall by threshold: 0, .01, ... 1; after the answers so far."""
        values = np.concatenate([self.confidences, np.ones(len(self._beside))])
        bins = np.minimum(np.floor(values * STEPS + 1e-9).astype(int), STEPS)
        is_there = ~(values == 0)
        counts = np.bincount(bins[is_there], minlength=STEPS + 1)[::-1].cumsum()[::-1]
        right = np.bincount(bins, weights=values, minlength=STEPS + 1)[::-1].cumsum()[::-1]
        shared = as_dict(as_dict(self.run.record.get("result")).get("overlap")).get("shared")
        all_right = max(float(right[0]), float(shared) if is_number(shared) else 0.0)  # type: ignore[arg-type]
        return {
            "links": counts.tolist(),
            "precision": [round(float(r / c), 4) if c else None for r, c in zip(right, counts, strict=True)],
            "recall": [round(float(r / all_right), 4) if all_right else None for r in right],
        }

    def search(self, text: str, side: str = "both") -> list[dict[str, Any]]:
        """Entities by a part of their name, or by identifier; those that begin with it first."""
        wanted, pair = plain(text), self.run.pair
        found: list[tuple[bool, int, str, int]] = []
        for number, (name, graph) in enumerate((("source", pair.source), ("target", pair.target))):
            if side not in ("both", name):
                continue
            exact = graph.entity_index.get(text.strip())
            if exact is not None:
                found.append((False, -1, name, exact))
            if wanted:
                for entity, folded in enumerate(self._folded[number]):
                    if wanted in folded and entity != exact:
                        found.append((not folded.startswith(wanted), len(folded), name, entity))
        found.sort()
        return [
            self._hit(pair.source if name == "source" else pair.target, name, k) for _, _, name, k in found[:MOST_FOUND]
        ]

    def _hit(self, graph: KnowledgeGraph, side: str, entity: int) -> dict[str, Any]:
        """An entity that was found, and the pair that can be looked at: its link, or its best candidate."""
        ends = self._pair_of(side, entity)
        pair = self.run.pair
        other = ""
        if ends is not None:
            other = pair.target.names[ends[1]] if side == "source" else pair.source.names[ends[0]]
        return {
            "side": side,
            "identifier": graph.entities[entity],
            "name": graph.names[entity],
            "pair": None if ends is None else [pair.source.entities[ends[0]], pair.target.entities[ends[1]]],
            "other": other,
        }

    def _pair_of(self, side: str, entity: int) -> tuple[int, int] | None:
        memory, trace = self.run.memory, self.run.trace
        other = int((memory.counterparts if side == "source" else memory.counterparts_back)[entity])
        if other < 0:
            own = self.questions.source_ids if side == "source" else self.questions.target_ids
            places = np.flatnonzero(own == entity)
            if len(places):
                return int(self.questions.source_ids[places[0]]), int(self.questions.target_ids[places[0]])
            if trace is None:
                return None
            best = trace.pairs(entity)[0][:1].tolist() if side == "source" else [trace.best_source(entity)]
            other = -1 if not best or best[0] is None else int(best[0])
        return None if other < 0 else (entity, other) if side == "source" else (other, entity)
