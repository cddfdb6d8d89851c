"""The section of the report with corresponding relations, attributes and classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rlea.graph.names import local_name
from rlea.graph.schema import Alignment, Schema
from rlea.views.report.page import make, paragraph, side_by_side

if TYPE_CHECKING:
    from rlea.graph import GraphPair, KnowledgeGraph

ROWS = 15  # of each table
TITLE = "Corresponding relations, attributes and classes"
ABOUT = (
    "How likely one term is included in the other: for relations and attributes, the share of the facts about matched "
    "entities that the other graph states as well; for classes, the share of matched members that are members there. "
    "→ is source in target, ← is target in source. The narrower of two terms is included in the other, not the other "
    "way round. With few facts, 100 % is reached easily."
)


def render_schema(schema: Schema, pair: GraphPair | None = None, *, rows: int = ROWS) -> Markup:
    """The best correspondences as HTML, one table each for relations, attributes and classes; empty if there are none.

    A term that is an entity of its graph in `pair` is shown by its name, others by the last part of their identifier.
    """
    source, target = (None, None) if pair is None else (pair.source, pair.target)
    tables = []
    for part, found in schema.as_written().parts.items():
        count = f"the best {rows} of {len(found):,}" if len(found) > rows else f"{len(found):,} in total"
        shown = [_row(one, source, target) for one in found[:rows]]
        if shown:
            tables.append(make("schema.html.j2", "alignment_table", part, count, shown))
    return paragraph(ABOUT) + side_by_side(tables) if tables else Markup()


def _row(one: Alignment, source: KnowledgeGraph | None, target: KnowledgeGraph | None) -> dict[str, Any]:
    there, back = round(100 * one.source_in_target), round(100 * one.target_in_source)
    return {
        "source": _name(one.source, source),
        "target": _name(one.target, target),
        "source_id": one.source,
        "target_id": one.target,
        "is_inverse": one.is_inverse,
        "shares": (("→", "source in target", there), ("←", "target in source", back)),
    }


def _name(identifier: str, graph: KnowledgeGraph | None) -> str:
    if graph is not None and identifier in graph.entity_index:
        return graph.names[graph.entity_index[identifier]]
    return local_name(identifier)
