from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.io.readers import read_pair
from rlea.io.synthetic import LABEL, SyntheticSettings, generate, synthetic_embeddings, write_synthetic

# Facts of either graph are those of the world, under the same relations: what differs is only what is asked for.
PLAIN = SyntheticSettings(drop=0.0, add=0.0, name_noise=0.0, rename_relations=False)


@cache
def make(settings: SyntheticSettings) -> GraphPair:
    return generate(settings)


def all_links(pair: GraphPair) -> Links:
    return Links.union([pair.train, pair.valid, pair.test])


def translated(pair: GraphPair) -> set[tuple[int, str, int]]:
    """The source's triples between linked entities, in the target's ids."""
    links = all_links(pair)
    target_of = dict(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))
    return {
        (target_of[h], pair.source.relations[r], target_of[t])
        for h, r, t in pair.source.triples.tolist()
        if h in target_of and t in target_of
    }


def told(graph: KnowledgeGraph) -> set[tuple[int, str, int]]:
    return {(h, graph.relations[r], t) for h, r, t in graph.triples.tolist()}


def distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (a != b))
    return row[-1]


# ---- planted truth --------------------------------------------------------------------------------------------------


def test_without_noise_the_links_turn_one_graph_into_the_other():
    pair = make(PLAIN)
    links = all_links(pair)
    assert translated(pair) == told(pair.target)
    assert len(told(pair.target)) == 5000
    names = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    assert all(pair.source.names[s] == pair.target.names[t] for s, t in names)
    for side in (links.source_ids, links.target_ids):
        np.testing.assert_array_equal(np.sort(side), np.arange(1000))
    assert all(len(name.split(" ")) == 2 and name.istitle() and 5 <= len(name) <= 40 for name in pair.source.names)
    assert len(set(pair.source.names)) >= 990


def test_renamed_relations_are_the_same_facts():
    pair = make(replace(PLAIN, rename_relations=True, split_relations=0.0, merge_relations=0.0))
    # Only names that the links themselves explain: every source relation becomes one of the target's, and no other.
    renaming: dict[str, set[str]] = {}
    by_ends: dict[tuple[int, int], set[str]] = {}
    for head, relation, tail in told(pair.target):
        by_ends.setdefault((head, tail), set()).add(relation)
    for head, relation, tail in translated(pair):
        renaming[relation] = renaming.get(relation, by_ends[head, tail]) & by_ends[head, tail]
    assert all(len(called) == 1 for called in renaming.values())
    assert len({name for called in renaming.values() for name in called}) == len(renaming) == 50
    assert not set(pair.source.relations) & set(pair.target.relations)
    assert set(pair.source.attributes) & set(pair.target.attributes) == {LABEL}
    # The numbers in the names are drawn, or R07 would give away R07.
    same = sum(source.rsplit("/")[-1] == next(iter(called)).rsplit("/")[-1] for source, called in renaming.items())
    assert same < 10


def test_split_and_merged_relations_change_their_number_and_nothing_else():
    def number(**shares: float) -> int:
        return make(replace(PLAIN, rename_relations=True, **shares)).target.num_relations

    assert number(split_relations=0.0, merge_relations=0.0) == 50
    assert number(split_relations=0.2, merge_relations=0.0) == 60
    assert number(split_relations=0.0, merge_relations=0.2) == 45
    pair = make(replace(PLAIN, rename_relations=True, split_relations=0.3, merge_relations=0.3))
    assert {(h, t) for h, _, t in translated(pair)} == {(h, t) for h, _, t in told(pair.target)}


# ---- settings do what they say --------------------------------------------------------------------------------------


@pytest.mark.parametrize("drop", [0.0, 0.3])
@pytest.mark.parametrize("add", [0.0, 0.2])
def test_dropped_and_added_triples_are_as_many_as_asked_for(drop, add):
    facts = translated(make(PLAIN))  # the same world, complete, in the target's ids
    pair = make(replace(PLAIN, drop=drop, add=add))
    source, target = translated(pair), told(pair.target)
    for shown in (source, target):
        assert len(shown - facts) == round(add * 5000)
        assert len(facts - shown) == round(drop * 5000)
    # Dropped on their own, and added on their own.
    assert len(facts - source - target) / 5000 == pytest.approx(drop**2, abs=0.02)
    assert len((source - facts) & (target - facts)) <= 2
    kept = (1 - drop) * (len(make(PLAIN).source.literals) - 1000)  # of the values; labels are never dropped
    assert len(pair.source.literals) == len(pair.target.literals) == pytest.approx(1000 + kept, abs=1)


