"""Identifiers become IRIs and come back."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse

from rlea.graph.iri import PREFIX, from_iri, to_iri

any_text = st.text(st.characters(exclude_categories=()), min_size=1)


@given(st.one_of(any_text, any_text.map(lambda text: PREFIX + text), any_text.map(lambda text: "http://x/" + text)))
@example("urn:rlea:")
@example("urn:rlea:%FF")
@example("a:")
@example("\ud800")
@example("http://x/\u2028")
def test_round_trip_is_the_identity(text: str) -> None:
    assert from_iri(to_iri(text)) == text


@given(st.lists(any_text, min_size=2, max_size=2, unique=True))
def test_different_texts_have_different_iris(texts: list[str]) -> None:
    assert to_iri(texts[0]) != to_iri(texts[1])


@given(any_text)
def test_iris_can_stand_in_ntriples(text: str) -> None:
    line = f"<{to_iri(text)}> <http://r> <http://o> ."
    (quad,) = parse(line.encode(), RdfFormat.N_TRIPLES, lenient=True)
    assert from_iri(quad.subject.value) == text


def test_only_what_is_no_iri_is_encoded() -> None:
    for iri in ("http://dbpedia.org/resource/AC/DC", "urn:isbn:1", "http://fr.dbpedia.org/resource/É"):
        assert to_iri(iri) == iri == from_iri(iri)
    for key in ("Q42", "a b", "http://x/a b", "_:b1", "http://x/{a}", "<http://x>", "1:x", "http://x/\x7f"):
        assert re.fullmatch(PREFIX + "[A-Za-z0-9%_.~-]+", to_iri(key))
    for foreign in ("urn:rlea:", "urn:rlea:%FF"):
        assert from_iri(foreign) == foreign
