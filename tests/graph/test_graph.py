"""Graphs do not hang on the order or format of their files, and cannot be changed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.graph import GraphPair, Links
from rlea.graph.names import LABELS, SECOND_LABELS, is_readable, local_name
from small_graphs import build, relations

text = st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
rows = st.lists(st.tuples(text, text, text), min_size=1, max_size=20)


@given(rows, st.randoms(use_true_random=False))
def test_order_and_repetition_of_rows_change_nothing(rows, random):
    shuffled = rows + rows[:3]
    random.shuffle(shuffled)
    one, other = build(rows), build(shuffled)
    assert one.fingerprint == other.fingerprint
    assert relations(one) == set(rows)
    assert list(one.entities) == sorted(one.entities, key=lambda s: s.encode())


def test_arrays_are_read_only_and_copied():
    graph = build([("a", "r", "b")])
    with pytest.raises(ValueError, match="read-only"):
        graph.triples[0, 0] = 1
    ids = np.array([0, 1])
    links = Links.of(ids, ids)
    ids[0] = 7
    assert links.source_ids.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        links.source_ids[0] = 3


@pytest.mark.parametrize(
    "change",
    [
        {"triples": [("a", "r", "c")]},
        {"triples": [("a", "q", "b")]},
        {"literals": [("a", "size", "2", "", "")]},
        {"literals": [("a", "size", "1", "int", "")]},
        {"literals": [("a", "size", "1", "", "en")]},
        {"names": {"a": "Alpha"}},
        {"entities": ["z"]},
    ],
)
def test_fingerprint_sees_every_part(change):
    start = {"triples": [("a", "r", "b")], "literals": [("a", "size", "1", "", "")], "names": {}, "entities": []}
    assert build(**start).fingerprint != build(**{**start, **change}).fingerprint


def test_pair_fingerprint_sees_the_split_but_not_the_order_of_links():
    graph = build([("a", "r", "b"), ("b", "r", "c")])
    one = GraphPair("x", graph, graph, train=Links.of([0, 1], [1, 0]))
    same = GraphPair("y", graph, graph, train=Links.of([1, 0], [0, 1]))
    moved = GraphPair("x", graph, graph, train=Links.of([0], [1]), test=Links.of([1], [0]))
    assert one.fingerprint == same.fingerprint != moved.fingerprint


@pytest.mark.parametrize(
    ("identifier", "name"),
    [
        ("http://dbpedia.org/resource/AC/DC", "AC/DC"),
        ("http://dbpedia.org/resource/Guns_a_Poppin%21", "Guns a Poppin!"),
        ("https://x.org/people#Ann_Lee", "Ann Lee"),
        ("https://x.org/people/", "people"),
        ("urn:isbn:123", "123"),
        ("Deh_Bonyad", "Deh Bonyad"),
        ("1:2", "1:2"),
    ],
)
def test_local_names(identifier, name):
    assert local_name(identifier) == name


def test_labels_beat_local_names_and_second_labels_only_codes():
    facts = [
        ("http://x.org/Cinco_(film)", SECOND_LABELS[0], "Cinco", "", ""),
        ("http://x.org/Q42", SECOND_LABELS[0], "Douglas", "", ""),
        ("http://x.org/Q43", LABELS[0], "Berlin", "", "de"),
        ("http://x.org/Q43", LABELS[0], "Berlin (city)", "", "en"),
        ("http://x.org/Word", LABELS[1], "The word", "", ""),
        ("http://x.org/Blank", LABELS[0], "  ", "", ""),
    ]
    graph = build(literals=facts)
    names = dict(zip(graph.entities, graph.names, strict=True))
    assert names == {
        "http://x.org/Cinco_(film)": "Cinco (film)",
        "http://x.org/Q42": "Douglas",
        "http://x.org/Q43": "Berlin (city)",
        "http://x.org/Word": "The word",
        "http://x.org/Blank": "Blank",
    }
    assert not is_readable("Q42")
    assert is_readable("美国")
    # Vowel signs are marks between letters, and one ideograph may be a name.
    for name in ("ঢাকা", "दिल्ली", "சென்னை", "కాకినాడ", "ជាតិ", "東", "Å𠮷", "Ǻb"):
        assert is_readable(name), name
    for code in ("É1", "Q-4", "7 8", "❤️", "a̱1", ""):
        assert not is_readable(code), code


def test_links_must_be_two_vectors_of_one_length():
    with pytest.raises(ValueError, match="same length"):
        Links.of([1, 2], [1])
