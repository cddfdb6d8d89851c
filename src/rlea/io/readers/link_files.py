"""Links between two graphs, as files hold them: by identifier, whether or not any graph has these entities.

Known formats: the `links.tsv` of this program (source, target, confidence, labels), TSV or CSV with or without a
header, Parquet, JSON lines (`rlea.io.readers.json_links`), SSSOM (`rlea.io.readers.sssom`), and RDF with owl:sameAs
triples or the cells of the Alignment API (`rlea.io.readers.rdf_links`). Links in memory (`rlea.io.readers.memory`)
become the same rows.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.io.readers.columns import Columns, Table, named_table, parquet_columns, read_table
from rlea.io.readers.rdf import RDF_FORMATS, parse_rdf
from rlea.io.readers.text import error_at, read_text, shown, split_tabs, suffix_of

LINKS = Columns(
    required=("source", "target"),
    optional=("confidence",),
    may_be_empty=("confidence",),
    synonyms={"subject_id": "source", "object_id": "target"},
    by_name=("source_label", "target_label"),
)
_TEXT = (".tsv", ".txt", ".sssom", "")  # extensions of tab-separated text
_OWL = "http://www.w3.org/2002/07/owl#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
# The predicates that say "these two are one"; broader, narrower and close matches do not.
IDENTITY = {_OWL + "sameAs", _OWL + "equivalentClass", _OWL + "equivalentProperty", SKOS + "exactMatch"}
# Most files lack the final "#" of the namespace, so the names are joined to it without one.
ALIGNMENT = re.compile(r"http://knowledgeweb\.semanticweb\.org/heterogeneity/alignment#?(.*)")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass(frozen=True, eq=False)
class LinkFile:
    """Links by identifier, as a file gives them.

    `confidences` has a number in [0, 1] per link, NaN where none is given. `numbers[i]` says where link i stands: its
    line, its row (Parquet, data in memory) or its place among the links (RDF without lines), as `unit` says. `notes`
    say what was left out, such as matches that are not of identity. Labels are there where the file has them for both
    sides, "" where one is missing.
    """

    path: Path
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    confidences: NDArray[np.float64]  # (num_links,)
    numbers: tuple[int, ...]
    unit: str = "line"
    notes: tuple[str, ...] = ()
    source_labels: tuple[str, ...] = ()
    target_labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sources)

    @staticmethod
    def of_matches(
        path: Path, rows: Sequence[tuple[str, str, float, int]], unit: str, num_matches: int | None = None
    ) -> LinkFile:
        """From rows (source, target, confidence, number), with a note if they are not all of `num_matches` matches."""
        sources, targets, confidences, numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
        num_other = 0 if num_matches is None else num_matches - len(rows)
        note = (
            f"{path.name}: left out {num_other} of {num_matches} matches that do not say that two entities are the same"
        )
        notes = (note,) if num_other else ()
        return LinkFile(path, sources, targets, np.array(confidences, dtype=np.float64), numbers, unit, notes)

    def with_labels(self, sources: tuple[str, ...], targets: tuple[str, ...]) -> LinkFile:
        """The same links with labels, unless all of these are empty."""
        return replace(self, source_labels=sources, target_labels=targets) if any(sources + targets) else self


def read_link_rows(path: str | Path) -> LinkFile:
    """Read links by identifier, whether or not any graph has these entities.

    A file that has a header and no rows is an empty list of links; a file without content is an error.
    """
    from rlea.io.readers.json_links import read_json_links
    from rlea.io.readers.rdf_links import read_rdf_links
    from rlea.io.readers.sssom import is_sssom, read_sssom

    path = Path(path)
    suffix = suffix_of(path)
    if suffix in RDF_FORMATS:
        return read_rdf_links(path)
    if suffix in (".csv", ".parquet"):
        return links_of_table(read_table(path, LINKS))
    if suffix == ".jsonl":
        return links_of_table(read_json_links(path))
    if suffix not in _TEXT and not path.is_dir() and path.exists():
        remedy = "give .tsv, .csv, .parquet, .jsonl, .sssom.tsv, .nt (owl:sameAs) or .rdf (Alignment API)"
        raise InputError(f"has the extension {suffix}, which is no format of links", path=path, remedy=remedy)
    text = read_text(path)
    return (
        read_sssom(path, text) if is_sssom(text) else links_of_table(named_table(path, split_tabs(path, text), LINKS))
    )


def links_of_table(table: Table) -> LinkFile:
    """Links from the columns source, target and, if there is one, confidence."""
    frame, path, unit = table.frame, table.path, table.unit
    texts = frame["confidence"].to_list() if "confidence" in frame.columns else [""] * len(frame)
    rows = zip(frame["source"].to_list(), frame["target"].to_list(), texts, frame["line"].to_list(), strict=True)
    links = LinkFile.of_matches(path, [(s, t, confidence_of(path, unit, n, text), n) for s, t, text, n in rows], unit)
    labels = [tuple(frame[name].to_list()) for name in LINKS.by_name if name in frame.columns]
    return links.with_labels(*labels) if len(labels) == len(LINKS.by_name) else links


def confidence_of(path: Path, unit: str, number: int, text: str) -> float:
    """A confidence from its text, NaN where there is none."""
    stripped = text.strip()
    if not stripped:
        return math.nan
    value = float(stripped) if _NUMBER.fullmatch(stripped) else math.nan
    if not 0.0 <= value <= 1.0:
        problem = f"the confidence {shown(text, 30)} is no number between 0 and 1"
        raise error_at(path, unit, number, problem, "correct or delete it")
    return value


def looks_like_links(path: str | Path) -> bool:
    """Whether a file holds links rather than a graph, judged by its first rows; False where it cannot be read."""
    from rlea.io.readers.json_links import link_fields
    from rlea.io.readers.sssom import is_sssom

    path = Path(path)
    suffix = suffix_of(path)
    try:
        if not path.is_file() or suffix not in (*RDF_FORMATS, *_TEXT, ".csv", ".parquet", ".jsonl"):
            return False
        if suffix in RDF_FORMATS:
            predicates = [quad.predicate.value for quad in islice(parse_rdf(path), 100)]
            is_alignment = any(ALIGNMENT.fullmatch(name) for name in predicates)
            return is_alignment or (bool(predicates) and IDENTITY.issuperset(predicates))
        if suffix == ".parquet":
            return _has_link_columns(path)
        text = read_text(path)
        if is_sssom(text):
            return True
        first = next(line for line in text.split("\n") if line.strip()).rstrip("\r")
        if suffix == ".jsonl":
            return set(LINKS.required) <= link_fields(first).keys()
        fields = LINKS.named(next(csv.reader([first])) if suffix == ".csv" else first.split("\t"))
    except (InputError, OSError, csv.Error):
        return False
    if set(LINKS.required) <= set(fields) or len(fields) == 2:
        return True
    # Three columns are links only if the third is a confidence; triples may have whole numbers there.
    return len(fields) == 3 and re.fullmatch(r"[01]\.\d+", fields[2]) is not None


def _has_link_columns(path: Path) -> bool:
    return set(LINKS.required) <= set(LINKS.named(parquet_columns(path)))
