"""How good links are, measured against gold links; `ranks` does it for vectors. No other module reads test links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rlea.graph import Links
from rlea.matching import Matching

if TYPE_CHECKING:
    from rlea.search.candidates import CandidateLists

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class LinkMetrics:
    """How many links are right, and how many of the right ones were found."""

    precision: float  # correct / matched, 0 where nothing was matched
    recall: float  # correct / gold
    f1: float
    hits_at_1: float  # share of the gold sources whose surest link is right
    correct: int
    matched: int  # links that gold can judge
    gold: int
    ignored: int  # links that gold cannot judge
    pool: str

    def as_dict(self) -> dict[str, Any]:
        """A flat object for machines; Hits@1 is spelt `hits@1`."""
        return {
            "hits@1": self.hits_at_1,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "correct": self.correct,
            "matched": self.matched,
            "gold": self.gold,
            "ignored": self.ignored,
            "pool": self.pool,
        }


def link_metrics(matching: Matching, gold: Links, *, pool: str = "test") -> LinkMetrics:
    """Precision, recall, F1 and Hits@1 of a matching.

    A link is judged if gold knows its source or its target: such a link is right if it is in gold, and wrong if not.
    A link between two entities of which gold knows neither can be neither: it is ignored and counted as such. (In a
    pool of all entities many have no known counterpart, and gold does not say that they have none.) Hits@1 takes the
    surest link of every gold source; for matchers that give a source one link at most, it is the recall wherever
    gold is one-to-one. Several equally sure links of one source share the hit.
    """
    judged = _judge(matching, gold)
    num_gold = len(np.unique(_keys(gold.source_ids, gold.target_ids)))
    correct, matched = int(judged.correct.sum()), len(judged.correct)
    precision = correct / matched if matched else 0.0
    recall = correct / num_gold if num_gold else 0.0
    return LinkMetrics(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if correct else 0.0,
        hits_at_1=_hits_at_1(judged, gold),
        correct=correct,
        matched=matched,
        gold=num_gold,
        ignored=judged.ignored,
        pool=pool,
    )


def coverage(candidates: CandidateLists, gold: Links) -> float:
    """The share of the gold pairs that are candidates at all: the recall that no matcher over them can exceed.

    Gold pairs outside the pools count as not covered; without gold pairs the share is 0.
    """
    wanted = np.unique(_keys(gold.source_ids, gold.target_ids))
    pairs = candidates.pairs
    offered = _keys(candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns])
    return float(np.isin(wanted, offered).mean()) if len(wanted) else 0.0


# ---- confidence -----------------------------------------------------------------------------------------------------


class CalibrationBin(NamedTuple):
    """Links of similar confidence: how sure they claim to be, how many of them are right, how many they are."""

    mean_confidence: float
    accuracy: float
    num_links: int


def calibration(matching: Matching, gold: Links, bins: int = 10) -> list[CalibrationBin]:
    """Confidence against accuracy in `bins` stretches of equal width over [0, 1], least sure first.

    Only links that gold can judge count (see `link_metrics`). Stretches without links are left out.
    """
    if bins < 1:
        raise ValueError("bins must be at least 1")
    judged = _judge(matching, gold)
    number = np.minimum((judged.confidences * bins).astype(np.int64), bins - 1)
    result = []
    for one in np.unique(number):
        here = number == one
        confidence, accuracy = judged.confidences[here].mean(), judged.correct[here].mean()
        result.append(CalibrationBin(float(confidence), float(accuracy), int(here.sum())))
    return result


def expected_calibration_error(matching: Matching, gold: Links, bins: int = 10) -> float:
    """The mean distance between confidence and accuracy over the stretches of `calibration`, weighted by links."""
    parts = calibration(matching, gold, bins)
    total = sum(part.num_links for part in parts)
    return sum(part.num_links * abs(part.mean_confidence - part.accuracy) for part in parts) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall of the links of at least each threshold, surest first; one point per distinct confidence."""

    threshold: Doubles  # (num_points,), descending
    precision: Doubles  # (num_points,)
    recall: Doubles  # (num_points,), ascending
    pool: str

    @property
    def average_precision(self) -> float:
        """The area under the steps of the curve."""
        return float((np.diff(self.recall, prepend=0.0) * self.precision).sum())


def precision_recall_curve(matching: Matching, gold: Links, *, pool: str = "test") -> PrecisionRecallCurve:
    """What precision and recall become as less sure links are let in; links of equal confidence enter together.

    Only links that gold can judge count (see `link_metrics`); the last point has the precision and recall of the
    whole matching.
    """
    judged = _judge(matching, gold)
    num_gold = len(np.unique(_keys(gold.source_ids, gold.target_ids)))
    order = np.argsort(-judged.confidences, kind="stable")
    confidences, correct = judged.confidences[order], np.cumsum(judged.correct[order])
    last = np.flatnonzero(np.append(confidences[1:] != confidences[:-1], True)[: len(confidences)])
    return PrecisionRecallCurve(
        threshold=confidences[last],
        precision=correct[last] / (last + 1.0),
        recall=correct[last] / max(num_gold, 1),
        pool=pool,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """The distinct links of a matching on which gold has a say."""

    source_ids: NDArray[np.int32]
    confidences: Doubles
    correct: NDArray[np.bool_]
    ignored: int


def _judge(matching: Matching, gold: Links) -> _Judged:
    if np.isnan(matching.confidences).any():
        raise ValueError("a confidence is not a number")
    # Surest first, so that of a link given twice the surer mention stays.
    order = np.argsort(-matching.confidences, kind="stable")
    keys, first = np.unique(_keys(matching.source_ids[order], matching.target_ids[order]), return_index=True)
    chosen = order[first]
    known = np.isin(matching.source_ids[chosen], gold.source_ids) | np.isin(
        matching.target_ids[chosen], gold.target_ids
    )
    correct = np.isin(keys, _keys(gold.source_ids, gold.target_ids))
    chosen, correct = chosen[known], correct[known]
    return _Judged(
        matching.source_ids[chosen], matching.confidences[chosen], correct, ignored=int(np.count_nonzero(~known))
    )


def _hits_at_1(judged: _Judged, gold: Links) -> float:
    gold_sources = np.unique(gold.source_ids)
    if len(gold_sources) == 0 or len(judged.source_ids) == 0:
        return 0.0
    sources, number = np.unique(judged.source_ids, return_inverse=True)
    surest = np.full(len(sources), -np.inf)
    np.maximum.at(surest, number, judged.confidences)
    top = judged.confidences == surest[number]
    shares = np.bincount(number[top & judged.correct], minlength=len(sources)) / np.bincount(number[top])
    return float(shares.sum() / len(gold_sources))


def _keys(source_ids: NDArray[Any], target_ids: NDArray[Any]) -> NDArray[np.int64]:
    """One number per pair."""
    return (source_ids.astype(np.int64) << 32) | target_ids.astype(np.int64)
