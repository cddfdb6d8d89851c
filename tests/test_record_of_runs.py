"""What run.json says of the machine."""

import platform
import re
import sys

import numpy as np
import pytest

from rlea import record


def test_the_processor_and_the_kernels_of_blas_are_named():
    assert np.ones((2, 2)) @ np.ones(2) is not None  # numpy's BLAS is loaded
    told = record.describe_run()["machine"]
    assert set(told) == {"system", "architecture", "cpu", "cores", "memory_gb", "blas", "torch_kernels"}
    assert isinstance(told["cpu"], str)
    assert all(re.match(r"[a-z]+( \S+)*$", one) for one in told["blas"])
    assert told["blas"] == sorted(set(told["blas"]))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("processor\t: 0\nmodel name\t: Some Maker X1 @ 2.0GHz\nmodel name\t: other\n", "Some Maker X1 @ 2.0GHz"),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", "what Python says"),
        (None, "what Python says"),
    ],
)
def test_the_name_of_the_processor(text, name, tmp_path, monkeypatch):
    monkeypatch.setattr(platform, "processor", lambda: "what Python says")
    if text is not None:
        (tmp_path / "cpuinfo").write_text(text)
    assert record.cpu_model(tmp_path / "cpuinfo") == name


def test_what_blas_says_is_kept(monkeypatch):
    rows = [
        {"user_api": "openmp", "internal_api": "openmp", "version": None},
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3.30", "architecture": "Haswell"},
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3.30", "architecture": "Haswell"},
        {"user_api": "blas", "internal_api": "mkl", "version": None},
    ]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: rows)
    assert record.blas_kernels() == ["mkl", "openblas 0.3.30 Haswell"]


def test_torch_is_asked_only_where_it_is_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert record.machine()["torch_kernels"] == ""
    assert "torch" not in sys.modules
