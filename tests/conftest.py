"""What many tests need: the benchmark data where it is, a small pair, and the command line in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples each time: a run of the tests says something about the code, not about its luck. `make test-random`
# looks for new ones. No deadlines: the first example may have to wait for a compiler.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("same")

# As the command line does: threads that spin while they wait make small steps a hundred times slower on busy machines.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


# What is printed is compared by its words: on a terminal of eighty columns without colours, whatever this one is like.
# rich asks for them when its consoles are made, so before anything of rlea is imported.
os.environ.update(COLUMNS="80", LINES="25")
for name in ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)

# Where tests say what is decided: as planted, the same again, the same in another order. `.ci/run` runs these as other
# machines would (scripts/test_machines.py).
DECISIONS = (
    "matchers/",
    "agent/",
    "evidence/",
    "serve/test_reconciler.py",
    "test_explain.py",
    "views/test_explain_channels.py",
    "test_same_everywhere.py",
)
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of decisions, by where they are; not the slow ones, which `-m decisions` would run otherwise."""
    for item in items:
        if item.get_closest_marker("slow"):
            continue
        if item.path.is_relative_to(HERE) and item.path.relative_to(HERE).as_posix().startswith(DECISIONS):
            item.add_marker("decisions")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder named by RLEA_DATA; tests that need it are skipped where it is unset."""
    place = os.environ.get("RLEA_DATA")
    if not place:
        pytest.skip("RLEA_DATA is unset: real benchmark data is needed")
    return Path(place)


@dataclass(frozen=True)
class Outcome:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def share_of_the_cores() -> None:
    """Where several processes run the tests, each takes its share: threads of all would only wait for each other."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes > 1:
        import numba

        numba.set_num_threads(max(numba.config.NUMBA_NUM_THREADS // processes, 1))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """For small tasks: waking a second thread costs more than all of them."""
    import numba

    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture
def run_cli(capsys, monkeypatch):
    """Run `rlea` with arguments in this process, exactly as the console script does."""
    from rlea import cli

    def run(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["rlea", *map(str, arguments)])
        capsys.readouterr()
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        printed = capsys.readouterr()
        return Outcome(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def flow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a pair of 150 entities (`pair`: misspelt and missing names) and planted vectors of it."""
    from dataclasses import replace

    from rlea.io.read import read
    from rlea.io.synthetic import SyntheticSettings, synthetic_embeddings, write_synthetic
    from rlea.io.writers.vectors import write_embeddings

    folder: Path = tmp_path_factory.mktemp("flow")
    planted = SyntheticSettings(150, seeds=0.3, name_noise=0.4, nameless=0.3, drop=0.3, num_relations=8, seed=5)
    write_synthetic(folder / "pair", planted)
    pair = read(folder / "pair")
    vectors = replace(synthetic_embeddings(pair, noise=0.5), info={})
    write_embeddings(folder / "vectors.safetensors", vectors, pair.source, pair.target)
    return folder
