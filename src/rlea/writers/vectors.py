"""Entity vectors as a safetensors file that knows which row belongs to which entity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rlea.embeddings import Embeddings
from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.writers.atomic import atomic

# Readers of the format refuse a longer head, and the identifiers are in it.
MAX_HEAD_BYTES = 100_000_000


def write_embeddings(path: str | Path, embeddings: Embeddings, source: KnowledgeGraph, target: KnowledgeGraph) -> None:
    """Write dense vectors: tensors `source` and `target` (num_entities, dim), float32, and the metadata to use them.

    The metadata strings are `source_ids` and `target_ids` (JSON lists of identifiers, one per row), `measure`, `name`
    and `info` (a JSON object).
    """
    from safetensors.numpy import save_file

    if not (isinstance(embeddings.source, np.ndarray) and isinstance(embeddings.target, np.ndarray)):
        raise InputError(
            f"the embedding {embeddings.name!r} is sparse, and only dense vectors are stored",
            path=path,
            remedy=f"name the embedding {embeddings.name!r} again where you would have named the file",
        )
    for vectors, graph, side in ((embeddings.source, source, "source"), (embeddings.target, target, "target")):
        if len(vectors) != graph.num_entities:
            raise ValueError(f"{len(vectors)} {side} vectors for {graph.num_entities} entities")
    tensors = {
        "source": np.ascontiguousarray(embeddings.source, dtype=np.float32),
        "target": np.ascontiguousarray(embeddings.target, dtype=np.float32),
    }
    metadata = {
        "source_ids": json.dumps(source.entities, ensure_ascii=False),
        "target_ids": json.dumps(target.entities, ensure_ascii=False),
        "measure": embeddings.measure,
        "name": embeddings.name,
        "info": json.dumps(embeddings.info, ensure_ascii=False, default=_plain),
    }
    # The head holds the metadata as JSON once more, so its quotes and backslashes are escaped again.
    if len(json.dumps(metadata, ensure_ascii=False).encode()) > MAX_HEAD_BYTES - 1000:
        raise InputError(
            "the identifiers of the entities take more than the 100 MB that a safetensors file may spend on them",
            path=path,
            remedy="name the embedding again instead of storing it, or shorten the identifiers",
        )
    with atomic(path) as temporary:
        save_file(tensors, temporary, metadata)


def _plain(value: Any) -> Any:
    """JSON for what models put into their info beside plain numbers and strings."""
    return value.item() if isinstance(value, np.generic) else str(value)
