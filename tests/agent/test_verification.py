"""Links beside links of null models, by features alone: planted truths, features that mislead, and nothing to go by."""

from dataclasses import replace

import numpy as np
import pytest

from rlea.agent.overlap import FEWEST_KNOWN
from rlea.agent.verification import KnownLinks, NullRows, put_in_place, verify
from rlea.matching import Matching

SIGNS, PRIOR = np.array([1.0, -1.0, 1.0, 0.0]), np.array([0.3, 0.0, 0.0, 0.0])


def features_of(rng, is_right):
    """The first speaks for a link, the second against it, the third says nothing, the fourth says all and is left out.

    Coincidence comes close in the first; only both together tell.
    """
    count = len(is_right)
    columns = rng.normal(0, 1, (4, count))
    columns[0] += 2.5 * is_right
    columns[1] -= 2.5 * is_right
    columns[3] = is_right
    return columns.T.astype(np.float32)


def planted(size, share, seed=0, num_null=None):
    """Features of links, which are right, and features of null models."""
    rng = np.random.default_rng([seed, size])
    is_right = rng.permutation(size) < round(share * size)
    count = 2 * size if num_null is None else num_null
    halves, taken_out = (features_of(rng, np.zeros(count, bool)) for _ in range(2))
    places = rng.integers(0, max(size, 1), count)
    rows, quarters = features_of(rng, is_right), features_of(rng, np.zeros(count, bool))
    return rows, is_right, NullRows(taken_out, places, halves, count, quarters, count)


def verified(*arguments):
    """Confidences, and how many links are right."""
    found = verify(*arguments)
    return found.confidences, found.right


@pytest.mark.parametrize("size", [150, 1000])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.5, 1.0])
def test_planted_links_are_found(size, share):
    for seed in range(3):
        rows, is_right, null = planted(size, share, seed)
        confidences, right = verified(rows, size, null, SIGNS, PRIOR)
        assert right.value / size == pytest.approx(share, abs=0.1)
        assert confidences.sum() == pytest.approx(right.value, abs=size * 1e-6)
        assert right.low <= right.value <= right.high
        sure = confidences >= 0.9
        assert is_right[sure].sum() >= 0.9 * sure.sum() - 2
        if share >= 0.5:
            assert is_right[confidences >= 0.5].sum() >= 0.75 * is_right.sum()


def test_what_is_learned_tells_more_than_the_slopes_to_begin_with():
    """These know the first feature alone."""
    rows, is_right, null = planted(2000, 0.4)
    confidences, _ = verified(rows, 2000, null, SIGNS, PRIOR)
    order = np.argsort(-confidences, kind="stable")[: is_right.sum()]
    by_first = np.argsort(-rows[:, 0], kind="stable")[: is_right.sum()]
    assert is_right[order].mean() > is_right[by_first].mean() + 0.03
    assert is_right[order].mean() > 0.93


def test_a_feature_with_sign_nought_is_left_out():
    rows, _, null = planted(300, 0.5)
    other = rows.copy()
    other[:, 3] = np.random.default_rng(0).normal(0, 100, 300)
    found = [verified(one, 300, null, SIGNS, PRIOR)[0].tobytes() for one in (rows, other)]
    assert found[0] == found[1]


def test_the_same_again_to_the_last_bit():
    rows, _, null = planted(300, 0.3)
    found = [verified(rows.copy(), 300, null, SIGNS, PRIOR) for _ in range(2)]
    assert found[0][0].tobytes() == found[1][0].tobytes()
    assert found[0][1] == found[1][1]


def test_halves_are_never_learned_from():
    """They may differ from the pair in ways that have nothing to do with right or wrong."""
    rows, is_right, null = planted(600, 0.5)
    strange = null.halves.copy()
    strange[:, 2] += 3  # the feature that says nothing, here it tells the two kinds of graphs apart
    confidences, right = verified(rows, 600, replace(null, halves=strange), SIGNS, PRIOR)
    assert right.value / 600 == pytest.approx(0.5, abs=0.15)
    assert is_right[confidences >= 0.9].mean() > 0.9


@pytest.mark.parametrize("step", [1e-4, 2e-3])
def test_what_tells_games_apart_and_not_links_is_no_evidence(step):
    """Every link of the pair has a little more of the third feature than any without a match: the game makes it so."""
    rows, is_right, null = planted(600, 0.6)
    marked = [part.copy() for part in (rows, null.taken_out)]
    for part, more in zip(marked, (step, 0.0), strict=True):
        part[:, 2] = 0.8 + more
    confidences, right = verified(marked[0], 600, replace(null, taken_out=marked[1]), SIGNS, PRIOR)
    assert right.value / 600 == pytest.approx(0.6, abs=0.1)
    assert confidences[~is_right].mean() < 0.25


