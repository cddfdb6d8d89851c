"""The quick pair in a workspace, with planted vectors where trained ones would only take time."""

import pytest

from rlea.experiments.options import Options
from rlea.experiments.workspace import Workspace
from rlea.io.synthetic import synthetic_embeddings
from rlea.io.writers.vectors import write_embeddings


@pytest.fixture
def options(tmp_path):
    """The quick pair with good vectors (aligne) and bad ones (mtranse)."""
    options = Options(work=tmp_path / "work", output=tmp_path / "out", quick=True)
    pair = Workspace(options).pair("quick", "1")
    for model, noise in (("aligne", 0.3), ("mtranse", 3.0)):
        vectors = synthetic_embeddings(pair, noise=noise, dim=16)
        write_embeddings(options.work / f"{model}_quick_1.safetensors", vectors, pair.source, pair.target)
    return options
