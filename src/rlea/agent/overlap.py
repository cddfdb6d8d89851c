"""How many links are right, without a label: what is seen is a mixture of right links and links by coincidence.

Two null models say what coincidence looks like (`null_model.py`). An entity whose right match was taken out has no
counterpart left, so what it gets then is what entities without a counterpart get. If its match was wrong, it shows the
second best, which is too lenient. So each of these counts as far as its match was believed, and that is found out
together with the number of right links. Where next to nothing is believed, unrelated halves of one graph are the null:
too strict a null where graphs share much, because entities with a counterpart are taken and compete.

An entity of a half has fewer rivals than one of the pair (half as many if the graphs are of one size), and so a smaller
chance of a namesake. What that does is seen between halves and halves of these, where the numbers of rivals are in the
same ratio, and done once more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlea.agent.isotonic import pool
from rlea.arithmetic import exp, log
from rlea.progress import tick

Doubles = NDArray[np.float64]

# The share of wrong links is looked for where the null has this share of its links below: right links are rare there.
# Lower, the two graphs differ more from one graph than right links from wrong ones.
LOWEST, HIGHEST, STEPS = 0.6, 0.95, 6
MOST = 0.999  # of a share or a confidence: nothing is certain
DIGITS = 6  # of a confidence: what differs between machines is beyond
MOST_ROUNDS = 80
FEW = 60.0  # matches taken out that were believed, of which fewer than this count less: ten links tell next to nothing
EVEN = 0.05  # share of right links at which the two null models count alike; above it, matches taken out count more
CAUTION = 0.5  # standard errors by which the share of wrong links is raised: the smallest of several bounds is too low
MORE_CAUTION = 1.0  # the same where graphs may share nothing
LESS = 10  # times that matches taken out count less, until they leave no more links than can be right
FEWEST_KNOWN = 15  # links of seeds that show that graphs share something; one or two may be mistakes
GROUPS = 20  # of the scores of halves, in which the effect of twice as many rivals is measured
SURER = 10.0  # times the odds of any link that the surest one may have, at least
LEVELS = 0.25, 0.5  # quantiles of the known links above which right links are counted
ERRORS = 2.33  # standard errors left for chance in these counts: it exceeds them once in a hundred
PRIOR = 10.0  # links that the share among held-out ones is worth, beside the run's own


@dataclass(frozen=True)
class RightLinks:
    """How many links are right: an estimate, and how few or many there may be."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of links, and how many entities could have had one."""

    scores: Doubles  # (num_links,)
    num_entities: int

    def padded(self, lowest: float) -> Doubles:
        """The scores, with the lowest for every entity without a link: that is the clearest case of no match."""
        return np.concatenate([self.scores, np.full(max(0, self.num_entities - len(self.scores)), lowest)])


