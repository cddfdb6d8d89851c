"""The site of the docs: every page is in its navigation, every link leads somewhere, nothing comes from elsewhere."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify
from typer.main import get_command

import rlea
from rlea.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATED = {"commands.md", "gallery.md", "reference.md", "two_tables.md"}
NOTEBOOK = DOCS / "two_tables.ipynb"


@pytest.fixture(scope="module", autouse=True)
def scripts_folder():
    """Scripts import each other, as they do when they are run."""
    sys.path.insert(0, str(ROOT / "scripts"))
    yield
    sys.path.remove(str(ROOT / "scripts"))


@pytest.fixture(scope="module")
def script():
    spec = spec_from_file_location("build_site", ROOT / "scripts" / "build_site.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prose(text):
    return re.sub(r"```.*?```", "", text, flags=re.S)


def anchors(text):
    headings = re.findall(r"^#+ +(.*?)\s*$", prose(text), flags=re.M)
    return {slugify(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", ""), "-") for heading in headings}


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    listed = re.findall(r": (\S+\.md)$", nav, flags=re.M)
    assert sorted(listed) == sorted({page.name for page in DOCS.glob("*.md")} | GENERATED)


def test_links_between_pages_lead_to_pages_and_headings():
    found = 0
    for page in DOCS.glob("*.md"):
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", prose(page.read_text())):
            other = DOCS / target if target else page
            assert other.exists() or target in GENERATED, (page.name, target)
            if anchor:
                assert anchor in anchors(other.read_text()), (page.name, target, anchor)
            found += 1
    assert found > 50


def test_references_name_all_commands_options_and_public_names(script):
    commands = script.command_reference()
    for name, command in get_command(app).commands.items():
        section = commands.split(f"\n## rlea {name}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.opts[0].startswith("--") and parameter.opts[0] != "--help":
                assert parameter.opts[0] in section, (name, parameter.opts)
    names = script.python_reference()
    assert [name for name in rlea.__all__ if f"\n## rlea.{name}\n" not in names] == []
    assert " object at 0x" not in names


def test_the_notebook_prints_what_it_says(tmp_path):
    """Its code runs, and its outputs are those in the file, which hold no paths of a machine."""
    from run_notebook import run

    def printed(cells):
        return ["".join(output["text"]) for cell in cells for output in cell.get("outputs", ())]

    kept = printed(json.loads(NOTEBOOK.read_text())["cells"])
    assert len(kept) == 4
    assert not any(re.search(r"/(tmp|home|root|work|Users)\b|\\\\", text) for text in kept)
    assert printed(run(NOTEBOOK, tmp_path)["cells"]) == kept


def test_the_notebook_is_a_page_with_its_code_and_what_that_prints():
    from run_notebook import as_page

    page = as_page(NOTEBOOK)
    assert page.startswith("# Two tables in Python\n")
    assert page.count("```python\n") == page.count("```text\n") == 4


@pytest.mark.slow
def test_the_site_builds_and_loads_nothing_from_elsewhere(script, tmp_path):
    pytest.importorskip("material")
    site = script.build(tmp_path)
    pages = {page.name: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    assert {"index.html", "commands.html", "reference.html", "tutorial_rdf.html"} <= set(pages)
    for name in script.GALLERY:
        assert "What each channel contributed" in (site / "gallery" / f"{name}.html").read_text(encoding="utf-8")
    assert (site / "search" / "search_index.json").stat().st_size > 10_000
    for name, page in pages.items():
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"?(?:https?:)?//[^>]*>", page)
        loaded += re.findall(r"<link[^>]*\bhref=\"?(?:https?:)?//[^>]*>", page)
        assert loaded == [], name
        if name == "404.html":  # its addresses begin at the root of the site
            continue
        ids = set(re.findall(r'\bid="?([^" >]+)', page))
        for target, anchor in re.findall(r'<a[^>]*\bhref="([^":#?]*)(?:#([^"]*))?"', page):
            assert not target or (site / target).exists(), (name, target)
            known = ids if not target else set(re.findall(r'\bid="?([^" >]+)', pages.get(target, "")))
            assert not anchor or (target and target not in pages) or anchor in known, (name, target, anchor)
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", text), sheet.name
