"""One self-contained HTML page for a run: what was found, how sure it is, and where it went wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jinja2
import numpy as np
from numpy.typing import NDArray

from rlea import metrics
from rlea.report.plots import Axis, bar_plot, line_plot

if TYPE_CHECKING:
    from rlea.graph import Links
    from rlea.matching import Matching
    from rlea.pipeline import Result

ROWS = 15  # of each table of examples
CURVE_POINTS = 200  # more than a plot of this size can show


class Plot(NamedTuple):
    """A picture with its title, and a line below it."""

    title: str
    svg: str
    note: str = ""


def render_run(result: Result, record: dict[str, Any]) -> str:
    """The page as text. Links are judged where gold links are known and only shown where they are not."""
    order = np.argsort(-result.matching.confidences, kind="stable")
    right, wrong = judge_links(result.matching, result.pair.test)
    wrong_places = order[wrong[order]]

    def rows(places: NDArray[np.intp]) -> list[dict[str, str]]:
        return [_row(result, int(place), bool(right[place]), bool(wrong[place])) for place in places]

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rlea.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("run.html.j2").render(
        result=result,
        summary=result.summary(),
        record=record,
        plots=link_plots(result),
        learning=learning_plots(result.info.get("agent", {}).get("history", [])),
        surest=rows(order[:: max(len(order) // 2 // ROWS, 1)][:ROWS]),
        doubtful=rows(order[-ROWS:]),
        wrong=rows(wrong_places[:ROWS]),
        num_wrong=len(wrong_places),
    )


def judge_links(matching: Matching, gold: Links) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which links are right and which are wrong, two masks of shape (num_links,); neither where gold cannot tell."""
    found, known = (
        (ids.source_ids.astype(np.int64) << 32) | ids.target_ids.astype(np.int64) for ids in (matching, gold)
    )
    right = np.isin(found, known)
    judged = np.isin(matching.source_ids, gold.source_ids) | np.isin(matching.target_ids, gold.target_ids)
    return right, judged & ~right


def link_plots(result: Result) -> list[Plot]:
    """How sure the links are and, where gold links are known, whether they are right to be."""
    matching, gold = result.matching, result.pair.test
    counts, _ = np.histogram(matching.confidences, bins=20, range=(0.0, 1.0))
    plots = [Plot("Links by confidence", bar_plot(counts.tolist(), "confidence", "links"))]
    if result.links is not None:
        curve = metrics.precision_recall_curve(matching, gold)
        keep = np.unique(np.linspace(0, max(len(curve.recall) - 1, 0), CURVE_POINTS).astype(np.intp))[
            : len(curve.recall)
        ]
        points = list(zip(curve.recall[keep].tolist(), curve.precision[keep].tolist(), strict=True))
        title = "Precision against recall, as less sure links are let in"
        plots.append(Plot(title, line_plot(points, "recall", "precision")))
        bins = [(part.mean_confidence, part.accuracy) for part in metrics.calibration(matching, gold)]
        plots.append(
            Plot(
                "Is the confidence to be trusted? On the diagonal it is",
                line_plot(bins, "confidence", "share that is right", diagonal=True),
                f"mean distance: {metrics.expected_calibration_error(matching, gold):.2f}",
            )
        )
    return plots


def learning_plots(history: Sequence[dict[str, Any]]) -> list[Plot]:
    """What an agent achieved, episode by episode (`episode`, `aligned`, `length`, `reward`); none without episodes."""
    history = [row for row in history if "episode" in row]
    if not history:
        return []
    # Single episodes are noisy: of a long history, means over equal stretches are shown.
    stretches = np.array_split(np.arange(len(history)), min(len(history), CURVE_POINTS))

    def means(key: str) -> list[float]:
        values = np.array([float(one[key]) for one in history])
        return [float(values[stretch].mean()) for stretch in stretches]

    episodes = means("episode")
    x_axis = Axis.around([float(one["episode"]) for one in history])
    plots = []
    for key, title, label in (
        ("aligned", "Links per episode", "aligned"),
        ("length", "Length of episodes", "steps"),
        ("reward", "Reward per episode", "reward"),
    ):
        values = means(key)
        points = list(zip(episodes, values, strict=True))
        plots.append(Plot(title, line_plot(points, "episode", label, x_axis=x_axis, y_axis=Axis.around(values))))
    return plots


def _row(result: Result, place: int, right: bool, wrong: bool) -> dict[str, str]:
    """A link in words, with the verdict where gold has one and what had been right where it is wrong."""
    matching, pair = result.matching, result.pair
    source, target = int(matching.source_ids[place]), int(matching.target_ids[place])
    should_be = pair.test.target_ids[pair.test.source_ids == source][:1] if wrong else []
    return {
        "source": pair.source.names[source],
        "target": pair.target.names[target],
        "source_id": pair.source.entities[source],
        "target_id": pair.target.entities[target],
        "confidence": f"{matching.confidences[place]:.3f}",
        "verdict": "right" if right else "wrong" if wrong else "",
        "right": pair.target.names[int(should_be[0])] if len(should_be) else "",
    }
