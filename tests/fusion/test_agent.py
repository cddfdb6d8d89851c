"""The agent with all evidence, on planted pairs: what it may see, what it finds, and what it begins with."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from rlea.agent.fused import SILENCED_SHARE, FusedAgent, FusionSettings, first_keys, silence, silenced
from rlea.agent.fused_matcher import find_by_all
from rlea.evidence.channels import CERTAINTY_UNIT, MOST_CERTAINTY, Evidence

from rlea.agent.learning import Examples
from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.evidence import CHANNELS, NAMES, PARIS, STRUCTURE, beginning, channels
from rlea.evidence.channel import describe_pairs
from rlea.graph import GraphPair, Links, choose_pool
from rlea.graph.masking import hide
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers.greedy import match as match_greedily
from rlea.matching import Task
from rlea.models.names import embed_names
from rlea.search.candidates import find_candidates

from .conftest import bytes_of, gold_of, links_of, make_channel, make_graph, pairs_from, unlinked


def everybody(pair):
    return choose_pool(pair, "all")[1:]


@pytest.fixture(scope="module")
def seedless(planted):
    """All evidence, no seeds, everybody to be matched."""
    pair = unlinked(planted)
    return find_by_all(pair, *everybody(pair))


@pytest.fixture(scope="module")
def few(planted):
    """All evidence and 150 seeds, which are few; the others to be matched."""
    return find_by_all(planted, *everybody(planted))


class Watched(FusedAgent):
    """Keeps the games that it learns from."""

    def _learn_opinion(self, games):
        self.games = games
        super()._learn_opinion(games)


@pytest.fixture(scope="module")
def misled(planted):
    """An agent with seeds that are all wrong, so that whoever knows one gives itself away."""
    wrong = Links.of(planted.train.source_ids, np.roll(planted.train.target_ids, 7))
    return Watched().fit(unlinked(planted, wrong))


def f1(found, gold):
    return link_metrics(found.matching, gold).f1


# ---- what it finds --------------------------------------------------------------------------------------------------


def test_without_seeds_it_beats_names_by_far(planted, seedless):
    gold = gold_of(planted)
    vectors = embed_names(planted)
    task = Task(
        planted.source, planted.target, Links.empty(), find_candidates(vectors, *everybody(unlinked(planted)), 50)
    )
    by_names = link_metrics(match_greedily(task), gold).f1
    assert by_names < 0.6  # a third of either side has no name
    assert f1(seedless, gold) > by_names + 0.2
    assert f1(seedless, gold) > 0.8
    assert seedless.info["beginning"]["seeds"] == 0
    assert seedless.info["beginning"]["agreed"] >= 50
    assert "there are no seeds" in seedless.info["beginning"]["told"]


def test_few_seeds_serve_as_well(planted, few, seedless):
    assert few.info["beginning"]["seeds"] == 150
    assert few.info["beginning"]["agreed"] > 0
    assert "150 seeds, which are few" in few.info["beginning"]["told"]
    rest = Links.union([planted.valid, planted.test])
    assert f1(few, rest) > 0.85
    stages = {row["stage"] for row in few.info["agent"]["history"]}
    assert stages == {"opinion", "key 0", "key 1"}
    assert {row["stage"] for row in seedless.info["agent"]["history"]} == {"opinion"}


def test_enough_seeds_are_all_that_is_learned_from(planted, monkeypatch):
    monkeypatch.setattr(beginning, "ENOUGH_SEEDS", 150)
    found = find_by_all(planted, *everybody(planted))
    assert found.info["beginning"] == {
        "seeds": 150, "agreed": 0, "witnesses": {}, "told": "it began with 150 seeds",
    }  # fmt: skip
    assert f1(found, Links.union([planted.valid, planted.test])) > 0.85


@pytest.mark.parametrize("run", ["seedless", "few"])
def test_links_are_one_to_one_among_those_to_be_matched_with_confidences(run, request, planted):
    found = request.getfixturevalue(run).matching
    seeds = planted.train if run == "few" else Links.empty()
    assert found.is_one_to_one
    assert not np.isin(found.source_ids, seeds.source_ids).any()
    assert not np.isin(found.target_ids, seeds.target_ids).any()
    assert ((found.confidences >= 0) & (found.confidences <= 1)).all()
    right = len(links_of(found) & links_of(gold_of(planted)))
    assert found.confidences.mean() == pytest.approx(right / len(found), abs=0.15)


@pytest.mark.parametrize("run", ["seedless", "few"])
def test_what_channels_contributed_adds_up(run, request):
    found = request.getfixturevalue(run)
    rows = {row["channel"]: row for row in found.info["channels"]}
    assert tuple(rows) == CHANNELS
    assert rows[STRUCTURE]["proposed"] == 0
    assert all(rows[name]["proposed"] > 0 for name in CHANNELS[1:])
    count = len(found.matching)
    assert all(row["alone"] <= row["found"] <= count for row in rows.values())
    alone = sum(row["alone"] for row in rows.values())
    shared = sum(row["found"] - row["alone"] for row in rows.values())
    assert 2 * (count - alone) <= shared <= 4 * (count - alone)
    assert len(found.schema.relations) > 0


def test_links_are_among_the_candidates_that_are_told(seedless):
    candidates = seedless.candidates
    row_of = {int(entity): place for place, entity in enumerate(candidates.source_ids)}
    for s, t in links_of(seedless.matching):
        columns = candidates.forward_columns[row_of[s]]
        mine = candidates.target_ids[columns[columns >= 0]]
        back = candidates.backward_rows[np.flatnonzero(candidates.target_ids == t)[0]]
        assert t in mine or s in candidates.source_ids[back[back >= 0]]


# ---- what it may not see --------------------------------------------------------------------------------------------


def test_gold_and_validation_links_are_not_read(planted, few):
    rng = np.random.default_rng(0)
    mixed = [Links.of(part.source_ids, rng.permutation(part.target_ids)) for part in (planted.valid, planted.test)]
    ids = everybody(planted)
    again = find_by_all(replace(planted, valid=mixed[0], test=mixed[1]), *ids)
    assert bytes_of(again.matching) == bytes_of(few.matching)  # the same seed, the same links, too


def test_no_channel_of_a_game_was_told_what_the_game_asks(misled):
    known = links_of(misled.beginning.seeds)
    held = set()
    for game in misled.games:
        certain = links_of(game.scene.seeds)
        asked = links_of(game.asked)
        assert not asked & certain
        assert asked & known
        held |= asked & known
        (paris,) = [channel for channel in game.channels if channel.name == PARIS]
        told = pairs_from(certain & known)
        np.testing.assert_allclose(paris.score(told)[:, 0], MOST_CERTAINTY / CERTAINTY_UNIT, atol=1e-4)
        said = paris.score(pairs_from(asked & known))[:, 0]
        assert (said > 0.5 * MOST_CERTAINTY / CERTAINTY_UNIT).mean() < 0.05
        # Entities with a known counterpart are out of the game, and so are the hidden targets.
        assert not np.isin(game.scene.source_ids, game.scene.seeds.source_ids).any()
        assert not np.isin(game.proposed.target_ids, game.asked.target_ids[game.hidden]).any()
        assert not np.isin(game.proposed.source_ids, game.scene.seeds.source_ids).any()
    assert held == known  # every seed is asked once


def test_wrong_seeds_do_not_make_their_channels_say_they_are_right(misled):
    for game in misled.games:
        wrong = pairs_from(links_of(game.asked) & links_of(misled.beginning.seeds))
        rows = describe_pairs(game.channels, wrong)
        firsts = np.cumsum([0] + [len(channel.columns) + 2 for channel in game.channels])[:-1]
        assert np.median(rows[:, firsts], axis=0).max() < 0.3


def test_equal_ids_are_no_evidence():
    """30 entities that can be told apart, and 60 in groups of six that cannot; counterparts have the same id."""

    def side(letter):
        known = [
            (f"{letter}{i:03}", "p", f"word{chr(97 + i % 26)}{chr(97 + i // 26)} only{chr(97 + i)}x") for i in range(26)
        ]
        alike = [(f"{letter}{100 + i:03}", "p", f"group {'abcdefghij'[i // 6] * 3}") for i in range(60)]
        return make_graph(literals=[*known, *alike])

    pair = GraphPair("", side("a"), side("b"))
    found = find_by_all(pair, *everybody(pair)).matching
    own = links_of(found)
    assert sum((i, i) in own for i in range(26)) >= 24
    assert sum((i, i) in own for i in range(26, 86)) < 25  # a draw gives 10


def test_other_numbers_for_the_same_entities_give_much_the_same_links(planted, seedless):
    """The target's entities are numbered as their counterparts are."""
    gold = gold_of(planted)
    number = np.zeros(300, np.int64)
    number[gold.target_ids] = gold.source_ids
    names = {identifier: f"http://t.org/E{number[i]:03}" for identifier, i in planted.target.entity_index.items()}
    target = planted.target
    renamed = make_graph(
        [(names[target.entities[h]], target.relations[r], names[target.entities[t]]) for h, r, t in target.triples],
        [
            (names[target.entities[e]], target.attributes[a], value)
            for e, a, value in zip(
                target.literals.entity_ids, target.literals.attribute_ids, target.literals.values, strict=True
            )
        ],
    )
    pair = GraphPair("", planted.source, renamed)
    found = find_by_all(pair, *everybody(pair)).matching
    right = sum(s == t for s, t in links_of(found))
    before = len(links_of(seedless.matching) & links_of(gold))
    assert abs(right - before) <= 15


