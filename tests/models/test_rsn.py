from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import logsigmoid

from rlea.graph import GraphPair
from rlea.models import rsn
from rlea.models.rsn import (
    RSN,
    LinearLSTM,
    NoiseSampler,
    NoiseScores,
    RSNSettings,
    initial_parameters,
    noise_loss,
    normalise,
    predictions,
    walk_loss,
)

from .conftest import started

SHORT = RSNSettings(dim=4, walk_length=5, batch_size=200)
pytestmark = pytest.mark.usefixtures("one_torch_thread")


def random_parameters(num_entities: int, num_relations: int, dim: int) -> dict[str, torch.Tensor]:
    """Parameters far from their initial symmetry, in double precision."""
    generator = torch.Generator().manual_seed(0)
    start = initial_parameters(num_entities, num_relations, dim, seed=0)
    return {
        name: torch.randn(value.shape, dtype=torch.double, generator=generator).requires_grad_()
        for name, value in start.items()
    }


def test_the_skip_joins_subject_and_state_at_relations():
    """Step by step in loops, with nothing dropped but what a mask of twos and zeros drops."""
    parameters = random_parameters(6, 4, 3)
    walks = torch.tensor([[0, 1, 2, 3, 4], [5, 0, 1, 2, 3], [2, 2, 0, 1, 5]])
    kept = torch.randint(0, 2, (2, 4, 3, 3), generator=torch.Generator().manual_seed(1)).double() * 2
    p = {name: value.detach().numpy() for name, value in parameters.items()}

    def over_the_batch(rows: np.ndarray, place: str) -> np.ndarray:
        spread = np.sqrt(rows.var(axis=0) + 1e-3)
        return (rows - rows.mean(axis=0)) / spread * p[f"{place}_scale"] + p[f"{place}_shift"]

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    h, c = np.zeros((2, 3, 3)), np.zeros((2, 3, 3))  # layer, walk, dimension
    seen, expected = [], []
    for t in range(4):
        x = over_the_batch(p["relations" if t % 2 else "entities"][walks[:, t].numpy()], "input")
        seen.append(x)
        read = x
        for layer in range(2):
            o, i, f, g = np.split(
                read @ p[f"lstm{layer}_w"] + h[layer] @ p[f"lstm{layer}_u"] + p[f"lstm{layer}_b"], 4, 1
            )
            c[layer] = sigmoid(f) * c[layer] + sigmoid(i) * g
            h[layer] = sigmoid(o) * c[layer]
            read = h[layer] * kept[layer, t].numpy()  # what the layer above sees; the state itself is whole
        if t % 2:
            read = read @ p["s1"] + seen[t - 1] @ p["s2"]
        expected.append(over_the_batch(read, "output"))
    found = predictions(parameters, walks, kept).detach().numpy()
    np.testing.assert_allclose(found, np.stack(expected, axis=1), rtol=1e-10, atol=1e-12)


def test_noise_loss_by_hand():
    outputs = torch.tensor([[1.0, 2.0]])
    weights = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    biases = torch.tensor([[0.5], [0.0], [-1.0]])
    chances = torch.tensor([0.5, 0.25, 1.0]).log()
    found = noise_loss(outputs, torch.tensor([0]), weights, biases, torch.tensor([2, 1]), chances)
    true, first, second = 1 + 0.5 - np.log(0.5), 3 - 1 - np.log(1.0), 2 + 0 - np.log(0.25)
    expected = np.log1p(np.exp(-true)) + np.log1p(np.exp(first)) + np.log1p(np.exp(second))
    assert float(found) == pytest.approx(expected, rel=1e-6)


def test_each_element_of_a_walk_is_foretold_but_the_first():
    """With every score 0 - log chance, the loss counts the predictions."""
    parameters = {name: torch.tensor(value) for name, value in initial_parameters(9, 6, 4, seed=0).items()}
    for kind in ("entity", "relation"):
        parameters[f"{kind}_weights"].zero_()
        parameters[f"{kind}_biases"].zero_()
    samplers = {
        "entity": NoiseSampler(torch.ones(9), torch.full((9,), np.log(0.5)), 3),
        "relation": NoiseSampler(torch.ones(6), torch.full((6,), np.log(0.25)), 2),
    }
    noise = {"entity": torch.tensor([0, 1, 2]), "relation": torch.tensor([3, 4])}
    walks = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [1, 0, 8, 2, 7, 4, 5]])
    found = walk_loss(parameters, walks, torch.ones(2, 6, 2, 4), noise, samplers)
    entity = np.log1p(0.5) + 3 * np.log1p(2)
    relation = np.log1p(0.25) + 2 * np.log1p(4)
    assert float(found) == pytest.approx(3 * entity + 3 * relation, rel=1e-6)


