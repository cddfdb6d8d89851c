"""Tiny pairs of graphs with hostile texts, through every matcher, the files, and all that reads them again."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import rlea
from rlea import commands
from rlea.deciders import DECIDERS
from rlea.evidence import CHANNELS
from rlea.io.readers import read_graph
from rlea.io.readers.link_files import read_link_rows
from rlea.io.writers.graphs import write_graph
from rlea.record import DOUBTFUL
from rlea.views.explain import Run

TEXTS = [
    *("", " ", "a", "A", "ä", "a\u0308", "ﬁ", "ß", "İ", "ı", "Ǆ", "\u200b", "\ufeff", "\u202e", "\u2028", "\x85"),
    *(
        "\0",
        "\x1b[2J",
        "\x9b31m",
        "\n",
        "\r\n",
        "\t",
        '"',
        "'",
        "\\",
        "<",
        ">",
        "&amp;",
        "</script><b>",
        "{{7*7}}",
        "]]>",
    ),
    *("=1+1", "@x", "-", "+1", "%00", "%", "#", "?", "http://", "http://[", "urn:rlea:", "urn:rlea:%2", "_:", "_:b0"),
    *("NaN", "inf", "-0", "1e999", "1e-999", "9" * 400, "٢٠٢٠-٠١-٠١", "2020-02-30", "0000-00-00", "-4712-01-01", "1/0"),
    *(
        "POINT(1 2)",
        "POINT(999 999)",
        "12 km",
        "½",
        "²",
        "１２",
        "true",
        "null",
        "None",
        "../../x",
        "C:\\x",
        "CON",
        "x" * 3000,
    ),
    *("👩‍👩‍👧", "\U0010ffff", "\ufffe", "漢字", "العربية", "Ω", "ΑΒΓ", "ж", "a b c d", "the", "of the", "1815-12-10"),
]
TYPES = ["", "date", "gYear", "integer", "double", "decimal", "dateTime", "string", "boolean"]
XSD = "http://www.w3.org/2001/XMLSchema#"
FORMATS = ("csv", "parquet", "jsonl")
LIGHT = [name for name, one in DECIDERS.items() if not one.is_trained]
_WRITABLE = str.maketrans("", "", "\t\n\r\0")


def hostile(chance: Random) -> str:
    """A text of a few pieces that mean something somewhere."""
    return "".join(chance.choices(TEXTS, k=chance.choice((1, 1, 1, 2, 3))))


def random_graph(chance: Random, *, for_files: bool) -> dict[str, Any]:
    """A graph of a few entities, often with equal names, loops, hubs, and nothing but literals."""
    count = chance.choice((1, 1, 2, 3, 5, 8, 13, 30))
    known: dict[str, None] = {}
    while len(known) < count:
        text = chance.choice(("", "http://x/", "http://x#")) + hostile(chance) + chance.choice(("", str(len(known))))
        text = text.translate(_WRITABLE) if for_files else text
        known[text if text.strip() else f"e{len(known)}"] = None
    entities = list(known)
    relations = [hostile(chance).translate(_WRITABLE).strip() or "r" for _ in range(chance.choice((1, 1, 2, 5)))]
    hub = chance.choice(entities)
    triples = []
    for _ in range(chance.choice((0, 1, count, 3 * count))):
        head = chance.choice(entities)
        tail = head if chance.random() < 0.1 else hub if chance.random() < 0.3 else chance.choice(entities)
        triples.append((head, chance.choice(relations), tail))
    literals = []
    for _ in range(chance.choice((0, count, 4 * count))):
        kind = chance.choice(TYPES)
        attribute = chance.choice(("p", "q", "lat", "long", "http://www.w3.org/2000/01/rdf-schema#label"))
        language = "" if kind else chance.choice(("", "", "en", "de-at"))
        literals.append((chance.choice(entities), attribute, hostile(chance), XSD + kind if kind else "", language))
    names = [(one, hostile(chance)) for one in entities if chance.random() < 0.7]
    if chance.random() < 0.2:
        names = [(one, "the same") for one in entities]
    if not triples and not literals and not names:
        triples = [(entities[0], "r", entities[-1])]
    return {"triples": triples, "literals": literals, "names": names}


def random_links(chance: Random, source: Any, target: Any) -> list[tuple[str, str, float]]:
    """Some links between entities of two graphs, right or wrong."""
    most = min(source.num_entities, target.num_entities)
    count = chance.randint(0, most)
    ends = (chance.sample(graph.entities, count) for graph in (source, target))
    return [(one, other, chance.choice((1.0, 1.0, 0.7, 0.1, 0.0))) for one, other in zip(*ends, strict=True)]


def random_options(chance: Random, *, light: bool) -> dict[str, Any]:
    """A matcher and options that go with it."""
    options: dict[str, Any] = {"matcher": chance.choice(LIGHT) if light else chance.choice(("fused", "rlea", "auto"))}
    options["seed"] = chance.choice((0, 1, 2**40))
    if chance.random() < 0.3:
        options["pool"] = chance.choice(("all", "test"))
    if chance.random() < 0.2:
        options["keep"] = chance.choice(("all", "worthwhile"))
    elif chance.random() < 0.3:
        options["threshold"] = chance.choice((1e-9, 0.5, 1.0))
    if options["matcher"] == "fused":
        if chance.random() < 0.4:
            options["channels"] = tuple(chance.sample(CHANNELS, chance.randint(1, len(CHANNELS))))
        elif chance.random() < 0.2:
            options["cardinality"] = chance.choice(("1:n", "n:1", "n:m"))
        elif chance.random() < 0.3:
            options["hide"] = chance.choice(("names", "attributes", "names,attributes"))
    return options


def align_random_pair(chance: Random, *, trained: float = 0.1) -> Any:
    """One pair from data in memory to files and back; wrong answers are AssertionErrors, refusals InputErrors.

    `trained` is the share of pairs that go to the agent, which takes seconds.
    """
    for_files = chance.random() < 0.7
    graphs = [random_graph(chance, for_files=for_files) for _ in range(2)]
    if chance.random() < 0.3:
        graphs[1] = graphs[0]
    bare = rlea.read(*graphs)
    seeds, gold = (random_links(chance, bare.source, bare.target) or None for _ in range(2))
    pair = rlea.read(*graphs, seeds=seeds, gold=gold)
    result = rlea.align(pair, **random_options(chance, light=chance.random() >= trained))
    check_links(result)
    repr(result), result.summary(), result.to_polars(), result._repr_html_()
    json.dumps(result.summary())
    if for_files:
        with tempfile.TemporaryDirectory() as folder:
            write_and_read(result, Path(folder))
    return result


def check_links(result: Any) -> None:
    """What holds of every result."""
    links, pair = result.matching, result.pair
    for ids, graph in ((links.source_ids, pair.source), (links.target_ids, pair.target)):
        assert not len(ids) or (ids.min() >= 0 and ids.max() < graph.num_entities), "ids out of range"
    assert all(0 <= value <= 1 for value in links.confidences.tolist()), "a confidence that is none"
    ends = list(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))
    assert len(set(ends)) == len(ends), "a link twice"
    if DECIDERS[result.settings.matcher].one_to_one and result.settings.cardinality == "1:1":
        assert links.is_one_to_one, "not one-to-one"
    if result.links is not None:
        figures = [value for value in result.links.as_dict().values() if isinstance(value, float)]
        assert all(math.isfinite(value) and value >= 0 for value in figures), "a score that is none"


def write_and_read(result: Any, folder: Path) -> None:
    """Every file of a run says the same links; what is made of the folder is made."""
    pair, out = result.pair, folder / "out"
    rlea.write(out, result, formats=FORMATS)
    told = ends_of(out / "links.tsv")
    assert len(told) == len(result.matching), "links.tsv has other links"
    blank = [ends for ends in told if any(end.startswith("_:") for end in ends)]
    for name in FORMATS:
        others = ends_of(out / f"links.{name}")
        assert sorted([*others, *blank]) == sorted(told), f"links.{name} has other links than links.tsv"
    for name in ("links.nt", "links.rdf", "links.sssom.tsv"):
        if len(told) > len(blank):
            assert sorted([*ends_of(out / name), *blank]) == sorted(told), f"{name} has other links than links.tsv"
    if (out / DOUBTFUL).exists():
        assert len(ends_of(out / DOUBTFUL)) == len(result.worth_a_look)
    run = Run.open(out, pair=pair)
    for entity in (pair.source.entities[0], pair.target.entities[-1]):
        expect(lambda entity=entity: run.explain(entity))
    commands.write_report(out, pair=pair)
    commands.merge_run(out, pair=pair)
    for side in (pair.source, pair.target):
        for ending in ("nt", "rdf", "ttl"):
            round_trip(side, folder / f"graph.{ending}")


def round_trip(graph: Any, path: Path) -> None:
    """A graph that was written without a note is the same when it is read again."""
    notes: Any = expect(lambda: write_graph(path, graph))
    if notes is None or notes:
        return
    again: Any = expect(lambda: read_graph(path))
    if again is not None:
        assert again.triples.tolist() == graph.triples.tolist(), f"{path.name} has other triples"
        assert again.entities == graph.entities, f"{path.name} has other entities"


def expect(call: Callable[[], Any]) -> Any:
    """What a call returns; None where it refuses."""
    try:
        return call()
    except rlea.InputError:
        return None


def ends_of(path: Path) -> list[tuple[str, str]]:
    """The links in a file."""
    rows = read_link_rows(path)
    assert path.suffix == ".nt" or not np.isnan(rows.confidences).any(), f"{path.name} lacks confidences"
    return list(zip(rows.sources, rows.targets, strict=True))


def dedupe_random_graph(chance: Random) -> Any:
    """Duplicates of one graph, and clusters of three, from memory to files."""
    graphs = [random_graph(chance, for_files=True) for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        found = rlea.dedupe(graphs[0], threshold=chance.choice((0.01, 0.5)), for_files=True)
        members = [member for cluster in found.clusters for member in cluster.members]
        assert len(set(members)) == len(members), "an entity in two clusters"
        found.write(Path(folder) / "one")
        several = rlea.align_several(graphs, matcher=chance.choice(LIGHT), for_files=True)
        for cluster in several.clusters:
            places = [several.entity(member)[0] for member in cluster.members]
            assert len(set(places)) == len(places), "two entities of a graph in one cluster"
        several.write(Path(folder) / "several")
    return found
