"""All evidence in one agent: structure, names, words, attributes and PARIS, weighed by what the seeds teach.

`channels.py` collects what each kind of evidence says of pairs, `opinion.py` learns what they say together, `passes.py`
plays the game with it, `beginning.py` finds links to learn from where nobody gave any, `agent.py` is the whole.
"""
