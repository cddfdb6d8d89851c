"""An entity as a web page: whole, and as a small preview. All text is escaped."""

from __future__ import annotations

from functools import cache
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from rlea.graph.names import local_name
from rlea.serve.facts import Facts

PREVIEWED = 6  # facts on a preview
PREVIEW_WIDTH, PREVIEW_HEIGHT = 420, 220  # pixels

_PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{{ name }}</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 10px; color: #222; background: #fff; }
h1 { font-size: 17px; margin: 0 0 2px; } p { margin: 0 0 8px; color: #666; overflow-wrap: anywhere; }
td { vertical-align: top; padding: 1px 10px 1px 0; overflow-wrap: anywhere; } td:first-child { color: #666; }
</style></head>
<body><h1>{{ name }}</h1>
<p>{{ identifier }}{% if types %} ({{ types | join(", ") }}){% endif %}</p>
<table>
{% for property, values in rows %}
<tr><td>{{ property }}</td><td>{{ values | join("; ") }}</td></tr>
{% endfor %}
</table></body></html>
"""


def entity_page(facts: Facts, entity: int, most: int | None = None) -> str:
    """All facts of an entity, or the first few; entities among the values are links to their pages."""
    values: dict[str, list[str | Markup]] = {}
    for name, fact in facts.of(entity):
        shown: str | Markup = fact.text
        if fact.entity >= 0 and most is None:
            target = quote(facts.graph.entities[fact.entity], safe="", errors="replace")
            shown = Markup('<a href="view?id={}">{}</a>').format(target, fact.text)
        values.setdefault(name, []).append(shown)
    rows = [(local_name(name), texts) for name, texts in values.items()]
    return _template().render(
        name=facts.graph.names[entity],
        identifier=facts.graph.entities[entity],
        types=[local_name(name) for name in facts.types(entity)],
        rows=rows[:most],
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=True, trim_blocks=True)
    return environment.from_string(_PAGE)
