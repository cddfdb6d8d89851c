"""The dictionary that a run learned, as tab-separated text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlea.io.writers.tsv import put_table
from rlea.plain_text import cell

if TYPE_CHECKING:
    from rlea.evidence.dictionary.channel import Entry

DICTIONARY_FILE = "dictionary.tsv"


def put_dictionary(path: Path, entries: Sequence[Entry]) -> None:
    """Write what phrases and signs of one language become in the other, a line each.

    `kind` is `word` or `letters`; `links` is the number of links that show it, by which the lines are sorted.
    """
    header = ("source", "target", "kind", "probability", "links")
    rows = (
        (cell(one.source), cell(one.target), one.kind, f"{one.probability:.4f}", str(one.num_links)) for one in entries
    )
    put_table(path, header, rows)