def test_sides_swapped_give_the_mirrored_quality(planted, few):
    back = [Links.of(part.target_ids, part.source_ids) for part in (planted.train, planted.valid, planted.test)]
    pair = GraphPair("back", planted.target, planted.source, *back)
    ids = everybody(planted)
    found = find_by_all(pair, ids[1], ids[0])
    rest = Links.union(back[1:])
    assert f1(found, rest) == pytest.approx(f1(few, Links.union([planted.valid, planted.test])), abs=0.06)
    mirrored = {(s, t) for t, s in links_of(found.matching)}
    assert len(mirrored & links_of(few.matching)) > 0.85 * len(mirrored)


# ---- channels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "makers"),
    [((NAMES,), {"_names"}), (("words", PARIS), {"_words", "reason"}), (("attributes", STRUCTURE), {"_attributes"})],
)
def test_who_is_left_out_is_not_asked(planted, monkeypatch, wanted, makers):
    asked = set()
    for name in ("_names", "_words", "_attributes", "reason"):
        own = getattr(channels, name)
        monkeypatch.setattr(channels, name, lambda *a, own=own, name=name, **k: asked.add(name) or own(*a, **k))
    pair = unlinked(planted)
    found = find_by_all(pair, *everybody(pair), wanted)
    assert asked == makers
    assert [row["channel"] for row in found.info["channels"]] == list(wanted)
    assert found.matching.is_one_to_one
    assert f1(found, gold_of(planted)) > 0.2
    assert (len(found.schema.relations) > 0) == (PARIS in wanted)


