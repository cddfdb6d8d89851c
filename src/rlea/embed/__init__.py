"""The embeddings that can be named on the command line; files of vectors are read by `rlea.readers.vectors`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """An embedding: where its function lives, what it looks at, and what it does in a few words."""

    module: str
    function: str
    uses: str
    summary: str
    trained: bool  # needs seeds and time, so it can be checkpointed and resumed


MODELS: dict[str, Model] = {
    "names": Model("names", "embed_names", "names", "character n-grams of the names, no training", False),
    "aligne": Model("aligne", "train_aligne", "structure", "AlignE: translations with swapped seeds", True),
}
