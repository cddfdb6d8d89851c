"""How many links are right: planted mixtures found again, by null models and by confidences of another share."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlea.agent.overlap import (
    MOST,
    RightLinks,
    Scored,
    grow,
    least_share,
    most_like,
    rate_links,
    ratio_to_null,
    scale_down,
    share_of_right,
    shift_share,
    trust_in_halves,
)

NO_LINKS = Scored(np.zeros(0), 0)
SHARES = (0.0, 0.1, 0.5, 1.0)
some_scores = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=40).map(np.array)


def planted(size, share, seed=0):
    """Scores of links, and which are right: these score higher by four standard deviations."""
    rng = np.random.default_rng(seed)
    is_right = rng.permutation(size) < round(share * size)
    return rng.normal(0, 1, size) + 4 * is_right, is_right


def null_of(size, seed=1):
    return Scored(np.random.default_rng([size, seed]).normal(0, 1, size), size)


def right_scores(size, seed=4):
    """As right links of planted mixtures score."""
    return np.random.default_rng([size, seed]).normal(4, 1, size)


def equal(scores):
    """Weights that add up to one."""
    return np.full(len(scores), 1 / len(scores))


def rated(own, unrelated, taken_out, **options):
    """As `rate_links`, each match that was taken out being one of the links in turn."""
    places = np.arange(len(taken_out.scores)) % max(1, len(own.scores))
    return rate_links(own, unrelated, taken_out, places, **options)


# ---- by null models -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [150, 2000])
@pytest.mark.parametrize("share", SHARES)
def test_the_number_of_right_links_is_found(size, share):
    off = []
    for seed in range(6):
        scores, is_right = planted(size, share, seed)
        nulls = null_of(2 * size, 2 * seed + 1), null_of(2 * size, 2 * seed + 2)
        confidences, right = rated(Scored(scores, size), *nulls)
        off.append(right.value / size - share)
        assert 0 <= right.low <= right.value <= right.high <= size
        assert confidences.sum() == pytest.approx(right.value)
        assert ((confidences > 0) & (confidences < 1)).all()
        sure = confidences >= 0.9
        assert is_right[sure].sum() >= 0.95 * sure.sum() - 2
        assert (confidences[is_right] >= 0.5).mean() > 0.7 if share >= 0.5 else sure.sum() <= round(share * size) + 2
    assert np.abs(off).max() < (0.1 if size == 150 else 0.05)
    assert abs(np.mean(off)) < 0.04


@pytest.mark.parametrize("share", SHARES)
def test_confidence_never_falls_as_the_score_rises(share):
    scores, _ = planted(400, share)
    confidences, _ = rated(Scored(scores, 400), null_of(500), null_of(300))
    order = np.argsort(scores)
    assert (np.diff(confidences[order]) >= -1e-12).all()


def test_confidences_are_the_share_of_right_links_among_links_alike():
    scores, is_right = planted(20_000, 0.3)
    confidences, _ = rated(Scored(scores, 20_000), null_of(20_000), null_of(20_000, 2))
    bins = np.minimum((10 * confidences).astype(int), 9)
    gaps = [abs(confidences[bins == one].sum() - is_right[bins == one].sum()) for one in range(10)]
    assert sum(gaps) / len(scores) < 0.02


def test_where_nothing_is_shared_confidences_add_up_to_next_to_nothing():
    totals = []
    for seed in range(20):
        scores, _ = planted(500, 0.0, seed)
        confidences, right = rated(Scored(scores, 500), null_of(500, 2 * seed + 1), null_of(500, 2 * seed + 2))
        assert right.low < 0.02 * 500
        totals.append(confidences.sum())
    assert np.mean(totals) < 0.02 * 500
    assert max(totals) < 0.07 * 500


def test_an_entity_without_a_link_is_the_clearest_case_of_no_match():
    """A third of the entities got a link, half of them right; the null links as many of its entities as are wrong."""
    scores, _ = planted(300, 0.5)
    null = null_of(300)
    confidences, right = rated(Scored(scores, 900), Scored(null.scores, 1500), Scored(null.scores, 1500))
    assert right.value == pytest.approx(150, abs=25)
    assert confidences.sum() == pytest.approx(right.value)


def test_a_null_without_any_link_makes_links_sure():
    """Coincidence linked none of a hundred entities, and here everyone has a link."""
    scores = np.random.default_rng(0).normal(4, 1, 100)
    confidences, right = rated(Scored(scores, 100), Scored(np.zeros(0), 400), NO_LINKS)
    assert np.median(confidences) > 0.95
    assert right.value > 95
    # Links of half the entities are as sure: the others are of those without.
    confidences, right = rated(Scored(scores[:50], 100), Scored(np.zeros(0), 400), NO_LINKS)
    assert np.median(confidences) > 0.9
    assert right.value == pytest.approx(50, abs=6)


def test_without_a_null_model_nothing_is_known():
    scores = np.arange(6.0)
    confidences, right = rated(Scored(scores, 6), NO_LINKS, NO_LINKS)
    assert confidences.tolist() == [0.5] * 6
    assert right == RightLinks(3.0, 0.0, 6)
    confidences, right = rated(Scored(np.zeros(0), 9), null_of(10), null_of(10))
    assert len(confidences) == 0
    assert right == RightLinks(0.0, 0.0, 0)


def test_the_two_null_models_bound_the_number():
    """Halves of a graph look better than the second best of taken entities: few and many may be right."""
    scores, _ = planted(600, 0.5)
    better, poorer = Scored(null_of(600).scores + 1.5, 600), Scored(null_of(600, 2).scores, 600)
    values = {
        name: rated(Scored(scores, 600), *nulls)[1]
        for name, nulls in {"better": (better, better), "both": (better, poorer), "poorer": (poorer, poorer)}.items()
    }
    assert values["better"].value <= values["both"].value <= values["poorer"].value
    assert values["both"].low == pytest.approx(values["better"].low, abs=12)
    assert values["both"].high == pytest.approx(values["poorer"].high, abs=12)


# ---- its parts ------------------------------------------------------------------------------------------------------


@given(some_scores)
def test_of_links_like_the_null_none_is_right(scores):
    assert share_of_right(scores, scores, equal(scores), errors=1.0) == 0.0


def test_all_links_above_the_null_are_right():
    null = np.random.default_rng(0).normal(0, 1, 500)
    assert share_of_right(null + 20, null, equal(null), errors=1.0) > 0.97


@given(some_scores, st.permutations(range(40)), st.floats(0.01, 1.0))
def test_a_null_like_the_links_is_as_dense_everywhere(scores, numbers, weight):
    """Scores in common belong together, however often they occur and whichever comes first; one more is added."""
    null = scores[[number for number in numbers if number < len(scores)]]
    ratios = ratio_to_null(scores, null, np.full(len(null), weight))
    np.testing.assert_allclose(ratios, 1 + 1 / len(null), rtol=1e-6)


@given(some_scores, some_scores, st.floats(0.01, 1.0))
def test_weights_that_are_equal_count_as_none(own, null, weight):
    """Up to a factor, too."""
    expected = share_of_right(own, null, equal(null), errors=0.0)
    ratios = ratio_to_null(own, null, equal(null))
    np.testing.assert_allclose(ratio_to_null(own, null, np.full(len(null), weight)), ratios, rtol=1e-6, atol=1e-9)
    twice = np.repeat(null, 2)
    assert share_of_right(own, twice, equal(twice), errors=0.0) == pytest.approx(expected, abs=1e-9)


@given(some_scores, some_scores)
def test_more_errors_leave_fewer_right(own, null):
    shares = [share_of_right(own, null, equal(null), errors) for errors in (-2.0, 0.0, 1.0, 2.0)]
    assert shares == sorted(shares, reverse=True)
    assert 0 <= min(shares) <= max(shares) <= MOST


@given(some_scores, some_scores, st.integers(0, 5))
def test_the_ratio_never_rises_with_the_score(own, null, seed):
    weights = np.random.default_rng(seed).uniform(0.1, 1, len(null))
    ratios = ratio_to_null(own, null, weights)
    assert (np.diff(ratios[np.argsort(own, kind="stable")]) <= 1e-9).all()
    assert (ratios >= 0).all()
    assert all(np.ptp(ratios[own == score]) == 0 for score in own)


@given(some_scores, some_scores, st.permutations(range(40)))
def test_the_order_of_links_does_not_matter(own, null, numbers):
    order = np.array([number for number in numbers if number < len(own)])
    back = np.array([number for number in numbers if number < len(null)])
    ratios = ratio_to_null(own, null, equal(null))
    np.testing.assert_allclose(ratio_to_null(own[order], null[back], equal(null)), ratios[order], rtol=1e-6, atol=1e-9)
    expected = share_of_right(own, null, equal(null), 1.0)
    assert share_of_right(own[order], null[back], equal(null), 1.0) == pytest.approx(expected, abs=1e-9)


def test_the_ratio_of_two_known_densities():
    """Normal densities one standard deviation apart: the ratio at x is exp(1/2 - x)."""
    rng = np.random.default_rng(0)
    own, null = rng.normal(1, 1, 20_000), rng.normal(0, 1, 20_000)
    ratios = ratio_to_null(own, null, equal(null))
    for x in (-0.5, 0.0, 0.5, 1.0, 2.0):
        found = ratios[np.abs(own - x) < 0.1].mean()
        assert found == pytest.approx(np.exp(0.5 - x), rel=0.15)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=50).map(np.array), st.floats(0.0, 50.0))
def test_confidences_are_scaled_down_alike_and_never_up(confidences, wanted):
    found = scale_down(confidences, wanted)
    assert found.sum() <= max(confidences.sum(), wanted) + 0.5 + 1e-9
    assert (found <= confidences + 1e-12).all()
    if confidences.sum() <= wanted + 0.5:
        assert found is confidences
    else:
        assert found.sum() == pytest.approx(wanted + 0.5, abs=1e-3)
        moved = np.log(found / (1 - found)) - np.log(confidences / (1 - confidences))
        assert np.ptp(moved) < 1e-3


# ---- by confidences of another share --------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0.05, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
def test_the_share_is_found_whatever_share_confidences_were_calibrated_on(base, share):
    scores, is_right = planted(2000, share)
    odds = np.exp(4 * scores - 8) * base / (1 - base)
    shifted, right = shift_share(odds / (1 + odds), base)
    assert right.value / 2000 == pytest.approx(share, abs=0.02)
    assert shifted.sum() == pytest.approx(right.value)
    assert right.low - 5 <= round(2000 * share) <= right.high + 5
    assert right.high - right.low < 0.1 * 2000
    order = np.argsort(scores)
    assert (np.diff(shifted[order]) >= 0).all()
    sure = shifted >= 0.9
    assert is_right[sure].sum() >= 0.95 * sure.sum() - 2
    assert sure.mean() >= 0.9 * share - 0.1  # those that were most certain do not say how certain


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_the_base_does_not_matter(one, other):
    """The same links with confidences that were calibrated on one share and on another."""
    scores, _ = planted(300, 0.4)
    found = []
    for base in (one, other):
        odds = np.exp(2 * scores - 4) * base / (1 - base)  # moderate, so that none is cut
        found.append(shift_share(odds / (1 + odds), base))
    assert found[0][1].value == pytest.approx(found[1][1].value, abs=3)


def test_confidences_that_are_calibrated_already_stay():
    scores, is_right = planted(5000, 0.4)
    odds = np.exp(4 * scores - 8) * 0.4 / 0.6
    shifted, _ = shift_share(odds / (1 + odds), 0.4)
    assert np.abs(shifted - odds / (1 + odds)).max() < 0.02
    assert shifted[is_right].mean() > 0.95


def test_without_links_or_without_a_base_nothing_is_shifted():
    confidences = np.array([0.2, 0.9])
    for base in (0.0, 1.0):
        shifted, right = shift_share(confidences, base)
        assert shifted is confidences
        assert right == RightLinks(pytest.approx(1.1), 0.0, 2)
    assert shift_share(np.zeros(0), 0.5)[1] == RightLinks(0.0, 0.0, 0)


@pytest.mark.parametrize("base", [0.03, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("difference", [-0.003, 0.0, 0.003])
def test_confidences_that_tell_nothing_are_not_taken_for_another_share(base, difference):
    """All links look alike, as those did that confidences were calibrated on: there is no reason to move."""
    confidences = np.full(200, base * (1 + difference))
    shifted, right = shift_share(confidences, base)
    assert (np.abs(np.log(shifted / (1 - shifted)) - np.log(base / (1 - base))) < 0.8).all()
    assert right.low <= 200 * base <= right.high
    assert right.high - right.low > 100  # it is not known


# ---- twice as many rivals -------------------------------------------------------------------------------------------


def best_of(rivals, size=4000, seed=0):
    """The best of so many random scores, for each of some entities."""
    rng = np.random.default_rng([seed, rivals])
    return Scored(rng.normal(0, 1, (rivals, size)).max(axis=0), size)


def test_the_best_of_twice_as_many_is_found_from_fewer():
    grown, true, halves = grow(best_of(20), best_of(10)), best_of(40), best_of(20)
    for level in (0.7, 0.9, 0.97, 0.99):
        wanted = np.quantile(true.scores, level)
        # The step from ten to twenty is a little larger than the one from twenty to forty.
        assert abs(np.quantile(grown.scores, level) - wanted) < abs(np.quantile(halves.scores, level) - wanted)


@pytest.mark.parametrize("count", [4, 10, 20, 40])
def test_namesakes_are_twice_as_many_in_twice_as_large_a_graph(count):
    quarters, halves = (Scored(np.where(np.arange(1000) < some, 5.0, 0.0), 1000) for some in (count // 2, count))
    assert np.count_nonzero(grow(halves, quarters).scores > 4) == pytest.approx(2 * count, rel=0.05)
    # Against a graph ten times as large an entity has nearly as many rivals in halves as in the pair.
    assert np.count_nonzero(grow(halves, quarters, 1.1).scores > 4) == pytest.approx(1.1 * count, abs=1)


def test_what_quarters_never_show_doubles():
    grown = grow(Scored(np.arange(20.0), 1000), Scored(np.zeros(0), 500))
    assert np.count_nonzero(grown.scores >= 0) == pytest.approx(40, abs=1)


def test_rivals_may_grow_more_than_once():
    halves, quarters, true = best_of(20), best_of(10), best_of(80)
    grown = [grow(halves, quarters, times=times) for times in (0, 1, 2)]
    for level in (0.5, 0.7, 0.9):
        wanted = np.quantile(true.scores, level)
        off = [abs(np.quantile(one.scores, level) - wanted) for one in grown]
        assert off[2] < off[1] < off[0]


def test_what_does_not_depend_on_rivals_stays():
    halves, quarters = best_of(20), best_of(20, seed=1)
    for level in (0.1, 0.5, 0.9, 0.97):
        assert np.quantile(grow(halves, quarters).scores, level) == pytest.approx(
            np.quantile(halves.scores, level), abs=0.15
        )


@given(some_scores, some_scores)
def test_it_never_shrinks(one, other):
    halves, quarters = Scored(one, len(one)), Scored(other, len(other))
    grown = grow(halves, quarters)
    assert len(grown.scores) == grown.num_entities == len(one)
    assert (np.sort(grown.scores) >= np.sort(one) - 1.0).all()  # within a step of these scores
    assert grown.scores.max() <= one.max()
    assert grow(halves, NO_LINKS) is halves
    assert grow(NO_LINKS, quarters) is NO_LINKS


def test_nothing_is_believed_where_halves_explain_all_links():
    """What entities get whose match was taken out may be far below: second bests say nothing of bests."""
    rng = np.random.default_rng(0)
    own, halves, taken_out = (Scored(rng.uniform(low, high, 200), 200) for low, high in ((1, 1.5), (1, 3), (-4, -3)))
    confidences, right = rated(own, halves, taken_out)
    assert confidences.max() < 0.1
    assert right.value < 0.05 * 200


def test_ten_links_by_coincidence_are_rarely_believed():
    random, believed = np.random.default_rng(0), []
    for _ in range(200):
        drawn = (random.normal(0, 1, 10), random.normal(0, 1, 60), random.normal(-1.5, 1, 18))
        own, halves, taken_out = (Scored(scores, len(scores)) for scores in drawn)
        believed.append(np.count_nonzero(rated(own, halves, taken_out)[0] >= 0.6))
    assert np.mean(believed) < 1.1  # 1.5 with no more caution than elsewhere


def test_matches_taken_out_count_as_far_as_they_were_believed():
    """Entities whose right match is gone show what coincidence is; those of wrong ones show a second best."""
    scores, is_right = planted(1500, 0.4)
    halves, random = Scored(null_of(1500).scores + 1.5, 1500), np.random.default_rng(3)
    places = np.arange(1500)
    taken_out = random.normal(0, 1, 1500) - np.where(is_right, 0, 6)
    confidences, right = rate_links(Scored(scores, 1500), halves, Scored(taken_out, 1500), places)
    assert right.value / 1500 == pytest.approx(0.4, abs=0.06)
    shuffled = rate_links(Scored(scores, 1500), halves, Scored(random.permutation(taken_out), 1500), places)[1]
    assert abs(shuffled.value / 1500 - 0.4) > abs(right.value / 1500 - 0.4)
    assert is_right[confidences >= 0.9].mean() > 0.95


def test_seeds_overrule_halves_that_explain_all_links():
    scores, is_right = planted(600, 0.3)
    strict, taken_out = Scored(null_of(600).scores + 5, 600), null_of(600, 2)
    assert rated(Scored(scores, 600), strict, taken_out)[1].value < 0.1 * is_right.sum()
    confidences, right = rated(Scored(scores, 600), strict, taken_out, known=right_scores(40))
    assert right.value > 0.5 * is_right.sum()
    assert is_right[confidences >= 0.5].mean() > 0.8


def test_seeds_do_not_overrule_halves_that_leave_room_for_right_links():
    """Entities whose wrong match was taken out show a second best, and most matches are wrong here."""
    scores, is_right = planted(1000, 0.1)
    random, places = np.random.default_rng(3), np.arange(1000)
    taken_out = Scored(random.normal(0, 1, 1000) - np.where(is_right, 0, 2), 1000)
    lenient = rate_links(Scored(scores, 1000), NO_LINKS, taken_out, places)[1]
    confidences, right = rate_links(Scored(scores, 1000), null_of(1000), taken_out, places, right_scores(40))
    assert lenient.value > 3 * is_right.sum()
    assert 0.5 * is_right.sum() < right.value < 2 * is_right.sum()
    assert is_right[confidences >= 0.9].mean() > 0.9


def test_no_more_links_are_right_than_look_like_known_ones():
    """Matches taken out are no null model here: they look far worse than coincidence."""
    scores, is_right = planted(1000, 0.1)
    taken_out, places = Scored(null_of(1000).scores - 4, 1000), np.arange(1000)
    unseeded = rate_links(Scored(scores, 1000), NO_LINKS, taken_out, places)[1]
    seeded = rate_links(Scored(scores, 1000), NO_LINKS, taken_out, places, right_scores(40))[1]
    assert unseeded.value > 3 * is_right.sum()
    assert seeded.value < 1.6 * is_right.sum()


@given(some_scores, some_scores)
def test_the_bound_by_known_links_falls_the_better_these_look(links, known):
    bound = most_like(links, known)
    assert 0 < most_like(links, known + 1) <= bound + 1e-9
    assert bound <= MOST
    assert most_like(known, known) == MOST


def test_links_between_the_quartile_and_the_median_of_known_ones_are_not_all_right():
    """Of the links, a tenth look like known ones; all others lie where only a quarter of the known ones lie."""
    known = np.random.default_rng(0).normal(5, 1, 100)
    low, half = np.quantile(known, (0.25, 0.5))
    others = np.random.default_rng(1).uniform(low, half, 900)
    bound = most_like(np.concatenate([others, np.random.default_rng(2).normal(5, 1, 100)]), known)
    assert 0.1 < bound < 0.25


def test_a_share_seen_in_a_small_sample_may_be_far_lower():
    shares = [least_share(0.5, number) for number in (5, 20, 100, 10_000)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.2
    assert 0.48 < shares[-1] < 0.5


def test_a_few_known_links_that_look_good_by_luck_hold_little_back():
    """All links are right, and look like the known ones; room is left for luck."""
    bounds = []
    for seed in range(200):
        random = np.random.default_rng(seed)
        bounds.append(most_like(random.normal(5, 0.7, 180), random.normal(5, 0.7, 17)))
    assert np.quantile(bounds, 0.05) > 0.9
    assert min(bounds) > 0.6


@given(some_scores, some_scores)
def test_trust_in_halves_falls_the_better_they_look(halves, known):
    trust = trust_in_halves(halves, known)
    assert 0 <= trust_in_halves(halves + 1, known) <= trust <= 0.5
    assert trust_in_halves(known - 20, known) == 0.5
    assert trust_in_halves(known + 20, known) == 0.0
    assert trust_in_halves(np.zeros(0), known) == trust_in_halves(halves, np.zeros(0)) == 0.0


def test_a_score_that_coincidence_was_not_seen_to_reach_is_not_certain():
    """Two links above all of the null are no proof, forty are."""
    null = np.arange(40.0)
    for count, least, most in ((2, 0.2, 0.8), (40, 0.0, 0.05)):
        ratio = ratio_to_null(np.concatenate([np.arange(40.0), np.full(count, 50.0)]), null, equal(null))[-1]
        assert least * (40 + count) / 40 <= ratio <= most * (40 + count) / 40


@pytest.mark.parametrize("base", [1e-6, 5e-4, 0.001, 0.3, 0.999, 0.9995, 1 - 1e-6])
@pytest.mark.parametrize("count", [20, 12_000])
def test_where_links_are_as_sure_as_those_of_the_calibration_the_share_stays(count, base):
    """Also if next to all are right: D-Y with seeds, where the best confidence is lower than the share."""
    for confidences in (np.full(count, base), np.arange(count) < round(base * count)):
        shifted, right = shift_share(confidences.astype(float), base)
        assert right.value / count == pytest.approx(base, abs=0.05)
        assert right.low <= right.value <= right.high
        assert shifted.max() <= 1
