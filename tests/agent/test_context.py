"""The context agent as people use it, on planted pairs: better than nearest, reproducible, blind to test links."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.agent.calibration import Calibration, log_odds
from rlea.agent.context import (
    ContextAgent,
    ContextSettings,
    KeySettings,
    calibrate_on,
    num_right,
    settings_of,
    shuffled,
)
from rlea.agent.features import COLUMNS, Sight
from rlea.agent.holdout import GameSettings, make_games, others
from rlea.agent.memory import Board
from rlea.agent.passes import Decisions, PassSettings
from rlea.agent.propagation import SpreadSettings
from rlea.errors import InputError
from rlea.evaluation.metrics import expected_calibration_error
from rlea.graph import GraphPair, Links, choose_pool
from rlea.io.agent_files import load_agent_file, save_agent_file
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.matchers.nearest import match as nearest
from rlea.matching import Task
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

SHORT = ContextSettings(
    candidates=20,
    likenesses=(0.67,),
    given_weights=(3.0, 0.0),
    passes=PassSettings(candidates=10, spread=SpreadSettings(dim=64)),
    key=KeySettings(epochs=30, hidden=16),
)


def planted(num_entities, seed=0):
    """Sparse and noisy: either side lacks two fifths of the facts."""
    shares = {"drop": 0.4, "add": 0.1, "seeds": 0.34, "valid": 0.2}
    return generate(SyntheticSettings(num_entities=num_entities, triples_per_entity=3.0, seed=seed, **shares))


@pytest.fixture(scope="module")
def pair():
    return planted(400)


@pytest.fixture(scope="module")
def small():
    """Where it does not matter what is learned."""
    return planted(120)


@pytest.fixture(scope="module")
def vectors(pair):
    return synthetic_embeddings(pair, noise=3.0)


@pytest.fixture(scope="module")
def agent(pair, vectors):
    return ContextAgent(SHORT).fit(pair, vectors)


def task_of(pair, vectors, seed=0):
    _, source_ids, target_ids = choose_pool(pair, "test")
    return Task(pair.source, pair.target, pair.train, find_candidates(vectors, source_ids, target_ids, 20), seed)


@pytest.fixture(scope="module")
def task(pair, vectors):
    return task_of(pair, vectors)


def weights(agent):
    return b"".join(array.tobytes() for array in agent.key.state().values())


def content(matching):
    return matching.source_ids.tobytes() + matching.target_ids.tobytes() + matching.confidences.tobytes()


def links_of(matching):
    return set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))


def share_right(matching, links):
    return len(links_of(matching) & links_of(links)) / len(links)


def test_one_to_one_and_far_better_than_nearest(agent, task, pair):
    found = agent.match(task)
    assert found.is_one_to_one
    assert links_of(found).isdisjoint(links_of(pair.train))
    assert np.all((found.confidences >= 0) & (found.confidences <= 1))
    assert share_right(nearest(task), pair.test) < 0.5
    assert share_right(found, pair.test) > 0.7


def test_structure_alone_suffices(pair):
    """Vectors of chance, and validation links that tell that they are worth nothing."""
    rng = np.random.default_rng(0)
    noise = Embeddings(*(rng.standard_normal((g.num_entities, 16), np.float32) for g in (pair.source, pair.target)))
    agent = ContextAgent(replace(SHORT, given_weights=(30.0, 0.0))).fit(pair, noise)
    task = task_of(pair, noise)
    assert share_right(nearest(task), pair.test) < 0.05
    assert share_right(agent.match(task), pair.test) > 0.5
    tried = {row["given_weight"]: row["valid_aligned"] for row in agent.history if row["stage"] == "choice"}
    assert agent.chosen.given_weight == max(tried, key=tried.get)
    assert tried[0.0] > tried[30.0]


def test_the_surer_are_more_often_right(agent, task, pair):
    found = agent.match(task)
    gold = links_of(pair.test)
    right = np.array([link in gold for link in zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True)])
    order = np.argsort(-found.confidences, kind="stable")
    half = len(order) // 2
    assert right[order[:half]].mean() > right[order[half:]].mean() + 0.1
    assert abs(found.confidences.mean() - right.mean()) < 0.2


def test_same_seed_same_bytes(agent, pair, vectors, task):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)  # whatever was drawn before
        again = ContextAgent(SHORT).fit(pair, vectors)
    assert weights(again) == weights(agent)
    assert content(again.match(task)) == content(agent.match(task))
    other = ContextAgent(SHORT, seed=1).fit(pair, vectors)
    assert weights(other) != weights(agent)


def test_training_leaves_the_callers_random_numbers_alone(small):
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    ContextAgent(replace(SHORT, states=1, key=KeySettings(epochs=1))).fit(small)
    assert torch.equal(torch.rand(3), expected)


def test_a_pair_is_matched_like_its_task(agent, pair, vectors, task):
    assert content(agent.match(pair, vectors, pool="test")) == content(agent.match(task))
    everybody = agent.match(pair, vectors, pool="all")
    assert everybody.is_one_to_one
    assert len(everybody) > len(pair.test)
    with pytest.raises(InputError, match="give embeddings"):
        agent.match(pair)


def test_saved_and_loaded_agents_decide_alike(agent, task, tmp_path):
    path = tmp_path / "agent.safetensors"
    agent.save(path)
    again = ContextAgent.load(path)
    assert again.settings == agent.settings
    assert again.chosen == agent.chosen
    assert again.history == agent.history
    assert weights(again) == weights(agent)
    assert content(again.match(task)) == content(agent.match(task))
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_settings_survive_json():
    import json
    from dataclasses import asdict

    settings = replace(SHORT, key=KeySettings(without=("kind", "standing")), episodes=4, games=GameSettings(parts=5))
    assert settings_of(json.loads(json.dumps(asdict(settings)))) == settings


def test_what_is_no_agent_is_refused(agent, tmp_path, task, world, pair, vectors):
    (tmp_path / "x").write_bytes(b"nonsense")
    for name in ("x", "missing"):
        with pytest.raises(InputError, match="trained agent"):
            ContextAgent.load(tmp_path / name)
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(1)}, tmp_path / "y")
    with pytest.raises(InputError, match="no trained agent"):
        ContextAgent.load(tmp_path / "y")
    fresh = ContextAgent(SHORT)
    for action in (
        lambda: fresh.match(task),
        lambda: fresh.save(tmp_path / "z"),
        lambda: fresh.choose(pair, vectors),
    ):
        with pytest.raises(InputError, match="not been trained"):
            action()
    with pytest.raises(InputError, match="validation links"):
        agent.choose(replace(pair, valid=Links.empty()), vectors)
    with pytest.raises(InputError, match="the seed is -1"):
        ContextAgent(seed=-1)


def without(name):
    return lambda weights, about: weights.pop(name)


def cut(name, *places):
    return lambda weights, about: weights.update({name: weights[name][places]})


@pytest.mark.parametrize(
    "damage",
    [
        without("weights"),
        without("linear"),
        without("mean"),
        cut("weights", slice(None), slice(-1)),
        cut("weights", slice(-1)),
        cut("linear", slice(None), slice(3)),
        cut("seen", slice(5)),
        lambda weights, about: about["settings"]["key"].update(hidden=8),
        lambda weights, about: about["settings"]["key"].update(bends=1),
        lambda weights, about: about["settings"]["games"].update(parts=7),
        lambda weights, about: about.update(format="rlea context agent 3"),
    ],
)
def test_files_that_lack_something_are_refused(agent, tmp_path, damage):
    """Arrays gone or cut, or settings that do not go with them."""
    agent.save(tmp_path / "agent")
    about, arrays = load_agent_file(tmp_path / "agent")
    damage(arrays, about)
    save_agent_file(tmp_path / "agent", about, arrays)
    with pytest.raises(InputError, match=r"is no whole agent: .*; train it again|no trained agent of this version"):
        ContextAgent.load(tmp_path / "agent")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_files_that_are_cut_short_are_refused(agent, tmp_path, share):
    agent.save(tmp_path / "agent")
    whole = (tmp_path / "agent").read_bytes()
    (tmp_path / "agent").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(InputError, match="cannot be read as a trained agent"):
        ContextAgent.load(tmp_path / "agent")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_too_few_seeds_are_refused(pair, count):
    few = Links.of(pair.train.source_ids[:count], pair.train.target_ids[:count])
    with pytest.raises(InputError, match=f"there are {count}"):
        ContextAgent(SHORT).fit(pair, seeds=few)


def test_the_fewest_seeds_suffice(small):
    """Of two held-out links a part, whatever is right or wrong of them."""
    pair, vectors = small, synthetic_embeddings(small, noise=1.0)
    few = Links.of(pair.train.source_ids[:6], pair.train.target_ids[:6])
    found = ContextAgent(SHORT).fit(pair, vectors, few).match(task_of(replace(pair, train=few), vectors))
    assert found.is_one_to_one
    assert np.isfinite(found.confidences).all()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (GameSettings, {"parts": 1}),
        (GameSettings, {"dangling": 1.0}),
        (ContextSettings, {"states": 0}),
        (ContextSettings, {"episodes": -1}),
    ],
)
def test_settings_that_make_no_sense_are_refused(kind, values):
    with pytest.raises(ValueError, match="needs"):
        kind(**values)


class StoppedError(Exception):
    """Someone pulled the plug."""


# With reinforcement, too, so that all stages are there.
STAGES = replace(SHORT, episodes=3, key=KeySettings(epochs=5, hidden=8))


@pytest.fixture(scope="module")
def undisturbed(small):
    return ContextAgent(STAGES).fit(small)


@pytest.mark.parametrize(
    "stop_at",
    [
        ("agent: games", 2),
        ("agent: supervision", 1),
        ("agent: supervision", 2),
        ("agent: episodes", 2),
        ("agent: calibration", 1),
    ],
)
def test_a_stopped_training_goes_on_to_the_same_weights(small, undisturbed, tmp_path, stop_at):
    checkpoint = tmp_path / "training.safetensors"

    def stop(stage, done, total, note=""):
        if (stage, done) == stop_at:
            raise StoppedError

    with pytest.raises(StoppedError):
        ContextAgent(STAGES).fit(small, progress=stop, checkpoint=checkpoint)
    assert checkpoint.exists() == (stop_at[0] != "agent: games")
    resumed = ContextAgent(STAGES).fit(small, checkpoint=checkpoint)
    assert weights(resumed) == weights(undisturbed)
    assert resumed.chosen == undisturbed.chosen
    assert resumed.history == undisturbed.history


def test_a_finished_stage_is_not_trained_again(small, tmp_path, monkeypatch):
    from rlea.agent import context

    settings = replace(SHORT, key=KeySettings(epochs=2, hidden=8))
    checkpoint = tmp_path / "training.safetensors"
    whole = ContextAgent(settings).fit(small, checkpoint=checkpoint)

    def refuse(*arguments):
        raise AssertionError("trained again")

    monkeypatch.setattr(context, "supervise", refuse)
    assert weights(ContextAgent(settings).fit(small, checkpoint=checkpoint)) == weights(whole)
    with pytest.raises(InputError, match="another run"):
        ContextAgent(settings, seed=1).fit(small, checkpoint=checkpoint)


def test_test_links_never_count(pair, vectors, task, agent):
    """Without test links, or with test links that are wrong, the same bytes come out; the pool comes from the task."""
    expected = content(agent.match(task))
    order = np.random.default_rng(0).permutation(len(pair.test))
    wrong = Links.of(pair.test.source_ids, pair.test.target_ids[order])
    for test in (Links.empty(), wrong):
        changed = replace(pair, test=test)
        assert content(ContextAgent(SHORT).fit(changed, vectors).match(task)) == expected


def test_validation_links_do_count(pair, vectors, agent):
    """The guard against a test that cannot fail: links that may be read do make a difference."""
    order = np.random.default_rng(0).permutation(len(pair.valid))
    wrong = replace(pair, valid=Links.of(pair.valid.source_ids, pair.valid.target_ids[order]))
    found = [row["valid_aligned"] for row in agent.history if row["stage"] == "choice"]
    misled = [
        row["valid_aligned"] for row in ContextAgent(SHORT).fit(wrong, vectors).history if row["stage"] == "choice"
    ]
    assert max(misled) < max(found)


def test_precision_keeps_the_surest(agent, task, pair):
    every, kept = agent.match(task), agent.match(task, precision=0.9)
    assert links_of(kept) < links_of(every)
    assert kept.confidences.mean() >= 0.9
    least = kept.confidences.min()
    assert len(kept) == (every.confidences >= least).sum()  # a threshold: all above it, none below
    lower = every.confidences[every.confidences < least].max()
    assert every.confidences[every.confidences >= lower].mean() < 0.9  # and the lowest that will do
    right = [len(links_of(links) & links_of(pair.test)) / len(links) for links in (every, kept)]
    assert right[1] > max(right[0] + 0.03, 0.8)
    assert content(agent.match(task, precision=0.01)) == content(every)
    assert len(agent.match(task, precision=1.0)) < len(kept)


def test_empty_pools_give_an_empty_matching(agent, pair, vectors):
    ids = pair.test.source_ids[:5], pair.test.target_ids[:5]
    nobody = np.zeros(0, np.int32)
    for pools in ((nobody, nobody), (ids[0], nobody), (nobody, ids[1])):
        task = Task(pair.source, pair.target, pair.train, find_candidates(vectors, *pools, 5))
        assert len(agent.match(task)) == 0
        assert len(agent.match(task, precision=0.9)) == 0


@pytest.mark.parametrize("kind", ["inner", "manhattan", "sparse"])
def test_all_kinds_of_vectors(agent, pair, vectors, kind):
    if kind == "sparse":
        from scipy.sparse import csr_matrix

        given = Embeddings(*(csr_matrix(np.maximum(x, 0.1) - 0.1) for x in (vectors.source, vectors.target)))
    else:
        given = Embeddings(vectors.source, vectors.target, measure=kind)
    task = task_of(pair, given)
    found = agent.match(task)
    assert found.is_one_to_one
    assert share_right(found, pair.test) > share_right(nearest(task), pair.test) + 0.1


def test_sparse_vectors_with_nothing_in_common(agent, pair):
    from scipy.sparse import csr_matrix

    ends = [np.zeros((g.num_entities, 2), np.float32) for g in (pair.source, pair.target)]
    ends[0][:, 0], ends[1][:, 1] = 1, 1
    task = task_of(pair, Embeddings(*(csr_matrix(x) for x in ends)))
    assert len(task.candidates.pairs) == 0
    found = agent.match(task)
    assert found.is_one_to_one
    assert share_right(found, pair.test) > 0.3


def test_reinforcement_is_told_and_counted(small):
    told = []
    settings = replace(SHORT, supervised=False, states=1, episodes=4)
    agent = ContextAgent(settings).fit(small, on_episode=told.append)
    assert [row["episode"] for row in told] == [1, 2, 3, 4]
    assert {"aligned", "reward", "length", "aligned_undrawn"} <= set(told[0])
    assert [row["stage"] for row in agent.history] == ["reinforcement"] * 4


def test_choosing_anew_fits_other_vectors(agent, pair, vectors, tmp_path):
    """What is learned stays, what is chosen changes: clear vectors deserve a hearing."""
    agent.save(tmp_path / "agent")
    again = ContextAgent.load(tmp_path / "agent")
    clear = synthetic_embeddings(pair, noise=0.3)
    again.choose(pair, clear)
    assert weights(again) == weights(agent)
    assert again.chosen.given_weight == 3.0
    assert again.chosen.by == "validation links"
    assert share_right(again.match(task_of(pair, clear)), pair.test) > 0.9  # measured 89 of 92 links


def test_games_hold_links_out(pair):
    """Every seed is held out once; held-out links, and hidden targets, are no part of the scene that is played."""
    board = Board.of(pair.source, pair.target)
    games = make_games(board, pair, pair.train, GameSettings(dangling=0.3), SHORT.passes)
    assert len(games) == 3
    asked = [links_of(game.asked) for game in games]
    assert set.union(*asked) == links_of(pair.train)
    assert sum(map(len, asked)) == len(pair.train)
    for game, held in zip(games, asked, strict=True):
        assert links_of(game.scene.seeds) == links_of(pair.train) - held
        assert game.scene.given is None
        hidden = game.asked.target_ids[game.hidden]
        assert 0 < len(hidden) < len(game.asked)
        assert set(game.asked.source_ids.tolist()) <= set(game.scene.source_ids.tolist())
        assert not np.isin(hidden, game.scene.target_ids).any()
        assert np.isin(game.asked.target_ids[~game.hidden], game.scene.target_ids).all()
        assert not np.isin(hidden, game.decisions.pairs.target_ids).any()


def test_examples_and_judgement_by_eye(pair):
    """Groups are the asked entities of either side; the truth is the counterpart where it is among the pairs."""
    ids = np.array([0, 0, 1, 1, 2], np.int32), np.array([0, 1, 0, 2, 2], np.int32)
    game = make_games(Board.of(pair.source, pair.target), pair, pair.train, GameSettings(), SHORT.passes)[0]
    game.answers[:], game.answers_back[:] = -2, -2
    game.answers[0], game.answers[1] = 1, -1  # 0 belongs to 1; the counterpart of 1 was taken out
    game.answers_back[1] = 0
    one = np.ones(2, np.float32)
    matched = np.array([0, 2], np.int32), np.array([0, 2], np.int32)
    game.decisions = Decisions(*matched, one, one, Pairs(*ids))
    features = np.zeros((5, len(COLUMNS)), np.float32)
    features[:, 0] = np.arange(5)
    examples = game.examples(Sight(features, np.array([0.1, 0.2, 0.3, 0.9, 0.0], np.float32)))
    groups = [
        examples.features[examples.places[low:high], 0].tolist()
        for low, high in zip(examples.starts, examples.starts[1:], strict=False)
    ]
    assert groups == [[1, 0], [3, 2], [1]]  # sources 0 and 1, target 1; best key first
    truths = [examples.features[t, 0] if t >= 0 else -1 for t in examples.truths]
    assert truths == [1, -1, 1]
    known, right = game.judge(game.decisions)
    assert known.tolist() == [0]  # of (2, 2) neither end was asked
    assert right.tolist() == [False, False]
    trial = game.trial(Sight(features, np.zeros(5, np.float32)))
    assert trial.rewards.tolist() == [-1, 1, -1, -1, 0]


def test_small_parts(pair):
    seeds = Links.of([1, 3], [0, 2])
    source_ids, target_ids = others(pair, seeds)
    assert len(source_ids) == pair.source.num_entities - 2
    assert not np.isin([0, 2], target_ids).any()
    mixed = shuffled(source_ids, 0)
    assert sorted(mixed.tolist()) == source_ids.tolist() != mixed.tolist()
    one = np.ones(2, np.float32)
    found = np.array([1, 3], np.int32), np.array([0, 5], np.int32)
    decisions = Decisions(*found, one, one, Pairs(*np.zeros((2, 0), np.int32)))
    assert num_right(decisions, seeds) == 1


def test_calibration_looks_at_the_links_of_known_sources(monkeypatch):
    """Link 1 is right and 2 wrong; 3 has a known target and 4 nothing known: a wrong pair is not counted twice."""
    source, target = np.array([1, 2, 3, 4], np.int32), np.array([1, 5, 2, 4], np.int32)
    worth = np.array([4.0, 1.0, 2.0, 3.0], np.float32)
    ones = np.ones(4, np.float32)
    decisions = Decisions(source, target, ones, ones, Pairs(source, target), worth=worth)
    assert calibrate_on(decisions, Links.of([1, 2], [1, 2])) is None, "two links are too few"
    monkeypatch.setattr("rlea.agent.calibration.FEWEST", 2)
    fitted = calibrate_on(decisions, Links.of([1, 2], [1, 2]))
    odds = log_odds(decisions.pairs, worth)
    assert fitted == Calibration.fit(odds[:2], np.array([True, False]))
    assert fitted != Calibration.fit(odds[:3], np.array([True, False, False]))


def test_a_pair_without_edges_is_decided_by_its_vectors(world):
    """No relations at all: training sees nothing, and the given vectors decide."""
    gold = world.gold
    pair = GraphPair("world", world.source, world.target, Links.of(gold.source_ids[:20], gold.target_ids[:20]))
    ids = gold.source_ids[20:], gold.target_ids[20:]
    agent = ContextAgent(SHORT).fit(pair)
    found = agent.match(Task(world.source, world.target, pair.train, find_candidates(world.embeddings, *ids, 5)))
    assert found.is_one_to_one
    assert share_right(found, Links.of(*ids)) > 0.95


def test_best_firsts_key_is_kept_where_it_does_better():
    """The demo pair: few seeds, and names that tell nearly all. The agent does no worse than what it starts from."""
    import rlea
    from rlea.demo import demo_folder
    from rlea.evaluation.metrics import link_metrics
    from rlea.matchers.best_first import match
    from rlea.pipeline import choose_pool

    pair = rlea.read(demo_folder())
    names = rlea.embed_entities(pair, "names")
    agent = ContextAgent(replace(SHORT, likenesses=(0.67, 0.0))).fit(pair, names)
    _, *pools = choose_pool(pair, "all")
    task = Task(pair.source, pair.target, pair.train, find_candidates(names, *pools, 20))
    plain = link_metrics(match(task), pair.test, pool="all").f1
    assert link_metrics(agent.match(task), pair.test, pool="all").f1 > plain - 0.01
    # With a learned key that puts the worst first, validation links tell.
    agent.key.linear *= -1
    agent.choose(pair, names)
    assert (agent.chosen.learned, agent.chosen.by) == (False, "validation links")
    assert link_metrics(agent.match(task), pair.test, pool="all").f1 > plain - 0.01


@pytest.mark.parametrize(("few", "learned"), [(10**6, False), (0, True)])
def test_without_validation_links_few_seeds_are_not_trusted(pair, vectors, monkeypatch, few, learned):
    monkeypatch.setattr("rlea.agent.context.FEW_SEEDS", few)
    agent = ContextAgent(SHORT).fit(replace(pair, valid=Links.empty()), vectors)
    assert (agent.chosen.learned, agent.chosen.by) == (learned, "default")


def test_confidences_are_calibrated_where_nothing_is_learned_too(pair, vectors, monkeypatch):
    """With best-first's key alone: chances are fitted to validation links, and the links stay what they were."""
    agent = ContextAgent(SHORT).fit(pair, vectors)
    agent.chosen = replace(agent.chosen, learned=False, calibration=Calibration(bias=-4.0))
    [fixed] = agent.decide(pair, vectors)
    [everyone] = agent.decide(pair, vectors, pool="all")
    monkeypatch.setattr("rlea.agent.calibration.FEWEST", 50)
    fitted = calibrate_on(everyone, pair.valid)
    assert fitted is not None
    agent.chosen = replace(agent.chosen, calibration=fitted)
    [again] = agent.decide(pair, vectors)
    assert again.source_ids.tolist() == fixed.source_ids.tolist()
    assert again.target_ids.tolist() == fixed.target_ids.tolist()
    errors = [expected_calibration_error(found.matching, pair.test) for found in (fixed, again)]
    assert errors[1] < min(0.15, errors[0])
    assert again.confidences.mean() > fixed.confidences.mean()


def test_few_seeds_without_validation_links_leave_the_usual_confidences(pair, vectors):
    """Games do not see the given vectors, so nothing is fitted to them for a key that is made of these."""
    agent = ContextAgent(SHORT).fit(replace(pair, valid=Links.empty()), vectors)
    assert (agent.chosen.learned, agent.chosen.calibration) == (False, Calibration())
    assert expected_calibration_error(agent.match(pair, vectors), pair.test) < 0.2