def test_without_structure_matches_do_not_speak_for_their_neighbours(planted, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("structure was looked at")

    monkeypatch.setattr("rlea.agent.fused.see", refuse)
    monkeypatch.setattr("rlea.agent.fused_passes.spread", refuse)
    evidence = Evidence(planted)
    agent = FusedAgent(FusionSettings(channels=(NAMES, "words", "attributes"))).fit(planted, evidence=evidence)
    assert agent.key is None
    decisions = agent.decide(*everybody(planted))
    assert len(decisions) == 1
    found = decisions[0]
    proposed = {
        pair
        for channel in agent.channels_for(planted.train)
        for pair in zip(channel.proposals.source_ids.tolist(), channel.proposals.target_ids.tolist(), strict=True)
    }
    assert links_of(found.matching) <= proposed
    assert link_metrics(found.matching, planted.test).f1 > 0.3


@pytest.mark.parametrize("enough", [100, 500])
def test_structure_alone_with_seeds(planted, monkeypatch, enough):
    """Names and attributes hidden, few seeds and enough: only edges and seeds are left."""
    monkeypatch.setattr(beginning, "ENOUGH_SEEDS", enough)
    pair = hide(planted, ("names", "attributes"))
    found = find_by_all(pair, *everybody(pair), (STRUCTURE,))
    assert found.matching.is_one_to_one
    assert f1(found, Links.union([planted.valid, planted.test])) > 0.3  # a draw: 0.007
    assert {row["stage"] for row in found.info["agent"]["history"]} == {"key 0", "key 1"}
    (row,) = found.info["channels"]
    assert row == {"channel": "structure", "proposed": 0, "found": len(found.matching), "alone": len(found.matching)}


def test_nobody_to_match_gives_no_links(planted):
    agent = FusedAgent(FusionSettings(channels=(STRUCTURE, NAMES))).fit(planted)
    nobody = np.zeros(0, np.int32)
    for ids in ((nobody, nobody), (planted.test.source_ids, nobody), (nobody, planted.test.target_ids)):
        assert len(agent.decide(*ids)[-1].matching) == 0
    found = agent.match(planted, pool="test")
    assert set(found.source_ids.tolist()) <= set(planted.test.source_ids.tolist())
    assert set(found.target_ids.tolist()) <= set(planted.test.target_ids.tolist())


def test_nothing_to_begin_with_is_said(planted):
    pair = hide(unlinked(planted), ("names", "attributes"))
    sentence = r"nothing to begin with: no seeds, and no names or attributes .*; give --seeds, or leave --channels"
    with pytest.raises(InputError, match=sentence):
        find_by_all(pair, *everybody(pair))
    with pytest.raises(InputError, match="was trained on other graphs; call fit with these first"):
        FusedAgent(FusionSettings(channels=(STRUCTURE, NAMES))).fit(planted).match(pair)
    with pytest.raises(InputError, match="has not been trained; call fit first"):
        FusedAgent().decide(np.arange(2, dtype=np.int32), np.arange(2, dtype=np.int32))


@pytest.mark.parametrize("wanted", [(), ("name",), ("names", "numbers")])
def test_unknown_channels_are_refused(wanted):
    with pytest.raises(ValueError, match="channels are some of structure, names"):
        FusionSettings(channels=wanted)


# ---- the random seed ------------------------------------------------------------------------------------------------


def sure_links(agent, pair):
    found = agent.match(pair, pool="all")
    kept = found.confidences >= 0.9
    assert found.is_one_to_one
    return set(zip(found.source_ids[kept].tolist(), found.target_ids[kept].tolist(), strict=True)), len(found)


@pytest.mark.parametrize(("num_entities", "has_key"), [(300, False), (600, True)])
def test_another_seed_holds_the_same_links_out_and_finds_the_same_sure_links(num_entities, has_key):
    """A fifth are seeds, names are noisy. Measured: nothing differs without a key, and one link in 457 with one."""
    shares = {"seeds": 0.2, "valid": 0.0, "name_noise": 0.3, "nameless": 0.3, "drop": 0.3, "add": 0.1}
    pair = generate(SyntheticSettings(num_entities, triples_per_entity=4.0, values_per_entity=0.5, **shares))
    evidence = Evidence(pair)
    sure, held_out, weights = [], [], set()
    for seed in range(3):
        agent = Watched(seed=seed).fit(pair, evidence=evidence)
        assert (agent.key is not None) == has_key
        held_out.append([(links_of(game.asked), game.hidden.tobytes()) for game in agent.games])
        links, count = sure_links(agent, pair)
        assert 0.5 * count < len(links) < count  # some are not sure, so there is something to differ in
        sure.append(links)
        if has_key:
            weights.add(agent.key.weights.tobytes())
    assert held_out[0] == held_out[1] == held_out[2]
    assert len(weights) == (3 if has_key else 0)  # the seed does count for the networks
    for one, other in combinations(sure, 2):
        assert len(one & other) >= 0.97 * len(one | other)


# ---- silence --------------------------------------------------------------------------------------------------------


def test_every_way_of_being_silent_is_shown_of_its_share_of_the_examples():
    assert silenced(1) == silenced(0) == []
    assert silenced(2) == [(0,), (1,)]
    assert sorted(silenced(3)) == [(0,), (0, 1), (0, 2), (1,), (1, 2), (2,)]
    made = [make_channel("names", {(0, 0): 1.0}), make_channel("words", {(0, 0): 1.0}), make_channel("paris", {})]
    count = 2 * SILENCED_SHARE
    features = np.arange(1, 18 * count + 1, dtype=np.float32).reshape(2 * count, 9)
    truths = np.where(np.arange(count) % 3, 2 * np.arange(count), -1)
    keys = first_keys(features, made)
    examples = Examples(features, keys, np.arange(2 * count), np.arange(0, 2 * count + 1, 2), truths)
    before = features.copy()
    ways, shown = [], []
    for hushed in silence(examples, made):
        gone = np.array([not hushed.features[:, 3 * place : 3 * place + 3].any() for place in range(3)])
        heard = np.repeat(~gone, 3)
        ways.append(tuple(np.flatnonzero(gone).tolist()))
        groups = np.flatnonzero(np.arange(count) % SILENCED_SHARE == (len(ways) - 1) % SILENCED_SHARE)
        rows = (2 * groups[:, None] + np.arange(2)).ravel()
        np.testing.assert_array_equal(hushed.features[:, heard], before[rows][:, heard])
        assert hushed.starts.tolist() == [0, 2, 4]
        assert [rows[truth] if truth >= 0 else -1 for truth in hushed.truths] == truths[groups].tolist()
        # Keys are what is left of the leads: those of whoever is silent are gone.
        np.testing.assert_array_equal(hushed.keys, first_keys(hushed.features, made))
        assert (hushed.keys < keys[rows]).all()
        shown.append(groups[0])
    assert ways == silenced(3)
    assert set(shown) == set(range(SILENCED_SHARE))
    np.testing.assert_array_equal(features, before)
    assert list(silence(examples, made[:1])) == []


def test_first_keys_are_the_leads_of_all_channels():
    made = [make_channel("names", {(0, 0): 1.0, (0, 1): 0.25}), make_channel("words", {(0, 1): 0.5})]
    pairs = pairs_from([(0, 0), (0, 1)])
    keys = first_keys(describe_pairs(made, pairs), made)
    # Names lead by 0.75 there and by all they say (2 is the most) back; words trail by 0.5 there.
    np.testing.assert_allclose(keys, [0.75 + 2 - 0.5 + 2, -0.75 + 2 + 0.5 + 2])
    assert first_keys(np.zeros((3, 0), np.float32), []).tolist() == [0, 0, 0]
