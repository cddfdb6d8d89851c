"""Compile the matcher `fused` on two cores: its channels in a process of its own, its game in this one.

A first run spends most of its time compiling, which keeps one core busy and leaves the others idle. Compiled code is
kept on disk, so what another process has compiled is there to be loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rlea.progress import Progress, silent

if TYPE_CHECKING:
    from rlea.graph import GraphPair

NOTE = "once, then kept on disk"


@contextmanager
def compiling_ahead() -> Iterator[subprocess.Popen[bytes] | None]:
    """Let another process compile the channels, unless that was done before or there is no second core.

    It does not outlive the block; `finish_compiling` in it waits for the end.
    """
    if (os.cpu_count() or 1) < 2 or is_compiled():
        yield None
        return
    quiet = subprocess.DEVNULL
    # -P: without it, `-m` would import numba.py from the folder that the command is run in.
    begun = subprocess.Popen([sys.executable, "-P", "-m", __name__], stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield begun
    finally:
        begun.kill()
        begun.wait()


def finish_compiling(begun: subprocess.Popen[bytes] | None, progress: Progress = silent) -> None:
    """Compile the game meanwhile, and wait for the channels. If the other process failed, they are compiled later."""
    if begun is None:
        return
    progress("compile", 0, 2, NOTE)
    compile_game()
    progress("compile", 1, 2, NOTE)
    begun.wait()
    progress("compile", 2, 2, NOTE)


def is_compiled() -> bool:
    """Whether the largest function of the channels is on disk; also where nothing is ever kept there."""
    from rlea.evidence.attributes.evidence import _weigh_pairs

    place = _weigh_pairs.stats.cache_path
    return place is None or any(Path(place).glob("evidence._weigh_pairs-*.nbi"))


def compile_game() -> None:
    """Align two toy graphs by structure alone."""
    from rlea.agent.agent import Aligner
    from rlea.evidence import STRUCTURE

    pair = _toy()
    Aligner(channels=(STRUCTURE,)).fit(pair).match(pair, pool="all")


def compile_channels() -> None:
    """Ask all channels about two toy graphs."""
    from rlea.agent.bootstrap import bootstrap
    from rlea.evidence import CHANNELS
    from rlea.evidence.collect import Evidence
    from rlea.graph import Links

    pair = _toy()
    bootstrap(Links.empty(), Evidence(pair).collect(pair.train, pair.train, CHANNELS))


def _toy() -> GraphPair:
    from rlea.agent.agent import FEW_SEEDS
    from rlea.io.synthetic import SyntheticSettings, generate

    # So many seeds that the game learns a key, too.
    return generate(SyntheticSettings(4 * FEW_SEEDS, seeds=0.3, valid=0.0, name_noise=0.2, nameless=0.2))


if __name__ == "__main__":
    compile_channels()
