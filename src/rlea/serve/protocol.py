"""The Reconciliation Service API 0.2: requests as parameters in, answers as JSON or HTML out, no network here.

The specification is at https://reconciliation-api.github.io/specs/0.2/.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rlea.graph.names import local_name, plain
from rlea.serve.facts import Fact, Facts
from rlea.serve.pages import PREVIEW_HEIGHT, PREVIEW_WIDTH, PREVIEWED, entity_page
from rlea.serve.reconciler import Candidate, Query, Reconciler, Wanted

MOST_QUERIES = 200  # in a batch
MOST_CANDIDATES, USUAL_CANDIDATES = 100, 10  # for a query
MOST_PROPERTIES = 50  # of a query
MOST_VALUES = 100  # of a property in a query
MOST_EXTENDED = 1000  # entities whose values are asked for at once
SUGGESTED = 10  # at a time
MOST_PROPOSED = 500
DEFAULT_TYPES = 10
_XSD = "http://www.w3.org/2001/XMLSchema#"
_WHOLE = {_XSD + name for name in ("integer", "int", "long", "short", "nonNegativeInteger", "positiveInteger")}
_REAL = {_XSD + name for name in ("decimal", "double", "float")}
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?")


class RequestError(Exception):
    """A request that cannot be answered: the HTTP status and one sentence."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Html:
    """An answer that is a page."""

    text: str


