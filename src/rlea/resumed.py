"""A finished run taken up again: its settings, its graphs, its links, and the agent that decided.

`rlea review` and `rlea update` go on from here. The agent is the one that the run kept; where there is none, because
the run is of an earlier version, it is trained again as the run trained it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from rlea.agent.kept import KEPT, Kept
from rlea.agent.live import LiveRun
from rlea.deciders import Inputs, train_agent
from rlea.errors import InputError
from rlea.io.apart import keep_apart
from rlea.io.writers.run_folder import check_whole
from rlea.matching import Matching
from rlea.pipeline import make_inputs
from rlea.progress import Progress, silent
from rlea.record import as_dict
from rlea.settings import AlignSettings
from rlea.views.explain import Run


def why_not(record: dict[str, Any]) -> str:
    """Why a run cannot go on, as a part of a sentence; empty if it can. `record` is that of the run."""
    settings = as_dict(record.get("settings"))
    matcher = as_dict(record.get("result")).get("matcher")
    if matcher != "fused":
        return f"its links were decided by {matcher}, not by the agent with all evidence"
    if settings.get("cardinality", "1:1") != "1:1":
        return f"its cardinality is {settings['cardinality']}"
    if settings.get("joint"):
        return "it trained its vectors in joint rounds"
    return "" if settings else "its record is of an earlier version"


def settings_of(record: dict[str, Any]) -> AlignSettings:
    """The settings of a run, by its record."""
    known = {field.name for field in fields(AlignSettings)}
    given = {name: value for name, value in as_dict(record.get("settings")).items() if name in known}
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    try:
        return AlignSettings(**{**given, **lists})
    except (TypeError, AttributeError) as problem:
        raise InputError("run.json has settings that cannot be read", remedy="align again") from problem


@dataclass(frozen=True, eq=False)
class Resumed:
    """A run that can go on."""

    run: Run
    settings: AlignSettings
    inputs: Inputs  # what the agent may see; without gold
    kept: Kept | None  # None where the run kept no agent

    @staticmethod
    def open(folder: str | Path, *, progress: Progress = silent) -> Resumed:
        """Read the folder of a run and its graphs. A run that cannot go on is refused."""
        progress("read", 0, 1)
        run = Run.open(folder)
        if why := why_not(run.record):
            raise InputError(f"this run cannot go on: {why}", path=folder, remedy="align again with --matcher fused")
        settings, kept = settings_of(run.record), None
        path = Path(folder) / KEPT
        if path.is_file():
            check_whole(Path(folder), run.record, (KEPT,))
            kept = Kept.load(path)
        given = as_dict(run.record.get("inputs"))
        pair = keep_apart(run.pair, given.get("different"), given.get("disjoint"))
        progress("read", 1, 1)
        return Resumed(run, settings, make_inputs(pair, settings, progress), kept)

    @property
    def links(self) -> Matching:
        """All links that the agent had found, those that were left out among them."""
        run = self.run
        if run.trace is not None:
            return Matching.of(run.trace.source_ids, run.trace.target_ids, run.trace.confidences)
        return Matching.of(run.source_ids, run.target_ids, run.confidences)

    def live(self) -> LiveRun:
        """The run as one that answers change at once."""
        return go_on(self.inputs, self.kept, self.links)[0]

    @property
    def least(self) -> float:
        """The lowest confidence of a link that the run has kept; 1 if it has kept none."""
        return float(np.min(self.run.confidences, initial=1.0))


def go_on(inputs: Inputs, kept: Kept | None, links: Matching) -> tuple[LiveRun, Kept]:
    """A run with links as they stand, by what it kept, and what it keeps now; without, the agent learns again."""
    if kept is not None:
        more: dict[str, Any] = {"pool": inputs.settings.pool, "progress": inputs.progress}
        return LiveRun.resume(kept, inputs.pair, links, inputs.vectors, **more), kept
    aligner, vectors, _ = train_agent(inputs)
    pools = inputs.source_ids, inputs.target_ids
    outcome = aligner.decide(inputs.pair, *pools, vectors, progress=inputs.progress)
    if outcome.state is None or outcome.rating is None:
        raise InputError("there is nothing to decide", remedy="give entities without a seed on both sides")
    return LiveRun(aligner, outcome.state(), links), Kept.of(aligner, outcome.rating)
