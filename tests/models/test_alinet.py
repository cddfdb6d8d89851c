import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import torch

from rlea.graph import GraphPair
from rlea.models.alinet import (
    AliNet,
    AliNetSettings,
    Graph,
    TriplesByRelation,
    alignment_loss,
    attend,
    convolve,
    draw_distinct,
    join_layers,
    lent_triples,
    network,
    relation_loss,
    two_steps,
)
from rlea.models.edges import Edges, both_ways

from .conftest import started

SHORT = AliNetSettings(
    input_dim=16, hidden_dim=12, output_dim=8, batch_size=20, num_neighbours=15, relation_triples=100, refresh_every=3
)


def small_graph() -> Graph:
    """0 - 1 - 2 - 3 in a row, 3 two steps from 1 and 0 from 2."""
    near, _ = Edges.of(*both_ways(np.array([0, 1, 2]), np.array([1, 2, 3]), 4), (4, 4))
    far, _ = Edges.of(*both_ways(np.array([0, 1]), np.array([2, 3]), 4), (4, 4))
    size = torch.tensor([2.0, 3.0, 3.0, 2.0])
    return Graph(near, 1 / (size[near.rows] * size[near.columns]).sqrt(), far)


def random_numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) - 0.5


def test_direct_neighbours_by_hand():
    given, weight, bias = random_numbers(4, 3), random_numbers(3, 2, seed=1), torch.tensor([0.5, -1.0])
    result = convolve(given, weight, bias, small_graph())
    summed = given[0] / 6**0.5 + given[1] / 3 + given[2] / 3
    torch.testing.assert_close(result[1], (summed @ weight + bias).tanh())


def test_distant_neighbours_are_weighted_by_a_softmax():
    given, own, other, weight = (random_numbers(4, 4, seed=seed) * 3 for seed in range(4))
    result = attend(given, own, other, weight, small_graph())
    to_own, to_other = (given[1] @ own @ given[1]).tanh(), [(given[j] @ other @ given[j]).tanh() for j in (1, 3)]
    shares = torch.nn.functional.leaky_relu(torch.stack([to_own + each for each in to_other]), 0.2).softmax(dim=0)
    torch.testing.assert_close(result[1], ((shares[0] * given[1] + shares[1] * given[3]) @ weight).tanh())


def test_the_gate_chooses_between_near_and_far():
    shapes = {"input": (4, 3), "near": (3, 2), "far": (3, 2), "own": (3, 3), "other": (3, 3)}
    shapes |= {"gate": (2, 2), "last": (2, 2)}
    parameters = {name: random_numbers(*shape, seed=seed) for seed, (name, shape) in enumerate(shapes.items())}
    parameters |= {name: torch.zeros(2) for name in ("near_bias", "last_bias")}
    graph = small_graph()
    near = convolve(parameters["input"], parameters["near"], torch.zeros(2), graph)
    far = attend(*(parameters[name] for name in ("input", "own", "other", "far")), graph)
    for bias, expected in ((100.0, near), (-100.0, far)):
        given, hidden, last = network({**parameters, "gate_bias": torch.full((2,), bias)}, graph)
        torch.testing.assert_close(hidden, expected)
        torch.testing.assert_close(last, convolve(expected, parameters["last"], torch.zeros(2), graph))
        assert given is parameters["input"]


def test_layers_are_joined_at_equal_length():
    joined = join_layers([torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.5]])])
    torch.testing.assert_close(joined, torch.tensor([[0.6, 0.8, 0.0, 1.0]]) / 2**0.5)


def test_the_alignment_loss_by_hand():
    vectors = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0], [-1.0, 0.0]])
    seeds = torch.tensor([[0, 1]])
    negatives = torch.tensor([[[2, 0]], [[3, 2]]])  # 0 is the source end itself
    settings = AliNetSettings(margin=2.5, negative_weight=0.1)
    near = 0.4**2 + 0.8**2
    from_1_to_2, from_0_to_2 = 0.6**2 + 0.2**2, 2.0  # and 3 is 4 away from 0, beyond the margin
    expected = near + 0.1 * ((2.5 - from_1_to_2) + (2.5 - from_0_to_2))
    assert alignment_loss(vectors, seeds, negatives, settings).item() == pytest.approx(expected, rel=1e-6)


def test_the_relation_loss_by_hand():
    vectors = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 4.0], [1.0, 1.0]])
    heads, tails = torch.tensor([[1, 2], [3, 3]]), torch.tensor([[0, 0], [1, 1]])
    # First relation: differences (1, 0) and (0, 4), half of their difference (1, -4) off the mean; second: no spread.
    assert relation_loss(vectors, heads, tails).item() == pytest.approx(2 * (0.5**2 + 2**2))


def test_triples_are_drawn_by_relation():
    triples = np.array([[0, 7, 1], [2, 3, 3], [4, 7, 5]], dtype=np.int32)
    by_relation = TriplesByRelation.of(triples, 80)
    heads, tails = by_relation.draw(np.random.default_rng(0))
    assert heads.shape == tails.shape == (2, 40)
    assert set(zip(heads[0].tolist(), tails[0].tolist(), strict=True)) == {(2, 3)}
    assert set(zip(heads[1].tolist(), tails[1].tolist(), strict=True)) == {(0, 1), (4, 5)}


