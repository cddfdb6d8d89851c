"""Error types and the hardest pairs, on a planted run whose every error is known."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest

from rlea.agent.trace import Trace
from rlea.errors import InputError
from rlea.evaluation.gold_ranks import CORRECT, NO_LINK, NOT_A_CANDIDATE, WRONG_LINK, GoldRanks, error_types
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.matching import Matching
from rlea.search.candidates import Candidates
from rlea.search.embeddings import Embeddings
from rlea.views.report.hardest import HardestPairs, count_errors, neighbours, ordinal
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
    return pair, matching, GoldRanks.of(found, pair.test)


# ---- where errors come from -----------------------------------------------------------------------------------------


def test_every_gold_link_has_its_ranks_and_its_error_type(planted):
    pair, matching, ranks = planted
    assert ranks.source_ranks.tolist() == [1, 2, 2, 0, 0, 0]
    assert ranks.target_ranks.tolist() == ranks.best_ranks.tolist() == [1, 1, 1, 1, 1, 0]
    known = [CORRECT, WRONG_LINK, WRONG_LINK, WRONG_LINK, NO_LINK]
    assert error_types(matching, pair.test, ranks).tolist() == [*known, NOT_A_CANDIDATE]
    assert error_types(matching, pair.test).tolist() == [*known, NO_LINK]
    assert error_types(matching, pair.test, ranks, Links.of([5], [5])).tolist() == [*known, NO_LINK]
    # A correct link is correct, though it was not a candidate.
    assert error_types(Matching.of([5], [5], [1.0]), pair.test, ranks)[5] == CORRECT


def test_counts_add_up_for_any_links(planted):
    pair, _, ranks = planted
    rng = np.random.default_rng(0)
    gold = Links.union([pair.test, pair.test])  # repeated links count once
    for _ in range(50):
        size = int(rng.integers(0, 7))
        matching = Matching.of(rng.permutation(7)[:size], rng.permutation(7)[:size], rng.random(size))
        for known in (ranks, None):
            parts = count_errors(error_types(matching, gold, known), with_candidates=known is not None)
            assert sum(part.num_links for part in parts) == 6
            assert sum(part.share for part in parts) == pytest.approx(1)
            assert parts[0].num_links == judge_links(matching, pair.test)[0].sum()


def test_the_page_counts_error_types(planted):
    pair, matching, ranks = planted
    for known, counts in ((ranks, ["1", "3", "1", "1", "6"]), (None, ["1", "3", "2", "6"])):
        text = render_run(pair, matching, {}, gold_ranks=known)
        table = re.search(r'<table class="errors">.*?</table>', text, flags=re.S).group()
        assert re.findall(r'<td class="num">(\d+)</td>', table) == counts
        assert ("does not keep which gold links were candidates" in text) == (known is None)
    for matcher, is_noted in (("best-first", True), ("mutual", False), (["no", "name"], False)):
        text = render_run(pair, matching, {"result": {"matcher": matcher}}, gold_ranks=ranks)
        assert ("also scores pairs beyond the candidates" in text) == is_noted


def test_the_bar_has_the_shares_of_its_parts():
    parts = ElementTree.fromstring(stacked_bar([("a", 1), ("b <", 3), ("c", 0)], "all")).findall("rect")
    assert [float(part.get("width")) for part in parts] == [25, 75, 0]
    assert [float(part.get("x")) for part in parts] == [0, 25, 100]
    assert parts[1].find("title").text == "b <: 3"
    assert "nan" not in stacked_bar([("a", 0)], "none")


def test_ranks_are_saved_and_other_files_refused(planted, tmp_path):
    pair, _, ranks = planted
    path = tmp_path / "gold_ranks.safetensors"
    ranks.put(path)
    again = GoldRanks.load(path)
    assert again.best_ranks.tolist() == ranks.best_ranks.tolist()
    assert again.is_of(pair.test)
    assert not again.is_of(Links.of([0], [0]))
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"gold_ranks\.safetensors: cannot be read"):
        GoldRanks.load(path)
    empty = [np.zeros(0, kind) for kind in ["i4", "i4", "f4", "f4", "i4", "i4", "f4"]]
    Trace(*empty, np.zeros((0, 0), np.float32)).save(path)
    with pytest.raises(InputError, match="does not hold the ranks of gold links"):
        GoldRanks.load(path)


def test_candidates_have_positions_and_gold_links_have_ids():
    """The same pool in any order, with ids that are not positions, gives every gold link the same ranks."""
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
        ranks = GoldRanks.of(found, gold)
        assert ranks.source_ids.tolist() == [10, 12, 14, 99]
        both = zip(ranks.source_ranks.tolist(), ranks.target_ranks.tolist(), strict=True)
        cut = [tuple(rank if rank <= 3 else 0 for rank in expected[source]) for source in (10, 12, 14)]
        assert list(both) == [*cut, (0, 0)]
    none, empty = np.zeros(0, np.int32), np.zeros((0, 0), np.int32)
    found = Candidates(none, none, empty, empty, empty, empty, Embeddings(vectors, vectors))
    assert GoldRanks.of(found, Links.of([0, 1], [1, 0])).best_ranks.tolist() == [0, 0]


# ---- the hardest pairs ----------------------------------------------------------------------------------------------


def test_the_most_confident_wrong_links_come_first_and_say_what_is_correct(planted):
    pair, matching, ranks = planted
    first, second = HardestPairs(pair, matching, judge_links(matching, pair.test)[1], ranks).wrong_links()
    assert (first.source, first.target, first.title) == ("s1", "t2", "Wrong, confidence 0.800")
    assert first.lines == ["Correct: t1 (ranked 2nd).", "The target belongs to s2."]
    assert (second.source, second.target) == ("s2", "t3")


def test_missed_links_come_by_rank(planted):
    pair, matching, ranks = planted
    types = error_types(matching, pair.test, ranks)
    hardest = HardestPairs(pair, matching, judge_links(matching, pair.test)[1], ranks)
    missed = hardest.missed_links(types)
    assert (missed[0].source, missed[0].title) == ("s5", "Not a candidate")
    assert {one.source for one in missed} == {"s1", "s2", "s3", "s4", "s5"}
    by_source = {one.source: one for one in missed}
    assert by_source["s3"].lines == [
        "The pair was a candidate (ranked 1st, from the target's side only).",
        "The target was linked with s2 (0.700).",
    ]
    assert by_source["s4"].title == "No link"
    assert {one.source for one in hardest.missed_links(types, shown=["s5", "s3"])} == {"s1", "s2", "s4"}


def test_a_dozen_pictures_at_most():
    size = 40
    rows = pl.DataFrame({"head": [f"e{n:02}" for n in range(size)], "relation": ["r"] * size, "tail": ["e00"] * size})
    ring = KnowledgeGraph.build(rows)
    pair = GraphPair("many", ring, ring, test=Links.of(range(size), range(size)))
    matching = Matching.of(range(20), np.roll(range(20), 1), np.linspace(1, 0, 20))
    text = render_run(pair, matching, {})
    assert text.count('<svg class="pairs"') == 12
    assert "and 33 more" in text


def picture_of(pair, matching, target):
    """The picture of source 1 and a target."""
    hardest = HardestPairs(pair, matching, judge_links(matching, pair.test)[1])
    return ElementTree.fromstring(hardest._draw("", 1, target, []).svg)


def test_linked_neighbours_are_joined_and_told_apart(planted):
    """s1 has the neighbours 0, 2 and 6, t1 the same, t2 has 1 and 3; linked are 0 - 0, 2 - 3 (wrong) and 6 - 6."""
    pair, matching, _ = planted
    wrong, right = (picture_of(pair, matching, target) for target in (2, 1))
    assert [line.get("class") for line in wrong.iter("line")] == ["pair", "join bad"]
    assert sorted(line.get("class") for line in right.iter("line")) == ["join found", "join seed", "pair"]
    assert len(right.findall(".//circle[@class='open']")) == 0
    words = [text.text for text in right.iter("text")]
    assert words.count("near →") == 2
    assert {"next →", "← next"} <= set(words)
    # Of two links of a source the most confident one counts; a wrong one beside it does not make it wrong.
    joins = [line.get("class") for line in picture_of(pair, Matching.of([0, 0], [0, 4], [0.9, 0.2]), 1).iter("line")]
    assert joins.count("join found") == 1
    assert "join bad" not in joins


def test_the_agent_tells_its_steps(planted):
    pair, _, ranks = planted
    matching = Matching.of([1], [2], [0.8])
    ids, back = np.array([4, 1], np.int32), np.array([4, 2], np.int32)
    sure, none = np.array([0.4, 0.8], np.float32), np.zeros(0, np.int32)
    trace = Trace(ids, back, sure, sure, none, none, np.zeros(0, np.float32), np.zeros((0, 0), np.float32))
    hardest = HardestPairs(pair, matching, judge_links(matching, pair.test)[1], ranks, trace)
    assert hardest.wrong_links()[0].lines[-1] == "Decided in step 2 of 2."
    missed = {one.source: one for one in hardest.missed_links(error_types(matching, pair.test, ranks))}
    assert missed["s4"].lines[-1] == "The agent chose this very pair (0.400), but the link was dropped."


def test_neighbours_leave_out_loops():
    rows = pl.DataFrame(
        {"head": ["a", "a", "b"], "relation": ["http://x.example/r", "q", "q"], "tail": ["a", "b", "a"]}
    )
    assert neighbours(KnowledgeGraph.build(rows), [0]) == {0: {1: ["q →", "← q"]}}


def test_names_and_numbers_in_pictures():
    assert [shorten("short", 5), shorten("longer than that", 8), shorten("東京都庁舎", 6)] == [
        "short",
        "longer…",
        "東京…",
    ]
    svg = pair_plot(("a" * 60, "b"), ([Neighbour("c" * 60, "r →", True)], []), [])
    titles = [title.text for title in ElementTree.fromstring(svg).iter("title")]
    assert {"a" * 60, "c" * 60} <= set(titles)
    words = [text.text for text in ElementTree.fromstring(pair_plot(("a", "b"), ([], []), [])).iter("text")]
    assert words == ["a", "no neighbours", "b", "no neighbours"]
    assert " ".join(map(ordinal, (1, 2, 3, 4, 11, 12, 21, 103))) == "1st 2nd 3rd 4th 11th 12th 21st 103rd"


# ---- what is foreign stays text -------------------------------------------------------------------------------------


def test_hostile_names_are_escaped_everywhere(planted):
    _, matching, ranks = planted
    names = {f"{side}{n}": f"{HOSTILE}{side}{n}" for side in "st" for n in range(7)}
    hostile = GraphPair(
        HOSTILE, graph("s", names), graph("t", names), Links.of([6], [6]), test=Links.of(range(6), range(6)),
        notes=(HOSTILE,),
    )  # fmt: skip
    info = {
        "agent": {"history": [{"stage": HOSTILE, "epoch": 1, "loss": 1.0}, {"stage": "choice", "likeness": HOSTILE}]}
    }
    record = {"result": {"matcher": HOSTILE, "seconds": {HOSTILE: 1.0}}, "embedding_info": info}
    text = render_run(hostile, matching, record, gold_ranks=ranks, notes=[HOSTILE])
    assert "<script" not in text
    assert escape(HOSTILE, quote=False).split("(")[0] in text
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.S):
        ElementTree.fromstring(svg)  # well formed, so nothing broke out of it
    assert not re.search(r"<(script|link|img|iframe|object|embed)\b|@import|url\(|\b(src|href)=", text)
