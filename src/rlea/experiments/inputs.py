"""What a cell is made from: one model's vectors of a pair and fold; and how it is named, repeated and recognised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlea.errors import InputError
from rlea.experiments.costs import Costs
from rlea.experiments.desk import SEED, Desk
from rlea.graph import GraphPair
from rlea.progress import Progress
from rlea.search.candidates import Candidates
from rlea.settings import suggest


@dataclass(frozen=True, eq=False)
class Inputs:
    """The vectors of a model on a fold of a pair."""

    desk: Desk
    model: str
    pair_name: str
    fold: str

    @property
    def names(self) -> dict[str, Any]:
        """What tells these inputs from others, as a line of results has it."""
        return {"model": self.model, "pair": self.pair_name, "fold": self.fold}

    @property
    def pair(self) -> GraphPair:
        """The graphs and their links."""
        return self.desk.pair(self.pair_name, self.fold)

    def candidates(self, k: int, progress: Progress, without: tuple[int, ...] = ()) -> tuple[Candidates, Costs]:
        """The k best among the test entities, `without` some targets, and what finding them cost."""
        return self.desk.candidates(self.model, self.pair_name, self.fold, k, without, progress)

    def command(self, experiment: str, more: str = "") -> str:
        """What repeats a cell."""
        options = self.desk.options
        where = "--quick" if options.quick else f"--data DIR --pairs {self.pair_name.removesuffix('_100K')}"
        chosen = "" if options.quick else f" --folds {self.fold}"
        return f"rlea reproduce {experiment} {where}{chosen} --models {self.model}{more}"

    def wanted(self, settings: dict[str, Any], code: str, progress: Progress) -> dict[str, Any]:
        """What a record says if it was made with these settings, by this code, from these inputs."""
        return {
            "settings": settings,
            "code": code,
            "fingerprint": self.pair.fingerprint,
            "vectors": self.desk.vectors_digest(self.model, self.pair_name, self.fold, progress),
            "seed": SEED,
        }


def all_inputs(desk: Desk, models: Sequence[str], pairs: Sequence[str]) -> Iterator[Inputs]:
    """Folds x pairs x models, so that cells of the same pair come one after another."""
    for fold in desk.options.folds:
        for pair in pairs:
            for model in models:
                yield Inputs(desk, model, pair, fold)


def check_known(names: Sequence[str], known: Sequence[str], what: str) -> None:
    """Raise for a name that is none of those that an experiment has a use for."""
    for name in names:
        if name not in known:
            raise InputError(f"unknown {what} {name!r} in this experiment", remedy=suggest(name, known))
