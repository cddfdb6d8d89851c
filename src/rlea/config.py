"""The options of a run as a TOML file: read in place of options of the command line, and written beside every run."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from rlea.errors import InputError
from rlea.io.readers.places import is_elsewhere
from rlea.io.readers.row_files import STANDARD_INPUT
from rlea.io.readers.text import read_text, shown
from rlea.models import MODELS
from rlea.settings import AlignSettings, suggest

INPUTS = (
    *("graph", "source", "target", "others", "add_source", "add_target", "fold", "seeds", "valid", "gold"),
    *("different", "disjoint", "verdicts", "source_query", "target_query", "endpoint_limit"),
    *("id_column", "name_column", "columns"),
)
NUMBERS = ("endpoint_limit",)
LISTS = ("others", "verdicts", "add_source", "add_target")  # inputs that there may be several of, a line each
CALLED = {"id": "id_column", "name": "name_column"}  # options whose parameter is called otherwise
PATHS = (
    *("graph", "source", "target", "others", "add_source", "add_target", "seeds", "valid", "gold"),
    *("different", "disjoint", "verdicts"),
    *("source_query", "target_query", "agent", "encoder", "embedding", "output", "log", "work"),
)
_HALF = re.compile("[\ud800-\udfff]")
_PLACE = re.compile(r"\(at line (\d+), column \d+\)")


def read_config(path: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in a file; `options` has those that there are, with their types as a command declares them.

    Options are called as on the command line, without the dashes before them. Paths that are not absolute are relative
    to the folder of the file.
    """
    text = read_text(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        place = _PLACE.search(str(problem))
        line = int(place.group(1)) if place else None
        reason = _PLACE.sub("", str(problem)).strip().rstrip(".").lower()
        remedy = 'write lines such as matcher = "fused"'
        raise InputError(f"is no TOML ({reason})", path=path, line=line, remedy=remedy) from problem
    chosen: dict[str, Any] = {}
    for key, value in found.items():
        name, line = CALLED.get(key, key.replace("-", "_")), _line_of(key, text)
        if name not in options:
            known = [_key(one) for one in options]
            raise InputError(f"unknown option {key!r}", path=path, line=line, remedy=suggest(key, known))
        if name in chosen:
            raise InputError(f"has the option {key!r} twice", path=path, line=line, remedy="keep one of them")
        chosen[name] = _checked(path, line, key, value, options[name])
    return {name: _placed(path.absolute().parent, name, value) for name, value in chosen.items()}


def config_text(settings: AlignSettings, inputs: Mapping[str, str], formats: Iterable[str] = ()) -> str:
    """The file that makes a run again: `inputs` are those of its graphs, `formats` the further ones of links."""
    paths = dict(inputs)
    if paths.pop("demo", ""):
        from rlea.demo import demo_folder

        paths["source"] = str(demo_folder())
    return _text("align", "source", paths, {"format": tuple(formats)} | asdict(settings))


def dedupe_text(threshold: float, inputs: Mapping[str, str]) -> str:
    """The file that finds the same duplicates again."""
    return _text("dedupe", "graph", inputs, {"threshold": threshold})


def input_paths(inputs: Mapping[str, str], settings: AlignSettings | None = None) -> list[str]:
    """The files that a run was made from, which it must not replace."""
    places = dict(inputs)
    found = [path for name in LISTS for path in places.pop(name, "").split("\n")]
    found += [path for name, path in places.items() if name in PATHS]
    if settings is not None:
        found += [settings.agent, settings.encoder, *(name for name in settings.embedding if name not in MODELS)]
    return [path for path in found if path]


def _text(command: str, first: str, inputs: Mapping[str, str], more: Mapping[str, Any]) -> str:
    """The options of a command as TOML; without the `first` of its graphs they were made in Python."""
    lines = [f"# The options of this run. To run it again: rlea {command} --config run.toml --output NEW_FOLDER"]
    if first not in inputs:
        lines.append("# Its graphs were made in Python: name others before --config.")
    options: dict[str, Any] = {name: inputs[name] for name in INPUTS if name in inputs}
    options |= {name: int(inputs[name]) for name in NUMBERS if name in inputs}
    options |= {name: tuple(inputs[name].split("\n")) for name in LISTS if name in inputs}
    for name, value in {**options, **more}.items():
        if value not in ("", ()):
            if _HALF.search(str(_placed(Path.cwd(), name, value))):  # TOML cannot hold it, not even escaped
                lines.append(f"# {_key(name)} is left out: its path is no UTF-8")
                continue
            lines.append(f"{_key(name)} = {_toml(_placed(Path.cwd(), name, value))}")
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return next((option for option, own in CALLED.items() if own == name), name.replace("_", "-"))


def _checked(path: Path, line: int | None, key: str, value: Any, declared: Any) -> Any:
    """A value as the option takes it; an error where it is of another type."""
    kinds = get_args(declared) if get_origin(declared) is UnionType else (declared,)

    def refuse(remedy: str) -> InputError:
        return InputError(f"{key} is {_shown(value)}", path=path, line=line, remedy=f"give {remedy}")

    if bool in kinds:
        if not isinstance(value, bool):
            raise refuse("true or false")
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if float in kinds or int in kinds:
        if not is_number or (float not in kinds and isinstance(value, float)):
            raise refuse("a number" if float in kinds else "a whole number")
        return value
    values: list[Any] = value if isinstance(value, list) else [str(value) if is_number else value]
    if not all(isinstance(one, str) for one in values):
        raise refuse('text, such as "names"')
    if (Path in kinds or key in ("graph", "source", "target")) and len(values) != 1:
        raise refuse("one path")
    return values if any(get_origin(kind) is list for kind in kinds) else ",".join(values)


def _placed(folder: Path, name: str, value: Any) -> Any:
    """Paths relative to a folder as absolute ones; embeddings may be models as well, which are no paths."""
    if name not in PATHS or not value:
        return value
    if isinstance(value, list | tuple):
        return [one if one in MODELS or is_elsewhere(one) else str(folder / one) for one in value]
    return value if value == STANDARD_INPUT or is_elsewhere(str(value)) else str(folder / value)


def _line_of(key: str, text: str) -> int | None:
    start = re.compile(rf"\s*[\"'\[]*{re.escape(key)}\b")
    return next((number for number, line in enumerate(text.split("\n"), start=1) if start.match(line)), None)


def _shown(value: Any) -> str:
    return shown(json.dumps(value, default=str), 40)


def _toml(value: Any) -> str:
    """A simple value. The escapes of JSON are those of TOML, which wants one more."""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
