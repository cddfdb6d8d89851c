"""Which entities of two graphs have like attributes (Sun et al., 2017: the attribute part of JAPE).

Attributes that occur with the same ones get near vectors, by skip-gram: with H the pairs (a, c) of attributes that
occur together, on one entity or on the two entities of a seed,

    sum over (a, c) in H of w(a, c) [log s(a.c) + sum over random c' of log s(-a.c')],   s(x) = 1 / (1 + e^-x),

is made large, where c and c' are vectors of attributes as company, which are thrown away in the end; w is 2 for two
attributes with values of one type and 1 otherwise. Values themselves are not looked at but for their type, so nothing
depends on language. The attributes of the two graphs are different ones even where they are called alike: it is the
seeds that bring them together. Each c' is from the graph of c: from both, the few seeds would leave attributes to be
told apart by their graph first of all, and no entities alike. An entity is the mean of its attributes.

Everything here runs on the processor, whatever device the model trains on: there are few attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.graph import GraphPair, Ids, Literals
from rlea.models.kernels import FAST, GOLDEN, below, bits_of, one_thread
from rlea.search.candidates import mix

if TYPE_CHECKING:
    from rlea.models.jape import JAPESettings

INTEGER, DOUBLE, DATETIME, STRING = range(4)

_FORMS = (
    (INTEGER, re.compile(r"[+-]?\d+")),
    (DOUBLE, re.compile(r"[+-]?(\d+\.\d*|\.?\d+)([eE][+-]?\d+)?")),
    (DATETIME, re.compile(r"-?\d{4,}-\d\d(-\d\d)?(T.*)?(Z|[+-]\d\d:\d\d)?")),
)
# Types that XML Schema names; a type of another vocabulary, such as a currency, is told by the form of the value.
_NAMES = {
    DATETIME: "date dateTime dateTimeStamp time gYear gYearMonth gMonth gMonthDay gDay",
    DOUBLE: "double float decimal",
    INTEGER: "int integer long short byte unsignedInt unsignedLong"
    " positiveInteger nonNegativeInteger negativeInteger nonPositiveInteger",
    STRING: "string anyURI langString boolean",
}
_NAMED = {name: kind for kind, names in _NAMES.items() for name in names.split()}

_KEPT = "similar."  # before the names of arrays in a checkpoint
_BLOCK = 256  # entities compared with all of the other graph at a time
# Similarities this close count as equal, and chance decides: hundreds of entities with the very same attributes are
# common, and the first of them must not be everybody's match.
_JITTER = np.float32(1e-4)


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Which attributes an entity has, each once: those of row i are `attribute_ids[begins[i] : begins[i + 1]]`.

    Attributes of the target are numbered after those of the source.
    """

    begins: NDArray[np.int64]  # (num_rows + 1,)
    attribute_ids: Ids
    types: NDArray[np.int8]  # (num_attributes,) one of INTEGER, DOUBLE, DATETIME, STRING
    num_source_attributes: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many attributes each row has."""
        return np.diff(self.begins)


class Similar(NamedTuple):
    """For some entities, given by row, the entities of the other graph that are like them, with weights of sum 1."""

    rows: Ids  # (number,)
    matches: Ids  # (number, max_matches) rows; fewer matches are filled up with row 0
    weights: NDArray[np.float32]  # (number, max_matches), zero for what is filled up

    @property
    def num_pairs(self) -> int:
        """Pairs of an entity and a match."""
        return int((self.weights > 0).sum())

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]]) -> Similar | None:
        """Those among the arrays of a checkpoint, if there are some."""
        return Similar(*(arrays[_KEPT + name] for name in Similar._fields)) if _KEPT + "rows" in arrays else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For a checkpoint."""
        return {_KEPT + name: array for name, array in self._asdict().items()}


def type_of_value(value: str, datatype: str = "") -> int:
    """INTEGER, DOUBLE, DATETIME or STRING: by the datatype where it is a known one, else by the form of the value."""
    named = _NAMED.get(re.split(r"[#/:]", datatype)[-1])
    if named is not None:
        return named
    return next((number for number, form in _FORMS if form.fullmatch(value)), STRING)


def types_of_attributes(literals: Literals, num_attributes: int) -> NDArray[np.int8]:
    """The type that most values of an attribute have. Shape (num_attributes,)."""
    types = np.fromiter(map(type_of_value, literals.values, literals.datatypes), dtype=np.int64, count=len(literals))
    votes = np.bincount(literals.attribute_ids * 4 + types, minlength=4 * num_attributes)
    most: NDArray[np.int8] = np.argmax(votes.reshape(-1, 4), axis=1).astype(np.int8)
    return most