@pytest.mark.parametrize("dangling", [0.25, 1.0])
def test_dangling_entities_have_facts_but_no_counterpart(dangling):
    pair = make(replace(PLAIN, dangling=dangling))
    num_shared = 1000 - round(1000 * dangling)
    links = all_links(pair)
    assert len(links) == num_shared
    assert pair.source.num_entities == pair.target.num_entities == 1000
    for graph, linked in ((pair.source, links.source_ids), (pair.target, links.target_ids)):
        assert graph.num_triples == 5000
        alone = np.setdiff1d(np.arange(1000), linked)
        assert np.isin(alone, graph.triples[:, [0, 2]]).mean() > 0.99
        if num_shared:
            # Neighbours do not tell who is dangling: their facts lead to the shared ones, too.
            about = np.isin(graph.triples[:, 0], alone)
            assert np.isin(graph.triples[about, 2], linked).mean() > 0.4
    assert translated(pair) == {row for row in told(pair.target) if {row[0], row[2]} <= set(links.target_ids.tolist())}


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.4])
def test_names_differ_by_the_share_asked_for(noise):
    pair = make(replace(PLAIN, name_noise=noise))
    links = all_links(pair)
    edits = letters = 0
    for s, t in zip(links.source_ids[:300].tolist(), links.target_ids[:300].tolist(), strict=True):
        first, second = pair.source.names[s], pair.target.names[t]
        assert [word[0] for word in first.split(" ")] == [word[0] for word in second.split(" ")]
        edits += distance(first, second)
        letters += sum(map(str.islower, first))
    assert edits / letters == pytest.approx(noise, rel=0.15)  # two edits side by side may count as one
    assert translated(pair) == told(pair.target)


def test_some_names_are_spelt_by_other_rules_and_some_with_the_words_swapped():
    plain, respelt = make(PLAIN), make(replace(PLAIN, respell=0.3))
    assert respelt.source.names == plain.source.names
    links = all_links(plain)
    assert respelt.target.triples.tolist() == plain.target.triples.tolist()
    before = [plain.source.names[number] for number in links.source_ids]
    after = [respelt.target.names[number] for number in links.target_ids]
    swapped = [", " in name for name in after]
    assert np.mean(swapped) == pytest.approx(0.15, abs=0.05)
    changed = [new != old for new, old in zip(after, before, strict=True)]
    assert 0.2 < np.mean(changed) < 0.36  # a few have no letter that the rules change
    assert all(changed[place] for place, is_swapped in enumerate(swapped) if is_swapped)
    # Rules, not chance: a word is always respelt the same way.
    words: dict[str, set[str]] = {}
    for old, new, is_changed in zip(before, after, changed, strict=True):
        if is_changed:
            parts = reversed(new.split(", ")) if ", " in new else new.split(" ")
            for word, other in zip(old.split(" "), parts, strict=True):
                words.setdefault(word, set()).add(other)
    assert all(len(others) == 1 for others in words.values())
    assert max(len(word) for word in words) > 4


def test_some_entities_have_no_name():
    pair = make(replace(PLAIN, nameless=0.2))
    for graph, whole in ((pair.source, make(PLAIN).source), (pair.target, make(PLAIN).target)):
        named = [name == other for name, other in zip(graph.names, whole.names, strict=True)]
        assert np.mean(named) == pytest.approx(0.8, abs=0.05)
        codes = [name for name, is_named in zip(graph.names, named, strict=True) if not is_named]
        assert all(code.startswith("E") and code[1:].isdigit() for code in codes)
    links = all_links(pair)
    missing = [
        np.array([name.startswith("E0") or name[1:].isdigit() for name in graph.names])
        for graph in (pair.source, pair.target)
    ]
    both = (missing[0][links.source_ids] & missing[1][links.target_ids]).mean()
    assert both == pytest.approx(0.04, abs=0.02)  # either side by itself


