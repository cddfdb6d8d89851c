"""Attribute evidence: how far the literals of two entities speak for their being the same.

Values are compared by what they are (numbers, dates, places, codes, text), weighed by how rare they are, and only where
the two attributes are known, or found, to correspond.
"""

from __future__ import annotations

from rlea.evidence.attributes.correspondence import Correspondence
from rlea.evidence.attributes.evidence import AttributeEvidence, AttributeSettings, compare_values, score_attributes

__all__ = ["AttributeEvidence", "AttributeSettings", "Correspondence", "compare_values", "score_attributes"]
