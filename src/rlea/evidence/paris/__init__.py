"""PARIS, the conventional aligner: aligns entities, relations, attributes and classes together, without training.

After Suchanek, Abiteboul and Senellart, "PARIS: Probabilistic Alignment of Relations, Instances, and Schema" (PVLDB
2011). Equation numbers in these files are those of that paper.
"""

from __future__ import annotations

from rlea.evidence.paris.aligner import Iteration, Paris, ParisSettings, run_paris
from rlea.graph.schema import Alignment

__all__ = ["Alignment", "Iteration", "Paris", "ParisSettings", "run_paris"]
