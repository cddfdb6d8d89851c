"""All evidence together, and with one channel left out at a time: precision, recall, F1, abstentions, seconds.

With seeds: those of a fold, a fifth of the links; the links of the test entities are judged, out of the test entities.
Without: no link is known, all entities are to be matched, and all links of the data set judge. A channel that is left
out is a witness less. It does not take away what others know of the same: PARIS and words know names, too, and PARIS
reasons along the edges. `--hide names` takes names away from everybody. EN-DE and D-Y come without the attributes of
their second graph: attributes have nothing to compare there, and are not left out.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numba
import numpy as np

from rlea.agent.fused import FusedAgent, FusionSettings
from rlea.evaluation.metrics import expected_calibration_error, link_metrics
from rlea.evidence import ATTRIBUTES, CHANNELS
from rlea.evidence.channels import Evidence
from rlea.experiments.code_version import code_version
from rlea.experiments.costs import MEMORY, Costs
from rlea.experiments.desk import FOLDS, PAIRS, QUICK, SEED, Desk, plain
from rlea.experiments.figures import Figure, markdown_table, share, title
from rlea.experiments.grid import Cell, Grid, Results
from rlea.experiments.inputs import check_known
from rlea.experiments.published import TABLE_2
from rlea.experiments.store import Store
from rlea.graph import GraphPair, Links, choose_pool
from rlea.matching import keep_worthwhile
from rlea.progress import Progress
from rlea.views.report.plots import dots_plot

SEEDS, NO_SEEDS = BEGINNINGS = ("seeds", "no-seeds")
ALL = "all"
VARIANTS = (ALL, *(f"no-{name}" for name in CHANNELS))
NO_FOLD = "-"  # without seeds there is but one run
COLUMNS = (
    "pair", "beginning", "fold", "variant", "precision", "recall", "f1", "matched", "abstained", "ece", "seconds",
    "peak_memory_mb", "commit", "seed",
)  # fmt: skip
MEASURES = ("precision", "recall", "f1")


def grids(desk: Desk) -> list[Grid]:
    """The cells that were asked for: `models` are the ways to begin, `deciders` what is left out."""
    options = desk.options
    beginnings, variants = options.models or BEGINNINGS, options.deciders or VARIANTS
    check_known(beginnings, BEGINNINGS, "beginning")
    check_known(variants, VARIANTS, "variant")
    desk_evidence = _Shelf(desk)
    cells = [
        Case(desk_evidence, pair, beginning, fold, variant).cell()
        for pair in options.pairs_or(PAIRS)
        for beginning in beginnings
        for fold in (options.folds if beginning == SEEDS else (NO_FOLD,))
        for variant in variants
        if variant == ALL or desk_evidence.has(pair, variant.removeprefix("no-"))
    ]
    order = {"pair": PAIRS, "beginning": BEGINNINGS, "fold": (*FOLDS, NO_FOLD), "variant": VARIANTS}
    return [Grid(Store(options.output / "evidence", COLUMNS, ("pair", "beginning", "fold", "variant"), order), cells)]


class _Shelf:
    """The channels of the last pair: all variants are given the same."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._kept: tuple[tuple[str, ...], Evidence] | None = None

    def has(self, pair: str, channel: str) -> bool:
        """Whether there is such a channel to leave out, where the data is at hand to tell."""
        from rlea.errors import InputError

        if channel != ATTRIBUTES:
            return True
        try:
            graphs = self.desk.pair(pair, "1")
        except InputError:
            return False
        return all(len(graph.literals.values) > 0 for graph in (graphs.source, graphs.target))

    def pair(self, name: str, beginning: str, fold: str) -> tuple[GraphPair, Links]:
        """What the agent may see, and the links that judge it."""
        whole = self.desk.pair(name, "1" if fold == NO_FOLD else fold)
        if beginning == SEEDS:
            return whole, whole.test
        gold = Links.union([whole.train, whole.valid, whole.test])
        return GraphPair(whole.name, whole.source, whole.target), gold

    def evidence(self, name: str, beginning: str, fold: str) -> Evidence:
        key = (name, beginning, fold)
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = (key, Evidence(self.pair(*key)[0]))
        return self._kept[1]


