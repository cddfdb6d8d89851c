"""Degenerate graphs beside an ordinary one of as many triples: seconds and peak memory of `rlea align`.

    python benchmarks/degenerate.py --json results/degenerate.json

Each kind is two N-Triples files with the same planted alignment and the same number of triples, literals among them,
aligned by the command line in a process of its own, from reading to the report. An ordinary graph has half of its
triples between entities, a quarter are names, a quarter numbers; its entities have eight neighbours. Seconds are those
of the processor, all threads together: a busy machine makes a run longer, not these. The aim is a cost of at most three
times that of the ordinary graph.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from measuring import keep_rows, parser_of

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
LONG = 5_000_000  # characters of a literal
MANY = 10_000  # relations
NOISE = 0.1  # share of the triples of each side that the other does not have
SEED = 7


class Graph:
    """What a kind may change: entities by number, triples between them, values with their attributes."""

    def __init__(self, triples: int, chance: Random) -> None:
        self.chance = chance
        self.count = max(triples // 8, 8)
        self.edges = [self.edge(number) for number in range(triples // 2)]
        self.names = [self.name() for _ in range(self.count)]
        self.values = [
            (chance.randrange(self.count), "amount", str(chance.randrange(10**6))) for _ in range(triples // 4)
        ]
        self.spare = triples // 4 - self.count  # names that an ordinary graph has beside the first

    def edge(self, number: int) -> tuple[int, str, int]:
        ends = number % self.count, self.chance.randrange(self.count)
        return ends[0], f"r{self.chance.randrange(20)}", ends[1]

    def name(self) -> str:
        return " ".join("".join(self.chance.choices(SYLLABLES, k=3)).capitalize() for _ in range(2))


def hub(graph: Graph) -> None:
    """All triples have one and the same entity at one end."""
    graph.edges = [
        (0, f"r{number // graph.count}", number % graph.count) if number % 2 else (number % graph.count, "r", 0)
        for number in range(len(graph.edges))
    ]


def one_name(graph: Graph) -> None:
    """All entities have the same name."""
    graph.names = ["Springfield"] * graph.count


def no_names(graph: Graph) -> None:
    """No entity has a name; numbers stand for them."""
    graph.values += [(number, "code", str(graph.chance.randrange(10**9))) for number in range(graph.count)]
    graph.names = []


def one_value(graph: Graph) -> None:
    """All values are equal."""
    graph.values = [(entity, attribute, "1") for entity, attribute, _ in graph.values]


def years(graph: Graph) -> None:
    """All values are years of one century."""
    graph.values = [
        (entity, attribute, str(graph.chance.randrange(1900, 2000))) for entity, attribute, _ in graph.values
    ]


def no_edges(graph: Graph) -> None:
    """No triples between entities; values in their place."""
    graph.values += [
        (entity, f"a{number % 20}", str(graph.chance.randrange(10**6)))
        for number, (entity, _, _) in enumerate(graph.edges)
    ]
    graph.edges = []


def many_relations(graph: Graph) -> None:
    """Ten thousand relations."""
    graph.edges = [(head, f"r{number % MANY}", tail) for number, (head, _, tail) in enumerate(graph.edges)]


def long_values(graph: Graph) -> None:
    """Four values of five million characters."""
    for number in range(4):
        text = " ".join(graph.name() for _ in range(1000))
        graph.values[number] = (number, "text", (text + " ") * (LONG // (len(text) + 1)))


def self_loops(graph: Graph) -> None:
    """Half of the triples lead from an entity to itself."""
    graph.edges = [
        (head, relation, head if number % 2 else tail) for number, (head, relation, tail) in enumerate(graph.edges)
    ]


KINDS: dict[str, Any] = {
    "ordinary": lambda graph: None,
    "a hub": hub,
    "one name for all": one_name,
    "no names": no_names,
    "one value for all": one_value,
    "years": years,
    "no edges": no_edges,
    "10,000 relations": many_relations,
    "values of 5 MB": long_values,
    "self-loops": self_loops,
}


def lines(kind: str, triples: int, side: str) -> Iterator[str]:
    """One side as N-Triples; both sides of a kind are the same graph with other identifiers, less some triples."""
    graph = Graph(triples, Random(SEED))
    KINDS[kind](graph)
    own = Random(f"{SEED} {side}")
    order = list(range(graph.count))
    own.shuffle(order)

    def called(number: int) -> str:
        return f"<http://{side}/{order[number]}>"

    for head, relation, tail in graph.edges:
        if own.random() >= NOISE:
            yield f"{called(head)} <http://{side}/p/{relation}> {called(tail)} .\n"
    for number, name in enumerate(graph.names):
        yield f'{called(number)} <{LABEL}> "{name}" .\n'
    for number in range(graph.spare if graph.names else 0):
        entity = number % graph.count
        yield f'{called(entity)} <http://{side}/p/alias> "{graph.names[entity]} {number}" .\n'
    for entity, attribute, value in graph.values:
        if own.random() >= NOISE:
            yield f'{called(entity)} <http://{side}/p/{attribute}> "{value}" .\n'


def align(kind: str, triples: int, matcher: str, folder: Path) -> dict[str, Any]:
    """One kind through the command line, in a process of its own."""
    counts = []
    for side in ("source", "target"):
        with (folder / f"{side}.nt").open("w", encoding="utf-8") as file:
            counts.append(sum(1 for line in lines(kind, triples, side) if file.write(line)))
    command = [sys.executable, "-m", "rlea", "align", str(folder / "source.nt"), str(folder / "target.nt")]
    command += ["--matcher", matcher, "--output", str(folder / "out"), "--quiet", "--json"]
    start = time.perf_counter()
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    text = (folder / "said").read_text(encoding="utf-8")
    if process.returncode:
        raise SystemExit(f"{kind}: {text}")
    links = [line.split("\t")[:2] for line in (folder / "out" / "links.tsv").read_text().splitlines()[1:]]
    known = planted(triples)
    right = sum(known.get(source) == target for source, target in links)
    return {
        "kind": kind,
        "triples": counts[0],
        "seconds": seconds,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_memory_mb": used.ru_maxrss / 1024,
        "links": len(links),
        "right": right,
    }


def planted(triples: int) -> dict[str, str]:
    """The planted alignment: source -> target."""
    orders = []
    for side in ("source", "target"):
        own = Random(f"{SEED} {side}")
        order = list(range(max(triples // 8, 8)))
        own.shuffle(order)
        orders.append([f"http://{side}/{number}" for number in order])
    return dict(zip(*orders, strict=True))


def rows(options: Any) -> Iterator[dict[str, Any]]:
    ordinary: dict[str, Any] = {}
    wanted = [kind for kind in KINDS if not options.kinds or kind in ("ordinary", *options.kinds.split(","))]
    with tempfile.TemporaryDirectory() as folder:
        align("ordinary", 800, options.matcher, Path(folder))  # compiles
    for kind in wanted:
        with tempfile.TemporaryDirectory() as folder:
            row = align(kind, options.triples, options.matcher, Path(folder))
        ordinary = ordinary or row
        row["times_seconds"] = row["cpu_seconds"] / ordinary["cpu_seconds"]
        row["times_memory"] = row["peak_memory_mb"] / ordinary["peak_memory_mb"]
        yield row


def main() -> None:
    parser = parser_of(__doc__, triples=40_000, matcher="auto", kinds="")
    options = parser.parse_args()
    command = f"degenerate.py --triples {options.triples} --matcher {options.matcher}"
    ordinary = hashlib.sha256("".join(lines("ordinary", options.triples, "source")).encode()).hexdigest()
    facts = {"triples": options.triples, "matcher": options.matcher, "fingerprints": {"ordinary": ordinary}}
    keep_rows(options.json, command, rows(options), **facts)


if __name__ == "__main__":
    main()
