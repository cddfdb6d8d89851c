"""REINFORCE: one gradient step by finite differences, and what must and must not be learned."""

import numpy as np
import pytest
import torch

from rlea.paper.agent import Agent
from rlea.paper.deck import Steps, label_deck, make_deck
from rlea.paper.env import EnvSettings
from rlea.paper.policy import GraphView, Policy, PolicySettings, Value
from rlea.paper.presets import AgentSettings
from rlea.paper.reinforce import Learner, Table, TrainSettings, decode, learn, match_probabilities, roll_out

CPU = torch.device("cpu")


def set_up(world, settings, k=4):
    candidates = world.candidates(k)
    deck = label_deck(make_deck(candidates, k), candidates, world.gold)
    views = (
        GraphView(world.source, world.embeddings.source, CPU),
        GraphView(world.target, world.embeddings.target, CPU),
    )
    columns = candidates.forward_columns.astype(np.int64)
    table = Table(
        deck,
        torch.as_tensor(candidates.source_ids.astype(np.int64)),
        torch.as_tensor(candidates.target_ids[columns].astype(np.int64)),
    )
    torch.manual_seed(0)
    small = PolicySettings(hidden=6, pair_hidden=3)
    learner = Learner(Policy(12, small), Value(12, small), settings)
    return learner, views, table


def test_one_step_is_the_gradient_of_the_objective(world):
    """Plain gradient ascent on sum gamma^i G log pi, checked against finite differences of that sum."""
    settings = TrainSettings(learning_rate=0.0, baseline=False, discount=0.9, batch_steps=10_000)
    learner, views, table = set_up(world, settings)
    learner.policy.double()
    learner.value.double()
    for view in views:
        view.averaged = view.averaged.double()
        view.vectors = view.vectors.double()
    rng = np.random.default_rng(0)
    steps = Steps(rng.permutation(len(table.deck))[:20], rng.integers(0, 2, 20).astype(np.int8))
    return_ = rng.standard_normal(20).astype(np.float32)
    learn(learner, *views, table, steps, return_, rng)
    factor = 0.9 ** np.arange(20)

    def objective():
        with torch.no_grad():
            log = table.per_pair(learner.policy(*views, table.source_ids, table.target_ids))
            chosen = log[torch.as_tensor(steps.pairs), torch.as_tensor(steps.actions.astype(np.int64))].numpy()
        return -(factor.astype(np.float32) * return_ * chosen).mean()

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
    learner, views, table = set_up(world, TrainSettings(learning_rate=0.01, scale_rate="not"))
    steps = Steps(np.arange(30), np.ones(30, np.int8))
    return_ = np.full(30, 5.0, np.float32)

    def error():
        with torch.no_grad():
            estimate = table.per_pair(learner.value(*views, table.source_ids, table.target_ids))[:30]
        return float((estimate - 5.0).square().mean())

    before = error()
    for _ in range(200):
        learn(learner, *views, table, steps, return_, np.random.default_rng(0))
    assert error() < 0.2 * before


def quick(**train):
    return AgentSettings(
        candidates=2,
        pool="all",
        env=train.pop("env", EnvSettings(false_mismatch=-1.0, false_match=-1.0)),
        policy=train.pop("policy", PolicySettings()),
        train=TrainSettings(
            **{
                "episodes": 250,
                "learning_rate": 0.01,
                "discount": 0.0,
                "discount_steps": False,
                "scale_rate": "not",
                **train,
            }
        ),
    )


def right_and_wrong(world, agent):
    found = agent.match(world.task(2))
    gold = dict(zip(world.gold.source_ids.tolist(), world.gold.target_ids.tolist(), strict=True))
    right = sum(gold[s] == t for s, t in zip(found.source_ids.tolist(), found.target_ids.tolist(), strict=True))
    return right, len(found) - right


def test_learns_to_accept_exactly_the_marked_pairs(world):
    """A decoy costs a point: the agent must learn the mark, which similarity cannot see."""
    agent = Agent(quick()).fit(world.pair(), world.embeddings, world.gold)
    right, wrong = right_and_wrong(world, agent)
    assert right >= 38
    assert wrong <= 1


def test_with_the_wrong_sign_it_does_not(world):
    rules = EnvSettings(true_match=-1.0, false_mismatch=1.0, false_match=1.0)
    agent = Agent(quick(env=rules)).fit(world.pair(), world.embeddings, world.gold)
    right, _ = right_and_wrong(world, agent)
    assert right <= 2


def test_paper_rewards_teach_to_say_yes(world):
    """A wrong match costs nothing at once in the paper's rewards: every pair is accepted, marked or not."""
    settings = quick(env=EnvSettings(), policy=PolicySettings(estimator=False))
    agent = Agent(settings).fit(world.pair(), world.embeddings, world.gold)
    found = agent.match(world.task(2))
    assert len(found) == 40
    task = world.task(2)
    deck = make_deck(task.candidates, 2)
    views = agent._views(world.source, world.target, world.embeddings)
    assert match_probabilities(agent.policy, *views, agent._table(deck, task.candidates)).min() > 0.5


def test_random_order_is_another_order_each_episode(world):
    _, _, table = set_up(world, TrainSettings())
    probability = np.full(len(table.deck), 0.5, np.float32)
    never = np.zeros(len(table.deck), np.float32)
    rules = EnvSettings(random_order=True)
    one = roll_out(table.deck, probability, never, rules, np.random.default_rng([0, 1]))
    two = roll_out(table.deck, probability, never, rules, np.random.default_rng([0, 2]))
    assert one.pairs[:10].tolist() != two.pairs[:10].tolist()
    fixed = roll_out(table.deck, probability, never, EnvSettings(), np.random.default_rng([0, 1]))
    assert (np.diff(fixed.pairs) > 0).all()


def test_decoding_takes_the_likelier_action_unless_drawn(world):
    learner, views, table = set_up(world, TrainSettings())
    probability = match_probabilities(learner.policy, *views, table)
    steps = decode(table.deck, probability)
    assert ((probability[steps.pairs] >= 0.5) == (steps.actions == 1)).all()
    draws = np.random.default_rng(0).random(len(table.deck), dtype=np.float32)
    drawn = decode(table.deck, probability, draws)
    assert ((draws[drawn.pairs] < probability[drawn.pairs]) == (drawn.actions == 1)).all()


@pytest.mark.parametrize(("scaling", "rate"), [("root", 0.04), ("size", 0.16), ("not", 0.01)])
def test_the_rate_grows_with_the_batch_as_asked(scaling, rate):
    settings = TrainSettings(learning_rate=0.01, batch_steps=16, scale_rate=scaling)
    learner = Learner(Policy(4), Value(4), settings)
    for optimiser in (learner.policy_optimiser, learner.value_optimiser):
        assert optimiser.param_groups[0]["lr"] == pytest.approx(rate)
