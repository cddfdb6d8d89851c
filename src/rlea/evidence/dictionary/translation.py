"""A dictionary learned from linked names: which phrases mean which words, and which letters a sign becomes.

Every word of a name has one of three origins: a phrase of the other name means it, signs in a row of the other name
spell it, or it is there by chance. The probabilities are

    by chance    share[w]     (of all names that have the word)
    meaning      t[f, w] = (count[f, w] + prior) / (n[f] + DOUBT)     of each phrase f (after IBM model 1)
    spelling     SPELLED odds / (1 + odds)

with odds = share[w] / num_signs P(letters | signs) / P(letters) at the best place in the name,
where the letters of a word are cut into chunks, one for each sign, and P(chunk | sign) is counted as well; a sign that
links say little of takes after others of the same sound, and a sound after letters that sound alike (`sounds.py`).
All of it is found together, in turns: what each origin explains of the words of linked names is counted again. What a
link has shown in one turn is taken out when it is explained in the next: signs that are rare would else spell any word.

A link that is itself asked about must not speak for itself: the translation of a rare word may be known from this link
alone. So the links are dealt into parts, and a pair of an entity that has a link is scored by a dictionary learned
without the part of this link. Where the other entity has another link, which may be in another part, what that link has
shown is taken out of the counts. (To take all out of the counts, and deal nothing, is not enough: a link moves what
others show as well, since they are counted by what is believed already.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import exp_of, log, log_of
from rlea.evidence.dictionary.corpus import Doubles, Foreign, Ints, Words
from rlea.evidence.dictionary.sounds import by_sound, romanised
from rlea.progress import tick
from rlea.search.ties import tie_hash

ROUNDS = 6  # of counting anew; more change next to nothing
DOUBT = 3.0  # names with a phrase that are counted as showing no meaning of it
SAME = 0.8  # probability that a word which stands in both languages means itself
SPELLED = 0.7  # of a word to be spelled by signs, before these are seen
SIGN_DOUBT, SOUND_DOUBT = 4.0, 8.0  # counts that stand for the sound of a sign, and for letters that sound alike
FIRST = 0.1  # weight with which words that stand in linked names begin
LEAST_SPELLED = 1e-3  # share of a word that signs must spell to be counted
PARTS, PARTING = 3, 77  # of the links; the seed by which they are dealt
LOWEST = -60.0  # log-probability below which a spelling is none


@dataclass(frozen=True, eq=False)
class Dictionary:
    """What the links have shown."""

    foreign: Foreign
    words: Words
    foreign_ids: Ints  # (num_links,) names of the links
    word_ids: Ints
    # Meanings: phrases that stand in a linked name with a word, or are that word. csr by phrase.
    starts: Ints
    word_of: Ints
    counts: Doubles
    priors: Doubles
    seen: Doubles  # (num_phrases,) n[f]
    # What each link has shown of meanings: places in `counts` and how much.
    own_starts: Ints
    own_places: Ints
    own_counts: Doubles
    # Spellings: P(chunk | sign) as logs, a row for every sign; the last column is for no letters.
    logs: NDArray[np.float32]
    sound_of: Ints  # (num_signs,)
    sounds: Doubles  # (num_sounds, num_chunks + 1) P(chunk | sound) by letters
    # Entries of signs with chunks that were counted.
    entry_keys: Ints  # sign * (num_chunks + 1) + chunk, ascending
    entry_counts: Doubles
    sign_counts: Doubles  # (num_signs,)
    sound_counts: Doubles  # (num_sounds, num_chunks + 1)
    heard_starts: Ints  # what each link has shown: entries and how much
    heard: Ints
    heard_counts: Doubles
    foreign_link: Ints  # (num_names,) the link of a name, -1 without
    words_link: Ints

    @property
    def tables(self) -> tuple[NDArray[np.generic], ...]:
        """The arrays that compiled code needs."""
        foreign, words = self.foreign, self.words
        return (
            *(foreign.starts, foreign.signs, foreign.runs, foreign.weights),
            *(foreign.phrase_starts, foreign.phrases, foreign.places, foreign.lengths),
            *(words.starts, words.words, words.shares, words.letter_starts, words.chunks, words.by_chance),
            *(self.starts, self.word_of, self.counts, self.priors, self.seen, self.logs),
        )

    @property
    def own(self) -> tuple[NDArray[np.generic], ...]:
        """What links have shown, for compiled code that takes it out."""
        return (
            *(self.foreign_link, self.words_link, self.foreign_ids),
            *(self.own_starts, self.own_places, self.own_counts),
            *(self.heard_starts, self.heard, self.heard_counts),
            *(self.entry_keys, self.entry_counts, self.sign_counts),
            *(self.sound_of, self.sounds, self.sound_counts),
        )

    def score(self, foreign_ids: Ints, word_ids: Ints) -> Doubles:
        """As that of `CrossFitted`; what links of the names have shown themselves is taken out."""
        result = np.zeros((len(foreign_ids), 2))
        order = np.lexsort((word_ids, foreign_ids))
        # What is taken out of the tables for a pair is put back, to the last bit.
        _score(self.tables, self.own, foreign_ids[order], word_ids[order], result)
        back = np.empty_like(result)
        back[order] = result
        return back


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Dictionaries learned from all links and without each part of them."""

    whole: Dictionary
    without: tuple[Dictionary, ...]
    foreign_part: Ints  # (num_names,) the part of the name's link, -1 without a link
    words_part: Ints

    @staticmethod
    def learn(foreign: Foreign, words: Words, foreign_ids: Ints, word_ids: Ints) -> CrossFitted:
        """Learn from names that are linked, (num_links,) each; a name has one link at most."""
        part_of = (tie_hash(foreign_ids, word_ids, PARTING) % np.uint64(PARTS)).astype(np.int64)
        parts = [learn(foreign, words, foreign_ids[part_of != k], word_ids[part_of != k]) for k in range(PARTS)]
        foreign_part = np.full(foreign.num_names, -1, np.int64)
        words_part = np.full(words.num_names, -1, np.int64)
        foreign_part[foreign_ids], words_part[word_ids] = part_of, part_of
        return CrossFitted(learn(foreign, words, foreign_ids, word_ids), tuple(parts), foreign_part, words_part)

    @property
    def foreign(self) -> Foreign:
        """The names that are translated."""
        return self.whole.foreign

    @property
    def words(self) -> Words:
        """The names that they are translated into."""
        return self.whole.words

    def parts(self) -> list[tuple[Dictionary, NDArray[np.bool_]]]:
        """Each dictionary with the names that are translated by it, (num_names,): those whose link it has not seen."""
        return [(part, self.foreign_part == k) for k, part in enumerate((self.whole, *self.without), start=-1)]

    def score(self, foreign_ids: Ints, word_ids: Ints) -> Doubles:
        """How well names translate into each other, by what their own links have not shown; (num_pairs, 2).

        First the share of both names that is explained, 0 to 1, rarer words and signs counting more; then by how much
        (nats) the words are likelier than by chance.
        """
        mine, its = self.foreign_part[foreign_ids], self.words_part[word_ids]
        part = np.where(mine >= 0, mine, its)
        result = np.zeros((len(foreign_ids), 2))
        for k, dictionary in enumerate((self.whole, *self.without), start=-1):
            own = np.flatnonzero(part == k)
            result[own] = dictionary.score(foreign_ids[own], word_ids[own])
        return result


