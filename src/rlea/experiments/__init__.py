"""The paper's tables and figures, one file each: `rlea reproduce` by name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Experiment:
    """Where an experiment lives, what of the paper it repeats, and what it asks in a few words."""

    module: str
    repeats: str
    summary: str


EXPERIMENTS: dict[str, Experiment] = {
    "main": Experiment("main", "Table 1", "every decider over the vectors of five models: Hits@1"),
    "candidates": Experiment("candidates", "Figure 4", "Hits@1 and seconds of an episode against candidates"),
    "ablation": Experiment("ablation", "Figures 5 and 7", "learning curves: full, no estimator, random environment"),
    "bootea": Experiment("bootea", "Figure 6", "deciding better or training on: AlignE, BootEA, joint rounds"),
    "conventional": Experiment("conventional", "Table 2", "precision, recall and F1 beside PARIS and LogMap"),
    "scale": Experiment("scale", "Table 3", "seconds and memory of every stage from 1,000 to 1,000,000 entities"),
    "evidence": Experiment("evidence", "nothing", "names, words, attributes, PARIS and structure together, or but one"),
    "dangling": Experiment("dangling", "nothing", "a share of the targets taken away: who should have no link"),
}
