"""The step-by-step form of a learned pass, and its agreement with the compiled one."""

import warnings

import numpy as np
import pytest

from rlea.agent.context_env import MATCH, MISMATCH, ContextEnv
from rlea.agent.features import COLUMNS
from rlea.agent.memory import Board
from rlea.agent.passes import PassSettings, Scene, play_fixed, play_learned, see
from rlea.agent.propagation import SpreadSettings
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, generate

SMALL = PassSettings(candidates=5, spread=SpreadSettings(dim=16))


@pytest.fixture(scope="module", params=[0, 1, 2])
def stage(request):
    """A scene after its fixed passes, what its pairs are worth, and the links that were held out."""
    pair = generate(SyntheticSettings(num_entities=80, seed=request.param))
    board = Board.of(pair.source, pair.target)
    source_ids = np.setdiff1d(np.arange(board.num_source, dtype=np.int32), pair.train.source_ids)
    target_ids = np.setdiff1d(np.arange(board.num_target, dtype=np.int32), pair.train.target_ids)
    scene = Scene(board, pair.train, source_ids, target_ids, seed=3)
    before = play_fixed(scene, SMALL)
    random = np.random.default_rng(request.param)
    worth = see(scene, SMALL, before).keys * 8
    worth = (worth + random.normal(size=len(worth))).astype(np.float32)  # so that the pass decides otherwise
    return scene, before, worth, pair.test


def played(env, policy):
    """All pairs met with the actions and rewards, in order."""
    seen, info = env.reset(seed=0)
    steps = []
    done = info["pair"] is None
    while not done:
        pair, action = info["pair"], policy(seen)
        seen, reward, done, truncated, info = env.step(action)
        assert not truncated
        steps.append((pair, action, reward))
    return steps


@pytest.mark.parametrize("least", [-np.inf, 0.0, 3.0])
def test_the_compiled_pass_is_this_game(stage, least):
    scene, before, worth, _ = stage
    steps = played(ContextEnv(scene, before, worth, SMALL), lambda seen: MATCH if seen[-1] >= least else MISMATCH)
    rate = lambda sight, pairs, worth: np.ones(len(worth), np.float32)  # noqa: E731
    decisions = play_learned(scene, SMALL, before, lambda sight, pairs: worth, rate, least)
    links = list(zip(decisions.source_ids.tolist(), decisions.target_ids.tolist(), strict=True))
    assert [pair for pair, action, _ in steps if action == MATCH] == links
    assert len(links) > 5


def test_it_keeps_the_contract_of_gymnasium(stage):
    from gymnasium.utils.env_checker import check_env

    scene, before, worth, answers = stage
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unbounded boxes, which features have
        check_env(ContextEnv(scene, before, worth, SMALL, answers), skip_render_check=True)


def test_rewards_are_of_asked_entities_alone(stage):
    scene, before, worth, answers = stage
    truth = dict(zip(answers.source_ids.tolist(), answers.target_ids.tolist(), strict=True))
    back = {t: s for s, t in truth.items()}
    steps = played(ContextEnv(scene, before, worth, SMALL, answers), lambda seen: MATCH)
    for (s, t), _, reward in steps:
        asked = s in truth or t in back
        assert reward == (0 if not asked else 1 if truth.get(s) == t else -1)
    assert any(reward > 0 for *_, reward in steps)
    nothing = played(ContextEnv(scene, before, worth, SMALL, answers), lambda seen: MISMATCH)
    assert {reward for *_, reward in nothing} == {0.0}


def test_a_mismatch_sets_aside_until_the_evidence_changes(stage):
    scene, before, worth, _ = stage
    env = ContextEnv(scene, before, worth, SMALL)
    met = [pair for pair, *_ in played(env, lambda seen: MISMATCH)]
    assert len(met) == len(set(met)), "without a match nothing changes, and no pair comes back"
    # The first time around everything is refused, except that every fifth pair is matched: some pairs come back.
    count = iter(range(10**6))
    met = [pair for pair, *_ in played(env, lambda seen: MATCH if next(count) % 5 == 0 else MISMATCH)]
    assert len(met) > len(set(met))


def test_what_is_seen(stage):
    scene, before, worth, _ = stage
    env = ContextEnv(scene, before, worth, SMALL)
    seen, info = env.reset()
    assert seen.shape == (len(COLUMNS) + 1,)
    assert seen[-1] == pytest.approx(worth.max(), rel=1e-5)
    assert info["pair"] == (
        before.pairs.source_ids[worth.argmax()],
        before.pairs.target_ids[worth.argmax()],
    )
    while env.step(MATCH)[2] is False:
        pass
    with pytest.raises(InputError, match="reset"):
        env.step(MATCH)
