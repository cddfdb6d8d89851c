"""One self-contained HTML page for a run: what was found, how sure it is, and where it went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from numpy.typing import NDArray

from rlea import metrics
from rlea.report.plots import Line, bar_plot, line_plot

if TYPE_CHECKING:
    from rlea.graph import GraphPair
    from rlea.pipeline import Result

ROWS = 15  # of each table of examples


def render_run(result: Result, record: dict[str, Any]) -> str:
    """The page as text. Links are judged where gold links are known and only shown where they are not."""
    matching, pair = result.matching, result.pair
    order = np.argsort(-matching.confidences, kind="stable")
    gold = dict(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    known_targets = set(pair.test.target_ids.tolist())
    rows = [
        _row(pair, int(matching.source_ids[place]), int(matching.target_ids[place]), gold, known_targets)
        | {"confidence": f"{matching.confidences[place]:.3f}"}
        for place in order
    ]
    wrong = [row for row in rows if row["verdict"] == "wrong"]
    counts, _ = np.histogram(matching.confidences, bins=20, range=(0.0, 1.0))
    plots = [("Links by confidence", bar_plot(counts.tolist(), "confidence", "links"))]
    if result.links is not None:
        curve = metrics.precision_recall_curve(matching, pair.test)
        plots.append(
            (
                "Precision against recall, as less sure links are let in",
                line_plot([_curve(curve)], "recall", "precision"),
            )
        )
        bins = [(mean, share) for mean, share, count in metrics.calibration(matching, pair.test) if count]
        plots.append(
            (
                "Is the confidence to be trusted? On the diagonal it is",
                line_plot([Line("links", bins, "first")], "confidence", "share that is right", diagonal=True),
            )
        )
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rlea.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("run.html.j2").render(
        result=result,
        summary=result.summary(),
        record=record,
        plots=plots,
        surest=rows[:: max(len(rows) // 2 // ROWS, 1)][:ROWS],
        doubtful=rows[-ROWS:],
        wrong=wrong[:ROWS],
        num_wrong=len(wrong),
    )


def _curve(curve: Any) -> Line:
    points = [
        (float(recall), float(precision)) for recall, precision in zip(curve.recall, curve.precision, strict=True)
    ]
    if len(points) > 200:
        keep: NDArray[np.intp] = np.linspace(0, len(points) - 1, 200).astype(np.intp)
        points = [points[place] for place in keep]
    return Line("links", points, "first")


def _row(pair: GraphPair, source: int, target: int, gold: dict[int, int], known_targets: set[int]) -> dict[str, str]:
    """A link in words, with the verdict where gold has one."""
    if source in gold:
        verdict = "right" if gold[source] == target else "wrong"
    else:
        verdict = "wrong" if target in known_targets else ""
    return {
        "source": pair.source.names[source],
        "target": pair.target.names[target],
        "source_id": pair.source.entities[source],
        "target_id": pair.target.entities[target],
        "verdict": verdict,
        "right": pair.target.names[gold[source]] if source in gold and verdict == "wrong" else "",
    }
