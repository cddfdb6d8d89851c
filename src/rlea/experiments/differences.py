"""Why a figure here differs from the paper's, as far as is known."""

from __future__ import annotations

from rlea.experiments.published import DEVIATIONS

UNKNOWN = "Not known."
OTHER_NAMES = (
    "RDGCN starts from names: the published one from word vectors, this one from character n-grams, which suit "
    "these pairs better."
)
GREEDY = (
    "The agent as the paper describes it learns to accept every pair and gives greedy's links (docs/paper.md, on "
    "AlignE's vectors), so it adds to these vectors what greedy adds; why the paper's adds "
)


def reason(model: str, pair: str, column: str, difference: float) -> str:
    """A sentence or two on why Hits@1 of a column of Table 1 differs by `difference` (positive: higher here)."""
    if model == "rdgcn":
        low = " Seq refuses pairs below its threshold at random." if column == "seq" and difference < 0 else ""
        return OTHER_NAMES + low
    if column == "nearest":
        return _of_vectors(model, pair, difference)
    if column == "seq":
        if model == "rsn":
            return (
                "Seq matches what is above a threshold, and other pairs at random, more similar ones more often. RSN's "
                "correct pairs are far below BootEA's threshold of .7, used here; the paper does not name its own."
            )
        return "The paper names neither the threshold nor the probabilities of its Seq; here they are BootEA's."
    if column == "paper":
        return GREEDY + ("more" if difference < 0 else "less") + " is not known."
    return UNKNOWN


def _of_vectors(model: str, pair: str, difference: float) -> str:
    if model == "jape":
        return (
            "The paper's row JAPE is, to three digits, the benchmark's MTransE. JAPE's own published figures are .263, "
            ".288, .250 and .469."
        )
    if abs(difference) <= 2 * DEVIATIONS[model][pair]:
        return "Within two of the deviations that the benchmark's authors report; folds differ less here."
    if abs(difference) < 0.01:
        return "Less than a point, where hardly any difference between folds is reported."
    return UNKNOWN
