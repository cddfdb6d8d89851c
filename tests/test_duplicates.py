"""Planted duplicates are found; where there are none, (nearly) none are."""

import json
from collections import Counter
from itertools import combinations

import numpy as np
import polars as pl
import pytest

import rlea
from rlea.agent.duplicates import share_of, to_confidences
from rlea.evidence.fields import alike, compare_fields, find_equal, read_fields
from rlea.experiments.planted import plant_duplicates
from rlea.graph import LITERAL_COLUMNS, KnowledgeGraph

FIRST = ("Ada", "Alan", "Grace", "Edsger", "Barbara", "Donald", "Frances", "John", "Radia", "Tim")
LAST = ("Lovelace", "Turing", "Hopper", "Dijkstra", "Liskov", "Knuth", "Allen", "Backus", "Perlman", "Berners")
TOWNS = ("London", "Paris", "Oslo", "Rome", "Vienna")


PLACES = rlea.read_demo().source


def people(count=100):
    """A table of people: name, street, town, number."""
    rows = []
    for k in range(count):
        name = f"{FIRST[k % 10]} {LAST[(k // 10 + k) % 10]}"
        values = {
            "name": name,
            "street": f"{LAST[(3 * k + 1) % 10]} road {k}",
            "town": TOWNS[k % 5],
            "phone": f"555{k * 7919 % 99991:05d}",
        }
        rows += [(f"p{k:03d}", attribute, value, "", "") for attribute, value in values.items()]
    nothing = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
    literals = pl.DataFrame(rows, schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row")
    return KnowledgeGraph.build(nothing, literals, names={row[0]: row[2] for row in rows if row[1] == "name"})


def pairs_of(graph, clusters):
    ids = graph.entity_index
    return {tuple(sorted((ids[one], ids[other]))) for own in clusters for one, other in combinations(own, 2)}


def f1(found, known):
    return 2 * len(found & known) / (len(found) + len(known))


@pytest.mark.parametrize("graph", [people(), PLACES.some(np.arange(0, PLACES.num_entities, 3))], ids=["table", "demo"])
def test_planted_duplicates_are_found(graph):
    planted, clusters = plant_duplicates(graph, 0.3, seed=1)
    assert {len(own) for own in clusters} == {2, 3, 4, 5}
    found = rlea.dedupe(planted)
    assert f1(set(found.confidences), pairs_of(planted, clusters)) >= 0.95


@pytest.mark.parametrize("graph", [people(), PLACES.some(np.arange(0, PLACES.num_entities, 3))], ids=["table", "demo"])
def test_where_there_are_none_nearly_none_are_found(graph):
    assert len(rlea.dedupe(graph)) <= 0.01 * graph.num_entities


def test_planting_is_the_same_for_the_same_seed():
    one, other, another = (plant_duplicates(people(), 0.3, seed=seed)[0] for seed in (1, 1, 2))
    assert one.fingerprint == other.fingerprint != another.fingerprint


def test_pairs_that_are_known_to_differ_stay_apart(tmp_path):
    planted, _clusters = plant_duplicates(people(), 0.2, seed=1)
    found = rlea.dedupe(planted)
    one, other = next(iter(found.confidences))
    path = tmp_path / "different.tsv"
    path.write_text(f"{planted.entities[one]}\t{planted.entities[other]}\n")
    apart = rlea.dedupe(planted, different=path)
    assert (one, other) in found.confidences
    assert (one, other) not in apart.confidences


def test_neighbours_tell_namesakes_apart():
    names = [("a1", "Springfield"), ("a2", "Springfield"), ("b", "Springfield"), ("x", "Lake Wobegon"), ("y", "Oz")]
    edges = [(one, "lies on", "x") for one in ("a1", "a2")] + [("b", "lies on", "y")]
    graph = rlea.read({"triples": edges, "names": names}, [("u", "v", "w")]).source
    fields, ids = read_fields(graph), graph.entity_index
    import numpy as np

    pairs = np.array([ids["a1"], ids["a1"]], np.int32), np.array([ids["a2"], ids["b"]], np.int32)
    support, conflict = compare_fields(*pairs, *fields)
    assert support[0] > support[1]
    assert (conflict == 0).all()


@pytest.mark.parametrize(
    ("one", "other"), [("Lovelace", "Lovelcae"), ("Lovelace", "Lovlace"), ("Lovelace", "Lovelaces")]
)
def test_a_typo_leaves_most_of_a_likeness(one, other):
    import numpy as np

    letters = [np.array([ord(letter) for letter in text], np.uint32) for text in (one, other, "Hopper")]
    assert 0.7 < alike(letters[0], letters[1]) < 1 == alike(letters[0], letters[0])
    assert alike(letters[0], letters[2]) == 0


def test_the_command_writes_clusters_and_pairs(run_cli, tmp_path):
    lines = [("a", "Ada Lovelace"), ("b", "Ada Lovelcae"), ("c", "Alan Turing"), ("d", "Grace\tHopper"), ("e", "Ada")]
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "triples.tsv").write_text("c\tknows\td\nc\tknows\te\n")
    names = "".join(f"{one}\t{name.replace(chr(9), ' ')}\n" for one, name in lines)
    (tmp_path / "g" / "names.tsv").write_text(names)
    done = run_cli("dedupe", tmp_path / "g", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["clusters"] == 1
    rows = [line.split("\t") for line in (tmp_path / "out" / "clusters.tsv").read_text().splitlines()]
    assert rows[0] == ["cluster", "entity", "label", "confidence"]
    assert [row[:2] for row in rows[1:]] == [["1", "a"], ["1", "b"]]
    pairs = (tmp_path / "out" / "pairs.tsv").read_text().splitlines()
    assert pairs[1].split("\t")[:2] == ["a", "b"]
    assert json.loads((tmp_path / "out" / "run.json").read_text())["result"]["pairs"] == 1
    assert "Ada Lovelcae" in run_cli("dedupe", tmp_path / "g", "--quiet").out
    done = run_cli("merge", tmp_path / "out")
    assert done.code == 2
    assert "has clusters of one graph or of several, in clusters.tsv, and no links" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--threshold", "0"), "--threshold"),
        (("--different", "{folder}/wrong.tsv"), "nobody"),
    ],
)
def test_bad_input_is_one_sentence(run_cli, tmp_path, options, words):
    (tmp_path / "g.tsv").write_text("a\tknows\tb\n")
    (tmp_path / "wrong.tsv").write_text("a\tnobody\n")
    options = [text.format(folder=tmp_path) for text in options]
    done = run_cli("dedupe", tmp_path / "g.tsv", "--output", tmp_path / "out", *options)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "out").exists()


