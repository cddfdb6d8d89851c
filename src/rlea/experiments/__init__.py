"""The paper's tables and figures, one file each: `rlea reproduce` runs them by name."""

from __future__ import annotations

from rlea.experiments import ablation, bootea, candidates, conventional, dangling, evidence, main, scale
from rlea.experiments.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "main": main.EXPERIMENT,
    "candidates": candidates.EXPERIMENT,
    "ablation": ablation.EXPERIMENT,
    "bootea": bootea.EXPERIMENT,
    "conventional": conventional.EXPERIMENT,
    "scale": scale.EXPERIMENT,
    "evidence": evidence.EXPERIMENT,
    "dangling": dangling.EXPERIMENT,
}