@dataclass(frozen=True, eq=False)
class Case:
    """One run."""

    shelf: _Shelf
    pair: str
    beginning: str
    fold: str
    variant: str

    @property
    def settings(self) -> FusionSettings:
        left_out = self.variant.removeprefix("no-")
        return FusionSettings(channels=tuple(name for name in CHANNELS if name != left_out))

    def cell(self) -> Cell:
        """What the grid runs."""
        names = {"pair": self.pair, "beginning": self.beginning, "fold": self.fold, "variant": self.variant}
        command = f"rlea reproduce evidence --data DIR --pairs {self.pair} --models {self.beginning}"
        command += f" --deciders {self.variant}" + ("" if self.fold == NO_FOLD else f" --folds {self.fold}")
        quick = "rlea reproduce evidence --quick"
        return Cell(names, self.wanted, self.run, quick if self.pair == QUICK else command)

    def wanted(self, progress: Progress) -> dict[str, Any]:
        """What a record of this cell says if it was made by this code, with these settings, from these inputs."""
        pair, gold = self.shelf.pair(self.pair, self.beginning, self.fold)
        return {
            "settings": plain(asdict(self.settings)),
            "code": code_version("rlea.agent.fused", "rlea.evaluation.metrics"),
            "fingerprint": replace(pair, test=gold).fingerprint,
            "gold": len(gold),
            "seed": SEED,
        }

    def run(self, progress: Progress) -> dict[str, Any]:
        """Learn, decide, judge. Seconds are those of a run by itself: channels that were there are charged as well."""
        pair, gold = self.shelf.pair(self.pair, self.beginning, self.fold)
        evidence = self.shelf.evidence(self.pair, self.beginning, self.fold)
        pool, source_ids, target_ids = choose_pool(pair)
        evidence.asked.clear()
        known, costs, start = set(evidence.seconds), Costs(), time.perf_counter()
        with costs("all"):
            agent = FusedAgent(self.settings, seed=SEED).fit(pair, evidence=evidence, progress=progress)
            matching = agent.decide(source_ids, target_ids)[-1].matching
        seconds = time.perf_counter() - start
        seconds += sum(evidence.seconds[key] for key in evidence.asked & known)
        most = min(len(source_ids), len(target_ids))
        kept = keep_worthwhile(matching, most)
        result = {
            **{key: value for key, value in link_metrics(matching, gold).as_dict().items() if key != "pool"},
            "abstained": most - len(matching),
            "ece": expected_calibration_error(matching, gold),
            "worthwhile": link_metrics(kept, gold).as_dict() | {"abstained": most - len(kept)},
            "seconds": seconds,
            "seconds_of_channels": sum(evidence.seconds[key] for key in evidence.asked),
            "peak_memory_mb": costs.memory_mb["all"],
            "memory": MEMORY,
            "threads": numba.get_num_threads(),
            "entities_pool": pool,
        }
        assert agent.beginning is not None
        return {"result": result, "beginning_of_run": agent.beginning.as_dict()}


def has_any(results: Results) -> bool:
    """Whether there is something to show."""
    return bool(results["evidence"])


def shows(result: dict[str, Any]) -> bool:
    """Whether a cell is among those that the table shows."""
    return True


def table(results: Results) -> str:
    """A table of all evidence, then one of what leaving a channel out does to F1."""
    found = _groups(results)
    rows = [
        [
            title(pair),
            beginning,
            str(len(own)),
            *(_figure(own, measure) for measure in MEASURES),
            _mean(own, "abstained"),
            _figure(own, "ece"),
            _mean(own, "seconds"),
            _published(pair, beginning),
        ]
        for (pair, beginning, variant), own in found.items()
        if variant == ALL
    ]
    head = ["", "begins with", "runs", *("precision", "recall", "F1"), "abstained", "calibration error", "seconds"]
    first = markdown_table([*head, "PARIS, published"], rows)
    keys = list(dict.fromkeys((pair, beginning) for pair, beginning, _ in found))
    lines = [
        [title(pair), beginning, *(_left_out(found, pair, beginning, variant) for variant in VARIANTS)]
        for pair, beginning in keys
    ]
    second = markdown_table(["F1", "begins with", ALL, *(f"without {name}" for name in CHANNELS)], lines)
    return f"{first}\n\n{second}"


def remarks(results: Results) -> str:
    """What leaving links out would do."""
    parts = []
    for (pair, beginning, variant), own in _groups(results).items():
        if variant == ALL:
            scores = [float(np.mean([one["worthwhile"][key] for one in own])) for key in ("precision", "recall", "f1")]
            left = float(np.mean([one["worthwhile"]["abstained"] for one in own]))
            parts.append(f"{title(pair)} {beginning} {' / '.join(map(share, scores))} ({left:,.0f} left out)")
    if not parts:
        return ""
    return (
        "Every entity that can be linked is linked. With `--abstain`, which cuts where it expects the best F1, "
        f"precision / recall / F1 are: {'; '.join(parts)}. Without seeds a tenth of the links that judge are "
        "validation links, on which rules for that case were chosen ([measuring.md](measuring.md))."
    )


def pictures(results: Results) -> dict[str, str]:
    """F1 of all evidence and of each left out."""
    rows: dict[str, dict[str, float]] = {}
    for (pair, beginning, variant), own in _groups(results).items():
        name = f"{title(pair)}, {'no seeds' if beginning == NO_SEEDS else 'seeds'}"
        shown = variant if variant == ALL else f"without {variant.removeprefix('no-')}"
        rows.setdefault(name, {})[shown] = float(np.mean([one["f1"] for one in own]))
    return {"evidence": dots_plot(rows, "F1")}


Groups = dict[tuple[str, str, str], list[dict[str, Any]]]


def _groups(results: Results) -> Groups:
    groups: Groups = {}
    for record in results["evidence"].values():
        one = record["result"]
        groups.setdefault((one["pair"], one["beginning"], one["variant"]), []).append(one)
    return groups


def _figure(own: list[dict[str, Any]], measure: str) -> str:
    return str(Figure.of([one[measure] for one in own]))


def _mean(own: list[dict[str, Any]], measure: str) -> str:
    return f"{np.mean([one[measure] for one in own]):,.0f}"


def _published(pair: str, beginning: str) -> str:
    """PARIS has no seeds: beside a run with them it is no rival."""
    row = TABLE_2["PARIS"].get(pair)
    return share(row[-1]) if row is not None and beginning == NO_SEEDS else ""


def _left_out(found: Groups, pair: str, beginning: str, variant: str) -> str:
    own = found.get((pair, beginning, variant))
    if own is None:
        return "-"
    return f"{Figure.of([one['f1'] for one in own])}" + (f" ({len(own)})" if variant != ALL and len(own) > 1 else "")
