"""Relations, attributes and classes as files: what stands in them, what comes back, what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlea.errors import InputError
from rlea.evidence.paris import run_paris
from rlea.graph.schema import Alignment, Schema
from rlea.io.readers.schema import read_schema
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers import LinkRows, MappingSet, write_all, write_links
from rlea.io.writers.schema import SCHEMA_FILES, SCHEMA_SSSOM, schema_files, schema_sssom
from rlea.matching import Matching
from sssom_tool import parse_sssom, quiet

LIVES = Alignment("livesIn", "resident", True, 0.98765, 0.5)
BORN = Alignment("bornIn", "birthPlace", False, 1.0, 0.66666)


def put(folder, schema):
    return write_all({folder / name: write for name, write in schema_files(schema).items()})


def test_files_say_who_is_in_whom_and_which_way(tmp_path):
    schema = Schema((LIVES, BORN), (Alignment("birth (year)", "born", False, 0.25, 0.125),))
    put(tmp_path, schema)
    assert (tmp_path / "relations.tsv").read_text() == (
        "source\ttarget\tdirection\tsource_in_target\ttarget_in_source\n"
        "bornIn\tbirthPlace\tsame\t1.0000\t0.6667\n"
        "livesIn\tresident\tinverse\t0.9877\t0.5000\n"
    )
    assert (tmp_path / "attributes.tsv").read_text() == (
        "source\ttarget\tsource_in_target\ttarget_in_source\nbirth (year)\tborn\t0.2500\t0.1250\n"
    )


@pytest.mark.parametrize("part", [0, 1, 2])
def test_nothing_to_say_makes_no_file(part):
    parts = [(BORN,) if number == part else () for number in range(3)]
    assert list(schema_files(Schema(*parts))) == [SCHEMA_FILES[part]]
    assert schema_files(Schema()) == {}


def test_the_files_stand_beside_the_links(tmp_path):
    pair = generate(SyntheticSettings(num_entities=120, seeds=0.3, seed=3))
    found = run_paris(pair)
    rows = LinkRows.of(Matching.of(found.source_ids, found.target_ids, found.probabilities), pair.source, pair.target)
    written = write_links(tmp_path, rows, formats=("tsv",), extra=schema_files(found.schema))
    assert {path.name for path in written} == {"links.tsv", "relations.tsv", "attributes.tsv"}  # it has no classes
    kept = read_schema(tmp_path)
    assert kept == found.schema.as_written()
    assert len(kept.relations) > 10


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb"])
@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_name_that_would_break_a_line_is_refused_and_nothing_is_written(tmp_path, name, part):
    parts = [(BORN,)] * 3
    parts[part] = (Alignment("a", name, False, 1.0, 1.0),)
    with pytest.raises(InputError, match=rf"{SCHEMA_FILES[part]}: cannot hold .* another name in the graph") as caught:
        put(tmp_path, Schema(*parts))
    assert str(tmp_path) not in str(caught.value)  # the temporary file is nobody's business
    assert list(tmp_path.iterdir()) == []


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)
shares = st.floats(0, 1)
schemas = st.builds(
    Schema,
    st.lists(st.builds(Alignment, names, names, st.booleans(), shares, shares)).map(tuple),
    *[st.lists(st.builds(Alignment, names, names, st.just(False), shares, shares)).map(tuple)] * 2,
)


@given(schemas)
@settings(max_examples=40, deadline=None)
def test_what_is_written_comes_back(tmp_path_factory, schema):
    folder = tmp_path_factory.mktemp("schema")
    put(folder, schema)
    kept = schema.as_written()
    assert read_schema(folder) == (kept if any(kept.parts.values()) else None)
    assert kept.as_written() == kept
    assert {one.source for one in kept.relations} == {one.source for one in schema.relations}


def test_the_last_digits_and_the_order_given_change_nothing():
    noisy = [Alignment(name, "t", False, 0.5 + noise, 0.25) for name, noise in (("a", 1e-9), ("b", 0.0), ("c", 2e-9))]
    one, other = Schema(tuple(noisy)).as_written(), Schema(tuple(reversed(noisy))).as_written()
    assert one == other
    assert [alignment.source for alignment in one.relations] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a\tb\tsame\t1.5\t0.1", "line 2: source_in_target is '1.5'; give a number from 0 to 1"),
        ("a\tb\tsame\t0.5\tnan", "line 2: target_in_source is 'nan'; give a number from 0 to 1"),
        ("a\tb\tback\t0.5\t0.5", "line 2: the direction is 'back'; write same or inverse"),
        ("a\tb\tsame\t0.5", "line 2"),
    ],
)
def test_a_file_of_another_hand_is_refused(tmp_path, line, words):
    header = "source\ttarget\tdirection\tsource_in_target\ttarget_in_source"
    (tmp_path / "relations.tsv").write_text(f"{header}\n{line}\n")
    with pytest.raises(InputError, match=words):
        read_schema(tmp_path)


def both(there, back, inverse=False, source="http://a.org/x_s", target="http://b.org/t"):
    return Alignment(source, target, inverse, there, back)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (both(0.9, 0.6), ("http://a.org/x_s", "equivalent", "http://b.org/t", 0.6)),
        (both(0.9, 0.1), ("http://a.org/x_s", "sub", "http://b.org/t", 0.9)),
        (both(0.1, 0.7), ("http://b.org/t", "sub", "http://a.org/x_s", 0.7)),
        (both(0.4, 0.4), None),
    ],
)
@pytest.mark.parametrize("part", [0, 1, 2])
@quiet
def test_schema_as_sssom_passes_the_reference_validator(tmp_path, part, one, expected):
    parts = [(one,) if number == part else () for number in range(3)]
    files = schema_sssom(Schema(*parts), {one.source, one.target}, MappingSet(mapping_date="2026-01-31"))
    assert list(files) == ([] if expected is None else [SCHEMA_SSSOM])
    if expected is None:
        return
    write_all({tmp_path / SCHEMA_SSSOM: files[SCHEMA_SSSOM]})
    mappings = parse_sssom(tmp_path / SCHEMA_SSSOM)
    (row,) = mappings.df.to_dict("records")
    kinds = ("Property", "Property", "Class")
    predicate = {"equivalent": "owl:equivalent", "sub": "rdfs:sub"}[expected[1]] + kinds[part]
    predicate += "" if expected[1] == "equivalent" else "Of"
    ends = [mappings.converter.expand(row[name]) for name in ("subject_id", "object_id")]
    assert (ends[0], row["predicate_id"], ends[1], float(row["confidence"])) == (
        expected[0],
        predicate,
        expected[2],
        expected[3],
    )
    assert {row["subject_label"], row["object_label"]} == {"x s", "t"}
    assert row["subject_type"] == ("owl object property", "owl data property", "owl class")[part]
    assert row["mapping_justification"] == "semapv:InstanceBasedMatching"


def test_inverse_relations_parts_of_dates_and_equal_names_in_sssom(tmp_path):
    likely, unlikely = both(0.9, 0.8, True), both(0.9, 0.1, True, "http://a.org/z")
    year = both(1.0, 1.0, source="http://a.org/born (year)")
    equal = both(1.0, 1.0, source=year.target)
    schema = Schema((likely, unlikely), (year, equal))
    write_all({tmp_path / "s.tsv": schema_sssom(schema, {year.target}, MappingSet())[SCHEMA_SSSOM]})
    lines = [line.split("\t") for line in (tmp_path / "s.tsv").read_text().splitlines() if line[0] != "#"]
    assert [line[2] for line in lines] == ["predicate_id", "owl:inverseOf"]