def learn(foreign: Foreign, words: Words, foreign_ids: Ints, word_ids: Ints) -> Dictionary:
    """Learn from names that are linked, (num_links,) each; an entity has one link at most."""
    tick("dictionary")
    starts, word_of, together, priors = _meanings(foreign, words, foreign_ids, word_ids)
    seen = np.zeros(len(foreign.phrase_texts))
    for link in foreign_ids.tolist():
        mine = foreign.phrases[foreign.phrase_starts[link] : foreign.phrase_starts[link + 1]]
        seen[np.unique(mine)] += 1
    sound_of, forms = romanised(foreign.sign_texts)
    sounds = by_sound(forms, words.chunk_texts)
    counts = FIRST * together
    entry_keys, entry_counts = np.zeros(0, np.int64), np.zeros(0)
    heard_starts, heard, heard_counts = np.zeros(len(foreign_ids) + 1, np.int64), entry_keys, entry_counts
    own_starts, own_places, own_counts = np.zeros(len(foreign_ids) + 1, np.int64), entry_keys, entry_counts
    foreign_link = np.full(foreign.num_names, -1, np.int64)
    words_link = np.full(words.num_names, -1, np.int64)
    foreign_link[foreign_ids] = words_link[word_ids] = np.arange(len(foreign_ids))
    room = int(_room(foreign.phrase_starts, words.starts, foreign_ids, word_ids))
    spelled_room = int(_room(foreign.starts, words.starts, foreign_ids, word_ids))
    for counted in range(ROUNDS + 1):
        tick("dictionary")
        sign_counts, sound_counts, logs = _spellings(sounds, sound_of, entry_keys, entry_counts)
        found = Dictionary(
            foreign=foreign,
            words=words,
            foreign_ids=foreign_ids,
            word_ids=word_ids,
            starts=starts,
            word_of=word_of,
            counts=counts,
            priors=priors,
            seen=seen,
            own_starts=own_starts,
            own_places=own_places,
            own_counts=own_counts,
            logs=logs,
            sound_of=sound_of,
            sounds=sounds,
            entry_keys=entry_keys,
            entry_counts=entry_counts,
            sign_counts=sign_counts,
            sound_counts=sound_counts,
            heard_starts=heard_starts,
            heard=heard,
            heard_counts=heard_counts,
            foreign_link=foreign_link,
            words_link=words_link,
        )
        if counted < ROUNDS:
            own_starts, own_places, own_counts, heard_starts, heard_keys, heard_counts = _count(
                found.tables, found.own, foreign_ids, word_ids, room, spelled_room
            )
            counts = np.bincount(own_places, own_counts, minlength=len(counts)).astype(np.float64)
            entry_keys, inverse = np.unique(heard_keys, return_inverse=True)
            heard = inverse.astype(np.int64)
            entry_counts = np.bincount(heard, heard_counts, minlength=len(entry_keys)).astype(np.float64)
    return found


