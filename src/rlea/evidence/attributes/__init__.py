"""Attribute evidence: how far the literals of two entities suggest that they match.

Values are compared by kind (numbers, dates, places, codes, text), weighted by rarity, and only under attributes that
correspond.
"""

from __future__ import annotations

from rlea.evidence.attributes.correspondence import Correspondence
from rlea.evidence.attributes.evidence import AttributeEvidence, compare_values, score_attributes

__all__ = ["AttributeEvidence", "Correspondence", "compare_values", "score_attributes"]
