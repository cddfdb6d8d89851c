"""What a user may choose of an experiment, and the names to choose from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlea.errors import InputError
from rlea.models import MODELS
from rlea.settings import suggest

PAIRS = ("EN_FR", "EN_DE", "D_W", "D_Y")
QUICK = "quick"  # the synthetic pair of a quick run
SHOWN_PAIRS = (*PAIRS, QUICK)
DEMO, *TABLES = SMALL_PAIRS = ("demo", "shops", "bibliographies")  # the pair of the package, and pairs of tables
# Graphs that share nothing: the source graphs of the demo and of D_W, and two synthetic ones of different seeds.
UNRELATED, UNRELATED_SYNTHETIC = UNRELATED_PAIRS = ("unrelated", "unrelated-synthetic")
FOLDS = ("1", "2", "3", "4", "5")
TRAINED = tuple(name for name, model in MODELS.items() if model.trained)
SEED = 0


@dataclass(frozen=True)
class Options:
    """What a user may choose; each experiment takes of it what it has a use for."""

    data: Path | None = None  # folder of the data sets; a quick run needs none
    work: Path = Path("runs")  # folder of vectors and agents: large, and made again if need be
    output: Path = Path("results")
    pairs: tuple[str, ...] = ()  # the experiment's own if empty, as below
    folds: tuple[str, ...] = ("1",)
    models: tuple[str, ...] = ()
    deciders: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    device: str = "auto"
    quick: bool = False

    def pairs_or(self, own: tuple[str, ...] = PAIRS) -> tuple[str, ...]:
        """The pairs to run on; a quick run has its own."""
        return (QUICK,) if self.quick else self.pairs or own

    def epochs(self, model: str) -> int | None:
        """A quick run shows that everything works, not how well; an epoch of RSN is a long one."""
        return (1 if model == "rsn" else 20) if self.quick else None

    @property
    def episodes(self) -> int | None:
        return 60 if self.quick else None

    @property
    def agent_device(self) -> str:
        """Where the paper's agent is trained: its steps are small, so a GPU is used only if asked for."""
        return "cpu" if self.device == "auto" else self.device


def choose(asked: Sequence[str], own: Sequence[str], known: Sequence[str], what: str) -> Sequence[str]:
    """The names asked for, or the experiment's own if there are none; raises for a name that it does not know."""
    for name in asked:
        if name not in known:
            raise InputError(f"unknown {what} {name!r} in this experiment", remedy=suggest(name, known))
    return asked or own


def find_folder(data: Path | None, name: str) -> Path:
    """The folder of a data set: DATA/EN_FR_15K_V1 (or EN_FR), DATA/EN_FR_100K_V1, or one folder further down.

    The tables may be beside the data sets, too: DATA/../tables/shops.
    """
    if data is None:
        raise InputError("the data sets are needed and --data is not given", remedy="give --data DIR, or --quick")
    if not data.is_dir():
        raise InputError("is no folder", path=data, remedy="give the folder of the data sets with --data")
    names = (f"{name}_V1" if name.endswith("K") else f"{name}_15K_V1", name)
    beside = [data.absolute().parent / "tables"] if name in TABLES else []
    for place in (data, *sorted(path for path in data.iterdir() if path.is_dir()), *beside):
        for folder in (place / one for one in names):
            if folder.is_dir():
                return folder
    raise InputError(
        f"has no data set {names[0]}", path=data, remedy="put its folder there, or leave it out with --pairs"
    )


def check_pair(data: Path | None, name: str) -> None:
    """Raise where the files of a pair are not at hand; some need none."""
    if name not in (QUICK, DEMO, UNRELATED_SYNTHETIC):
        find_folder(data, "D_W" if name == UNRELATED else name)
