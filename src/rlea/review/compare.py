"""Two entities side by side: their values aligned, and what differs in them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher

from rlea.graph.names import local_name, plain
from rlea.serve.facts import Facts
from rlea.views.explain import Run

MOST_LETTERS = 400  # of a value that are shown and compared
ALIKE = 0.6  # share of equal letters from which on single letters are marked, not whole words
_TOKENS = re.compile(r"\w+|\W+")

Piece = tuple[str, bool]  # text, and whether it is marked


@dataclass(frozen=True)
class Row:
    """Values of one attribute in both graphs, or of an attribute that one entity lacks (no pieces on its side)."""

    source_attribute: str
    target_attribute: str
    source: tuple[Piece, ...]
    target: tuple[Piece, ...]
    mark: str  # same, similar, differs, source only, target only


def marked(source: str, target: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Two texts in pieces, those marked that the other text does not have.

    Letters are marked in texts that are nearly equal, words in others. Texts without a word in common have no marks:
    everything would be marked.
    """
    if plain(source) == plain(target):
        return ((source, False),), ((target, False),)
    letters = SequenceMatcher(None, source.casefold(), target.casefold(), autojunk=False)
    if len(source) == len(source.casefold()) and len(target) == len(target.casefold()) and letters.ratio() >= ALIKE:
        return _pieces(letters, list(source), list(target))
    words, others = _TOKENS.findall(source), _TOKENS.findall(target)
    alike = SequenceMatcher(None, [plain(word) or word for word in words], [plain(word) or word for word in others])
    if not any(words[k].strip() for start, _, size in alike.get_matching_blocks() for k in range(start, start + size)):
        return ((source, False),), ((target, False),)
    return _pieces(alike, words, others)


def _pieces(
    match: SequenceMatcher[str], source: list[str], target: list[str]
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for kind, a, b, c, d in match.get_opcodes():
        is_marked = kind != "equal"
        for pieces, part in zip(sides, (source[a:b], target[c:d]), strict=True):
            text = "".join(part)
            if text and pieces and pieces[-1][1] == is_marked:
                pieces[-1] = pieces[-1][0] + text, is_marked
            elif text:
                pieces.append((text, is_marked))
    return tuple(sides[0]), tuple(sides[1])


def aligned_values(run: Run, facts: tuple[Facts, Facts], source: int, target: int) -> list[Row]:
    """The values of both entities: corresponding attributes first, then those called alike, then those of one side."""
    left = [_values(side, entity) for side, entity in zip(facts, (source, target), strict=True)]
    rows = []
    for found in () if run.comparison is None else run.comparison.of(source, target):
        own, other = found.source_attribute.identifier, found.target_attribute.identifier
        if found.source_value in left[0].get(own, ()):
            _take(left[0], own, found.source_value)
            _take(left[1], other, found.target_value)
            rows.append(_row(own, other, found.source_value, found.target_value, found.agreement))
    by_name = {plain(local_name(name)): name for name in left[1]}
    for own in list(left[0]):
        other = by_name.get(plain(local_name(own)), "")
        for text in list(left[0][own]):
            if not left[1].get(other):
                break
            like = max(left[1][other], key=lambda one, text=text: _alike(text, one))  # type: ignore[misc]
            _take(left[0], own, text)
            _take(left[1], other, like)
            rows.append(_row(own, other, text, like, _alike(text, like)))
    order = {"differs": 0, "similar": 1, "same": 2}
    rows.sort(key=lambda row: order[row.mark])
    rows += [
        Row(local_name(name), "", ((text[:MOST_LETTERS], False),), (), "source only")
        for name, texts in left[0].items()
        for text in texts
    ]
    rows += [
        Row("", local_name(name), (), ((text[:MOST_LETTERS], False),), "target only")
        for name, texts in left[1].items()
        for text in texts
    ]
    return rows


def some_facts(facts: Facts, entity: int, most: int = 3) -> list[str]:
    """A few facts of an entity in words, to tell it from others."""
    return [f"{local_name(name)}: {fact.text[:80]}" for name, fact in facts.of(entity)[:most]]


def _values(facts: Facts, entity: int) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, fact in facts.of(entity):
        if fact.entity < 0:
            found[name].append(fact.text)
    return dict(found)


def _take(left: dict[str, list[str]], name: str, text: str) -> None:
    if text in left.get(name, ()):
        left[name].remove(text)


def _row(own: str, other: str, source: str, target: str, agreement: float) -> Row:
    pieces = marked(source[:MOST_LETTERS], target[:MOST_LETTERS])
    is_same = plain(source) == plain(target) and bool(plain(source) or source == target)
    is_similar = agreement >= 0.5 or any(is_marked for side in pieces for _, is_marked in side)
    mark = "same" if is_same else "similar" if is_similar else "differs"
    return Row(local_name(own), local_name(other), *pieces, mark)


def _alike(source: str, target: str) -> float:
    first, second = source[:MOST_LETTERS].casefold(), target[:MOST_LETTERS].casefold()
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
