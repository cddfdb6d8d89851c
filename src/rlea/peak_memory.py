"""Peak memory of this process, over its life or since a reset."""

from __future__ import annotations

import sys
from pathlib import Path


def reset_peak() -> None:
    """Start a new peak where the system allows it (Linux); elsewhere the peak stays that of the whole run."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_mb() -> float:
    """Peak resident memory in MB (10^6 bytes); not a number where the system does not tell."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows has no such module
        return float("nan")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
