"""What is attacked: for each reader a good file, and the call that reads it. All end in a value or in an InputError."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, get_type_hints
from unittest.mock import patch

import numpy as np
import polars as pl
import zstandard

import rlea
from fuzz.pykeen_model import save_pykeen
from rlea import commands
from rlea.cli.align import align
from rlea.config import read_config
from rlea.evidence.attributes.values import read_values
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.apart import read_apart
from rlea.io.readers import read_graph, read_pair
from rlea.io.readers.link_files import read_link_rows
from rlea.io.readers.sparql import parse_query, read_endpoint
from rlea.io.readers.vectors import read_embeddings
from rlea.io.readers.verdicts import with_verdicts
from rlea.io.readers.web import Incomplete
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers import LINK_FILES
from rlea.io.writers.graphs import write_graph, write_pair
from rlea.io.writers.vectors import write_embeddings
from rlea.models.checkpoint import load_checkpoint, save_checkpoint
from rlea.models.embed import embed_entities
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS
from rlea.review.export import verdicts_of_run
from rlea.review.session import Filters, Review
from rlea.verdicts import VerdictStore
from rlea.views.explain import Run

TRAINED = ("mtranse", "aligne", "gcnalign")  # one of each way to train
EPOCHS = 10
GRAPHS = ("x.nt", "x.ttl", "x.rdf", "x.nq", "x.trig", "x.tsv", "x.csv", "x.parquet", "x.rlea")
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


class Targets:
    """Good files of every kind, each in a folder of its own, and a target for each of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[Target] = []
        self.pair = generate(SyntheticSettings(12, seeds=0.4, valid=0.2, seed=1))
        literals = [("a", "born", "1999-12-31"), ("b", "text", "é")]
        graph = {"triples": [("a", "r", "b"), ("b", "r", "c")], "literals": literals}
        self.graph = rlea.read(graph, [("x", "r", "y")]).source

    def place(self, name: str) -> Path:
        (self.folder / name).mkdir(parents=True)
        return self.folder / name

    def add(self, name: str, own: Path, file: str, read: Callable[[Path], Any]) -> None:
        self.found.append(Target(name, own, file, read))


def make_targets(folder: Path, parts: Iterable[str] = ()) -> list[Target]:
    """The targets of some parts, or of all."""
    targets = Targets(folder)
    for name, add in PARTS.items():
        if not parts or name in parts:
            add(targets)
    return targets.found


def add_graphs(targets: Targets) -> None:
    """Graphs, tables, databases, folders of pairs."""
    pair, graph, place, add = targets.pair, targets.graph, targets.place, targets.add
    for file in GRAPHS:
        own = place(f"graph {file}")
        if file.endswith((".nt", ".ttl", ".rdf", ".nq", ".rlea")):
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
    own = place("disjoint x.ttl")
    (own / "x.ttl").write_text("@prefix : <http://x/> . :A <http://www.w3.org/2002/07/owl#disjointWith> :B .\n")
    add("disjoint x.ttl", own, "x.ttl", lambda path: read_apart(None, path, [graph]))
    text = b"".join(f'<http://a/{n}> <http://r> "value {n}" .\n'.encode() for n in range(30))
    packed = {"x.nt.gz": gzip.compress(text, mtime=0), "x.nt.zst": zstandard.compress(text)}
    for file, content in packed.items():
        own = place(f"graph {file}")
        (own / file).write_bytes(content)
        add(f"graph {file}", own, file, read_graph)
    for layout, files in {
        "openea": ("rel_triples_1", "attr_triples_2", "ent_links", "721_5fold/1/train_links"),
        "nt": ("seeds.tsv", "source.nt"),
        "tsv": ("source/triples.tsv", "target/literals.tsv", "source/names.tsv"),
    }.items():
        own = place(f"pair {layout}")
        write_pair(own, pair, layout)
        for file in files:
            if (own / file).exists():
                add(f"pair {layout} {file}", own, file, lambda path, file=file: read_pair(root_of(path, file)))
    own = place("rows x.sqlite")
    with sqlite3.connect(own / "x.sqlite") as base:
        base.execute("CREATE TABLE people (id INTEGER, name TEXT)")
        base.execute("INSERT INTO people VALUES (1, 'Ada'), (2, 'Alan')")
    base.close()
    add("rows x.sqlite", own, "x.sqlite", read_graph)


