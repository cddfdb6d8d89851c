"""Write docs/reproduction.md and its pictures from the files in `results/`.

python scripts/reproduction_page.py           # rewrites them
python scripts/reproduction_page.py --check   # exit code 1 if they are not what results/ says
"""

from __future__ import annotations

import sys
from pathlib import Path

from rlea.experiments.page import markdown, sections

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "reproduction"


def main() -> None:
    results = ROOT / "results"
    texts = {ROOT / "docs" / "reproduction.md": markdown(results, PICTURES.name)}
    for section in sections(results):
        texts |= {PICTURES / f"{stem}.svg": picture for stem, picture in section.pictures.items()}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in PICTURES.glob("*.svg") if path not in texts]
    if "--check" in sys.argv[1:]:
        sys.exit(f"not as results/ says: {', '.join(path.name for path in stale)}" if stale else 0)
    PICTURES.mkdir(exist_ok=True)
    for path in stale:
        if path in texts:
            path.write_text(texts[path], encoding="utf-8")
        else:
            path.unlink()


if __name__ == "__main__":
    main()
