"""The layout of the OpenEA benchmark: two graphs, all links, and folds of them.

rel_triples_1  rel_triples_2      head, relation, tail
attr_triples_1  attr_triples_2    entity, attribute, value (either may be absent or empty)
ent_links                         all links
721_5fold/1..5/{train,valid,test}_links
"""

from __future__ import annotations

import re
from pathlib import Path

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.io.readers.link_files import LinkFile, read_link_rows
from rlea.io.readers.links import make_pair
from rlea.io.readers.literals import split_literals
from rlea.io.readers.text import is_empty, shown, tab_rows

# The folds that the benchmark's own results are reported on, where a folder has several sets of them.
_USUAL_FOLDS = "721_5fold"


def read_openea(folder: str | Path, fold: str = "1") -> GraphPair:
    """A pair of graphs with one fold of links as seeds, validation and test links.

    All files are tab-separated without header, and quotes have no meaning in them. Entities that stand only in
    `ent_links` are entities too. `fold` is the name of a folder below `721_5fold` (or whatever the only folder with
    "fold" in its name is called); `"631_5fold/2"` chooses among several sets of folds.
    """
    folder = Path(folder)
    links_folder = _fold_folder(folder, str(fold))
    notes: list[str] = []
    links_path = folder / "ent_links"
    links = LinkFile.of_matches(links_path, [], "line") if is_empty(links_path) else read_link_rows(links_path)
    triples = [tab_rows(folder / f"rel_triples_{side}", ("head", "relation", "tail")) for side in (1, 2)]
    _check_sides(links, *({*frame["head"], *frame["tail"]} for frame in triples))
    graphs = []
    for side, linked in ((1, links.sources), (2, links.targets)):
        literals = None
        attributes = folder / f"attr_triples_{side}"
        if attributes.exists() and not is_empty(attributes):
            rows = tab_rows(attributes, ("entity", "attribute", "value"), keep_tabs=True)
            literals = rows.select("entity", "attribute").hstack(split_literals(rows["value"]))
        else:
            graph_word = "source" if side == 1 else "target"
            state = "empty" if attributes.exists() else "absent"
            notes.append(f"{attributes.name} is {state}, so the {graph_word} graph has no attributes")
        graphs.append(KnowledgeGraph.build(triples[side - 1], literals, entities=linked))
    splits: list[LinkFile | None] = []
    for name in ("train_links", "valid_links", "test_links"):
        path = links_folder / name
        if is_empty(path) or (name == "valid_links" and not path.exists()):
            notes.append(f"{links_folder.name}/{name} is {'empty' if path.exists() else 'absent'}")
            splits.append(None)
        else:
            splits.append(read_link_rows(path))
    return make_pair(pair_name(folder), graphs, splits, notes=notes, fold=str(fold))


def pair_name(folder: Path) -> str:
    """The name of a pair without the size and version of the benchmark.

    >>> pair_name(Path("EN_FR_15K_V1"))
    'EN_FR'
    """
    name = folder.resolve().name
    return re.sub(r"_\d+K(_V\d+)?$", "", name, flags=re.IGNORECASE) or name


def _fold_folder(folder: Path, fold: str) -> Path:
    sets = sorted(path for path in folder.iterdir() if path.is_dir() and "fold" in path.name.lower())
    if not sets:
        remedy = "add one with 1/train_links, 1/valid_links and 1/test_links"
        raise InputError("has no folder of folds such as 721_5fold", path=folder, remedy=remedy)
    if "/" in fold:
        chosen, fold = fold.split("/", 1)
        sets = [path for path in sets if path.name == chosen]
        if not sets:
            raise InputError(f"there is no folder {shown(chosen)}", path=folder, remedy="choose one with folds in it")
    usual = [path for path in sets if path.name == _USUAL_FOLDS]
    if len(sets) > 1 and not usual:
        names = ", ".join(path.name for path in sets)
        problem = f"has several sets of folds ({names})"
        raise InputError(problem, path=folder, remedy=f"choose one, as in {sets[0].name}/{fold}")
    within = (usual or sets)[0]
    available = sorted(path.name for path in within.iterdir() if path.is_dir())
    if fold not in available:
        listed = ", ".join(available) or "none"
        raise InputError(f"there is no fold {shown(fold)}", path=within, remedy=f"choose one of those there: {listed}")
    return within / fold


def _check_sides(links: LinkFile, source: set[str], target: set[str]) -> None:
    """Linked entities are added to the graphs, so links with the sides swapped would go unnoticed without this."""
    swapped = [
        row
        for row, (first, second) in enumerate(zip(links.sources, links.targets, strict=True))
        if first not in source and second not in target and (first in target or second in source)
    ]
    if 2 * len(swapped) > len(links):
        problem = f"{shown(links.sources[swapped[0]])} is an entity of the second graph, not the first"
        remedy = "the two sides are swapped: exchange the columns or the files of the two graphs"
        raise InputError(problem, path=links.path, line=links.numbers[swapped[0]], remedy=remedy)
