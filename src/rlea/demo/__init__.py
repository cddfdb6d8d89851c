"""A small real pair that ships with the package: places of the world, in English by GeoNames, in French by CLDR.

The folder has `source.nt.gz` and `target.nt.gz` (N-Triples), the links in `seeds.tsv`, `valid.tsv` and `test.tsv`, and
where they come from in `SOURCE.json` and `LICENSES.md`.
"""

from __future__ import annotations

from pathlib import Path


def demo_folder() -> Path:
    """The folder with the demo's files, read-only: it is part of the installed package."""
    return Path(__file__).parent
