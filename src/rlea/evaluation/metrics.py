"""Scores of links against gold links: precision, recall, calibration. Only `rlea.evaluation` reads test links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
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
    """Precision, recall and what they were counted from."""

    hits_at_1: float  # share of gold sources whose most confident link is correct
    precision: float  # correct / judged; 0 if nothing was judged
    precision_of_all: float  # correct / matched: the precision if links that were not judged are wrong
    recall: float  # correct / gold
    f1: float
    correct: int
    matched: int  # all links
    judged: int  # links with a source or target that gold knows; all links if gold is complete
    gold: int
    pool: str
    gold_complete: bool

    def as_dict(self) -> dict[str, Any]:
        """A flat dict for JSON; Hits@1 is spelt `hits@1`."""
        return as_record(self)


def as_record(found: Any, left_out: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of metrics for JSON: hits_at_k is spelt `hits@k`."""
    return {name.replace("_at_", "@"): value for name, value in asdict(found).items() if name not in left_out}


def link_metrics(matching: Matching, gold: Links, *, pool: str = "test", complete: bool = False) -> LinkMetrics:
    """Precision, recall, F1 and Hits@1 of a matching.

    A link is judged if gold knows its source or its target: it is correct if it is in gold, else wrong. A link between
    two entities that gold does not know is not judged: with a pool of all entities, many have no known counterpart, and
    gold does not say that they have none. If gold is `complete`, it does: every link is judged. Hits@1 takes the most
    confident link of every gold source; equally confident links of one source share the hit. For one-to-one links and
    gold, Hits@1 is the recall.
    """
    judged = _judge(matching, gold, complete)
    num_gold = len(np.unique(pair_keys(gold)))
    correct, num_judged = int(judged.correct.sum()), len(judged.correct)
    precision = correct / num_judged if num_judged else 0.0
    recall = correct / num_gold if num_gold else 0.0
    return LinkMetrics(
        precision=precision,
        precision_of_all=correct / judged.num_links if judged.num_links else 0.0,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if correct else 0.0,
        hits_at_1=_hits_at_1(judged, gold),
        correct=correct,
        matched=judged.num_links,
        judged=num_judged,
        gold=num_gold,
        pool=pool,
        gold_complete=complete,
    )


def without_validation(matching: Matching, gold: Links, valid: Links) -> Matching:
    """The links to score: without those of entities that only validation links know. Gold does not judge them."""
    sides = (
        (matching.source_ids, gold.source_ids, valid.source_ids),
        (matching.target_ids, gold.target_ids, valid.target_ids),
    )
    in_gold, in_valid = (np.any([np.isin(ids, known[k]) for ids, *known in sides], axis=0) for k in (0, 1))
    kept = in_gold | ~in_valid
    return Matching.of(matching.source_ids[kept], matching.target_ids[kept], matching.confidences[kept])


def coverage(candidates: CandidateLists, gold: Links) -> float:
    """The share of gold links that are candidates: an upper bound on the recall of any matcher over them.

    Gold links outside the pools count as not covered; without gold links the share is 0.
    """
    wanted = np.unique(pair_keys(gold))
    pairs = candidates.pairs
    offered = Links(candidates.source_ids[pairs.rows], candidates.target_ids[pairs.columns])
    return float(np.isin(wanted, pair_keys(offered)).mean()) if len(wanted) else 0.0


# ---- confidence -----------------------------------------------------------------------------------------------------


class CalibrationBin(NamedTuple):
    """Links of similar confidence."""

    mean_confidence: float
    accuracy: float  # share of them that is correct
    num_links: int


def calibration(matching: Matching, gold: Links, complete: bool = False) -> list[CalibrationBin]:
    """Confidence against accuracy in ten bins of equal width over [0, 1], ascending; empty bins are left out.

    Only links that gold can judge count (see `link_metrics`).
    """
    judged = _judge(matching, gold, complete)
    number = np.minimum((judged.confidences * 10).astype(np.int64), 9)
    result = []
    for one in np.unique(number):
        here = number == one
        confidence, accuracy = judged.confidences[here].mean(), judged.correct[here].mean()
        result.append(CalibrationBin(float(confidence), float(accuracy), int(here.sum())))
    return result


def expected_calibration_error(matching: Matching, gold: Links, complete: bool = False) -> float:
    """Mean distance between confidence and accuracy over the bins of `calibration`, weighted by their links."""
    parts = calibration(matching, gold, complete)
    total = sum(part.num_links for part in parts)
    return sum(part.num_links * abs(part.mean_confidence - part.accuracy) for part in parts) / total if total else 0.0


@dataclass(frozen=True, eq=False)
class PrecisionRecallCurve:
    """Precision and recall of the links at or above each threshold; one point per distinct confidence."""

    threshold: Doubles  # (num_points,), descending
    precision: Doubles  # (num_points,)
    recall: Doubles  # (num_points,), ascending

    @property
    def average_precision(self) -> float:
        """The area under the steps of the curve."""
        return float((np.diff(self.recall, prepend=0.0) * self.precision).sum())


def precision_recall_curve(matching: Matching, gold: Links, complete: bool = False) -> PrecisionRecallCurve:
    """Precision and recall as the threshold falls; links of equal confidence enter together.

    Only links that gold can judge count (see `link_metrics`); the last point is that of the whole matching.
    """
    judged = _judge(matching, gold, complete)
    num_gold = len(np.unique(pair_keys(gold)))
    order = np.argsort(-judged.confidences, kind="stable")
    confidences, correct = judged.confidences[order], np.cumsum(judged.correct[order])
    last = np.flatnonzero(np.append(confidences[1:] != confidences[:-1], True)[: len(confidences)])
    return PrecisionRecallCurve(confidences[last], correct[last] / (last + 1.0), correct[last] / max(num_gold, 1))


@dataclass(frozen=True, eq=False)
class _Judged:
    """The distinct links of a matching that gold can judge."""

    source_ids: NDArray[np.int32]
    confidences: Doubles
    correct: NDArray[np.bool_]
    num_links: int  # judged or not


def _judge(matching: Matching, gold: Links, complete: bool) -> _Judged:
    if np.isnan(matching.confidences).any():
        raise ValueError("a confidence is not a number")
    # Most confident first: a link that occurs twice keeps its higher confidence.
    order = np.argsort(-matching.confidences, kind="stable")
    keys, first = np.unique(pair_keys(matching)[order], return_index=True)
    chosen = order[first]
    known = np.isin(matching.source_ids[chosen], gold.source_ids)
    known |= np.isin(matching.target_ids[chosen], gold.target_ids) | complete
    correct = np.isin(keys, pair_keys(gold))
    chosen, correct = chosen[known], correct[known]
    return _Judged(matching.source_ids[chosen], matching.confidences[chosen], correct, num_links=len(keys))


def _hits_at_1(judged: _Judged, gold: Links) -> float:
    gold_sources = np.unique(gold.source_ids)
    if len(gold_sources) == 0 or len(judged.source_ids) == 0:
        return 0.0
    sources, number = np.unique(judged.source_ids, return_inverse=True)
    highest = np.full(len(sources), -np.inf)
    np.maximum.at(highest, number, judged.confidences)
    top = judged.confidences == highest[number]
    shares = np.bincount(number[top & judged.correct], minlength=len(sources)) / np.bincount(number[top])
    return float(shares.sum() / len(gold_sources))


def pair_keys(pairs: Links | Matching) -> NDArray[np.int64]:
    """One number per pair, (num_pairs,)."""
    return (pairs.source_ids.astype(np.int64) << 32) | pairs.target_ids.astype(np.int64)
