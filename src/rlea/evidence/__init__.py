"""All evidence in one agent: structure, names, words, attributes and PARIS, weighed by what the seeds teach.

`channels.py` collects what each kind of evidence says of pairs, `opinion.py` learns what they say together, `passes.py`
plays the game with it, `beginning.py` finds links to learn from where nobody gave any, `agent.py` is the whole.
"""

from __future__ import annotations

STRUCTURE, NAMES, WORDS, ATTRIBUTES, PARIS = CHANNELS = ("structure", "names", "words", "attributes", "paris")
"""All kinds of evidence; structure is what the agent sees itself, with what it decided so far."""

EVIDENCE = "evidence"  # the name of vectors that are none, in candidates that evidence proposed