def test_links_without_a_match_stand_in_place_of_the_match():
    links = Matching.of([0, 1, 2, 3], [10, 11, 12, 13], [0.9, 0.8, 0.7, 0.6])
    others = Matching.of([1, 9], [20, 13], [0.1, 0.2])  # one shares its source, the other its target
    found = put_in_place(links, others)
    assert found.source_ids.tolist() == [0, 1, 2, 9]
    assert found.target_ids.tolist() == [10, 20, 12, 13]
    assert found.confidences.tolist() == [0.9, 0.1, 0.7, 0.2]
    assert len(put_in_place(links, Matching.of([], [], []))) == 4


def test_no_links_at_all():
    _, _, null = planted(50, 0.0)
    nothing = null.taken_out[:0]  # where nothing is linked nothing can be taken out
    confidences, right = verified(nothing, 50, replace(null, taken_out=nothing, places=null.places[:0]), SIGNS, PRIOR)
    assert len(confidences) == 0
    assert right.value == right.low == 0


@pytest.mark.parametrize("size", [1, 3, 12])
def test_a_few_links_without_any_null_link_are_not_refused(size):
    rows, _, null = planted(size, 1.0)
    nothing = null.halves[:0]
    none = NullRows(nothing, null.places[:0], nothing, 6 * size, nothing, 3 * size)
    confidences, right = verified(rows, size, none, SIGNS, PRIOR)
    assert np.isfinite(confidences).all()
    assert ((confidences > 0) & (confidences < 1)).all()
    assert 0 <= right.low <= right.value <= right.high <= size


def test_links_of_other_games_are_rated_as_the_pairs_own():
    """A link with the features of a sure one is sure, one with those of coincidence is not; in their order."""
    rows, _, null = planted(1000, 0.4)
    found = verify(rows, 1000, null, SIGNS, PRIOR)
    rng = np.random.default_rng(9)
    right, wrong = (found.rate(features_of(rng, np.full(400, answer))) for answer in (True, False))
    assert right.mean() > 0.7
    assert wrong.mean() < 0.2
    assert np.abs(found.rate(rows) - found.confidences).mean() < 0.03
    assert verify(rows[:0], 9, null, SIGNS, PRIOR).rate(rows[:5]).tolist() == [0.0] * 5


def known_links(count, seed=1, is_right=None):
    """Links of seeds, two of three right, in three games."""
    right = np.arange(count) % 3 > 0 if is_right is None else is_right
    return KnownLinks(features_of(np.random.default_rng(seed), right), right, np.arange(count) // 3 % 3)


def too_strict(null):
    """Null models in which coincidence looks as good as a right link: variants of one product in one shop."""
    strict = null.halves.copy()
    strict[:, 0] += 4
    strict[:, 1] -= 4
    return replace(null, halves=strict)


def test_a_few_seeds_speak_up_against_null_models_that_are_wrong():
    rows, is_right, null = planted(600, 0.3)
    strict = too_strict(null)
    alone, _ = verified(rows, 600, strict, SIGNS, PRIOR)
    confidences, right = verified(rows, 600, strict, SIGNS, PRIOR, known_links(60))
    assert alone.sum() < 0.1 * is_right.sum()  # nothing is believed
    assert right.value / 600 == pytest.approx(0.3, abs=0.15)
    assert right.low <= right.value <= right.high
    assert is_right[confidences >= 0.5].mean() > 0.8
    assert confidences[is_right].mean() > confidences[~is_right].mean() + 0.2


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_null_models_that_are_right_lose_little_by_a_few_seeds(share):
    """In the mean over six draws, beside the null models alone."""
    found = []
    for seed in range(6):
        rows, is_right, null = planted(600, share, seed)
        for known in (None, known_links(40)):
            confidences, right = verified(rows, 600, null, SIGNS, PRIOR, known)
            assert right.value / 600 == pytest.approx(share, abs=0.1)
            assert is_right[confidences >= 0.9].mean() > 0.9
            found.append(is_right[confidences >= 0.5].sum() / is_right.sum())
    assert np.mean(found[1::2]) >= np.mean(found[::2]) - 0.1
    assert np.mean(found[::2]) >= 0.7


@pytest.mark.parametrize("count", [0, FEWEST_KNOWN - 1])
def test_too_few_seeds_change_nothing(count):
    rows, _, null = planted(200, 0.3)
    strict = too_strict(null)
    alone, _ = verified(rows, 200, strict, SIGNS, PRIOR)
    assert verified(rows, 200, strict, SIGNS, PRIOR, known_links(count))[0].tobytes() == alone.tobytes()


@pytest.mark.parametrize("answer", [True, False])
def test_seeds_that_were_all_found_or_all_missed(answer):
    rows, _, null = planted(200, 0.3)
    known = known_links(30, is_right=np.full(30, answer))
    confidences, right = verified(rows, 200, too_strict(null), SIGNS, PRIOR, known)
    assert ((confidences > 0) & (confidences < 1)).all()
    assert 0 <= right.low <= right.value <= right.high <= 200
