"""What channels say of pairs, in numbers that people know: for those who ask why a link was made."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rlea.agent.memory import Floats
from rlea.evidence import ATTRIBUTES, NAMES, PARIS, WORDS
from rlea.evidence.channel import Channel
from rlea.search.pairs import Pairs

# Column of a channel -> the channel, and what the number is.
SAYINGS = {
    "name": (NAMES, "how alike the names are"),
    "meaning": (NAMES, "how alike the encoder finds them"),
    "words": (WORDS, "how alike the words are that both graphs have"),
    "words around": (WORDS, "the same, with the neighbours' words"),
    "attributes": (ATTRIBUTES, "added to the log-odds"),
    "conflict": (ATTRIBUTES, "taken off the log-odds"),
    "paris": (PARIS, "probability"),
}


def columns_of(channels: Sequence[Channel]) -> tuple[str, ...]:
    """What is told, a number each."""
    return tuple(column for channel in channels for column in channel.columns)


def tell_pairs(channels: Sequence[Channel], pairs: Pairs) -> Floats:
    """A row a pair, (num_pairs, number of columns)."""
    parts = [(channel.told or channel.score)(pairs) for channel in channels]
    return np.concatenate([np.zeros((len(pairs), 0), np.float32), *parts], axis=1).astype(np.float32)
