"""The record of a run (run.json): settings, results, command, versions, commit and machine."""

from __future__ import annotations

import json
import math
import os
import platform
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

DOUBTFUL = "doubtful.tsv"  # beside the record: links that were left out and are worth a look
PACKAGES = ("rlea", "numba", "numpy", "polars", "pyoxigraph", "safetensors", "scikit-learn", "scipy", "torch")


def describe_run(**facts: Any) -> dict[str, Any]:
    """`facts` (settings, seed, fingerprint, timings, results) with versions, commit, command and machine added."""
    return {
        **facts,
        "command": command(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": {"python": platform.python_version(), **{name: package_version(name) for name in PACKAGES}},
        "machine": machine(),
    }


def machine() -> dict[str, Any]:
    """The machine, and the kernels that its processor made the libraries choose: their last bits may differ."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": memory_gb(),
        "blas": blas_kernels(),
        "torch_kernels": _torch_kernels(),
    }


def cpu_model(facts: Path = Path("/proc/cpuinfo")) -> str:
    """What the processor calls itself; empty where the system does not tell."""
    try:
        lines = facts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = {"model name", "cpu model", "uarch"}  # of x86, MIPS and RISC-V; ARM has numbers alone
    found = (value.strip() for name, _, value in (line.partition(":") for line in lines) if name.strip() in names)
    return next(found, "") or platform.processor()


def blas_kernels() -> list[str]:
    """The BLAS libraries of this process, each with its version and the kernel that it chose."""
    from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

    facts = [row for row in threadpool_info() if row.get("user_api") == "blas"]
    names = ("internal_api", "version", "architecture")
    return sorted({" ".join(str(row[name]) for name in names if row.get(name)) for row in facts})


def _torch_kernels() -> str:
    """The vector instructions that torch chose, such as AVX2; empty where it is not loaded."""
    torch = sys.modules.get("torch")
    return "" if torch is None else str(torch.backends.cpu.get_cpu_capability())


def command() -> str:
    """The command line: of `rlea`, or of the program that called the library."""
    program, *arguments = sys.argv
    path = Path(program)
    name = path.parent.name if path.stem == "__main__" else path.stem  # of `python -m rlea`
    start = ["rlea"] if name in ("rlea", "cli") else ["python", path.name]
    return shlex.join([*start, *arguments])


def memory_gb() -> float | None:
    """The memory of the machine in GB; None if the system does not tell."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def as_json(record: dict[str, Any]) -> str:
    """Indented JSON with a final newline. Bytes of a file name that are no UTF-8 are escaped, as JSON can."""
    text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


PROGRAM = (":/", ":(top,exclude)results", ":(top,exclude)docs")


def commit() -> str:
    """The commit of the source tree, with "+" if files were changed since; empty for an installed package.

    Records and docs are no part of the program: a record that was written a minute ago changes nothing for the next.
    """
    folder = Path(__file__).parent
    if not any((parent / ".git").exists() for parent in folder.parents):
        return ""
    try:
        name = _git(folder, "rev-parse", "--short=12", "HEAD")
        return name + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no", "--", *PROGRAM) else "")
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def package_version(name: str) -> str:
    """The version of an installed package, empty if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


# A record may come from another version or another hand: what has an unexpected type counts as empty.


def as_dict(value: Any) -> dict[str, Any]:
    """A value of a record if it is a dict, else an empty dict."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """A value of a record if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def as_rows(value: Any) -> list[dict[str, Any]]:
    """The dicts in a value of a record, if it is a list."""
    return [row for row in as_list(value) if isinstance(row, dict)]


def is_number(value: Any) -> bool:
    """Whether a value of a record is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
