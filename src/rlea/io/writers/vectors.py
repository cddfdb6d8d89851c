"""Entity vectors as a safetensors file that knows which row belongs to which entity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.writers.atomic import atomic
from rlea.search.embeddings import Embeddings

# Readers of safetensors refuse a longer head, and the identifiers are in it.
MAX_HEAD_BYTES = 100_000_000
_ROOM = 20_000  # bytes of the head for the names of tensors, and for the `info` of a model that is yet to be trained
FORMAT = 1
# Entries of `info` about one run, such as its time: they are not stored, so that the same vectors give the same file.
OF_THE_RUN = ("seconds", "resumed_at", "history")


def write_embeddings(path: str | Path, embeddings: Embeddings, source: KnowledgeGraph, target: KnowledgeGraph) -> None:
    """Write dense vectors: tensors `source` and `target` (num_entities, dim), float32, and the metadata to use them.

    The metadata has one entry, `rlea`, a JSON object: `source_ids` and `target_ids` (identifiers, one per row),
    `measure`, `name`, `info` (without what is OF_THE_RUN) and `format`. The same vectors give the same bytes.
    """
    from safetensors.numpy import save_file

    if not (isinstance(embeddings.source, np.ndarray) and isinstance(embeddings.target, np.ndarray)):
        problem = f"the embedding {embeddings.name!r} is sparse, and only dense vectors are stored"
        remedy = f"name the embedding {embeddings.name!r} again where you would have named the file"
        raise InputError(problem, path=path, remedy=remedy)
    for vectors, graph, side in ((embeddings.source, source, "source"), (embeddings.target, target, "target")):
        if len(vectors) != graph.num_entities:
            raise ValueError(f"{len(vectors)} {side} vectors for {graph.num_entities} entities")
    tensors = {
        "source": np.ascontiguousarray(embeddings.source, dtype=np.float32),
        "target": np.ascontiguousarray(embeddings.target, dtype=np.float32),
    }
    metadata = _metadata(
        source,
        target,
        measure=embeddings.measure,
        name=embeddings.name,
        info={key: value for key, value in embeddings.info.items() if key not in OF_THE_RUN},
    )
    _check_head(metadata, MAX_HEAD_BYTES - 1000, path)
    with atomic(path) as temporary:
        save_file(tensors, temporary, metadata)


def check_storable(source: KnowledgeGraph, target: KnowledgeGraph, path: str | Path | None = None) -> None:
    """Raise where vectors of two graphs could not be stored; to be asked before they are trained."""
    _check_head(_metadata(source, target), MAX_HEAD_BYTES - _ROOM, path)


def _metadata(source: KnowledgeGraph, target: KnowledgeGraph, **more: Any) -> dict[str, str]:
    """One entry only: safetensors writes several in an order that differs from run to run."""
    about = {"format": FORMAT, "source_ids": list(source.entities), "target_ids": list(target.entities), **more}
    return {"rlea": json.dumps(about, ensure_ascii=False, sort_keys=True, default=_plain)}


def _check_head(metadata: dict[str, str], most: int, path: str | Path | None) -> None:
    # The head holds the metadata as JSON once more, so its quotes and backslashes are escaped again.
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > most:
        problem = "the identifiers of the entities take more than the 100 MB that a safetensors file may spend on them"
        remedy = "name the embedding again instead of storing it, or shorten the identifiers"
        raise InputError(problem, path=path, remedy=remedy)


def _plain(value: Any) -> Any:
    """JSON for what models put into their info beside plain numbers and strings."""
    return value.item() if isinstance(value, np.generic) else str(value)
