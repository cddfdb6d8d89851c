"""Vectors, and the search for candidate pairs: exact, approximate, by names."""