def frequent_attributes(literals: Literals, num_attributes: int, share: float) -> NDArray[np.bool_]:
    """Which attributes belong to this share of them, the ones with most literals. Shape (num_attributes,)."""
    frequency = np.bincount(literals.attribute_ids, minlength=num_attributes)
    kept = np.zeros(num_attributes, dtype=np.bool_)
    kept[np.argsort(-frequency, kind="stable")[: max(1, round(share * num_attributes))]] = True
    return kept


def collect_occurrences(pair: GraphPair, share: float) -> Occurrences:
    """The attributes of every entity, source entities first, of the `share` that is most frequent in its graph."""
    entity_ids, attribute_ids, types = [], [], []
    for graph, first_entity, first_attribute in (
        (pair.source, 0, 0),
        (pair.target, pair.source.num_entities, len(pair.source.attributes)),
    ):
        facts, number = graph.literals, len(graph.attributes)
        kept = frequent_attributes(facts, number, share)[facts.attribute_ids]
        entity_ids.append(first_entity + facts.entity_ids[kept])
        attribute_ids.append(first_attribute + facts.attribute_ids[kept])
        types.append(types_of_attributes(facts, number))
    parts = np.concatenate(entity_ids), np.concatenate(attribute_ids)
    num_entities = pair.source.num_entities + pair.target.num_entities
    return _by_row(*parts, num_entities, np.concatenate(types), len(pair.source.attributes))


def merge_rows(occurrences: Occurrences, row_of: Ids) -> Occurrences:
    """The attributes of all rows i with the same `row_of[i]` together; as many rows as before."""
    num_rows = len(occurrences.begins) - 1
    rows = row_of[np.repeat(np.arange(num_rows), occurrences.counts)]
    types, num_source = occurrences.types, occurrences.num_source_attributes
    return _by_row(rows, occurrences.attribute_ids, num_rows, types, num_source)


def _by_row(rows: Ids, attribute_ids: Ids, num_rows: int, types: NDArray[np.int8], num_source: int) -> Occurrences:
    keys = np.unique(rows.astype(np.int64) * len(types) + attribute_ids)
    begins = np.searchsorted(keys, np.arange(num_rows + 1) * len(types)).astype(np.int64)
    return Occurrences(begins, (keys % len(types)).astype(np.int32), types, num_source)


def learn_vectors(occurrences: Occurrences, settings: JAPESettings, seed: int) -> NDArray[np.float32]:
    """Vectors of the attributes, (num_attributes, dim). An epoch draws a pair of H for every occurrence."""
    dim, epochs = settings.dim, settings.attribute_epochs
    random = np.random.default_rng([seed, 0, 2])
    vectors = random.uniform(-0.5 / dim, 0.5 / dim, (len(occurrences.types), dim)).astype(np.float32)
    num_draws = min(settings.max_attribute_pairs, len(occurrences.attribute_ids))
    company = np.zeros_like(vectors)
    noise = np.sort(occurrences.attribute_ids)  # those of the source graph, then those of the target
    num_source = occurrences.num_source_attributes
    for epoch in range(epochs):
        random = np.random.default_rng([seed, epoch + 1, 2])
        first, second = draw_pairs(occurrences, num_draws, random)
        rate = np.float32(settings.attribute_learning_rate * (1 - epoch / epochs))
        bits = random.integers(2**63, dtype=np.uint64)
        _skip_gram(vectors, company, first, second, noise, num_source, settings.attribute_negatives, rate, bits)
    return vectors


def draw_pairs(occurrences: Occurrences, number: int, random: np.random.Generator) -> tuple[Ids, Ids]:
    """About `number` ordered pairs of attributes that occur together, those of one type with twice the chance."""
    counts = occurrences.counts
    ends = np.cumsum(counts * (counts - 1))
    if len(ends) == 0 or ends[-1] == 0:
        return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32)
    rows = np.searchsorted(ends, random.integers(0, ends[-1], number), side="right")
    first = random.integers(0, counts[rows])
    second = random.integers(0, counts[rows] - 1)
    second += second >= first
    begins, ids = occurrences.begins[rows], occurrences.attribute_ids
    a, c = ids[begins + first], ids[begins + second]
    kept = (occurrences.types[a] == occurrences.types[c]) | (random.random(number) < 0.5)
    return a[kept], c[kept]


