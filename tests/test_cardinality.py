"""Several targets of a source, pairs that are never linked, and clusters of three graphs."""

import json
from dataclasses import replace
from itertools import combinations

import pytest

import rlea
from rlea.agent.merging import MergedPair
from rlea.evaluation.metrics import expected_calibration_error
from rlea.experiments.partial import cut
from rlea.experiments.planted import make_view, split_targets
from rlea.graph import GraphPair, Links
from rlea.io.apart import keep_apart
from rlea.io.readers.links import make_pair
from rlea.io.readers.memory import links_in_memory
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers.graphs import write_graph


def ends(links):
    return set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))


def f1(found, known):
    return 2 * len(found & known) / (len(found) + len(known))


@pytest.fixture(scope="module")
def whole():
    """A small pair without seeds, and its links."""
    made = generate(SyntheticSettings(num_entities=150, rename_relations=False, name_noise=0.05))
    gold = Links.union([made.train, made.valid, made.test])
    return cut(GraphPair("synthetic", made.source, made.target), gold, 1.0)


def test_split_targets_are_both_linked(whole):
    pair, gold = split_targets(*whole, 0.5, seed=3)
    one_to_one = rlea.align(whole[0], pool="all")
    several = rlea.align(pair, pool="all", cardinality="1:n")
    assert f1(ends(several.matching), ends(gold)) >= f1(ends(one_to_one.matching), ends(whole[1])) - 0.02
    assert len(set(several.matching.target_ids.tolist())) == len(several.matching)  # a target has one source
    assert several.info["merged"]["target"] > 0 == several.info["merged"]["source"]


def test_sources_may_be_split_too(whole):
    pair, gold = split_targets(*whole, 0.5, seed=3)
    turned = GraphPair("turned", pair.target, pair.source)
    several = rlea.align(turned, pool="all", cardinality="n:1")
    assert f1({(t, s) for s, t in ends(several.matching)}, ends(gold)) >= 0.9


def test_nothing_split_gives_no_more_links_and_a_run_can_be_written(whole, tmp_path):
    pair, _ = whole
    result = rlea.align(pair, pool="all", cardinality="n:m")
    assert len(result) <= 1.02 * len(rlea.align(pair, pool="all"))
    rlea.write(tmp_path / "out", result)
    assert len((tmp_path / "out" / "links.tsv").read_text().splitlines()) == len(result) + 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cardinality": "2:3"}, "2:3"),
        ({"cardinality": "1:n", "matcher": "mutual"}, "mutual links one-to-one"),
        ({"cardinality": "1:n", "hide": "names"}, "--hide"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(rlea.InputError, match=words):
        rlea.align(rlea.read([("a", "r", "b")], [("x", "r", "y")]), **options)


def test_deciders_are_compared_one_to_one():
    with pytest.raises(rlea.InputError, match="one-to-one"):
        list(rlea.compare(rlea.read_demo(), ["fused"], cardinality="1:n"))


def test_seeds_with_two_targets_make_them_one(whole):
    """Halves that nothing but the seeds says to be the same."""
    pair, gold = whole
    index = dict(sorted(ends(gold)))
    graph = pair.target
    halves = [(s, graph.entities[t]) for s, t in list(index.items())[:20]]
    facts = graph.literals
    extra = [(f"half{k}", "noted", f"nothing else is known of it {k}") for k in range(20)]
    rows = [
        (graph.entities[e], graph.attributes[a], value)
        for e, a, value in zip(facts.entity_ids.tolist(), facts.attribute_ids.tolist(), facts.values, strict=True)
    ]
    triples = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples.tolist()]
    names = [*zip(graph.entities, graph.names, strict=True)]
    target = {"triples": triples, "literals": rows + extra, "names": names}
    more = rlea.read(target, target).source
    seeds = [(pair.source.entities[s], t) for s, t in halves]
    seeds += [(pair.source.entities[s], f"half{k}") for k, (s, _) in enumerate(halves)]
    file = links_in_memory(seeds, "seeds")
    made = make_pair("seeded", (pair.source, more), [file, None, None], cardinality="1:n", default_pool="all")
    assert len(made.train) == 40
    merged = MergedPair.of(made, "1:n")
    for s, t in halves[:20]:
        k = halves.index((s, t))
        one, other = (merged.target.new_ids[more.entity_index[name]] for name in (t, f"half{k}"))
        assert one == other
    result = rlea.align(made, cardinality="1:n")
    seeded = {pair.source.entity_index[s] for s, _ in seeds}
    assert not seeded & {s for s, _ in ends(result.matching)}  # both of their targets are known already
    assert len(result) >= 100


def test_the_other_target_of_a_seed_is_found(whole):
    pair, gold = split_targets(*whole, 0.5, seed=3)
    by_source = {}
    for source, target in sorted(ends(gold)):
        by_source.setdefault(source, []).append(target)
    split = [(source, targets) for source, targets in by_source.items() if len(targets) == 2][:30]
    seeds = Links.of([source for source, _ in split], [targets[0] for _, targets in split])
    seeded = replace(pair, train=seeds)
    result = rlea.align(seeded, pool="all", cardinality="1:n")
    others = {(source, targets[1]) for source, targets in split}
    assert len(others & ends(result.matching)) >= 0.8 * len(others)
    assert not ends(seeds) & ends(result.matching)