def test_hubs_have_as_many_edges_as_asked_for_and_nothing_else_changes():
    plain, crowded = make(PLAIN), make(replace(PLAIN, hubs=2, hub_edges=300))
    for before, graph in ((plain.source, crowded.source), (plain.target, crowded.target)):
        assert graph.names == before.names
        assert told(before) <= told(graph)
        more = np.array(sorted(told(graph) - told(before)), dtype=object)
        tails, counts = np.unique(more[:, 2].astype(int), return_counts=True)
        assert len(tails) == 2
        assert ((counts > 250) & (counts <= 300)).all()  # some were there before
        assert len(set(more[:, 1])) == 1
    assert translated(crowded) == told(crowded.target)
    whole = make(replace(PLAIN, hubs=1, hub_edges=10**6)).source  # every other entity once
    assert np.bincount(whole.triples[:, 2]).max() >= 999


def test_links_are_split_by_the_shares_asked_for():
    pair = make(replace(PLAIN, seeds=0.3, valid=0.2, dangling=0.1))
    assert (len(pair.train), len(pair.valid), len(pair.test)) == (270, 180, 450)
    together = all_links(pair)
    assert len(np.unique(together.source_ids)) == len(np.unique(together.target_ids)) == 900
    for links in (pair.train, pair.valid, pair.test):
        assert (np.diff(links.source_ids) > 0).all()
    none = make(replace(PLAIN, seeds=0.0, valid=0.0))
    assert (len(none.train), len(none.valid), len(none.test)) == (0, 0, 1000)


def test_degrees_have_a_heavy_tail_and_relations_are_uneven():
    graph = make(replace(PLAIN, num_entities=5000)).source
    popular = np.sort(np.bincount(graph.triples[:, 2], minlength=5000))[::-1]
    active = np.sort(np.bincount(graph.triples[:, 0], minlength=5000))[::-1]
    mean = graph.num_triples / 5000
    assert mean == 5.0
    assert popular[0] > 15 * mean
    assert 0.3 < popular[:250].sum() / graph.num_triples < 0.6  # a twentieth of the entities
    assert np.median(popular) < 0.7 * mean
    assert active[0] < 6 * mean
    assert active[-1] >= 1
    uses = np.sort(np.bincount(graph.triples[:, 1]))[::-1]
    assert uses[0] > 5 * uses[25]
    assert uses[-1] > 0


def test_some_relations_are_functional_some_inversely_some_neither():
    triples = make(replace(PLAIN, num_entities=3000)).source.triples
    kinds: Counter[tuple[bool, bool]] = Counter()  # functional, inversely so
    for relation in range(50):
        heads, _, tails = triples[triples[:, 1] == relation].T
        kinds[len(np.unique(heads)) == len(heads), len(np.unique(tails)) == len(tails)] += 1
    assert min(kinds[True, False], kinds[False, False]) >= 10
    assert min(kinds[False, True], kinds[True, True]) >= 2


# ---- nothing but the content tells ----------------------------------------------------------------------------------


def test_identifiers_tell_nothing_of_the_alignment_nor_of_popularity():
    pair = make(SyntheticSettings(num_entities=4000, dangling=0.1))
    links = all_links(pair)
    pairs = np.corrcoef(np.argsort(np.argsort(links.source_ids)), np.argsort(np.argsort(links.target_ids)))
    assert abs(pairs[0, 1]) < 0.05
    assert np.mean(links.source_ids == links.target_ids) < 0.005
    for graph, linked in ((pair.source, links.source_ids), (pair.target, links.target_ids)):
        degree = np.bincount(graph.triples[:, [0, 2]].ravel(), minlength=4000)
        assert abs(np.corrcoef(np.arange(4000), np.argsort(np.argsort(degree)))[0, 1]) < 0.05
        assert linked.mean() == pytest.approx(2000, rel=0.05)  # those without counterpart stand anywhere
    # Nor do the links of one split stand together.
    assert pair.train.source_ids.mean() == pytest.approx(2000, rel=0.1)


# ---- the same pair every time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["nt", "tsv"])
@pytest.mark.parametrize(
    "settings",
    [
        SyntheticSettings(),
        SyntheticSettings(num_entities=300, dangling=0.3, rename_relations=False, seeds=0.0),
        replace(PLAIN, nameless=0.2),
    ],
)
def test_written_pair_is_the_generated_one(tmp_path, settings, format_):
    write_synthetic(tmp_path / "p", settings, format_)
    assert read_pair(tmp_path / "p").fingerprint == make(settings).fingerprint


