"""How long the stages of a run should take: weights for the one bar of all stages and its estimate of the time left.

The seconds were measured on OpenEA 15K (D-W, both graphs together 30,000 entities and 207,000 literals) on one core. On
other machines and data only their ratios count, roughly: how fast a run goes is taken from the run itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlea.deciders import DECIDERS, is_paper
from rlea.models import MODELS
from rlea.settings import settle

if TYPE_CHECKING:
    from rlea.graph import GraphPair
    from rlea.settings import AlignSettings

ENTITIES, LITERALS = 30_000, 207_000  # of the pair that was measured
FEW_SEEDS = 100  # below, the run starts from pseudo-seeds and plays null models
TRAINING = 200.0  # seconds of a model
LEAST = 0.3  # seconds of any stage, however small the graphs are
# Stage -> seconds that go with the number of entities, and with that of literals, in the order of the stages.
WITH_SEEDS = {
    "agent: evidence": (6.0, 14.0),
    "agent: channels": (0.5, 0.5),
    "agent: games": (9.0, 0.0),
    "agent: supervision": (12.0, 0.0),
    "agent: calibration": (6.0, 0.0),
    "agent: decisions": (7.0, 0.0),
}
WITHOUT_SEEDS = {
    "names": (1.0, 0.0),
    "candidates": (4.0, 0.0),
    "attributes": (0.0, 6.0),
    "paris": (1.0, 1.0),
    "agent: evidence": (3.0, 6.0),
    "agent: channels": (3.0, 0.0),
    "agent: games": (9.0, 0.0),
    "agent: decisions": (5.0, 0.0),
    "agent: null models": (15.0, 8.0),
    "agent: confidences": (4.0, 0.0),
}
BY_VECTORS = {"names": (1.0, 0.0), "compile matchers": (1.0, 0.0), "candidates": (4.0, 0.0)}
BY_PARIS = {"paris": (1.0, 2.0)}
WRITING = {"write": (2.0, 0.0)}


def plan_stages(pair: GraphPair, settings: AlignSettings) -> dict[str, float]:
    """The stages of a run in their order, with the seconds that each may take; empty where that is not known."""
    settings = settle(settings)
    if settings.joint or is_paper(settings):
        return {}
    if settings.matcher == "paris":
        stages = BY_PARIS
    elif DECIDERS[settings.matcher].channels:
        stages = WITH_SEEDS if len(pair.train) >= FEW_SEEDS else WITHOUT_SEEDS
    else:
        stages = BY_VECTORS
    entities = (pair.source.num_entities + pair.target.num_entities) / ENTITIES
    literals = (len(pair.source.literals) + len(pair.target.literals)) / LITERALS
    trained = [name for name in settings.embedding if name in MODELS and MODELS[name].trained]
    plan = {name.replace("-", ""): TRAINING * entities for name in trained}
    return plan | {name: max(a * entities + b * literals, LEAST) for name, (a, b) in (stages | WRITING).items()}
