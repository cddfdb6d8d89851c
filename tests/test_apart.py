"""Pairs and classes that are never linked: they leave the game, so that their entities get other partners."""

import json
import tomllib
from itertools import pairwise

import numpy as np
import pytest

import rlea
from rlea.clusters import cluster_pairs
from rlea.graph.cannot_link import CannotLink, bits_of, class_bits

FIRST = ("Ada", "Alan", "Grace", "Edsger", "Barbara", "Donald", "Frances", "John", "Radia", "Tim")
LAST = ("Lovelace", "Turing", "Hopper", "Dijkstra", "Liskov", "Knuth")
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def people(owner, count=60):
    """Names of different people, and for each the town that few others live in."""
    names = [f"{FIRST[k % 10]} {LAST[k // 10]}" for k in range(count)]
    return {f"{owner}{k:02d}": name for k, name in enumerate(names)}


@pytest.fixture
def namesake():
    """Two graphs of the same people; b00 was misspelt, and an impostor of the second graph has its very name."""
    source, target = people("a"), people("b")
    target["b00"] = "Ada Lovelaces"
    target["bx"] = "Ada Lovelace"
    graphs = []
    for own in (source, target):
        keys = sorted(own)
        edges = [(keys[k], "knows", keys[(k + 1) % 60]) for k in range(60)]
        if "bx" in own:  # it knows whom the other knows
            edges += [("bx", "knows", "b01"), ("b59", "knows", "bx")]
        graphs.append({"triples": edges, "names": list(own.items())})
    return rlea.read(*graphs)


def linked(result, source):
    pair = result.pair
    ids = zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True)
    return [pair.target.entities[t] for s, t in ids if pair.source.entities[s] == source]


@pytest.mark.parametrize("matcher", ["fused", "rlea", "best-first", "greedy", "hungarian", "mutual", "nearest", "csls"])
def test_entities_of_a_forbidden_pair_get_their_second_best_partner(namesake, matcher):
    options = {"matcher": matcher, "keep": "all"}
    assert linked(rlea.align(namesake, **options), "a00") == ["bx"]
    apart = rlea.align(namesake, different=[("a00", "bx")], **options)
    assert linked(apart, "a00") == ["b00"]


def test_paris_takes_the_second_best_too():
    facts = [("a", "p", "1"), ("a", "q", "2"), ("a", "r", "3")]
    other = [("x", "p", "1"), ("x", "q", "2"), ("x", "r", "3"), ("y", "p", "1"), ("y", "q", "2")]
    graphs = [{"triples": [], "literals": rows} for rows in (facts, other)]
    pair = rlea.read(*graphs)
    assert linked(rlea.align(pair, matcher="paris", keep="all"), "a") == ["x"]
    assert linked(rlea.align(pair, matcher="paris", keep="all", different={"a": "x"}), "a") == ["y"]


def test_all_pairs_of_an_entity_may_be_forbidden(namesake):
    barred = [("a07", target) for target in namesake.target.entities]
    result = rlea.align(namesake, keep="all", different=barred)
    assert linked(result, "a07") == []
    assert len(result) >= 55


def test_a_match_brings_no_forbidden_pair_into_the_game():
    """A ring without names: neighbours of links are all that proposes pairs."""
    edges = [[(f"{owner}{k:02d}", "next", f"{owner}{(k + 1) % 30:02d}") for k in range(30)] for owner in "ab"]
    seeds = {f"a{k:02d}": f"b{k:02d}" for k in range(0, 30, 3)}
    pair = rlea.read(*edges, seeds=seeds)
    options = {"channels": ("structure",), "keep": "all"}
    assert linked(rlea.align(pair, **options), "a01") == ["b01"]
    apart = rlea.align(pair, different=[("a01", "b01"), ("a02", "b02")], **options)
    assert "b01" not in linked(apart, "a01")
    assert "b02" not in linked(apart, "a02")


def classes_of(owner, spare=False):
    """Places and people with the same names, such as the river and the man called Jordan."""
    rows = []
    for k in range(40):
        rows += [(f"{owner}p{k:02d}", TYPE, f"{owner}Person"), (f"{owner}p{k:02d}", "label", f"{FIRST[k % 10]} {k}")]
        if not spare or k % 2:
            rows += [(f"{owner}q{k:02d}", TYPE, f"{owner}Place"), (f"{owner}q{k:02d}", "label", f"{FIRST[k % 10]} {k}")]
    names = {entity: value for entity, name, value in rows if name == "label"}
    return {"triples": [], "literals": rows, "names": list(names.items())}


