"""The agent on planted pairs: what it finds, what it may not see, vectors, odd inputs, and files."""

import json
from copy import copy, deepcopy
from dataclasses import asdict, replace
from itertools import pairwise

import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.sparse import csr_matrix

from planted import bytes_of, gold_of, links_of, make_channel, make_graph, make_pairs, rows_of, take, unlinked
from rlea.agent import agent as module
from rlea.agent import bootstrap
from rlea.agent.agent import AgentSettings, Aligner, Weights, num_right
from rlea.agent.calibration import Calibration, log_odds
from rlea.agent.holdout import HoldoutSettings
from rlea.agent.learning import Examples
from rlea.agent.pair_scorer import ScorerSettings
from rlea.agent.passes import Decisions, PassSettings
from rlea.agent.propagation import PropagationSettings
from rlea.errors import InputError
from rlea.evaluation.metrics import link_metrics
from rlea.evidence import ATTRIBUTES, CHANNELS, NAMES, PARIS, STRUCTURE, VECTORS, WORDS
from rlea.evidence.channel import describe_pairs
from rlea.evidence.collect import Evidence
from rlea.evidence.paris.channel import CERTAINTY_UNIT, MOST_CERTAINTY
from rlea.graph import GraphPair, Links, choose_pool
from rlea.graph.masking import hide
from rlea.io.agent_files import load_agent_file, save_agent_file
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matchers.greedy import match as match_greedily
from rlea.matchers.nearest import match as match_nearest
from rlea.matching import Task
from rlea.models.names import embed_names
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

SHORT = AgentSettings(
    propagation_weights=(0.67,),
    vector_weights=(3.0, 0.0, 30.0),
    passes=PassSettings(vectors=PropagationSettings(dim=64)),
    pair_scorer=ScorerSettings(epochs=30, hidden=16, members=1, rate=5e-3),
)


def make_aligner(*channels, **more):
    return Aligner(settings=SHORT, **({"channels": channels} if channels else {}), **more)


def learned_bytes(aligner):
    """All that was learned from held-out games."""
    scorers = [one for one in (aligner.channel_scorer, aligner.pair_scorer) if one is not None]
    return b"".join(array.tobytes() for one in scorers for array in one.state().values()), aligner.calibration


def f1(matching, gold):
    return link_metrics(matching, gold).f1


def share_right(matching, gold):
    return num_right(matching, gold) / len(gold)


def rest_of(pair):
    """The links that are not seeds."""
    return Links.union([pair.valid, pair.test])


# ---- with names, values and structure -------------------------------------------------------------------------------


class Watched(Aligner):
    """Keeps the games that it learns from, with their channels and proposals."""

    def _learn_channels(self, start, games, channels, proposals, described):
        self.games = list(zip(games, channels, proposals, strict=True))
        super()._learn_channels(start, games, channels, proposals, described)


@pytest.fixture(scope="module")
def few(planted):
    """Fitted with all channels and 150 seeds, which are few."""
    return make_aligner().fit(planted)


@pytest.fixture(scope="module")
def seedless(planted):
    """Fitted with all channels and no seeds."""
    return make_aligner().fit(unlinked(planted))


def test_without_seeds_it_beats_names_by_far(planted, seedless):
    gold, pair = gold_of(planted), unlinked(planted)
    pools = choose_pool(pair, "all")[1:]
    task = Task(pair.source, pair.target, Links.empty(), find_candidates(embed_names(pair), *pools, 50))
    by_names = f1(match_greedily(task), gold)
    assert by_names < 0.6  # a third of either side has no name
    outcome = seedless.decide(pair, *pools)
    assert f1(outcome.last.matching, gold) > max(by_names + 0.2, 0.8)
    assert len(outcome.bootstrap.pseudo_seeds) >= bootstrap.FEW
    assert {row["stage"] for row in seedless.history} == {"channels"}
    assert len(outcome.passes) == 1


def test_few_seeds_serve_as_well(planted, few):
    outcome = few.decide(planted, *choose_pool(planted, "all")[1:])
    assert (len(outcome.bootstrap.seeds), outcome.bootstrap.is_seeded) == (150, False)
    assert len(outcome.bootstrap.pseudo_seeds) > 0
    assert f1(outcome.last.matching, rest_of(planted)) > 0.85
    assert [row["stage"] for row in few.history] == ["channels", "pairs 0", "pairs 1"]  # no networks: one row each
    assert len(outcome.passes) == 1 + SHORT.passes.learned
    columns = ["name", "words", "words around", "letters", "attributes", "paris"]
    assert [one.columns[0] for one in outcome.channels] == columns