def add_runs(targets: Targets) -> None:
    """All that a run leaves, files of links among them, and what people have answered."""
    pair, place, add = targets.pair, targets.place, targets.add
    run = place("run")
    result = rlea.align(pair, matcher="fused", keep="all")
    rlea.write(run / "out", result, formats=tuple(LINK_FILES))
    with VerdictStore.of_run(run / "out") as store:
        for number, answer in enumerate(("accept", "reject", "skip", "other")):
            ends = pair.source.entities[number], pair.target.entities[number]
            instead = pair.target.entities[-1] if answer == "other" else ""
            store.answer(*ends, answer, reviewer="Ada", key=str(number), instead=instead)
        store.undo(reviewer="Ada", key="undo")
        store.answer(*ends, "reject", reviewer="Alan", key="9")
    # With the hashes of its files every mutation would be found by these alone.
    record = json.loads((run / "out" / "run.json").read_text())
    (run / "out" / "run.json").write_text(json.dumps({**record, "files": {}}))
    for file in LINK_FILES.values():
        add(f"links {file}", run / "out", file, read_link_rows)
    files = ("run.json", "links.tsv", "doubtful.tsv", "decisions.safetensors", "gold_ranks.safetensors")
    for file in (*files, "relations.tsv", "attributes.tsv", "classes.tsv"):
        if (run / "out" / file).exists():
            add(f"run {file}", run / "out", file, lambda path: use_run(path.parent, pair))
    add("run verdicts.sqlite", run / "out", "verdicts.sqlite", lambda path: use_verdicts(path.parent, pair))
    options = {name.rstrip("_"): kind for name, kind in get_type_hints(align).items()}
    add("run.toml", run / "out", "run.toml", lambda path: read_config(path, options))


def add_vectors(targets: Targets) -> None:
    """Vectors in every format."""
    graph, place, add = targets.graph, targets.place, targets.add
    small = GraphPair("small", graph, graph, Links.empty(), Links.empty(), Links.empty())
    table = np.arange(2 * graph.num_entities, dtype=np.float32).reshape(-1, 2) + 1
    own = place("vectors x.safetensors")
    write_embeddings(own / "x.safetensors", rlea.Embeddings(table, table.copy()), graph, graph)
    names = "\n".join(graph.entities) + "\n"
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

    one = place("vectors of PyKEEN")
    save_pykeen(one, list(graph.entities))
    for file in ("trained_model.pkl", "training_triples/entity_to_id.tsv.gz"):
        add(
            f"vectors {file.rpartition('/')[2]}",
            one,
            file,
            lambda path, file=file: read_embeddings(root_of(path, file), small.source, small.target),
        )


def add_learned(targets: Targets) -> None:
    """Agents, which decide about a pair, and checkpoints, from which a training goes on."""
    pair, place, add = targets.pair, targets.place, targets.add
    own = place("agent")
    learned = generate(SyntheticSettings(40, seeds=0.5, valid=0.0, seed=2))
    rlea.Aligner(channels=("names",)).fit(learned).save(own / "x.safetensors")
    add("agent", own, "x.safetensors", lambda path: rlea.Aligner.load(path).match(learned))
    add("agent for another", own, "x.safetensors", lambda path: rlea.align(pair, matcher="rlea", agent=str(path)))
    own = place("agent of the paper")
    vectors = rlea.embed_entities(pair, "names")
    paper = paper_agent(3).fit(pair, vectors, checkpoint=own / "x.checkpoint")
    paper.save(own / "x.safetensors")
    add("agent of the paper", own, "x.safetensors", lambda path: rlea.align(pair, matcher="rlea", agent=str(path)))
    add("checkpoint paper", own, "x.checkpoint", lambda path: paper_agent(4).fit(pair, vectors, checkpoint=path))
    own = place("checkpoint")
    save_checkpoint(own / "x.checkpoint", {"x": np.ones(3)}, {"run": {"seed": 1}, "epoch": 2})
    add("checkpoint", own, "x.checkpoint", lambda path: load_checkpoint(path, {"seed": 1}))
    for model in TRAINED:
        own = place(f"checkpoint {model}")
        embed_entities(pair, model, checkpoint=own / "x.checkpoint", epochs=EPOCHS, device="cpu")
        add(f"checkpoint {model}", own, "x.checkpoint", lambda path, model=model: resume(path, pair, model))


