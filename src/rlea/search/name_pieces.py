"""Names as sparse vectors of their pieces, weighted by rarity, for very many names at once.

Pieces are character n-grams of two to four letters, and names are compared by cosine, as in `rlea.models.names`. A name
in another script also has the pieces of its Latin form (`rlea.graph.transliterate`), so that it matches names of either
script. Entities without a name of their own, whose identifier is a code such as Q42, have no pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.graph import GraphPair, Ids, KnowledgeGraph
from rlea.graph.names import is_vowel_sign, named
from rlea.graph.transliterate import transliterate
from rlea.progress import Progress, silent
from rlea.search.candidates import mix
from rlea.search.embeddings import Embeddings

Graphs = GraphPair | tuple[KnowledgeGraph, KnowledgeGraph]
Keys = NDArray[np.uint64]
Offsets = NDArray[np.int64]

_SEPARATOR = re.compile(r"[\W_]")  # as in `rlea.graph.names.plain`
_END, _BOUNDARY, _FIRST_LETTER, _LAST_LETTER, _DROPPED = 0, 1, 2, 0xFFFE, 0xFFFF  # a letter takes 16 bits
_MOST = 0xFFFF  # the greatest count of a piece in a name


@dataclass(frozen=True, eq=False)
class NamePieces(Embeddings):
    """The vectors of all names, and for each entity a key of its vector and the first letters of its name."""

    source_keys: Keys = field(kw_only=True)  # (num_source_entities,) a hash of 64 bits of the vector; 0 without a piece
    target_keys: Keys = field(kw_only=True)
    source_starts: Keys = field(kw_only=True)  # (num_source_entities,)
    target_starts: Keys = field(kw_only=True)


def embed_name_pieces(graphs: Graphs, progress: Progress = silent) -> NamePieces:
    """The sparse unit vectors that `search_names` compares, of all entities; zero where an entity has no name.

    They are those of `rlea.models.names.embed_names` with one difference: names with letters beyond the Latin alphabet
    have the pieces of both forms (the greater count where both have a piece). Columns, one per piece, go from the most
    frequent piece to the rarest.
    """
    from scipy.sparse import csr_matrix

    progress("names", 0, 3)
    pair = (graphs.source, graphs.target) if isinstance(graphs, GraphPair) else graphs
    texts = [*_own_names(pair[0]), *_own_names(pair[1])]
    num_names, num_sources = len(texts), pair[0].num_entities
    others, latin = _latin_forms(texts)
    symbols, ends = _as_symbols(texts + latin)
    del texts, latin
    progress("names", 1, 3)
    pointers = np.zeros(num_names + 1, dtype=np.int64)
    room = 3 * int((symbols > _BOUNDARY).sum())  # a word has three pieces per letter
    pieces, counts = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.uint16)
    starts = np.zeros(num_names, dtype=np.uint64)
    known, frequencies = _number_pieces(symbols, ends, others, pointers, pieces, counts, starts)
    pieces, counts = pieces[: pointers[-1]], counts[: pointers[-1]]
    progress("names", 2, 3)
    # By frequency, then by letters: this does not depend on the order of the entities.
    order = np.lexsort((known, -frequencies))
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    rarities = (log((1.0 + num_names) / (1.0 + frequencies[order])) + 1.0).astype(np.float32)
    most = int(counts.max(initial=1))
    count_weights = np.append(0.0, 1.0 + log(np.arange(1, most + 1)))  # of a piece that a name has so many times
    weights = np.empty(len(pieces), dtype=np.float32)
    keys = np.zeros(num_names, dtype=np.uint64)
    _weigh_pieces(pointers, pieces, counts, places, rarities, count_weights, weights, keys)
    matrices = []
    for first, stop in ((0, num_sources), (num_sources, num_names)):
        part = slice(pointers[first], pointers[stop])
        own = pointers[first : stop + 1] - pointers[first]
        small = own.astype(np.int32) if own[-1] <= np.iinfo(np.int32).max else own
        matrix = csr_matrix((weights[part], pieces[part], small), shape=(stop - first, max(len(order), 1)))
        matrix.has_sorted_indices = matrix.has_canonical_format = True
        matrices.append(matrix)
    progress("names", 3, 3, f"{len(order):,} pieces")
    info = {"model": "names", "uses": "names", "pieces": "2 to 4 letters", "transliterated": int((others >= 0).sum())}
    return NamePieces(
        matrices[0],
        matrices[1],
        name="names",
        measure="cosine",
        info=info,
        is_fitted=False,
        source_keys=keys[:num_sources],
        target_keys=keys[num_sources:],
        source_starts=starts[:num_sources],
        target_starts=starts[num_sources:],
    )


def _own_names(graph: KnowledgeGraph) -> list[str]:
    """The name of every entity on one line, "" where it is only a code."""
    return [name.replace("\n", " ") for name in named(graph)]


def _latin_forms(texts: list[str]) -> tuple[Ids, list[str]]:
    """The Latin forms of texts in other scripts, and for every text the place of its form behind the texts, or -1."""
    others = np.full(len(texts), -1, dtype=np.int32)
    foreign = [place for place, text in enumerate(texts) if not text.isascii()]
    if not foreign:
        return others, []
    forms = transliterate("\n".join(map(texts.__getitem__, foreign))).split("\n")
    # A form that differs only in marks and case, as that of "Île" does, has the same pieces.
    plain = _without_marks("\n".join(map(texts.__getitem__, foreign))).split("\n")
    changed = [number for number, form in enumerate(forms) if form != plain[number]]
    others[[foreign[number] for number in changed]] = len(texts) + np.arange(len(changed), dtype=np.int32)
    return others, [forms[number] for number in changed]


def _without_marks(text: str) -> str:
    text = unicodedata.normalize("NFKD", text).casefold()
    return text.translate({ord(mark): None for mark in set(text) if unicodedata.combining(mark)})


def _as_symbols(texts: Sequence[str]) -> tuple[NDArray[np.uint16], Offsets]:
    """The letters of all texts as small numbers, without case and marks, and where each text ends; (num_symbols,).

    Anything between words is a boundary, and every text ends with an end symbol. The same as `rlea.graph.names.plain`,
    for all texts at once: each character of the alphabet is looked up once.
    """
    whole = unicodedata.normalize("NFKD", "".join(f"{text}\n" for text in texts)).casefold()
    points = np.frombuffer(whole.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    del whole
    is_used = np.zeros(0x110000, dtype=np.bool_)
    is_used[points] = True
    meanings = np.zeros(len(is_used), dtype=np.uint16)
    letter = _FIRST_LETTER
    for point in np.flatnonzero(is_used).tolist():
        character = chr(point)
        if character == "\n":
            meanings[point] = _END
        elif unicodedata.combining(character):
            meanings[point] = _DROPPED
        elif _SEPARATOR.match(character) and not is_vowel_sign(character):
            meanings[point] = _BOUNDARY
        else:
            meanings[point] = letter
            letter = min(letter + 1, _LAST_LETTER)  # of more than 65,000 letters the last share one number
    symbols = meanings[points]
    symbols = symbols[symbols != _DROPPED]
    return symbols, np.flatnonzero(symbols == _END)


# ---- compiled --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _cut(symbols, first, stop, keys):  # type: ignore[no-untyped-def]
    """Write the pieces of a text, four letters of 16 bits each, and return their number.

    Words have a boundary before and behind, so that pieces at either end differ from those within.
    """
    count = 0
    begin = first
    while begin < stop:
        if symbols[begin] == _BOUNDARY:
            begin += 1
            continue
        end = begin
        while end < stop and symbols[end] != _BOUNDARY:
            end += 1
        for left in range(begin - 1, end):
            key = np.uint64(0)
            for place in range(left, min(left + 4, end + 1)):
                symbol = np.uint64(_BOUNDARY) if place < begin or place >= end else np.uint64(symbols[place])
                key |= symbol << np.uint64(16 * (3 - (place - left)))
                if place > left:
                    keys[count] = key
                    count += 1
        begin = end
    return count


@numba.njit(cache=True)
def _slot(table, key):  # type: ignore[no-untyped-def]
    """The place of the key in the hash table, or a free place for it."""
    mask = np.uint64(len(table) - 1)
    slot = mix(key) & mask
    while table[slot] != 0 and table[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@numba.njit(cache=True)
def _number_pieces(symbols, ends, others, pointers, pieces, counts, starts):  # type: ignore[no-untyped-def]
    """Cut all texts into pieces, numbered as they come; returns the pieces and how many names have each."""
    longest, begin = 0, 0
    for end in ends:
        longest, begin = max(longest, end - begin), end + 1
    own, latin = np.empty(3 * longest, dtype=np.uint64), np.empty(3 * longest, dtype=np.uint64)
    table, numbers = np.zeros(1 << 12, dtype=np.uint64), np.empty(1 << 12, dtype=np.int32)
    known, frequencies = np.empty(1 << 11, dtype=np.uint64), np.zeros(1 << 11, dtype=np.int64)
    num_known, filled = 0, 0
    for name in range(len(others)):
        begin = 0 if name == 0 else ends[name - 1] + 1
        num_own = _cut(symbols, begin, ends[name], own)
        for place in range(min(4, ends[name] - begin)):
            starts[name] |= np.uint64(symbols[begin + place]) << np.uint64(16 * (3 - place))
        own[:num_own].sort()
        num_latin = 0
        if others[name] >= 0:
            num_latin = _cut(symbols, ends[others[name] - 1] + 1, ends[others[name]], latin)
            latin[:num_latin].sort()
        a, b = 0, 0
        while a < num_own or b < num_latin:
            key = own[a] if b >= num_latin or (a < num_own and own[a] <= latin[b]) else latin[b]
            in_own, in_latin = 0, 0
            while a < num_own and own[a] == key:
                a, in_own = a + 1, in_own + 1
            while b < num_latin and latin[b] == key:
                b, in_latin = b + 1, in_latin + 1
            slot = _slot(table, key)
            if table[slot] == 0:
                if num_known == len(known):  # the table is half full
                    known = np.concatenate((known, np.empty_like(known)))
                    frequencies = np.concatenate((frequencies, np.zeros_like(frequencies)))
                    table, numbers = np.zeros(2 * len(table), dtype=np.uint64), np.empty(2 * len(table), dtype=np.int32)
                    for number in range(num_known):
                        place = _slot(table, known[number])
                        table[place], numbers[place] = known[number], number
                    slot = _slot(table, key)
                table[slot], numbers[slot], known[num_known] = key, num_known, key
                num_known += 1
            number = numbers[slot]
            frequencies[number] += 1
            pieces[filled], counts[filled] = number, min(max(in_own, in_latin), _MOST)
            filled += 1
        pointers[name + 1] = filled
    return known[:num_known].copy(), frequencies[:num_known].copy()


@numba.njit(cache=True, parallel=True)
def _weigh_pieces(pointers, pieces, counts, places, rarities, count_weights, weights, keys):  # type: ignore[no-untyped-def]
    """Renumber the pieces by frequency, sort those of a name, and weight them to unit length."""
    for name in numba.prange(len(pointers) - 1):
        begin, end = pointers[name], pointers[name + 1]
        row = np.empty(end - begin, dtype=np.int64)
        for p in range(begin, end):
            row[p - begin] = (np.int64(places[pieces[p]]) << 16) | np.int64(counts[p])
        row.sort()
        total = 0.0
        key = np.uint64(len(row))
        for p in range(begin, end):
            value = row[p - begin]
            key = mix(key ^ np.uint64(value)) + np.uint64(1)
            piece, count = value >> 16, value & 0xFFFF
            weight = count_weights[count] * rarities[piece]
            pieces[p], weights[p] = piece, weight
            total += weight * weight
        scale = 1.0 / np.sqrt(total) if total > 0.0 else 0.0
        for p in range(begin, end):
            weights[p] *= scale
        if end > begin:
            keys[name] = max(key, np.uint64(1))