class Service:
    """All services of one graph. `answer` takes the path and the parameters of a request."""

    def __init__(self, reconciler: Reconciler, name: str) -> None:
        self.reconciler = reconciler
        self.facts: Facts = reconciler.facts
        self.graph = reconciler.graph
        self.name = name

    def answer(self, path: str, given: Mapping[str, str], base: str) -> Any:
        """What a request gets, as data for JSON or as `Html`. `base` is the address of the service."""
        if path in ("", "/"):
            if "queries" in given:
                return self.reconcile(_read_object(given["queries"], "queries"))
            if "extend" in given:
                return self.extend(_read_object(given["extend"], "extend"))
            return self.manifest(base)
        if path == "/suggest/entity":
            return self.suggest_entities(*_prefix_and_cursor(given))
        if path == "/suggest/property":
            return _suggest(self.facts.properties, *_prefix_and_cursor(given))
        if path == "/suggest/type":
            return _suggest(self.facts.all_types, *_prefix_and_cursor(given))
        if path == "/properties":
            return self.propose(given.get("type", ""), _number(given.get("limit", "100"), "limit", 1))
        if path == "/preview":
            return Html(entity_page(self.facts, self._entity(given), PREVIEWED))
        if path == "/view":
            return Html(entity_page(self.facts, self._entity(given)))
        raise RequestError("There is nothing at this address.", 404)

    def manifest(self, base: str) -> dict[str, Any]:
        """What the service is and which services it has."""
        import rlea

        types = list(self.facts.all_types.items())[:DEFAULT_TYPES]
        return {
            "versions": ["0.2"],
            "name": self.name,
            "identifierSpace": _space(self.graph.entities, "urn:rlea:"),
            "schemaSpace": _space(list(self.facts.properties), "urn:rlea:"),
            "serviceVersion": f"rlea {rlea.__version__}",
            "defaultTypes": [{"id": key, "name": name} for key, name in types],
            "view": {"url": f"{base}/view?id={{{{id}}}}"},
            "preview": {"url": f"{base}/preview?id={{{{id}}}}", "width": PREVIEW_WIDTH, "height": PREVIEW_HEIGHT},
            "suggest": {
                kind: {"service_url": base, "service_path": f"/suggest/{kind}"}
                for kind in ("entity", "property", "type")
            },
            "extend": {
                "propose_properties": {"service_url": base, "service_path": "/properties"},
                "property_settings": [],
            },
            "batchSize": MOST_QUERIES,
        }

    # ---- reconciliation ---------------------------------------------------------------------------------------------

    def reconcile(self, queries: Mapping[str, Any]) -> dict[str, Any]:
        """Candidates for every query of a batch."""
        if len(queries) > MOST_QUERIES:
            raise RequestError(f"A batch has {len(queries)} queries; at most {MOST_QUERIES} are taken.", 413)
        # All are read before any is answered: a wrong one is told at once.
        read = {key: self._read_query(key, query) for key, query in queries.items()}
        return {
            key: {"result": [self._shown(one) for one in self.reconciler.candidates(query, limit)]}
            for key, (query, limit) in read.items()
        }

    def _read_query(self, key: str, given: Any) -> tuple[Query, int]:
        if not isinstance(given, dict):
            raise RequestError(f"The query {key!r} is no JSON object.")
        text, properties, types = given.get("query", ""), given.get("properties") or [], given.get("type") or []
        strict = given.get("type_strict", "any")
        if not isinstance(text, str):
            raise RequestError(f"The text of the query {key!r} is no string.")
        if not isinstance(properties, list) or len(properties) > MOST_PROPERTIES:
            raise RequestError(f"The properties of the query {key!r} are no list of at most {MOST_PROPERTIES}.")
        if not text.strip() and not properties:
            raise RequestError(f"The query {key!r} has neither a text nor properties.")
        types = [types] if isinstance(types, str) else types
        if not isinstance(types, list) or not all(isinstance(one, str | dict) for one in types):
            raise RequestError(f"The type of the query {key!r} is neither a string nor a list of strings.")
        names = tuple(one if isinstance(one, str) else str(one.get("id", "")) for one in types)
        limit = _number(given.get("limit", USUAL_CANDIDATES), f"limit of the query {key!r}", 1)
        wanted = tuple(self._read_property(key, one) for one in properties)
        query = Query(text, wanted, () if strict == "should" else names, strict == "all")
        return query, min(limit, MOST_CANDIDATES)

    def _read_property(self, key: str, given: Any) -> tuple[str, tuple[Wanted, ...]]:
        if not isinstance(given, dict) or not isinstance(given.get("pid"), str) or "v" not in given:
            raise RequestError(f"A property of the query {key!r} lacks pid or v.")
        values = given["v"] if isinstance(given["v"], list) else [given["v"]]
        if len(values) > MOST_VALUES:
            raise RequestError(f"A property of the query {key!r} has more than {MOST_VALUES} values.")
        found = []
        for value in values:
            if isinstance(value, dict):
                name = str(value.get("id", ""))
                entity = self.graph.entity_index.get(name, -1)
                found.append(Wanted(str(value.get("name") or local_name(name)), entity))
            elif isinstance(value, bool):
                found.append(Wanted("true" if value else "false"))
            elif isinstance(value, str | int | float):
                found.append(Wanted(str(value)))
            elif value is not None:
                raise RequestError(f"A value in the query {key!r} is neither text, number, truth value nor entity.")
        return given["pid"], tuple(one for one in found if one.text.strip() or one.entity >= 0)

    def _shown(self, found: Candidate) -> dict[str, Any]:
        evidence = found.evidence
        features = {
            "name_similarity": evidence.similarity,
            "name_overlap": evidence.overlap,
            "words_left_over": evidence.left_over,
            "shared_word_rarity": evidence.rarity,
            "properties_support": evidence.support,
            "properties_conflict": evidence.conflict,
        }
        return {
            **self._entry(found.entity),
            "type": self._types(found.entity),
            "score": round(100 * found.confidence, 2),
            "match": found.is_match,
            "features": [{"id": "name_is_equal", "value": evidence.is_equal}]
            + [{"id": name, "value": round(value, 4)} for name, value in features.items()],
        }

    # ---- suggestions ------------------------------------------------------------------------------------------------

    def suggest_entities(self, prefix: str, cursor: int) -> dict[str, Any]:
        """Entities by identifier, by how their names begin, and if there is none, by similar names."""
        own = self.graph.entity_index.get(prefix)
        begin = plain(prefix)
        names = self._sorted_names
        place = bisect_left(names, (begin, -1))
        found = [] if own is None else [own]
        while begin and place < len(names) and names[place][0].startswith(begin) and len(found) < cursor + SUGGESTED:
            found.append(names[place][1])
            place += 1
        if not found and prefix.strip():
            found = self.reconciler.names.find(prefix, cursor + SUGGESTED)[0].tolist()
        shown = list(dict.fromkeys(found))[cursor : cursor + SUGGESTED]
        return {"result": [{**self._entry(one), "notable": self._types(one)} for one in shown]}

    @cached_property
    def _sorted_names(self) -> list[tuple[str, int]]:
        return sorted((plain(name), number) for number, name in enumerate(self.graph.names))

    # ---- data extension ---------------------------------------------------------------------------------------------

    def extend(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values of properties of entities."""
        ids, properties = given.get("ids"), given.get("properties")
        if not isinstance(ids, list) or not all(isinstance(one, str) for one in ids):
            raise RequestError("The ids of an extension are no list of strings.")
        if not isinstance(properties, list) or not all(
            isinstance(one, dict) and isinstance(one.get("id"), str) for one in properties
        ):
            raise RequestError("The properties of an extension are no list of objects with an id.")
        if len(ids) > MOST_EXTENDED or len(properties) > MOST_PROPERTIES:
            raise RequestError(
                f"An extension takes at most {MOST_EXTENDED} entities and {MOST_PROPERTIES} properties.", 413
            )
        names = [one["id"] for one in properties]
        return {
            "meta": [{"id": name, "name": local_name(name)} for name in names],
            "rows": {key: {name: self._values(key, name) for name in names} for key in ids},
        }

    def _values(self, key: str, name: str) -> list[dict[str, Any]]:
        entity = self.graph.entity_index.get(key)
        return [] if entity is None else [self._cell(fact) for fact in self.facts.values(entity, name)]

    def _cell(self, fact: Fact) -> dict[str, Any]:
        if fact.entity >= 0:
            return self._entry(fact.entity)
        if fact.datatype in _WHOLE and re.fullmatch(r"[+-]?\d{1,15}", fact.text):
            return {"int": int(fact.text)}
        if fact.datatype in _REAL and re.fullmatch(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,2})?", fact.text):
            return {"float": float(fact.text)}
        if _MOMENT.fullmatch(fact.text):
            return {"date": fact.text}
        return {"str": fact.text}

    def propose(self, type_: str, limit: int) -> dict[str, Any]:
        """The properties that entities of a type have, the most used first; all of the graph for an unknown type."""
        names = self.facts.properties
        if type_ in self.facts.all_types:
            used = self.facts.used_by(type_)
            names = {name: shown for name, shown in names.items() if name in used}
        listed = list(names.items())[: min(limit, MOST_PROPOSED)]
        return {"properties": [{"id": name, "name": shown} for name, shown in listed], "type": type_, "limit": limit}

    # ---- entities ---------------------------------------------------------------------------------------------------

    def _entity(self, given: Mapping[str, str]) -> int:
        if "id" not in given:
            raise RequestError("The address lacks ?id=, the identifier of an entity.")
        found = self.graph.entity_index.get(given["id"])
        if found is None:
            raise RequestError("There is no entity with this identifier.", 404)
        return found

    def _entry(self, entity: int) -> dict[str, str]:
        return {"id": self.graph.entities[entity], "name": self.graph.names[entity]}

    def _types(self, entity: int) -> list[dict[str, str]]:
        return [{"id": name, "name": local_name(name)} for name in self.facts.types(entity)]


def _read_object(text: str, name: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError(f"The parameter {name} is no valid JSON.") from None
    if not isinstance(found, dict):
        raise RequestError(f"The parameter {name} is no JSON object.")
    return found


def _number(given: Any, name: str, least: int) -> int:
    try:
        number = int(given)
    except (ValueError, TypeError, OverflowError):
        number = least - 1
    if number < least:
        raise RequestError(f"The {name} is no whole number from {least} on.")
    return number


def _prefix_and_cursor(given: Mapping[str, str]) -> tuple[str, int]:
    if "prefix" not in given:
        raise RequestError("The address lacks ?prefix=, the letters to begin with.")
    return given["prefix"], min(_number(given.get("cursor", "0"), "cursor", 0), 10_000)


def _suggest(things: Mapping[str, str], prefix: str, cursor: int) -> dict[str, Any]:
    """Properties or types: first those whose names begin so, then those that have a word that does."""
    begin = plain(prefix)
    first, later = [], []
    for key, name in things.items():
        words = plain(name)
        if key == prefix or words.startswith(begin):
            first.append(key)
        elif f" {begin}" in words:
            later.append(key)
    return {"result": [{"id": key, "name": things[key]} for key in (first + later)[cursor : cursor + SUGGESTED]]}


def _space(identifiers: Sequence[str], otherwise: str) -> str:
    """What all identifiers have in common at their beginning, up to a slash or hash."""
    if not identifiers:
        return otherwise
    first, last = min(identifiers), max(identifiers)  # all others begin with what these two share
    num_shared = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    found = re.match(r"[a-z][a-z0-9+.-]*://[^/]+/(.*[/#])?", first[:num_shared])
    return found[0] if found else otherwise
