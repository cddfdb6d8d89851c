"""DBP15K in the id layout of JAPE, where a seed pair shares one number on both sides.

ent_ids_1  ent_ids_2        number, URI
rel_ids_1  rel_ids_2        number, URI (the numbers of corresponding relations are shared too)
triples_1  triples_2        head, relation, tail by number
sup_ent_ids  ref_ent_ids    seeds and test links by number

Other programs ship it with other names: links as `sup_pairs`, `ref_pairs` and perhaps `valid_pairs`, and without the
names of the relations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers.link_files import LinkFile
from rlea.io.readers.links import make_pair
from rlea.io.readers.text import shown, tab_rows

MARKS = ("ent_ids_1", "ent_ids_2", "triples_1", "triples_2")


def read_dbp15k(folder: str | Path) -> GraphPair:
    """A pair of graphs whose entities and relations are identified by their URIs, each graph by its own id files.

    The numbers are used to decode the files and then forgotten: entities are numbered anew in the order of their
    URIs, so that neither shared numbers of seeds nor neighbouring numbers of test pairs give anything away. Where the
    shared number of a seed is missing from one of the id files, the other side's number or URI is used, with a note.
    """
    folder = data_folder(Path(folder))
    link_paths = [_find_links(folder, name) for name in ("sup", "ref")]
    valid = folder / "valid_pairs"
    link_paths += [valid] if valid.is_file() else []
    notes = [f"this layout has {'no attributes' if valid in link_paths else 'neither attributes nor validation links'}"]
    seeds, *_ = links = [tab_rows(path, ("source", "target")) for path in link_paths]
    uris = [_read_ids(folder / f"ent_ids_{side}") for side in (1, 2)]
    pairs = list(seeds.select("source", "target").iter_rows())
    decoders = (
        _Decoder("ent_ids_1", uris[0], {second: first for first, second in pairs}, uris[1]),
        _Decoder("ent_ids_2", uris[1], dict(pairs), uris[0]),
    )
    graphs = []
    linked: list[list[list[str]]] = []  # by side, then by file of links
    for side, column, decoder in zip((1, 2), ("source", "target"), decoders, strict=True):
        path, names = folder / f"triples_{side}", folder / f"rel_ids_{side}"
        rows = tab_rows(path, ("head", "relation", "tail"))
        if names.is_file():
            relations = _Decoder(names.name, _read_ids(names), {}, {}, "relation")
        else:
            own = {number: _own_name(number, side) for number in rows["relation"].unique()}
            relations = _Decoder(path.name, own, {}, {}, "relation")
            notes.append(f"{names.name} is absent, so the relations of this graph have no names")
        decoders_of = {"head": decoder, "relation": relations, "tail": decoder}
        triples = pl.DataFrame({name: one.decode(path, rows, name) for name, one in decoders_of.items()})
        linked.append([decoder.decode(*file, column) for file in zip(link_paths, links, strict=True)])
        if decoder.borrowed:
            notes.append(
                f"{decoder.file}: {len(decoder.borrowed)} seeds are missing there, "
                f"so the id or URI of the other graph stands in"
            )
        entities = [*decoder.uris.values(), *(uri for uris_of_file in linked[-1] for uri in uris_of_file)]
        graphs.append(KnowledgeGraph.build(triples, entities=entities))
    train, test, *more = (
        LinkFile(path, tuple(sources), tuple(targets), np.full(len(rows), np.nan), tuple(rows["line"].to_list()))
        for path, rows, sources, targets in zip(link_paths, links, *linked, strict=True)
    )
    return make_pair(pair_name(folder), graphs, [train, more[0] if more else None, test], notes=notes)


def _own_name(number: str, side: int) -> str:
    """A name for a relation that has none. Both graphs use one number for relations that correspond.

    So names begin with something that is different in each graph, which also decides their order.
    """
    digest = hashlib.sha256(f"{side} {number}".encode()).hexdigest()[:6]
    return f"relation {digest} ({number} in triples_{side})"


def _find_links(folder: Path, name: str) -> Path:
    """The file of links `sup...` or `ref...` under one of its names."""
    usual, other = folder / f"{name}_ent_ids", folder / f"{name}_pairs"
    if usual.is_file() or other.is_file():
        return usual if usual.is_file() else other
    kind = "seeds" if name == "sup" else "test links"
    problem = f"there is no such file, and no {other.name} either"
    raise InputError(problem, path=usual, remedy=f"add the {kind} under one of these names, by the numbers of ent_ids")


def data_folder(folder: Path) -> Path:
    """The folder with the files: the given one, or the only folder below it that has them, such as `0_3`."""
    if is_dbp15k(folder):
        return folder
    below = sorted(path for path in folder.iterdir() if path.is_dir() and is_dbp15k(path))
    if len(below) > 1:
        names = ", ".join(path.name for path in below)
        raise InputError(f"has several splits ({names})", path=folder, remedy="give the path of one of them")
    return below[0]


def is_dbp15k(folder: Path) -> bool:
    """Whether a folder has files of this layout, complete or not."""
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
            problem = f"the id {shown(number)} stands for {shown(uri)} and before for {shown(uris[number])}"
            raise InputError(problem, path=path, line=line, remedy="give every entity or relation an id of its own")
    return uris


@dataclass(frozen=True, eq=False)
class _Decoder:
    """Turns the numbers of one graph's entities into URIs, by way of a seed partner where its own file lacks one.

    Relations have no partners.
    """

    file: str  # where the URIs stand
    uris: Mapping[str, str]
    partners: Mapping[str, str]  # number of the other graph's seed -> number of ours
    other_uris: Mapping[str, str]
    kind: str = "entity"
    borrowed: set[str] = field(default_factory=set)  # numbers that the file lacks

    def decode(self, path: Path, rows: pl.DataFrame, column: str) -> list[str]:
        """The URIs of a column of numbers."""
        decoded = {number: self._find(number) for number in rows[column].unique(maintain_order=True)}
        for number, uri in decoded.items():
            if uri is None:
                line = int(rows["line"][rows[column].to_list().index(number)])
                problem = f"the {self.kind} id {shown(number)} is not in {self.file}"
                raise InputError(problem, path=path, line=line, remedy="add it there with its URI")
        return rows[column].replace_strict(decoded, return_dtype=pl.String).to_list()

    def _find(self, number: str) -> str | None:
        uri = self.uris.get(number)
        if uri is None and number in self.partners:
            self.borrowed.add(number)
            return self.uris.get(self.partners[number]) or self.other_uris.get(number)
        return uri
