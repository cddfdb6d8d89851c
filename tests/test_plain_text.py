"""Hostile names are text everywhere: in a terminal, in JSON, in a page and in a spreadsheet."""

import json

import pytest

import rlea
from rlea.io.synthetic import LABEL
from rlea.io.writers.graphs import write_graph
from rlea.plain_text import cell, json_line, visible

HOSTILE = "A\x1b[2J\x9b2J\u202eB\u2066\ud800</script><script>"


def test_nothing_is_left_that_a_terminal_obeys():
    shown = visible(HOSTILE)
    assert shown == "A [2J 2J B  </script><script>"
    assert visible("two\nlines, שלום, مرحبا") == "two\nlines, שלום, مرحبا"


def test_json_is_the_same_value_and_shows_no_command():
    for only_ascii in (False, True):
        line = json_line({"name": HOSTILE}, only_ascii=only_ascii)
        assert json.loads(line) == {"name": HOSTILE}
        assert not set(line) & set("\x1b\x9b\u202e\u2066\ud800")
    assert "é" in json_line("é")


@pytest.mark.parametrize("formula", ["=1+1", "+cmd|' /C calc'!A0", "@SUM(A1)", "-2+3", "\t=1", "\n=1"])
def test_no_label_is_a_formula(formula):
    assert cell(formula).lstrip(" ").startswith("'") or cell(formula).startswith(" ")
    assert cell(cell(formula)) == cell(formula)


@pytest.mark.parametrize("label", ["Ada", "-5", "+1,234.5", "a=b", "", "2 - 1"])
def test_other_labels_stay(label):
    assert cell(label) == label


def test_files_page_and_terminal_show_no_command_and_no_formula(run_cli, tmp_path):
    names = {"a": "=HYPERLINK(1)", "b": HOSTILE.replace("\ud800", "")}
    graph = {"triples": [("a", "near", "b")], "literals": [(one, LABEL, name) for one, name in names.items()]}
    result = rlea.align(rlea.read(graph, graph), matcher="mutual")
    rlea.write(tmp_path, result, formats=("csv",))
    for name in ("links.tsv", "links.csv", "links.sssom.tsv", "report.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "HYPERLINK" in text
        assert not set(text) & set("\x1b\x9b\u202e\u2066")
        assert "\t=" not in text
        assert ",=" not in text
    assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    write_graph(tmp_path / "graph.nt", result.pair.source)
    graph = tmp_path / "graph.nt"
    said = [run_cli("align", graph, graph, "--matcher", "mutual", "--output", tmp_path / "out", "--json")]
    said += [run_cli("explain", tmp_path / "out", "a", *more) for more in ((), ("--json",))]
    said += [run_cli("dedupe", graph, *more) for more in ((), ("--json",))]
    for done in said:
        assert done.code == 0, done.err
        assert not set(done.out + done.err) & set("\x1b\x9b\u202e\u2066")
    assert "HYPERLINK" in said[1].out
