"""Where errors come from and which pairs are shown: on a planted run whose every error is known."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from rlea.agent.trace import Trace
from rlea.errors import InputError
from rlea.evaluation.gold_ranks import LEFT_OUT, LOST, RIGHT, UNREACHED, Standing, follow_links
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.matching import Matching
from rlea.search.candidates import Candidates
from rlea.search.embeddings import Embeddings
from rlea.views.report.fates import count_fates
from rlea.views.report.hardest import Drawing, neighbours
from rlea.views.report.plots import Neighbour, pair_plot, shorten, stacked_bar
from rlea.views.report.run import judge_links, render_run

HOSTILE = '<script>alert("x")</script>\'&'


def graph(prefix, names=None):
    """Six entities in a ring; 0 and 1 also point at a seventh."""
    rows = [(f"{prefix}{n}", "next", f"{prefix}{(n + 1) % 6}") for n in range(6)]
    rows += [(f"{prefix}{n}", "near", f"{prefix}6") for n in (0, 1)]
    head, relation, tail = zip(*rows, strict=True)
    return KnowledgeGraph.build(pl.DataFrame({"head": head, "relation": relation, "tail": tail}), names=names)


@pytest.fixture
def planted():
    """Gold is n with n for 0 to 5, 6 is a seed. 0 is right; 1 and 2 have each other's targets, 3 has a rival's;
    4 was a candidate and has no link, and 5 was never a candidate."""
    pair = GraphPair("planted", graph("s"), graph("t"), Links.of([6], [6]), test=Links.of(range(6), range(6)))
    matching = Matching.of([0, 1, 2], [0, 2, 3], [0.9, 0.8, 0.7])
    forward = np.array([[0, 1], [2, 1], [3, 2], [0, 1], [1, 2], [0, 1]], np.int32)
    backward = np.array([[0], [1], [2], [3], [4], [0]], np.int32)  # 3 and 4 are candidates of their targets alone
    scores, back = np.zeros(forward.shape, np.float32), np.zeros(backward.shape, np.float32)
    ids = np.arange(6, dtype=np.int32)
    vectors = np.eye(7, dtype=np.float32)
    found = Candidates(ids, ids, forward, scores, backward, back, Embeddings(vectors, vectors))
    return pair, matching, Standing.of(found, pair.test)


# ---- where errors come from -----------------------------------------------------------------------------------------


def test_places_are_those_of_the_candidates(planted):
    _, _, standing = planted
    assert standing.source_places.tolist() == [1, 2, 2, 0, 0, 0]
    assert standing.target_places.tolist() == [1, 1, 1, 1, 1, 0]
    assert standing.best_places.tolist() == [1, 1, 1, 1, 1, 0]


def test_every_gold_link_lands_in_its_class(planted):
    pair, matching, standing = planted
    assert follow_links(matching, pair.test, standing).tolist() == [RIGHT, LOST, LOST, LOST, LEFT_OUT, UNREACHED]
    assert follow_links(matching, pair.test).tolist() == [RIGHT, LOST, LOST, LOST, LEFT_OUT, LEFT_OUT]
    weighed = follow_links(matching, pair.test, standing, Links.of([5], [5]))
    assert weighed.tolist() == [RIGHT, LOST, LOST, LOST, LEFT_OUT, LEFT_OUT]


def test_a_right_link_is_right_though_it_was_no_candidate(planted):
    pair, _, standing = planted
    assert follow_links(Matching.of([5], [5], [1.0]), pair.test, standing)[5] == RIGHT


def test_counts_add_up_whatever_was_found(planted):
    pair, _, standing = planted
    rng = np.random.default_rng(0)
    gold = Links.union([pair.test, pair.test])  # links given twice count once
    for _ in range(50):
        size = int(rng.integers(0, 7))
        matching = Matching.of(rng.permutation(7)[:size], rng.permutation(7)[:size], rng.random(size))
        for known in (standing, None):
            fates = follow_links(matching, gold, known)
            parts = count_fates(fates, with_candidates=known is not None)
            assert sum(part.count for part in parts) == 6
            assert sum(part.share for part in parts) == pytest.approx(1)
            assert parts[0].count == judge_links(matching, pair.test)[0].sum()


def test_the_page_counts_the_classes(planted):
    pair, matching, standing = planted
    text = render_run(pair, matching, {}, standing=standing)
    table = re.search(r'<table class="fates">.*?</table>', text, flags=re.S).group()
    assert re.findall(r'<td class="num">(\d+)</td>', table) == ["1", "3", "1", "1", "6"]
    assert "does not keep who was among the candidates" not in text
    less = render_run(pair, matching, {})
    table = re.search(r'<table class="fates">.*?</table>', less, flags=re.S).group()
    assert re.findall(r'<td class="num">(\d+)</td>', table) == ["1", "3", "2", "6"]
    assert "does not keep who was among the candidates" in less


@pytest.mark.parametrize(("matcher", "expected"), [("best-first", True), ("mutual", False), (["no", "name"], False)])
def test_matchers_that_look_beyond_the_candidates_are_told(planted, matcher, expected):
    pair, matching, standing = planted
    text = render_run(pair, matching, {"result": {"matcher": matcher}}, standing=standing)
    assert ("weighs pairs beyond the candidates" in text) == expected


def test_the_bar_has_the_shares_of_its_parts():
    parts = ElementTree.fromstring(stacked_bar([("a", 1), ("b <", 3), ("c", 0)], "all")).findall("rect")
    assert [float(part.get("width")) for part in parts] == [25, 75, 0]
    assert [float(part.get("x")) for part in parts] == [0, 25, 100]
    assert parts[1].find("title").text == "b <: 3"
    assert "nan" not in stacked_bar([("a", 0)], "none")


def test_standing_is_kept_and_refused_where_it_is_broken(planted, tmp_path):
    pair, _, standing = planted
    path = tmp_path / "standing.safetensors"
    standing.put(path)
    again = Standing.load(path)
    assert again.best_places.tolist() == standing.best_places.tolist()
    assert again.is_of(pair.test)
    assert not again.is_of(Links.of([0], [0]))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"standing\.safetensors: cannot be read"):
        Standing.load(path)
    empty = [np.zeros(0, kind) for kind in ["i4", "i4", "f4", "f4", "i4", "i4", "f4"]]
    Trace(*empty, np.zeros((0, 0), np.float32)).save(path)
    with pytest.raises(InputError, match="does not hold the standing"):
        Standing.load(path)


def test_candidates_stand_by_position_and_gold_by_id():
    """The same pool in any order, with ids that are no positions, gives every gold link the same places."""
    rng = np.random.default_rng(1)
    scores = rng.random((5, 6)).astype(np.float32)  # of source 10 + i with target 20 + j
    gold = Links.of([14, 10, 12, 99], [23, 25, 20, 21])  # the last is in no pool
    vectors = np.eye(2, dtype=np.float32)
    expected = {}
    for source, target in ((10, 25), (12, 20), (14, 23)):
        own, back = scores[source - 10], scores[:, target - 20]
        expected[source] = int((own >= own[target - 20]).sum()), int((back >= back[source - 10]).sum())
    for _ in range(5):
        rows, columns = rng.permutation(5), rng.permutation(6)
        mixed = scores[rows][:, columns]
        forward, backward = np.argsort(-mixed, axis=1)[:, :3], np.argsort(-mixed, axis=0).T[:, :3]
        found = Candidates(
            (rows + 10).astype(np.int32), (columns + 20).astype(np.int32), forward.astype(np.int32), forward,
            backward.astype(np.int32), backward, Embeddings(vectors, vectors),
        )  # fmt: skip
        standing = Standing.of(found, gold)
        assert standing.source_ids.tolist() == [10, 12, 14, 99]
        places = zip(standing.source_places.tolist(), standing.target_places.tolist(), strict=True)
        cut = [tuple(place if place <= 3 else 0 for place in expected[source]) for source in (10, 12, 14)]
        assert list(places) == [*cut, (0, 0)]


def test_no_pool_has_no_candidates():
    none, empty = np.zeros(0, np.int32), np.zeros((0, 0), np.int32)
    vectors = np.eye(2, dtype=np.float32)
    found = Candidates(none, none, empty, empty, empty, empty, Embeddings(vectors, vectors))
    assert Standing.of(found, Links.of([0, 1], [1, 0])).best_places.tolist() == [0, 0]


# ---- the hardest pairs ----------------------------------------------------------------------------------------------


def test_the_surest_wrong_links_come_first_and_say_what_is_right(planted):
    pair, matching, standing = planted
    first, second = Drawing(pair, matching, judge_links(matching, pair.test)[1], standing).wrong_links()
    assert (first.source, first.target, first.title) == ("s1", "t2", "Wrong, confidence 0.800")
    assert first.lines == [
        "Right would be t1, which stood in place 2 among the candidates.",
        "The target belongs to s2.",
    ]
    assert (second.source, second.target) == ("s2", "t3")


def test_missed_links_come_from_the_worst_place_on(planted):
    pair, matching, standing = planted
    fates = follow_links(matching, pair.test, standing)
    drawing = Drawing(pair, matching, judge_links(matching, pair.test)[1], standing)
    missed = drawing.missed_links(fates)
    assert (missed[0].source, missed[0].title) == ("s5", "Not among the candidates")
    assert {one.source for one in missed} == {"s1", "s2", "s3", "s4", "s5"}
    by_source = {one.source: one for one in missed}
    assert by_source["s3"].lines == [
        "The target was a candidate only from its own side (place 1).",
        "The target was linked with s2 (0.700).",
    ]
    assert by_source["s4"].title == "Left out"
    assert {one.source for one in drawing.missed_links(fates, shown=["s5", "s3"])} == {"s1", "s2", "s4"}


def test_a_dozen_pictures_at_most():
    size = 40
    rows = pl.DataFrame({"head": [f"e{n:02}" for n in range(size)], "relation": ["r"] * size, "tail": ["e00"] * size})
    ring = KnowledgeGraph.build(rows)
    pair = GraphPair("many", ring, ring, test=Links.of(range(size), range(size)))
    matching = Matching.of(range(20), np.roll(range(20), 1), np.linspace(1, 0, 20))
    text = render_run(pair, matching, {})
    assert text.count('<svg class="pairs"') == 12
    assert "and 33 more" in text


def test_linked_neighbours_are_joined_and_told_apart(planted):
    """s1 has the neighbours 0, 2 and 6, t1 the same, t2 has 1 and 3; linked are 0 - 0, 2 - 3 (wrong) and 6 - 6."""
    pair, matching, _ = planted
    drawing = Drawing(pair, matching, judge_links(matching, pair.test)[1])
    wrong = drawing._draw("", 1, 2, [])
    picture = ElementTree.fromstring(wrong.svg)
    assert [line.get("class") for line in picture.iter("line")] == ["pair", "join bad"]
    right = ElementTree.fromstring(drawing._draw("", 1, 1, []).svg)
    assert sorted(line.get("class") for line in right.iter("line")) == ["join found", "join seed", "pair"]
    assert len(right.findall(".//circle[@class='open']")) == 0
    words = [text.text for text in right.iter("text")]
    assert words.count("near →") == 2
    assert {"next →", "← next"} <= set(words)


def test_of_two_links_of_a_source_only_the_wrong_one_is_drawn_as_wrong(planted):
    """Its surest link counts; that it has a wrong one beside it makes the right one no worse."""
    pair, _, _ = planted
    matching = Matching.of([0, 0], [0, 4], [0.9, 0.2])
    drawing = Drawing(pair, matching, judge_links(matching, pair.test)[1])
    joins = [line.get("class") for line in ElementTree.fromstring(drawing._draw("", 1, 1, []).svg).iter("line")]
    assert joins.count("join found") == 1
    assert "join bad" not in joins


def test_the_agent_tells_its_steps(planted):
    pair, _, standing = planted
    matching = Matching.of([1], [2], [0.8])
    ids, back = np.array([4, 1], np.int32), np.array([4, 2], np.int32)
    sure, none = np.array([0.4, 0.8], np.float32), np.zeros(0, np.int32)
    trace = Trace(ids, back, sure, sure, none, none, np.zeros(0, np.float32), np.zeros((0, 0), np.float32))
    drawing = Drawing(pair, matching, judge_links(matching, pair.test)[1], standing, trace)
    assert drawing.wrong_links()[0].lines[-1] == "Decided in step 2 of 2."
    missed = {one.source: one for one in drawing.missed_links(follow_links(matching, pair.test, standing))}
    assert missed["s4"].lines[-1] == "The agent chose this very pair (0.400), and the link was not kept."


def test_neighbours_leave_out_loops():
    rows = pl.DataFrame(
        {"head": ["a", "a", "b"], "relation": ["http://x.example/r", "q", "q"], "tail": ["a", "b", "a"]}
    )
    assert neighbours(KnowledgeGraph.build(rows), [0]) == {0: {1: ["q →", "← q"]}}


def test_an_entity_without_neighbours_says_so():
    words = [text.text for text in ElementTree.fromstring(pair_plot(("a", "b"), ([], []), [])).iter("text")]
    assert words == ["a", "no neighbours", "b", "no neighbours"]


def test_long_names_are_cut_and_kept_as_a_title():
    assert shorten("short", 5) == "short"
    assert shorten("longer than that", 8) == "longer…"
    assert shorten("東京都庁舎", 6) == "東京…"
    svg = pair_plot(("a" * 60, "b"), ([Neighbour("c" * 60, "r →", True)], []), [])
    titles = [title.text for title in ElementTree.fromstring(svg).iter("title")]
    assert {"a" * 60, "c" * 60} <= set(titles)


# ---- what is foreign stays text -------------------------------------------------------------------------------------


def test_hostile_names_are_escaped_everywhere(planted):
    _, matching, standing = planted
    names = {f"{side}{n}": f"{HOSTILE}{side}{n}" for side in "st" for n in range(7)}
    hostile = GraphPair(
        HOSTILE, graph("s", names), graph("t", names), Links.of([6], [6]), test=Links.of(range(6), range(6)),
        notes=(HOSTILE,),
    )  # fmt: skip
    info = {
        "agent": {"history": [{"stage": HOSTILE, "epoch": 1, "loss": 1.0}, {"stage": "choice", "likeness": HOSTILE}]}
    }
    record = {"result": {"matcher": HOSTILE, "seconds": {HOSTILE: 1.0}}, "embedding_info": info}
    text = render_run(hostile, matching, record, standing=standing, notes=[HOSTILE])
    assert "<script" not in text
    assert escape(HOSTILE, quote=False).split("(")[0] in text
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.S):
        ElementTree.fromstring(svg)  # well formed, so nothing broke out of it


def test_the_page_asks_the_network_for_nothing(planted):
    pair, matching, standing = planted
    text = render_run(pair, matching, {}, standing=standing)
    assert not re.search(r"http(?!://www\.w3\.org/2000/svg)", text)
    assert not re.search(r"<(script|link|img|iframe|object|embed)\b|@import|url\(|\b(src|href)=", text)
