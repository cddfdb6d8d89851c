"""Which relations, attributes and classes correspond, as a part of the page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import polars as pl
import pytest

from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.schema import Alignment, Schema
from rlea.matching import Matching
from rlea.views.report.run import render_run
from rlea.views.report.schema import ROWS, TITLE, render_schema

KIND = Alignment("http://s.example/Kind", "http://t.example/Q5", False, 0.5, 0.25)


def cells(html):
    """The rows of every table, as the text of their cells."""
    root = ElementTree.fromstring(f"<div>{html}</div>")
    return [
        [[" ".join("".join(cell.itertext()).split()) for cell in row.iter("td")] for row in table.iter("tr")][1:]
        for table in root.iter("table")
    ]


def widths(html):
    return re.findall(r'style="width: ([^"]*)"', html)


def test_both_inclusions_are_drawn_and_told():
    html = render_schema(Schema(relations=(Alignment("http://s.example/bornIn", "a/birth_of", True, 0.987, 0.25),)))
    assert cells(html) == [[["bornIn", "a/birth of (inverse)", "→99 % ←25 %"]]]
    assert widths(html) == ["99%", "25%"]
    assert 'title="http://s.example/bornIn"' in html
    assert "relations" in html
    assert "classes</h3>" not in html


def test_the_best_come_first_up_to_a_limit():
    many = tuple(Alignment(f"r{number}", "q", False, number / 100, 0.5) for number in range(40))
    (rows,) = cells(render_schema(Schema(relations=many)))
    assert [row[0] for row in rows] == [f"r{number}" for number in range(39, 39 - ROWS, -1)]
    assert f"(the best {ROWS} of 40)" in render_schema(Schema(relations=many))
    assert "(2 in total)" in render_schema(Schema(relations=many[:2]))
    html = render_schema(Schema(many, many[:1], (Alignment('<b>"bold"</b>', "x & y", False, 1.0, 1.0),)))
    assert re.findall(r"<h3>(\w+)", html) == ["relations", "attributes", "classes"]
    assert "<b>" not in html
    assert cells(html)[2][0][:2] == ['<b>"bold"</b>', "x & y"]


def graph(*entities, names=None):
    nothing = pl.DataFrame(schema=dict.fromkeys(["head", "relation", "tail"], pl.String))
    return KnowledgeGraph.build(nothing, entities=entities, names=names)


@pytest.fixture
def pair():
    target = graph("http://t.example/Q5", names={"http://t.example/Q5": "human"})
    return GraphPair("people", graph("http://s.example/Ann"), target)


def test_the_page_of_a_run_has_the_section_if_anything_corresponds(pair):
    # A class that is an entity is shown by its name.
    assert cells(render_schema(Schema(classes=(KIND,)), pair))[0][0][:2] == ["Kind", "human"]
    assert cells(render_schema(Schema(classes=(KIND,))))[0][0][:2] == ["Kind", "Q5"]

    def page(**more):
        return render_run(pair, Matching.of([], [], []), {}, **more)

    assert f"<h2>{TITLE}</h2>" in page(schema=Schema(classes=(KIND,)))
    assert render_schema(Schema(classes=(KIND,)), pair) in page(schema=Schema(classes=(KIND,)))
    assert page() == page(schema=None) == page(schema=Schema())
    assert TITLE not in page()
