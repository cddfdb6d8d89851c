"""The part of a run's page that says which relations, attributes and classes of the two graphs correspond."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rlea.graph.names import local_name
from rlea.graph.schema import Alignment, Schema
from rlea.views.report.page import make, paragraph, side_by_side

if TYPE_CHECKING:
    from rlea.graph import GraphPair, KnowledgeGraph

ROWS = 15  # of each table
TITLE = "What corresponds"


def render_schema(schema: Schema, pair: GraphPair | None = None, *, rows: int = ROWS) -> Markup:
    """The surest relations, attributes and classes as HTML, a table each; nothing where nothing corresponds.

    Where a relation or class is an entity of its graph in `pair`, it is called by its name there, else by the last part
    of its identifier; the identifier is shown on pointing at it.
    """
    source, target = (None, None) if pair is None else (pair.source, pair.target)
    tables = [
        make(
            "schema.html.j2",
            "alignment_table",
            part,
            f"the surest {rows} of {len(found):,}" if len(found) > rows else f"{len(found):,} in all",
            [_row(one, source, target) for one in found[:rows]],
        )
        for part, found in schema.as_written().parts.items()
        if found
    ]
    if not tables:
        return Markup()
    about = (
        "How likely one is included in the other: of the facts whose entities have counterparts the share that the "
        "other graph states, of classes the share of members that are members there. → is source in target, ← target "
        "in source; the narrower of two terms is in the other, and not the other way round. Where few facts speak, "
        "100 % is easily reached."
    )
    return paragraph(about) + side_by_side(tables)


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
