from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch

from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.graph.masking import hide
from rlea.models import gcnalign
from rlea.models.gcnalign import (
    GcnAlign,
    GcnAlignSettings,
    adjacency,
    attribute_bags,
    functionality,
    margin_loss,
    train_gcnalign,
)

from .conftest import started

SHORT = GcnAlignSettings(dim=16, attribute_dim=8, refresh_every=3)


def graph(triples: list[tuple[str, str, str]], had: list[tuple[str, str]] = ()) -> KnowledgeGraph:
    columns = dict(zip(("head", "relation", "tail"), zip(*triples, strict=True), strict=True))
    literals = [{"entity": e, "attribute": a, "value": "1", "datatype": "", "language": ""} for e, a in had]
    return KnowledgeGraph.build(pl.DataFrame(columns), pl.DataFrame(literals) if had else None)


def tiny() -> GraphPair:
    """Source: a and b live in c, and a likes itself. Target: x has y."""
    source = graph(
        [("a", "livesIn", "c"), ("b", "livesIn", "c"), ("a", "likes", "a")], [("a", "age"), ("b", "age"), ("b", "sex")]
    )
    target = graph([("x", "has", "y")], [("x", "size"), ("y", "age")])
    return GraphPair("tiny", source, target, Links.of([0], [0]))


def test_functionality_is_the_share_of_distinct_ends():
    heads, relations = np.array([0, 0, 1, 2]), np.array([0, 0, 0, 2])
    assert functionality(heads, relations, 3).tolist() == [2 / 3, 0, 1]


def test_the_matrix_by_hand():
    rows, columns, weights = adjacency(tiny(), floor=0.3)
    found = np.zeros((5, 5), dtype=np.float32)
    found[rows, columns] = weights
    # livesIn: two heads and one tail in two triples. a and b listen to c by ifun = 1/2, c to them by fun = 1.
    heard = np.eye(5)
    heard[0, 2] = heard[1, 2] = 1 / 2
    heard[2, 0] = heard[2, 1] = 1
    heard[3, 4] = heard[4, 3] = 1
    scale = 1 / np.sqrt(heard.sum(axis=0))
    np.testing.assert_allclose(found, scale[:, None] * heard * scale, rtol=1e-6)


def test_no_neighbour_is_heard_less_than_the_floor():
    _, _, weights = adjacency(tiny(), floor=0.9)
    heard = np.array([1, 0.9, 1, 0.9, 1, 1, 1, 1, 1, 1, 1])  # row by row: aa ac bb bc ca cb cc xx xy yx yy
    sums = np.array([2, 2, 2.8, 2, 2])
    rows, columns = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4]), np.array([0, 2, 1, 2, 0, 1, 2, 3, 4, 3, 4])
    np.testing.assert_allclose(weights, heard / np.sqrt(sums[rows] * sums[columns]), rtol=1e-6)


def test_attributes_are_numbered_across_graphs_and_rare_ones_left_out():
    owners, attributes = attribute_bags(tiny(), share=1.0)  # age, sex, size
    assert list(zip(owners.tolist(), attributes.tolist(), strict=True)) == [(0, 0), (1, 0), (1, 1), (3, 2), (4, 0)]
    owners, attributes = attribute_bags(tiny(), share=0.34)
    assert list(zip(owners.tolist(), attributes.tolist(), strict=True)) == [(0, 0), (1, 0), (4, 0)]


def test_the_layers_are_the_products_of_the_paper():
    pair = tiny()
    model = started(GcnAlign, pair, SHORT)
    rows, columns, weights = adjacency(pair, SHORT.weight_floor)
    matrix = torch.zeros(5, 5).index_put((torch.tensor(rows), torch.tensor(columns)), torch.tensor(weights))
    features = torch.zeros(5, 2)  # of age, sex and size the two most frequent: age and sex
    features[[0, 1, 4], 0] = features[1, 1] = 1
    for channel, bags in zip(model.channels, (torch.eye(5), features), strict=True):
        units = channel.table / channel.table.norm(dim=1, keepdim=True)
        torch.testing.assert_close(channel.output(), matrix @ (matrix @ bags @ units).relu())
    source, target = model.vectors()
    joined = torch.cat([model.channels[0].output() * 0.9, model.channels[1].output() * 0.1], dim=1)
    np.testing.assert_allclose(np.concatenate([source, target]), joined.detach().numpy(), rtol=1e-6)


def test_the_loss_by_hand():
    output = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 5.0], [3.0, 1.0]])
    seeds = torch.tensor([[0, 1]])
    negatives = torch.tensor([[[2, 3]], [[2, 3]]])
    # d(seed) = 2; 2 and 3 in place of the source are 5 and 2 away from entity 1, in place of the target 5 and 4 from 0.
    expected = (0 + (2 + 2.5 - 2) + 0 + (2 + 2.5 - 4)) / 4
    assert margin_loss(output, seeds, negatives, 2.5).item() == pytest.approx(expected)


def test_a_step_goes_down_the_gradient(pair: GraphPair):
    model = started(GcnAlign, pair, SHORT)
    before = [channel.table.detach().clone().requires_grad_() for channel in model.channels]
    reported = model.run_epoch(1)
    seeds, negatives = torch.tensor(model.seeds).long(), torch.tensor(model._draw(1)).long()
    total = 0.0
    for channel, table in zip(model.channels, before, strict=True):
        moved, channel.table = channel.table, table
        loss = margin_loss(channel.output(), seeds, negatives, SHORT.margin)
        (gradient,) = torch.autograd.grad(loss, table)
        torch.testing.assert_close(moved, table - SHORT.learning_rate * gradient, rtol=1e-4, atol=1e-6)
        total += loss.item()
    assert reported == pytest.approx(total, rel=1e-5)


def test_negatives_are_drawn_anew_every_few_epochs(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    model, drawn = started(GcnAlign, pair, SHORT), []
    monkeypatch.setattr(gcnalign, "margin_loss", lambda *given: drawn.append(given[2]) or margin_loss(*given))
    for epoch in range(1, 8):
        model.run_epoch(epoch)
    of_epochs = [negatives.numpy().tobytes() for negatives in drawn[:: len(model.channels)]]
    assert [of_epochs.index(own) for own in of_epochs] == [0, 0, 0, 3, 3, 3, 6]
    assert drawn[0].shape == (2, len(pair.train), 5)
    assert (int(drawn[0].min()), int(drawn[0].max())) == pytest.approx((0, 239), abs=8)


def test_attributes_are_used_only_where_both_graphs_have_some(pair: GraphPair):
    bare = replace(pair, target=hide(pair, "attributes").target)
    structure = replace(SHORT, structure_weight=1.0)
    for given, settings, is_used in ((bare, SHORT, False), (pair, structure, False), (pair, SHORT, True)):
        embeddings = train_gcnalign(given, settings, device="cpu", epochs=1)
        assert embeddings.info["attributes"] is is_used
        assert embeddings.source.shape == (120, 16 + 8 * is_used)
