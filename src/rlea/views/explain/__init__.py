"""Explanations: why a run has a link, or why not (docs/explain.md)."""

from rlea.views.explain.answer import Explanation
from rlea.views.explain.run import Run, explain

__all__ = ["Explanation", "Run", "explain"]