def _meanings(foreign: Foreign, words: Words, foreign_ids: Ints, word_ids: Ints) -> tuple[Ints, Ints, Doubles, Doubles]:
    """Phrases with words, csr by phrase: in how many links both stand, and the prior count of what is the same."""
    num_words = max(1, len(words.texts))
    number = {text: place for place, text in enumerate(words.texts)}
    same = [place * num_words + number[text] for place, text in enumerate(foreign.phrase_texts) if text in number]
    keys = [np.array(same, np.int64)]
    for link, other in zip(foreign_ids.tolist(), word_ids.tolist(), strict=True):
        mine = np.unique(foreign.phrases[foreign.phrase_starts[link] : foreign.phrase_starts[link + 1]])
        its = words.words[words.starts[other] : words.starts[other + 1]]
        keys.append((mine[:, None] * num_words + its[None]).ravel())
    unique, counts = np.unique(np.concatenate(keys), return_counts=True)
    is_same = np.isin(unique, keys[0])
    starts = np.searchsorted(unique // num_words, np.arange(len(foreign.phrase_texts) + 1)).astype(np.int64)
    return (
        starts,
        (unique % num_words).astype(np.int64),
        (counts - is_same).astype(np.float64),
        np.where(is_same, SAME * DOUBT, 0.0),
    )


def _spellings(
    sounds: Doubles, sound_of: Ints, keys: Ints, counts: Doubles
) -> tuple[Doubles, Doubles, NDArray[np.float32]]:
    """Counts of signs and of sounds with chunks, and log P(chunk | sign), by what was counted."""
    width, num_signs = sounds.shape[1], len(sound_of)
    signs, chunks = keys // width, keys % width
    sign_counts = np.bincount(signs, counts, minlength=num_signs).astype(np.float64)
    flat = np.bincount(sound_of[signs] * width + chunks, counts, minlength=sounds.size)
    sound_counts = flat.reshape(sounds.shape).astype(np.float64)
    totals = np.bincount(sound_of, sign_counts, minlength=len(sounds))
    by_sounds = (sound_counts + SOUND_DOUBT * sounds) / (totals + SOUND_DOUBT)[:, None]
    sound_logs = log(np.maximum(by_sounds, 1e-30))
    shift = log(SIGN_DOUBT / (sign_counts + SIGN_DOUBT))
    logs = (sound_logs[sound_of] + shift[:, None]).astype(np.float32)
    own = (counts + SIGN_DOUBT * by_sounds[sound_of[signs], chunks]) / (sign_counts[signs] + SIGN_DOUBT)
    logs[signs, chunks] = log(np.maximum(own, 1e-30))
    return sign_counts, sound_counts, logs


@numba.njit(cache=True)
def _room(starts, word_starts, foreign_ids, word_ids):  # type: ignore[no-untyped-def]
    """How many pairs of a phrase (or a sign) and a word the links have."""
    total = 0
    for link in range(len(foreign_ids)):
        own, other = foreign_ids[link], word_ids[link]
        total += (starts[own + 1] - starts[own]) * (word_starts[other + 1] - word_starts[other])
    return total


@numba.njit(cache=True)
def _place_of(word_of, low, high, word):  # type: ignore[no-untyped-def]
    """The place of a word among those of a phrase, -1 if it is not there."""
    stop = high
    while low < high:
        middle = (low + high) // 2
        if word_of[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and word_of[low] == word else -1


@numba.njit(cache=True)
def _spell(first, last, signs, runs, word, letter_starts, chunks, logs, best, taken, path):  # type: ignore[no-untyped-def]
    """The likeliest spelling of a word by signs in a row among places first to last.

    Returns its log-probability, the place after its last sign, and how many signs it has; `path` has their chunks, last
    one first.
    """
    start, num_letters = letter_starts[word], letter_starts[word + 1] - letter_starts[word]
    nothing = logs.shape[1] - 1
    top, end = -np.inf, -1
    if num_letters == 0 or num_letters >= best.shape[1]:
        return top, end, 0
    for k in range(num_letters + 1):
        best[0, k] = -np.inf
    for place in range(first, last):
        row = place - first
        if row + 1 >= best.shape[0]:
            break
        sign = signs[place]
        if sign < 0 or (place > first and runs[place] != runs[place - 1]):
            for k in range(num_letters + 1):
                best[row, k] = -np.inf
        for k in range(num_letters + 1):
            best[row + 1, k] = -np.inf
        if sign < 0:
            continue
        best[row, 0] = 0.0
        for k in range(num_letters):
            own = best[row, k]
            if own < LOWEST:
                continue
            if k > 0:
                silent = own + logs[sign, nothing]
                if silent > best[row + 1, k]:
                    best[row + 1, k], taken[row + 1, k] = silent, 0
            for size in range(1, min(chunks.shape[1], num_letters - k) + 1):
                chunk = chunks[start + k, size - 1]
                if chunk < 0:
                    continue
                value = own + logs[sign, chunk]
                if value > best[row + 1, k + size]:
                    best[row + 1, k + size], taken[row + 1, k + size] = value, size
        if best[row + 1, num_letters] > top:
            top, end = best[row + 1, num_letters], place + 1
    if end < 0:
        return top, end, 0
    row, k, count = end - first, num_letters, 0
    while k > 0:
        size = taken[row, k]
        path[count] = nothing if size == 0 else chunks[start + k - size, size - 1]
        count += 1
        k -= size
        row -= 1
    return top, end, count


@numba.njit(cache=True)
def _spelled_share(share, gain):  # type: ignore[no-untyped-def]
    """The probability that a word is there because signs spell it; they raise its letters by `gain` nats."""
    odds = share * exp_of(min(gain, -LOWEST))
    return SPELLED * odds / (1.0 + odds)


@numba.njit(cache=True)
def _count(tables, shown, foreign_ids, word_ids, room, spelled_room):  # type: ignore[no-untyped-def]
    """What every link shows, by what the others have shown in the round before.

    Of meanings these are the places in the counts, of spellings the keys of signs with chunks.
    """
    starts, signs, runs, _, phrase_starts, phrases, _, _ = tables[:8]
    word_starts, words, shares, letter_starts, chunks, by_chance = tables[8:14]
    meaning_starts, word_of, counts, priors, seen, logs = tables[14:]
    own_starts = np.zeros(len(foreign_ids) + 1, np.int64)
    own_places, own_counts = np.empty(room, np.int64), np.empty(room)
    heard_starts = np.zeros(len(foreign_ids) + 1, np.int64)
    heard, heard_counts = np.empty(spelled_room, np.int64), np.empty(spelled_room)
    best, taken, path = np.empty((80, 60)), np.empty((80, 60), np.int64), np.empty(80, np.int64)
    num_own, num_heard = 0, 0
    saved, num_saved = _room_to_save(shown), np.zeros(3, np.int64)
    for link in range(len(foreign_ids)):
        own, other = foreign_ids[link], word_ids[link]
        num_saved[:] = 0
        _take_out(tables, shown, link, saved, num_saved)
        for at in range(word_starts[other], word_starts[other + 1]):
            word = words[at]
            top, end, count = _spell(
                starts[own], starts[own + 1], signs, runs, word, letter_starts, chunks, logs, best, taken, path
            )
            spelled = 0.0
            if count:
                spelled = _spelled_share(shares[word] / (starts[own + 1] - starts[own]), top - by_chance[word])
            total = shares[word] + spelled
            before = num_own
            for at_phrase in range(phrase_starts[own], phrase_starts[own + 1]):
                phrase = phrases[at_phrase]
                place = _place_of(word_of, meaning_starts[phrase], meaning_starts[phrase + 1], word)
                value = (counts[place] + priors[place]) / (seen[phrase] + DOUBT)
                own_places[num_own], own_counts[num_own] = place, value
                total += value
                num_own += 1
            for k in range(before, num_own):
                own_counts[k] /= total
            if spelled / total > LEAST_SPELLED:
                for k in range(count):
                    heard[num_heard] = signs[end - 1 - k] * logs.shape[1] + path[k]
                    heard_counts[num_heard] = spelled / total
                    num_heard += 1
        _put_back(tables, shown, saved, num_saved)
        own_starts[link + 1], heard_starts[link + 1] = num_own, num_heard
    return (
        own_starts, own_places[:num_own], own_counts[:num_own],
        heard_starts, heard[:num_heard], heard_counts[:num_heard],
    )  # fmt: skip


@numba.njit(cache=True)
def _explain(tables, own, other, room, result, at):  # type: ignore[no-untyped-def]
    """Fill a row of scores for a pair of names."""
    starts, signs, runs, weights, phrase_starts, phrases, places, lengths = tables[:8]
    word_starts, words, shares, letter_starts, chunks, by_chance = tables[8:14]
    meaning_starts, word_of, counts, priors, seen, logs = tables[14:]
    best, taken, path, covered = room
    first, last = starts[own], starts[own + 1]
    num_places = min(last - first, len(covered))
    for k in range(num_places):
        covered[k] = 0.0
    gained, asked = 0.0, 0.0
    for at_word in range(word_starts[other], word_starts[other + 1]):
        word = words[at_word]
        top, end, count = _spell(first, last, signs, runs, word, letter_starts, chunks, logs, best, taken, path)
        spelled = 0.0
        if count:
            spelled = _spelled_share(shares[word] / (last - first), top - by_chance[word])
        total = shares[word] + spelled
        for at_phrase in range(phrase_starts[own], phrase_starts[own + 1]):
            phrase = phrases[at_phrase]
            place = _place_of(word_of, meaning_starts[phrase], meaning_starts[phrase + 1], word)
            if place >= 0:
                total += (counts[place] + priors[place]) / (seen[phrase] + DOUBT)
        info = -log_of(min(shares[word], 1.0))
        gain = min(info, log_of(total / shares[word]))
        asked += info
        gained += gain
        # A sign is explained as far as it explains the word, and as far as the word is explained at all.
        share = gain / info / total if info > 0.0 else 0.0
        for k in range(count):
            where = end - 1 - k - first
            if where < num_places:
                covered[where] += spelled * share
        for at_phrase in range(phrase_starts[own], phrase_starts[own + 1]):
            phrase = phrases[at_phrase]
            place = _place_of(word_of, meaning_starts[phrase], meaning_starts[phrase + 1], word)
            if place >= 0:
                value = (counts[place] + priors[place]) / (seen[phrase] + DOUBT) * share
                for k in range(lengths[at_phrase]):
                    where = places[at_phrase] - first + k
                    if where < num_places:
                        covered[where] += value
    found, wanted = 0.0, 0.0
    for k in range(num_places):
        wanted += weights[first + k]
        found += weights[first + k] * min(1.0, covered[k])
    result[at, 0] = (gained + found) / (asked + wanted) if asked > 0.0 and wanted > 0.0 else 0.0
    result[at, 1] = gained


@numba.njit(cache=True)
def _score(tables, own, foreign_ids, word_ids, result):  # type: ignore[no-untyped-def]
    """Scores of pairs, each without what the links of its two names have shown."""
    room = np.empty((80, 60)), np.empty((80, 60), np.int64), np.empty(80, np.int64), np.empty(80)
    foreign_link, words_link = own[0], own[1]
    saved = _room_to_save(own)
    for k in range(len(foreign_ids)):
        one, other = foreign_ids[k], word_ids[k]
        mine, its = foreign_link[one], words_link[other]
        num_saved = np.zeros(3, np.int64)
        if mine >= 0:
            _take_out(tables, own, mine, saved, num_saved)
        if its >= 0 and its != mine:
            _take_out(tables, own, its, saved, num_saved)
        _explain(tables, one, other, room, result, k)
        if num_saved.any():
            _put_back(tables, own, saved, num_saved)


@numba.njit(cache=True)
def _room_to_save(own):  # type: ignore[no-untyped-def]
    own_starts, heard_starts = own[3], own[6]
    most, most_heard = 1, 1
    for link in range(len(own_starts) - 1):
        most = max(most, own_starts[link + 1] - own_starts[link])
        most_heard = max(most_heard, heard_starts[link + 1] - heard_starts[link])
    return (
        np.empty(2 * most, np.int64), np.empty(2 * most),  # counts of meanings
        np.empty(2000, np.int64), np.empty(2000),  # names that have a phrase
        np.empty(2 * most_heard, np.int64), np.empty((2 * most_heard, 4)),  # of spellings
    )  # fmt: skip


@numba.njit(cache=True)
def _take_out(tables, own, link, saved, num_saved):  # type: ignore[no-untyped-def]
    phrase_starts, phrases = tables[4], tables[5]
    counts, seen, logs = tables[16], tables[18], tables[19]
    foreign_ids, own_starts, own_places, own_counts = own[2:6]
    heard_starts, heard, heard_counts, entry_keys, entry_counts, sign_counts, sound_of, sounds, sound_counts = own[6:]
    width = logs.shape[1]
    for k in range(own_starts[link], own_starts[link + 1]):
        place = own_places[k]
        saved[0][num_saved[0]], saved[1][num_saved[0]] = place, counts[place]
        counts[place] = max(0.0, counts[place] - own_counts[k])
        num_saved[0] += 1
    name = foreign_ids[link]
    for k in range(phrase_starts[name], phrase_starts[name + 1]):
        phrase, is_new = phrases[k], True
        for j in range(phrase_starts[name], k):
            if phrases[j] == phrase:
                is_new = False
        if is_new and num_saved[1] < len(saved[2]):
            saved[2][num_saved[1]], saved[3][num_saved[1]] = phrase, seen[phrase]
            seen[phrase] = max(0.0, seen[phrase] - 1.0)
            num_saved[1] += 1
    begin = num_saved[2]
    for k in range(heard_starts[link], heard_starts[link + 1]):
        entry, value = heard[k], heard_counts[k]
        sign, chunk = entry_keys[entry] // width, entry_keys[entry] % width
        sound = sound_of[sign]
        at = num_saved[2]
        saved[4][at] = entry
        saved[5][at, 0], saved[5][at, 1] = entry_counts[entry], sign_counts[sign]
        saved[5][at, 2], saved[5][at, 3] = sound_counts[sound, chunk], logs[sign, chunk]
        entry_counts[entry] = max(0.0, entry_counts[entry] - value)
        sign_counts[sign] = max(0.0, sign_counts[sign] - value)
        sound_counts[sound, chunk] = max(0.0, sound_counts[sound, chunk] - value)
        num_saved[2] += 1
    for at in range(begin, num_saved[2]):
        entry = saved[4][at]
        sign, chunk = entry_keys[entry] // width, entry_keys[entry] % width
        sound = sound_of[sign]
        # The number of times that a sound was heard is nearly that of its signs; it hardly changes by one link.
        heard_often = max(sign_counts[sign], sound_counts[sound, chunk])
        by_sound = (sound_counts[sound, chunk] + SOUND_DOUBT * sounds[sound, chunk]) / (heard_often + SOUND_DOUBT)
        value = (entry_counts[entry] + SIGN_DOUBT * by_sound) / (sign_counts[sign] + SIGN_DOUBT)
        logs[sign, chunk] = min(logs[sign, chunk], log_of(max(value, 1e-30)))


@numba.njit(cache=True)
def _put_back(tables, own, saved, num_saved):  # type: ignore[no-untyped-def]
    counts, seen, logs = tables[16], tables[18], tables[19]
    entry_keys, entry_counts, sign_counts, sound_of, _, sound_counts = own[9:]
    width = logs.shape[1]
    for at in range(num_saved[2] - 1, -1, -1):
        entry = saved[4][at]
        sign, chunk = entry_keys[entry] // width, entry_keys[entry] % width
        entry_counts[entry], sign_counts[sign] = saved[5][at, 0], saved[5][at, 1]
        sound_counts[sound_of[sign], chunk], logs[sign, chunk] = saved[5][at, 2], saved[5][at, 3]
    for at in range(num_saved[1] - 1, -1, -1):
        seen[saved[2][at]] = saved[3][at]
    for at in range(num_saved[0] - 1, -1, -1):
        counts[saved[0][at]] = saved[1][at]
