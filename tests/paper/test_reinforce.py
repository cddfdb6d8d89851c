"""REINFORCE: one gradient step by finite differences, and what must and must not be learned."""

import numpy as np
import pytest
import torch

from rlea.paper.agent import Agent
from rlea.paper.episode import EnvSettings, Steps, label_sequence, make_sequence
from rlea.paper.policy import Policy, PolicySettings, Value
from rlea.paper.presets import AgentSettings
from rlea.paper.reinforce import Learner, PolicyInput, TrainSettings, decode, learn, match_probabilities, roll_out

from .conftest import right_and_wrong

ALL = slice(None)


def set_up(world, settings, k=4):
    candidates = world.candidates(k)
    columns = candidates.forward_columns.astype(np.int64)
    ids = (torch.as_tensor(one.astype(np.int64)) for one in (candidates.source_ids, candidates.target_ids[columns]))
    inputs = PolicyInput(label_sequence(make_sequence(candidates, k), candidates, world.gold), *world.views(), *ids)
    torch.manual_seed(0)
    small = PolicySettings(hidden=6, pair_hidden=3)
    return Learner(Policy(12, small), Value(12, small), settings), inputs


def test_one_step_is_the_gradient_of_the_objective(world):
    """Plain gradient ascent on sum gamma^i G log pi, checked against finite differences of that sum."""
    settings = TrainSettings(learning_rate=0.0, baseline=False, discount=0.9, batch_steps=10_000)
    learner, inputs = set_up(world, settings)
    learner.policy.double()
    for view in (inputs.source, inputs.target):
        view.averaged = view.averaged.double()
        view.vectors = view.vectors.double()
    rng = np.random.default_rng(0)
    steps = Steps(rng.permutation(len(inputs.sequence))[:20], rng.integers(0, 2, 20).astype(np.int8))
    return_ = rng.standard_normal(20).astype(np.float32)
    learn(learner, inputs, steps, return_, rng)
    factor = (0.9 ** np.arange(20)).astype(np.float32)

    def objective():
        with torch.no_grad():
            log = inputs.per_pair(inputs.run(learner.policy, ALL))
            chosen = log[torch.as_tensor(steps.pairs), torch.as_tensor(steps.actions.astype(np.int64))].numpy()
        return -(factor * return_ * chosen).mean()

    for name, parameter in learner.policy.named_parameters():
        place = tuple(int(rng.integers(0, size)) for size in parameter.shape)
        with torch.no_grad():
            parameter[place] += 1e-5
            up = objective()
            parameter[place] -= 2e-5
            down = objective()
            parameter[place] += 1e-5
        assert float(parameter.grad[place]) == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-8), name


def test_baseline_moves_towards_the_return(world):
    learner, inputs = set_up(world, TrainSettings(learning_rate=0.01, scale_rate="not"))

    def error():
        with torch.no_grad():
            estimate = inputs.per_pair(inputs.run(learner.value, ALL))[:30]
        return float((estimate - 5.0).square().mean())

    before = error()
    steps, return_ = Steps(np.arange(30), np.ones(30, np.int8)), np.full(30, 5.0, np.float32)
    for _ in range(200):
        learn(learner, inputs, steps, return_, np.random.default_rng(0))
    assert error() < 0.2 * before


def trained(world, rules, policy=None):
    """An agent after 250 episodes in which each decision is judged by its own reward."""
    train = TrainSettings(episodes=250, learning_rate=0.01, discount=0.0, discount_steps=False, scale_rate="not")
    settings = AgentSettings(candidates=2, pool="all", env=rules, policy=policy or PolicySettings(), train=train)
    return Agent(settings).fit(world.pair(), world.embeddings, world.gold)


def test_learns_to_accept_exactly_the_marked_pairs(world):
    """A decoy costs a point: the agent must learn the mark, which similarity cannot see."""
    agent = trained(world, EnvSettings(false_mismatch=-1.0, false_match=-1.0))
    right, wrong = right_and_wrong(agent.match(world.task(2)), world.gold)
    assert right >= 38
    assert wrong <= 1


def test_with_the_wrong_sign_it_does_not(world):
    agent = trained(world, EnvSettings(true_match=-1.0, false_mismatch=1.0, false_match=1.0))
    right, _ = right_and_wrong(agent.match(world.task(2)), world.gold)
    assert right <= 2


def test_paper_rewards_teach_to_say_yes(world):
    """A wrong match costs nothing at once in the paper's rewards: every pair is accepted, marked or not."""
    agent = trained(world, EnvSettings(), PolicySettings(estimator=False))
    assert len(agent.match(world.task(2))) == 40
    assert agent.probabilities(world.task(2))[1].min() > 0.5


def test_random_order_is_another_order_each_episode(world):
    _, inputs = set_up(world, TrainSettings())
    half, never = np.full(len(inputs.sequence), 0.5, np.float32), np.zeros(len(inputs.sequence), np.float32)

    def order(episode, **rules):
        return roll_out(inputs.sequence, half, never, EnvSettings(**rules), np.random.default_rng([0, episode])).pairs

    assert order(1, random_order=True)[:10].tolist() != order(2, random_order=True)[:10].tolist()
    assert (np.diff(order(1)) > 0).all()


def test_decoding_takes_the_likelier_action_unless_drawn(world):
    learner, inputs = set_up(world, TrainSettings())
    probability = match_probabilities(learner.policy, inputs)
    steps = decode(inputs.sequence, probability)
    assert ((probability[steps.pairs] >= 0.5) == (steps.actions == 1)).all()
    draws = np.random.default_rng(0).random(len(inputs.sequence), dtype=np.float32)
    drawn = decode(inputs.sequence, probability, draws)
    assert ((draws[drawn.pairs] < probability[drawn.pairs]) == (drawn.actions == 1)).all()


@pytest.mark.parametrize(("scaling", "rate"), [("root", 0.04), ("size", 0.16), ("not", 0.01)])
def test_the_rate_grows_with_the_batch_as_asked(scaling, rate):
    learner = Learner(Policy(4), Value(4), TrainSettings(learning_rate=0.01, batch_steps=16, scale_rate=scaling))
    for optimiser in (learner.policy_optimiser, learner.value_optimiser):
        assert optimiser.param_groups[0]["lr"] == pytest.approx(rate)
