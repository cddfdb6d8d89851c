from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.io.readers import read_pair
from rlea.io.readers.literals import split_literals, unescape
from rlea.io.readers.openea import pair_name, read_openea
from small_graphs import facts, named, write

XSD = "http://www.w3.org/2001/XMLSchema#"

FILES = {
    "rel_triples_1": "a1\tr\ta2\na2\tr\ta3\na1\tr\ta2\n",
    "rel_triples_2": "b1\tq\tb2\nb2\tq\tb3\n",
    "attr_triples_1": f'a1\tborn\t"1990"^^<{XSD}gYear>\na1\tname\t"Anna"@EN\na2\tname\tstray " quote\n',
    "ent_links": "a1\tb1\na2\tb2\na3\tb3\na4\tb4\n",
    "721_5fold/1/train_links": "a2\tb2\na1\tb1\n",
    "721_5fold/1/valid_links": "a3\tb3\n",
    "721_5fold/1/test_links": "a4\tb4\n",
    "721_5fold/2/train_links": "a4\tb4\n",
    "721_5fold/2/test_links": "a1\tb1\n",
}


def test_everything_is_read(tmp_path: Path) -> None:
    pair = read_openea(write(tmp_path / "X_Y_15K_V2", FILES))
    assert pair.name == "X_Y"
    assert pair.fold == "1"
    # a4 and b4 stand in no triple, only in links.
    assert pair.source.entities == ("a1", "a2", "a3", "a4")
    assert pair.target.entities == ("b1", "b2", "b3", "b4")
    assert pair.source.triples.tolist() == [[0, 0, 1], [1, 0, 2]]
    assert facts(pair.source) == {
        ("a1", "born", "1990", XSD + "gYear", ""),
        ("a1", "name", "Anna", "", "en"),
        ("a2", "name", 'stray " quote', "", ""),
    }
    assert named(pair, "train") == [("a1", "b1"), ("a2", "b2")]
    assert named(pair, "valid") == [("a3", "b3")]
    assert named(pair, "test") == [("a4", "b4")]
    assert pair.notes == ("attr_triples_2 is absent, so the target graph has no attributes",)


def test_other_folds_and_sets_of_folds_are_chosen_by_name(tmp_path: Path) -> None:
    write(tmp_path, {**FILES, "20_5fold/1/train_links": "a3\tb3\n", "20_5fold/1/test_links": "a2\tb2\n"})
    pair = read_pair(tmp_path, fold="2")
    assert (pair.fold, named(pair, "train"), len(pair.valid)) == ("2", [("a4", "b4")], 0)
    assert "2/valid_links is absent" in pair.notes
    assert named(read_openea(tmp_path), "train") == [("a1", "b1"), ("a2", "b2")]
    assert named(read_openea(tmp_path, "20_5fold/1"), "train") == [("a3", "b3")]


def shuffled(text: str) -> str:
    lines = text.splitlines(keepends=True)
    random.Random(7).shuffle(lines)
    return "".join(lines)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\n  \n"),
        lambda text: "\ufeff" + text,
        shuffled,
    ],
    ids=["carriage returns", "empty lines", "blank lines", "byte order mark", "order"],
)
def test_what_changes_nothing(change: Callable[[str], str], tmp_path: Path) -> None:
    changed = {name: change(text) for name, text in FILES.items()}
    first, second = read_openea(write(tmp_path / "a", FILES)), read_openea(write(tmp_path / "b", changed))
    assert first.fingerprint == second.fingerprint
    assert first.train.source_ids.tolist() == second.train.source_ids.tolist()


def test_empty_optional_files_are_noted(tmp_path: Path) -> None:
    pair = read_openea(write(tmp_path, {**FILES, "attr_triples_1": "", "721_5fold/1/valid_links": ""}))
    assert len(pair.source.literals) == 0
    assert len(pair.valid) == 0
    assert "attr_triples_1 is empty, so the source graph has no attributes" in pair.notes
    assert "1/valid_links is empty" in pair.notes


def test_tabs_belong_to_values(tmp_path: Path) -> None:
    pair = read_openea(write(tmp_path, {**FILES, "attr_triples_1": "a1\tp\tone\ttwo\na2\tp\t\n"}))
    assert facts(pair.source) == {("a1", "p", "one\ttwo", "", ""), ("a2", "p", "", "", "")}


