"""Which names a name may translate into: what is expected of its words and letters, as sparse vectors.

The vector of a name that is translated has the words that its phrases mean and the letters, three in a row, that its
signs become, each with its probability, by a dictionary that has not seen the name's own link. The other names have
their own words and letters.
"""

from __future__ import annotations

import numba
import numpy as np

from rlea.arithmetic import exp_of, log
from rlea.evidence.dictionary.corpus import Ints, Words
from rlea.evidence.dictionary.sounds import as_numbers
from rlea.evidence.dictionary.translation import DOUBT, CrossFitted
from rlea.search.embeddings import Embeddings
from rlea.search.rows import unit_rows

LIKELIEST = 4  # chunks of a sign that are looked at
LEAST = 0.03  # probability of what is part of a vector
ENDS, BASE = 26, 27  # a letter for the ends of words; the number of letters
TRIPLES = BASE * BASE * BASE
MOST_PLACES = 80  # of a name; longer ones are cut


def expected_vectors(dictionary: CrossFitted) -> Embeddings:
    """Vectors of all names, those that are translated as source; (num_names, TRIPLES + num_words)."""
    from scipy.sparse import csr_matrix

    words = dictionary.words
    size = TRIPLES + len(words.texts)
    own_starts, own_columns = _names_as_vectors(words)
    shape = (len(own_starts) - 1, size)
    target = csr_matrix((np.ones(len(own_columns)), own_columns, own_starts), shape=shape)
    source = csr_matrix((dictionary.foreign.num_names, size))
    for part, is_own in dictionary.parts():
        starts, columns, values = _expect(part.tables, is_own, *as_numbers(words.chunk_texts), size)
        source = source + csr_matrix((values, columns, starts), shape=source.shape)  # every name is in one part
    rarity = log((1 + shape[0]) / (1 + np.bincount(own_columns, minlength=size)))
    sides = []
    for side in (source, target):
        side.data *= rarity[side.indices]
        sides.append(unit_rows(side).astype(np.float32))
    return Embeddings(sides[0], sides[1], name="dictionary", measure="inner")


def _names_as_vectors(words: Words) -> tuple[Ints, Ints]:
    """Letters and words of names, each once, ascending; starts and columns."""
    triples: list[list[int]] = []
    for first, last in zip(words.letter_starts[:-1].tolist(), words.letter_starts[1:].tolist(), strict=True):
        own = [ENDS, *words.letters[first:last].tolist(), ENDS]
        triples.append([(own[k] * BASE + own[k + 1]) * BASE + own[k + 2] for k in range(len(own) - 2)])
    starts, columns = [0], list[int]()
    for first, last in zip(words.starts[:-1].tolist(), words.starts[1:].tolist(), strict=True):
        mine = words.words[first:last].tolist()
        columns += sorted({*(one for word in mine for one in triples[word]), *(TRIPLES + word for word in mine)})
        starts.append(len(columns))
    return np.array(starts, np.int64), np.array(columns, np.int64)


@numba.njit(cache=True)
def _expect(tables, is_own, chunk_starts, chunk_letters, size):  # type: ignore[no-untyped-def]
    """The vectors of some names that are translated, empty ones of the others: starts, columns (ascending), values."""
    starts, signs, runs = tables[0], tables[1], tables[2]
    phrase_starts, phrases = tables[4], tables[5]
    meaning_starts, word_of, counts, priors, seen, logs = tables[14:]
    num_names = len(starts) - 1
    likeliest = np.full((len(logs), LIKELIEST), -1)  # -1 where there are fewer chunks
    for sign in range(len(logs)):
        _choose(logs, sign, likeliest)
    values, touched, num_touched = np.zeros(size), np.empty(size, np.int64), 0
    found_starts = np.zeros(num_names + 1, np.int64)
    columns, weights = np.empty(1 << 16, np.int64), np.empty(1 << 16)
    letters, count = np.empty(32, np.int64), 0
    for name in range(num_names):
        found_starts[name + 1] = count
        if not is_own[name]:
            continue
        num_touched = 0
        for at in range(phrase_starts[name], phrase_starts[name + 1]):
            phrase = phrases[at]
            for place in range(meaning_starts[phrase], meaning_starts[phrase + 1]):
                value = (counts[place] + priors[place]) / (seen[phrase] + DOUBT)
                if value >= LEAST:
                    num_touched = _add(TRIPLES + word_of[place], value, values, touched, num_touched)
        last = min(starts[name + 1], starts[name] + MOST_PLACES)
        for place in range(starts[name], last):
            if signs[place] < 0:
                continue
            is_first = place == starts[name] or runs[place - 1] != runs[place]
            end = place + 1
            while end < last and end < place + 3 and runs[end] == runs[place]:
                end += 1
            is_end = end == starts[name + 1] or runs[end] != runs[place]
            num_touched = _spell_triples(
                signs, place, end, is_first, is_end, logs, likeliest, chunk_starts, chunk_letters, letters,
                values, touched, num_touched,
            )  # fmt: skip
        chosen = np.sort(touched[:num_touched])
        for column in chosen:
            if values[column] >= LEAST:
                if count == len(columns):
                    columns, weights = _twice(columns), _twice(weights)
                columns[count], weights[count] = column, min(1.0, values[column])
                count += 1
            values[column] = 0.0
        found_starts[name + 1] = count
    return found_starts, columns[:count].copy(), weights[:count].copy()


