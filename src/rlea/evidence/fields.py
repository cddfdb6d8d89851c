"""Fields of entities of one graph, compared attribute by attribute: log-odds that two are the same thing.

Within one graph attributes mean the same, so what stands under each can be compared letter by letter. A value counts
the more the fewer entities have it (Fellegi and Sunter): two strangers rarely have the same title, and often the same
year.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.graph import KnowledgeGraph
from rlea.graph.names import is_readable, plain

MOST_LETTERS = 80  # of a value that are compared one by one, from its beginning and its end
# Letters to be changed, and their share, from which on values are as different as any: typos are few and single, other
# words and codes are another thing.
MOST_CHANGES, MOST_CHANGED = 6.0, 0.3
OTHER_DIGITS = 0.25  # share that is left of an agreement if the digits differ: another model, another year
CHANCE = 0.05  # expected number of strangers with a value that no more entities have than a cluster has members
MEMBERS = 5  # of a cluster, at most
DECAY = 0.5  # weight of each further agreement, best first: agreements are rarely independent
# Log-odds against a pair if a field differs, of ten duplicates one does. If the name does, of a hundred one; and so if
# both values are usual ones: a slip of one record makes a value that no other has, and not another year or class.
DIFFERENCE, OTHER = 2.3, 4.6
EDGE_SHARE = 0.5  # of the log-odds of a value, for and against, that a neighbour has: relatives share them, too
FIRST_LETTER = 0x100  # of those that stand for neighbours: none is a digit
DIGITS = re.compile(r"[0-9]+")


class Fields(NamedTuple):
    """All values of a graph, entity after entity; the name of an entity is one of them."""

    starts: NDArray[np.int64]  # (num_entities + 1,) of the fields of each entity
    attributes: NDArray[np.int32]  # (num_fields,) ascending within an entity
    letters: NDArray[np.uint32]  # of all values
    ends: NDArray[np.int64]  # (num_fields + 1,) of the letters of each value
    digits: NDArray[np.int64]  # (num_fields,) equal numbers for values with equal digits, -1 without any
    weights: NDArray[np.float64]  # (num_fields,) log-odds if another entity has the value, too
    anywhere: NDArray[np.float64]  # (num_fields,) the same if another entity has it under any attribute
    is_usual: NDArray[np.bool_]  # (num_fields,) more entities have the value than a cluster has members
    costs: NDArray[np.float64]  # (num_attributes,) log-odds against a pair that differs in it; the last are edges
    first_edge: int  # attributes from here on are edges


Row = tuple[int, int, str]  # entity, attribute, value


def read_rows(graph: KnowledgeGraph, same: Sequence[int] | None = None) -> list[Row]:
    """All fields, sorted: literals, names that no literal has, and neighbours.

    `same` has one number for entities that are the same.
    """
    literals, name = graph.literals, len(graph.attributes)
    called = {entity: plain(text) for entity, text in enumerate(graph.names) if is_readable(text)}
    values = zip(literals.entity_ids.tolist(), literals.attribute_ids.tolist(), literals.values, strict=True)
    rows = [(entity, attribute, plain(value) or value) for entity, attribute, value in values]
    # Some entities have their name as a literal, others in their identifier: it is a field of its own in both.
    rows = [row for row in rows if called.get(row[0]) != row[2]]
    rows += [(entity, name, text) for entity, text in called.items()]
    rows += _neighbours(graph, range(graph.num_entities) if same is None else same)
    return sorted(rows)


def read_fields(graph: KnowledgeGraph, same: Sequence[int] | None = None) -> Fields:
    """The fields of a graph for comparison; `same` as for `read_rows`."""
    rows = read_rows(graph, same)
    num_edges = 2 * graph.num_relations
    costs = np.append(np.full(len(graph.attributes), DIFFERENCE), [OTHER])
    # Other neighbours may be duplicates of the same: they contradict once it is known which are.
    costs = np.append(costs, np.full(num_edges, 0.0 if same is None else EDGE_SHARE * DIFFERENCE))
    having = Counter((attribute, text) for _, attribute, text in rows)
    # Strangers that are expected to have a value; at least as many as have the usual value of its attribute, as a rare
    # misspelling of a common value is no rare value.
    others: dict[int, list[int]] = {}
    for _, attribute, text in rows:
        others.setdefault(attribute, []).append(max(having[attribute, text] - MEMBERS, 0))
    usual = {attribute: sorted(counts)[len(counts) // 2] for attribute, counts in others.items()}
    strangers = np.array(
        [CHANCE + max(having[attribute, text] - MEMBERS, usual[attribute]) for _, attribute, text in rows]
    )
    with_text = Counter(text for _, text in {(entity, text) for entity, _, text in rows})
    anywhere = np.array([CHANCE + max(with_text[text] - MEMBERS, 0) for _, _, text in rows])
    is_usual = np.array([having[attribute, text] > MEMBERS for _, attribute, text in rows], np.bool_)
    size = float(max(graph.num_entities, 2))
    codes: dict[str, int] = {"": -1}
    digits = [codes.setdefault(" ".join(DIGITS.findall(text)), len(codes)) for _, _, text in rows]
    half = MOST_LETTERS // 2
    cut = [text if len(text) <= MOST_LETTERS else text[:half] + text[-half:] for _, _, text in rows]
    return Fields(
        np.searchsorted(np.array([row[0] for row in rows], np.int64), np.arange(graph.num_entities + 1)),
        np.array([row[1] for row in rows], np.int32),
        np.frombuffer("".join(cut).encode("utf-32-le", "surrogatepass"), np.uint32),
        np.cumsum([0, *map(len, cut)]),
        np.array(digits, np.int64),
        weigh(size, strangers),
        weigh(size, anywhere),
        is_usual,
        costs,
        len(costs) - num_edges,
    )


def weigh(size: float, strangers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-odds of `size` entities to the strangers with a value, none below 0."""
    return np.maximum(log(size / strangers), 0.0) if len(strangers) else strangers