@pytest.mark.parametrize("matcher", ["fused", "greedy"])
def test_disjoint_classes_are_kept(matcher, tmp_path):
    pair = rlea.read(classes_of("a"), classes_of("b", spare=True))
    (tmp_path / "disjoint.tsv").write_text("aPerson\tbPlace\naPlace\tbPerson\n")
    result = rlea.align(pair, matcher=matcher, keep="all", disjoint=tmp_path / "disjoint.tsv")
    ends = zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True)
    kinds = [(pair.source.entities[s][1], pair.target.entities[t][1]) for s, t in ends]
    assert [kind for kind in kinds if kind[0] != kind[1]] == []
    assert kinds.count(("p", "p")) == 40  # half of them had a place of their name as a rival


def test_disjoint_classes_may_be_stated_in_rdf_or_as_columns(tmp_path):
    pair = rlea.read(classes_of("a"), classes_of("b"))
    ontology = tmp_path / "ontology.nt"
    disjoint = "http://www.w3.org/2002/07/owl#disjointWith"
    ontology.write_text(f"<aPerson> <{disjoint}> <bPlace> .\n".replace("<a", "<urn:a").replace("<b", "<urn:b"))
    assert len(rlea.align(pair, matcher="mutual", disjoint=ontology)) > 0  # classes that nobody has do no harm
    column = [("label=Ada 0", "label=Ada 0x")]
    with pytest.raises(rlea.InputError, match="no entity has the class"):
        rlea.align(pair, disjoint=column)
    result = rlea.align(pair, matcher="nearest", disjoint=[("label=Ada 0", "label=Ada 10")])
    assert len(result) == 80


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--different", "a00\tnobody\n", ("line 1", "nobody", "correct the identifier")),
        ("--different", "b00\ta00\n", ("line 1", "b00")),
        ("--disjoint", "Person\tPlace\n", ("line 1", "Person", "rdf:type")),
        ("--disjoint", "name=x\tname=x\n", ("line 1", "itself")),
    ],
)
def test_bad_input_is_refused_with_its_line(run_cli, tmp_path, option, text, words):
    for owner in "ab":
        (tmp_path / f"{owner}.tsv").write_text(f"{owner}00\tknows\t{owner}01\n")
    (tmp_path / "file.tsv").write_text(text)
    done = run_cli("align", tmp_path / "a.tsv", tmp_path / "b.tsv", option, tmp_path / "file.tsv")
    assert done.code == 2
    for word in words:
        assert word in done.err.replace("\n", " ")


def test_a_seed_cannot_be_forbidden():
    edges = [[(f"{owner}{k}", "next", f"{owner}{k + 1}") for k in range(5)] for owner in "ab"]
    pair = rlea.read(*edges, seeds={"a1": "b1"})
    with pytest.raises(rlea.InputError, match="a1 - b1 is a seed"):
        rlea.align(pair, different={"a1": "b1"})


def test_a_run_remembers_what_was_forbidden(run_cli, tmp_path):
    for owner in "ab":
        folder = tmp_path / owner
        folder.mkdir()
        own = people(owner)
        (folder / "names.tsv").write_text("".join(f"{key}\t{name}\n" for key, name in own.items()))
        keys = sorted(own)
        edges = "".join(f"{one}\tknows\t{other}\n" for one, other in pairwise(keys))
        (folder / "triples.tsv").write_text(edges)
        rows = "".join(f"{key}\tkind\t{'even' if k % 2 else 'odd'}\n" for k, key in enumerate(keys))
        (folder / "literals.tsv").write_text("entity\tattribute\tvalue\n" + rows)
    (tmp_path / "different.tsv").write_text("a00\tb00\n")
    (tmp_path / "disjoint.tsv").write_text("kind=even\tkind=odd\n")
    given = ["--different", tmp_path / "different.tsv", "--disjoint", tmp_path / "disjoint.tsv", "--matcher", "greedy"]
    first, again = tmp_path / "first", tmp_path / "again"
    done = run_cli("align", tmp_path / "a", tmp_path / "b", *given, "--output", first, "-q")
    assert done.code == 0, done.err
    options = tomllib.loads((first / "run.toml").read_text())
    assert options["different"] == str(tmp_path / "different.tsv")
    assert options["disjoint"] == str(tmp_path / "disjoint.tsv")
    assert json.loads((first / "run.json").read_text())["inputs"]["different"] == str(tmp_path / "different.tsv")
    done = run_cli("align", "--config", first / "run.toml", "--output", again, "-q")
    assert done.code == 0, done.err
    assert (again / "links.tsv").read_text() == (first / "links.tsv").read_text()
    assert "a00\tb00" not in (again / "links.tsv").read_text()
    assert run_cli("explain", first, "a05").code == 0