@numba.njit(cache=True)
def _twice(array):  # type: ignore[no-untyped-def]
    larger = np.empty(2 * len(array), array.dtype)
    larger[: len(array)] = array
    return larger


@numba.njit(cache=True)
def _choose(logs, sign, likeliest):  # type: ignore[no-untyped-def]
    """The likeliest chunks of a sign, none of them empty."""
    own = np.full(LIKELIEST, -np.inf)
    for chunk in range(logs.shape[1] - 1):
        value = logs[sign, chunk]
        if value <= own[LIKELIEST - 1]:
            continue
        k = LIKELIEST - 1
        while k > 0 and own[k - 1] < value:
            own[k], likeliest[sign, k] = own[k - 1], likeliest[sign, k - 1]
            k -= 1
        own[k], likeliest[sign, k] = value, chunk


@numba.njit(cache=True)
def _add(column, value, values, touched, num_touched):  # type: ignore[no-untyped-def]
    if values[column] == 0.0:
        touched[num_touched] = column
        num_touched += 1
    values[column] += value
    return num_touched


@numba.njit(cache=True)
def _append(chunk, chunk_starts, chunk_letters, letters, size):  # type: ignore[no-untyped-def]
    for at in range(chunk_starts[chunk], chunk_starts[chunk + 1]):
        letters[size] = chunk_letters[at]
        size += 1
    return size


@numba.njit(cache=True)
def _spell_triples(  # type: ignore[no-untyped-def]
    signs, place, end, is_first, is_end, logs, likeliest, chunk_starts, chunk_letters, letters,
    values, touched, num_touched,
):  # fmt: skip
    """Add the letters, three in a row, that begin in what the sign at a place becomes, by it and the two after it."""
    begin = 0
    if is_first:
        letters[0] = ENDS
        begin = 1
    for a in range(LIKELIEST):
        chunk_a = likeliest[signs[place], a]
        if chunk_a < 0:
            break
        chance_a = exp_of(logs[signs[place], chunk_a])
        size_a = _append(chunk_a, chunk_starts, chunk_letters, letters, begin)
        done_a = size_a
        if place + 1 == end and is_end:
            letters[size_a] = ENDS
            done_a += 1
        num_touched = _add_triples(letters, 0, size_a, done_a, chance_a, values, touched, num_touched)
        if place + 1 >= end:
            continue
        for b in range(LIKELIEST):
            chunk_b = likeliest[signs[place + 1], b]
            if chunk_b < 0:
                break
            chance_b = chance_a * exp_of(logs[signs[place + 1], chunk_b])
            size_b = _append(chunk_b, chunk_starts, chunk_letters, letters, size_a)
            done_b = size_b
            if place + 2 == end and is_end:
                letters[size_b] = ENDS
                done_b += 1
            num_touched = _add_triples(letters, size_a, size_a, done_b, chance_b, values, touched, num_touched)
            if place + 2 >= end or size_b - size_a >= 2:
                continue
            for c in range(LIKELIEST):
                chunk_c = likeliest[signs[place + 2], c]
                if chunk_c < 0:
                    break
                chance_c = chance_b * exp_of(logs[signs[place + 2], chunk_c])
                size_c = _append(chunk_c, chunk_starts, chunk_letters, letters, size_b)
                num_touched = _add_triples(letters, size_b, size_a, size_c, chance_c, values, touched, num_touched)
    return num_touched


@numba.njit(cache=True)
def _add_triples(letters, known, stop, size, chance, values, touched, num_touched):  # type: ignore[no-untyped-def]
    """Those that begin before `stop` and end after the first `known` letters, which were added before."""
    for at in range(max(0, known - 2), min(stop, size - 2)):
        column = (letters[at] * BASE + letters[at + 1]) * BASE + letters[at + 2]
        num_touched = _add(column, chance, values, touched, num_touched)
    return num_touched