def find_equal(graph: KnowledgeGraph) -> list[list[int]]:
    """Groups of entities that are equal in all fields, and of which enough is known that this is no chance.

    What agrees by chance is counted over distinct records: that a record stands there a thousand times does not make
    its values common. Nor is there a number of members at which a value begins to be common, so a record whose values
    occur in many others, a town and a gender, is left to be rated as similar ones are.
    """
    records: dict[int, list[tuple[int, str]]] = {}
    for entity, attribute, text in read_rows(graph):
        records.setdefault(entity, []).append((attribute, text))
    groups: dict[tuple[tuple[int, str], ...], list[int]] = {}
    for entity, own in records.items():
        groups.setdefault(tuple(own), []).append(entity)
    having = Counter(row for record in groups for row in record)
    size, first_edge = len(groups) + 1.0, len(graph.attributes) + 1  # the one more is a record that nobody has seen
    found = []
    for record, members in groups.items():
        if len(members) > 1:
            # Of several values of an attribute the rarest counts, as where records are compared.
            best: dict[int, float] = {}
            for attribute, text in record:
                weight = (EDGE_SHARE if attribute >= first_edge else 1.0) * float(log(size / having[attribute, text]))
                best[attribute] = max(weight, best.get(attribute, 0.0))
            support = 0.0
            for weight in sorted(best.values()):
                support = weight + DECAY * support
            if support > float(log(size)):
                found.append(members)
    return found


def _neighbours(graph: KnowledgeGraph, same: Sequence[int]) -> list[Row]:
    """Edges as fields: the attribute is the relation and its direction, the value one letter for each neighbour."""
    first, rows = len(graph.attributes) + 1, set()
    for head, relation, tail in graph.triples.tolist():
        rows.add((head, first + 2 * relation, chr(FIRST_LETTER + same[tail])))
        rows.add((tail, first + 2 * relation + 1, chr(FIRST_LETTER + same[head])))
    return sorted(rows)


