"""Vectors by the name of a model, or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rlea.errors import InputError
from rlea.graph import GraphPair
from rlea.masking import check_hidden, check_vectors, hide
from rlea.models import MODELS
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings


def embed_entities(
    pair: GraphPair,
    name: str,
    *,
    seed: int = 0,
    progress: Progress = silent,
    device: str = "auto",
    checkpoint: Path | None = None,
    epochs: int | None = None,
    hidden: Sequence[str] = (),
) -> Embeddings:
    """Vectors by the name of a model, or from a file; `epochs` bounds the training of a model.

    Of the pair a model is shown all but what is `hidden` (names, attributes); `info["hidden"]` says so.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}", remedy="use auto, cpu or cuda")
    if name not in MODELS:
        from rlea.io.readers.vectors import read_embeddings

        given = read_embeddings(Path(name), pair.source, pair.target)
        return replace(given, info=check_vectors(hidden, given.info, name)) if hidden else given
    check_hidden(hidden, name)
    pair = hide(pair, hidden)
    seen = {"hidden": list(hidden), "fingerprint_seen": pair.fingerprint} if hidden else {}
    model = MODELS[name]
    if model.trained and not len(pair.train):
        raise InputError(f"{name} is trained on seed links and there are none", remedy="give --seeds or use names")
    function = getattr(import_module(f"rlea.models.{model.module}"), model.function)
    if not model.trained:
        vectors = cast("Embeddings", function(pair, seed=seed, progress=progress))
        return replace(vectors, info={**vectors.info, **seen})
    from rlea.models.history import History

    heard = History(progress)
    more = {"device": device, "checkpoint": checkpoint, "epochs": epochs}
    vectors = cast("Embeddings", function(pair, seed=seed, progress=heard, **more))
    return replace(vectors, info={**vectors.info, **seen, "history": heard.rows(vectors.info["settings"])})
