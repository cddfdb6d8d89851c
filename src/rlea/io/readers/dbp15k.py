"""DBP15K in the id layout of JAPE, where a seed pair shares one number on both sides.

ent_ids_1  ent_ids_2        number, URI
rel_ids_1  rel_ids_2        number, URI (the numbers of corresponding relations are shared too)
triples_1  triples_2        head, relation, tail by number
sup_ent_ids  ref_ent_ids    seeds and test links by number
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers.link_files import LinkFile
from rlea.io.readers.links import no_links, place_links, separate_splits
from rlea.io.readers.text import check_folder, shown, tab_rows

if TYPE_CHECKING:
    import polars as pl

MARKS = ("ent_ids_1", "ent_ids_2", "triples_1", "triples_2")


@dataclass(frozen=True, eq=False)
class _Side:
    """The numbers of one graph: where they are told, and how the other graph's numbers lead to them."""

    number: int  # 1 or 2
    entities_path: Path
    relations_path: Path
    uris: Mapping[str, str]
    partners: Mapping[str, str]  # number of the other graph's seed -> number of ours
    other_uris: Mapping[str, str]


def read_dbp15k(folder: str | Path) -> GraphPair:
    """A pair of graphs whose entities and relations are identified by their URIs, each graph by its own id files.

    The numbers are used to decode the files and then forgotten: entities are numbered anew in the order of their
    URIs, so that neither shared numbers of seeds nor neighbouring numbers of test pairs reach anybody. Where the
    shared number of a seed is missing from one of the id files, the other side's number or URI stands in, with a note.
    """
    check_folder(Path(folder))
    folder = data_folder(Path(folder))
    notes = ["this layout has neither attributes nor validation links"]
    seeds = tab_rows(folder / "sup_ent_ids", ("source", "target"))
    tests = tab_rows(folder / "ref_ent_ids", ("source", "target"))
    entity_uris = [_read_ids(folder / f"ent_ids_{side}") for side in (1, 2)]
    seed_pairs = list(seeds.select("source", "target").iter_rows())
    sides = (
        _Side(
            1,
            folder / "ent_ids_1",
            folder / "rel_ids_1",
            entity_uris[0],
            {second: first for first, second in seed_pairs},
            entity_uris[1],
        ),
        _Side(
            2,
            folder / "ent_ids_2",
            folder / "rel_ids_2",
            entity_uris[1],
            dict(seed_pairs),
            entity_uris[0],
        ),
    )
    graphs = []
    for side in sides:
        borrowed: set[str] = set()
        triples = _decode_triples(folder / f"triples_{side.number}", side, borrowed)
        column = "source" if side.number == 1 else "target"
        linked = [*_decode(folder / "sup_ent_ids", seeds, column, side, borrowed)]
        linked += _decode(folder / "ref_ent_ids", tests, column, side, set())
        if borrowed:
            notes.append(
                f"{side.entities_path.name}: {len(borrowed)} seeds are missing there, "
                f"so the id or URI of the other graph stands in"
            )
        graphs.append(KnowledgeGraph.build(triples, entities=[*side.uris.values(), *linked]))
    source, target = graphs

    splits = [
        place_links(_uri_links(folder / "sup_ent_ids", seeds, sides), source, target),
        no_links(folder / "sup_ent_ids"),
        place_links(_uri_links(folder / "ref_ent_ids", tests, sides), source, target),
    ]
    (train, valid, test), link_notes = separate_splits(splits)
    return GraphPair(
        name=pair_name(folder),
        source=source,
        target=target,
        train=train,
        valid=valid,
        test=test,
        notes=(*notes, *link_notes),
    )


def data_folder(folder: Path) -> Path:
    """The folder with the files: the given one, or the only folder below it that has them, such as `0_3`."""
    if is_dbp15k(folder):
        return folder
    below = sorted(path for path in folder.iterdir() if path.is_dir() and is_dbp15k(path))
    if len(below) == 1:
        return below[0]
    if below:
        names = ", ".join(path.name for path in below)
        raise InputError(f"has several splits ({names})", path=folder, remedy="give the path of one of them")
    raise InputError(
        f"has none of the files {', '.join(MARKS)}", path=folder, remedy="give the folder that has them, such as 0_3"
    )


def is_dbp15k(folder: Path) -> bool:
    """Whether a folder has files of this layout, be they complete or not."""
    return any((folder / name).is_file() for name in MARKS)


def pair_name(folder: Path) -> str:
    """The name of the language pair: that of the folder above one named by its split, such as `zh_en/0_3`."""
    whole = folder.resolve()
    is_split = whole.name.replace("_", "").isdigit()
    return whole.parent.name if is_split and whole.parent.name else whole.name


def _read_ids(path: Path) -> dict[str, str]:
    uris: dict[str, str] = {}
    for number, uri, line in tab_rows(path, ("id", "uri")).iter_rows():
        if uris.setdefault(number, uri) != uri:
            raise InputError(
                f"the id {shown(number)} stands for {shown(uri)} and before for {shown(uris[number])}",
                path=path,
                line=line,
                remedy="give every entity or relation an id of its own",
            )
    return uris


def _find(number: str, side: _Side, borrowed: set[str]) -> str | None:
    """The URI of an entity's number, by way of its seed partner if its own graph does not list it."""
    uri = side.uris.get(number)
    if uri is None and number in side.partners:
        borrowed.add(number)
        return side.uris.get(side.partners[number]) or side.other_uris.get(number)
    return uri


def _decode(path: Path, rows: pl.DataFrame, column: str, side: _Side, borrowed: set[str]) -> list[str]:
    """The URIs of a column of entity numbers."""
    decoded: dict[str, str | None] = {
        number: _find(number, side, borrowed) for number in rows[column].unique(maintain_order=True)
    }
    unknown = {number for number, uri in decoded.items() if uri is None}
    if unknown:
        numbers = rows[column].to_list()
        row = next(row for row, number in enumerate(numbers) if number in unknown)
        raise InputError(
            f"the entity id {shown(numbers[row])} is not in {side.entities_path.name}",
            path=path,
            line=int(rows["line"][row]),
            remedy="add it there with its URI",
        )
    return [decoded[number] or "" for number in rows[column].to_list()]


def _decode_triples(path: Path, side: _Side, borrowed: set[str]) -> pl.DataFrame:
    import polars as pl

    rows = tab_rows(path, ("head", "relation", "tail"))
    relation_uris = _read_ids(side.relations_path)
    relations = [relation_uris.get(number) for number in rows["relation"].to_list()]
    if None in relations:
        row = relations.index(None)
        raise InputError(
            f"the relation id {shown(rows['relation'][row])} is not in {side.relations_path.name}",
            path=path,
            line=int(rows["line"][row]),
            remedy="add it there with its URI",
        )
    return pl.DataFrame(
        {
            "head": _decode(path, rows, "head", side, borrowed),
            "relation": relations,
            "tail": _decode(path, rows, "tail", side, borrowed),
        }
    )


def _uri_links(path: Path, rows: pl.DataFrame, sides: tuple[_Side, _Side]) -> LinkFile:
    sources, targets = (
        tuple(_decode(path, rows, column, side, set()))
        for column, side in zip(("source", "target"), sides, strict=True)
    )
    return LinkFile(path, sources, targets, np.full(len(rows), np.nan), tuple(rows["line"].to_list()))
