"""The command line: one file for each family of commands. They parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import os

from rlea.cli import align, dedupe, files, review, serve, study
from rlea.cli.options import app

__all__ = ["align", "app", "dedupe", "files", "main", "review", "serve", "study"]

# Worker threads that wait must sleep: by default they spin, and on a busy machine take the time of those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def main() -> None:
    """Run the command line; whatever goes wrong ends in one sentence and a code other than 0, never in a traceback."""
    from rlea.cli.failures import end_on_terminate, forgiving_output, tell

    forgiving_output()
    try:
        with end_on_terminate():
            app()
    except Exception as problem:
        raise SystemExit(tell(problem)) from None