def test_seeds_lend_their_edges():
    source = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]], dtype=np.int32)
    target = np.array([[10, 5, 11], [13, 5, 10]], dtype=np.int32)
    seeds = np.array([[0, 10], [1, 11], [2, 12]], dtype=np.int32)
    # 0 - 1 is known as 10 - 11; 13 is no seed, so nothing is lent back.
    assert lent_triples(source, target, seeds).tolist() == [[11, 0, 12], [12, 0, 10]]
    assert lent_triples(source, target[1:], seeds).tolist() == [[10, 0, 11], [11, 0, 12], [12, 0, 10]]


def test_two_steps_leave_out_direct_neighbours_and_common_patterns():
    triples = np.array(
        [[0, 0, 1], [1, 1, 2], [2, 2, 0], [1, 1, 3], [3, 3, 0], [4, 0, 1], [3, 3, 4]],
        dtype=np.int32,
    )
    every = replace(SHORT, skipped_patterns=0)
    # 0-1-2 and 0-1-3, 1-2-0, 1-3-0, 1-3-4, 2-0-1, 3-0-1, 3-4-1 and 4-1-3 join neighbours; 4-1-2 does not.
    assert two_steps(triples, 5, every, 0).T.tolist() == [[4, 2]]
    assert two_steps(triples, 5, replace(SHORT, skipped_patterns=1), 0).shape == (2, 0)
    line = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3], [3, 1, 4]], dtype=np.int32)
    assert two_steps(line, 5, every, 0).T.tolist() == [[0, 2], [1, 3], [2, 4]]
    assert two_steps(line, 5, replace(SHORT, skipped_patterns=1), 0).T.tolist() == [[2, 4]]
    assert two_steps(line, 5, replace(every, max_paths=2), 0).shape == (2, 2)


@pytest.mark.parametrize(("total", "most"), [(10_001, 300), (10_001, 10_000), (40_000, 9_000), (40_000, 30)])
def test_distinct_numbers_are_those_of_a_shuffle(total: int, most: int):
    drawn = draw_distinct(np.random.default_rng(5), total, most)
    random = np.random.default_rng(5)
    if most > total // 50:
        numbers = list(range(total))
        for place in range(total - 1, total - most - 1, -1):
            partner = int(random.integers(0, place, endpoint=True))
            numbers[place], numbers[partner] = numbers[partner], numbers[place]
        assert drawn.tolist() == sorted(numbers[-most:])
    assert len(drawn) == len(set(drawn.tolist())) == most
    assert drawn.tolist() == sorted(drawn.tolist())
    assert (drawn.min() >= 0, drawn.max() < total) == (True, True)
    assert draw_distinct(random, 7, 7).tolist() == list(range(7))


@pytest.mark.parametrize("max_paths", [1_000, 100_000])  # few of the paths, and more than one in 50
def test_memory_does_not_grow_with_the_paths_that_are_not_looked_at(max_paths: int):
    middle, others = 4_000, np.arange(2_000, dtype=np.int32)
    into = np.stack([others, 0 * others, 0 * others + middle], axis=1)
    out = np.stack([0 * others + middle, 0 * others + 1, others + 2_000], axis=1)
    settings = replace(SHORT, skipped_patterns=0, max_paths=max_paths)
    triples = np.concatenate([into, out]).astype(np.int32)
    tracemalloc.start()
    found = two_steps(triples, 4_001, settings, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (2, max_paths)  # of 4,000,000
    assert (found[0] < 2_000).all()
    assert (found[1] >= 2_000).all()
    assert peak < 16_000_000  # 4,000,000 numbers of 8 bytes would be twice this


def test_a_step_follows_the_gradient_with_adam(pair: GraphPair):
    settings = replace(SHORT, batch_size=1000)
    model, other = (started(AliNet, pair, settings) for _ in range(2))
    reported = model.run_epoch(1)
    random = np.random.default_rng([0, 1])
    order, negatives = random.permutation(len(pair.train)), other._draw(random)
    heads, tails = other.relations.draw(random)
    vectors = join_layers(network(other.parameters, other.graph))
    loss = alignment_loss(vectors, other._ids(other.seeds[order]), other._ids(negatives[:, order]), settings)
    loss = loss + 0.01 * relation_loss(vectors, other._ids(heads), other._ids(tails))
    assert reported == pytest.approx(loss.item() / len(order), rel=1e-5)
    gradients = torch.autograd.grad(loss, list(other.parameters.values()))
    for name, gradient in zip(other.parameters, gradients, strict=True):
        # Adam's first step has the length of the rate in every coordinate that has a gradient to speak of.
        moved = model.parameters[name] - other.parameters[name]
        felt = gradient.abs() > 1e-5
        torch.testing.assert_close(moved[felt], -0.001 * gradient[felt].sign(), rtol=2e-3, atol=1e-6)


def test_negatives_are_near_the_end_that_stays(pair: GraphPair):
    model = started(AliNet, pair, SHORT)
    first = model._draw(np.random.default_rng(0))
    assert (first[0].max(), first[1].min()) == (119, 120)
    model.neighbours = model._find_neighbours()
    units = torch.nn.functional.normalize(network(model.parameters, model.graph)[-1]).detach().numpy()
    drawn = model._draw(np.random.default_rng(0))
    assert drawn.shape == (2, len(pair.train), 10)
    for (source, target), in_source, in_target in zip(model.seeds, *drawn, strict=True):
        assert set(in_source) <= set(np.argsort(-units[:120] @ units[target])[:15])
        assert set(in_target) <= set(120 + np.argsort(-units[120:] @ units[source])[:15])