def test_bytes_hang_on_the_seed_not_on_the_chunks(tmp_path, monkeypatch):
    contents = []
    for folder, seed, rows in (("a", 7, 250_000), ("b", 7, 37), ("c", 8, 250_000)):
        monkeypatch.setattr("rlea.io.synthetic._ROWS_AT_A_TIME", rows)
        write_synthetic(tmp_path / folder, SyntheticSettings(num_entities=100, seed=seed), "tsv")
        paths = (tmp_path / folder).rglob("*.tsv")
        contents.append({path.relative_to(tmp_path / folder): path.read_text() for path in paths})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 7
    for name, text in contents[0].items():
        assert text != contents[2][name]
        lines = text.splitlines()[1:]
        assert lines == sorted(lines) or name.stem == "literals"  # labels come before values


def test_interrupted_writing_leaves_nothing(tmp_path):
    steps = []

    def interrupt(stage: str, done: float, total: float, note: str = "") -> None:
        steps.append((done, total))
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_synthetic(tmp_path / "p", SyntheticSettings(num_entities=100), progress=interrupt)
    assert os.listdir(tmp_path) == []
    steps.clear()
    write_synthetic(tmp_path / "p", SyntheticSettings(num_entities=100), progress=lambda *step: steps.append(step[1:3]))
    assert steps == sorted(steps)
    assert steps[-1][0] == steps[-1][1]


def test_small_and_extreme_settings_give_a_pair():
    for more in (
        {"num_entities": 2, "num_relations": 1, "num_attributes": 1},
        {"triples_per_entity": 0.0, "values_per_entity": 0.0},
        {"drop": 1.0, "add": 0.0},
        {"num_entities": 10, "triples_per_entity": 50.0},
        {"name_noise": 1.0, "dangling": 0.999},
        {"split_relations": 0.5, "merge_relations": 0.5, "num_relations": 3},
    ):
        settings = replace(SyntheticSettings(num_entities=60), **more)
        pair = generate(settings)
        assert len(all_links(pair)) == settings.num_entities - settings.num_dangling
        assert pair.source.num_entities == pair.target.num_entities == more.get("num_entities", 60)
        assert all(pair.target.names)


def test_impossible_settings_are_refused(tmp_path):
    for more, match in (
        ({"drop": 1.5}, "drop is 1.5"),
        ({"dangling": -0.1}, "dangling"),
        ({"seeds": 0.7, "valid": 0.4}, "seeds and valid"),
        ({"num_entities": 1}, "at least 2"),
        ({"add": -1.0}, "add is -1.0"),
    ):
        with pytest.raises(InputError, match=match):
            SyntheticSettings(**more)
    with pytest.raises(InputError, match="'rdf'"):
        write_synthetic(tmp_path / "p", format="rdf")
    (tmp_path / "source.ttl").write_text("")
    with pytest.raises(InputError, match=r"source\.ttl"):
        write_synthetic(tmp_path)


# ---- vectors --------------------------------------------------------------------------------------------------------


def test_linked_vectors_differ_by_the_noise_asked_for():
    pair = make(replace(PLAIN, dangling=0.2))
    links = all_links(pair)
    for noise in (0.0, 0.5):
        vectors = synthetic_embeddings(pair, noise, dim=100)
        gaps = vectors.target[links.target_ids] - vectors.source[links.source_ids]
        assert np.sqrt((gaps**2).sum(axis=1)).mean() == pytest.approx(noise, rel=0.02)
        assert np.sqrt((vectors.source**2).sum(axis=1)).mean() == pytest.approx(1.0, rel=0.02)
        nearest = (vectors.source[links.source_ids] @ vectors.target.T).argmax(axis=1)
        assert (nearest == links.target_ids).mean() > 0.95
    alone = np.setdiff1d(np.arange(1000), links.target_ids)
    assert (vectors.source @ vectors.target[alone].T).max(axis=0).mean() < 0.5
    # Positions tell nothing.
    assert abs(np.diag(vectors.source @ vectors.target.T).mean()) < 0.05


def test_vectors_hang_on_the_seed_and_not_on_the_split():
    pair = make(PLAIN)
    other = replace(pair, train=pair.test, test=pair.train)
    once = synthetic_embeddings(pair, 0.3, 8, 1)
    np.testing.assert_array_equal(once.target, synthetic_embeddings(other, 0.3, 8, 1).target)
    assert not np.array_equal(once.source, synthetic_embeddings(pair, 0.3, 8, 2).source)
    assert once.source.dtype == once.target.dtype == np.float32
    assert once.source.shape == (1000, 8)