def rate_links(
    own: Scored, unrelated: Scored, taken_out: Scored, places: NDArray[np.int64], known: Doubles | None = None
) -> tuple[Doubles, RightLinks]:
    """Probabilities that the pair's links are right, (num_links,), and how many of them are.

    `places`, (num_taken_out,), are those of the matches that were taken out, among the pair's links. `known` are
    scores of links that are known to be right, where enough of them show that graphs share something, else None. As few
    links may be right as if halves of a graph were the null model, as many as if matches taken out were.
    """
    parts = (own, unrelated, taken_out)
    lowest = min((float(part.scores.min()) for part in parts if len(part.scores)), default=0.0) - 1.0
    links, *nulls = (part.padded(lowest) for part in parts)
    if not len(own.scores) or not sum(map(len, nulls)):
        return np.full(len(own.scores), 0.5), RightLinks(len(own.scores) / 2, 0.0, len(own.scores))
    scores = np.concatenate(nulls)
    trust = 1.0 if known is None else trust_in_halves(nulls[0], known)
    # Draws of one match are not independent, so each match should count once. Without seeds that is too cautious.
    counted = places if known is None else np.unique(places)
    most_right = MOST if known is None else most_like(links, known)

    def weigh(part: float, belief: Doubles) -> Doubles:
        """The null, as weights that add up to one: this part are matches taken out, the rest halves.

        A null model that is empty leaves it to the other.
        """
        believed = np.append(belief[places], np.full(len(nulls[1]) - len(places), belief.mean()))  # some got no link
        each = np.ones(len(nulls[0])), believed + 1e-6
        wanted = [max(share, 1e-3) * (len(one) > 0) for share, one in zip((1 - part, part), each, strict=True)]
        shares = [share / sum(wanted) for share in wanted]
        return np.concatenate([share * one / max(one.sum(), 1e-9) for share, one in zip(shares, each, strict=True)])

    def weights_of(share: float, belief: Doubles) -> Doubles:
        """The null: how much matches taken out count, and halves for the rest.

        Matches taken out are too lenient if they leave more links than can be right: then they count less.
        """
        told = float(belief[counted].sum())
        part = share / (share + EVEN) * told / (told + FEW)
        part += (1 - trust) * (1 - part)
        found = weigh(part, belief)
        for _ in range(LESS):
            if share_of_right(links, scores, found, 0.0) <= most_right:
                break
            part *= 0.7
            found = weigh(part, belief)
        return found

    def share_by(weights: Doubles, errors: float) -> float:
        return min(share_of_right(links, scores, weights, errors), most_right)

    def believe(share: float, weights: Doubles) -> Doubles:
        chances = 1 - (1 - share) * ratio_to_null(links, scores, weights)[: len(own.scores)]
        return np.asarray(np.round(np.clip(chances, 1 - MOST, MOST), DIGITS))

    # There may be two shares that lead to themselves. Halves lead to the lower one, as far as they are trusted. If they
    # explain all links, nothing is believed at first, unless graphs are known to share something.
    weights = weigh(max(0.0, 1 - 2 * trust), np.ones(len(own.scores)))
    is_explained = known is None and share_by(weights, 2.0) * len(links) < 1
    errors = MORE_CAUTION if is_explained else CAUTION
    share = 0.0 if is_explained else share_by(weights, errors)
    belief = believe(share, weights)
    for _ in range(MOST_ROUNDS):
        tick("comparing links with coincidence")
        weights = weights_of(share, belief)
        share, before = 0.5 * (share + share_by(weights, errors)), share
        belief, doubted = 0.5 * (belief + believe(share, weights)), belief
        if abs(share - before) < 5e-4 and np.abs(belief - doubted).max() < 0.01:
            break
    # Where halves leave a higher share than matches taken out, they are the more lenient ones: they have lost what
    # matters here, such as half of the edges.
    weights, most = weights_of(share, belief), share_by(weigh(1.0, belief), 0.0)
    if len(taken_out.scores) and most < share:
        share, weights = most, weigh(1.0, belief)
    bounds = [share_by(weigh(part, belief), extra) for part in (0.0, 1.0) for extra in (2.0, -2.0)]
    low, high = min(bounds), max(bounds)
    kept = scale_down(believe(share, weights), share * len(links))
    total = float(kept.sum())
    return kept, RightLinks(total, min(low * len(links), total), max(high * len(links), total))


def trust_in_halves(halves: Doubles, known: Doubles) -> float:
    """How much halves of one graph count as a null model, in [0, 0.5], where links are known to be right.

    Half at most: that graphs share something speaks for matches taken out. Not at all where every second entity gets a
    link in halves that looks as good as every second right one: then one graph has what two graphs would not, such as
    variants of one product.
    """
    if not len(halves) or not len(known):
        return 0.0
    return 0.5 * max(0.0, 1 - 2 * float((halves >= np.median(known)).mean()))


