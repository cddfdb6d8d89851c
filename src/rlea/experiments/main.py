"""Table 1: deciders over the same vectors and candidates, Hits@1, mean and standard deviation over folds.

`nearest` takes the most similar target (Orig in the paper), `seq` is the paper's baseline, `paper` its agent as it is
described, `rlea` the agent of this package. The first column of the paper's row JAPE equals, to three digits, the
benchmark's row MTransE, so that row is shown beside both models.
"""

from __future__ import annotations

from rlea.experiments.deciders import DECIDERS
from rlea.experiments.deciding import DECIDERS_STORE, deciders_grid
from rlea.experiments.figures import Figure, Key, Result, Results, figures_of, markdown_table, share, title
from rlea.experiments.grid import Grid
from rlea.experiments.options import PAIRS, SHOWN_PAIRS, TRAINED, choose
from rlea.experiments.published import DEVIATIONS, TABLE_1, TITLES
from rlea.experiments.workspace import Workspace
from rlea.views.report.plots import dots_plot

MODELS = ("mtranse", "jape", "sea", "rsn", "rdgcn")
OWN_DECIDERS = ("nearest", "csls", "sinkhorn", "hungarian", "seq", "best-first", "paper", "rlea")
OF_PAPER = {"nearest": "Orig", "seq": "Seq", "paper": "RLEA"}  # columns of Table 1 by our names of them
SHOWN = (*OF_PAPER, "rlea", *(name for name in reversed(DECIDERS) if name not in OF_PAPER and name != "rlea"))

# Why a figure here differs from the paper's, as far as is known.
UNKNOWN = "Not known."
OTHER_NAMES = (
    "RDGCN starts from names: the published one from word vectors, this one from character n-grams, which suit "
    "these pairs better."
)
GREEDY = (
    "The agent as the paper describes it learns to accept every pair and gives greedy's links (docs/paper.md, on "
    "AlignE's vectors), so it adds to these vectors what greedy adds; why the paper's adds "
)
STORES = (DECIDERS_STORE,)


def grids(workspace: Workspace) -> list[Grid]:
    """The cells that were asked for."""
    options = workspace.options
    models = choose(options.models, MODELS, TRAINED, "model")
    deciders = choose(options.deciders, OWN_DECIDERS, DECIDERS, "decider")
    return [deciders_grid(workspace, "main", models, deciders, options.pairs_or(PAIRS))]


def is_shown(result: Result) -> bool:
    """Larger data sets are for `scale`, other pools for `dangling`."""
    return result["pool"] == "test" and result["pair"] in SHOWN_PAIRS


def figures(results: Results) -> dict[Key, Figure]:
    """Hits@1 by model, pair and decider."""
    return figures_of(filter(is_shown, results["deciders"]), ("model", "pair", "decider"))


def table(results: Results) -> str:
    """One table per data set: what is measured here, and under it the paper's figure.

    The number of folds is that of the row; a cell with fewer says how many.
    """
    found = figures(results)
    deciders = [name for name in SHOWN if any(key[2] == name for key in found)]
    head = ["model", "folds", *(f"{name} ({OF_PAPER[name]})" if name in OF_PAPER else name for name in deciders)]
    tables = []
    for pair in SHOWN_PAIRS:
        rows = []
        for model in TRAINED:
            own = {name: found[model, pair, name] for name in deciders if (model, pair, name) in found}
            if own:
                best = max(figure.mean for figure in own.values())
                folds = max(figure.folds for figure in own.values())
                cells = [
                    _shown(own.get(name), best, folds, _theirs(model, name, pair), (model, pair)) for name in deciders
                ]
                rows.append([TITLES[model], str(folds), *cells])
        if rows:
            tables.append(f"**{title(pair)}**\n\n{markdown_table(head, rows)}")
    return "\n\n".join(tables)


def _theirs(model: str, decider: str, pair: str) -> float | None:
    return TABLE_1.get(model, {}).get(decider, {}).get(pair)


