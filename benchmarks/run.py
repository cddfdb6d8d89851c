"""Run the benchmarks by name, or all of them: `make bench` or `make bench BENCH=search`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    scripts = {path.stem: path for path in sorted(HERE.glob("*.py")) if path.stem not in ("run", "measuring")}
    wanted = sys.argv[1:] or ["all"]
    names = list(scripts) if wanted == ["all"] else wanted
    for name in names:
        if name not in scripts:
            sys.exit(f"unknown benchmark {name!r}; use one of {', '.join(scripts)}, or all")
    for name in names:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(scripts[name])], check=True)


if __name__ == "__main__":
    main()
