"""Draw the learning curves of docs/agent.md from a record of benchmarks/agent.py.

    python scripts/learning_curves.py [--check]

Reads results/agent_curves.json and writes docs/learning_curves.svg; with --check it only says whether the picture is
the one of the record.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rlea.report.plots import lines_plot, stack_plots

HOME = Path(__file__).parent.parent
RECORD, PICTURE = HOME / "results" / "agent_curves.json", HOME / "docs" / "learning_curves.svg"
TITLES = {"paper": "full", "paper-no-estimator": "without the estimator", "paper-random": "random environment"}
CURVES = {"aligned": "right matches", "length": "decisions", "reward": "reward"}


def draw(record: dict) -> str:
    """One row of three plots for each pair: right matches, decisions and reward against episodes."""
    rows = [row for row in record["rows"] if "history" in row]
    plots = []
    for pair in dict.fromkeys(row["pair"] for row in rows):
        for key, label in CURVES.items():
            lines = {
                TITLES[row["matcher"]]: [(step["episode"], step[key]) for step in row["history"]]
                for row in rows
                if row["pair"] == pair
            }
            plots.append(lines_plot(lines, f"episode, {pair.replace('_', '-')}", label))
    return stack_plots(plots, columns=len(CURVES))


def main() -> None:
    picture = draw(json.loads(RECORD.read_text(encoding="utf-8")))
    if "--check" in sys.argv[1:]:
        if not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != picture:
            sys.exit(
                "docs/learning_curves.svg is not that of results/agent_curves.json; run scripts/learning_curves.py"
            )
        return
    PICTURE.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
