"""The public door, the direction of imports, and what the package says about itself."""

import ast
import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlea

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rlea"

# A module may import those before it, in the same line or above, and those of its own package; never those after it.
LAYERS = """
errors compiled_code plain_text progress tasks peak_memory record arithmetic demo
graph search matching clusters verdicts
io models
evidence evaluation
paper agent matchers budget deciders
scale
views settings config plan same_values same_cells shared_columns merging result pipeline resumed serve review update
duplicates several
experiments commands
cli
"""
ORDER = LAYERS.split()
FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path):
    return str(path.relative_to(SOURCE))


def is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(tree):
    """Modules of rlea imported anywhere in a file, in functions too; those for type checking left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "relative import"
            parts = (node.module or "").split(".")
            if parts[0] == "rlea":
                yield from parts[1:2] or [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rlea."))
        elif not is_type_checking(node):
            yield from imports(node)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_imports_go_one_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    assert own in ORDER, f"{own} stands in no layer: add it to LAYERS where it belongs"
    wrong = [other for other in imports(ast.parse(path.read_text())) if ORDER.index(other) > ORDER.index(own)]
    assert wrong == []


# Where modules are loaded by their name: the public door, and packages that are optional.
BY_NAME = {"__init__.py", "commands.py", "models/name_vectors.py"}


def test_modules_are_imported_and_not_named_in_strings():
    found = {name_of(path) for path in FILES if re.search(r"\b(import_module|__import__)\(", path.read_text())}
    assert found - BY_NAME == set()


def test_the_table_of_public_names_is_that_of_the_type_checker():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if is_type_checking(node)]
    typed = {alias.name: node.module.removeprefix("rlea.") for node in block.body for alias in node.names}
    assert typed == rlea._HOME
    assert sorted(typed) == rlea.__all__


def test_public_names_are_there_and_others_are_not():
    assert rlea.__all__ == sorted(rlea.__all__)
    assert [name for name in rlea.__all__ if not hasattr(rlea, name)] == []
    assert dir(rlea) == sorted([*rlea.__all__, "__version__"])
    assert re.match(r"\d+\.\d+", rlea.__version__)
    assert (SOURCE / "py.typed").exists()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rlea.nothing  # noqa: B018


@pytest.mark.parametrize("name", ["rlea", *rlea.__all__])
def test_public_names_have_examples_that_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = rlea if name == "rlea" else getattr(rlea, name)
    tests = doctest.DocTestFinder(recurse=name != "rlea").find(thing, name, globs={})
    assert any(test.examples for test in tests), f"{name} has no example"
    for test in tests:
        assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


@pytest.mark.parametrize("arguments", [["--help"], ["align", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    """Help must answer at once: nothing but typer and rich."""
    program = (
        "import sys; sys.argv = ['rlea', *sys.argv[1:]]\n"
        "from rlea.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print('MODULES', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    more = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, env=more, check=True
    )
    loaded = set(done.stdout.split("MODULES ")[1].split())
    heavy = {
        "numpy",
        "torch",
        "scipy",
        "numba",
        "polars",
        "sklearn",
        "pyoxigraph",
        "jinja2",
        "safetensors",
        "gymnasium",
    }
    assert "typer" in loaded
    assert loaded & heavy == set()


def test_no_flow_imports_torch_unless_it_trains():
    program = (
        "import sys, rlea.pipeline, rlea.search.candidates, rlea.matchers.best_first; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_unfinished_work_in_the_source():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    assert [name_of(path) for path in FILES if marks.search(path.read_text())] == []
