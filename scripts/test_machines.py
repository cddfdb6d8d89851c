"""Run the tests as other machines would: other processors, one thread, another hash seed, a home nobody can write to.

    python scripts/test_machines.py [--settings NAME,NAME] [--list] [--folder build/machines] [-- PYTEST ARGUMENTS]

Without arguments for pytest it runs all fast tests; `-m decisions` are those of what is decided. Names joined by a plus
(openblas-prescott+one-thread) are tried together. Every setting has its own cache of compiled code, kept in the folder
for the next time, and its own log. Ends with exit code 1 if a test failed, 2 for a setting that is not known.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parent.parent
NOBODYS = "/proc/nonexistent"  # no one can make files there, root neither
THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")
HOMES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MPLCONFIGDIR", "TORCH_HOME")


def numpy_state() -> tuple[list[str], Mapping[str, bool]]:
    """The instruction sets that numpy has code of its own for, and those that this processor has."""
    import numpy as np

    core = np._core if hasattr(np, "_core") else np.core
    return list(core._multiarray_umath.__cpu_dispatch__), core._multiarray_umath.__cpu_features__


def numpy_features() -> str:
    """What numpy would use here beyond its baseline."""
    known, there = numpy_state()
    return " ".join(name for name in known if there.get(name))


def is_x86() -> bool:
    return platform.machine().lower() in ("x86_64", "amd64")


def wants_x86() -> str:
    return "" if is_x86() else f"for x86-64, and this is {platform.machine()}"


def wants_avx2() -> str:
    there = numpy_state()[1]
    return wants_x86() or ("" if there.get("AVX2") or there.get("X86_V3") else "this processor has no AVX2")


def wants_numpy_features() -> str:
    return "" if numpy_features() else "numpy has nothing beyond its baseline here"


def wants_linux() -> str:
    return "" if Path("/proc/self").exists() else "there is no /proc here"


def never() -> str:
    return ""


@dataclass(frozen=True)
class Setting:
    """Variables of the environment (None: unset), what they stand for, and why they cannot be tried here."""

    about: str
    variables: Callable[[], dict[str, str | None]]
    missing: Callable[[], str] = never


SETTINGS: dict[str, Setting] = {
    "aten-default": Setting("torch without AVX", lambda: {"ATEN_CPU_CAPABILITY": "default"}, wants_x86),
    "aten-avx2": Setting("torch with AVX2 at most", lambda: {"ATEN_CPU_CAPABILITY": "avx2"}, wants_avx2),
    "openblas-haswell": Setting("BLAS of 2013", lambda: {"OPENBLAS_CORETYPE": "Haswell"}, wants_avx2),
    "openblas-prescott": Setting("BLAS of 2004", lambda: {"OPENBLAS_CORETYPE": "Prescott"}, wants_x86),
    "numba-generic": Setting(
        "compiled for no processor in particular", lambda: {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    ),
    "numpy-baseline": Setting(
        "numpy's own loops at their baseline",
        lambda: {"NPY_DISABLE_CPU_FEATURES": numpy_features()},
        wants_numpy_features,
    ),
    "one-thread": Setting("one thread", lambda: dict.fromkeys(THREADS, "1")),
    "hash-seed": Setting("another order of sets", lambda: {"PYTHONHASHSEED": "20260"}),
    "read-only-home": Setting(
        "a home that cannot be written to", lambda: {"HOME": NOBODYS, **dict.fromkeys(HOMES)}, wants_linux
    ),
}


class UnknownSettingError(Exception):
    """A name that is no setting."""


@dataclass(frozen=True)
class Result:
    """How the tests went under a setting."""

    name: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    note: str = ""  # why nothing was run, or what went wrong beside the tests

    @property
    def state(self) -> str:
        return "FAILED" if self.failed else "ok" if self.passed else "skipped"

    def line(self) -> str:
        head = f"{self.name:32} {self.state:8}"
        if not (self.passed or self.failed):
            return f"{head} {self.note}"
        counts = f"{self.passed:5} passed {self.failed:4} failed {self.skipped:4} skipped {self.seconds:6.0f} s"
        return f"{head} {counts}  {self.note}".rstrip()


def parts_of(name: str) -> list[Setting]:
    """The settings that a name stands for, several joined by a plus."""
    for part in name.split("+"):
        if part not in SETTINGS:
            raise UnknownSettingError(f"unknown setting {part!r}; use some of {', '.join(SETTINGS)}")
    return [SETTINGS[part] for part in name.split("+")]


def environment_of(name: str, folder: Path) -> dict[str, str]:
    """This environment with what the setting changes, and with a cache of compiled code of its own."""
    environment = dict(os.environ)
    for setting in parts_of(name):
        for variable, value in setting.variables().items():
            environment.pop(variable, None)
            if value is not None:
                environment[variable] = value
    return environment | {"NUMBA_CACHE_DIR": str(folder / name)}


def run(name: str, folder: Path, arguments: Sequence[str], cwd: Path) -> Result:
    """The tests under one setting; what pytest prints goes to a log."""
    missing = next((reason for part in parts_of(name) if (reason := part.missing())), "")
    if missing:
        return Result(name, note=missing)
    report, log = folder / f"{name}.xml", folder / f"{name}.log"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        tests = subprocess.Popen(
            command, cwd=cwd, env=environment_of(name, folder), stdout=file, stderr=subprocess.STDOUT
        )
        try:
            code = tests.wait()
        except KeyboardInterrupt:
            stop(tests)
            raise
    return read_report(name, report, log, code, time.perf_counter() - start)


def stop(tests: subprocess.Popen) -> None:
    """End the tests: a terminal has sent them the same signal, so they get a moment to end by themselves."""
    for end in (lambda: None, lambda: tests.send_signal(signal.SIGINT), tests.terminate, tests.kill):
        end()
        try:
            tests.wait(timeout=5)
            return
        except subprocess.TimeoutExpired:
            continue


def read_report(name: str, report: Path, log: Path, code: int, seconds: float) -> Result:
    """The counts of a report. Tests that did not end as tests do (no report, none collected) count as one failure."""
    if code not in (0, 1) or not report.exists():
        why = {2: "it was interrupted", 4: "pytest was called wrongly", 5: "no test was selected"}.get(code, "it broke")
        return Result(name, failed=1, seconds=seconds, note=f"{why}, see {log}")
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    total, failures, errors, skipped = (
        sum(int(suite.get(key, 0)) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    note = f"see {log}" if failed else ""
    return Result(name, max(total - failed - skipped, 0), failed, skipped, seconds, note)


def failures_in(log: Path) -> list[str]:
    """The lines of the log that name a test that failed."""
    return [line for line in log.read_text(encoding="utf-8").splitlines() if re.match("(FAILED|ERROR) ", line)]


def listing() -> str:
    """All settings, with what cannot be tried here."""
    lines = []
    for name, setting in SETTINGS.items():
        missing = setting.missing()
        shown = [f"{key} unset" if value is None else f'{key}="{value}"' for key, value in setting.variables().items()]
        lines.append(f"{name:20} {setting.about}" + (f" (skipped here: {missing})" if missing else ""))
        lines.append(f"{'':20} {' '.join(shown)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--settings", default="", help="names from --list, by commas; all if left out")
    parser.add_argument("--list", action="store_true", help="say which settings there are")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "machines", help="of caches and logs")
    parser.add_argument("--tests", type=Path, default=ROOT, help="the folder that pytest is run in")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args(arguments)
    if options.list:
        print(listing())
        return 0
    names = [name for name in options.settings.split(",") if name] or list(SETTINGS)
    try:
        for name in names:
            parts_of(name)
    except UnknownSettingError as problem:
        print(f"error: {problem}.", file=sys.stderr)
        return 2
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    results: list[Result] = []
    stopped = False
    try:
        for name in names:
            result = run(name, folder, options.pytest, options.tests)
            results.append(result)
            print(result.line(), flush=True)
            if result.failed:
                print("\n".join(f"    {line}" for line in failures_in(folder / f"{name}.log")), flush=True)
    except KeyboardInterrupt:
        stopped = True
    print("\nsetting                          result    passed  failed  skipped  seconds")
    for result in results:
        counts = f"{result.passed:8}{result.failed:8}{result.skipped:9}{result.seconds:9.0f}"
        print(f"{result.name:32} {result.state:8}{counts}")
    for name in names[len(results) :]:
        print(f"{name:32} not run")
    return 130 if stopped else int(any(result.failed for result in results))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no tests are left behind either way
    sys.exit(main())
