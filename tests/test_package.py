"""The public door, the direction of imports, and what the package says about itself."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rlea

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rlea"

# A module may import those before it in this list (and those of its own package), never those after it.
LAYERS = [
    ["errors", "progress", "peak_memory", "record", "arithmetic"],
    ["graph"],
    ["search"],
    ["matching"],
    ["io", "masking", "demo"],
    ["models"],
    ["evaluation"],
    ["evidence"],
    ["agent"],
    ["matchers", "paper"],
    ["settings"],
    ["pipeline"],
    ["views"],
    ["experiments"],
    ["commands"],
    ["cli"],
]


def layer_of(module: str) -> int:
    for number, names in enumerate(LAYERS):
        if module in names:
            return number
    raise AssertionError(f"{module} stands in no layer: add it to LAYERS where it belongs")


def imports(tree: ast.Module, *, at_run_time: bool = True):
    """Modules of rlea imported anywhere in a file, those for type checking left out."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            skipped.update(id(inner) for inner in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rlea":
            parts = node.module.split(".")
            yield from ([parts[1]] if len(parts) > 1 else [alias.name for alias in node.names])
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("rlea."))


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    # readers build embeddings and matchings, and writers read what readers wrote in no case
    for other in imports(ast.parse(path.read_text())):
        if other != own:
            assert layer_of(other) < layer_of(own), f"{own} imports {other}"


def test_public_names_are_sorted_and_there():
    assert rlea.__all__ == sorted(rlea.__all__, key=lambda name: (name != name.upper(), name.lower() == name, name))
    for name in rlea.__all__:
        assert getattr(rlea, name) is not None
    assert dir(rlea) == sorted(rlea.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        rlea.nothing  # noqa: B018


@pytest.mark.parametrize("arguments", [["--help"], ["align", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    """Help must answer at once, so numpy and everything above it stay unloaded."""
    program = (
        "import sys; sys.argv = ['rlea', *sys.argv[1:]]\n"
        "from rlea.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'torch', 'scipy', 'numba', 'polars', 'sklearn', 'pyoxigraph'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout


def test_no_flow_imports_torch_unless_it_trains():
    program = (
        "import sys, rlea.pipeline, rlea.search.candidates, rlea.matchers.best_first; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_no_unfinished_work_in_the_source():
    marks = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
    found = [str(path) for path in SOURCE.rglob("*.py") if marks.search(path.read_text())]
    assert found == []
