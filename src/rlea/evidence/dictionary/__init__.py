"""A dictionary that is learned from links: how names of one language go over into those of another.

`corpus.py` reads names as signs and words, `sounds.py` says which letters sound alike, `translation.py` learns and
scores, `proposals.py` finds what a name may translate into, `channel.py` makes evidence of it.
"""