@numba.njit(cache=True)
def compare_fields(  # type: ignore[no-untyped-def]
    source_ids, target_ids, starts, attributes, letters, ends, digits, weights, anywhere, is_usual, costs, first_edge
):
    """Log-odds for and against pairs, (num_pairs,) each, by the attributes that both entities have.

    Of several values of an attribute the two most similar count. A value that differs may stand in another field.
    """
    support, conflict = np.zeros(len(source_ids)), np.zeros(len(source_ids))
    for k in range(len(source_ids)):
        i, i_end = starts[source_ids[k]], starts[source_ids[k] + 1]
        first, j_end = starts[target_ids[k]], starts[target_ids[k] + 1]
        j = first
        found = np.zeros(i_end - i)
        count = 0
        while i < i_end and j < j_end:
            if attributes[i] < attributes[j]:
                i += 1
            elif attributes[j] < attributes[i]:
                j += 1
            else:
                attribute, from_i, from_j = attributes[i], i, j
                while i < i_end and attributes[i] == attribute:
                    i += 1
                while j < j_end and attributes[j] == attribute:
                    j += 1
                best, weight = _best(from_i, i, from_j, j, letters, ends, digits, weights, is_usual)
                if attribute >= first_edge:
                    found[count] = EDGE_SHARE * best * weight
                    conflict[k] += costs[attribute] * (1.0 - best)
                else:
                    cost = costs[attribute]
                    if best == 0.0:
                        if is_usual[from_i:i].all() and is_usual[from_j:j].all():
                            cost = OTHER
                        best, weight = _best(from_i, i, first, j_end, letters, ends, digits, anywhere, is_usual)
                    found[count] = best * weight
                    conflict[k] += cost * (1.0 - best)
                count += 1
        share = 1.0
        for value in np.sort(found[:count])[::-1]:
            support[k] += share * value
            share *= DECAY
    return support, conflict


@numba.njit(cache=True)
def _best(i, i_end, j, j_end, letters, ends, digits, weights, is_usual):  # type: ignore[no-untyped-def]
    """How far the most similar of some values agree, from 0 to 1, and the weight. Usual ones agree or do not."""
    best, weight = 0.0, 0.0
    for one in range(i, i_end):
        for other in range(j, j_end):
            share = alike(letters[ends[one] : ends[one + 1]], letters[ends[other] : ends[other + 1]])
            if digits[one] != digits[other]:
                share *= OTHER_DIGITS
            if share < 1.0 and is_usual[one] and is_usual[other]:
                share = 0.0
            if share > best:
                best, weight = share, min(weights[one], weights[other])
    return best, weight


@numba.njit(cache=True)
def alike(one, other):  # type: ignore[no-untyped-def]
    """1 for equal texts, less the more letters are to be changed, 0 from MOST_CHANGES or MOST_CHANGED of them on.

    A letter is added, left out, replaced, or exchanged with the next. The first change counts half: anybody may slip.
    """
    n, m = len(one), len(other)
    longest = max(n, m)
    if longest == 0:
        return 1.0
    most = min(MOST_CHANGES, longest * MOST_CHANGED)
    if abs(n - m) > most + 0.5:
        return 0.0
    last = np.zeros(m + 1, np.int32)
    before = np.arange(m + 1).astype(np.int32)
    for i in range(1, n + 1):
        now = np.empty(m + 1, np.int32)
        now[0] = i
        for j in range(1, m + 1):
            cost = 0 if one[i - 1] == other[j - 1] else 1
            value = min(before[j] + 1, now[j - 1] + 1, before[j - 1] + cost)
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                value = min(value, last[j - 2] + 1)
            now[j] = value
        last, before = before, now
    changed = before[m] - 0.5 if before[m] > 0 else 0.0
    return max(0.0, 1.0 - changed / most)
