"""Scores of links and ranks; what became of every gold link; a string baseline."""
