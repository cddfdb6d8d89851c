"""Lists as they are typed: `1-5`, `EN_FR,D_W`, `1000,1000000`."""

from __future__ import annotations

import re

from rlea.errors import InputError

LEAST = 100  # entities of a synthetic pair: with fewer there are too few seeds to train on


def parse_names(text: str) -> tuple[str, ...]:
    """Names with commas between them, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def parse_folds(text: str) -> tuple[str, ...]:
    """Folds as numbers and stretches of numbers: `1`, `1-5`, `1,3-4`."""
    folds: list[str] = []
    for part in parse_names(text):
        found = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if first > last:
            raise InputError(f"--folds is {text!r}", remedy="use 1, or 1-5, or 1,3")
        folds += [str(number) for number in range(first, last + 1)]
    if not folds:
        raise InputError("--folds names none", remedy="use 1, or 1-5, or 1,3")
    return tuple(dict.fromkeys(folds))


def parse_sizes(text: str) -> tuple[int, ...]:
    """Numbers of entities: `1000,30000`."""
    sizes = []
    for part in parse_names(text):
        if not re.fullmatch(r"[1-9]\d*", part) or int(part) < LEAST:
            raise InputError(f"--sizes has {part!r}", remedy=f"give numbers from {LEAST} on with commas: 1000,30000")
        sizes.append(int(part))
    return tuple(sizes)
