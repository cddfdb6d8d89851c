"""The embeddings that can be named on the command line; files of vectors are read by `rlea.io.readers.vectors`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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


def _mtranse() -> Embed:
    from rlea.models.mtranse import train_mtranse

    return train_mtranse


def _jape() -> Embed:
    from rlea.models.jape import train_jape

    return train_jape


def _sea() -> Embed:
    from rlea.models.sea import train_sea

    return train_sea


def _gcnalign() -> Embed:
    from rlea.models.gcnalign import train_gcnalign

    return train_gcnalign


def _aligne() -> Embed:
    from rlea.models.aligne import train_aligne

    return train_aligne


def _bootea() -> Embed:
    from rlea.models.bootea import train_bootea

    return train_bootea


def _rsn() -> Embed:
    from rlea.models.rsn import train_rsn

    return train_rsn


def _rdgcn() -> Embed:
    from rlea.models.rdgcn import train_rdgcn

    return train_rdgcn


def _alinet() -> Embed:
    from rlea.models.alinet import train_alinet

    return train_alinet


MODELS: dict[str, Model] = {
    "names": Model(_names, "names", "character n-grams of the names, no training", trained=False),
    "mtranse": Model(_mtranse, "structure", "MTransE: two spaces, one mapping"),
    "jape": Model(_jape, "structure and attributes", "JAPE: shared seeds, attribute types that go together"),
    "sea": Model(_sea, "structure", "SEA: mapped both ways, there and back"),
    "gcnalign": Model(_gcnalign, "structure and attributes", "GCN-Align: graph convolutions of both graphs"),
    "aligne": Model(_aligne, "structure", "AlignE: translations with swapped seeds"),
    "bootea": Model(_bootea, "structure", "BootEA: AlignE that adds its own seeds"),
    "rsn": Model(_rsn, "structure", "RSN: recurrent skipping over long paths"),
    "rdgcn": Model(_rdgcn, "structure and names", "RDGCN: names refined by a dual graph of relations"),
    "alinet": Model(_alinet, "structure", "AliNet: neighbours near and distant, gated"),
}