def _shown(figure: Figure | None, best: float, folds: int, theirs: float | None, of: tuple[str, str]) -> str:
    if figure is None:
        return "-"
    own = f"**{figure}**" if figure.mean == best else str(figure)
    if figure.folds != folds:
        own += f" ({figure.folds})"
    if theirs is None:
        return own
    mark = " ≠" if is_apart(figure, theirs, *of) else ""
    whose = "paper's JAPE" if of[0] == "mtranse" else "paper"
    return f"{own}<br>{whose} {share(theirs)}{mark}"


def is_apart(figure: Figure, theirs: float, model: str, pair: str) -> bool:
    """Whether a figure and the paper's differ by more than two standard deviations between folds.

    Of fewer than three folds the deviation tells nothing; the published one of the model serves then.
    """
    own = figure.deviation if figure.folds >= 3 else None
    deviation = own if own is not None else DEVIATIONS[model][pair]
    return abs(figure.mean - theirs) > 2 * deviation


def remarks(results: Results) -> str:
    """Whether the paper's figures are exceeded; where the two are far apart, by how much, and why."""
    return "\n\n".join(part for part in (against_paper(results), far_apart(results)) if part)


def far_apart(results: Results) -> str:
    """The figures further than two standard deviations from the paper's."""
    found = figures(results)
    rows = []
    for (model, pair, decider), figure in found.items():
        theirs = _theirs(model, decider, pair)
        if theirs is not None and is_apart(figure, theirs, model, pair):
            why = reason_for(model, pair, decider, figure.mean - theirs)
            rows.append([title(pair), TITLES[model], OF_PAPER[decider], share(theirs), str(figure), why])
    if not rows:
        return ""
    text = (
        "Figures that differ from the paper's by more than two standard deviations between folds (≠ above; where fewer"
        " than three folds are measured, it is the one that the benchmark's authors report of the model):\n\n"
    )
    return text + markdown_table(["", "model", "column", "paper", "here", "why"], rows)


def reason_for(model: str, pair: str, column: str, difference: float) -> str:
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


def against_paper(results: Results) -> str:
    """Whether the agent is above the paper's in every cell of Table 1, and where it is not."""
    found = figures(results)
    leads = {}
    for model, columns in TABLE_1.items():
        for pair, theirs in columns["paper"].items():
            # The row beside MTransE is the paper's JAPE, which is counted once.
            if model != "mtranse" and (model, pair, "rlea") in found:
                leads[model, pair] = found[model, pair, "rlea"].mean - theirs
    if not leads:
        return ""
    below = {key: lead for key, lead in leads.items() if lead <= 0}
    mean = 100 * sum(leads.values()) / len(leads)
    (model, pair), least = min(leads.items(), key=lambda item: item[1])
    text = (
        f"The agent of this package (rlea) is above the paper's RLEA in {len(leads) - len(below)} of {len(leads)} cells"
        " of Table 1,"
        f" by {mean:.1f} points in the mean and {100 * least:.1f} at least ({TITLES[model]}, {title(pair)})."
    )
    for (model, pair), lead in below.items():
        why = reason_for(model, pair, "rlea", lead)
        text += f" It is not on {title(pair)} with {TITLES[model]} ({100 * lead:+.1f} points): {why}"
    return text


def pictures(results: Results) -> dict[str, str]:
    """The paper's figures, those of its agent here, and those of the agent of this package."""
    found = figures(results)
    rows: dict[str, dict[str, float]] = {}
    for (model, pair, decider), figure in sorted(found.items(), key=_place):
        if decider in ("nearest", "paper", "rlea"):
            row = rows.setdefault(f"{title(pair)}, {TITLES[model]}", {})
            if decider == "nearest" and _theirs(model, "paper", pair) is not None:
                row["RLEA, published"] = TABLE_1[model]["paper"][pair]
            name = {"nearest": "nearest", "paper": "RLEA as in the paper", "rlea": "rlea"}[decider]
            row[name] = figure.mean
    return {"main": dots_plot(rows, "Hits@1")}


def _place(item: tuple[Key, Figure]) -> tuple[int, int, int]:
    model, pair, decider = item[0]
    return SHOWN_PAIRS.index(pair), TRAINED.index(model), DECIDERS.index(decider)