def test_dedupe_keeps_classes_apart_and_finds_the_other_partner():
    rows, names = [], {}
    for k, name in enumerate(people("p").values()):
        rows += [(f"p{k:02d}", TYPE, "Person"), (f"p{k:02d}", "phone", f"555-{k * 7919}")]
        names[f"p{k:02d}"] = name
    for key, kind in (("x", "Place"), ("y", "Person")):
        rows += [(key, TYPE, kind), (key, "phone", "555-0")]
        names[key] = "Ada Lovelace"
    graph = {"triples": [], "literals": rows, "names": list(names.items())}
    found = rlea.dedupe(graph, disjoint=[("Person", "Place")])
    assert [[entity for _, entity, *_ in found.cluster_rows()]] == [["p00", "y"]]
    found = rlea.dedupe(graph, different=[("p00", "y")], disjoint=[("Person", "Place")])
    assert len(found) == 0


def test_several_graphs_keep_pairs_and_classes_apart():
    graphs = [
        {"triples": [], "names": list(people(owner).items()), "literals": [(key, TYPE, kind) for key in people(owner)]}
        for owner, kind in (("a", "Human"), ("b", "Human"), ("c", "Human"))
    ]
    graphs[2]["literals"] = [(key, TYPE, "Robot" if key == "c05" else "Human") for key in people("c")]
    found = rlea.align_several(graphs, threshold=0.01, different=[("b03", "a03")], disjoint=[("Human", "Robot")])
    together = {}
    for number, _, entity, *_ in found.cluster_rows():
        together.setdefault(number, set()).add(entity)
    assert not any({"a03", "b03"} <= own for own in together.values())
    assert not any("c05" in own for own in together.values())
    assert {"a07", "b07", "c07"} in together.values()


def test_bits_tell_classes_apart_on_both_sides():
    graph = rlea.read({"triples": [("a", TYPE, "A"), ("b", TYPE, "B")]}, [("u", "v", "w")]).source
    pairs = [(f"X{k}", f"Y{k}") for k in range(40)] + [("A", "B")]  # more than one word of bits
    source, target = class_bits(graph, pairs)
    barred = CannotLink.of([], (source, target))
    a, b = graph.entity_index["a"], graph.entity_index["b"]
    ids = np.array([a, b, a, b], np.int32), np.array([b, a, a, b], np.int32)
    assert barred.allows(*ids).tolist() == [False, False, True, True]
    first, second = bits_of(graph, pairs)[a], bits_of(graph, pairs)[b]
    assert first[0] & second[1]
    assert not first[0] & first[1]


def test_merged_entities_must_not_do_what_one_of_them_must_not():
    bits = np.array([[1], [0], [2]], np.uint64), np.array([[0], [1]], np.uint64)
    barred = CannotLink.of([(2, 1)], bits)
    merged = barred.joined(np.array([0, 1, 1], np.int32), np.array([0, 1], np.int32))
    assert merged.pairs == [(1, 1)]
    ids = np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    assert merged.allows(*ids).tolist() == [True, False, True, False]


def test_clusters_keep_labels_and_opposed_bits_apart():
    sure = {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.9}
    assert [one.members for one in cluster_pairs(sure, labels={0: 7, 2: 8})] == [(0, 1)]
    assert [one.members for one in cluster_pairs(sure, opposed=[(1, 2), (0, 0), (2, 1)])] == [(0, 1)]
    assert [one.members for one in cluster_pairs(sure, labels={0: 7, 2: 7})] == [(0, 1, 2)]
