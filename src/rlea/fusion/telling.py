"""What channels say of pairs, in numbers that people know: for those who ask why a link was made."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rlea.agent.memory import Floats
from rlea.agent.sight import Pairs
from rlea.fusion import ATTRIBUTES, NAMES, PARIS, WORDS
from rlea.fusion.channel import Channel
from rlea.fusion.channels import CERTAINTY_UNIT, CONFLICT_UNIT, SUPPORT_UNIT

# Column of a channel -> the channel, and what the number is.
SAYINGS = {
    "name": (NAMES, "how alike the names are"),
    "meaning": (NAMES, "how alike the encoder finds them"),
    "words": (WORDS, "how alike the words are"),
    "words around": (WORDS, "how alike the neighbours' words are"),
    "attributes": (ATTRIBUTES, "log-odds for it"),
    "conflict": (ATTRIBUTES, "log-odds against it"),
    "paris": (PARIS, "probability"),
}

_SCALES: dict[str, Callable[[Floats], Floats]] = {
    "attributes": lambda scores: scores * np.float32(SUPPORT_UNIT),
    "conflict": lambda scores: scores * np.float32(CONFLICT_UNIT),
    "paris": lambda scores: -np.expm1(-scores * np.float32(CERTAINTY_UNIT)),
}


def tell_pairs(channels: Sequence[Channel], pairs: Pairs) -> Floats:
    """A row a pair, (num_pairs, len(SAYINGS)); not a number where a channel has nothing to say of anybody."""
    result = np.full((len(pairs), len(SAYINGS)), np.nan, np.float32)
    places = {column: place for place, column in enumerate(SAYINGS)}
    for channel in channels:
        scores = channel.score(pairs)
        for number, column in enumerate(channel.columns):
            own = scores[:, number]
            result[:, places[column]] = _SCALES[column](own) if column in _SCALES else own
    return result
