"""What is attacked: for each reader a good file, and the call that reads it. All end in a value or in an InputError."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, get_type_hints

import numpy as np
import polars as pl

import rlea
from rlea.cli.align import align
from rlea.config import read_config
from rlea.evidence.attributes.values import read_values
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.readers import read_graph
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.vectors import read_embeddings
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers import LINK_FILES
from rlea.io.writers.graphs import write_graph
from rlea.io.writers.vectors import write_embeddings
from rlea.models.checkpoint import load_checkpoint, save_checkpoint
from rlea.views.explain import Run

GRAPHS = ("x.nt", "x.ttl", "x.rdf", "x.nq", "x.trig", "x.tsv", "x.csv", "x.parquet")
FRAGMENTS = [
    *"0123456789",
    *"٢²½१",
    *"-+.,:/ TZeE°%",
    "km",
    "ft",
    "'",
    "POINT(",
    ")",
    "Jan",
    "20",
    "19",
    "00",
    "٠١",
    "é",
    "\0",
]


@dataclass(frozen=True)
class Target:
    """A reader: the folder with good files, the file that is mutated, the call."""

    name: str
    folder: Path
    file: str
    read: Callable[[Path], Any]


def make_targets(folder: Path) -> list[Target]:
    """Good files of every kind, written into a folder for each."""
    pair = generate(SyntheticSettings(12, seeds=0.4, valid=0.2, seed=1))
    graph = rlea.read(
        {"triples": [("a", "r", "b"), ("b", "r", "c")], "literals": [("a", "born", "1999-12-31"), ("b", "text", "é")]},
        [("x", "r", "y")],
    ).source
    targets: list[Target] = []

    def place(name: str) -> Path:
        (folder / name).mkdir(parents=True)
        return folder / name

    def add(name: str, own: Path, file: str, read: Callable[[Path], Any]) -> None:
        targets.append(Target(name, own, file, read))

    for file in GRAPHS:
        own = place(f"graph {file}")
        if file.endswith((".nt", ".ttl", ".rdf", ".nq")):
            write_graph(own / file, graph)
        elif file == "x.trig":
            (own / file).write_text("<http://g> { <http://a> <http://r> <http://b>; <http://p> 1, 'x'@en . }\n")
        else:
            rows = pl.DataFrame({"head": ["a", "b"], "relation": ["r", "r"], "tail": ["b", "c"]})
            rows.write_parquet(own / file) if file == "x.parquet" else rows.write_csv(
                own / file, separator="\t" if file == "x.tsv" else ","
            )
        add(f"graph {file}", own, file, read_graph)
    own = place("graph x.jsonld")
    (own / "x.jsonld").write_text(
        '{"@id": "http://a", "http://r": [{"@id": "http://b"}, {"@value": "x", "@language": "en"}]}'
    )
    add("graph x.jsonld", own, "x.jsonld", read_graph)
    own = place("rows x.csv")
    (own / "x.csv").write_text("id,name,born\n1,Ada Lovelace,1815-12-10\n2,Alan Turing,23.6.1912\n")
    add("rows x.csv", own, "x.csv", read_graph)
    own = place("rows x.sqlite")
    with sqlite3.connect(own / "x.sqlite") as base:
        base.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        base.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')")
    base.close()
    add("rows x.sqlite", own, "x.sqlite", read_graph)

    run = place("run")
    result = rlea.align(pair, matcher="mutual")
    rlea.write(run / "out", result, formats=tuple(LINK_FILES))
    # With the hashes of its files every mutation would be found by these alone.
    record = json.loads((run / "out" / "run.json").read_text())
    (run / "out" / "run.json").write_text(json.dumps({**record, "files": {}}))
    for file in LINK_FILES.values():
        add(f"links {file}", run / "out", file, read_link_rows)
    for file in ("run.json", "links.tsv", "gold_ranks.safetensors"):
        if (run / "out" / file).exists():
            add(f"run {file}", run / "out", file, lambda path: Run.open(path.parent, pair=pair))
    options = {name.rstrip("_"): kind for name, kind in get_type_hints(align).items()}
    add("run.toml", run / "out", "run.toml", lambda path: read_config(path, options))

    small = GraphPair("small", graph, graph, Links.empty(), Links.empty(), Links.empty())
    table = np.arange(2 * graph.num_entities, dtype=np.float32).reshape(-1, 2) + 1
    own = place("vectors x.safetensors")
    write_embeddings(own / "x.safetensors", rlea.Embeddings(table, table.copy()), graph, graph)
    names = "\n".join(graph.entities) + "\n"

    def read_array(path: Path) -> Any:
        return read_embeddings(path.with_suffix(".npy"), small.source, small.target)

    for file in ("x.npy", "x.ids"):
        one = place(f"vectors {file}")
        np.save(one / "x.npy", table)
        (one / "x.ids").write_text(names)
        add(
            f"vectors {file}",
            one,
            file,
            lambda path: read_embeddings(path.with_suffix(".npy"), small.source, small.target),
        )
    one = place("vectors x.vec")
    lines = [f"{name} {x} {y}" for name, (x, y) in zip(graph.entities, table.tolist(), strict=True)]
    (one / "x.vec").write_text(f"{len(lines)} 2\n" + "\n".join(lines) + "\n")
    for where, file in ((own, "x.safetensors"), (one, "x.vec")):
        add(f"vectors {file}", where, file, lambda path: read_embeddings(path, small.source, small.target))

    own = place("agent")
    rlea.Aligner(channels=("names",)).fit(generate(SyntheticSettings(40, seeds=0.5, valid=0.0, seed=2))).save(
        own / "x.safetensors"
    )
    add("agent", own, "x.safetensors", rlea.Aligner.load)
    own = place("checkpoint")
    save_checkpoint(own / "x.checkpoint", {"x": np.ones(3)}, {"run": {"seed": 1}, "epoch": 2})
    add("checkpoint", own, "x.checkpoint", lambda path: load_checkpoint(path, {"seed": 1}))
    return targets


def read_random_values(chance: Random) -> Any:
    """Literals of random pieces through all that reads numbers, dates, units and places."""
    values = ["".join(chance.choices(FRAGMENTS, k=chance.randint(1, 12))) for _ in range(400)]
    types = [chance.choice(("", "#date", "#gYear", "#integer", "#double")) for _ in values]
    graph = KnowledgeGraph.build(
        pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]}),
        pl.DataFrame(
            {
                "entity": chance.choices(["a", "b"], k=len(values)),
                "attribute": chance.choices(["p", "lat", "long"], k=len(values)),
                "value": values,
                "datatype": [f"http://www.w3.org/2001/XMLSchema{kind}" if kind else "" for kind in types],
                "language": [""] * len(values),
            }
        ),
    )
    return read_values(graph, graph)
