"""What equal strings solve: planted shares are found, whatever is hidden from the models."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlea
from rlea.demo import demo_folder
from rlea.evaluation.string_baseline import _plain_all, describe_probe, is_easy, probe_strings
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.graph.names import plain
from rlea.io.readers import read_pair

COLUMNS = ["entity", "attribute", "value", "datatype", "language"]


def graph_of(named, values=()):
    """Entities with names, joined in a row, and literal values of some: (identifier, value)."""
    ends = sorted(named)
    triples = [(one, "r", other) for one, other in zip(ends, ends[1:] + ends[:1], strict=True)]
    rows = [(one, "a", value, "", "") for one, value in values]
    return KnowledgeGraph.build(
        pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row"),
        pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row"),
        names=named,
    )


def planted():
    """Ten gold links and a seed.

    Names: six are equal but for accents and case, one of these twice in the source's pool and one like the seed's.
    Identifiers: three have equal last parts. Values: two share a rare one, one a common one.
    """
    source_names = ["Île", "B-B", "c", "d", "e", "same", "same", "h", "i", "!!"]
    target_names = ["ile", "b b", "C", "D", "e", "same", "x", "y", "z", "!!"]
    source = {f"http://s/{'k' if i < 3 else 's'}{i}": name for i, name in enumerate(source_names)}
    target = {f"http://t/{'k' if i < 3 else 't'}{i}": name for i, name in enumerate(target_names)}
    source |= {"http://s/z-seed": "e"}
    target |= {"http://t/z-seed": "e"}
    first, second = list(source), list(target)
    told = [(first[6], "12 Main St."), (first[7], "rare"), (first[8], "1"), (first[9], "...")]
    told_back = [(second[6], "12 main st"), (second[7], "RARE"), (second[7], "other"), (second[8], "1")]
    told += [(one, "1") for one in first[:5]]
    told_back += [(second[9], "...")]
    graphs = graph_of(source, told), graph_of(target, told_back)
    ids = [[graph.entity_index[one] for one in order] for graph, order in zip(graphs, (first, second), strict=True)]
    return GraphPair(
        "planted", *graphs, train=Links.of(ids[0][10:], ids[1][10:]), test=Links.of(ids[0][:10], ids[1][:10])
    )


def test_planted_shares():
    found = probe_strings(planted())
    assert (found.pool, found.gold) == ("test", 10)
    assert found.names.equal == pytest.approx(0.6)  # "!!" says nothing
    # "same" has two bearers; the seed's "e" is not in the pool.
    assert (found.names.linked, found.names.precision, found.names.recall) == (5, 1.0, 0.5)
    assert found.local_names.equal == found.local_names.recall == pytest.approx(0.3)
    assert found.rare_values == pytest.approx(0.2)
    assert found.solved == 0.5
    assert not is_easy(found.as_dict())
    assert describe_probe(found.as_dict()).startswith(
        "String equality alone solves 50.0 % of the gold links (equal names"
    )


def test_wrong_equal_names_cost_precision():
    whole = planted()
    turned = Links.of(whole.test.source_ids, np.roll(whole.test.target_ids, 1))
    found = probe_strings(GraphPair("turned", whole.source, whole.target, whole.train, test=turned))
    assert found.names.linked == 5
    assert found.names.precision == found.names.recall == found.solved == 0.0


def test_same_identifiers_are_easy_whatever_names_say():
    one = graph_of({f"http://a/p{i}": f"word {i}" for i in range(8)})
    other = graph_of({f"http://b/p{i}": f"wort {i + 1}" for i in range(8)})
    found = probe_strings(GraphPair("p", one, other, test=Links.of(range(8), range(8)))).as_dict()
    assert (found["names"]["equal"], found["solved"]) == (0.0, 1.0)
    assert is_easy(found)
    assert "100.0 % of the gold links (equal last parts of identifiers" in describe_probe(found)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=6))
def test_all_at_once_is_one_by_one(texts):
    assert _plain_all(texts) == [plain(text) for text in texts]


def test_commands_and_pages_show_it(run_cli, tmp_path):
    """Computed on the complete graphs, whatever is hidden; in red if strings solve most."""
    pair = read_pair(demo_folder())
    expected = probe_strings(pair, "test").as_dict()
    (result,) = rlea.compare(pair, ["greedy"], rlea.AlignSettings(pool="test", hide=("attributes",)))
    assert result.summary()["strings"] == expected
    assert 0 < expected["solved"] <= expected["names"]["equal"] < 1
    done = run_cli("align", demo_folder(), "--matcher", "greedy", "--output", tmp_path / "demo", "--quiet")
    assert done.code == 0, done.err
    assert "String equality alone solves" in done.out
    whole = describe_probe(probe_strings(pair, "auto").as_dict())
    assert f'<p class="soft">{whole}</p>' in (tmp_path / "demo" / "report.html").read_text()
    graph = graph_of({f"http://a/p{i}": f"word {i}" for i in range(8)})
    easy = GraphPair("p", graph, graph, test=Links.of(range(8), range(8)))
    rlea.write(tmp_path / "easy", rlea.align(easy, rlea.AlignSettings(matcher="greedy")))
    assert '<p class="word-bad">String equality alone solves 100.0 %' in (tmp_path / "easy/report.html").read_text()
    assert probe_strings(GraphPair("p", graph, graph)) is None  # no gold links
