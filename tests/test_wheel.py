"""The package as users install it: a wheel, in an environment of its own."""

import json
import os
import subprocess
import sys
import tomllib
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# A folder of the checkout on the path would be imported in place of the wheel.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=CLEAN, **options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The Python of an environment that has the wheel and its dependencies and nothing else.

    Without an index of packages, the wheel is built by the hatchling that is here, and the dependencies are those of
    the running environment: that shows what the wheel holds, though not that its list of dependencies is complete.
    """
    folder = tmp_path_factory.mktemp("wheel")
    has_index = run(*PIP, "download", "--quiet", "--no-deps", "--dest", folder / "probe", "hatchling").returncode == 0
    if not has_index and find_spec("hatchling") is None:
        pytest.skip("no index of packages can be reached, and hatchling is not installed")
    isolation = () if has_index else ("--no-build-isolation",)
    built = run(*PIP, "wheel", "--quiet", "--no-deps", *isolation, "--wheel-dir", folder / "dist", ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "dist").glob("rlea-*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    options = ("--constraint", ROOT / "constraints.txt") if has_index else ("--no-deps",)
    done = run(*PIP, "--python", python, "install", "--quiet", *options, wheel)
    assert done.returncode == 0, done.stderr
    if not has_index:
        place = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
        (Path(place) / "borrowed.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    return python


@pytest.mark.slow
def test_the_installed_package_aligns(installed, tmp_path):
    """The demo, and the shortest program, run where there is no checkout."""
    demo = run(installed.parent / "rlea", "demo", "--quiet", "--json", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    rows = {row["matcher"]: row["f1"] for row in json.loads(demo.stdout)["rows"]}
    assert max(rows, key=rows.get) == "fused"
    assert (tmp_path / "rlea-demo" / "report.html").exists()
    program = (
        "import rlea, pathlib, sys\n"
        "assert pathlib.Path(rlea.__file__).is_relative_to(sys.prefix), rlea.__file__\n"
        "print(len(rlea.align(rlea.read_demo(), channels=('names',))))"
    )
    short = run(installed, "-c", program, cwd=tmp_path)
    assert short.returncode == 0, short.stderr
    assert int(short.stdout) > 500


@pytest.mark.slow
def test_the_wheel_carries_types_demo_and_licences(installed):
    program = (
        "from importlib.metadata import files, version\n"
        "print(version('rlea'), *sorted(str(f) for f in files('rlea') if not str(f).endswith('.py')))"
    )
    version, *names = run(installed, "-c", program).stdout.split()
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for wanted in ("rlea/py.typed", "rlea/demo/source.nt.gz", "rlea/demo/LICENSES.md"):
        assert wanted in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
