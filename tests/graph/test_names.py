"""What an entity is called: labels, identifiers, and attributes that are found by their values."""

import numpy as np
import pytest

from planted import make_graph
from rlea.graph.name_attribute import name_likeness, says_name
from rlea.graph.names import is_readable, local_name

PEOPLE = ["Werner, Elena", "Meier, Paul", "Lee, Ann", "Ray, Sue", "Roth, Max", "Zuber, Eva"]


def people(attribute, number=6, entity="http://a.org/p/{}"):
    """Entities with opaque identifiers, a description and an attribute that may hold names."""
    rows = []
    for k in range(number):
        one = entity.format(1000 + k)
        name = PEOPLE[k % len(PEOPLE)] + " " + "abcdefghijklmnopqrstuvwxyz"[k // len(PEOPLE)]
        rows += [(one, attribute, name), (one, "http://a.org/about", "person" if k % 2 else "a person from here")]
    return make_graph(literals=rows)


@pytest.mark.parametrize(
    "attribute",
    ["http://a.org/ont#fullName", "http://a.org/vocab/name", "customer", "http://www.w3.org/2006/vcard/ns#fn", "P1"],
)
def test_an_attribute_that_holds_names_is_found(attribute):
    graph = people(attribute)
    assert graph.names[0].startswith("Werner, Elena")
    assert all(map(is_readable, graph.names))


def test_descriptions_are_no_names():
    rows = [(f"Q{k}", "description", "film" if k % 3 else f"film of the year {1950 + k}") for k in range(30)]
    assert set(make_graph(literals=rows).names) == {f"Q{k}" for k in range(30)}


@pytest.mark.parametrize(
    "identifier",
    [
        "http://www.imdb.com/title/tt0133093",
        "urn:uuid:1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "Q42",
        "wd:Q42",
        "0013159",
    ],
)
def test_codes_are_no_names(identifier):
    assert not is_readable(local_name(identifier))


@pytest.mark.parametrize(
    ("identifier", "name"),
    [("ex:Basel", "Basel"), ("http://a.org/x#Bern", "Bern"), ("Star Wars: A New Hope", "Star Wars: A New Hope")],
)
def test_prefixes_are_no_part_of_a_name(identifier, name):
    assert local_name(identifier) == name


def test_the_name_of_a_kind_is_the_name_of_none():
    graph = people("http://a.org/vocab/name", number=100, entity="http://a.org/{}#artist")
    assert "artist" not in graph.names
    assert len(set(graph.names)) == 100


def test_identifiers_in_words_stay_names():
    rows = [(f"http://a.org/{name}", "http://a.org/nickname", f"nick {k}") for k, name in enumerate(("Basel", "Bern"))]
    assert make_graph(literals=rows).names == ("Basel", "Bern")


@pytest.mark.parametrize("attribute", ["name", "dc:title", "fullName", "product_name", "prefLabel", "Titel"])
def test_attributes_that_say_that_they_hold_names(attribute):
    assert says_name(attribute)


@pytest.mark.parametrize("attribute", ["userName", "file_name", "first_name", "price", "venue", "tournament"])
def test_attributes_that_do_not(attribute):
    assert not says_name(attribute)


def test_a_note_says_which_attribute_names_entities():
    graph = people("http://a.org/ont#fullName")
    assert graph.notes == ("names of entities are taken from fullName (6) (--name overrules this)",)
    assert not make_graph(literals=[("http://a.org/Basel", "label", "Basel")]).notes


@pytest.mark.parametrize("entity", ["http://a.org/id/{:x}-aa", "person/{}", "http://a.org/id/abc{}"])
def test_codes_with_letters_are_no_names_where_an_attribute_is_called_one(entity):
    names = [f"{PEOPLE[k % 6]} {'abcdef'[k // 6]}" for k in range(30)]
    rows = [(entity.format(40000 + k), "http://a.org/ont#fullName", name) for k, name in enumerate(names)]
    assert {*make_graph(literals=rows).names} == {*names}


def test_words_stay_names_where_some_have_digits():
    rows = [
        (f"http://a.org/{name}", "http://a.org/name", f"called {k}") for k, name in enumerate(("Apollo11", "Basel"))
    ]
    assert make_graph(literals=rows).names == ("Apollo11", "Basel")


def test_the_kind_before_a_name_is_no_part_of_it():
    assert make_graph([(f"city/{one}", "in", "country/Peru") for one in ("Lima", "Cusco")]).names == (
        "Cusco", "Lima", "Peru"
    )  # fmt: skip
    assert make_graph([("AC/DC", "plays", "Back in Black"), ("AC/DC", "from", "Sydney")]).names[0] == "AC/DC"


def test_model_numbers_are_no_names():
    assert name_likeness([f"KXTS{k}W" for k in range(100, 130)]) == 0
    assert name_likeness([f"Sony PSLX{k}H" for k in range(100, 130)]) > 0.9


def test_values_that_look_like_names():
    random = np.random.default_rng(0)
    names = [f"{PEOPLE[k % 6]} {k}" for k in range(30)]
    assert name_likeness(names) > 0.9
    for others in (["x"] * 30, [str(k) for k in random.integers(0, 9**9, 30)], [f"{k}@a.org" for k in range(30)], []):
        assert name_likeness(others) == 0
    assert name_likeness([f"{name} " * 20 for name in names]) == 0  # an essay