def test_targets_of_two_seeds_are_not_merged():
    """Namesakes that look like duplicates: seeds say that they are two."""
    names = [(f"b{k}", f"Person number {k}") for k in range(30)] + [("twin", "Person number 3")]
    graphs = [
        {"triples": [], "names": [(f"a{k}", f"Person number {k}") for k in range(30)]},
        {"triples": [], "names": names},
    ]
    free = rlea.read(*graphs)
    assert MergedPair.of(free, "1:n").target.num_merged == 1
    seeded = rlea.read(*graphs, seeds={"a3": "b3", "a4": "twin"})
    assert MergedPair.of(seeded, "1:n").target.num_merged == 0
    # Of n:m these two sources may be one as well.
    assert MergedPair.of(seeded, "n:m").target.num_merged == 1
    different = keep_apart(rlea.read(*graphs, seeds={"a3": "b3"}), [("a3", "twin")], None)
    assert MergedPair.of(different, "1:n").target.num_merged == 0


def test_gold_with_several_targets_is_scored_as_such(whole, tmp_path, run_cli):
    pair, gold = split_targets(*whole, 0.5, seed=3)
    write_graph(tmp_path / "source", pair.source, "tsv")
    write_graph(tmp_path / "target", pair.target, "tsv")
    rows = [f"{pair.source.entities[s]}\t{pair.target.entities[t]}\n" for s, t in sorted(ends(gold))]
    (tmp_path / "gold.tsv").write_text("".join(rows))
    graphs = [tmp_path / "source", tmp_path / "target"]
    done = run_cli(
        "align",
        *graphs,
        "--gold",
        tmp_path / "gold.tsv",
        "--cardinality",
        "1:n",
        "--json",
        "--output",
        tmp_path / "out",
    )
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["correct"] == pytest.approx(told["recall"] * len(gold))  # all of gold counts
    assert told["f1"] >= 0.9
    again = run_cli("align", "--config", tmp_path / "out" / "run.toml", "--json")
    assert json.loads(again.out)["f1"] == told["f1"]
    assert run_cli("report", tmp_path / "out").code == 0


def test_links_of_a_cardinality_are_read_as_such():
    graphs = [(f"a{k}", "r", f"a{k + 1}") for k in range(3)], [(f"b{k}", "r", f"b{k + 1}") for k in range(3)]
    links = [("a0", "b0"), ("a0", "b1"), ("a1", "b1"), ("a0", "b0")]
    counts = {one: len(rlea.read(*graphs, gold=links, cardinality=one).test) for one in ("1:1", "1:n", "n:1", "n:m")}
    assert counts == {"1:1": 1 + 1, "1:n": 2, "n:1": 2, "n:m": 3}
    with pytest.raises(rlea.InputError, match="unknown cardinality"):
        rlea.read(*graphs, gold=links, cardinality="2:3")


def test_confidences_of_several_links_mean_what_they_say(whole):
    pair, gold = split_targets(*whole, 0.5, seed=3)
    result = rlea.align(pair, pool="all", cardinality="1:n")
    assert expected_calibration_error(result.matching, gold, complete=True) <= 0.1


def test_three_views_become_clusters(tmp_path):
    graph = generate(SyntheticSettings(num_entities=120)).source
    views = [make_view(graph, 0.8, view) for view in range(3)]
    result = rlea.align_several([view for view, _ in views])
    pairwise, found, known = [], set(), set()
    for one, other in combinations(range(3), 2):
        place = {thing: number for number, thing in enumerate(views[other][1].tolist())}
        gold = {(number, place[thing]) for number, thing in enumerate(views[one][1].tolist()) if thing in place}
        pairwise.append(f1(ends(result.links[one, other]), gold))
        found |= {(one, other, *pair) for pair in result.pairs_of(one, other)}
        known |= {(one, other, *pair) for pair in gold}
    assert f1(found, known) >= sum(pairwise) / 3 - 0.005
    for cluster in result.clusters:
        graphs = [result.entity(member)[0] for member in cluster.members]
        assert len(set(graphs)) == len(graphs) >= 2


def write_people(path, owner, names):
    path.mkdir()
    (path / "triples.tsv").write_text("".join(f"{owner}{k}\tknows\t{owner}{k + 1}\n" for k in range(len(names) - 1)))
    (path / "names.tsv").write_text("".join(f"{owner}{k}\t{name}\n" for k, name in enumerate(names)))


def test_the_command_takes_three_graphs(run_cli, tmp_path):
    names = [
        f"{first} {last}" for first in ("Ada", "Alan", "Grace", "Tim") for last in ("Lovelace", "Turing", "Hopper")
    ]
    paths = [tmp_path / owner for owner in "abc"]
    for path in paths:
        write_people(path, path.name, names)
    done = run_cli("align", *paths, "--threshold", "0.01", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["graphs"] == 3
    lines = (tmp_path / "out" / "clusters.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["cluster", "graph", "entity", "label", "confidence"]
    assert {line.split("\t")[1] for line in lines[1:]} <= {"a", "b", "c"}


def test_options_about_two_graphs_are_refused_for_three(run_cli, tmp_path):
    for owner in "abc":
        write_people(tmp_path / owner, owner, ["Ada", "Alan"])
    (tmp_path / "seeds.tsv").write_text("a0\tb0\n")
    done = run_cli("align", *(tmp_path / owner for owner in "abc"), "--seeds", tmp_path / "seeds.tsv")
    assert done.code == 2
    assert "--seeds is for two graphs" in done.err
