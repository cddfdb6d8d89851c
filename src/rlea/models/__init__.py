"""The embeddings that can be named on the command line; files of vectors are read by `rlea.io.readers.vectors`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlea.search.embeddings import Embeddings

Embed = Callable[..., "Embeddings"]  # (pair, settings=None, *, seed, progress, ...); see `rlea.models.training.train`


@dataclass(frozen=True)
class Model:
    """An embedding: its function, what it looks at, and what it does in a few words."""

    load: Callable[[], Embed]  # imports the function when it is needed: models are heavy, and most runs need one
    uses: str
    summary: str
    trained: bool = True  # needs seeds and time, so it can be checkpointed and resumed


def _names() -> Embed:
    from rlea.models.names import embed_names

    return embed_names


def _trained(name: str) -> Embed:
    # All at once: torch, which each of them needs, takes many times as long to import.
    from rlea.models import aligne, alinet, bootea, dualamn, gcnalign, jape, mtranse, rdgcn, rrea, rsn, sea

    trainings: dict[str, Embed] = {
        "mtranse": mtranse.train_mtranse,
        "jape": jape.train_jape,
        "sea": sea.train_sea,
        "gcnalign": gcnalign.train_gcnalign,
        "aligne": aligne.train_aligne,
        "bootea": bootea.train_bootea,
        "rsn": rsn.train_rsn,
        "rdgcn": rdgcn.train_rdgcn,
        "alinet": alinet.train_alinet,
        "rrea": rrea.train_rrea,
        "dualamn": dualamn.train_dualamn,
    }
    return trainings[name]


MODELS: dict[str, Model] = {
    "names": Model(_names, "names", "character n-grams of the names, no training", trained=False),
    "mtranse": Model(partial(_trained, "mtranse"), "structure", "MTransE: two spaces, one mapping"),
    "jape": Model(
        partial(_trained, "jape"), "structure and attributes", "JAPE: shared seeds, attribute types that go together"
    ),
    "sea": Model(partial(_trained, "sea"), "structure", "SEA: mapped both ways, there and back"),
    "gcnalign": Model(
        partial(_trained, "gcnalign"), "structure and attributes", "GCN-Align: graph convolutions of both graphs"
    ),
    "aligne": Model(partial(_trained, "aligne"), "structure", "AlignE: translations with swapped seeds"),
    "bootea": Model(partial(_trained, "bootea"), "structure", "BootEA: AlignE that adds its own seeds"),
    "rsn": Model(partial(_trained, "rsn"), "structure", "RSN: recurrent skipping over long paths"),
    "rdgcn": Model(
        partial(_trained, "rdgcn"), "structure and names", "RDGCN: names refined by a dual graph of relations"
    ),
    "alinet": Model(partial(_trained, "alinet"), "structure", "AliNet: neighbours near and distant, gated"),
    "rrea": Model(partial(_trained, "rrea"), "structure", "RREA: neighbours mirrored across relations"),
    "dualamn": Model(partial(_trained, "dualamn"), "structure", "Dual-AMN: RREA with proxies and hard negatives"),
}
