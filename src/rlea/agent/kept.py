"""What a run keeps so that it can go on: the trained agent, and how it came to its confidences.

It is a file of a trained agent (`--agent` takes it) with some arrays more: pseudo-seeds, by which channels learned what
corresponds, and the curves by which links got their confidences. Graphs and evidence are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlea.agent.calibration import Calibration
from rlea.agent.verification import Rater
from rlea.errors import InputError
from rlea.graph import Links
from rlea.io.agent_files import check_like, load_agent_file, put_agent_file, whole_agent

if TYPE_CHECKING:
    from rlea.agent.agent import Aligner

KEPT = "agent.safetensors"  # the file in the folder of a run
_START = "run."  # of the names of arrays that are not the agent's


@dataclass(frozen=True, eq=False)
class Rating:
    """How the links of a run got their confidences."""

    pseudo_seeds: Links  # that channels learned from, beside the seeds
    rater: Rater | None  # features of links -> confidences, if by null models
    calibration: Calibration  # if not
    share: float  # of the links that is right
    taught: Links = field(default_factory=Links.empty)  # that the dictionary learned from


@dataclass(frozen=True, eq=False)
class Kept:
    """A trained agent as its file has it, and the rating of a run."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    rating: Rating

    @staticmethod
    def of(aligner: Aligner, rating: Rating) -> Kept:
        """What an agent knows after a run; evidence is left behind."""
        return Kept(*aligner.as_file(), rating)

    def aligner(self) -> Aligner:
        """The agent, ready to decide."""
        from rlea.agent.agent import Aligner

        return Aligner.from_file(KEPT, self.about, self.arrays)

    def placed(self, place: Callable[[Links], Links]) -> Kept:
        """The same for graphs in which entities have other numbers, as `place` gives them."""
        rating = self.rating
        own = replace(rating, pseudo_seeds=place(rating.pseudo_seeds), taught=place(rating.taught))
        return replace(self, rating=own)

    def put(self, path: Path) -> None:
        """Write the file; the caller makes the write atomic."""
        rating = self.rating
        more: dict[str, NDArray[Any]] = {} if rating.rater is None else rating.rater.as_arrays()
        for links, name in ((rating.pseudo_seeds, ""), (rating.taught, "taught_")):
            more |= {f"{name}source_ids": links.source_ids, f"{name}target_ids": links.target_ids}
        about = {"calibration": asdict(rating.calibration), "share": rating.share, "rated": rating.rater is not None}
        arrays = {_START + name: array for name, array in more.items()}
        put_agent_file(path, self.about | {"run": about}, {**self.arrays, **arrays})

    @staticmethod
    def load(path: Path) -> Kept:
        """What `put` wrote."""
        about, every = load_agent_file(path)
        if not isinstance(about.get("run"), dict):
            raise InputError("is an agent alone, without what a run keeps", path=path, remedy="align again")
        with whole_agent(path):
            told = about.pop("run")
            check_like(told["calibration"], asdict(Calibration()), "calibration")
            check_like(told["share"], 0.0, "share")
            own = {name: array for name, array in every.items() if not name.startswith(_START)}
            more = {name.removeprefix(_START): array for name, array in every.items() if name not in own}
            # Runs from before there were dictionaries taught none.
            more = dict.fromkeys(("taught_source_ids", "taught_target_ids"), np.zeros(0, np.int32)) | more
            pseudo_seeds, taught = (
                Links.of(*(np.asarray(more[name + ids], np.int32) for ids in ("source_ids", "target_ids")))
                for name in ("", "taught_")
            )
            rater = Rater.from_arrays(more) if told["rated"] is True else None
            return Kept(
                about, own, Rating(pseudo_seeds, rater, Calibration(**told["calibration"]), told["share"], taught)
            )
