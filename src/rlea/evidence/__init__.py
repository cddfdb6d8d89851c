"""Evidence: kinds of facts that propose pairs and score them. `channel.py` has the contract, a file or folder each.

How to add one: docs/house.md.
"""

from __future__ import annotations

CHANNELS = ("structure", "names", "words", "attributes", "paris", "dictionary")
STRUCTURE, NAMES, WORDS, ATTRIBUTES, PARIS, DICTIONARY = CHANNELS
"""Channels that can be chosen, all by default. Structure is what the agent computes itself, from what it matched."""

VECTORS = "vectors"  # the channel of an embedding: not chosen, but there for every embedding that is given
