"""Three graphs and more: every two are aligned, and the links become clusters with at most one entity of each graph.

Links of different pairs may contradict each other: a - b, b - c, and a - another c. Clusters are joined by the surest
links first, by average linkage, and never get a second entity of a graph. A link between two members that a pair's own
run has not found follows from the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlea.clusters import Cluster, cluster_pairs
from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.cannot_link import bits_of
from rlea.io.apart import read_apart
from rlea.io.read import read_one, row_inputs, row_options
from rlea.io.writers.tsv import refuse_unwritable
from rlea.pipeline import align
from rlea.plain_text import cell
from rlea.progress import Progress, silent
from rlea.settings import AlignSettings

if TYPE_CHECKING:
    from rlea.matching import Matching

# Mean confidence by which clusters are joined, that of the least sure links that a run writes. A link that one run has
# not found counts as 0: two sure links and a missing one are a cluster.
LEAST = 0.2
FEWEST = 3  # graphs


@dataclass(frozen=True, eq=False, repr=False)
class SeveralResult:
    """Clusters of entities of several graphs. Members are numbered graph after graph: see `entity`.

    >>> import rlea
    >>> graphs = [{"triples": [], "names": [(f"{owner}{k}", f"name {k}") for k in range(5)]} for owner in "abc"]
    >>> found = rlea.align_several(graphs)
    >>> all(len(cluster.members) <= 3 for cluster in found.clusters)
    True
    """

    graphs: Sequence[KnowledgeGraph]
    names: Sequence[str]  # of the graphs
    clusters: list[Cluster]
    links: Mapping[tuple[int, int], Matching]  # what the runs of every two graphs found
    confidences: Mapping[tuple[int, int], float]  # of all pairs of members of a cluster
    settings: AlignSettings
    inputs: Mapping[str, str] = field(default_factory=dict)  # as those of a pair; `others` has a line for each

    def __len__(self) -> int:
        return len(self.clusters)

    def __repr__(self) -> str:
        return f"SeveralResult({len(self.graphs)} graphs: {len(self.clusters):,} clusters)"

    @property
    def starts(self) -> list[int]:
        """The number of the first entity of every graph."""
        return first_numbers(self.graphs)

    def entity(self, member: int) -> tuple[int, int]:
        """The place of its graph, and its id there."""
        place = max(k for k, start in enumerate(self.starts) if start <= member)
        return place, member - self.starts[place]

    def pairs_of(self, one: int, other: int) -> set[tuple[int, int]]:
        """The ids of entities of two graphs that are in one cluster."""
        found = set()
        for first, second in self.confidences:
            (place, source), (place_of_second, target) = self.entity(first), self.entity(second)
            if (place, place_of_second) == (one, other):
                found.add((source, target))
        return found

    def cluster_rows(self) -> list[tuple[int, str, str, str, float]]:
        """Cluster (numbered from 1), graph, entity, label, confidence of the cluster."""
        rows = []
        for number, cluster in enumerate(self.clusters, start=1):
            for member in cluster.members:
                place, entity = self.entity(member)
                graph = self.graphs[place]
                rows.append(
                    (number, self.names[place], graph.entities[entity], graph.names[entity], cluster.confidence)
                )
        return rows

    def pair_rows(self) -> list[tuple[str, str, str, str, float]]:
        """Pairs within clusters: graph and entity of both, confidence."""
        rows = []
        for ends, confidence in self.confidences.items():
            (one, source), (other, target) = (self.entity(end) for end in ends)
            told = self.graphs[one].entities[source], self.names[other], self.graphs[other].entities[target]
            rows.append((self.names[one], *told, confidence))
        return rows

    def summary(self) -> dict[str, Any]:
        """One flat object for machines."""
        rows = []
        for (one, other), matching in self.links.items():
            links = set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))
            inner = self.pairs_of(one, other)
            counts = {"links": len(links), "kept": len(links & inner), "pairs": len(inner)}
            rows.append({"graphs": [self.names[one], self.names[other]], **counts})
        return {"graphs": len(self.graphs), "clusters": len(self.clusters), "pairwise": rows}

    def write(self, folder: str | Path) -> list[Path]:
        """clusters.tsv, pairs.tsv, run.toml and run.json: all of them or none."""
        from rlea.config import config_text, input_paths
        from rlea.io.writers.clusters import write_clusters

        prints = {name: graph.fingerprint for name, graph in zip(self.names, self.graphs, strict=True)}
        members = ("cluster", "graph", "entity", "label", "confidence"), self.cluster_rows()
        pairs = ("graph", "one", "other_graph", "other", "confidence"), self.pair_rows()
        facts = {"result": self.summary(), "settings": asdict(self.settings), "inputs": dict(self.inputs)}
        facts |= {"fingerprints": prints}
        config, paths = config_text(self.settings, self.inputs), input_paths(self.inputs, self.settings)
        return write_clusters(folder, members, pairs, facts, config, paths)


def align_several(
    graphs: Sequence[Any],
    settings: AlignSettings | None = None,
    *,
    id_column: str = "",
    name_column: str = "",
    columns: str | Sequence[str] = (),
    different: Any = None,
    disjoint: Any = None,
    for_files: bool = False,
    progress: Progress = silent,
    **options: Any,
) -> SeveralResult:
    """Clusters of the entities of three graphs or more, with at most one entity of each graph.

    A graph is whatever `rlea.read` takes as one, and columns are as there. `options` are those of `rlea.align`.
    `different` are pairs of entities of any two of the graphs, `disjoint` pairs of classes, as there. With `for_files`,
    identifiers that `SeveralResult.write` could not write are refused before the work.

    >>> import rlea
    >>> names = [("a", "Ada Lovelace"), ("b", "Alan Turing"), ("c", "Grace Hopper")]
    >>> graph = {"triples": [], "names": names}
    >>> len(rlea.align_several([graph, graph, graph], threshold=0.01)) <= 3
    True
    """
    if len(graphs) < FEWEST:
        raise InputError(f"there are {len(graphs)} graphs", remedy="give three or more, or use align for two")
    settings = AlignSettings.with_options(settings, **options)
    if settings.cardinality != "1:1":
        raise InputError("--cardinality is for two graphs", remedy="leave it out, or find duplicates with rlea dedupe")
    rows = row_options(id_column, name_column, columns, len(graphs))
    read = [read_one(*one, progress) for one in zip(graphs, rows, strict=True)]
    own = [graph for graph, _ in read]
    apart = read_apart(different, disjoint, own)
    names = _names([inputs.get("graph", "") for _, inputs in read])
    if for_files:
        for name, graph in zip(names, own, strict=True):
            refuse_unwritable(graph.entities, f"the graph {name}")
    starts, links, confidences = first_numbers(own), {}, {}
    for one, other in combinations(range(len(own)), 2):
        cannot_link = apart.between(one, other, own)
        title = f"{names[one]}-{names[other]}"
        pair = GraphPair(title, own[one], own[other], default_pool="all", cannot_link=cannot_link)
        matching = links[one, other] = align(pair, settings, progress=progress).matching
        ends = zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True)
        for (source, target), confidence in zip(ends, matching.confidences.tolist(), strict=True):
            confidences[starts[one] + source, starts[other] + target] = confidence
    graph_of = [place for place, graph in enumerate(own) for _ in range(graph.num_entities)]
    barred = [(starts[k] + one, starts[m] + other) for (k, one), (m, other) in apart.pairs]
    bits = [row for graph in own for row in bits_of(graph, apart.classes)] if apart.classes else None
    clusters = cluster_pairs(confidences, least=LEAST, kinds=graph_of, forbidden=barred, opposed=bits)
    clusters.sort(key=lambda cluster: (-cluster.confidence, cluster.members))
    inner = {
        ends: confidences.get(ends, cluster.confidence)
        for cluster in clusters
        for ends in combinations(cluster.members, 2)
    }
    inputs = dict(apart.inputs) | row_inputs(id_column, name_column, columns)
    places = [path["graph"] for _, path in read if path]
    if len(places) == len(own):  # a run of some of them would be another one
        inputs |= {"source": places[0], "target": places[1], "others": "\n".join(places[2:])}
    return SeveralResult(own, names, clusters, links, inner, settings, inputs)


def refuse_pairwise(given: Mapping[str, object]) -> None:
    """Refuse options that are about the links of two graphs."""
    for option, value in given.items():
        if value is not None:
            raise InputError(f"{option} is for two graphs, and there are more", remedy="leave it out")


def first_numbers(graphs: Sequence[KnowledgeGraph]) -> list[int]:
    """The number of the first entity of every graph, where entities are numbered graph after graph."""
    starts = [0]
    for graph in graphs[:-1]:
        starts.append(starts[-1] + graph.num_entities)
    return starts


def _names(paths: Sequence[str]) -> list[str]:
    """Names of files; their place where there is none, or where two have the same."""
    stems = [cell(Path(path).name.split(".")[0]) for path in paths]
    return [
        stem if stem and stems.count(stem) == 1 else f"{stem or 'graph'}-{place}"
        for place, stem in enumerate(stems, start=1)
    ]
