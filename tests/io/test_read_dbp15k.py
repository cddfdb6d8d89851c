from __future__ import annotations

from pathlib import Path

import numpy as np

from rlea.io.readers import read_pair
from rlea.io.readers.dbp15k import read_dbp15k
from small_graphs import named, write

# Test pairs 0-3 and 1-4, a seed with the shared number 9; relation 0 is shared, relation 1 is each graph's own.
FILES = {
    "ent_ids_1": "0\tzh/b\n1\tzh/a\n9\tzh/seed\n",
    "ent_ids_2": "3\ten/a\n4\ten/b\n9\ten/seed\n",
    "rel_ids_1": "0\tzh/r\n1\tzh/own\n",
    "rel_ids_2": "0\ten/r\n1\ten/own\n",
    "triples_1": "0\t0\t9\n1\t1\t9\n",
    "triples_2": "3\t0\t9\n9\t1\t4\n",
    "sup_ent_ids": "9\t9\n",
    "ref_ent_ids": "0\t3\n1\t4\n",
}


def test_shared_numbers_come_apart(tmp_path: Path) -> None:
    pair = read_dbp15k(write(tmp_path / "zh_en" / "0_3", FILES))
    assert pair.name == "zh_en"
    assert pair.source.entities == ("zh/a", "zh/b", "zh/seed")
    assert pair.target.entities == ("en/a", "en/b", "en/seed")
    assert pair.source.relations == ("zh/own", "zh/r")
    assert pair.target.relations == ("en/own", "en/r")
    assert pair.source.triples.tolist() == [[0, 0, 2], [1, 1, 2]]
    assert pair.target.triples.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert {*named(pair, "train")} == {("zh/seed", "en/seed")}
    assert {*named(pair, "test")} == {("zh/b", "en/a"), ("zh/a", "en/b")}
    assert (len(pair.valid), pair.fold) == (0, "")


def test_parent_folder_with_one_split(tmp_path: Path) -> None:
    folder = write(tmp_path / "zh_en" / "0_3", FILES)
    assert read_pair(folder.parent).fingerprint == read_pair(folder).fingerprint
    assert read_pair(folder.parent).name == "zh_en"


def test_order_does_not_tell_test_pairs(tmp_path: Path) -> None:
    """In the files, test pair i has the numbers i and i + n: any numbering that keeps this order gives it away."""
    size = 200
    names = np.random.default_rng(3).permutation(size)
    changes = {
        "ent_ids_1": "".join(f"{i}\tzh/{(i * 37) % size:03}\n" for i in range(size)) + "900\tzh/seed\n",
        "ent_ids_2": "".join(f"{i + size}\ten/{names[i]:03}\n" for i in range(size)) + "900\ten/seed\n",
        "triples_1": "".join(f"{i}\t0\t900\n" for i in range(size)),
        "triples_2": "".join(f"{i + size}\t0\t900\n" for i in range(size)),
        "sup_ent_ids": "900\t900\n",
        "ref_ent_ids": "".join(f"{i}\t{i + size}\n" for i in range(size)),
    }
    pair = read_dbp15k(write(tmp_path, FILES | changes))
    expected = {(f"zh/{(i * 37) % size:03}", f"en/{names[i]:03}") for i in range(size)}
    assert {*named(pair, "test")} == expected
    # By chance one pair in two hundred stands at equal positions.
    assert np.sum(pair.test.source_ids == pair.test.target_ids) <= 6


def test_seed_listed_on_one_side_only(tmp_path: Path) -> None:
    pair = read_dbp15k(write(tmp_path, FILES | {"ent_ids_2": "3\ten/a\n4\ten/b\n"}))
    assert pair.target.entities == ("en/a", "en/b", "zh/seed")
    assert {*named(pair, "train")} == {("zh/seed", "zh/seed")}
    assert pair.target.num_triples == 2
    assert any("1 seeds are missing" in note and "ent_ids_2" in note for note in pair.notes)


def test_seed_named_by_its_partner_in_triples(tmp_path: Path) -> None:
    """Some releases put the source's number into the target's triples though the seed has a number on either side."""
    changes = {
        "ent_ids_1": "0\tzh/b\n1\tzh/a\n8\tzh/seed\n",
        "sup_ent_ids": "8\t9\n",
        "triples_1": "0\t0\t8\n1\t1\t8\n",
        "triples_2": "3\t0\t8\n9\t1\t4\n",
    }
    pair = read_dbp15k(write(tmp_path, FILES | changes))
    assert pair.target.entities == ("en/a", "en/b", "en/seed")
    assert pair.target.triples.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert {*named(pair, "train")} == {("zh/seed", "en/seed")}


def test_published_data(data_folder: Path) -> None:
    folder = data_folder / "dbp15k" / "zh_en"
    pair = read_pair(folder)
    assert (pair.source.num_entities, pair.target.num_entities) == (19388, 19572)
    assert (pair.source.num_relations, pair.target.num_relations) == (1701, 1323)
    assert (pair.source.num_triples, pair.target.num_triples) == (70414, 95142)
    truth = {tuple(line.split("\t")) for line in (folder / "ent_ILLs").read_text(encoding="utf-8").splitlines()}
    assert {*named(pair, "train"), *named(pair, "test")} == truth
    assert (len(pair.train), len(pair.test)) == (4500, 10500)
    assert all(entity.startswith("http://zh.dbpedia.org/") for entity in pair.source.entities)
    assert np.sum(pair.test.source_ids == pair.test.target_ids) < 50
    assert len(pair.notes) == 1


def test_links_under_other_names_and_relations_without_any(tmp_path: Path) -> None:
    renamed = {"sup_ent_ids": "sup_pairs", "ref_ent_ids": "ref_pairs"}
    files = {renamed.get(name, name): text for name, text in FILES.items() if not name.startswith("rel_ids")}
    pair = read_pair(write(tmp_path / "zh_en", files))
    expected = read_pair(write(tmp_path / "usual", FILES))
    for split in ("train", "test"):
        assert {*named(pair, split)} == {*named(expected, split)}
    assert pair.source.entities == expected.source.entities
    assert pair.source.triples[:, [0, 2]].tolist() == expected.source.triples[:, [0, 2]].tolist()
    assert pair.source.num_relations == 2
    assert {*pair.source.relations}.isdisjoint(pair.target.relations)  # a shared number would give them away
    assert sum("relations of this graph have no names" in note for note in pair.notes) == 2


def test_validation_links(tmp_path: Path) -> None:
    changes = {"ref_ent_ids": "0\t3\n", "valid_pairs": "1\t4\n"}
    pair = read_dbp15k(write(tmp_path, FILES | changes))
    assert {*named(pair, "valid")} == {("zh/a", "en/b")}
    assert {*named(pair, "test")} == {("zh/b", "en/a")}
    assert any(note == "this layout has no attributes" for note in pair.notes)
