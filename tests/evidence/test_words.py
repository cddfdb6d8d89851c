"""Words and letters as vectors: which count, whose they are, graphs without any, and graphs too large to search."""

import numpy as np
import pytest

from planted import gold_of, links_of, make_graph, make_pairs, unlinked
from rlea.evidence import WORDS
from rlea.evidence import words as module
from rlea.evidence.collect import Evidence
from rlea.evidence.words import FEW, codes_in, neighbours_of, texts_of, trigrams, word_vectors
from rlea.graph import GraphPair, Links
from rlea.search.pairs import numbers


def products(vectors):
    return (vectors.source @ vectors.target.T).toarray()


def test_a_word_of_only_one_graph_does_not_count():
    source = make_graph(literals=[("a1", "p", "amber lake"), ("a2", "p", "amber hill"), ("a3", "p", "amber")])
    target = make_graph(literals=[("b1", "q", "lake"), ("b2", "q", "hill stone"), ("b3", "q", "stone")])
    own, *_ = word_vectors(GraphPair("", source, target))
    assert own.source.shape[1] == 2  # lake and hill; amber and stone are of one graph
    assert own.source.nnz == own.target.nnz == 2
    np.testing.assert_allclose(products(own), np.diag([1.0, 1.0, 0.0]), atol=1e-6)


@pytest.mark.parametrize(("size", "counts"), [(FEW // 2, True), (FEW // 2 + 1, False)])
def test_a_word_that_all_have_does_not_count(size, counts):
    def side(letter):
        return make_graph(literals=[(f"{letter}{i:03}", "p", f"everywhere w{i}") for i in range(size)])

    own, *_ = word_vectors(GraphPair("", side("a"), side("b")))
    found = products(own)
    np.testing.assert_allclose(found.diagonal(), 1, atol=1e-5)
    assert (found[~np.eye(size, dtype=bool)] > 0.01).all() == counts
    assert (found[~np.eye(size, dtype=bool)] == 0).all() != counts


def test_rare_words_count_more_than_common_ones():
    rows = [("1", "p", "rare common"), ("2", "p", "common"), ("3", "p", "common"), ("4", "p", "rare")]
    source = make_graph(literals=[("a" + e, p, v) for e, p, v in rows[:3]])
    target = make_graph(literals=[("b" + e, p, v) for e, p, v in rows[1:]])
    found = products(word_vectors(GraphPair("", source, target))[0])
    assert found[0, 2] > found[0, 0] > 0


def test_words_of_neighbours_arrive_in_the_second_vectors_from_both_ends():
    triples = [("1", "r", "2"), ("3", "r", "1")]
    literals = [("2", "p", "copper bridge"), ("3", "p", "elder wood")]
    source, target = (
        make_graph([(letter + h, r, letter + t) for h, r, t in triples], [(letter + e, p, v) for e, p, v in literals])
        for letter in "xy"
    )
    own, around, *_ = word_vectors(GraphPair("", source, target))
    assert own.source[0].nnz == 0
    np.testing.assert_allclose(products(own), np.diag([0.0, 1.0, 1.0]), atol=1e-6)
    found = products(around)
    np.testing.assert_allclose(found.diagonal(), 1, atol=1e-5)
    assert found[0, 1] > 0.5  # its neighbour's words
    assert found[1, 2] == 0  # neighbours' neighbours do not count
    assert around.source[0].nnz == 4


def test_letters_are_three_in_a_row_of_every_word():
    assert list(trigrams("kx ts1")) == [" kx", "kx ", " ts", "ts1", "s1 "]
    assert list(trigrams("")) == []


def test_codes_that_are_spelled_differently_share_letters_but_no_word():
    source = make_graph(literals=[("a1", "p", "kxts108w"), ("a2", "p", "dcr30")])
    target = make_graph(literals=[("b1", "q", "kx ts108w"), ("b2", "q", "dcr 30")])
    own, _, letters, _ = word_vectors(GraphPair("", source, target))
    assert own.source.nnz == own.target.nnz == 0
    found = products(letters)
    assert (found.diagonal() > 0.5).all()
    assert found[0, 1] == found[1, 0] == 0


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("Panasonic KX-TS108W, white", ["kxts108w", "ts108w"]),
        ("F3H982-10", ["f3h98210", "f3h982"]),
        ("CLI-8Y / 0623B002", ["cli8y", "0623b002"]),
        ("born 1999, 20 of them, part 2b", []),
        ("order 3219701 of 1971-09-15 at 2019-10-01T00:00:00Z", ["3219701"]),
        ("3219701", []),
        ("1971-09-15", []),
        ("", []),
    ],
)
def test_codes_are_found_with_and_without_hyphens(text, codes):
    assert codes_in(text) == codes


def test_variants_that_words_confuse_are_told_apart_by_codes():
    source = make_graph(literals=[("a1", "p", "monitor cable F3H98210"), ("a2", "p", "monitor cable F3H98225")])
    target = make_graph(literals=[("b1", "q", "cable F3H982-10"), ("b2", "q", "cable for a monitor F3H982-25")])
    found = products(word_vectors(GraphPair("", source, target))[3])
    assert (found.diagonal() > found[[0, 1], [1, 0]]).all()
    assert found[0, 1] == found[1, 0] == 0


def test_neighbours_are_counted_by_triples_whichever_way():
    graph = make_graph([("a", "r", "b"), ("a", "s", "b"), ("b", "r", "c")])
    assert neighbours_of(graph).toarray().tolist() == [[0, 2, 0], [2, 0, 1], [0, 1, 0]]


def test_texts_are_names_and_literals_in_plain_latin_letters():
    graph = make_graph(literals=[("http://x.org/Q42", "p", "Été à Łódź"), ("http://x.org/Red_Lake", "p", "Ευρώπη")])
    assert texts_of(graph) == ["ete a lodz", "red lake evropi"]


@pytest.mark.parametrize("literals", [(), (("1", "p", ""), ("2", "p", "--")), (("1", "p", "single"),)])
def test_graphs_without_common_words_have_vectors_without_weight(literals):
    source = make_graph([("a1", "r", "a2")], [("a" + e, p, v) for e, p, v in literals])
    target = make_graph([("b1", "r", "b2")])
    for vectors in word_vectors(GraphPair("", source, target)):
        assert vectors.source.shape[0] == vectors.target.shape[0] == 2
        assert vectors.source.nnz == vectors.target.nnz == 0


def test_vectors_are_of_length_one_or_nothing(planted):
    for vectors in word_vectors(planted)[:3]:  # there are no codes
        for part in (vectors.source, vectors.target):
            lengths = np.linalg.norm(part.toarray(), axis=1)
            assert (np.isclose(lengths, 1, atol=1e-4) | (lengths == 0)).all()
            assert (lengths > 0).any()


def test_words_of_large_graphs_are_searched_by_rare_terms_and_say_what_they_found(planted, monkeypatch):
    monkeypatch.setattr("rlea.graph.size.LARGE", 100)
    monkeypatch.setattr(module, "find_candidates", lambda *_: pytest.fail("words were searched exactly"))
    found = Evidence(unlinked(planted)).collect(Links.empty(), Links.empty(), (WORDS,))
    right = numbers(make_pairs(links_of(gold_of(planted))))
    assert np.isin(right, numbers(found[0].proposals)).mean() > 0.8
    assert all(channel.info["recall"] > 0.8 for channel in found)
    assert found[0].score(make_pairs(links_of(gold_of(planted))))[:, 0].mean() > 0.1
