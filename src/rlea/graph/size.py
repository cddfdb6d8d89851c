"""From which size on the work about a pair of graphs is bounded.

Up to `LARGE` entities everything is computed in full. Beyond, what would grow faster than the graphs is not: searches
stop at a budget, learning and null models look at a sample, hubs lose their edges. docs/search.md ("A million
entities") lists what, and what it costs.
"""

from __future__ import annotations

LARGE = 50_000  # entities of the larger graph


def is_large(*counts: int) -> bool:
    """Whether a graph of these numbers of entities is beyond the bound."""
    return max(counts, default=0) > LARGE
