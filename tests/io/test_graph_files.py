"""Graphs on disk: as they were written, and refused in one sentence where they are not."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rlea
from rlea.errors import InputError
from rlea.io.array_files import content_hash, load_safetensors, put_safetensors
from rlea.io.readers import read_graph, read_pair
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers.graphs import write_graph, write_pair
from small_graphs import build

PROBLEM = "is no graph on disk"


def graph():
    literals = [("a", "x", "1\x002", "int", ""), ("a", "x", "é", "", "en"), ("b", "y", "", "", "")]
    return build([("a", "r", "b"), ("b", "q", "c")], literals, names={"a": "Anna"}, entities=["d"], notes=["a note"])


def changed(path, change):
    """Write a file anew with other arrays or other facts, and the hash that goes with them."""
    about, arrays = load_safetensors(path, "", "")
    del about["sha256"]
    change(about, arrays)
    put_safetensors(path, arrays, {**about, "sha256": content_hash(arrays, about)}, sort_keys=True)


def test_a_graph_comes_back_with_names_notes_and_fingerprint(tmp_path):
    for number, one in enumerate((graph(), build([("a", "r", "b")]), build(entities=["a"]), rlea.read_demo().source)):
        path = tmp_path / f"{number}.rlea"
        assert write_graph(path, one) == ()
        back = read_graph(path)
        assert vars(back)["fingerprint"] == one.fingerprint  # known without looking at the content
        del vars(back)["fingerprint"]
        assert back.fingerprint == one.fingerprint
        assert (back.entities, back.names, back.notes) == (one.entities, one.names, one.notes)
        assert back.triples.tolist() == one.triples.tolist()
        with pytest.raises(ValueError, match="read-only"):
            back.triples[:1] = 0


def test_the_same_graph_is_the_same_file_and_rows_of_tables_stay_rows(tmp_path):
    (tmp_path / "people.csv").write_text("id,name\n1,Ada Lovelace\n2,Alan Turing\n")
    rows = read_graph(tmp_path / "people.csv")
    for name in ("one.rlea", "two.rlea"):
        write_graph(tmp_path / name, rows)
    assert (tmp_path / "one.rlea").read_bytes() == (tmp_path / "two.rlea").read_bytes()
    assert read_graph(tmp_path / "one.rlea").is_table


def test_it_is_a_graph_wherever_a_graph_is_asked_for(tmp_path, run_cli):
    pair = generate(SyntheticSettings(40, seed=3))
    write_pair(tmp_path / "pair", pair, "rlea")
    assert read_pair(tmp_path / "pair").fingerprint == pair.fingerprint
    for side in ("source", "target"):
        own = tmp_path / "pair" / f"{side}.rlea"
        assert run_cli("convert", own, tmp_path / f"{side}.nt").code == 0
    assert run_cli("convert", tmp_path / "source.nt", tmp_path / "again.rlea").code == 0
    assert (tmp_path / "again.rlea").read_bytes() == (tmp_path / "pair" / "source.rlea").read_bytes()
    links = []
    for ending, place in (("nt", tmp_path), ("rlea", tmp_path / "pair")):
        sides = place / f"source.{ending}", place / f"target.{ending}"
        assert run_cli("align", *sides, "--output", tmp_path / ending, "--matcher", "mutual", "-q").code == 0
        links.append((tmp_path / ending / "links.tsv").read_bytes())
    assert links[0] == links[1]


def test_every_damage_is_seen(tmp_path):
    path = tmp_path / "x.rlea"
    write_graph(path, graph())
    whole = path.read_bytes()
    chance = Random(1)
    for place in {*chance.sample(range(len(whole)), 150), *range(40)}:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"x\.rlea: .*; "):
            read_graph(path)
    for length in (0, 5, 8, 30, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=PROBLEM):
            read_graph(path)
    path.write_bytes(whole + b"\x00")
    with pytest.raises(InputError, match=PROBLEM):
        read_graph(path)


def head(text):
    return len(text).to_bytes(8, "little") + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"hello",
        b"\xff" * 40,
        head("[]"),
        head('{"__metadata__": 1}'),
        head('{"__metadata__": {"rlea": "{"}}'),
        head("[" * 90_000),
        head(json.dumps({"__metadata__": {"rlea": "{}"}, "x": {"dtype": "F16", "shape": [], "data_offsets": [0, 0]}})),
        head(json.dumps({"__metadata__": {"rlea": "{}"}, "x": {"dtype": "U8", "shape": [9], "data_offsets": [0, 9]}})),
        head(json.dumps({"__metadata__": {"rlea": "{}"}, "x": {"dtype": "U8", "shape": [9], "data_offsets": [-9, 0]}})),
    ],
)
def test_other_files_are_refused(tmp_path, content, run_cli):
    path = tmp_path / "x.rlea"
    path.write_bytes(content)
    with pytest.raises(InputError, match=PROBLEM):
        read_graph(path)
    done = run_cli("convert", path, tmp_path / "x.nt")
    assert done.code == 2
    assert PROBLEM in done.err.replace("\n", " ")


def set_about(name, value):
    return lambda about, arrays: about.update({name: value})


def set_array(name, change):
    return lambda about, arrays: arrays.update({name: change(arrays[name].copy())})


def with_first(value):
    def change(array):
        array.reshape(-1)[0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (set_about("format", "rlea vectors"), "something else"),
        (set_about("version", 2), "version 2 .* only version 1"),
        (set_about("notes", None), "no valid graph"),
        (lambda about, arrays: about.pop("columns"), "no valid graph"),
        (lambda about, arrays: arrays.pop("names"), "no valid graph"),
        (set_array("names", lambda array: array[:-1]), "no valid graph"),
        (set_array("entities", with_first(0xFF)), "no valid graph"),
        (set_array("entities", lambda array: array | 1), "no valid graph"),
        (set_array("entities starts", with_first(1)), "no valid graph"),
        (set_array("entities starts", lambda array: array[::-1].copy()), "no valid graph"),
        (set_array("names starts", lambda array: array[:-1]), "no valid graph"),
        (set_array("names starts", lambda array: array[:0]), "no valid graph"),
        (set_array("triples", with_first(4)), "no valid graph"),
        (set_array("triples", with_first(-1)), "no valid graph"),
        (set_array("triples", lambda array: array[:, :2].copy()), "no valid graph"),
        (set_array("triples", lambda array: array.astype(np.int64)), "no valid graph"),
        (set_array("entity_ids", with_first(99)), "no valid graph"),
        (set_array("language_ids", with_first(99)), "no valid graph"),
        (set_array("datatype_ids", lambda array: array[:-1]), "no valid graph"),
        (set_array("datatype_ids", lambda array: array[:, None]), "no valid graph"),
    ],
)
def test_what_is_no_graph_is_refused_before_anything_uses_it(tmp_path, change, words):
    path = tmp_path / "x.rlea"
    write_graph(path, graph())
    changed(path, change)
    with pytest.raises(InputError, match=words):
        read_graph(path)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
name = text.filter(lambda one: one.strip() != "")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(name, name, name), min_size=1, max_size=6), st.lists(st.tuples(name, name, text), max_size=6))
def test_any_graph_comes_back(tmp_path, triples, literals):
    one = build(triples, literals)
    write_graph(tmp_path / "x.rlea", one)
    back = read_graph(tmp_path / "x.rlea")
    vars(back).pop("fingerprint")
    assert (back.fingerprint, back.names) == (one.fingerprint, one.names)
