"""Build the site of the pages in docs/, with references of the commands and of the Python package, the notebook as a
page, and a gallery of reports.

python scripts/build_site.py          # into build/site
python scripts/build_site.py FOLDER   # into FOLDER/site
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WIDTH = 100  # letters of a line of code
# Report of the gallery -> what is aligned, and what to say of it.
GALLERY = {
    "places": ("src/rlea/demo", "Places of the world, English against French: the two graphs of `rlea demo`."),
    "buildings": ("docs/data/ours.csv docs/data/theirs.csv", "The two tables of [the notebook](two_tables.md)."),
}


def command_reference() -> str:
    """Every command of the command line with its arguments and options, as Markdown."""
    import typer
    from rich.text import Text

    from rlea.cli import app

    def text_of(marked: str | None) -> str:
        return Text.from_markup(marked or "").plain

    def cell(text: str) -> str:
        return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")

    lines = ["# Commands", "", "`rlea COMMAND --help` says the same."]
    for name, command in typer.main.get_command(app).commands.items():
        lines += ["", f"## rlea {name}", "", *paragraphs(text_of(command.help))]
        rows = [
            (shown_name(one), text_of(getattr(one, "help", "")), one.default)
            for one in command.params
            if one.opts[0] != "--help"
        ]
        if rows:
            lines += ["", "| | | default |", "|---|---|---|"]
            lines += [f"| `{one}` | {cell(text)} | {default_of(default)} |" for one, text, default in rows]
    return "\n".join(lines) + "\n"


def shown_name(parameter: Any) -> str:
    """Options as they are typed, arguments in capitals."""
    if parameter.opts[0].startswith("-"):
        return ", ".join(parameter.opts)
    return str(parameter.metavar or parameter.name).upper()


def default_of(value: object) -> str:
    """A default as a cell; nothing where there is none."""
    if value is None or value is False or value == () or value == "" or callable(value):
        return ""
    return f"`{value}`"


def paragraphs(text: str) -> Iterator[str]:
    """Help text as Markdown: examples become code."""
    for part in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        line = " ".join(part.split())
        example = re.match(r"(Examples?:)?\s*(rlea .*)", line)
        if example:
            yield from ["", f"    {example[2]}", ""]
        else:
            yield from [line, ""]


def python_reference() -> str:
    """Every public name with its signature and docstring, as Markdown."""
    import rlea

    lines = [
        "# The Python package",
        "",
        "All that a user needs is in `rlea`; [From Python](python.md) shows it at work.",
    ]
    for name in rlea.__all__:
        thing = getattr(rlea, name)
        lines += ["", f"## rlea.{name}", "", *signature(name, thing), *docstring(thing)]
        if inspect.isclass(thing):
            for own, member in vars(thing).items():
                inner = getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))
                if own.startswith("_") or not inspect.isfunction(inner) or not inner.__doc__:
                    continue
                is_property = not callable(member) and not isinstance(member, staticmethod | classmethod)
                lines += ["", f"### {name}.{own}", ""]
                lines += [*([] if is_property else signature(f"{name}.{own}", inner)), *docstring(inner)]
    return "\n".join(lines) + "\n"


def signature(name: str, thing: Any) -> list[str]:
    """How it is called, as code; a line for each parameter where one line is too long."""
    try:
        found = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return []
    found = re.sub(r"<(?:factory|function)[^>]*>", "...", found)
    found = re.sub(r"((?:: |-> ))'([^']*)'", r"\1\2", found)  # annotations are kept as strings
    if len(name + found) > WIDTH:
        found = re.sub(r", (?=\*{0,2}\w+: |\*, )", ",\n    ", found.replace("(", "(\n    ", 1))
    return ["```python", f"{name}{found}", "```", ""]


def docstring(thing: object) -> list[str]:
    """The docstring, its examples as code."""
    lines, is_code = [], False
    for line in (inspect.getdoc(thing) or "").splitlines():
        if line.startswith(">>>") and not is_code:
            lines += ["", "```pycon"]
            is_code = True
        elif is_code and not line.strip():
            lines.append("```")
            is_code = False
        lines.append(line)
    return [*lines, *(["```"] if is_code else [])]


def make_gallery(pages: Path) -> str:
    """Align, put the reports into `pages`/gallery, and return the page that leads to them."""
    lines = ["# Reports", "", "What `rlea align --output` writes as `report.html` ([what is in it](report.md)):", ""]
    (pages / "gallery").mkdir()
    for name, (graphs, text) in GALLERY.items():
        run = pages.parent / "runs" / name
        gold = ["--gold", "docs/data/gold.csv"] if name == "buildings" else []
        command = [sys.executable, "-m", "rlea", "align", *graphs.split(), *gold, "--output", str(run), "--quiet"]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        shutil.copy(run / "report.html", pages / "gallery" / f"{name}.html")
        lines.append(f"- [{name}](gallery/{name}.html): {text}")
    return "\n".join(lines) + "\n"


def build(folder: Path) -> Path:
    """Copy the pages, write the references beside them, and build; returns the folder of the site."""
    pages, site = folder / "docs", folder / "site"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    (pages / "commands.md").write_text(command_reference(), encoding="utf-8")
    (pages / "reference.md").write_text(python_reference(), encoding="utf-8")
    from run_notebook import as_page

    for notebook in pages.glob("*.ipynb"):
        notebook.with_suffix(".md").write_text(as_page(notebook), encoding="utf-8")
    (pages / "gallery.md").write_text(make_gallery(pages), encoding="utf-8")
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("build/docs", str(pages.resolve())).replace("build/site", str(site.resolve()))
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--config-file", str(folder / "mkdocs.yml")]
    subprocess.run(command, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return site


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"Written: {build(folder)}/index.html")


if __name__ == "__main__":
    main()
