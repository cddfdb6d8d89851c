"""A small game with a known answer."""

import numpy as np
import polars as pl
import pytest

from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings


def make_graph(edges, entities):
    schema = dict.fromkeys(["head", "relation", "tail"], pl.String)
    return KnowledgeGraph.build(pl.DataFrame(edges, schema=schema, orient="row"), entities=entities)


class World:
    """Two graphs without edges. In the vectors, gold pairs are marked and look-alikes are not.

    Every source has two targets of the same similarity: its counterpart, whose last coordinate is +1, and a decoy,
    whose last coordinate is -1. Nothing but the mark tells them apart.
    """

    def __init__(self, size=40, dim=12, seed=0):
        rng = np.random.default_rng(seed)
        names = [f"s{i:03}" for i in range(size)]
        others = [f"t{i:03}" for i in rng.permutation(2 * size)]
        self.source, self.target = make_graph([], names), make_graph([], others)
        base = rng.standard_normal((size, dim - 1)).astype(np.float32)
        base /= np.linalg.norm(base, axis=1, keepdims=True)
        source = np.zeros((size, dim), np.float32)
        target = np.zeros((2 * size, dim), np.float32)
        source_ids, target_ids, decoy_ids = [], [], []
        for i in range(size):
            s, t, d = (
                self.source.entity_index[names[i]],
                self.target.entity_index[others[i]],
                self.target.entity_index[others[size + i]],
            )
            source[s, :-1] = base[i]
            target[t, :-1] = target[d, :-1] = base[i]
            target[t, -1], target[d, -1] = 1.0, -1.0
            source_ids.append(s)
            target_ids.append(t)
            decoy_ids.append(d)
        self.embeddings = Embeddings(source, target)
        self.gold = Links.of(source_ids, target_ids)
        self.decoys = np.array(decoy_ids, dtype=np.int32)

    def pair(self, train=None, valid=None):
        return GraphPair("world", self.source, self.target, train or Links.empty(), valid or Links.empty())

    def candidates(self, k=4):
        return find_candidates(
            self.embeddings, np.arange(self.source.num_entities), np.arange(self.target.num_entities), k
        )

    def task(self, k=4):
        return Task(self.source, self.target, Links.empty(), self.candidates(k))


@pytest.fixture
def world():
    return World()
