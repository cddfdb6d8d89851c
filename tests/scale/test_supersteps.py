"""Passes in supersteps: the sequential game in the limit, the same links however pairs are divided, lost shards."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from agent.test_passes import SMALL, random_prior, random_problem
from rlea.agent.agent import Aligner
from rlea.agent.engine import play
from rlea.agent.passes import play_fixed, play_learned, playing_by
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.scale.supersteps import WIDTH, LocalShards, Shard, divide, play_in_supersteps


def in_supersteps(width, num_shards, shards=LocalShards):
    return partial(play_in_supersteps, shards, width, num_shards)


def some_logits(features, pairs):
    """Priorities of a learned pass: what matches say, and a number of the pair's own."""
    own = np.random.default_rng(0).normal(size=(50, 50))[pairs.source_ids, pairs.target_ids]
    return (features.columns[:, 0] * 3 + own).astype(np.float32)


def some_confidences(pairs, logits):
    return (1 / (1 + np.exp(-logits.astype(np.float64)))).astype(np.float32)


def passes_of(seed, kind, player, settings=SMALL):
    problem = random_problem(seed, size=30)
    with playing_by(player):
        first = play_fixed(problem, settings, random_prior(problem, kind))
        return [first, *play_learned(problem, settings, first, some_logits, some_confidences, 2)]


def bytes_of(passes):
    names = ("source_ids", "target_ids", "priorities", "confidences", "logits")
    return [[getattr(one, name).tobytes() for name in names] for one in passes]


@pytest.mark.parametrize("kind", ["nothing", "logits", "cosine"])
@pytest.mark.parametrize("seed", range(8))
def test_with_a_width_of_nothing_they_are_the_sequential_game(seed, kind):
    # Of a pair that comes in, the sequential game forgets what was said of it before, and that depends on the order. So
    # here all that is said brings pairs in.
    settings = replace(SMALL, creation=0.0)
    expected, found = (passes_of(seed, kind, player, settings) for player in (play, in_supersteps(0.0, 3)))
    for one, other in zip(expected, found, strict=True):
        assert one.source_ids.tolist() == other.source_ids.tolist()
        assert one.target_ids.tolist() == other.target_ids.tolist()
        for name in ("priorities", "confidences", "logits"):
            # The root of what rounding leaves of evidence that was taken back is a multiple of what is rounded.
            assert np.allclose(getattr(one, name), getattr(other, name), atol=0.02)


@pytest.mark.parametrize("kind", ["nothing", "logits", "cosine"])
@pytest.mark.parametrize("width", [0.3, WIDTH, 100.0])
def test_the_same_bytes_however_pairs_are_divided(kind, width):
    one, few, many = (bytes_of(passes_of(5, kind, in_supersteps(width, count))) for count in (1, 3, 40))
    assert one == few == many


def test_links_stay_one_to_one_and_every_round_accepts_some():
    rounds = []

    class Counted(LocalShards):
        def hear(self, news, round_):
            rounds.append(len(news.accepted))
            return super().hear(news, round_)

    (first, *_) = passes_of(3, "logits", in_supersteps(WIDTH, 4, Counted))
    assert len(np.unique(first.source_ids)) == len(np.unique(first.target_ids)) == len(first.source_ids) > 0
    assert max(rounds) > 1
    assert rounds.count(0) == 4  # one at the beginning of every pass, of which there are four


def test_planted_links_are_found_as_in_the_sequential_game():
    pair = generate(SyntheticSettings(num_entities=400, name_noise=0.4, nameless=0.3, seeds=0.3, valid=0.0))
    right = set(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    counts = []
    for player in (play, in_supersteps(WIDTH, 5)):
        with playing_by(player):
            links = Aligner(channels=("structure", "names")).fit(pair).match(pair)
        counts.append(len(right & set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))))
    assert counts[0] > 0.9 * len(right)
    assert abs(counts[0] - counts[1]) <= 0.02 * len(right)


def test_a_shard_that_was_lost_is_made_again_from_the_log():
    class Forgetful(LocalShards):
        """Every seventh round all shards are made anew and told what has happened."""

        def __init__(self, given):
            super().__init__(given)
            self.given, self.log = given, []

        def hear(self, news, round_):
            if round_ % 7 == 3:
                lowest = self.shards[0].lowest
                self.shards = [Shard(self.given, number) for number in range(len(self.shards))]
                for shard in self.shards:
                    for old in self.log:
                        shard.hear(old)
                    shard.offer(lowest)
            self.log.append(news)
            return super().hear(news, round_)

    for kind in ("logits", "cosine"):
        expected = bytes_of(passes_of(2, kind, in_supersteps(WIDTH, 4)))
        assert bytes_of(passes_of(2, kind, in_supersteps(WIDTH, 4, Forgetful))) == expected


def test_nothing_to_decide():
    problem = random_problem(0)
    none = np.zeros(0, np.int32)
    problem = type(problem)(problem.graphs, problem.seeds, none, none)
    with playing_by(in_supersteps(WIDTH, 3)):
        found = play_fixed(problem, SMALL, random_prior(problem, "nothing"))
    assert len(found.source_ids) == len(found.pairs) == 0


def test_sources_are_divided_by_their_pairs():
    sources = np.repeat(np.arange(4), [6, 0, 1, 5]).astype(np.int32)
    bounds = divide(sources, 10, 2)
    assert bounds.tolist() == [0, 1, 10]
    assert divide(sources[:0], 10, 3).tolist() == [0, 0, 0, 10]
