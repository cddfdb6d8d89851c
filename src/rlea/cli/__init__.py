"""The command line: one file for each family of commands. They parse, call, print; the work is done elsewhere."""

from __future__ import annotations

import os

from rlea.cli import align, dedupe, files, review, serve, study
from rlea.cli.options import app
from rlea.views.terminal import as_text, err

__all__ = ["align", "app", "dedupe", "files", "main", "review", "serve", "study"]

# Worker threads that wait must sleep: by default they spin, and on a busy machine take the time of those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def main() -> None:
    """Run the command line; bad input ends in one sentence and exit code 2, never in a traceback."""
    from rlea.errors import InputError

    try:
        app()
    except InputError as problem:
        err.print(f"[red]Error:[/red] {as_text(str(problem))}", soft_wrap=True, highlight=False)
        raise SystemExit(2) from None
    except MemoryError:
        err.print(
            "[red]Error:[/red] out of memory; try --pool test, or --matcher best-first with fewer --candidates.",
            soft_wrap=True,
        )
        raise SystemExit(1) from None
    except OSError as problem:
        err.print(f"[red]Error:[/red] {as_text(str(problem))}.", soft_wrap=True, highlight=False)
        raise SystemExit(1) from None
