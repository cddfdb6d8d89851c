"""docs/reproduction.md and the report of a reproduction: all that is kept of the experiments, beside the paper."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS, results_of
from rlea.experiments.store import Record
from rlea.views.report.page import Section as HtmlSection
from rlea.views.report.page import render_page
from rlea.views.report.page import table as html_table

SHORT = 40  # cells of at most this many letters stay on one line
_CODE = re.compile(r"`([^`]+)`")
_BOLD = re.compile(r"\*\*([^*]+)\*\*")


@dataclass(frozen=True)
class Section:
    """One experiment: what it is (Markdown), its table, what is to be said of it, its pictures (SVG)."""

    title: str
    intro: str
    table: str
    remarks: str
    pictures: dict[str, str]


def is_reproduction(folder: Path) -> bool:
    """Whether a folder holds what `rlea reproduce` keeps."""
    return any(
        store.at(folder).file.exists() for experiment in EXPERIMENTS.values() for store in experiment.parts.STORES
    )


def sections(folder: Path) -> list[Section]:
    """The experiments of which something is kept in a folder."""
    found = []
    for name, experiment in EXPERIMENTS.items():
        records = experiment.records(folder)
        shown = experiment.shown(record for own in records.values() for record in own)
        if not shown:
            continue
        of_paper = "" if experiment.repeats == "nothing" else f" ({experiment.repeats} of the paper)"
        intro = [" ".join(part.split()) for part in (experiment.parts.__doc__ or "").strip().split("\n\n")]
        parts, results = experiment.parts, results_of(records)
        remarks = "\n\n".join(part for part in (parts.remarks(results), _commits(shown)) if part)
        pictures = parts.pictures(results)
        found.append(Section(f"{name}{of_paper}", "\n\n".join(intro), parts.table(results), remarks, pictures))
    if not found:
        raise InputError("has no results of experiments", path=folder, remedy="make some: rlea reproduce main --quick")
    return found


def _commits(shown: Iterable[Record]) -> str:
    """At which commits the records were made that a section shows."""
    counts = Counter(record["commit"] or "no commit" for record in shown)
    parts = ", ".join(f"`{name}` ({count})" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
    return f"Recorded at (cells): {parts}."


HEAD = """# The paper, measured again

Made by `scripts/reproduction_page.py` from `results/`; do not edit it by hand. Every figure has its record there:
command, commit, seed, fingerprints of the data and of the vectors, machine. Each experiment is one command, and
`rlea experiments` lists them:

```text
rlea reproduce main --quick                           # a small synthetic pair: that it works, in a minute or two
rlea reproduce main --data DIR --folds 1-5 --models sea
```

DIR has the folders of OpenEA's 15K data sets, version 1. A stopped run loses the current cell: the same command
continues from there, and finished cells are not run again unless settings, code, data or vectors have changed. Vectors
and agents are kept in `runs/`; vectors put there by hand (`sea_D_W_1.safetensors`) are used as they are. A quick run
leaves its results in `runs/quick/results`; its figures only show that everything works. `rlea report FOLDER` makes a
page of a folder of results.

No decider sees a test link; [measuring.md](measuring.md) says on what each setting was chosen. All deciders of a model,
pair and fold have the same vectors and the same candidates, fifty of the 10,500 test targets, of which the paper's
agent uses ten and the agent of this package twenty. Figures are means over folds, with the standard deviation
between them where there are several. Records name the commit that they were made at: the command in them is one of
that commit. The trainings of the vectors are in `embeddings.json` (fold 1) and `vectors.json` (other folds; on a GPU).
"""


def html(folder: Path) -> str:
    """The same as one self-contained HTML page."""
    parts = []
    for section in sections(folder):
        texts = [render_markdown(text) for text in (section.intro, section.table, section.remarks) if text]
        shown = [picture(svg, section.title) for svg in section.pictures.values()]
        parts.append(HtmlSection(section.title, Markup("\n").join([texts[0], *shown, *texts[1:]])))
    return render_page("The paper, measured again", parts)


def picture(svg: str, title: str) -> Markup:
    """A picture that stands alone within a page: as an image, so that its style is its own."""
    data = base64.b64encode(svg.encode()).decode()
    shape = '<p class="wide"><img class="picture" alt="{}" src="data:image/svg+xml;base64,{}"></p>'
    return Markup(shape).format(title, data)


def markdown(folder: Path, pictures: str) -> str:
    """The page; `pictures` is the folder of the pictures, seen from it."""
    parts = [HEAD]
    for section in sections(folder):
        parts.append(f"## {section.title[0].upper()}{section.title[1:]}\n\n{section.intro}\n\n{section.table}\n")
        if section.remarks:
            parts.append(section.remarks + "\n")
        parts += [f"![{section.title}]({pictures}/{stem}.svg)\n" for stem in section.pictures]
    return "\n".join(parts)


# ---- Markdown as HTML ------------------------------------------------------------------------------------------------


def render_markdown(text: str) -> Markup:
    """A small subset of Markdown as HTML: paragraphs, lists, tables, bold and code, in blocks between blank lines."""
    return Markup("\n").join(_block(block) for block in re.split(r"\n\s*\n", text.strip()) if block)


def _block(block: str) -> Markup:
    lines = block.splitlines()
    if len(lines) > 1 and lines[0].startswith("|") and set(lines[1]) <= set("|-"):
        head, _, *rows = (_cells(line) for line in lines)
        numbers = [place for place in range(len(head)) if all(_is_number(row[place]) for row in rows)]
        return html_table([_inline(cell) for cell in head], [[_cell(cell) for cell in row] for row in rows], numbers)
    if all(line.startswith("- ") for line in lines):
        return Markup("<ul>{}</ul>").format(
            Markup("").join(Markup("<li>{}</li>").format(_inline(line[2:])) for line in lines)
        )
    return Markup("<p>{}</p>").format(_inline(" ".join(lines)))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _is_number(cell: str) -> bool:
    return re.match(r"(\*\*)?[-+]?[\d.]", cell) is not None or cell in ("-", "")


def _inline(text: str) -> Markup:
    safe = str(escape(text)).replace("&lt;br&gt;", "<br>")
    return Markup(_BOLD.sub(r"<strong>\1</strong>", _CODE.sub(r"<code>\1</code>", safe)))


def _cell(text: str) -> Markup:
    """Short cells stay on one line, so that names and figures do not break on a narrow page; long ones get room."""
    shape = '<span class="short">{}</span>' if len(text) <= SHORT else '<span class="long">{}</span>'
    return Markup(shape).format(_inline(text)) if text else Markup("")