def write_table(path, rows):
    """A table of people without identifiers: equal rows are equal in all fields."""
    lines = ["number,name,street,town,phone", *(f"{number},{row}" for number, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


def row_of(k):
    name, street = f"{FIRST[k % 10]} {LAST[(k // 10 + k) % 10]}", f"{LAST[(3 * k + 1) % 10]} road {k}"
    return f"{name},{street},{TOWNS[k % 5]},555{k * 7919 % 99991:05d}"


@pytest.mark.parametrize("count", [2, 6, 15, 40, 300])
def test_equal_rows_are_one_cluster_however_many(tmp_path, count):
    rows = [row_of(k) for k in range(60)] + [row_of(7)] * (count - 1)
    path = write_table(tmp_path / "people.csv", rows)
    found = rlea.dedupe(path, id_column="number")
    assert [len(cluster.members) for cluster in found.clusters] == [count]
    assert {entity for _, entity, *_ in found.cluster_rows()} == {"7", *map(str, range(60, 60 + count - 1))}
    assert min(found.confidences.values()) > 0.9


def test_a_typo_joins_a_large_cluster(tmp_path):
    slips = [row_of(7).replace("road", "raod"), row_of(7).replace("55555433", "55555443")]
    rows = [row_of(k) for k in range(60)] + [row_of(7)] * 29 + slips
    found = rlea.dedupe(write_table(tmp_path / "people.csv", rows), id_column="number")
    assert [len(cluster.members) for cluster in found.clusters] == [32]


def test_equal_rows_of_which_nearly_nothing_is_known_are_no_cluster(tmp_path):
    lines = [f"{k},{TOWNS[k % 5]},{('f', 'm')[k // 5 % 2]}" for k in range(200)]
    path = tmp_path / "people.csv"
    path.write_text("number,town,gender\n" + "\n".join(lines) + "\n")
    assert len(rlea.dedupe(path, id_column="number", name_column="town")) == 0


def test_of_a_large_cluster_the_pairs_of_the_first_are_listed(run_cli, tmp_path):
    rows = [row_of(k) for k in range(20)] + [row_of(3)] * 3000 + [row_of(4)] * 2
    path = write_table(tmp_path / "people.csv", rows)
    done = run_cli("dedupe", path, "--id", "number", "--output", tmp_path / "out", "--quiet")
    assert done.code == 0, done.err
    assert "and 2,995 more" in done.out
    clusters = (tmp_path / "out" / "clusters.tsv").read_text().splitlines()
    assert len(clusters) == 1 + 3001 + 3
    pairs = [line.split("\t") for line in (tmp_path / "out" / "pairs.tsv").read_text().splitlines()[1:]]
    assert len(pairs) == 3000 + 3
    assert sorted(Counter(row[0] for row in pairs).values()) == [1, 2, 3000]
    result = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert (result["clusters"], result["duplicates"], result["pairs"]) == (2, 3002, 3003)


def test_equal_rows_that_are_known_to_differ_stay_apart(tmp_path):
    rows = [row_of(k) for k in range(30)] + [row_of(7)] * 9
    path = write_table(tmp_path / "people.csv", rows)
    found = rlea.dedupe(path, id_column="number", different=[("7", "30")])
    together = [{found.graph.entities[one] for one in cluster.members} for cluster in found.clusters]
    assert not any({"7", "30"} <= own for own in together)
    assert max(map(len, together)) >= 9


def test_a_table_with_equal_rows_and_one_without_any(tmp_path):
    plain = [row_of(k) for k in range(80)]
    assert len(rlea.dedupe(write_table(tmp_path / "plain.csv", plain), id_column="number")) == 0
    found = rlea.dedupe(write_table(tmp_path / "equal.csv", plain + [row_of(7)] * 16 + [row_of(9)]), id_column="number")
    assert sorted(len(cluster.members) for cluster in found.clusters) == [2, 17]


def test_another_usual_value_is_no_slip():
    """Namesakes of different kinds are two things; a misspelt kind is a slip."""
    rows, names = [], {}
    for k in range(40):
        for kind in ("language", "script"):
            key = f"{kind}{k:02d}"
            names[key] = f"{FIRST[k % 10]} {LAST[k // 10]}" if k < 12 or kind == "language" else f"{LAST[k % 10]} {k}"
            rows.append((key, "kind", kind))
    rows.append(("copy", "kind", "langauge"))
    names["copy"] = names["language30"]
    found = rlea.dedupe({"triples": [], "literals": rows, "names": list(names.items())})
    assert [entity for _, entity, *_ in found.cluster_rows()] == ["copy", "language30"]


def test_exchanged_fields_are_found():
    rows, names = [], {}
    for k in range(60):
        names[f"p{k:02d}"] = f"{FIRST[k % 10]} {LAST[k // 10]}"
        rows.append((f"p{k:02d}", "kind", ("language", "script", "place")[k % 3]))
    rows.append(("copy", "kind", names["p31"]))
    names["copy"] = "script"
    found = rlea.dedupe({"triples": [], "literals": rows, "names": list(names.items())})
    assert [entity for _, entity, *_ in found.cluster_rows()] == ["copy", "p31"]


@pytest.mark.parametrize("num_pairs", [0, 20, 500])
def test_how_many_duplicates_there_are_is_learned(num_pairs):
    import numpy as np

    namesakes = np.full(100, 0.7)  # two to one for a pair, 67 of them, if every second entity were a duplicate
    share = share_of(np.concatenate([namesakes, np.full(num_pairs, 8.0)]), 1000)
    assert (to_confidences(namesakes + share).sum() < 20) == (num_pairs < 500)
    assert share == 0 if num_pairs == 500 else share < -2


def test_equal_entities_with_other_neighbours_are_not_equal():
    names = [(f"s{k}", "Springfield") for k in range(12)] + [(f"c{k}", f"county {k}") for k in range(12)]
    edges = [(f"s{k}", "in", f"c{k}") for k in range(12)]
    graph = rlea.read({"triples": edges, "names": names}, [("u", "v", "w")]).source
    assert find_equal(graph) == []
