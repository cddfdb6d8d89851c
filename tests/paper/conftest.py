"""A small game with a known answer, and a small pair with trained vectors."""

import numpy as np
import polars as pl
import pytest
import torch

from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.matching import Task
from rlea.paper.policy import GraphView
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def make_graph(edges, entities):
    schema = dict.fromkeys(["head", "relation", "tail"], pl.String)
    return KnowledgeGraph.build(pl.DataFrame(edges, schema=schema, orient="row"), entities=entities)


def take(links, chosen):
    return Links.of(links.source_ids[chosen], links.target_ids[chosen])


def pairs_of(links):
    return set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def right_and_wrong(found, gold):
    right = len(pairs_of(found) & pairs_of(gold))
    return right, len(found) - right


class World:
    """Two graphs without edges. In the vectors, gold pairs are marked and decoys are not.

    Every source has two targets of the same similarity: its counterpart, whose last coordinate is +1, and a decoy,
    whose last coordinate is -1. Nothing but the mark tells them apart.
    """

    def __init__(self, size=40, dim=12, seed=0):
        rng = np.random.default_rng(seed)
        names, others = [f"s{i:03}" for i in range(size)], [f"t{i:03}" for i in rng.permutation(2 * size)]
        self.source, self.target = make_graph([], names), make_graph([], others)
        base = rng.standard_normal((size, dim - 1)).astype(np.float32)
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        source, target = np.zeros((size, dim), np.float32), np.zeros((2 * size, dim), np.float32)
        source_ids = [self.source.entity_index[name] for name in names]
        target_ids = np.array([self.target.entity_index[name] for name in others])
        source[source_ids, :-1] = base
        target[target_ids, :-1] = np.concatenate([base, base])
        target[target_ids, -1] = np.repeat([1.0, -1.0], size)
        self.embeddings = Embeddings(source, target)
        self.gold = Links.of(source_ids, target_ids[:size])
        self.decoys = target_ids[size:]

    def pair(self, train=None, valid=None):
        return GraphPair("world", self.source, self.target, train or Links.empty(), valid or Links.empty())

    def candidates(self, k=4):
        return find_candidates(
            self.embeddings, np.arange(self.source.num_entities), np.arange(self.target.num_entities), k
        )

    def views(self):
        sides = (self.source, self.embeddings.source), (self.target, self.embeddings.target)
        return [GraphView(graph, vectors, torch.device("cpu")) for graph, vectors in sides]

    def task(self, k=4):
        return Task(self.source, self.target, Links.empty(), self.candidates(k))


@pytest.fixture
def world():
    return World()


@pytest.fixture(scope="session")
def vectors(tmp_path_factory):
    """A folder with a pair so noisy that not all links can be found, and its trained vectors."""
    import rlea
    from rlea.io.synthetic import SyntheticSettings, generate
    from rlea.io.writers.graphs import write_pair
    from rlea.io.writers.vectors import write_embeddings
    from rlea.models.aligne import AlignESettings, train_aligne

    place = tmp_path_factory.mktemp("agent")
    write_pair(place / "pair", generate(SyntheticSettings(num_entities=150, triples_per_entity=3.0, drop=0.3, add=0.1)))
    pair = rlea.read(place / "pair")
    trained = train_aligne(pair, AlignESettings(dim=16, max_epochs=30), device="cpu")
    write_embeddings(place / "v.safetensors", trained, pair.source, pair.target)
    return place
