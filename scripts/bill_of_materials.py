"""A software bill of materials: the packages that rlea needs, as they are installed here, in CycloneDX JSON.

`make bill` writes build/rlea.cdx.json. All of it comes from the metadata of the installed packages; nothing is asked
of the web. The same installation gives the same bytes: there is no date and no random number in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import quote

from packaging.requirements import Requirement

ROOT = "rlea"


def normal(name: str) -> str:
    """The name of a package as all tools spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(root: str = ROOT, extras: Iterable[str] = ()) -> dict[str, tuple[Distribution, list[str]]]:
    """All packages that one needs, itself among them: name -> its metadata and the names of those it needs.

    Packages that the metadata names and that are not installed are left out; so are those of other systems.
    """
    found: dict[str, tuple[Distribution, list[str]]] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [(normal(root), frozenset(extras))]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            own = found[name][0] if name in found else distribution(name)
        except PackageNotFoundError:
            if name == normal(root):
                raise
            continue
        needs = found.setdefault(name, (own, []))[1]
        for text in own.requires or []:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in wanted or {""}):
                needs.append(normal(requirement.name))
                waiting.append((normal(requirement.name), frozenset(requirement.extras)))
    return {
        name: (own, sorted({other for other in needs if other in found}))
        for name, (own, needs) in sorted(found.items())
    }


def license_of(own: Distribution) -> str:
    """The licence as the package states it: an expression, a short text, or what its classifiers say."""
    meta = own.metadata
    expression = meta.get("License-Expression")
    if expression:
        return str(expression)
    text = str(meta.get("License") or "").strip()
    if text and "\n" not in text and len(text) < 100:
        return text
    said = [line.rpartition(" :: ")[2] for line in meta.get_all("Classifier") or [] if line.startswith("License ::")]
    return ", ".join(said)


def component(name: str, own: Distribution) -> dict[str, Any]:
    """One package: version, licence, and the hash of its list of files, which has a hash of each."""
    kind = "application" if name == normal(ROOT) else "library"
    row: dict[str, Any] = {"type": kind, "bom-ref": reference(name, own), "name": name, "version": own.version}
    row["purl"] = reference(name, own)
    if told := license_of(own):
        row["licenses"] = [{"license": {"name": told}}]
    record = own.read_text("RECORD")
    if record is not None:
        digest = hashlib.sha256(record.encode()).hexdigest()
        row["properties"] = [{"name": "rlea:sha256 of RECORD", "value": digest}]
    return row


def reference(name: str, own: Distribution) -> str:
    """The name and version of a package as one text, a package URL."""
    return f"pkg:pypi/{quote(name)}@{quote(own.version)}"


def bill(extras: Iterable[str] = ()) -> dict[str, Any]:
    """The bill of materials of what is installed here."""
    packages = needed(ROOT, extras)
    known = {name: reference(name, own) for name, (own, _) in packages.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": component(normal(ROOT), packages[normal(ROOT)][0]),
            "properties": [{"name": "rlea:python", "value": sys.version.split()[0]}],
        },
        "components": [component(name, own) for name, (own, _) in packages.items() if name != normal(ROOT)],
        "dependencies": [
            {"ref": known[name], "dependsOn": [known[other] for other in needs]}
            for name, (_, needs) in packages.items()
        ],
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path, nargs="?", default=Path("build/rlea.cdx.json"))
    parser.add_argument("--extras", default="", help="extras to count in, separated by commas, such as tables,docs")
    options = parser.parse_args(arguments)
    found = bill([name.strip() for name in options.extras.split(",") if name.strip()])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{options.output}: {len(found['components'])} packages")


if __name__ == "__main__":
    main()
