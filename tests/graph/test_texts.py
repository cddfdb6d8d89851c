"""Columns of text are what tuples of the same strings are."""

import pickle

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.graph import knowledge_graph
from rlea.graph.texts import CodedTexts, Texts

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(["", "\x00", "a\x00b", "é"])


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr("rlea.graph.texts._BLOCK_BYTES", 4)
    monkeypatch.setattr("rlea.graph.texts._BLOCK_TEXTS", 3)


@pytest.mark.parametrize("kind", [Texts, CodedTexts])
@given(st.lists(any_text, max_size=12), st.integers(-14, 14), st.integers(-14, 14))
def test_a_column_is_the_tuple(kind, texts, first, stop):
    column = kind.of(texts)
    assert (len(column), list(column), column.series().to_list()) == (len(texts), texts, texts)
    assert column == tuple(texts) == column
    assert column == kind.of(pl.Series(texts, dtype=pl.String))
    assert column == pickle.loads(pickle.dumps(column))
    assert hash(column) == hash(tuple(texts))
    assert column != (*texts, "more")
    assert column[first:stop] == tuple(texts[first:stop])
    assert column[::-2] == tuple(texts[::-2])
    assert b"".join(bytes(piece) for piece in column.encoded()) == "\x00".join(texts).encode()
    if -len(texts) <= first < len(texts):
        assert column[first] == texts[first]
        assert column[np.int32(first)] == texts[first]
    else:
        with pytest.raises(IndexError):
            column[first]


def test_texts_that_are_no_text_are_kept():
    assert list(Texts.of(["\ud800", "a"])) == ["\ud800", "a"]  # half of a character, as Python may give one


def test_long_columns_are_shown_by_their_beginning():
    assert repr(Texts.of(["a", "b"])) == "('a', 'b')"
    assert repr(Texts.of(map(str, range(5000)))).endswith("'11', ... 5,000 in all)")


def test_lengths_are_counted_in_characters():
    column = Texts.of(["", "éé", "abc"])
    assert [column.has_longer(limit) for limit in (1, 2, 3)] == [True, True, False]
    assert not Texts.of(["éé"]).has_longer(2)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=12), st.sampled_from([1, 2**30]))
def test_rows_are_sorted_however_large_their_numbers_are(rows, step):
    # Beyond 2^63 combinations a row is no one number any more.
    rows = [tuple(number * step // 2 for number in row) for row in rows]
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    found = knowledge_graph._sorted_triples(*columns)
    assert found.shape == (len(set(rows)), 3)
    assert [tuple(row) for row in found.tolist()] == sorted(set(rows))


few = st.sampled_from(["a", "b", "é", "aa", ""])


@given(st.lists(st.tuples(few, few, few, few, few), max_size=14))
def test_literals_are_sorted_by_all_their_parts_and_each_is_kept_once(rows):
    names = knowledge_graph.LITERAL_COLUMNS
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    nothing = pl.DataFrame(schema=dict.fromkeys(["head", "relation", "tail"], pl.String))
    graph = knowledge_graph.KnowledgeGraph.build(nothing, frame)
    found = graph.literals
    texts = zip(found.values, found.datatypes, found.languages, strict=True)
    ids = zip(found.entity_ids.tolist(), found.attribute_ids.tolist(), strict=True)
    assert [(graph.entities[e], graph.attributes[a], *text) for (e, a), text in zip(ids, texts, strict=True)] == sorted(
        set(rows), key=lambda row: [part.encode() for part in row]
    )
