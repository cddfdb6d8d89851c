"""What stands for a model of PyKEEN's in files; pickles name its classes by this module."""

from __future__ import annotations

import gzip
from pathlib import Path

import torch


class Representation(torch.nn.Module):
    """Stands for `pykeen.nn.Embedding`."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self._embeddings = torch.nn.Embedding.from_pretrained(table, freeze=False)


class Model(torch.nn.Module):
    """Stands for a model of PyKEEN's with one representation of entities."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.entity_representations = torch.nn.ModuleList([Representation(table)])


def save_pykeen(folder: Path, names: list[str]) -> None:
    """The files that `result.save_to_directory(folder)` would leave."""
    (folder / "training_triples").mkdir(parents=True, exist_ok=True)
    torch.save(Model(torch.arange(2.0 * len(names)).reshape(-1, 2) + 1), folder / "trained_model.pkl")
    rows = "id\tlabel\n" + "".join(f"{number}\t{name}\n" for number, name in enumerate(names))
    (folder / "training_triples" / "entity_to_id.tsv.gz").write_bytes(gzip.compress(rows.encode(), mtime=0))
