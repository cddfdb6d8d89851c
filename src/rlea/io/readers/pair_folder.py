"""The layout of this program's own pairs: two graphs in any format and up to three files of links.

source.<ext>  target.<ext>    RDF or a table of triples; or folders source/ and target/ with tables
seeds.tsv                     links to learn from
valid.tsv  test.tsv           links to choose settings by and to evaluate with (all three optional)
"""

from __future__ import annotations

from pathlib import Path

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers import GRAPH_READERS, read_graph
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.links import make_pair
from rlea.io.readers.text import suffix_of


def read_pair_folder(folder: str | Path) -> GraphPair:
    """A pair from a folder as described at the head of this module; its name is the folder's."""
    folder = Path(folder)
    graphs: list[KnowledgeGraph] = []
    for stem in ("source", "target"):
        found = find_graphs(folder, stem)
        if len(found) != 1:
            names = " and ".join(path.name for path in found[:2])
            problem = f"has both {names}" if found else f"has no graph called {stem}"
            remedy = "remove all but one" if found else f"add {stem}.nt, {stem}.tsv or a folder {stem}/ with tables"
            raise InputError(problem, path=folder, remedy=remedy)
        graphs.append(read_graph(found[0]))
    paths = [folder / name for name in ("seeds.tsv", "valid.tsv", "test.tsv")]
    notes = [] if paths[0].exists() else ["seeds.tsv is absent, so there are no seeds"]
    splits = [read_link_rows(path) if path.exists() else None for path in paths]
    return make_pair(folder.resolve().name, graphs, splits, notes=notes)


def find_graphs(folder: Path, stem: str) -> list[Path]:
    """All that could be the graph of that name in a folder: files of known formats, or a folder of tables."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name.split(".", 1)[0] == stem and (path.is_dir() or suffix_of(path) in GRAPH_READERS)
    ]