def most_like(links: Doubles, known: Doubles) -> float:
    """The highest share of links that can be right, if right links look like those that are known to be.

    Three of four known links score higher than their lower quartile, half of them higher than their median, and as
    many of the right links must. Room is left for chance in both counts. Higher up there are fewer known links, and
    their luck would hold back all others.
    """
    most = MOST
    for level in LEVELS if len(known) else ():
        at = np.quantile(known, level)
        share, number = float((known >= at).mean()), int((links >= at).sum())
        of_known, of_links = share / least_share(share, len(known)) - 1, ERRORS / np.sqrt(max(number, 1))
        error = float(np.sqrt(of_known * of_known + of_links * of_links))
        most = min(most, (number + 0.5) / (share * len(links)) * (1 + error))
    return most


def least_share(share: float, number: int) -> float:
    """The lower end of Wilson's interval of a share that was seen in a sample of so many."""
    one, square = 1 / number, ERRORS * ERRORS
    middle = share + square / 2 * one
    half = ERRORS * np.sqrt(share * (1 - share) * one + square / 4 * one * one)
    return float((middle - half) / (1 + square * one))


def grow(halves: Scored, quarters: Scored, ratio: float = 2.0, times: int = 1) -> Scored:
    """Links between halves of a graph as they would be with as many rivals as in the pair.

    The share of entities with a link of a score or higher grows from quarters to halves by a factor that depends on
    this share: about `ratio`, that of the numbers of rivals, for rare coincidences, 1 where most find one anyway. It is
    taken to grow so once more, or as many `times` as it takes to reach the number of rivals in the pair.
    """
    if not len(halves.scores) or not quarters.num_entities:
        return halves
    lowest = min(float(part.scores.min()) for part in (halves, quarters) if len(part.scores)) - 1.0
    own, fewer = np.sort(halves.padded(lowest)), np.sort(quarters.padded(lowest))
    scores = np.unique(own)[::-1]  # equals are one
    # Shares of entities with each score or a higher one, from the best down.
    above, before = (1 - np.searchsorted(part, scores) / len(part) for part in (own, fewer))
    seen = np.flatnonzero(before > 0)
    levels, factors = [0.0], [ratio]  # where quarters show nothing
    if len(seen) and len(quarters.scores):
        groups = np.array_split(seen, min(GROUPS, len(seen)))
        levels = [float(np.mean(before[part])) for part in groups]
        factors = [float(np.clip(np.median(above[part] / before[part]), 1, ratio)) for part in groups]
    grown = above
    for _ in range(times):
        grown = np.maximum.accumulate(np.minimum(grown * np.interp(grown, levels, factors), 1.0))
    # As many scores with these shares: each where the share reaches the middle of its step.
    middles = (np.arange(len(own)) + 0.5) / len(own)
    return Scored(scores[np.minimum(np.searchsorted(grown, middles), len(scores) - 1)], len(own))


def share_of_right(own: Doubles, null: Doubles, weights: Doubles, errors: float) -> float:
    """The share of links that coincidence does not explain (Storey), in [0, MOST].

    Of wrong links the share weights(null <= t) is below t, so at most own(<= t) / null(<= t) of all links are wrong.
    The smallest such bound counts, each raised by so many standard errors.
    """
    order = np.argsort(null, kind="stable")
    ordered, sums = null[order], np.cumsum(weights[order])
    sums /= sums[-1]
    effective = 1 / float((weights * weights).sum())  # links of equal weight that say as much
    sorted_own, count = np.sort(own), len(own)
    least = 1.0
    for level in np.linspace(LOWEST, HIGHEST, STEPS):
        place = min(int(np.searchsorted(sums, level - 1e-9)), len(ordered) - 1)  # rounding tells nothing
        at = ordered[place]
        below = float(sums[int(np.searchsorted(ordered, at, side="right")) - 1])
        number = int(np.searchsorted(sorted_own, at, side="right"))
        share = (number + 0.5) / (count + 0.5)
        bound = share / below
        error = bound * np.sqrt((1 - share) / max(number, 1) + (1 - below) / max(below * effective, 1.0))
        least = min(least, bound + errors * float(error))
    return float(min(max(1 - least, 0.0), MOST))