@pytest.mark.parametrize("kind", ["seedless", "few"])
def test_links_are_one_to_one_among_those_to_be_matched_with_calibrated_confidences(kind, request, planted):
    pair = planted if kind == "few" else unlinked(planted)
    found = request.getfixturevalue(kind).match(pair, pool="all")
    assert found.is_one_to_one
    assert not np.isin(found.source_ids, pair.train.source_ids).any()
    assert not np.isin(found.target_ids, pair.train.target_ids).any()
    assert ((found.confidences >= 0) & (found.confidences <= 1)).all()
    right = len(links_of(found) & links_of(gold_of(planted)))
    assert found.confidences.mean() == pytest.approx(right / len(found), abs=0.15)


def test_precision_keeps_the_surest(few, planted):
    every = few.match(planted, pool="all")
    precision = np.sort(every.confidences)[len(every) // 2 :].mean()
    kept = few.match(planted, pool="all", precision=precision)
    assert links_of(kept) < links_of(every)
    assert kept.confidences.mean() >= precision
    assert len(kept) == (every.confidences >= kept.confidences.min()).sum()
    assert bytes_of(few.match(planted, pool="all", precision=0.01)) == bytes_of(every)


class Unread:
    """Links that nothing may look at."""

    def __getattr__(self, name):
        raise AssertionError("gold was read")

    def __len__(self):
        raise AssertionError("gold was read")


def test_gold_is_never_read_and_validation_links_only_for_vectors(planted, few):
    expected = bytes_of(few.match(planted, pool="all"))
    again = make_aligner().fit(replace(planted, valid=Unread(), test=Unread()))
    assert bytes_of(again.match(replace(planted, test=Unread()), pool="all")) == expected  # the same seed, too
    mixed = replace(planted, test=Links.of(planted.test.source_ids, np.roll(planted.test.target_ids, 5)))
    assert bytes_of(few.match(mixed, pool="all")) == expected
    assert learned_bytes(again) == learned_bytes(few)


def test_no_channel_of_a_game_knows_the_links_that_the_game_holds_out(planted):
    """All seeds are wrong, so whatever knows one of them is seen to."""
    wrong = Links.of(planted.train.source_ids, np.roll(planted.train.target_ids, 7))
    misled = Watched(settings=SHORT).fit(unlinked(planted, wrong))
    known, held_out = links_of(wrong), set()
    for game, channels, proposals in misled.games:
        certain, held = links_of(game.problem.seeds), links_of(game.links) & known
        assert held
        assert not held & certain
        held_out |= held
        (paris,) = [channel for channel in channels if channel.name == PARIS]
        most = MOST_CERTAINTY / CERTAINTY_UNIT
        np.testing.assert_allclose(paris.score(make_pairs(certain))[:, 0], most, atol=1e-4)
        assert (paris.score(make_pairs(held))[:, 0] > 0.5 * most).mean() < 0.05
        firsts = np.cumsum([0] + [channel.width for channel in channels])[:-1]
        assert np.median(describe_pairs(channels, make_pairs(held))[:, firsts], axis=0).max() < 0.3
        assert not np.isin(proposals.target_ids, game.links.target_ids[game.is_dangling]).any()
        assert not np.isin(proposals.source_ids, game.problem.seeds.source_ids).any()
    assert held_out == known


def test_equal_ids_are_no_evidence():
    """26 entities with texts of their own, and 60 that share theirs in groups of six; counterparts have the same id."""

    def side(letter):
        known = [(f"{letter}{i:03}", "p", f"word{chr(97 + i)} only{chr(97 + i)}x") for i in range(26)]
        alike = [(f"{letter}{100 + i:03}", "p", f"group {'abcdefghij'[i // 6] * 3}") for i in range(60)]
        return make_graph(literals=[*known, *alike])

    pair = GraphPair("", side("a"), side("b"))
    found = links_of(make_aligner().fit(pair).match(pair))
    assert sum((i, i) in found for i in range(26)) >= 24
    assert sum((i, i) in found for i in range(26, 86)) < 25  # 10 at random


def test_other_ids_for_the_same_entities_give_much_the_same_links(planted, seedless):
    """The target's entities get the numbers of their counterparts."""
    gold, target = gold_of(planted), planted.target
    number = np.zeros(300, np.int64)
    number[gold.target_ids] = gold.source_ids
    names = [f"http://t.org/E{number[i]:03}" for i in range(300)]
    rows = zip(target.literals.entity_ids, target.literals.attribute_ids, target.literals.values, strict=True)
    renamed = make_graph(
        [(names[h], target.relations[r], names[t]) for h, r, t in target.triples],
        [(names[entity], target.attributes[attribute], value) for entity, attribute, value in rows],
    )
    pair = GraphPair("", planted.source, renamed)
    right = sum(s == t for s, t in links_of(make_aligner().fit(pair).match(pair)))
    assert abs(right - num_right(seedless.match(unlinked(planted)), gold)) <= 15


def test_sides_swapped_give_much_the_same_links(planted, few):
    back = [Links.of(part.target_ids, part.source_ids) for part in (planted.train, planted.valid, planted.test)]
    pair = GraphPair("back", planted.target, planted.source, *back)
    found = make_aligner().fit(pair).match(pair, pool="all")
    assert f1(found, rest_of(pair)) == pytest.approx(f1(few.match(planted, pool="all"), rest_of(planted)), abs=0.06)
    mirrored = {(s, t) for t, s in links_of(found)}
    assert len(mirrored & links_of(few.match(planted, pool="all"))) > 0.85 * len(mirrored)


def test_with_enough_seeds_another_random_seed_changes_networks_and_hardly_a_sure_link(monkeypatch):
    shares = {"seeds": 0.3, "valid": 0.0, "name_noise": 0.3, "nameless": 0.3, "drop": 0.3, "add": 0.1}
    pair = generate(SyntheticSettings(480, triples_per_entity=5.0, values_per_entity=0.5, dangling=0.1, **shares))
    monkeypatch.setattr(bootstrap, "ENOUGH_SEEDS", 120)
    evidence = Evidence(pair)
    sure, held_out, weights = [], [], []
    for seed in range(2):
        aligner = Watched(settings=SHORT, seed=seed).fit(pair, evidence=evidence)
        assert max(row["epoch"] for row in aligner.history) > 1
        held_out.append([(links_of(game.links), game.is_dangling.tobytes()) for game, *_ in aligner.games])
        weights.append(aligner.pair_scorer.weights.tobytes())
        found = aligner.match(pair, pool="all")
        sure.append(links_of(found.at_least(0.9)))
        assert len(sure[-1] & links_of(pair.test)) >= 0.9 * len(sure[-1])
        assert 0.3 * len(found) < len(sure[-1]) < len(found)
    assert held_out[0] == held_out[1]
    assert weights[0] != weights[1]
    assert len(sure[0] & sure[1]) >= 0.95 * len(sure[0] | sure[1])


# ---- some channels --------------------------------------------------------------------------------------------------


def test_without_structure_matches_are_no_evidence_for_their_neighbours(planted, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("structure was looked at")

    monkeypatch.setattr("rlea.agent.agent.features_of", refuse)
    monkeypatch.setattr("rlea.agent.passes.propagate", refuse)
    aligner = make_aligner(NAMES, WORDS, ATTRIBUTES).fit(planted)
    assert aligner.pair_scorer is None
    outcome = aligner.decide(planted, *choose_pool(planted, "all")[1:])
    proposed = set().union(*(links_of(channel.proposals) for channel in outcome.channels))
    assert links_of(outcome.last.matching) <= proposed
    assert f1(outcome.last.matching, planted.test) > 0.3


@pytest.mark.parametrize("enough", [100, 500])
def test_structure_alone_with_seeds(planted, monkeypatch, enough):
    """Names and values hidden, enough seeds and few: edges and seeds are all there is."""
    monkeypatch.setattr(bootstrap, "ENOUGH_SEEDS", enough)
    pair = hide(planted, ("names", "attributes"))
    aligner = make_aligner(STRUCTURE).fit(pair)
    found = aligner.match(pair, pool="all")
    assert found.is_one_to_one
    assert f1(found, rest_of(planted)) > 0.3  # 0.007 at random
    assert {row["stage"] for row in aligner.history} == {"pairs 0", "pairs 1"}
    assert aligner.channel_scorer is None


def test_a_channel_that_was_fitted_to_the_seeds_is_refused(planted):
    """It would give held-out seeds away; vectors that were fitted have a way of their own."""

    class Fitted(Evidence):
        def collect(self, certain, learned_from, wanted):
            return [replace(channel, is_fitted=True) for channel in super().collect(certain, learned_from, wanted)]

    with pytest.raises(InputError, match="fitted to the seeds"):
        make_aligner(NAMES).fit(planted, evidence=Fitted(planted))


def test_evidence_of_ones_own_serves_its_pair_and_is_asked_for_elsewhere(planted, tmp_path):
    class Own(Evidence):
        def collect(self, certain, learned_from, wanted):
            found = super().collect(certain, learned_from, wanted)
            return [*found, *(replace(channel, name="my own") for channel in found)]

    pair = unlinked(planted, planted.train)
    again = replace(pair, source=replace(pair.source))  # the same graph, another object
    aligner = make_aligner(NAMES).fit(pair, evidence=Own(pair))
    assert aligner.layout == ((NAMES, ("name",)), ("my own", ("name",)))
    found = bytes_of(aligner.match(pair, pool="all"))
    aligner.save(tmp_path / "agent")
    loaded = Aligner.load(tmp_path / "agent")
    for one, other in ((aligner, again), (loaded, pair)):
        with pytest.raises(InputError, match="fitted with evidence of your own"):
            one.match(other, pool="all")
        assert bytes_of(one.match(other, pool="all", evidence=Own(other))) == found
    with pytest.raises(InputError, match="made for another pair"):
        aligner.match(again, pool="all", evidence=Own(pair))


def test_arguments_of_match_are_checked(planted):
    aligner = make_aligner(NAMES).fit(planted)
    with pytest.raises(InputError, match="the precision is 95"):
        aligner.match(planted, precision=95)
    with pytest.raises(InputError, match="unknown pool 'tset'"):
        aligner.match(planted, pool="tset")


@pytest.mark.parametrize("is_silent_when_known", [True, False])
def test_a_channel_that_finds_nothing_keeps_its_columns(planted, is_silent_when_known):
    """Attributes are silent wherever a certain seed is known (in the end, too), or wherever it is not."""

    class Patchy(Evidence):
        def collect(self, certain, learned_from, wanted):
            is_silent = (self.pair.train.source_ids[0] in certain.source_ids) == is_silent_when_known
            found = super().collect(certain, learned_from, wanted)
            return [channel for channel in found if not (is_silent and channel.name == ATTRIBUTES)]

    pair = unlinked(planted, planted.train)
    aligner = make_aligner(NAMES, ATTRIBUTES).fit(pair, evidence=Patchy(pair))
    assert aligner.layout == ((NAMES, ("name",)), (ATTRIBUTES, ("attributes", "conflict")))
    outcome = aligner.decide(pair, *choose_pool(pair)[1:])
    assert (ATTRIBUTES in [channel.name for channel in outcome.channels]) != is_silent_when_known
    assert f1(outcome.last.matching, rest_of(planted)) > 0.2


def test_what_was_learned_serves_another_pair_with_the_same_channels(few, planted, tmp_path):
    other = generate(SyntheticSettings(200, seeds=0.5, name_noise=0.3, nameless=0.3, values_per_entity=2.0, seed=6))
    few.save(tmp_path / "agent")
    elsewhere = Aligner.load(tmp_path / "agent").match(other, pool="all")
    assert f1(elsewhere, rest_of(other)) > 0.7
    assert bytes_of(few.match(other, pool="all")) == bytes_of(elsewhere)
    assert f1(few.match(planted, pool="all"), rest_of(planted)) > 0.85  # and it is still good for its own


@pytest.mark.parametrize(("channels", "first"), [((NAMES, ATTRIBUTES), NAMES), ((STRUCTURE, ATTRIBUTES), STRUCTURE)])
def test_a_pair_with_a_channel_that_was_not_learned_is_refused(planted, channels, first, tmp_path):
    """Fitted where there were no attributes to learn from, by names or by structure."""
    pair = planted if first == NAMES else hide(planted, ("attributes",))
    aligner = make_aligner(first).fit(pair)
    assert all(name == first for name, _ in aligner.layout)
    aligner.channels = channels
    aligner.save(tmp_path / "agent")
    with pytest.raises(InputError, match="has not learned what attributes means, which this pair has; leave that"):
        Aligner.load(tmp_path / "agent").match(planted)


def test_dropouts_drop_each_channel_and_all_but_each():
    assert module.dropouts(1) == module.dropouts(0) == []
    assert module.dropouts(2) == [(0,), (1,)]
    assert sorted(module.dropouts(3)) == [(0,), (0, 1), (0, 2), (1,), (1, 2), (2,)]


def test_every_dropout_is_shown_of_its_share_of_the_examples():
    made = [make_channel("names", {(0, 0): 1.0}), make_channel("words", {(0, 0): 1.0}), make_channel("paris", {})]
    count = 2 * module.DROPOUT_SHARE
    features = np.arange(1, 18 * count + 1, dtype=np.float32).reshape(2 * count, 9)
    truths = np.where(np.arange(count) % 3, 2 * np.arange(count), -1)
    priorities, before = module.first_priorities(features, made), features.copy()
    examples = Examples(features, priorities, np.arange(2 * count), np.arange(0, 2 * count + 1, 2), truths)
    ways, shown = [], []
    for some in module.drop_channels(examples, made):
        is_gone = np.array([not some.features[:, 3 * place : 3 * place + 3].any() for place in range(3)])
        is_kept = np.repeat(~is_gone, 3)
        ways.append(tuple(np.flatnonzero(is_gone).tolist()))
        groups = np.flatnonzero(np.arange(count) % module.DROPOUT_SHARE == (len(ways) - 1) % module.DROPOUT_SHARE)
        rows = (2 * groups[:, None] + np.arange(2)).ravel()
        np.testing.assert_array_equal(some.features[:, is_kept], before[rows][:, is_kept])
        assert some.starts.tolist() == [0, 2, 4]
        assert [rows[truth] if truth >= 0 else -1 for truth in some.truths] == truths[groups].tolist()
        np.testing.assert_array_equal(some.priorities, module.first_priorities(some.features, made))
        assert (some.priorities < priorities[rows]).all()  # the leads of what was dropped are gone
        shown.append(groups[0])
    assert ways == module.dropouts(3)
    assert set(shown) == set(range(module.DROPOUT_SHARE))
    np.testing.assert_array_equal(features, before)
    assert list(module.drop_channels(examples, made[:1])) == []


def test_first_priorities_are_the_leads_of_all_channels():
    made = [make_channel("names", {(0, 0): 1.0, (0, 1): 0.25}), make_channel("words", {(0, 1): 0.5})]
    priorities = module.first_priorities(describe_pairs(made, make_pairs([(0, 0), (0, 1)])), made)
    # Of the source names lead by 0.75 and words trail by 0.5; of the targets there is no other pair: 2, the most.
    np.testing.assert_allclose(priorities, [0.75 + 2 - 0.5 + 2, -0.75 + 2 + 0.5 + 2])
    assert module.first_priorities(np.zeros((3, 0), np.float32), []).tolist() == [0, 0, 0]


# ---- vectors --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sparse():
    """400 entities, 136 seeds; either side lacks two fifths of the facts. For structure and vectors."""
    shares = {"drop": 0.4, "add": 0.1, "seeds": 0.34, "valid": 0.2}
    return generate(SyntheticSettings(400, triples_per_entity=3.0, **shares))


@pytest.fixture(scope="module")
def vectors(sparse):
    """Noisy vectors, fitted to the seeds."""
    return synthetic_embeddings(sparse, noise=3.0)


@pytest.fixture(scope="module")
def weighed(sparse, vectors):
    return make_aligner(STRUCTURE).fit(sparse, [vectors])


def noise_like(vectors, seed=0):
    rng = np.random.default_rng(seed)
    parts = (rng.standard_normal(part.shape).astype(np.float32) for part in (vectors.source, vectors.target))
    return replace(vectors, source=next(parts), target=next(parts), name=f"noise {seed}", info={})


def by_nearest(pair, vectors):
    pools = choose_pool(pair, "test")[1:]
    return match_nearest(Task(pair.source, pair.target, pair.train, find_candidates(vectors, *pools, 20)))


def fork(aligner):
    """The same agent, to choose other weights."""
    other = copy(aligner)
    other.history = []
    return other


def tried(aligner):
    """The most validation links that learned passes found with each choice of weights."""
    best = {}
    for row in aligner.history:
        if row["stage"] == "choice" and row["is_learned"]:
            weights = tuple(row["vectors"])
            best[weights] = max(best.get(weights, 0), row["valid_aligned"])
    return best


def test_structure_and_vectors_are_far_better_than_nearest(weighed, sparse, vectors):
    found = weighed.match(sparse, [vectors])
    assert found.is_one_to_one
    assert share_right(by_nearest(sparse, vectors), sparse.test) < 0.5
    assert share_right(found, sparse.test) > 0.7
    is_right = np.array([link in links_of(sparse.test) for link in rows_of(found)])
    order = np.argsort(-found.confidences, kind="stable")
    half = len(order) // 2
    assert is_right[order[:half]].mean() > is_right[order[half:]].mean() + 0.1
    assert abs(found.confidences.mean() - is_right.mean()) < 0.2


def test_fitted_vectors_take_no_part_in_held_out_games(weighed, sparse, vectors):
    """They would give the held-out seeds away: with other vectors nothing that is learned changes, only the weights."""
    assert all(name != VECTORS for name, _ in weighed.layout)
    target = vectors.target.copy()
    target[sparse.train.target_ids] = np.roll(target[sparse.train.target_ids], 1, axis=0)
    other = make_aligner(STRUCTURE).fit(sparse, [replace(vectors, target=target)])
    assert learned_bytes(other) == learned_bytes(weighed)
    assert learned_bytes(make_aligner(STRUCTURE).fit(sparse)) == learned_bytes(weighed)


def test_vectors_that_were_not_fitted_are_a_channel_like_others(sparse, vectors):
    own = replace(vectors, is_fitted=False)
    aligner = make_aligner(STRUCTURE).fit(sparse, [own])
    assert aligner.layout == ((VECTORS, ("synthetic",)),)
    assert aligner.channel_scorer is not None
    assert aligner.weights.vectors == ()
    assert share_right(aligner.match(sparse, [own]), sparse.test) > 0.7
    other = make_aligner(STRUCTURE).fit(sparse, [replace(noise_like(own), name="synthetic")])
    assert learned_bytes(other) != learned_bytes(aligner)
    with pytest.raises(InputError, match="has not learned what noise 1 means"):
        aligner.match(sparse, [noise_like(own, 1)])
    assert share_right(aligner.match(sparse), sparse.test) < share_right(aligner.match(sparse, [own]), sparse.test)


def test_several_vectors_that_were_not_fitted_are_several_channels(sparse, vectors):
    """Of the same name, too."""
    own = replace(vectors, is_fitted=False)
    noise = replace(noise_like(own), name="synthetic")
    aligner = make_aligner(STRUCTURE).fit(sparse, [noise, own])
    assert aligner.layout == ((VECTORS, ("synthetic",)), (VECTORS, ("synthetic 2",)))
    assert share_right(aligner.match(sparse, [noise, own]), sparse.test) > 0.7


def test_weights_are_chosen_on_validation_links(sparse, vectors, weighed):
    """Several embeddings, one of them noise; weights of the good one find more."""
    noise = noise_like(vectors)
    several = fork(weighed)  # what is learned does not depend on them
    several.settings = replace(SHORT, vector_weights=(10.0, 0.0, 30.0))  # a little noise does no harm, so more of it
    several.choose(sparse, [noise, vectors])
    found = tried(several)
    assert several.weights.chosen_by == "validation links"
    assert several.weights.vectors == max(found, key=found.get)
    assert several.weights.vectors[0] == 0.0 < several.weights.vectors[1]
    assert found[0.0, 10.0] > found[10.0, 0.0] > found[30.0, 0.0]
    assert share_right(several.match(sparse, [noise, vectors]), sparse.test) > 0.6
    order = np.random.default_rng(0).permutation(len(sparse.valid))
    wrong = Links.of(sparse.valid.source_ids, sparse.valid.target_ids[order])
    misled = fork(several).choose(replace(sparse, valid=wrong), [noise, vectors])
    assert max(tried(misled).values()) < max(found.values())


def test_worthless_vectors_get_little_weight(weighed, sparse, vectors):
    noise = noise_like(vectors)
    aligner = fork(weighed).choose(sparse, [noise])
    assert aligner.weights.vectors != (30.0,)
    assert tried(aligner)[0.0,] > tried(aligner)[30.0,]
    assert share_right(by_nearest(sparse, noise), sparse.test) < 0.05
    assert share_right(aligner.match(sparse, [noise]), sparse.test) > 0.5


@pytest.mark.parametrize(("few", "is_learned"), [(1000, False), (0, True)])
def test_without_validation_links_the_defaults_count(weighed, sparse, vectors, monkeypatch, few, is_learned):
    monkeypatch.setattr(module, "FEW_FOR_STRUCTURE", few)
    aligner = fork(weighed).choose(replace(sparse, valid=Links.empty()), [vectors])
    assert aligner.weights == Weights(0.67 if is_learned else 0.0, (3.0,), is_learned, "default")
    assert aligner.final_calibration is None
    assert aligner.match(sparse, [vectors]).is_one_to_one


def test_fixed_priorities_are_kept_where_the_learned_ones_do_worse(weighed, sparse, vectors):
    """A pair scorer that puts the worst first: validation links show it."""
    spoilt = fork(weighed)
    spoilt.pair_scorer = deepcopy(weighed.pair_scorer)
    spoilt.pair_scorer.linear *= -1
    spoilt.choose(sparse, [vectors])
    assert (spoilt.weights.is_learned, spoilt.weights.chosen_by) == (False, "validation links")
    assert share_right(spoilt.match(sparse, [vectors]), sparse.test) > 0.4


def test_weights_are_chosen_anew_for_other_vectors(weighed, sparse):
    clear = synthetic_embeddings(sparse, noise=0.3)
    again = fork(weighed).choose(sparse, [clear])
    assert learned_bytes(again) == learned_bytes(weighed)
    assert share_right(again.match(sparse, [clear]), sparse.test) > 0.9
    for given in ([], [clear, clear]):
        with pytest.raises(InputError, match=f"fitted with 1 trained embeddings and is given {len(given)}; give the"):
            again.match(sparse, given)


@pytest.mark.parametrize("kind", ["inner", "manhattan", "sparse", "nothing in common"])
def test_all_kinds_of_vectors(weighed, sparse, vectors, kind):
    if kind == "sparse":
        given = Embeddings(*(csr_matrix(np.maximum(x, 0.1) - 0.1) for x in (vectors.source, vectors.target)))
    elif kind == "nothing in common":
        ends = [np.zeros((graph.num_entities, 2), np.float32) for graph in (sparse.source, sparse.target)]
        ends[0][:, 0], ends[1][:, 1] = 1, 1
        given = Embeddings(*map(csr_matrix, ends))
    else:
        given = replace(vectors, measure=kind)
    found = weighed.match(sparse, [given])
    assert found.is_one_to_one
    nearest = 0.2 if kind == "nothing in common" else share_right(by_nearest(sparse, given), sparse.test)
    assert share_right(found, sparse.test) > nearest + 0.1


def test_a_pair_without_edges_is_decided_by_its_vectors():
    """Every source has a counterpart; there is nothing to learn from."""
    rng = np.random.default_rng(0)
    graphs = [make_graph(entities=[f"{letter}{i:03}" for i in range(40)]) for letter in "st"]
    rows = rng.standard_normal((40, 12), np.float32)
    other = rng.permutation(40)
    target = np.empty_like(rows)
    target[other] = rows + 0.1 * rng.standard_normal((40, 12), np.float32)
    gold = Links.of(np.arange(40), other)
    pair = GraphPair("", *graphs, train=take(gold, slice(20)))
    found = make_aligner(STRUCTURE).fit(pair, [Embeddings(rows, target)]).match(pair, [Embeddings(rows, target)])
    assert share_right(found, take(gold, slice(20, None))) > 0.95


def test_calibration_looks_at_the_links_of_known_sources(monkeypatch):
    """Link 1 is right and 2 wrong; 3 has a known target and 4 nothing known: a wrong pair is not counted twice."""
    source, target = np.array([1, 2, 3, 4], np.int32), np.array([1, 5, 2, 4], np.int32)
    logits, ones = np.array([4.0, 1.0, 2.0, 3.0], np.float32), np.ones(4, np.float32)
    decisions = Decisions(source, target, ones, ones, Pairs(source, target), logits)
    known = Links.of([1, 2], [1, 2])
    assert num_right(decisions, known) == 1
    assert module.calibrate_on(decisions, known) is None, "two links are too few"
    monkeypatch.setattr("rlea.agent.calibration.FEWEST", 2)
    odds = log_odds(decisions.pairs, logits)
    fitted = Calibration.fit(odds[:2], np.array([True, False]))
    assert module.calibrate_on(decisions, known) == replace(fitted, recall=0.5)
    assert fitted != Calibration.fit(odds[:3], np.array([True, False, False]))


# ---- odd inputs -----------------------------------------------------------------------------------------------------


def named(letter, words):
    """Entities with these names, each joined to the next."""
    ids = [f"http://{letter}.org/{word}" for word in words]
    return make_graph([(a, "r", b) for a, b in pairwise(ids)], entities=ids)


WORDS_OF_TEN = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty")


@pytest.mark.parametrize("num_seeds", [0, 1, 6])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_very_small_pairs(size, num_seeds):
    pair = GraphPair("", named("a", WORDS_OF_TEN[:size]), named("b", WORDS_OF_TEN[:size]))
    ids = np.arange(min(num_seeds, size))
    pair = replace(pair, train=Links.of(ids, ids))
    found = make_aligner().fit(pair).match(pair, pool="all")
    assert links_of(found) <= {(i, i) for i in range(len(ids), size)} or size < 4
    assert len(found) == size - len(ids)
    assert np.isfinite(found.confidences).all()


def test_two_unrelated_graphs_give_links_that_are_not_sure():
    one, other = (generate(SyntheticSettings(80, seed=seed)) for seed in (1, 2))
    pair = GraphPair("", one.source, other.target)
    found = make_aligner().fit(pair).match(pair)
    assert found.is_one_to_one
    assert np.isfinite(found.confidences).all()


@pytest.mark.parametrize("pools", [(0, 0), (5, 0), (0, 5)])
def test_an_empty_pool_gives_no_links(few, planted, pools):
    ids = planted.test.source_ids[: pools[0]], planted.test.target_ids[: pools[1]]
    assert len(few.decide(planted, *ids).last.matching) == 0


def test_nothing_to_begin_with_is_refused(planted):
    sentence = r"nothing to begin with: no seeds, and no names or attributes .*; give --seeds, or leave --channels"
    with pytest.raises(InputError, match=sentence):
        make_aligner().fit(hide(unlinked(planted), ("names", "attributes")))


@pytest.mark.parametrize("wanted", [(), ("name",), ("names", "numbers")])
def test_unknown_channels_are_refused(wanted):
    with pytest.raises(InputError, match=r"channel .*; use some of structure, names"):
        Aligner(channels=wanted)


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_random_seed_out_of_range_is_refused(seed):
    with pytest.raises(InputError, match=f"the seed is {seed}; give a number from 0"):
        Aligner(seed=seed)


@pytest.mark.parametrize("links", [Links.of([300], [0]), Links.of([0], [300]), Links.of([-1], [0])])
def test_seeds_of_entities_that_do_not_exist_are_refused(planted, links):
    with pytest.raises(InputError, match="a seed names an entity that is not in its graph"):
        make_aligner(STRUCTURE).fit(replace(planted, train=links))


def test_parameters_and_repr(planted, few):
    fresh = Aligner(channels=["names", "words"], seed=3)
    assert Aligner(**fresh.get_params()).get_params() == fresh.get_params()
    assert fresh.get_params() == {"channels": (NAMES, WORDS), "encoder": "", "seed": 3, "settings": AgentSettings()}
    assert repr(fresh) == "Aligner(channels=names,words, seed=3, not fitted)"
    assert repr(few) == f"Aligner(channels={','.join(CHANNELS)}, seed=0, fitted)"


# ---- files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["seedless", "few", "weighed"])
def test_a_saved_and_loaded_agent_decides_alike(kind, request, planted, sparse, vectors, tmp_path):
    aligner = request.getfixturevalue(kind)
    aligner.save(tmp_path / "one")
    again = Aligner.load(tmp_path / "one")
    assert again.get_params() == aligner.get_params()
    for name in ("layout", "weights", "calibration", "final_calibration", "history"):
        assert getattr(again, name) == getattr(aligner, name)
    assert learned_bytes(again) == learned_bytes(aligner)
    pair = sparse if kind == "weighed" else planted if kind == "few" else unlinked(planted)
    given = [vectors] if kind == "weighed" else []
    assert bytes_of(again.match(pair, given)) == bytes_of(aligner.match(pair, given))
    again.save(tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()


def test_settings_survive_json():
    settings = replace(SHORT, holdout=HoldoutSettings(parts=5), kept=7)
    assert AgentSettings.from_dict(json.loads(json.dumps(asdict(settings)))) == settings


def test_what_is_no_agent_is_refused(tmp_path, planted, few):
    few.save(tmp_path / "cut short")
    (tmp_path / "cut short").write_bytes((tmp_path / "cut short").read_bytes()[:-1])
    (tmp_path / "nonsense").write_bytes(b"nonsense")
    for name in ("nonsense", "cut short", "missing"):
        with pytest.raises(InputError, match="cannot be read as a trained agent"):
            Aligner.load(tmp_path / name)
    save_file({"a": np.zeros(1)}, tmp_path / "other")
    with pytest.raises(InputError, match=r"no trained agent of this version|cannot be read as a trained agent"):
        Aligner.load(tmp_path / "other")
    fresh = Aligner()
    for action in (
        lambda: fresh.match(planted),
        lambda: fresh.save(tmp_path / "new"),
        lambda: fresh.choose(planted, []),
    ):
        with pytest.raises(InputError, match="the agent has not been trained; call fit or load first"):
            action()


def without(name):
    return lambda arrays, about: arrays.pop(name)


def cut(name, *places):
    return lambda arrays, about: arrays.update({name: arrays[name][places]})


@pytest.mark.parametrize(
    "damage",
    [
        without("channels.weights"),
        without("pairs.linear"),
        without("pairs.mean"),
        cut("pairs.weights", slice(None), slice(-1)),
        cut("channels.weights", slice(-1)),
        cut("pairs.linear", slice(None), slice(3)),
        cut("pairs.mean", slice(5)),
        lambda arrays, about: about["settings"]["pair_scorer"].update(hidden=8),
        lambda arrays, about: about["settings"]["channel_scorer"].update(bends=1),
        lambda arrays, about: about["settings"].pop("passes"),
        lambda arrays, about: about["settings"].update(unheard_of=1),
        lambda arrays, about: about.pop("weights"),
        lambda arrays, about: about.update(scorers={"others": [1, 1]}),
        lambda arrays, about: about.update(format="rlea aligner 0"),
    ],
)
def test_files_that_lack_something_are_refused(few, tmp_path, damage):
    """Arrays gone or cut, or facts that do not go with them."""
    few.save(tmp_path / "agent")
    about, arrays = load_agent_file(tmp_path / "agent")
    damage(arrays, about)
    save_agent_file(tmp_path / "agent", about, arrays)
    with pytest.raises(InputError, match=r"is no whole agent: .*; train it again|no trained agent of this version"):
        Aligner.load(tmp_path / "agent")


@pytest.mark.parametrize("seed", [0, 2])
def test_a_few_seeds_without_edges_between_them_are_enough_to_begin(seed):
    # Of 800 entities 24 are seeds: hardly two are neighbours, so no edge between seeds says which relations correspond.
    pair = generate(SyntheticSettings(num_entities=800, seeds=0.03, valid=0.0, num_relations=30, seed=seed))
    links = Aligner(channels=("structure",)).fit(pair).match(pair)
    assert link_metrics(links, pair.test).f1 > 0.9
