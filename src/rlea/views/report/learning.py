"""Learning curves from the record of a run.

A record may come from another version: rows that are not as expected are left out, without an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rlea.record import as_dict, as_list, as_rows, is_number
from rlea.views.report.page import Plot
from rlea.views.report.plots import Axis, line_plot, lines_plot

CURVE_POINTS = 200  # more than a plot of this size can show
FEW = 5  # up to this many points, each one has a tick

Row = dict[str, Any]

VECTORS, ROUNDS, EPISODES = "epoch", "round", "episode"
# By the key of the x axis: key in the rows, title of the plot, label of the y axis.
CURVES = {
    VECTORS: (("valid_hits_at_1", "Vectors: validation Hits@1", "Hits@1"), ("loss", "Vectors: loss", "loss")),
    ROUNDS: (
        ("valid", "Joint rounds: validation links found", "share"),
        ("sure", "Joint rounds: confident links", "links"),
    ),
    EPISODES: (
        ("aligned", "Agent: links per episode", "aligned"),
        ("length", "Agent: length of episodes", "steps"),
        ("reward", "Agent: reward per episode", "reward"),
        ("valid_aligned", "Agent: validation links found", "aligned"),
    ),
}


def learning_plots(info: Row) -> list[Plot]:
    """Curves of the vectors, the joint rounds and the agent, as far as they are recorded."""
    agent = as_rows(as_dict(info.get("agent")).get("history"))
    plots = _plots(VECTORS, as_rows(info.get("history")), _note_on_vectors(info))
    plots += _plots(ROUNDS, as_rows(info.get("joint")))
    losses: dict[str, list[tuple[float, float]]] = {}
    for row in agent:
        if is_number(row.get("epoch")) and is_number(row.get("loss")):
            losses.setdefault(str(row.get("stage", "loss")), []).append((row["epoch"], row["loss"]))
    if losses:
        plots.append(Plot("Agent: loss on held-out links", lines_plot(losses, "epoch", "loss")))
    return plots + _plots(EPISODES, agent)


def choice_rows(info: Row) -> list[tuple[str, str, str, str]]:
    """Weights of vectors that the agent tried on validation links: of propagated and of fitted ones, correct links,
    "chosen" or empty."""
    agent = as_dict(info.get("agent"))
    chosen = _weights(as_dict(agent.get("weights")))
    return [
        (
            _short(row["propagation"]),
            ", ".join(map(_short, row["vectors"])) if row.get("is_learned") else "fixed passes only",
            f"{row['valid_aligned']:,.0f}",
            "chosen" if _weights(row) == chosen else "",
        )
        for row in as_rows(agent.get("history"))
        if row.get("stage") == "choice" and is_number(row.get("valid_aligned")) and is_number(row.get("propagation"))
    ]


def _weights(row: Row) -> tuple[Any, ...]:
    return row.get("propagation"), list(row.get("vectors") or ()), row.get("is_learned")


def _note_on_vectors(info: Row) -> str:
    resumed = as_list(info.get("resumed_at"))
    if resumed and is_number(resumed[-1]):
        return f"from epoch {resumed[-1]:,}, where training was resumed"
    return "of the round that was kept" if info.get("joint") else ""


def _plots(x: str, rows: Sequence[Row], note: str = "") -> list[Plot]:
    """One plot per curve that the rows have values of."""
    plots = []
    for key, title, label in CURVES[x]:
        points = [(row[x], row[key]) for row in rows if is_number(row.get(x)) and is_number(row.get(key))]
        if points:
            plots.append(Plot(title, _curve(points, x, label), note))
    return plots


def _curve(points: Sequence[tuple[float, float]], x_label: str, y_label: str) -> str:
    """A line scaled to its points. Single episodes are noisy: a long history is shown as means of equal parts."""
    parts = np.array_split(np.array(points, dtype=np.float64), min(len(points), CURVE_POINTS))
    means = [(float(x), float(y)) for x, y in (part.mean(axis=0) for part in parts)]
    x_axis, y_axis = Axis.around([x for x, _ in points]), Axis.around([y for _, y in means])
    if len(points) <= FEW:  # there is no round between the first and the second
        x_axis = replace(x_axis, ticks=tuple(sorted({x for x, _ in points})))
    return line_plot(means, x_label, y_label, x_axis=x_axis, y_axis=y_axis)


def _short(value: Any) -> str:
    return f"{value:g}" if is_number(value) else "not known"
