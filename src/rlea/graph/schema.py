"""What corresponds in the schemas of two graphs: relations, attributes and classes, and how far one is in the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

DECIMALS = 4  # of a probability wherever it is written
RELATIONS, ATTRIBUTES, CLASSES = PARTS = ("relations", "attributes", "classes")
SCHEMA_FILES = tuple(f"{part}.tsv" for part in PARTS)  # in a folder of results


@dataclass(frozen=True)
class Alignment:
    """Two relations, attributes or classes, and how likely either is included in the other."""

    source: str
    target: str
    is_inverse: bool  # the source relation corresponds to the inverse of the target relation
    source_in_target: float
    target_in_source: float


@dataclass(frozen=True)
class Schema:
    """All that corresponds, the surest first."""

    relations: tuple[Alignment, ...] = ()
    attributes: tuple[Alignment, ...] = ()  # "birthDate (year)" are the years of the dates of birthDate
    classes: tuple[Alignment, ...] = ()

    @property
    def parts(self) -> dict[str, tuple[Alignment, ...]]:
        """The three lists by name, in the order of PARTS."""
        return {RELATIONS: self.relations, ATTRIBUTES: self.attributes, CLASSES: self.classes}

    def as_written(self) -> Schema:
        """The same with probabilities as files have them, and in the order that follows from these."""
        return Schema(*(surest_first(map(_rounded, part)) for part in self.parts.values()))


def surest_first(found: Iterable[Alignment]) -> tuple[Alignment, ...]:
    """By the sum of both probabilities, then by name."""

    def key(one: Alignment) -> tuple[float, str, str, bool]:
        # Rounded: noise in the last bits, which differs between machines, must not change the order.
        return -round(one.source_in_target + one.target_in_source, DECIMALS), one.source, one.target, one.is_inverse

    return tuple(sorted(found, key=key))


def columns_of(part: str) -> tuple[str, ...]:
    """The columns of the file of a part; only relations have a direction, `same` or `inverse`."""
    direction = ("direction",) if part == RELATIONS else ()
    return ("source", "target", *direction, "source_in_target", "target_in_source")


def _rounded(one: Alignment) -> Alignment:
    there, back = (round(share, DECIMALS) for share in (one.source_in_target, one.target_in_source))
    return Alignment(one.source, one.target, one.is_inverse, there, back)