def test_the_loss_follows_the_walk():
    """The right answer raised lowers the loss; read by swapping what is foretold."""
    parameters = {name: torch.tensor(value) for name, value in initial_parameters(9, 6, 4, seed=0).items()}
    sampler = NoiseSampler(torch.ones(9), torch.zeros(9), 3)
    noise = {"entity": torch.tensor([0, 1]), "relation": torch.tensor([0])}
    walks = torch.tensor([[0, 5, 2, 4, 3], [1, 5, 2, 4, 3]])

    def loss() -> float:
        return float(
            walk_loss(parameters, walks, torch.ones(2, 4, 2, 4), noise, {"entity": sampler, "relation": sampler})
        )

    before = loss()
    for kind, id_, foretold in (("entity", 2, True), ("entity", 3, True), ("relation", 5, True), ("entity", 5, False)):
        parameters[f"{kind}_biases"][id_] += 1
        assert (loss() < before) is foretold
        parameters[f"{kind}_biases"][id_] -= 1


def test_gradients_written_out_are_those_of_finite_differences():
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.double, generator=generator).requires_grad_()

    assert torch.autograd.gradcheck(LinearLSTM.apply, (draw(4, 2, 3), draw(3, 12), draw(3, 12), draw(12)))
    assert torch.autograd.gradcheck(LinearLSTM.apply, (draw(1, 2, 3), draw(3, 12), draw(3, 12), draw(12)))
    assert torch.autograd.gradcheck(NoiseScores.apply, (draw(5, 3), draw(4, 3), draw(4)))


def test_noise_scores_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rsn, "_ROWS", 3)
    generator = torch.Generator().manual_seed(0)
    rows, weights, offsets = (
        torch.randn(shape, generator=generator).requires_grad_() for shape in ((7, 2), (5, 2), (5,))
    )
    loss = NoiseScores.apply(rows, weights, offsets)
    expected = -logsigmoid(-(rows @ weights.T + offsets)).sum()
    torch.testing.assert_close(loss, expected)
    inputs = (rows, weights, offsets)
    torch.testing.assert_close(torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs))


def test_one_step_of_training_goes_down_the_clipped_gradient(pair: GraphPair):
    training = started(RSN, pair, replace(SHORT, clip=0.1))
    before = {name: value.detach().clone() for name, value in training.parameters.items()}
    training._step(training.walks[:50].long(), torch.Generator().manual_seed(0))
    norm = sum(float(value.grad.square().sum()) for value in training.parameters.values()) ** 0.5
    assert norm == pytest.approx(0.1, rel=1e-3)
    for name, value in training.parameters.items():
        assert value.grad is not None
        moved = value.detach() - before[name]
        felt = value.grad.abs() > 1e-6  # below that Adam's epsilon tells
        assert felt.any()
        torch.testing.assert_close(moved[felt], -5e-4 * value.grad[felt].sign(), rtol=0.02, atol=1e-6)


def test_normalising_treats_every_step_alone():
    inputs = torch.tensor([[[1.0], [10.0]], [[3.0], [30.0]]])
    found = normalise(inputs, torch.tensor([2.0]), torch.tensor([5.0]))
    torch.testing.assert_close(found, torch.tensor([[[3.0], [3.0]], [[7.0], [7.0]]]), atol=2e-3, rtol=0)


def test_noise_is_drawn_by_rank_without_repetition():
    sampler = NoiseSampler.of(np.array([3, 50, 7, 7, 0, 1]), 3, "cpu")
    ranks = np.array([3, 0, 1, 2, 5, 4])
    np.testing.assert_allclose(sampler.rates, np.log((ranks + 2) / (ranks + 1)) / np.log(7), rtol=1e-6)
    assert float(sampler.rates.sum()) == pytest.approx(1)
    chances = sampler.log_chances.exp().numpy()
    assert chances.sum() == pytest.approx(3)
    generator = torch.Generator().manual_seed(0)
    draws = np.stack([sampler.draw(generator).numpy() for _ in range(4000)])
    assert all(len(set(draw)) == 3 for draw in draws[:100])
    np.testing.assert_allclose(np.bincount(draws.ravel(), minlength=6) / 4000, chances, atol=0.06)
    first = NoiseSampler.of(np.array([3, 50, 7, 7, 0, 1]), 1, "cpu")
    drawn = np.bincount([int(first.draw(generator)) for _ in range(8000)], minlength=6) / 8000
    np.testing.assert_allclose(drawn, first.rates, atol=0.02)


def test_all_ids_may_be_noise():
    sampler = NoiseSampler.of(np.array([1, 0]), 2, "cpu")
    assert sorted(sampler.draw(torch.Generator().manual_seed(0)).tolist()) == [0, 1]
    assert torch.isfinite(sampler.log_chances).all()
