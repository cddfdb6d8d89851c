"""Vectors of a pair by the name of a model or from a file, with what is hidden taken out before anything is learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea.errors import InputError
from rlea.graph.masking import NAMES, hide
from rlea.models import MODELS
from rlea.progress import Progress, silent

if TYPE_CHECKING:
    from rlea.graph import GraphPair
    from rlea.search.embeddings import Embeddings

UNKNOWN = "what the vectors of the file were made from is not known"


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

    A model sees the pair without what is `hidden` (names, attributes); `info["hidden"]` records it.

    >>> import rlea
    >>> pair = rlea.read_demo()
    >>> rlea.embed_entities(pair, "names").source.shape[0] == pair.source.num_entities
    True
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InputError(f"unknown device {device!r}", remedy="use auto, cpu or cuda")
    if name not in MODELS:
        from rlea.io.readers.vectors import read_embeddings

        given = read_embeddings(Path(name), pair.source, pair.target)
        return replace(given, info=check_vectors(hidden, given.info, name)) if hidden else given
    check_hidden(hidden, name)
    pair = hide(pair, hidden)
    model = MODELS[name]
    if model.trained and not len(pair.train):
        raise InputError(f"{name} is trained on seed links and there are none", remedy="give --seeds or use names")
    more: dict[str, Any] = {"device": device, "checkpoint": checkpoint, "epochs": epochs} if model.trained else {}
    vectors = model.load()(pair, seed=seed, progress=progress, **more)
    seen = {"hidden": list(hidden), "fingerprint_seen": pair.fingerprint} if hidden else {}
    return replace(vectors, info={**vectors.info, **seen})


def check_hidden(hidden: Collection[str], embedding: str) -> None:
    """Refuse a model that needs names if they are hidden; models that also use attributes do without them."""
    if NAMES in hidden and embedding in MODELS and NAMES in _uses(embedding):
        raise InputError(
            f"{embedding} looks at names and these are hidden",
            remedy="use vectors of structure, such as --embedding aligne (--model for `rlea embed`), which needs seeds",
        )


def check_vectors(hidden: Collection[str], info: Mapping[str, Any], path: str) -> dict[str, Any]:
    """`info` of vectors from a file, with a note if it does not say what they were made from.

    The file was made before anything was hidden: vectors of a model that looks at what is hidden are refused.
    """
    seen = set(hidden) - set(info.get("hidden", ()))
    model = str(info.get("model", "")).lower().replace("-", "")
    is_ours = model in MODELS and "library" not in info
    if not seen or (is_ours and not seen & _uses(model)):
        return dict(info)
    if is_ours:
        what = " and ".join(sorted(seen & _uses(model)))
        raise InputError(
            f"the vectors are of {info['model']}, which looks at {what}, and these are to be hidden",
            path=path,
            remedy=f"make them anew with rlea embed --hide {','.join(hidden)}, or give others",
        )
    return {**info, "hidden_note": UNKNOWN}


def shown_uses(embedding: str, hidden: Collection[str]) -> str:
    """What a model looks at, in the words of `MODELS`, without what is hidden."""
    return " and ".join(part for part in MODELS[embedding].uses.split(" and ") if part not in hidden)


def _uses(model: str) -> set[str]:
    return set(MODELS[model].uses.split(" and "))
