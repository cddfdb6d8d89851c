"""Several targets of a source, pairs that are never linked, and clusters of three graphs."""

import json
from itertools import combinations

import pytest

import rlea
from rlea.experiments.partial import cut
from rlea.experiments.planted import make_view, split_targets
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate


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


def test_forbidden_pairs_are_never_linked(whole, tmp_path):
    pair, _ = whole
    plain = rlea.align(pair, pool="all", matcher="mutual")
    some = sorted(ends(plain.matching))[:5]
    path = tmp_path / "different.tsv"
    path.write_text("".join(f"{pair.source.entities[s]}\t{pair.target.entities[t]}\n" for s, t in some))
    apart = rlea.align(pair, pool="all", matcher="mutual", different=path)
    assert ends(apart.matching) == ends(plain.matching) - set(some)


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
