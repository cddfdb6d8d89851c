"""People check the links of a run: which pair is asked next, what is shown of it, and where the answer goes."""
