"""A trained agent on what it was not trained on: another fold, and entities that came later."""

from dataclasses import replace

import numpy as np
import pytest

from rlea.graph import Links
from rlea.matching import Task
from rlea.paper.agent import Agent
from rlea.paper.episode import EnvSettings
from rlea.paper.presets import AgentSettings
from rlea.paper.reinforce import TrainSettings
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings

from .conftest import World, make_graph, right_and_wrong, take

# A decoy costs a point, so that the agent has to learn the mark and cannot say yes to everything.
SETTINGS = AgentSettings(
    candidates=2,
    pool="all",
    env=EnvSettings(false_mismatch=-1.0, false_match=-1.0),
    train=TrainSettings(
        episodes=250, learning_rate=0.01, discount=0.0, discount_steps=False, scale_rate="not", batch_steps=2048
    ),
)


@pytest.fixture(scope="module")
def world():
    return World(size=60)


@pytest.fixture(scope="module")
def folds(world):
    """Two folds of the same gold: seeds and test links of each, the seeds of the one being tested in the other."""
    order = np.random.default_rng(3).permutation(len(world.gold))
    one, other = take(world.gold, order[:30]), take(world.gold, order[30:])
    return (one, other), (other, one)


@pytest.fixture(scope="module")
def trained(world, folds):
    """An agent of the first fold."""
    return Agent(SETTINGS).fit(world.pair(), world.embeddings, folds[0][0])


@pytest.fixture(params=["as trained", "saved and loaded"])
def agent(request, trained, tmp_path):
    """That agent, itself or from its file."""
    if request.param == "as trained":
        return trained
    trained.save(tmp_path / "agent.safetensors")
    return Agent.load(tmp_path / "agent.safetensors")


@pytest.mark.parametrize("number", [0, 1])
def test_another_fold_of_the_pair(agent, world, folds, number):
    """The agent of the first fold on the test entities of either, their decoys among the targets."""
    seeds, test = folds[number]
    targets = np.setdiff1d(np.arange(world.target.num_entities), seeds.target_ids)
    candidates = find_candidates(world.embeddings, test.source_ids, targets, 2)
    found = agent.match(Task(world.source, world.target, seeds, candidates))
    assert found.is_one_to_one
    right, wrong = right_and_wrong(found, test)
    assert right >= 27
    assert wrong <= 3


def extend(world, more, seed):
    """The world with `more` new sources, counterparts and decoys, and triples that tie them to the old ones.

    Targets with the mark are neighbours of such targets only, decoys of decoys: the planted truth stays readable in
    the means over neighbourhoods. Identifiers sort new entities between the old ones, so that all ids are others.
    """
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((more, world.embeddings.source.shape[1] - 1)).astype(np.float32)
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    sources = dict(zip(world.source.entities, world.embeddings.source, strict=True))
    targets = dict(zip(world.target.entities, world.embeddings.target, strict=True))
    links = zip(world.gold.source_ids, world.gold.target_ids, strict=True)
    whole = {world.source.entities[s]: world.target.entities[t] for s, t in links}
    decoys = [world.target.entities[d] for d in world.decoys]
    new = {f"s{i:03}x": f"t{i:03}x" for i in range(more)}
    whole |= new
    source_edges, target_edges = [], []
    for vector, (s, t) in zip(base, new.items(), strict=True):
        sources[s], targets[t], targets[f"{t}-decoy"] = (np.append(vector, np.float32(mark)) for mark in (0, 1, -1))
        other = str(rng.choice(list(whole)))
        source_edges.append((s, "r", other))
        target_edges += [(t, "q", whole[other]), (f"{t}-decoy", "q", str(rng.choice(decoys)))]
    result = object.__new__(World)
    result.source, result.target = make_graph(source_edges, list(sources)), make_graph(target_edges, list(targets))
    result.embeddings = Embeddings(
        np.stack([sources[name] for name in result.source.entities]),
        np.stack([targets[name] for name in result.target.entities]),
    )
    ids = [(result.source.entity_index[s], result.target.entity_index[t]) for s, t in whole.items()]
    result.gold = Links.of(*zip(*ids, strict=True))
    return result, Links.of(*zip(*ids[-more:], strict=True))


def test_entities_that_came_later(agent, world):
    """New entities and triples in the same space, decoded by themselves and together with the old ones."""
    larger, new = extend(world, 25, seed=5)
    assert larger.source.num_triples == 25
    assert larger.source.num_entities == world.source.num_entities + 25
    old_targets = np.setdiff1d(larger.gold.target_ids, new.target_ids)
    targets = np.setdiff1d(np.arange(larger.target.num_entities), old_targets)

    def match_new(vectors):
        found = find_candidates(vectors, new.source_ids, targets, 2)
        return agent.match(Task(larger.source, larger.target, Links.empty(), found))

    alone, together = match_new(larger.embeddings), agent.match(larger.task(2))
    assert alone.is_one_to_one
    assert together.is_one_to_one
    right, wrong = right_and_wrong(alone, new)
    assert right >= 22
    assert wrong <= 3
    right, wrong = right_and_wrong(together, larger.gold)
    assert right >= 75
    assert wrong <= 5
    # A planted truth that it would get right in any case would show nothing.
    blind = replace(larger.embeddings, target=larger.embeddings.target * np.array([1.0] * 11 + [-1.0], np.float32))
    assert right_and_wrong(match_new(blind), new)[0] <= 3
