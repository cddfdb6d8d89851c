"""Features of channels, and values side by side, in explanations of runs by all evidence."""

import contextlib
import io
import json
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from rlea import cli
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.views.explain import Explanation, Run, explain
from rlea.views.explain.answer import Feature, PairEvidence, Rival, Term
from rlea.views.explain.values import Comparison, Correspondence, read_correspondences
from rlea.views.explanation import explanation_view
from rlea.views.terminal import as_text

A, B = "http://a/", "http://b/"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Runs by all evidence on a synthetic pair with names and values."""
    folder = tmp_path_factory.mktemp("told")
    write_synthetic(folder / "pair", SyntheticSettings(300, seeds=0.5, values_per_entity=2.0, seed=5))
    for name, more in (("all", ()), ("blind", ("--hide", "names,attributes"))):
        align(folder / "pair", *more, "--output", folder / name)
    return folder


def align(*arguments):
    """`rlea align` in this process."""
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(sys, "argv", ["rlea", "align", *map(str, arguments), "--json"])
        cli.main()


def first_link(run):
    return (run / "links.tsv").read_text().splitlines()[1].split("\t")


def features_of(evidence):
    return {(row.channel, row.meaning): row.value for row in evidence.features}


# ---- channels -------------------------------------------------------------------------------------------------------


def test_all_evidence_has_features_of_every_channel(told, run_cli):
    source, target, *_ = first_link(told / "all")
    run = Run.open(told / "all")
    answer = run.explain(source)
    assert answer.target.identifier == target
    assert {"names", "words", "attributes", "paris"} <= {*answer.channels}
    own = features_of(answer.evidence)
    assert {channel for channel, _ in own} == {*answer.channels}
    assert 0 < own["names", "similarity of the names"] <= 1 + 1e-6
    assert own["paris", "probability"] > 0.5
    assert own["attributes", "log-odds in favour"] > 0
    assert answer.rivals
    for rival in answer.rivals:  # the most confident link leads in these two
        other = features_of(rival.evidence)
        assert other.keys() == own.keys()
        assert other["paris", "probability"] < own["paris", "probability"]
        assert other["attributes", "log-odds in favour"] < own["attributes", "log-odds in favour"]
    # The features of other pairs are not kept.
    kept, _ = run.trace.pairs(run.pair.source.entity_index[source])
    far = next(name for number, name in enumerate(run.pair.target.entities) if number not in kept)
    assert run.explain(source, far).evidence.features == ()
    assert "this pair is not one of them" in " ".join(run_cli("explain", told / "all", source, far).out.split())


def test_channels_that_were_not_used_are_not_named(told, run_cli):
    source, *_ = first_link(told / "blind")
    answer = explain(told / "blind", source)
    assert {row.channel for row in answer.evidence.features} == {*answer.channels}
    assert {"names", "words", "attributes"}.isdisjoint(answer.channels)
    assert answer.values == ()
    assert "names, words" not in run_cli("explain", told / "blind", source).out


def test_the_rival_has_its_own_column():
    """By hand: the first number of a row is of the pair, the second of its best rival."""

    def evidence(names, paris):
        features = (Feature("names", "similarity of the names", names), Feature("paris", "probability", paris))
        return PairEvidence(0.0, 0.0, 0.0, None, features, (), (), ())

    rivals = (Rival(Term("t2", "Second"), evidence(0.25, 0.125), None, "lower logit"),)
    pair = Term("s1", "[bold]One[/bold] :smile:"), Term("t1", "First\x1b[31m")
    given = ("fused", "", ("names", "paris"), "all", "no link")
    answer = Explanation(*given, *pair, *[None] * 4, True, 3, evidence(0.75, 0.5), (), rivals, ())
    console = Console(width=120, file=io.StringIO(), emoji=False)
    console.print(explanation_view(answer))
    text = console.file.getvalue()
    rows = [line.split("│") for line in text.splitlines() if line.startswith("│")]
    cells = {row[2].strip(): (row[3].strip(), row[4].strip()) for row in rows if len(row) == 6}
    assert cells["similarity of the names"] == ("0.75", "0.25")
    assert cells["probability"] == ("0.50", "0.12")
    assert "┃ Second ┃" in text
    assert "No matched neighbour supports it: its evidence is from names or paris." in text
    # Names are text, neither commands to rich nor to the terminal; what scripts need is kept.
    assert "[bold]One[/bold] :smile:" in text
    assert "\x1b" not in text
    assert as_text("می\u200cخواهم\ta\x07") == "می\u200cخواهم a "


@pytest.mark.parametrize("more", ["", "--precision 0.9", "--keep worthwhile", "--keep all", "--threshold 0.9"])
def test_with_few_seeds_it_is_said_how_much_is_shared_and_no_caution(tmp_path, run_cli, more):
    """Whichever links are kept; null models tell, which needs nobody to confirm a link."""
    write_synthetic(tmp_path / "pair", SyntheticSettings(200, seeds=0.1, seed=5))  # 20 seeds
    more = more.split()
    done = run_cli("align", tmp_path / "pair", "--output", tmp_path / "out", *more)
    assert done.code == 0
    told = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    overlap = told["overlap"]
    text = " ".join(done.out.split())
    assert overlap["told"].startswith(f"About {overlap['shared']:.0f} of {overlap['entities']} entities seem to have a")
    assert f"{overlap['told']}. {told['matched']} links accepted, of which about " in text
    assert "miss its aim" not in text
    assert not any("miss its aim" in note for note in told["notes"])
    if more[:1] == ["--precision"]:
        check_rivals_of_what_was_cut(tmp_path / "out")


def check_rivals_of_what_was_cut(folder):
    """A target that was matched is said to be taken, even if its link was dropped."""
    run = Run.open(folder)
    kept = set(run.source_ids.tolist())
    for source in [number for number in run.trace.source_ids.tolist() if number not in kept][:20]:
        for rival in run.explain(run.pair.source.entities[source]).rivals:
            given = run.trace.source_of(run.pair.target.entity_index[rival.target.identifier])
            assert given is None or rival.reason.startswith("taken by ")


# ---- values ---------------------------------------------------------------------------------------------------------


def graph(rows):
    edges = pl.DataFrame(schema=dict.fromkeys(["head", "relation", "tail"], pl.String))
    return KnowledgeGraph.build(
        edges, pl.DataFrame([(*row, "", "") for row in rows], list(LITERAL_COLUMNS), orient="row")
    )


def compared(source, target, *correspondences):
    """The values of the first entities of two graphs, as rows."""
    pair = GraphPair("", graph(source), graph(target))
    found = Comparison(pair, tuple(Correspondence(A + a, B + b, *more) for a, b, *more in correspondences)).of(0, 0)
    return [(one.source_value, one.target_value, one.agreement, one.strength) for one in found]


def test_values_stand_side_by_side(told):
    run = Run.open(told / "all")
    source, target, *_ = first_link(told / "all")
    answer = run.explain(source, target)
    own, there = (
        {
            (graph.attributes[graph.literals.attribute_ids[row]], graph.literals.values[row])
            for row in np.flatnonzero(graph.literals.entity_ids == graph.entity_index[name])
        }
        for graph, name in ((run.pair.source, source), (run.pair.target, target))
    )
    assert answer.values
    assert {(row.source_attribute.identifier, row.source_value) for row in answer.values} <= own
    assert {(row.target_attribute.identifier, row.target_value) for row in answer.values} <= there
    shares = [row.agreement * row.strength for row in answer.values]
    assert shares == sorted(shares, reverse=True)
    assert answer.values[0].agreement > 0.5
    json.dumps([vars(row.source_attribute) for row in answer.values])


def test_numbers_are_read_as_the_run_read_them():
    """1609 alone might be a year; among others of its attribute it is none, and its factor counts."""
    source = [(A + "e", A + "metres", "1609"), *((f"{A}f{k}", A + "metres", str(100 + k)) for k in range(20))]
    target = [(B + "e", B + "miles", "1"), *((f"{B}f{k}", B + "miles", str(k / 7)) for k in range(20))]
    ((one, other, agreement, strength),) = compared(source, target, ("metres", "miles", 0.5, 1 / 1609))
    assert (one, other, strength) == ("1609", "1", 0.5)
    assert agreement > 0.98


@pytest.mark.parametrize(("there", "is_same"), [("2.35", True), ("-150.0", False)])
def test_places_are_compared_by_both_coordinates(there, is_same):
    source = [(A + "e", A + "lat", "48.85"), (A + "e", A + "long", "2.35")]
    target = [(B + "e", B + "lat", "48.85"), (B + "e", B + "long", there)]
    ((one, other, agreement, _),) = compared(source, target, ("lat", "lat", 0.9, 1.0))
    assert (one, other) == ("48.85, 2.35", f"48.85, {float(there):g}")
    assert (agreement > 0.9) == is_same


def test_of_very_many_values_those_that_agree_are_found(monkeypatch):
    monkeypatch.setattr("rlea.views.explain.values.MOST", 5)
    source = [(A + "e", A + "alias", f"word{k:03d}x") for k in range(60)]
    target = [(B + "e", B + "alias", f"other{k:03d}y") for k in range(60)]
    target += [(B + "e", B + "alias", f"word{k:03d}x") for k in (41, 57)]
    rows = compared(source, target, ("alias", "alias", 0.5, 1.0))
    assert len(rows) == 5
    assert {row[:2] for row in rows if row[2] == 1.0} == {("word041x", "word041x"), ("word057x", "word057x")}
    assert [row[0] for row in rows[:2]] == ["word041x", "word057x"]


def test_what_does_not_compare_is_left_out():
    source, target = [(A + "e", A + "born", "1950-07-20")], [(B + "e", B + "name", "Ann Lee")]
    assert compared(source, target, ("born", "name", 0.5, 1.0)) == []
    assert compared(source, target) == []


def test_values_that_were_hidden_are_not_told(tmp_path):
    """`--hide names` takes values with the name in them out of attributes that stay; they are no reason for a link."""
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdefgh"), 7)) for _ in range(120)]
    for side, mark in (("source", A), ("target", B)):
        with (tmp_path / f"{side}.nt").open("w") as file:
            for k, word in enumerate(words):
                entity = f"<{mark}{word}>"
                file.write(f'{entity} <{mark}note> "code {k * 7919 + 10007}" .\n')
                if k < 6:  # most notes say no names, so the attribute stays
                    file.write(f'{entity} <{mark}note> "{word}" .\n')
                file.write(f"{entity} <{mark}near> <{mark}{words[(k + 1) % 120]}> .\n")
    for name, more in (("shown", ()), ("hidden", ("--hide", "names"))):
        align(tmp_path / "source.nt", tmp_path / "target.nt", *more, "--output", tmp_path / name)
    values = {
        name: {row.source_value for row in explain(tmp_path / name, A + words[5], B + words[5]).values}
        for name in ("shown", "hidden")
    }
    assert values["shown"] == {words[5], f"code {5 * 7919 + 10007}"}
    assert values["hidden"] == {f"code {5 * 7919 + 10007}"}


@pytest.mark.parametrize(
    "channels",
    [
        "all",
        [None, {"channel": "names"}, {"channel": "attributes", "correspondences": None}],
        [{"channel": "attributes", "correspondences": [{"source": "a"}, 3]}],
        [{"channel": "attributes", "correspondences": [dict.fromkeys(("source", "target", "strength", "factor"))]}],
    ],
)
def test_records_without_correspondences(channels):
    assert read_correspondences({"embedding_info": {"evidence": channels}}) == read_correspondences({}) == ()


def test_records_of_the_first_versions_have_other_words(told):
    """`heard` in place of `evidence`, and no meanings."""
    run = Run.open(told / "all")
    known = run.record["embedding_info"]
    old = [{key: value for key, value in row.items() if key != "meanings"} for row in known["evidence"]]
    before = replace(run, record={**run.record, "embedding_info": {"heard": old}})
    source, *_ = first_link(told / "all")
    one, other = run.explain(source), before.explain(source)
    assert (other.channels, other.values) == (one.channels, one.values)
    rows = [[(row.channel, row.value) for row in answer.evidence.features] for answer in (one, other)]
    assert rows[0] == rows[1]
    assert [row.meaning for row in other.evidence.features] == list(run.trace.columns)
