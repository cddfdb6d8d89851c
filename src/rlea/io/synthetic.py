"""Graph pairs with a planted alignment, any size.

A hidden world has entities, facts and names. Each graph of the pair shows it under its own identifiers: some facts are
dropped, some spurious triples added, relations are called differently, and the target's names are misspelt, on demand
also spelt by other rules or missing. Nothing but this content leads from one graph to the other: identifiers and the
order of lines are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.arithmetic import exp, log
from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.progress import Progress, silent
from rlea.search.embeddings import Embeddings

Array = NDArray[Any]
Rng = np.random.Generator

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DATATYPES = (_XSD + "integer", _XSD + "gYear", "")  # attributes take turns
_NUM_VALUES = 500  # of an attribute: years, counts, codes; values narrow the search and seldom name one entity
# Offsets of the Zipf-Mandelbrot law. With 30 the 1, 10, 100 and 1000 best-known of 15,000 entities are the tails of
# 0.5 %, 4 %, 20 % and 50 % of all triples; in the 15K benchmarks (EN-FR, D-W, D-Y) these are 1 %, 5 %, 16 % and 56 %.
_ENTITY_OFFSET, _RELATION_OFFSET = 30.0, 2.0
_NAMES_PER_ENTITY = 400  # ways to form a name for every entity: a few of a thousand share theirs, as people do
_ROUNDS = 50  # of drawing facts anew that were drawn twice; large graphs need three or four
_ROWS_AT_A_TIME = 250_000

# What a relation allows: any triple; one tail per head; one head per tail; both. Functional relations are what makes
# neighbours informative, and inverse functional ones are rarer in real graphs.
_ANY, _FUNCTIONAL, _INVERSE, _BOTH = range(4)
_KINDS = (_ANY, _FUNCTIONAL, _ANY, _FUNCTIONAL, _INVERSE, _ANY, _FUNCTIONAL, _BOTH, _ANY, _FUNCTIONAL)


@dataclass(frozen=True)
class SyntheticSettings:
    """What the pair looks like. Shares are fractions of 1."""

    num_entities: int = 1000  # per graph; enough for stable figures, small enough for a test
    triples_per_entity: float = 5.0  # facts before any are dropped; common benchmarks have 2 to 7
    num_relations: int = 50  # the 15K benchmarks have 28 to 267
    num_attributes: int = 20  # beside the label
    values_per_entity: float = 1.0  # attribute values beside the label; they help but do not decide
    drop: float = 0.1  # share of the facts and values that either graph lacks, independently
    add: float = 0.05  # spurious triples in either graph, as a share of its facts
    rename_relations: bool = True  # also attributes; two sources hardly ever share a vocabulary
    split_relations: float = 0.1  # share of relations that the target splits in two (only if renamed)
    merge_relations: float = 0.1  # share of relations that the target merges with another (only if renamed)
    name_noise: float = 0.1  # share of letters, but for initials, that target names lose, double or change
    respell: float = 0.0  # share of target names in another orthography, half of these with the words swapped
    nameless: float = 0.0  # share of either graph's entities without a label, independently
    hubs: int = 0  # entities of both graphs that very many others refer to by one relation, as to a country
    hub_edges: int = 100_000  # of each hub, before any are dropped; at most one of every entity
    dangling: float = 0.0  # share of either graph's entities that the other lacks; the common benchmarks have none
    seeds: float = 0.2  # share of the links for training, as in the 15K benchmarks
    valid: float = 0.1  # share of the links for choosing settings, likewise
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"num_entities": 2, "num_relations": 1, "num_attributes": 1, "hubs": 0, "hub_edges": 0, "seed": 0}
        for name, value in vars(self).items():
            if name in least:
                is_good, remedy = value >= least[name], f"give at least {least[name]}"
            elif name in ("triples_per_entity", "values_per_entity", "add"):
                is_good, remedy = value >= 0.0, "give zero or more"
            else:
                is_good, remedy = 0.0 <= value <= 1.0, "give a share between 0 and 1"
            if not is_good:
                raise InputError(f"{name} is {value}", remedy=remedy)
        for first, second in (("seeds", "valid"), ("split_relations", "merge_relations")):
            if getattr(self, first) + getattr(self, second) > 1.0:
                raise InputError(f"{first} and {second} add up to more than 1", remedy="give smaller shares")

    @property
    def num_dangling(self) -> int:
        """Entities of either graph that the other lacks."""
        return round(self.dangling * self.num_entities)


def generate(settings: SyntheticSettings | None = None) -> GraphPair:
    """The pair, with its links split into train, valid and test."""
    settings = settings or SyntheticSettings()
    source, target, splits = _plan(settings)
    first, second = (
        KnowledgeGraph.build(
            pl.concat(side.triple_frames()),
            pl.concat(side.literal_frames()),
            entities=side.entity(np.arange(side.num_entities)).to_list(),  # one without a fact has its number, too
        )
        for side in (source, target)
    )
    train, valid, test = (Links.of(*links) for links in splits)
    return GraphPair("synthetic", first, second, train, valid, test)


def write_synthetic(
    folder: str | Path,
    settings: SyntheticSettings | None = None,
    format: str = "nt",  # noqa: A002
    progress: Progress = silent,
) -> None:
    """Write the pair that `generate` gives without holding its text in memory.

    `nt` gives source.nt and target.nt, `tsv` the folders source and target with triples.tsv and literals.tsv; both
    come with seeds.tsv, valid.tsv and test.tsv where there are such links. All files appear together or none does.
    """
    from rlea.io.writers.atomic import staged
    from rlea.io.writers.graphs import LAYOUT_NAMES, refuse_leftovers

    settings = settings or SyntheticSettings()
    if format not in ("nt", "tsv"):
        raise InputError(f"unknown format {format!r}", remedy="use nt or tsv")
    folder = Path(folder)
    progress("synthetic", 0, 1, "drawing")
    source, target, splits = _plan(settings)
    parts: dict[Path, Callable[[], Iterator[pl.DataFrame]]] = {}
    for side in (source, target):
        if format == "nt":
            parts[folder / f"{side.name}.nt"] = side.ntriples_frames
        else:
            parts[folder / side.name / "triples.tsv"] = side.triple_frames
            parts[folder / side.name / "literals.tsv"] = side.literal_frames
    for stem, links in zip(("seeds", "valid", "test"), splits, strict=True):
        if len(links[0]):
            parts[folder / f"{stem}.tsv"] = partial(_link_frames, source, target, links)
    refuse_leftovers(folder, parts, LAYOUT_NAMES)
    total = sum(len(side.triples) + len(side.values) + side.num_entities for side in (source, target))
    total += sum(len(links[0]) for links in splits)
    done = 0
    with staged(list(parts)) as temporaries:
        for temporary, (path, frames) in zip(temporaries, parts.items(), strict=True):
            with temporary.open("wb") as file:
                header = path.suffix == ".tsv"
                for frame in frames():
                    frame.write_csv(file, include_header=header, separator="\t", quote_style="never")
                    header = False
                    done += len(frame)
                    progress("synthetic", done, total, path.name)


def synthetic_embeddings(pair: GraphPair, noise: float = 0.5, dim: int = 64, seed: int = 0) -> Embeddings:
    """Vectors in which the links are planted: a linked target has the vector of its source, plus Gaussian noise.

    All vectors have an expected length of 1, the noise one of `noise`; entities without a link have vectors of their
    own. All links of the pair are planted, so these vectors are for testing what comes after an embedding.
    """
    rng = np.random.default_rng([seed, 6])
    links = Links.union([pair.train, pair.valid, pair.test])
    order = np.lexsort((links.target_ids, links.source_ids))  # the split of the links must not change the vectors
    scale = 1.0 / np.sqrt(dim)
    source = rng.standard_normal((pair.source.num_entities, dim), dtype=np.float32) * np.float32(scale)
    target = rng.standard_normal((pair.target.num_entities, dim), dtype=np.float32) * np.float32(scale)
    disturbance = rng.standard_normal((len(links), dim), dtype=np.float32) * np.float32(noise * scale)
    target[links.target_ids[order]] = source[links.source_ids[order]] + disturbance
    return Embeddings(source, target, "synthetic", info={"noise": noise, "dim": dim, "seed": seed})


# ---- one graph of the pair as numbers -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Side:
    """One graph: entity i is called by the i-th of its identifiers in sorted order."""

    name: str
    num_entities: int
    relations: tuple[str, ...]
    attributes: tuple[str, ...]
    datatypes: tuple[str, ...]  # one per attribute
    triples: Array  # (num_triples, 3), sorted, so that the order of lines gives nothing away
    values: Array  # (num_values, 3): entity, attribute, value; sorted
    labels: list[str]  # (num_entities,), "" where there is none

    def entity(self, ids: Array) -> pl.Series:
        """The identifiers of entities; with leading zeros, so that they sort as the numbers do."""
        width = len(str(self.num_entities - 1))
        digits = pl.Series(ids).cast(pl.String).str.zfill(width)
        return pl.select(pl.concat_str(pl.lit(f"http://{self.name}.example.org/entity/E"), digits)).to_series()

    def triple_frames(self) -> Iterator[pl.DataFrame]:
        """The triples as strings, many rows at a time, and at least one frame."""
        relations = pl.Series(self.relations, dtype=pl.String)
        for rows in _slices(len(self.triples)):
            heads, relation_ids, tails = self.triples[rows].T.copy()
            yield pl.DataFrame(
                {"head": self.entity(heads), "relation": relations.gather(relation_ids), "tail": self.entity(tails)}
            )

    def literal_frames(self) -> Iterator[pl.DataFrame]:
        """The labels, then the values, as strings, many rows at a time."""
        empty = pl.lit("")
        for rows in _slices(self.num_entities):
            ids = np.arange(self.num_entities)[rows]
            named = pl.DataFrame({"entity": self.entity(ids), "value": self.labels[rows]}).filter(pl.col("value") != "")
            yield named.select(
                "entity", pl.lit(LABEL).alias("attribute"), "value", empty.alias("datatype"), empty.alias("language")
            )
        attributes = pl.Series(self.attributes, dtype=pl.String)
        datatypes = pl.Series(self.datatypes, dtype=pl.String)
        for rows in _slices(len(self.values)):
            ids, attribute_ids, numbers = self.values[rows].T.copy()
            yield pl.DataFrame(
                {
                    "entity": self.entity(ids),
                    "attribute": attributes.gather(attribute_ids),
                    "value": pl.Series(numbers + 1500).cast(pl.String),
                    "datatype": datatypes.gather(attribute_ids),
                }
            ).select(*LITERAL_COLUMNS[:-1], empty.alias("language"))

    def ntriples_frames(self) -> Iterator[pl.DataFrame]:
        """All as lines of N-Triples, in one column. Nothing here holds a character that would need an escape."""
        for frame in self.triple_frames():
            yield frame.select(pl.format("<{}> <{}> <{}> .", "head", "relation", "tail"))
        ending = pl.when(pl.col("datatype") == "").then(pl.lit("")).otherwise(pl.format("^^<{}>", "datatype"))
        for frame in self.literal_frames():
            yield frame.select(pl.format('<{}> <{}> "{}"{} .', "entity", "attribute", "value", ending))


def _link_frames(source: _Side, target: _Side, links: tuple[Array, Array]) -> Iterator[pl.DataFrame]:
    yield pl.DataFrame({"source": source.entity(links[0]), "target": target.entity(links[1])})


def _slices(number: int) -> Iterator[slice]:
    return (slice(start, start + _ROWS_AT_A_TIME) for start in range(0, max(number, 1), _ROWS_AT_A_TIME))


# ---- the world and its two views ------------------------------------------------------------------------------------


def _plan(settings: SyntheticSettings) -> tuple[_Side, _Side, list[tuple[Array, Array]]]:
    """Both graphs, and the links of train, valid and test as (source ids, target ids), sorted by source.

    Within a graph the world's entities are numbered 0 .. num_shared - 1 for those in both, then those in this one only.
    """
    # A stream of its own for every part, so that e.g. more noise in names leaves the triples as they are.
    world_rng, name_rng, source_rng, target_rng, noise_rng, link_rng = (
        np.random.default_rng([settings.seed, part]) for part in range(6)
    )
    spelling_rng, missing_rng = (np.random.default_rng([settings.seed, part]) for part in (7, 8))  # 6: vectors
    num_shared = settings.num_entities - settings.num_dangling
    kinds = np.resize(np.array(_KINDS), settings.num_relations)
    kinds[1:] = world_rng.permutation(kinds[1:])  # the most frequent relation allows any triple: always room for more
    # Of the entities that both graphs have: kinds of relations, (head, relation, tail), (entity, attribute, value).
    facts = _draw_facts(world_rng, settings, kinds, num_shared)
    values = _draw_values(world_rng, settings, 0, num_shared)
    world = kinds, _add_hubs(settings, facts, num_shared), values
    names = _draw_names(name_rng, settings.num_entities + settings.num_dangling)
    respelt = _respell(spelling_rng, names[:num_shared] + names[settings.num_entities :], settings.respell)
    shown = names[: settings.num_entities], _misspell(noise_rng, respelt, settings.name_noise)
    source_names, target_names = (
        ["" if draw < settings.nameless else name for name, draw in zip(own, missing_rng.random(len(own)), strict=True)]
        for own in shown
    )
    source, source_number = _view("source", source_rng, settings, world, source_names)
    target, target_number = _view("target", target_rng, settings, world, target_names)
    links = _split_links(link_rng, settings, source_number[:num_shared], target_number[:num_shared])
    return source, target, links


def _view(
    name: str, rng: Rng, settings: SyntheticSettings, world: tuple[Array, Array, Array], names: Sequence[str]
) -> tuple[_Side, Array]:
    """A graph of its own from the world, and the number that each entity of the world has in it."""
    number = rng.permutation(settings.num_entities)
    kinds, facts, values = world
    if settings.num_dangling:
        num_shared = settings.num_entities - settings.num_dangling
        facts = _draw_facts(rng, settings, kinds, num_shared, facts)
        values = np.concatenate([values, _draw_values(rng, settings, num_shared, settings.num_entities)])
    facts = _show(rng, settings, facts)
    values = values[_choose(rng, len(values), settings.drop)]
    relations, relation_ids = _call_relations(rng, settings, name, facts)
    attribute_ids = np.arange(settings.num_attributes)
    if settings.rename_relations:
        attribute_ids = rng.permutation(attribute_ids)
    owner = name if settings.rename_relations else "shared"
    side = _Side(
        name,
        settings.num_entities,
        relations,
        _identifiers(owner, "attribute", settings.num_attributes),
        tuple(_DATATYPES[kind % len(_DATATYPES)] for kind in np.argsort(attribute_ids, kind="stable").tolist()),
        _sorted(number[facts[:, 0]], relation_ids, number[facts[:, 2]], len(relations), settings.num_entities),
        _sorted(number[values[:, 0]], attribute_ids[values[:, 1]], values[:, 2], settings.num_attributes, _NUM_VALUES),
        [names[entity] for entity in np.argsort(number, kind="stable").tolist()],
    )
    return side, number


def _key(first: Array, second: Array, third: Array, num_second: int, num_third: int) -> Array:
    """One number per row that sorts as the rows do."""
    return (first * num_second + second) * num_third + third


def _sorted(first: Array, second: Array, third: Array, num_second: int, num_third: int) -> Array:
    """The rows (first, second, third), sorted and without repetition, (num_rows, 3)."""
    rest, third = np.divmod(np.unique(_key(first, second, third, num_second, num_third)), num_third)
    return np.stack([*np.divmod(rest, num_second), third], axis=1)


def _split_links(
    rng: Rng, settings: SyntheticSettings, source_ids: Array, target_ids: Array
) -> list[tuple[Array, Array]]:
    order = rng.permutation(len(source_ids))
    cuts = np.round(np.cumsum([settings.seeds, settings.valid]) * len(order)).astype(int)
    parts = [part[np.argsort(source_ids[part], kind="stable")] for part in np.split(order, cuts)]
    return [(source_ids[part], target_ids[part]) for part in parts]


def _identifiers(owner: str, kind: str, number: int) -> tuple[str, ...]:
    width = len(str(max(number - 1, 1)))
    return tuple(f"http://{owner}.example.org/{kind}/{kind[0].upper()}{index:0{width}d}" for index in range(number))


def _zipf(rng: Rng, number: int, size: int, offset: float) -> Array:
    """Draws from 0 .. number - 1, of which rank x has a weight of about 1 / (x + offset): heavy-tailed."""
    draws = offset * (exp(log(number / offset + 1.0) * rng.random(size)) - 1.0)
    return np.minimum(draws.astype(np.int64), number - 1)


def _draw_facts(
    rng: Rng, settings: SyntheticSettings, kinds: Array, num_shared: int, known: Array | None = None
) -> Array:
    """Distinct facts (head, relation, tail) that keep to the kinds of their relations, (num_facts, 3).

    Without `known` they are about the shared entities. With `known`, facts that involve the entities of one graph only
    are put behind those.
    """
    if known is None:
        first, stop, known = 0, num_shared, np.empty((0, 3), dtype=np.int64)
    else:
        first, stop = num_shared, settings.num_entities
    wanted = len(known) + round(settings.triples_per_entity * (stop - first))
    facts = known
    if stop - first < 1 or stop < 2:
        return facts
    for attempt in range(_ROUNDS):
        missing = wanted - len(facts)
        if missing <= 0:
            break
        size = missing + missing // 10 + 10
        relations = _zipf(rng, len(kinds), size, _RELATION_OFFSET)
        # Few entities say much about themselves; many are spoken of a little and few a lot.
        heads = first + ((stop - first) * exp(1.25 * log(rng.random(size)))).astype(np.int64)
        if attempt == 0:
            everyone = rng.permutation(np.arange(first, stop))[:size]
            heads[: len(everyone)] = everyone
        tails = _zipf(rng, stop, size, _ENTITY_OFFSET)
        if first:
            # The popular ones are the shared; those of one graph are spoken of by each other, too.
            among = rng.random(size) < (stop - first) / stop
            tails[among] = first + _zipf(rng, stop - first, int(among.sum()), _ENTITY_OFFSET)
        uniform = np.isin(kinds[relations], (_INVERSE, _BOTH))
        tails[uniform] = rng.integers(first, stop, int(uniform.sum()))
        drawn = np.stack([heads, relations, tails], axis=1)
        facts = _consistent(np.concatenate([facts, drawn[heads != tails]]), kinds, stop)
    return facts[:wanted]


def _add_hubs(settings: SyntheticSettings, facts: Array, num_shared: int) -> Array:
    """The facts, and those that refer to a hub. The hubs are the best known of the shared entities anyway."""
    if not settings.hubs:
        return facts
    rng = np.random.default_rng([settings.seed, 9])
    parts = [facts]
    for hub in range(min(settings.hubs, num_shared)):
        heads = rng.permutation(num_shared)[: settings.hub_edges]
        heads = heads[heads != hub]
        # The most frequent relation allows any triple.
        parts.append(np.stack([heads, np.zeros_like(heads), np.full_like(heads, hub)], axis=1))
    every = np.concatenate(parts)
    heads, relations, tails = every.T
    return every[_first(_key(heads, relations, tails, settings.num_relations, num_shared))]


def _consistent(facts: Array, kinds: Array, num_entities: int) -> Array:
    """The facts without those that repeat or contradict an earlier one, in the same order."""
    heads, relations, tails = facts.T
    keep = _first(_key(heads, relations, tails, len(kinds), num_entities))
    kind = kinds[relations]
    for forbidding, entity in (((_FUNCTIONAL, _BOTH), heads), ((_INVERSE, _BOTH), tails)):
        rows = np.flatnonzero(keep & np.isin(kind, forbidding))
        keep[rows] = _first(relations[rows] * num_entities + entity[rows])
    return facts[keep]


def _first(keys: Array) -> NDArray[np.bool_]:
    """Which of the keys occur for the first time."""
    result = np.zeros(len(keys), dtype=bool)
    result[np.unique(keys, return_index=True)[1]] = True
    return result


def _draw_values(rng: Rng, settings: SyntheticSettings, first: int, stop: int) -> Array:
    """Attribute values (entity, attribute, value) of the entities first .. stop - 1, one at most per attribute."""
    size = round(settings.values_per_entity * (stop - first))
    entities = rng.integers(first, max(stop, first + 1), size)
    attributes = _zipf(rng, settings.num_attributes, size, _RELATION_OFFSET)
    values = _zipf(rng, _NUM_VALUES, size, _ENTITY_OFFSET)
    keep = _first(entities * settings.num_attributes + attributes)
    return np.stack([entities, attributes, values], axis=1)[keep]


def _choose(rng: Rng, number: int, drop: float) -> Array:
    """The positions that are left when a share is dropped, ascending."""
    return np.sort(rng.permutation(number)[round(drop * number) :])


def _show(rng: Rng, settings: SyntheticSettings, facts: Array) -> Array:
    """The facts that a graph has, with spurious ones in between."""
    kept = facts[_choose(rng, len(facts), settings.drop)]
    wanted = round(settings.add * len(facts))
    size = wanted + wanted // 5 + 10
    heads, tails = rng.integers(0, settings.num_entities, (2, size))
    relations = _zipf(rng, settings.num_relations, size, _RELATION_OFFSET)
    spurious = np.stack([heads, relations, tails], axis=1)[heads != tails]
    # Neither a fact, or a dropped one would come back, nor one another.
    both = np.concatenate([facts, spurious])
    keys = _key(both[:, 0], both[:, 1], both[:, 2], settings.num_relations, settings.num_entities)
    new = _first(keys)[len(facts) :]
    return np.concatenate([kept, spurious[new][:wanted]])


def _call_relations(rng: Rng, settings: SyntheticSettings, side: str, shown: Array) -> tuple[tuple[str, ...], Array]:
    """The vocabulary of a graph and the relation of each of its triples, (num_triples,)."""
    number = settings.num_relations
    relations = shown[:, 1]
    if not settings.rename_relations:
        return _identifiers("shared", "relation", number), relations
    order = rng.permutation(number)
    if side == "source":
        return _identifiers(side, "relation", number), order[relations]
    num_split = round(settings.split_relations * number)
    num_pairs = min(round(settings.merge_relations * number / 2), (number - num_split) // 2)
    split, merged = order[:num_split], order[num_split : num_split + 2 * num_pairs]
    called = np.arange(number)
    called[merged[:num_pairs]] = merged[num_pairs:]
    twin = np.full(number, -1)
    twin[split] = number + np.arange(num_split)
    # Which of two relations it is depends on the tail, as with birth cities and birth countries.
    is_twin = (twin[relations] >= 0) & (shown[:, 2] % 2 == 1)
    used = np.where(is_twin, twin[relations], called[relations])
    names = rng.permutation(number + num_split)
    return _identifiers(side, "relation", number + num_split), names[used]


# ---- names ----------------------------------------------------------------------------------------------------------

_ONSETS = (
    *("b", "br", "d", "dr", "f", "g", "gr", "h", "k", "kl"),
    *("l", "m", "n", "p", "r", "s", "st", "t", "tr", "v", "w"),
)
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ou")
_CODAS = ("", "", "", "l", "m", "n", "r", "s", "nd", "rt")


def _draw_names(rng: Rng, number: int) -> list[str]:
    """Names of two words such as "Dravou Kelstin"."""
    num_words = max(2, round(math.sqrt(_NAMES_PER_ENTITY * number)))
    words: dict[str, None] = {}
    while len(words) < num_words:
        size = num_words - len(words)
        parts = [np.array(choices)[rng.integers(0, len(choices), (size, 3))] for choices in (_ONSETS, _VOWELS, _CODAS)]
        syllables = np.char.add(np.char.add(parts[0], parts[1]), parts[2])  # (size, 3)
        three = rng.random(size) < 0.4
        words |= dict.fromkeys(
            (first + second + (third if long else "")).capitalize()
            for first, second, third, long in zip(*syllables.T.tolist(), three.tolist(), strict=True)
        )
    known = list(words)
    pairs = rng.integers(0, len(known), (number, 2)).tolist()
    return [f"{known[first]} {known[second]}" for first, second in pairs]


# What the other orthography writes for what this one does, in this order: rules, so the same sound is the same letters.
_RESPELLINGS = (("ou", "u"), ("ai", "ay"), ("kl", "cl"), ("K", "C"), ("k", "c"), ("W", "V"), ("w", "v"), ("st", "sht"))


def _respell(rng: Rng, names: Sequence[str], share: float) -> list[str]:
    """Names of which a share is written by the other rules, half of these as "Kelshtin, Dravu"."""
    result = []
    for name, draw in zip(names, rng.random(len(names)).tolist(), strict=True):
        spelt = name
        if draw < share:
            for here, there in _RESPELLINGS:
                spelt = spelt.replace(here, there)
            if draw < share / 2:
                spelt = ", ".join(reversed(spelt.split(" ")))
        result.append(spelt)
    return result


def _misspell(rng: Rng, names: Sequence[str], noise: float) -> list[str]:
    """Names in which a share of the letters, but for initials, is dropped, doubled or replaced by another."""
    text = np.frombuffer("".join(f"{name}\n" for name in names).encode("ascii"), dtype=np.uint8).copy()
    small = (text >= ord("a")) & (text <= ord("z"))
    hit = small & (rng.random(len(text)) < noise)
    change = rng.integers(0, 3, len(text))
    other = rng.integers(1, 26, len(text))
    replaced = hit & (change == 2)
    text[replaced] = (text[replaced] - ord("a") + other[replaced]) % 26 + ord("a")
    copies = np.ones(len(text), dtype=np.int64)
    copies[hit] = np.array([0, 2, 1])[change[hit]]
    return np.repeat(text, copies).tobytes().decode("ascii").split("\n")[:-1]
