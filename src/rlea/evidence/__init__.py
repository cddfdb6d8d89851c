"""Evidence: kinds of facts that propose pairs and score them. `channel.py` has the contract, a file or folder each.

A new channel is a function that returns a `Channel`, an entry in `collect.py`, and its name here.
"""

from __future__ import annotations

STRUCTURE, NAMES, WORDS, ATTRIBUTES, PARIS = CHANNELS = ("structure", "names", "words", "attributes", "paris")
"""Channels that can be chosen. Structure is what the agent computes itself, from what it decided so far."""

VECTORS = "vectors"  # the channel of an embedding; there is one for every embedding that is given
