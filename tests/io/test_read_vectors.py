from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from rlea.errors import InputError
from rlea.io.read import read
from rlea.io.readers.vectors import read_embeddings
from rlea.io.writers.vectors import write_embeddings
from rlea.pipeline import align
from rlea.search.embeddings import Embeddings
from small_graphs import only_entities

S, T = only_entities("s b", "s a", "s\u00a0c"), only_entities("t2", "t1")
TRUTH = {"s a": [1.0, 2.0], "s b": [3.0, 4.0], "s\u00a0c": [5.0, -6.5], "t1": [0.5, 0.25], "t2": [-1.0, 1e-3]}
EXTRA = {"nobody": [9.0, 9.0], **{name: TRUTH[name] for name in ("t2", "s b", "t1", "s\u00a0c", "s a")}}


def check(embeddings: Embeddings) -> None:
    """Every entity has its own vector, whatever the order in the file."""
    for vectors, side in ((embeddings.source, S), (embeddings.target, T)):
        assert isinstance(vectors, np.ndarray)
        assert vectors.dtype == np.float32
        expected = np.array([TRUTH[name] for name in side.entities], dtype=np.float32)
        np.testing.assert_array_equal(vectors, expected)


def word2vec(vectors: dict[str, list[float]], separator: str = " ") -> str:
    return "".join(separator.join([name, *map(str, vector)]) + "\n" for name, vector in vectors.items())


@pytest.mark.parametrize("name", ["x.vec", "x.w2v", "x.txt"])
@pytest.mark.parametrize("header", ["", "6 2\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", " \n"])
def test_word2vec_text(name: str, header: str, line_end: str, tmp_path: Path) -> None:
    text = (header + word2vec(EXTRA)).replace("\n", line_end)
    (tmp_path / name).write_bytes(text.encode())
    embeddings = read_embeddings(tmp_path / name, S, T)
    check(embeddings)
    assert (embeddings.name, embeddings.measure) == ("x", "cosine")


@pytest.mark.parametrize("ids", ["x.ids", "x.txt"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_one_matrix_for_both_graphs(ids: str, dtype: type, tmp_path: Path) -> None:
    exact = {name: [round(value * 4) / 4 for value in vector] for name, vector in EXTRA.items()}
    np.save(tmp_path / "x.npy", np.array(list(exact.values()), dtype=dtype))
    (tmp_path / ids).write_text("\n".join(exact), encoding="utf-8")
    embeddings = read_embeddings(tmp_path / "x.npy", S, T)
    np.testing.assert_array_equal(embeddings.source, [exact[name] for name in S.entities])
    np.testing.assert_array_equal(embeddings.target, [exact[name] for name in T.entities])
    assert embeddings.source.dtype == np.float32


def test_folder_of_two_matrices(tmp_path: Path) -> None:
    for side, names in (("source", ["s\u00a0c", "s a", "s b"]), ("target", ["t1", "t2"])):
        np.save(tmp_path / f"{side}.npy", np.array([TRUTH[name] for name in names], dtype=np.float32))
        (tmp_path / f"{side}.ids").write_text("\n".join(names) + "\n", encoding="utf-8")
    check(read_embeddings(tmp_path, S, T))


def test_safetensors(tmp_path: Path) -> None:
    sides = {"source": ["s b", "s\u00a0c", "s a"], "target": ["t2", "nobody", "t1"]}
    matrices = {side: np.array([EXTRA[name] for name in names], dtype=np.float32) for side, names in sides.items()}
    told: dict[str, object] = {f"{side}_ids": names for side, names in sides.items()}
    save_file(matrices, tmp_path / "x.safetensors", {"rlea": json.dumps(told)})
    embeddings = read_embeddings(tmp_path / "x.safetensors", S, T)
    check(embeddings)
    assert (embeddings.name, embeddings.measure, embeddings.info) == ("x", "cosine", {})
    told |= {"measure": "inner", "name": "mine", "info": {"epochs": 3}, "format": 1}
    save_file(matrices, tmp_path / "x.safetensors", {"rlea": json.dumps(told), "other": "left aside"})
    embeddings = read_embeddings(tmp_path / "x.safetensors", S, T)
    check(embeddings)
    assert (embeddings.name, embeddings.measure, embeddings.info) == ("mine", "inner", {"epochs": 3})


def test_identifiers_with_numbers_at_their_end(tmp_path: Path) -> None:
    """Apollo 11 has a space and a number in its name; only the last fields are its vector."""
    source = only_entities("Apollo 11", "Apollo 12")
    (tmp_path / "x.vec").write_text("4 2\nApollo 11 1 2\nApollo 12 3 4\nt1 5 6\nt2 7 8\n", encoding="utf-8")
    embeddings = read_embeddings(tmp_path / "x.vec", source, T)
    np.testing.assert_array_equal(embeddings.source, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(embeddings.target, [[5, 6], [7, 8]])


def test_pickles_are_refused_without_running_them(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (Path.touch, (tmp_path / "sprung",))  # type: ignore[return-value]

    np.save(tmp_path / "x.npy", np.array([[Trap()]], dtype=object), allow_pickle=True)
    (tmp_path / "x.ids").write_text("s a\n", encoding="utf-8")
    with pytest.raises(InputError, match="never loaded"):
        read_embeddings(tmp_path / "x.npy", S, T)
    assert not (tmp_path / "sprung").exists()


def test_an_identifier_of_both_graphs_has_one_vector(tmp_path: Path) -> None:
    (tmp_path / "x.vec").write_text("a 1 2\nb 3 4\n", encoding="utf-8")
    embeddings = read_embeddings(tmp_path / "x.vec", only_entities("a", "b"), only_entities("b"))
    np.testing.assert_array_equal(embeddings.source, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(embeddings.target, [[3, 4]])


@pytest.mark.parametrize("measure", ["cosine", "inner", "manhattan"])
@pytest.mark.parametrize("scale", [1e-30, 1e12, 1e19, 1e37])
def test_vectors_of_any_size_give_the_links_of_vectors_around_one(measure, scale, tmp_path):
    """A power of two near `scale`, so that no digit is lost on the way to the file."""
    ring = [(f"{{0}}{n}", "next", f"{{0}}{(n + 1) % 20}") for n in range(20)]
    pair = read(*([(h.format(side), r, t.format(side)) for h, r, t in ring] for side in "ab"))
    planted = np.random.default_rng(0).standard_normal((20, 8)).astype(np.float32)
    found = []
    for factor in (1.0, 2.0 ** round(np.log2(scale))):
        vectors = (planted * factor).astype(np.float32)
        write_embeddings(
            tmp_path / "x.safetensors", Embeddings(vectors, vectors.copy(), "x", measure), pair.source, pair.target
        )
        own = [
            align(pair, matcher=one, embedding=(str(tmp_path / "x.safetensors"),))
            for one in ("mutual", "hungarian", "best-first")
        ]
        found.append([list(zip(one.matching.source_ids, one.matching.target_ids, strict=True)) for one in own])
    assert found[0] == found[1]