def ratio_to_null(own: Doubles, null: Doubles, weights: Doubles) -> Doubles:
    """How dense the null is beside the links, at the score of every link: never rising with the score.

    By isotonic regression over links and null together, straight lines between the middles of its blocks. One more link
    of the null stands beside the best (the +1 of target-decoy counts): that coincidence was not seen to reach a score
    does not mean that it never does.
    """
    weights = weights / weights.sum()
    one_more = float((weights * weights).sum())  # the weight of a link if all had the same and said as much
    scores = np.concatenate([own, null, [max(own.max(), null.max())]])
    answers = np.concatenate([np.zeros(len(own)), np.ones(len(null) + 1)])
    mass = np.concatenate([np.full(len(own), 1 / len(own)), weights, [one_more]])
    falling, where = np.unique(-scores, return_inverse=True)  # so that the share of the null rises; equals are one
    masses = np.bincount(where, mass)
    levels, middles = pool(falling, np.bincount(where, mass * answers) / masses, masses)
    share = np.clip(np.interp(-own, middles, levels), 0, 1 - 1e-6)
    return np.asarray(share / (1 - share))


def scale_down(confidences: Doubles, wanted: float) -> Doubles:
    """Confidences that add up to no more than the number of right links: their odds are lowered alike."""
    if confidences.sum() <= wanted + 0.5:
        return confidences
    logits = log(confidences / (1 - confidences))
    low, high = -40.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        above = (1 / (1 + exp(-(logits + middle)))).sum() > wanted + 0.5
        low, high = (low, middle) if above else (middle, high)
    return np.asarray(1 / (1 + exp(-(logits + low))))


def shift_share(confidences: Doubles, base: float) -> tuple[Doubles, RightLinks]:
    """Confidences for links of which another share is right than of those that they were calibrated on.

    `base` is the share there. Right links look alike in both, and so do wrong ones: how much likelier a link looks if
    it is right is known, and the share is the most likely one (Saerens, Latinne and Decaestecker). A few links' worth
    of belief is in the share there: where confidences tell nothing, it stays.
    """
    if not len(confidences) or not 0 < base < 1:
        return confidences, RightLinks(float(confidences.sum()), 0.0, len(confidences))
    ratios = _ratios(confidences, base)
    low, high = 1 - MOST, MOST
    for _ in range(60):  # the likelihood is concave in the share
        middle = (low + high) / 2
        slope = float(((ratios - 1) / (1 + middle * (ratios - 1))).sum())
        rises = slope + PRIOR * (base / middle - (1 - base) / (1 - middle)) > 0
        low, high = (middle, high) if rises else (low, middle)
    share = (low + high) / 2
    bends = (ratios - 1) / (1 + share * (ratios - 1))
    error = 2 / np.sqrt(max(float((bends * bends).sum()), 1e-9))
    shifted = _at_share(ratios, share)
    low, high = (len(shifted) * min(max(share + sign * error, 0.0), 1.0) for sign in (-1, 1))
    total = float(shifted.sum())
    return np.asarray(shifted), RightLinks(total, min(low, total), max(high, total))


def shift_to(confidences: Doubles, base: float, share: float) -> Doubles:
    """Confidences that were calibrated where a share of `base` is right, for links of which `share` is."""
    if not len(confidences) or not 0 < base < 1:
        return confidences
    return _at_share(_ratios(confidences, base), share)


def _ratios(confidences: Doubles, base: float) -> Doubles:
    """How much likelier each link looks if it is right.

    Nothing is certain, but the surest link must look surer than any link: also where next to all are right.
    """
    kept = np.clip(confidences, min(1 - MOST, base / SURER), max(MOST, 1 - (1 - base) / SURER))
    return np.asarray(kept / (1 - kept) * ((1 - base) / base))


def _at_share(ratios: Doubles, share: float) -> Doubles:
    return np.asarray(share * ratios / (1 + share * (ratios - 1)))
