"""The network: equations by hand, gradients everywhere, stable where the paper's form would overflow."""

import numpy as np
import pytest
import torch

from rlea.paper.policy import GraphView, Policy, PolicySettings, Value

from .conftest import make_graph

CPU = torch.device("cpu")


@pytest.fixture
def views():
    rng = np.random.default_rng(0)
    source = make_graph([("a", "r", "b"), ("b", "q", "c"), ("b", "r", "a")], ["a", "b", "c"])
    target = make_graph([("x", "r", "y"), ("z", "q", "y")], ["x", "y", "z", "w"])
    return (
        GraphView(source, rng.standard_normal((3, 5)).astype(np.float32), CPU),
        GraphView(target, rng.standard_normal((4, 5)).astype(np.float32), CPU),
    )


SOURCE_IDS = torch.tensor([0, 1, 2])
TARGET_IDS = torch.tensor([[0, 1, 2], [1, 3, -1], [2, 0, 3]])


def by_hand(policy, views, settings):
    """Equations 1 to 5 in numpy, one pair after another."""
    weights = {name: tensor.detach().numpy() for name, tensor in policy.state_dict().items()}

    def encode(view):
        count = len(view.vectors)
        mean = np.zeros((count, count))
        for row, column in zip(view.rows.tolist(), view.columns.tolist(), strict=True):
            mean[row, column] = 1.0
        mean /= mean.sum(1, keepdims=True)
        hidden = view.vectors.numpy()
        for layer in range(settings.num_layers):
            hidden = mean @ hidden @ weights[f"trunk.encoder.layers.{layer}.weight"].T
            hidden = np.maximum(hidden, 0) if settings.activation else hidden
        return hidden

    g_source, g_target = encode(views[0]), encode(views[1])
    result = np.full((3, 3, 2), np.nan)
    for row, x in enumerate(SOURCE_IDS.tolist()):
        ys = [y for y in TARGET_IDS[row].tolist() if y >= 0]
        f = {}
        if settings.estimator:
            f = {y: np.exp(g_source[x] @ weights["trunk.ratio.weight"].T @ g_target[y]) for y in ys}
        for place, y in enumerate(TARGET_IDS[row].tolist()):
            if y < 0:
                continue
            h = weights["trunk.source_part.weight"] @ g_source[x] + weights["trunk.source_part.bias"]
            h = np.maximum(h + weights["trunk.target_part.weight"] @ g_target[y], 0)
            features = np.append(h, f[y] / sum(f.values())) if settings.estimator else h
            logits = weights["head.weight"] @ features
            result[row, place] = np.exp(logits) / np.exp(logits).sum()
    return result


@pytest.mark.parametrize("change", [{}, {"num_layers": 3}, {"estimator": False}, {"activation": False}])
def test_network_equals_the_equations(views, change):
    settings = PolicySettings(hidden=6, pair_hidden=3, **change)
    torch.manual_seed(1)
    policy = Policy(5, settings)
    got = policy(*views, SOURCE_IDS, TARGET_IDS).exp().detach().numpy()
    expected = by_hand(policy, views, settings)
    known = ~np.isnan(expected)
    np.testing.assert_allclose(got[known], expected[known], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(got.sum(2), 1.0, rtol=1e-5)


@pytest.mark.parametrize("encoder", ["gcn", "gat"])
@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("network", [Policy, Value])
def test_gradients_reach_every_parameter(views, encoder, num_layers, network):
    torch.manual_seed(0)
    model = network(5, PolicySettings(encoder=encoder, num_layers=num_layers, hidden=16))
    out = model(*views, SOURCE_IDS, TARGET_IDS)
    picked = out[..., 1] if network is Policy else out
    (picked * torch.randn(3, 3)).sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name


def test_gat_weights_sum_to_one(views):
    """With all vectors alike, attention must return the vector itself: its weights are shares."""
    alike = GraphView(make_graph([("a", "r", "b"), ("a", "r", "c")], ["a", "b", "c"]), np.ones((3, 5), np.float32), CPU)
    torch.manual_seed(0)
    policy = Policy(5, PolicySettings(encoder="gat", hidden=4))
    hidden = policy.trunk.encoder(alike, torch.arange(3))
    expected = torch.relu(policy.trunk.encoder.layers[0](torch.ones(1, 5)))
    torch.testing.assert_close(hidden, expected.expand(3, 4))


def test_estimate_is_stable_for_large_values(views):
    torch.manual_seed(0)
    policy = Policy(5, PolicySettings(hidden=6))
    with torch.no_grad():
        policy.trunk.ratio.weight.mul_(1e6)
    out = policy(*views, SOURCE_IDS, TARGET_IDS)
    assert torch.isfinite(out[TARGET_IDS >= 0]).all()


def test_zero_start_never_sees_the_pair(views):
    """The authors' program: all zero, so every pair has the same probability; only the head ever gets a gradient."""
    policy = Policy(5, PolicySettings(zero_start=True, activation=False))
    out = policy(*views, SOURCE_IDS, TARGET_IDS).exp()
    torch.testing.assert_close(out, torch.full_like(out, 0.5))
    policy(*views, SOURCE_IDS, TARGET_IDS)[..., 1].sum().backward()
    for name, parameter in policy.named_parameters():
        if not name.startswith("head"):
            assert parameter.grad is None or parameter.grad.abs().max() == 0, name
    with torch.no_grad():
        policy.head.weight.copy_(torch.randn(policy.head.weight.shape, generator=torch.Generator().manual_seed(0)))
    later = policy(*views, SOURCE_IDS, TARGET_IDS)[..., 1].exp()  # whatever the head has learned
    whole = (TARGET_IDS >= 0).all(dim=1)  # rows with all their candidates; the estimate is one over their number
    assert later[whole].std() == 0