def root_of(path: Path, file: str) -> Path:
    """The folder that `file` stands in, with the folders of its own name."""
    return path.parents[file.count("/")]


def paper_agent(episodes: int) -> Agent:
    """The paper's agent, to be trained for a few episodes."""
    settings = PRESETS["paper"]
    return Agent(replace(settings, train=replace(settings.train, episodes=episodes)))


def use_run(folder: Path, pair: GraphPair) -> Any:
    """All that is made of the folder of a run."""
    run = Run.open(folder, pair=pair)
    told = [run.explain(pair.source.entities[number]) for number in (0, -1)]
    commands.write_report(folder, folder / "page.html", pair=pair)
    commands.merge_run(folder, folder / "whole.csv", pair=pair)
    return told


def use_verdicts(folder: Path, pair: GraphPair) -> Any:
    """All that is made of the verdicts of a run."""
    with_verdicts(pair, [folder])
    told = verdicts_of_run(folder, folder / "said.sssom.tsv")
    review = Review.open(folder, pair=pair)
    try:
        shown = review.next(Filters(), reviewer="Grace", holder="h")
        if shown is not None:
            review.card(*shown, reviewer="Grace", is_blind=False)
            ends = pair.source.entities[shown[0]], pair.target.entities[shown[1]]
            review.answer(*ends, "accept", reviewer="Grace", key="new")
        review.state(Filters(), "Ada")
    finally:
        review.store.close()
    return told


def resume(path: Path, pair: GraphPair, model: str) -> Any:
    """Go on with a training from its checkpoint."""
    return embed_entities(pair, model, checkpoint=path, epochs=EPOCHS + 1, device="cpu")


def add_answers(targets: Targets) -> None:
    """Answers of a SPARQL endpoint, and a query in a file."""
    place, add = targets.place, targets.add
    terms = [
        {"type": "uri", "value": "http://a"},
        {"type": "literal", "value": 'x "y"\n', "xml:lang": "en"},
        {"type": "literal", "value": "1", "datatype": "http://www.w3.org/2001/XMLSchema#integer"},
        {"type": "bnode", "value": "b0"},
    ]
    rows = [{"s": terms[0], "p": {"type": "uri", "value": "http://p"}, "o": term} for term in terms]
    answer = {"head": {"vars": ["s", "p", "o"]}, "results": {"bindings": rows}}
    count = {"results": {"bindings": [{"number_of_rows": {"type": "literal", "value": "4"}}]}}
    query = 'PREFIX x: <http://x/> CONSTRUCT { ?s x:p ?o } WHERE { ?s ?p ?o . FILTER(?o != "}") } # all\n'
    own = place("sparql")
    (own / "rows.json").write_text(json.dumps(answer))
    (own / "count.json").write_text(json.dumps(count))
    (own / "query.rq").write_text(query)
    add("sparql query.rq", own, "query.rq", parse_query)
    for file in ("rows.json", "count.json"):
        add(f"sparql {file}", own, file, lambda path: read_answers(path.parent, None))
    add("sparql rows of a query", own, "rows.json", lambda path: read_answers(path.parent, path.with_name("query.rq")))


def read_answers(folder: Path, query: Path | None) -> Any:
    """The graph of an endpoint that counts, sends one page, and then none."""
    asked: list[int] = []

    def ask(request: Any, take: Callable[[Any], bytes], **more: Any) -> bytes:
        asked.append(1)
        files = {1: folder / "count.json", 2: folder / "rows.json"}
        content = files[len(asked)].read_bytes() if len(asked) in files else b'{"results": {"bindings": []}}'
        try:
            return take(Answer(content))
        except Incomplete as error:  # after some tries
            raise rlea.InputError(f"cannot be read ({error})") from error

    with patch("rlea.io.readers.sparql.ask", ask), patch.dict(os.environ, XDG_CACHE_HOME=str(folder / "cache")):
        return read_endpoint("sparql+http://localhost/", query)


PARTS: dict[str, Callable[[Targets], None]] = {
    "graphs": add_graphs,
    "runs": add_runs,
    "vectors": add_vectors,
    "learned": add_learned,
    "answers": add_answers,
}


class Answer:
    """What a server sends."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.headers: dict[str, str] = {}

    def read(self) -> bytes:
        return self.content


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
