"""Verdicts as files: an SSSOM mapping set with reviewers and `Not`, or links to be used as seeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlea.errors import InputError
from rlea.io.readers.link_files import read_link_rows
from rlea.io.writers import LinkRows, MappingSet, write_all, write_links_file
from rlea.io.writers.sssom import put_mappings
from rlea.record import DOUBTFUL, as_dict, package_version
from rlea.verdicts import REJECT, Verdict, Verdicts, VerdictStore, resolve
from rlea.views.explain.folder import read_record

SSSOM = ".sssom.tsv"
MANUAL = "semapv:ManualMappingCuration"
_ORCID = re.compile(r"(?:orcid:|https?://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])")


def verdicts_of_run(run: str | Path, output: str | Path | None = None, *, rejected: bool = False) -> dict[str, Any]:
    """What people have answered about a run; written to `output` if it is given, see `export_verdicts`."""
    folder = Path(run)
    if rejected and output is None:
        raise InputError("--rejected says what to write, and there is no file", remedy="add --output FILE")
    record = read_record(folder)
    with VerdictStore.of_run(folder, must_exist=True) as store:
        entries = store.entries()
    found = resolve(entries, str(as_dict(record.get("settings")).get("cardinality", "1:1")))
    undone = {entry.undoes for entry in entries}
    standing = [entry for entry in entries if entry.undoes is None and entry.number not in undone]
    notes = [] if output is None else export_verdicts(found, Path(output), rejected=rejected, labels=_labels(folder))
    return {
        **{name: len(getattr(found, name)) for name in ("accepted", "rejected", "skipped", "disputed")},
        "reviewers": dict(Counter(entry.reviewer for entry in standing).most_common()),
        "disputes": [asdict(one) for one in found.disputed],
        "written": None if output is None else str(output),
        "notes": notes,
    }


def _labels(folder: Path) -> dict[str, dict[str, str]]:
    """The names of entities by side, as far as the files of links in the folder of a run have them."""
    labels: dict[str, dict[str, str]] = {"source": {}, "target": {}}
    for path in (folder / "links.tsv", folder / DOUBTFUL):
        if path.exists():
            file = read_link_rows(path)
            labels["source"].update(zip(file.sources, file.source_labels, strict=False))
            labels["target"].update(zip(file.targets, file.target_labels, strict=False))
    return labels


def export_verdicts(verdicts: Verdicts, path: Path, *, rejected: bool = False, labels: Any = None) -> list[str]:
    """Write verdicts that are not disputed, and return notes.

    A path that ends in .sssom.tsv gets accepted and rejected pairs; any other format of links the accepted pairs alone,
    or with `rejected` the rejected ones. `labels` maps a side ("source", "target") to names by identifier.
    """
    is_sssom = path.name.lower().endswith(SSSOM)
    if rejected and is_sssom:
        raise InputError("an SSSOM file has rejected pairs anyway", path=path, remedy="leave --rejected out")
    chosen = (
        (*verdicts.accepted, *verdicts.rejected) if is_sssom else verdicts.rejected if rejected else verdicts.accepted
    )
    known = labels or {"source": {}, "target": {}}
    names = [[known[side].get(getattr(one, side), "") for one in chosen] for side in ("source", "target")]
    rows = LinkRows.sort([one.source for one in chosen], [one.target for one in chosen], [1.0] * len(chosen), *names)
    notes = []
    if verdicts.disputed:
        count = len(verdicts.disputed)
        notes.append(f"{'1 pair is disputed and' if count == 1 else f'{count:,} pairs are disputed and'} left out")
    if not is_sssom:
        return [*notes, *write_links_file(path, rows)]
    if rows.num_blank:
        notes.append(
            f"{rows.num_blank:,} verdicts on blank nodes, which have no identifier outside their file, left out"
        )
    write_all({path: lambda temporary: _put_sssom(temporary, rows.without_blank(), chosen)})
    return notes


def _put_sssom(path: Path, rows: LinkRows, verdicts: Sequence[Verdict]) -> None:
    """Rejected pairs have the predicate modifier `Not`, which readers of this program leave out."""
    found = {(one.source, one.target): one for one in verdicts}
    own = [found[ends] for ends in zip(rows.sources, rows.targets, strict=True)]
    known = [[(name, _ORCID.fullmatch(name)) for name in one.reviewers] for one in own]
    columns = {
        "predicate_modifier": ["Not" if one.answer == REJECT else "" for one in own],
        "reviewer_id": ["|".join(f"orcid:{code[1]}" for _, code in names if code) for names in known],
        "reviewer_label": ["|".join(_plain(name) for name, code in names if not code) for names in known],
        "mapping_date": [one.time[:10] for one in own],
    }
    about = MappingSet(package_version("rlea"), max(columns["mapping_date"], default=""), MANUAL)
    more = {name: column for name, column in columns.items() if any(column)}
    namespaces = {"orcid": "https://orcid.org/"} if "reviewer_id" in more else {}
    put_mappings(path, rows, about, ["skos:exactMatch"] * len(rows), more, namespaces)


def _plain(name: str) -> str:
    """A name that can stand in a list: `|` separates its items."""
    return re.sub(r'[\s|"]+', " ", name).strip()