def test_test_links_of_seed_entities_are_left_out(tmp_path: Path) -> None:
    pair = read_openea(write(tmp_path, {**FILES, "721_5fold/1/test_links": "a4\tb4\na1\tb1\na2\tb3\n"}))
    assert named(pair, "train") == [("a1", "b1"), ("a2", "b2")]
    assert named(pair, "test") == [("a4", "b4")]
    assert [note for note in pair.notes if "left out" in note] == [
        "test_links: left out 1 of 3 links that also stand in another split, the first at line 2 ('a1' - 'b1')",
        "test_links: left out 1 of 3 links that contradict a link of another split, the first at line 3 ('a2' - 'b3')",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"1990"^^<http://x#date>', ("1990", "http://x#date", "")),
        ('"1990"^^http://x#date', ("1990", "http://x#date", "")),
        ('"Wien"@de-AT', ("Wien", "", "de-at")),
        (f'"plain"^^<{XSD}string>', ("plain", "", "")),
        ('"quoted"', ("quoted", "", "")),
        ('""', ("", "", "")),
        ('"', ('"', "", "")),
        ("bare", ("bare", "", "")),
        ('"Foo" and "Bar"', ('"Foo" and "Bar"', "", "")),
        ('"say "hi""@en', ('say "hi"', "", "en")),
        ('Universitas"@la', ("Universitas", "", "la")),
        ('12"', ('12"', "", "")),
        ("x@en", ("x@en", "", "")),
        (r"Kaurism\u00E4ki", ("Kaurismäki", "", "")),
        (r"\"Opaque\"", ('"Opaque"', "", "")),
        ('\\"Opaque\\', ('"Opaque"', "", "")),
        (r'"a \"b\""', ('a "b"', "", "")),
        (r"C:\new \\ \uD83D\uDE00 \uD800", ("C:\\new \\ 😀 \\uD800", "", "")),
        ('"two\nlines"@en', ("two\nlines", "", "en")),
    ],
)
def test_literals(text: str, expected: tuple[str, str, str]) -> None:
    assert split_literals(pl.Series([text])).select("value", "datatype", "language").row(0) == expected


@given(st.text())
def test_escaped_and_plain_text_come_back(text: str) -> None:
    assert unescape(text.replace("\\", "\\\\").replace('"', '\\"')) == text
    plain = re.sub(r'["\\\ud800-\udfff]', "", text)
    assert split_literals(pl.Series([plain, f'"{plain}"@en']))["value"].to_list() == [plain, plain]


def test_pair_names() -> None:
    names = ["EN_FR_15K_V1", "D_W_100K_V2", "D_Y_15K", "mine", "15K_V1"]
    assert [pair_name(Path(name)) for name in names] == ["EN_FR", "D_W", "D_Y", "mine", "15K_V1"]


# ---- the benchmark itself -------------------------------------------------------------------------------------------

PUBLISHED = {
    "EN_FR": ((267, 210), (47334, 40864), (73121, 67167)),
    "EN_DE": ((215, 131), (47676, 50419), (83755, 0)),
    "D_W": ((248, 169), (38265, 42746), (68258, 138246)),
    "D_Y": ((165, 28), (30291, 26638), (71716, 0)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_counts(name: str, data_folder: Path) -> None:
    pair = read_pair(data_folder / "openea-15k-v1" / f"{name}_15K_V1")
    relations, triples, literals = PUBLISHED[name]
    assert pair.name == name
    assert (pair.source.num_entities, pair.target.num_entities) == (15000, 15000)
    assert (pair.source.num_relations, pair.target.num_relations) == relations
    assert (pair.source.num_triples, pair.target.num_triples) == triples
    assert (len(pair.source.literals), len(pair.target.literals)) == literals
    assert (len(pair.train), len(pair.valid), len(pair.test)) == (3000, 1500, 10500)
    known = [pair.train, pair.valid, pair.test]
    assert len(np.unique(np.concatenate([links.source_ids for links in known]))) == 15000
    assert len(np.unique(np.concatenate([links.target_ids for links in known]))) == 15000
    assert not any("left out" in note for note in pair.notes)


def test_no_syntax_is_left_in_values(data_folder: Path) -> None:
    pair = read_pair(data_folder / "openea-15k-v1" / "D_W_15K_V1")
    for graph in (pair.source, pair.target):
        assert not [value for value in graph.literals.values if "^^<" in value or value.endswith('"@la')]
        assert not [value for value in graph.literals.values if "\\u00" in value]
    assert "la" in pair.source.literals.languages
