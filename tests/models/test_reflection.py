"""What a layer sees, who is labelled, and the losses of RREA and Dual-AMN, each by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from rlea.graph import GraphPair, Links
from rlea.models.dualamn import DualAMN, DualAMNSettings, beside_proxies, hard_loss
from rlea.models.reflection import Attention, Neighbours, layers, mirror, mutual_best
from rlea.models.rrea import RREA, RREASettings, margin_loss
from rlea.models.triples import JointTriples

from .conftest import started

pytestmark = pytest.mark.usefixtures("one_torch_thread")

# 0 -r0-> 1, 0 -r1-> 1, 1 -r0-> 2 in one graph; 3 -r2-> 4 and 4 -r2-> 4 in the other; 5 has no triple.
TRIPLES = JointTriples(
    np.array([[0, 0, 1], [0, 1, 1], [1, 0, 2]], np.int32), np.array([[3, 2, 4], [4, 2, 4]], np.int32), 3, 3, 3
)
WAYS = {(0, 1): [0, 1], (1, 0): [3, 4], (1, 2): [0], (2, 1): [3], (3, 4): [2], (4, 3): [5], (4, 4): [2, 5]}
SHORT = {"dim": 8, "max_epochs": 6, "label_from": 2, "label_every": 2, "valid_from": 2, "valid_every": 2}


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.tensor(np.random.default_rng([seed, *shape]).standard_normal(shape), dtype=torch.float32)


def test_neighbours_and_the_relations_between_them():
    neighbours = Neighbours.of(TRIPLES, "cpu")
    near, kinds = neighbours.near, neighbours.kinds
    assert list(zip(near.rows.tolist(), near.columns.tolist(), strict=True)) == sorted(WAYS)
    assert neighbours.num_relations == 6
    relations = neighbours.relations @ torch.eye(6)  # (num_kinds, 6)
    for pair, kind in zip(sorted(WAYS), kinds.columns.tolist(), strict=True):
        expected = torch.zeros(6)
        expected[WAYS[pair]] = 1 / len(WAYS[pair])
        torch.testing.assert_close(relations[kind], expected)
    around = neighbours.around @ torch.eye(6)
    torch.testing.assert_close(around[1], torch.tensor([1, 1, 1, 0, 0, 0]) / 3)
    torch.testing.assert_close(around[5], torch.eye(6)[5])
    own = neighbours.own @ torch.eye(6)
    torch.testing.assert_close(own[1], torch.tensor([1.0, 0, 0, 1, 1, 0]) / 3)
    assert not own[5].any()


@pytest.mark.parametrize("sees_entities", [False, True])
def test_a_layer_and_its_gradients_by_hand(sees_entities: bool):
    neighbours = Neighbours.of(TRIPLES, "cpu")
    vectors, relations = numbers(6, 4).requires_grad_(), numbers(6, 4, seed=1).requires_grad_()
    own, mirrored, of_relations = (numbers(4, seed=seed).requires_grad_() for seed in (2, 3, 4))
    attention = Attention(of_relations, own, mirrored) if sees_entities else Attention(of_relations)
    kinds = normalize(neighbours.relations @ relations)
    result = mirror(vectors, kinds, neighbours, attention)
    rows = []
    for entity in range(6):
        seen, logits = [], []
        for (row, column), ways in sorted(WAYS.items()):
            if row == entity:
                across = normalize(relations[ways].mean(dim=0), dim=0)
                image = vectors[column] - 2 * (vectors[column] @ across) * across
                seen.append(image)
                logits.append(across @ of_relations)
                if sees_entities:
                    logits[-1] = logits[-1] + vectors[row] @ own + image @ mirrored
        rows.append(torch.stack(logits).softmax(0) @ torch.stack(seen) if seen else torch.zeros(4))
    expected = torch.stack(rows)
    torch.testing.assert_close(result, expected)
    inputs = [vectors, relations, of_relations, *((own, mirrored) if sees_entities else ())]
    down = numbers(6, 4, seed=5)
    for found, wanted in zip(
        torch.autograd.grad(result, inputs, down, retain_graph=True),
        torch.autograd.grad(expected, inputs, down),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_an_image_is_as_long_as_what_is_mirrored():
    neighbours = Neighbours.of(TRIPLES, "cpu")
    vectors, relations = numbers(6, 4), numbers(6, 4, seed=1)
    seen = mirror(vectors, normalize(neighbours.relations @ relations), neighbours, Attention(torch.zeros(4)))
    for one, only_neighbour in ((0, 1), (2, 1), (3, 4)):
        torch.testing.assert_close(seen[one].norm(), vectors[only_neighbour].norm())


def test_layers_stand_side_by_side():
    neighbours = Neighbours.of(TRIPLES, "cpu")
    given, relations = numbers(6, 4), numbers(6, 4, seed=1)
    attention = [Attention(numbers(4, seed=seed)) for seed in (2, 3)]
    result = layers(given, relations, neighbours, attention, torch.tanh)
    kinds = normalize(neighbours.relations @ relations)
    first = mirror(given.tanh(), kinds, neighbours, attention[0]).tanh()
    expected = [given.tanh(), first, mirror(first, kinds, neighbours, attention[1]).tanh()]
    torch.testing.assert_close(result, torch.cat(expected, dim=1))


def test_labels_are_each_others_best_by_csls():
    vectors = normalize(numbers(60, 3))
    source, target = np.arange(0, 25, dtype=np.int32), np.arange(30, 58, dtype=np.int32)
    cosine = (vectors[source] @ vectors[target].T).numpy()
    scores = 2 * cosine - np.sort(cosine)[:, -10:].mean(1)[:, None] - np.sort(cosine.T)[:, -10:].mean(1)
    best = scores.argmax(axis=1)
    expected = [(row, 30 + place) for row, place in enumerate(best) if scores[:, place].argmax() == row]
    found = mutual_best(vectors, source, target)
    assert [tuple(row) for row in found.tolist()] == expected
    assert 5 < len(found) < 25
    assert mutual_best(vectors, source[:0], target).shape == (0, 2)


@pytest.mark.parametrize(("model", "settings"), [(DualAMN, DualAMNSettings), (RREA, RREASettings)])
def test_labels_come_when_it_is_time_and_stay(model: Any, settings: Any, pair: GraphPair):
    training = started(model, pair, settings(**SHORT))
    counts = []
    for epoch in range(1, 7):
        known = training.known(epoch)
        counts.append(len(known) - len(pair.train))
        assert (known[: len(pair.train)] == training.seeds).all()
        for ids, least, most in ((known[:, 0], 0, 120), (known[:, 1], 120, 240)):
            assert len(np.unique(ids)) == len(ids)  # nobody twice, seeds included
            assert ((least <= ids) & (ids < most)).all()
    assert counts[0] == counts[1] == 0 < counts[2]
    assert counts == sorted(counts)


@pytest.mark.parametrize("model", ["dualamn", "rrea"])
def test_gold_of_entities_that_are_labelled_makes_no_difference(model: str, pair: GraphPair):
    train = {"dualamn": DualAMN, "rrea": RREA}[model]
    settings = (DualAMNSettings if model == "dualamn" else RREASettings)(**SHORT)
    trained = [started(train, one, settings) for one in (pair, replace(pair, test=Links.empty(), valid=Links.empty()))]
    for one in trained:
        for epoch in range(1, 4):
            one.run_epoch(epoch)
    assert (trained[0].labels == trained[1].labels).all()
    assert (trained[0].joint_vectors() == trained[1].joint_vectors()).all()


def test_dropout_leaves_a_share_and_makes_up_for_the_rest(pair: GraphPair):
    training = started(DualAMN, pair, DualAMNSettings(**SHORT | {"dropout": 0.25}))
    ones = torch.ones(200, 100)
    left = training.dropped(ones, training.generator(1))
    assert sorted(left.unique().tolist()) == pytest.approx([0, 4 / 3])
    assert left.mean() == pytest.approx(1, abs=0.02)
    assert (left == training.dropped(ones, training.generator(1))).all()
    assert not (left == training.dropped(ones, training.generator(2))).all()


def test_proxies_by_hand():
    joined, proxies, gate, bias = numbers(5, 6), numbers(3, 6, seed=1), numbers(6, 6, seed=2), numbers(6, seed=3)
    result = beside_proxies(joined, proxies, gate, bias)
    one = joined[2]
    likeness = torch.stack([torch.cosine_similarity(one, proxy, dim=0) for proxy in proxies]).softmax(0)
    rest = one - sum(share * proxy for share, proxy in zip(likeness, proxies, strict=True))
    share = (rest @ gate + bias).sigmoid()
    torch.testing.assert_close(result[2], share * one + (1 - share) * rest)


def test_the_loss_over_all_negatives_by_hand():
    vectors, settings = numbers(7, 4), DualAMNSettings(scale=2.0, shift=1.0, margin=0.5)
    seeds = torch.tensor([[0, 4], [2, 6]])
    expected = 0.0
    for source, target in seeds.tolist():
        near = float((vectors[source] - vectors[target]).square().sum())
        for end in (source, target):
            excess = [
                0.0 if k in (source, target) else near + 0.5 - float((vectors[end] - vectors[k]).square().sum())
                for k in range(7)
            ]
            z = (np.array(excess) - np.mean(excess)) / np.std(excess)
            expected += float(np.log(np.exp(2 * z + 1).sum())) / 2
    assert float(hard_loss(vectors, seeds, settings)) == pytest.approx(expected, rel=1e-5)


def test_a_step_brings_the_ends_of_a_seed_together():
    vectors, seeds = numbers(30, 8).requires_grad_(), torch.tensor([[0, 20]])
    for loss in (hard_loss(vectors, seeds, DualAMNSettings()), margin_loss(vectors, seeds, seeds + 1, 3.0)):
        (gradient,) = torch.autograd.grad(loss, vectors)
        moved = (vectors - 1e-3 * gradient).detach()
        assert (moved[0] - moved[20]).norm() < (vectors[0] - vectors[20]).norm()


def test_the_margin_loss_by_hand():
    vectors = numbers(6, 3)
    seeds, others = torch.tensor([[0, 3], [1, 4]]), torch.tensor([[2, 5], [5, 0]])
    losses = []
    for (source, target), (other_source, other_target) in zip(seeds.tolist(), others.tolist(), strict=True):
        near = float((vectors[source] - vectors[target]).abs().sum())
        for a, b in ((source, other_target), (other_source, target)):
            losses.append(max(0.0, near + 1.0 - float((vectors[a] - vectors[b]).abs().sum())))
    assert float(margin_loss(vectors, seeds, others, 1.0)) == pytest.approx(sum(losses) / 2, rel=1e-5)
    assert float(margin_loss(vectors, seeds, seeds + 6 - 6, 0.0)) == 0.0  # as far as itself, no margin
