from __future__ import annotations

import json
import os

import numpy as np
import pytest
from safetensors import safe_open
from scipy.sparse import csr_matrix

from rlea.errors import InputError
from rlea.io.readers.vectors import read_embeddings
from rlea.io.writers import vectors
from rlea.io.writers.vectors import check_storable, write_embeddings
from rlea.search.embeddings import Embeddings
from small_graphs import only_entities

SOURCE, TARGET = only_entities("a", 'q"uote', "汉\n字"), only_entities("x", "y")


def dense(**more) -> Embeddings:
    rng = np.random.default_rng(0)
    return Embeddings(rng.random((3, 4)), rng.random((2, 4)), **more)


def test_file_says_which_row_is_whose(tmp_path):
    info = {"epochs": np.int64(3), "score": np.float32(0.5), "path": tmp_path, "names": ["é"]}
    write_embeddings(tmp_path / "v.safetensors", dense(name="mine", measure="inner", info=info), SOURCE, TARGET)
    with safe_open(tmp_path / "v.safetensors", framework="np") as file:
        metadata = file.metadata()
        np.testing.assert_array_equal(file.get_tensor("source"), dense().source.astype(np.float32))
        assert file.get_tensor("target").dtype == np.float32
    assert list(metadata) == ["rlea"]
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "v.safetensors").stat().st_mode == (tmp_path / "plain").stat().st_mode
    told = json.loads(metadata["rlea"])
    assert told["source_ids"] == list(SOURCE.entities)
    assert told["target_ids"] == ["x", "y"]
    assert (told["name"], told["measure"], told["format"]) == ("mine", "inner", 1)
    assert told["info"] == {"epochs": 3, "score": 0.5, "path": str(tmp_path), "names": ["é"]}


def test_same_vectors_same_bytes(tmp_path):
    """Whatever the order of `info`, and however long the run took or how often it was interrupted."""
    infos = [
        {"epochs": 3, "model": "m", "seconds": 1.5, "resumed_at": []},
        {"resumed_at": [2], "seconds": 9.5, "model": "m", "epochs": 3},
    ]
    found = set()
    for number in range(20):
        path = tmp_path / f"{number}.safetensors"
        write_embeddings(path, dense(info=infos[number % 2]), SOURCE, TARGET)
        found.add(path.read_bytes())
    assert len(found) == 1
    assert read_embeddings(path, SOURCE, TARGET).info == {"epochs": 3, "model": "m"}


def test_reading_back_gives_the_same_vectors_even_in_another_order(tmp_path):
    write_embeddings(tmp_path / "v.safetensors", dense(measure="manhattan", info={"k": 1}), SOURCE, TARGET)
    back = read_embeddings(tmp_path / "v.safetensors", SOURCE, only_entities("y"))
    np.testing.assert_array_equal(back.source, dense().source.astype(np.float32))
    np.testing.assert_array_equal(back.target, dense().target[1:].astype(np.float32))
    assert (back.measure, back.info) == ("manhattan", {"k": 1})


def test_what_cannot_be_stored_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "v.safetensors"
    sparse = Embeddings(csr_matrix(np.eye(3, 4)), csr_matrix(np.eye(2, 4)), name="names")
    with pytest.raises(InputError, match=r"v\.safetensors.*sparse.*'names' again"):
        write_embeddings(path, sparse, SOURCE, TARGET)
    with pytest.raises(ValueError, match="2 target vectors for 3 entities"):
        write_embeddings(path, dense(), SOURCE, SOURCE)
    monkeypatch.setattr(vectors, "MAX_HEAD_BYTES", 1050)
    with pytest.raises(InputError, match=r"v\.safetensors.*identifiers"):
        write_embeddings(path, dense(), SOURCE, TARGET)
    with pytest.raises(InputError, match=r"v\.safetensors.*identifiers"):
        check_storable(SOURCE, TARGET, path)
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_head_limit_is_that_of_the_readers(tmp_path):
    # Just below the limit the file must still open.
    name = "n" * (vectors.MAX_HEAD_BYTES - 2000)
    write_embeddings(tmp_path / "v.safetensors", dense(name=name), SOURCE, TARGET)
    with safe_open(tmp_path / "v.safetensors", framework="np") as file:
        assert len(json.loads(file.metadata()["rlea"])["name"]) == len(name)
    with pytest.raises(InputError):
        write_embeddings(tmp_path / "w.safetensors", dense(name=name + "n" * 1000), SOURCE, TARGET)


def test_what_passes_the_check_before_training_can_be_stored_after_it(tmp_path, monkeypatch):
    limit = vectors._ROOM + len(json.dumps(vectors._metadata(SOURCE, TARGET), ensure_ascii=False).encode())
    monkeypatch.setattr(vectors, "MAX_HEAD_BYTES", limit)
    check_storable(SOURCE, TARGET)
    info = {f"setting {number}": "some text of a usual length" for number in range(200)}
    write_embeddings(tmp_path / "v.safetensors", dense(info=info), SOURCE, TARGET)
    assert read_embeddings(tmp_path / "v.safetensors", SOURCE, TARGET).info == info
    monkeypatch.setattr(vectors, "MAX_HEAD_BYTES", limit - 1)
    with pytest.raises(InputError, match="identifiers"):
        check_storable(SOURCE, TARGET)
