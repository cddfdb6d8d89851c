"""What of the program a result depends on, as one digest: a finished cell stays finished until that code changes."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = Path(__file__).parent.parent


def code_version(*parts: ModuleType | Callable[..., Any]) -> str:
    """SHA-256 of the code of modules (or of those that functions are in) and of all that they import from the package.

    Comments, docstrings and layout do not count: they change no result. Modules that are found by name only at run
    time are not seen, so give them too.
    """
    return digest_of(tuple(part.__name__ if isinstance(part, ModuleType) else part.__module__ for part in parts))


@lru_cache
def digest_of(modules: tuple[str, ...], package: Path = PACKAGE) -> str:
    """The digest of modules by their names in a package."""
    codes: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        path = None if name in codes else _file_of(name, package)
        if path is None:
            continue
        codes[name], imported = _parsed(path.read_text(encoding="utf-8"))
        waiting += imported
    for name in modules:
        if name not in codes:
            raise ValueError(f"there is no module {name}")
    digest = hashlib.sha256()
    for name in sorted(codes):
        digest.update(f"{name}\n{codes[name]}\n".encode())
    return digest.hexdigest()


@lru_cache(None)
def _parsed(text: str) -> tuple[str, tuple[str, ...]]:
    """A module without comments, docstrings and layout, and what it imports; most digests are of the same modules."""
    tree = ast.parse(text)
    imported = tuple(_imported(tree))
    return ast.unparse(_bare(tree)), imported


def _file_of(module: str, package: Path) -> Path | None:
    """The file of a module of the package; None for others, and for names in modules."""
    first, *parts = module.split(".")
    if first != package.name or not parts:  # the package itself only names what is public
        return None
    place = package.joinpath(*parts)
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


def _imported(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _bare(tree: ast.Module) -> ast.Module:
    """The tree without docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree
