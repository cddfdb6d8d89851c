"""Draw the pictures of docs/agent.md from results/: what each part of the agent adds, and its joint rounds.

    python scripts/context_pictures.py [--check]

Reads results/context_ablation.json and results/joint.json and writes docs/context_ablation.svg and docs/joint.svg; with
--check it only says whether the pictures are those of the records.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rlea.views.report.plots import dots_plot, lines_plot, stack_plots

HOME = Path(__file__).parent.parent


def load(name: str) -> list[dict]:
    return [run["result"] for run in json.loads((HOME / "results" / name).read_text(encoding="utf-8"))["runs"].values()]


def draw_ablation() -> str:
    """Validation Hits@1 of every case, a colour a pair."""
    rows: dict[str, dict[str, float]] = {}
    for result in load("context_ablation.json"):
        rows.setdefault(result["case"], {})[result["pair"].replace("_", "-")] = result["valid_hits@1"]
    return dots_plot(rows, "Hits@1 on validation links", least=0.6)


def draw_joint() -> str:
    """Test Hits@1 against the round, of the agent's links and of the vectors alone."""
    plots = []
    for key, title in (("hits@1", "the agent, Hits@1"), ("nearest", "nearest by the vectors, Hits@1")):
        lines: dict[str, list[tuple[float, float]]] = {}
        for result in load("joint.json"):
            if (result["model"], result["fold"]) == ("aligne", "1"):
                lines[result["pair"].replace("_", "-")] = [(row["round"], row[key]) for row in result["by_round"]]
        plots.append(lines_plot(lines, "joint round", title))
    return stack_plots(plots, columns=2)


def main() -> None:
    for name, draw in (("context_ablation", draw_ablation), ("joint", draw_joint)):
        name = f"{name}.svg"
        path, picture = HOME / "docs" / name, draw()
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != picture:
                sys.exit(f"docs/{name} is not that of the records; run scripts/context_pictures.py")
        else:
            path.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
