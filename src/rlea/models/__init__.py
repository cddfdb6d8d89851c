"""The embeddings that can be named on the command line; files of vectors are read by `rlea.io.readers.vectors`."""

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
    "mtranse": Model("mtranse", "train_mtranse", "structure", "MTransE: two spaces, one mapping", True),
    "jape": Model(
        "jape", "train_jape", "structure and attributes", "JAPE: shared seeds, attribute types that go together", True
    ),
    "sea": Model("sea", "train_sea", "structure", "SEA: mapped both ways, there and back", True),
    "gcnalign": Model(
        "gcnalign", "train_gcnalign", "structure and attributes", "GCN-Align: graph convolutions of both graphs", True
    ),
    "aligne": Model("aligne", "train_aligne", "structure", "AlignE: translations with swapped seeds", True),
    "bootea": Model("bootea", "train_bootea", "structure", "BootEA: AlignE that adds its own seeds", True),
    "rsn": Model("rsn", "train_rsn", "structure", "RSN: recurrent skipping over long paths", True),
    "rdgcn": Model(
        "rdgcn", "train_rdgcn", "structure and names", "RDGCN: names refined by a dual graph of relations", True
    ),
    "alinet": Model("alinet", "train_alinet", "structure", "AliNet: neighbours near and distant, gated", True),
}
