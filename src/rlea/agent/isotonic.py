"""Isotonic regression: pool adjacent violators."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def pool(scores, answers, weights):  # type: ignore[no-untyped-def]
    """Blocks of isotonic regression: their levels, never falling, and the mean scores of them; scores ascend."""
    levels, masses, middles = np.empty(len(scores)), np.empty(len(scores)), np.empty(len(scores))
    count = 0
    for k in range(len(scores)):
        levels[count], masses[count], middles[count] = answers[k], weights[k], scores[k]
        count += 1
        # A level below the one before it breaks the order; so does an equal one, and rounding tells nothing.
        while count > 1 and levels[count - 1] <= levels[count - 2] + 1e-12:
            mass = masses[count - 2] + masses[count - 1]
            for part in (levels, middles):
                part[count - 2] = (part[count - 2] * masses[count - 2] + part[count - 1] * masses[count - 1]) / mass
            masses[count - 2] = mass
            count -= 1
    return levels[:count], middles[:count]
