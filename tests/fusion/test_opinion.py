"""The small network: nothing before training, the same for the same seed, and it learns whom to believe."""

import numpy as np
import torch

from rlea.agent.learned_key import Examples, NetworkSettings
from rlea.fusion.opinion import make_weigher, train

SETTINGS = NetworkSettings(epochs=60, rate=5e-3)


def examples():
    """80 entities with three pairs each: the second column marks the right one, the first misleads."""
    rng = np.random.default_rng(0)
    right = rng.integers(0, 3, 80)
    features = rng.random((240, 3), np.float32)
    truths = np.arange(80) * 3 + right
    features[:, 1] = 0
    features[truths, 1] = 1
    features[truths, 0] -= 0.5
    return Examples(features, features[:, 0].copy(), np.arange(240), np.arange(0, 241, 3), truths)


def test_an_untrained_weigher_says_its_key():
    given = examples()
    weigher = make_weigher(given, SETTINGS, 2.0, seed=0)
    np.testing.assert_allclose(weigher.worth(given.features, given.keys), 2 * given.keys, rtol=1e-6)
    np.testing.assert_allclose(weigher.mean.numpy(), given.features.mean(axis=0), rtol=1e-5)
    assert len(weigher.worth(given.features[:0], given.keys[:0])) == 0


def test_it_learns_which_column_to_believe():
    given = examples()
    weigher = make_weigher(given, SETTINGS, 1.0, seed=0)
    before = weigher.worth(given.features, given.keys).reshape(-1, 3).argmax(axis=1)
    losses = train(weigher, given, SETTINGS)
    worth = weigher.worth(given.features, given.keys).reshape(-1, 3)
    right = given.truths - np.arange(80) * 3
    assert len(losses) == SETTINGS.epochs
    assert losses[-1] < losses[0] / 2
    assert (before == right).mean() < 0.3
    assert (worth.argmax(axis=1) == right).all()
    assert (worth[np.arange(80), right] > 0).mean() > 0.9  # better than nobody


def test_the_same_seed_gives_the_same_and_the_random_numbers_of_others_are_left_alone():
    given = examples()
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    worth = []
    for seed in (0, 0, 1):
        weigher = make_weigher(given, SETTINGS, 1.0, seed)
        train(weigher, given, SETTINGS)
        worth.append(weigher.worth(given.features, given.keys))
    assert worth[0].tobytes() == worth[1].tobytes() != worth[2].tobytes()
    assert torch.equal(torch.random.get_rng_state(), state)
