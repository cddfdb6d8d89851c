"""Why a link was made, or was not, asked of a run folder (docs/explain.md)."""

from rlea.views.explain.answer import (
    Attribute,
    Case,
    Contradiction,
    Entity,
    Explanation,
    Link,
    Relation,
    Rival,
    Saying,
    Support,
    Values,
)
from rlea.views.explain.entities import find_entity
from rlea.views.explain.run import Run, explain

__all__ = [
    "Attribute",
    "Case",
    "Contradiction",
    "Entity",
    "Explanation",
    "Link",
    "Relation",
    "Rival",
    "Run",
    "Saying",
    "Support",
    "Values",
    "explain",
    "find_entity",
]
