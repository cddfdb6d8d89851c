"""Knowledge graphs, pairs of them and links between them: integer-coded, immutable, numpy-backed.

Entities, relations and attributes are numbered in the order of their identifiers, and triples are sorted, so that a
graph is the same object whatever file format or line order it came from; the fingerprint says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph.cannot_link import NO_PAIRS, CannotLink
from rlea.graph.names import choose_names
from rlea.graph.texts import CodedTexts, TextColumn, Texts

Ids = NDArray[np.int32]


def _frozen(array: Any, dtype: Any = np.int32) -> NDArray[Any]:
    """A read-only array of its own: later writes through another name must not reach a graph."""
    result = np.array(array, dtype=dtype, copy=True, order="C")
    result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False)
class Literals:
    """Attribute triples, one per row: entity, attribute, value, datatype, language."""

    entity_ids: Ids  # (num_literals,)
    attribute_ids: Ids  # (num_literals,)
    values: Texts
    datatypes: CodedTexts  # "" where none is given
    languages: CodedTexts  # "" where none is given

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", Texts.of(self.values))
        object.__setattr__(self, "datatypes", CodedTexts.of(self.datatypes))
        object.__setattr__(self, "languages", CodedTexts.of(self.languages))

    def __len__(self) -> int:
        return len(self.values)

    @staticmethod
    def of(
        entity_ids: Any, attribute_ids: Any, values: Iterable[str], datatypes: Iterable[str], languages: Iterable[str]
    ) -> Literals:
        """Literals in the given order, with read-only arrays."""
        texts = Texts.of(values), CodedTexts.of(datatypes), CodedTexts.of(languages)
        return Literals(_frozen(entity_ids), _frozen(attribute_ids), *texts)

    def take(self, rows: NDArray[np.intp]) -> Literals:
        """The literals of these rows."""
        values = map(self.values.__getitem__, rows.tolist())
        texts = values, self.datatypes.take(rows), self.languages.take(rows)
        return Literals.of(self.entity_ids[rows], self.attribute_ids[rows], *texts)


@dataclass(frozen=True, eq=False)
class KnowledgeGraph:
    """One graph.

    `triples` has a row (head id, relation id, tail id) for every relation triple, sorted and without repetition.
    `names` has one readable name per entity, `entities` the identifiers (URIs or keys), sorted. `notes` say what a user
    should know about how the graph was read, `columns` are the headers of the tables that its entities are rows of, in
    the order of the file; neither is part of the fingerprint.

    >>> import rlea
    >>> pair = rlea.read([("a", "near", "b")], [("x", "near", "y")])
    >>> pair.source.entities, pair.source.triples.tolist()
    (('a', 'b'), [[0, 0, 1]])
    """

    entities: Texts
    relations: tuple[str, ...]
    attributes: tuple[str, ...]
    triples: Ids  # (num_triples, 3)
    literals: Literals
    names: Texts
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether entities are rows of tables."""
        return bool(self.columns)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entities", Texts.of(self.entities))
        object.__setattr__(self, "names", Texts.of(self.names))

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        return len(self.relations)

    @property
    def num_triples(self) -> int:
        return len(self.triples)

    @cached_property
    def entity_index(self) -> Mapping[str, int]:
        """Identifier -> entity id."""
        return {identifier: number for number, identifier in enumerate(self.entities)}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content, the same for every file format the content came from."""
        digest = hashlib.sha256()
        columns: tuple[TextColumn, ...] = (
            self.entities,
            Texts.of(self.relations),
            Texts.of(self.attributes),
            self.names,
            self.literals.values,
            self.literals.datatypes,
            self.literals.languages,
        )
        for column in columns:
            # A length before each block, so that moving a string from one block to the next changes the digest.
            digest.update(f"{len(column)}\n".encode())
            for piece in column.encoded():
                digest.update(piece)
        for array in (self.triples, self.literals.entity_ids, self.literals.attribute_ids):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def some(self, ids: Ids) -> KnowledgeGraph:
        """The graph of these entities alone, which keep their order: triples and literals of others are left out."""
        ids = np.unique(ids)
        new = np.full(self.num_entities, -1, np.int32)
        new[ids] = np.arange(len(ids), dtype=np.int32)
        rows = self.triples[(new[self.triples[:, 0]] >= 0) & (new[self.triples[:, 2]] >= 0)]
        literals = self.literals.take(np.flatnonzero(new[self.literals.entity_ids] >= 0))
        entities, names = (Texts.of(texts[k] for k in ids.tolist()) for texts in (self.entities, self.names))
        return replace(
            self,
            entities=entities,
            triples=_frozen(np.column_stack([new[rows[:, 0]], rows[:, 1], new[rows[:, 2]]])),
            literals=replace(literals, entity_ids=_frozen(new[literals.entity_ids])),
            names=names,
        )

    def joined(self, first: Ids) -> KnowledgeGraph:
        """The graph in which entity k is part of entity first[k], which has the triples and literals of all its parts.

        `first` has shape (num_entities,); first[first[k]] is first[k]. The entities that are left keep their order.
        """
        heads, relations, tails = self.triples.T
        triples = np.unique(np.column_stack([first[heads], relations, first[tails]]), axis=0)
        own = replace(self.literals, entity_ids=first[self.literals.entity_ids])
        ids = zip(own.entity_ids.tolist(), own.attribute_ids.tolist(), strict=True)
        texts = zip(own.values, own.datatypes, own.languages, strict=True)
        unique = {(*k, *text): place for place, (k, text) in enumerate(zip(ids, texts, strict=True))}
        literals = own.take(np.array([unique[row] for row in sorted(unique)], np.intp))
        return replace(self, triples=triples, literals=literals).some(np.unique(first))

    @staticmethod
    def build(
        triples: pl.DataFrame,
        literals: pl.DataFrame | None = None,
        *,
        names: Mapping[str, str] | pl.DataFrame | None = None,
        entities: Iterable[str] = (),
        notes: Sequence[str] = (),
    ) -> KnowledgeGraph:
        """Number the strings of a graph.

        `triples` has the string columns head, relation, tail; `literals` the string columns entity, attribute,
        value, datatype, language. All but value may be categorical instead, which saves time and memory. `names`
        overrides the name that would be chosen from labels and local names; `entities` adds entities without
        a triple. As a frame of entity and name, each entity once, `names` does both: an empty name overrides nothing.
        """
        if literals is None:
            literals = pl.DataFrame(schema=dict.fromkeys(LITERAL_COLUMNS, pl.String))
        extra = pl.Series("id", list(entities), dtype=pl.String)
        called = names["entity"] if isinstance(names, pl.DataFrame) else extra.clear()
        columns = triples["head"], triples["tail"], literals["entity"], called, extra
        identifiers, (head, tail, entity, named, _) = _number(*columns)
        given: list[str | None] = []
        if isinstance(names, pl.DataFrame):
            given = [None] * len(identifiers)
            for number, name in zip(named.tolist(), names["name"].to_list(), strict=True):
                given[number] = name or None
        elif names:
            given = [names.get(identifier) for identifier in identifiers]
        relations, (relation,) = _number(triples["relation"])
        attributes, (attribute,) = _number(literals["attribute"])
        datatypes, (datatype,) = _number(literals["datatype"].fill_null(""))
        languages, (language,) = _number(literals["language"].fill_null(""))
        facts = _sorted_literals(entity, attribute, literals["value"], (datatype, datatypes), (language, languages))
        chosen = choose_names(identifiers, tuple(attributes), facts, given)
        return KnowledgeGraph(
            entities=identifiers,
            relations=tuple(relations),
            attributes=tuple(attributes),
            triples=_sorted_triples(head, relation, tail),
            literals=facts,
            names=chosen.names,
            notes=(*notes, *chosen.notes),
        )


LITERAL_COLUMNS = ["entity", "attribute", "value", "datatype", "language"]


def _number(*columns: pl.Series) -> tuple[Texts, list[Ids]]:
    """Every distinct string of the columns, sorted, and the columns as numbers into them."""
    kinds = [column.dtype for column in columns if isinstance(column.dtype, pl.Categorical)]
    kind = kinds[0] if kinds else pl.Categorical(pl.Categories.random())
    coded = [column.cast(kind).rename("id") for column in columns]
    distinct = pl.concat([column.unique() for column in coded]).unique()
    texts = distinct.cast(pl.String)
    order = texts.arg_sort()
    codes = distinct.gather(order).to_physical().to_numpy()
    number = np.zeros(int(codes.max()) + 1 if len(codes) else 0, dtype=np.int32)
    number[codes] = np.arange(len(codes), dtype=np.int32)
    return Texts.of(texts.gather(order)), [number[column.to_physical().to_numpy()] for column in coded]


def _sorted_triples(head: Ids, relation: Ids, tail: Ids) -> Ids:
    """The rows (head, relation, tail) in order, each once, (num_triples, 3)."""
    num_heads, num_relations, num_tails = (int(ids.max(initial=-1)) + 1 for ids in (head, relation, tail))
    if num_heads * num_relations * num_tails >= 1 << 63:
        return _frozen(np.unique(np.column_stack([head, relation, tail]), axis=0))
    # One number for a row sorts in a fraction of the time.
    keys = head.astype(np.int64)
    for column, number in ((relation, num_relations), (tail, num_tails)):
        keys *= number
        keys += column
    keys.sort()
    keys = keys[_is_new(keys)]
    result = np.empty((len(keys), 3), np.int32)
    for place, number in ((2, num_tails), (1, num_relations)):
        result[:, place] = keys % max(number, 1)
        keys //= max(number, 1)
    result[:, 0] = keys
    result.flags.writeable = False
    return result


def _sorted_literals(
    entity: Ids, attribute: Ids, value: pl.Series, datatype: tuple[Ids, Texts], language: tuple[Ids, Texts]
) -> Literals:
    """The rows in order, each once."""
    keys = entity.astype(np.int64) << 32 | attribute
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    is_new = _is_new(keys)
    # Few rows share entity and attribute: only these are compared as text.
    is_shared = ~is_new
    is_shared[:-1] |= ~is_new[1:]
    places = np.flatnonzero(is_shared)
    shared = order[places]
    columns = {"value": value.gather(shared), "d": datatype[0][shared], "l": language[0][shared]}
    rows = pl.DataFrame({"key": keys[places], **columns, "row": shared}).sort("key", "value", "d", "l")
    order[places] = rows.drop_in_place("row").to_numpy()
    kept = np.ones(len(order), np.bool_)
    kept[places] = rows.select(pl.any_horizontal((pl.all() != pl.all().shift()).fill_null(True))).to_series().to_numpy()
    order = order[kept]
    return Literals(
        _frozen(entity[order]),
        _frozen(attribute[order]),
        Texts.of(value.gather(order)),
        *(CodedTexts(numbers[order], tuple(levels)) for numbers, levels in (datatype, language)),
    )


def _is_new(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the sorted keys differ from the one before, (num_keys,)."""
    return np.concatenate([np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1]])


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of corresponding entities, by id: row i says source_ids[i] is target_ids[i].

    >>> import rlea
    >>> len(rlea.Links.of([0, 1], [4, 3]))
    2
    """

    source_ids: Ids
    target_ids: Ids

    def __len__(self) -> int:
        return len(self.source_ids)

    @staticmethod
    def of(source_ids: Any, target_ids: Any) -> Links:
        """Links in the given order, as read-only arrays."""
        source, target = _frozen(source_ids), _frozen(target_ids)
        if source.shape != target.shape or source.ndim != 1:
            raise ValueError("source_ids and target_ids must be two vectors of the same length")
        return Links(source, target)

    @staticmethod
    def empty() -> Links:
        return Links.of([], [])

    @staticmethod
    def union(parts: Sequence[Links]) -> Links:
        """All links of the parts, one after the other."""
        nothing = np.zeros(0, dtype=np.int32)
        return Links.of(
            np.concatenate([nothing, *(part.source_ids for part in parts)]),
            np.concatenate([nothing, *(part.target_ids for part in parts)]),
        )


@dataclass(frozen=True, eq=False)
class GraphPair:
    """Two graphs and what is known of their alignment.

    `train` are the seeds, `valid` the links for choosing settings, `test` the links that only `metrics` may read.
    `fold` is empty where the data has no folds; `notes` say what a user should know about how the data was read.
    `default_pool` names the entities to be matched by default: those of the "test" links, as benchmarks do,
    or "all" without a seed, as for graphs of one's own, where knowing who is in gold would be a hint. `inputs` has what
    a run needs to read the pair again: the absolute paths by the parameters of `rlea.read` (source, target, fold,
    seeds, valid, gold, verdicts; only those given), or `demo`. It is empty for data in memory and no part of the
    fingerprint. `cannot_link` are pairs of which a user knows that they are no links.

    >>> import rlea
    >>> pair = rlea.read_demo()
    >>> pair.source.num_entities, len(pair.without_gold.test)
    (1887, 0)
    """

    name: str
    source: KnowledgeGraph
    target: KnowledgeGraph
    train: Links = field(default_factory=Links.empty)
    valid: Links = field(default_factory=Links.empty)
    test: Links = field(default_factory=Links.empty)
    fold: str = ""
    notes: tuple[str, ...] = ()
    default_pool: str = "test"
    inputs: Mapping[str, str] = field(default_factory=dict)
    cannot_link: CannotLink = NO_PAIRS

    @property
    def entity_ids(self) -> tuple[Ids, Ids]:
        """The ids of all entities of either graph."""
        return np.arange(self.source.num_entities, dtype=np.int32), np.arange(self.target.num_entities, dtype=np.int32)

    @property
    def without_gold(self) -> GraphPair:
        """All that whatever decides may see: the graphs, the seeds, the validation links."""
        return GraphPair(
            self.name, self.source, self.target, train=self.train, valid=self.valid, cannot_link=self.cannot_link
        )

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over both graphs and the split of the links (as sets)."""
        digest = hashlib.sha256(f"{self.source.fingerprint}{self.target.fingerprint}".encode())
        for links in (self.train, self.valid, self.test):
            pairs = np.stack([links.source_ids, links.target_ids], axis=1)
            digest.update(f"{len(pairs)}\n".encode())
            digest.update(pairs[np.lexsort(pairs.T[::-1])].tobytes())
        return digest.hexdigest()


def choose_pool(pair: GraphPair, pool: str = "auto") -> tuple[str, Ids, Ids]:
    """The entities to be matched: those of the test links, or all without a seed.

    Each side has a random order of its own. Entities are numbered by identifier, and where both graphs use the
    same identifiers the counterparts would have the same position: a tie settled by position would be settled right.
    """
    if pool not in ("auto", "test", "all"):
        raise InputError(f"unknown pool {pool!r}", remedy="use test or all")
    if pool == "auto":
        pool = pair.default_pool if len(pair.test) else "all"
    if pool == "test":
        if not len(pair.test):
            raise InputError("--pool test needs test links and there are none", remedy="use --pool all")
        # Seeds that gold contradicts are not matched anew.
        source = np.setdiff1d(pair.test.source_ids, pair.train.source_ids)
        target = np.setdiff1d(pair.test.target_ids, pair.train.target_ids)
    else:
        source = np.setdiff1d(np.arange(pair.source.num_entities, dtype=np.int32), pair.train.source_ids)
        target = np.setdiff1d(np.arange(pair.target.num_entities, dtype=np.int32), pair.train.target_ids)
    return pool, np.random.default_rng(1).permutation(source), np.random.default_rng(2).permutation(target)