def entity_vectors(occurrences: Occurrences, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The mean of the attributes of each row, of length 1; zero where there are none. Shape (num_rows, dim)."""
    from scipy.sparse import csr_matrix

    ids, begins = occurrences.attribute_ids, occurrences.begins
    shape = (len(begins) - 1, len(vectors))
    sums = csr_matrix((np.ones(len(ids), dtype=np.float32), ids, begins), shape=shape) @ vectors
    lengths = np.sqrt(np.einsum("rd,rd->r", sums, sums))
    units: NDArray[np.float32] = sums / np.maximum(lengths, np.float32(1e-12))[:, None]
    return units


def similar_entities(
    units: NDArray[np.float32],  # (num_entities, dim) by attributes, source entities first
    num_source_entities: int,
    row_of: Ids,  # (num_entities,) where the vector of an entity is kept
    settings: JAPESettings,
    seed: int,
) -> Similar:
    """Both ways: for source entities their matches in the target, then for target entities those in the source."""
    cut = num_source_entities
    parts = []
    for queries, others, query_rows, other_rows in (
        (units[:cut], units[cut:], row_of[:cut], row_of[cut:]),
        (units[cut:], units[:cut], row_of[cut:], row_of[:cut]),
    ):
        asking, asked = np.flatnonzero(queries.any(axis=1)), np.flatnonzero(others.any(axis=1))
        found = np.full((len(asking), settings.max_matches), -1, dtype=np.int32)
        scores = np.zeros(found.shape, dtype=np.float32)
        with one_thread():  # the kernel is parallel over blocks
            least, candidates = np.float32(settings.min_similarity), np.ascontiguousarray(others[asked]).T
            _most_similar(queries[asking], candidates, least, np.uint64(seed), found, scores)
        some = (found >= 0).any(axis=1)
        found, scores = found[some], scores[some]
        matches = np.where(found >= 0, other_rows[asked][found], 0).astype(np.int32)
        parts.append((query_rows[asking[some]].astype(np.int32), matches, scores / scores.sum(axis=1, keepdims=True)))
    return Similar(*(np.concatenate(both) for both in zip(*parts, strict=True)))


def why_unused(pair: GraphPair) -> str | None:
    """Why the attributes of a pair cannot tell which entities are alike, or None where they can."""
    for side, graph in (("source", pair.source), ("target", pair.target)):
        if len(graph.literals) == 0:
            return f"the {side} graph has none"
    in_source = np.isin(pair.train.source_ids, pair.source.literals.entity_ids)
    in_target = np.isin(pair.train.target_ids, pair.target.literals.entity_ids)
    return None if (in_source & in_target).any() else "no seed has any in both graphs"


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _approach(a: Any, c: Any, label: Any, rate: Any, gradient: Any) -> None:
    """Move c one step up log s(a.c) (label 1) or log s(-a.c) (label 0); the like step of a is added to `gradient`."""
    inner = np.float32(0.0)
    for k in range(a.shape[0]):
        inner += a[k] * c[k]
    step = rate * (label - np.float32(1.0) / (np.float32(1.0) + np.exp(-inner)))
    for k in range(a.shape[0]):
        gradient[k] += step * c[k]
        c[k] += step * a[k]


@numba.njit(cache=True)
def _skip_gram(
    vectors: Any,
    company: Any,
    first: Any,
    second: Any,
    noise: Any,
    num_source: Any,
    num_negatives: Any,
    rate: Any,
    bits: Any,
) -> None:
    """One pass over the pairs (a, c), one after the other; negatives are random occurrences in the graph of c."""
    middle = np.searchsorted(noise, num_source)
    gradient = np.empty(vectors.shape[1], dtype=np.float32)
    for i in range(len(first)):
        a, c = first[i], second[i]
        begin, end = (0, middle) if c < num_source else (middle, len(noise))
        gradient[:] = np.float32(0.0)
        _approach(vectors[a], company[c], np.float32(1.0), rate, gradient)
        for _ in range(num_negatives):
            bits = bits_of(bits)
            other = noise[begin + below(bits, end - begin)]
            if other != c:
                _approach(vectors[a], company[other], np.float32(0.0), rate, gradient)
        vectors[a] += gradient


@numba.njit(parallel=True, cache=True)
def _most_similar(queries: Any, candidates: Any, least: Any, seed: Any, found: Any, scores: Any) -> None:
    """Columns of `candidates` with similarity of at least `least`, the best of them if they are too many."""
    num_blocks = (len(queries) + _BLOCK - 1) // _BLOCK
    places = found.shape[1]
    for block in numba.prange(num_blocks):
        begin, end = block * _BLOCK, min((block + 1) * _BLOCK, len(queries))
        similarity = np.dot(queries[begin:end], candidates)
        keys = np.empty(places, dtype=np.float32)
        for i in range(begin, end):
            size, worst = 0, 0
            stream = mix(seed + np.uint64(i) * GOLDEN)
            row = similarity[i - begin]
            for j in range(len(row)):
                if row[j] < least:
                    continue
                bits = mix(stream ^ np.uint64(j)) >> np.uint64(40)
                key = row[j] + _JITTER * np.float32(bits) / np.float32(1 << 24)
                place = size
                if size == places:
                    if key <= keys[worst]:
                        continue
                    place = worst
                else:
                    size += 1
                keys[place] = key
                found[i, place] = j
                scores[i, place] = row[j]
                if size == places:
                    worst = int(np.argmin(keys))
