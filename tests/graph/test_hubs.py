"""Large crowds of neighbours are left out, the largest first, and nothing else is."""

from __future__ import annotations

from planted import make_graph
from rlea.graph.hubs import CROWD, prune_crowds, prune_hubs
from small_graphs import build, relations

# A crowd of 12 around "hub" by "in", one of 5 from "list" by "has", and a chain.
IN = [(f"a{i}", "in", "hub") for i in range(12)]
HAS = [("list", "has", f"b{i}") for i in range(5)]
CHAIN = [(f"a{i}", "next", f"a{i + 1}") for i in range(11)]
BY_ANOTHER = [("a3", "near", "hub"), ("list", "in", "hub2")]


def test_the_largest_crowds_go_first_whichever_end_they_stand_at():
    graph = build(IN + HAS + CHAIN + BY_ANOTHER)
    pairs = 12 * 12 + 5 * 5 + len(CHAIN) + len(BY_ANOTHER)
    n = graph.num_entities
    assert prune_hubs(graph, pairs / n) is graph
    assert relations(prune_hubs(graph, (pairs - 1) / n)) == {*HAS, *CHAIN, *BY_ANOTHER}
    assert relations(prune_hubs(graph, (pairs - 144) / n)) == {*HAS, *CHAIN, *BY_ANOTHER}
    assert relations(prune_hubs(graph, (pairs - 145) / n)) == {*CHAIN, *BY_ANOTHER}
    assert relations(prune_hubs(graph, 0.0)) == {*CHAIN, *BY_ANOTHER}  # two are no crowd


def test_entities_names_and_relations_keep_their_numbers():
    graph = build(IN + HAS + CHAIN)
    less = prune_hubs(graph, 1.0)
    assert less.num_triples < graph.num_triples
    assert (less.entities, less.relations, less.names) == (graph.entities, graph.relations, graph.names)
    assert less.literals is graph.literals


def test_graphs_of_nothing_or_little_stay():
    for graph in (build([("a", "r", "b")]), build(entities=["a"])):
        assert prune_hubs(graph) is graph


def test_crowds_go_at_any_size():
    graph = make_graph(triples=[(f"e{n:05}", "in", "hub") for n in range(CROWD + 1)] + [("e00001", "knows", "e00002")])
    assert prune_crowds(graph).num_triples == 1
    few = make_graph(triples=[(f"e{n:05}", "in", "hub") for n in range(CROWD)])
    assert prune_crowds(few) is few
    assert prune_crowds(make_graph(entities=["a"])).num_triples == 0
