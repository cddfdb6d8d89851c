"""Objects in files: as they were written, arrays mapped and apart from each other."""

import numpy as np
import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlea[cluster]'")

from rlea.scale.files import ALIGNMENT, read_object, write_object


def test_an_object_comes_back_as_it_was(tmp_path):
    factor = 3
    value = {"ids": np.arange(5, dtype=np.int32), "of": lambda x: factor * x, "none": np.zeros((0, 4)), "text": "é"}
    size = write_object(tmp_path / "one", value)
    found = read_object(tmp_path / "one")
    assert size == (tmp_path / "one").stat().st_size
    assert found["ids"].tolist() == [0, 1, 2, 3, 4]
    assert found["ids"].dtype == np.int32
    assert found["none"].shape == (0, 4)
    assert found["of"](2) == 6
    assert found["text"] == "é"
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_arrays_are_aligned_and_changing_them_changes_nothing_else(tmp_path):
    path = tmp_path / "arrays"
    write_object(path, [np.ones(3, np.int8), np.arange(1000.0)])
    first, second = read_object(path), read_object(path)
    assert first[1].ctypes.data % ALIGNMENT == 0
    first[1][:] = -1
    assert second[1].tolist() == read_object(path)[1].tolist() == list(range(1000))


def test_an_object_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(TypeError):
        write_object(tmp_path / "one", (n for n in range(3)))
    assert list(tmp_path.iterdir()) == []
