"""Names as dense vectors, for models that start from what entities are called.

The vectors are character n-grams (`rlea.models.names`) brought to few dimensions by a random projection, which keeps
all similarities about as they are. A truncated SVD was tried in its place: it keeps what many names have in common and
loses what tells one from another (validation Hits@1 of the names alone, EN_FR_15K_V1, 300 dimensions: .84 against .90;
without any projection .91). With a sentence encoder, which is an extra, names are compared by what they mean.

Where identifiers are opaque, as in Wikidata, some attribute holds what people call the entity, and the seeds show
which one: its values have the words of the other graph's names.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from dataclasses import dataclass, replace
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.graph.names import is_readable, local_name, plain
from rlea.graph.texts import Texts
from rlea.models.names import embed_names

NAME = -1  # the name that a graph gives, among the numbers of its attributes
TRUSTED = 0.5  # an attribute speaks names if on average half of the words are those of the counterpart's name ...
LEAST_SEEDS = 5  # ... over so many seeds at least
_FEATURES = 1 << 16  # n-grams projected at a time, so that the random matrix need not be held whole


@dataclass(frozen=True, eq=False)
class NameVectors:
    """Unit vectors of names; zero where an entity has no name that can be read."""

    source: NDArray[np.float32]  # (num_source_entities, dim)
    target: NDArray[np.float32]  # (num_target_entities, dim)
    info: dict[str, Any]  # which vectors these are and where the names come from, for the record


def name_vectors(pair: GraphPair, dim: int, *, seed: int = 0, encoder: str = "") -> NameVectors:
    """Vectors of all entities' names; by n-grams, or by the sentence encoder in the folder `encoder`.

    Learns from names, attributes and `pair.train`; other links are not read.
    """
    source, told_source = readable_names(pair.source, pair.target, pair.train)
    target, told_target = readable_names(pair.target, pair.source, Links(pair.train.target_ids, pair.train.source_ids))
    if encoder:
        both, kind = _encode(source + target, encoder, dim, seed), f"sentence encoder {encoder}"
    else:
        named_source = replace(pair.source, names=Texts.of(source))
        named_target = replace(pair.target, names=Texts.of(target))
        named = replace(pair, source=named_source, target=named_target)
        both, kind = _project(named, dim, seed), f"character n-grams, projected to {dim} dimensions"
    lengths = np.linalg.norm(both, axis=1, keepdims=True)
    both = (both / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
    info = {"name_vectors": kind, "source_names": told_source, "target_names": told_target}
    return NameVectors(both[: len(source)], both[len(source) :], info)


def readable_names(
    graph: KnowledgeGraph, other: KnowledgeGraph, seeds: Links
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """A name for every entity, or "" for those without one that can be read; and what the names were taken from.

    An entity whose identifier can be read keeps its name. For the others the graph's own choice (some label) and every
    attribute are judged by the seeds whose counterpart has a readable name, and the most trusted one counts.
    """
    names = [name if is_readable(name) else "" for name in graph.names]
    texts: dict[int, list[tuple[int, str]]] = defaultdict(list)  # entity -> what it may be called
    # Without seeds nothing is learned of what they are called.
    opaque = [not is_readable(local_name(identifier)) for identifier in graph.entities] if len(seeds) else []
    if any(opaque):
        for entity, name in enumerate(names):
            if opaque[entity] and name:
                texts[entity].append((NAME, name))
        literals = graph.literals
        for entity, attribute, value in zip(
            literals.entity_ids.tolist(), literals.attribute_ids.tolist(), literals.values, strict=True
        ):
            if opaque[entity] and is_readable(value):
                texts[entity].append((attribute, value))
    trust = _judge(texts, other, seeds)
    counts: dict[str, int] = defaultdict(int)
    for entity, choices in texts.items():
        if not trust:  # no seed tells anything: the graph's own choice is the best guess
            continue
        # The most trusted; of several values the first, which is the first in order of the text.
        best = max(choices, key=lambda choice: trust.get(choice[0], 0.0))
        if trust.get(best[0], 0.0) >= TRUSTED:
            names[entity] = best[1]
            counts["label" if best[0] == NAME else graph.attributes[best[0]]] += 1
    told: dict[str, Any] = {"nameless": sum(not name for name in names)}
    if counts:
        told["opaque_identifiers_named_by"] = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    return tuple(names), told


def _judge(texts: dict[int, list[tuple[int, str]]], other: KnowledgeGraph, seeds: Links) -> dict[int, float]:
    """For every attribute, the mean share of words (Jaccard) that its values have in common with the names of seeds."""
    shares: dict[int, list[float]] = defaultdict(list)
    for entity, partner in zip(seeds.source_ids.tolist(), seeds.target_ids.tolist(), strict=True):
        name = other.names[partner]
        if entity not in texts or not is_readable(name):
            continue
        words = set(plain(name).split())
        for attribute, value in texts[entity]:
            found = set(plain(value).split())
            shares[attribute].append(len(words & found) / max(1, len(words | found)))
    return {attribute: fsum(values) / len(values) for attribute, values in shares.items() if len(values) >= LEAST_SEEDS}


def _project(pair: GraphPair, dim: int, seed: int) -> NDArray[np.float32]:
    """N-grams times normal numbers: inner products are kept up to an error of about 1/sqrt(dim)."""
    embeddings = embed_names(pair)
    source, target = embeddings.source, embeddings.target
    result = np.zeros((source.shape[0] + target.shape[0], dim), dtype=np.float32)
    random = np.random.default_rng([seed, 3])
    for begin in range(0, source.shape[1], _FEATURES):
        part = slice(begin, min(begin + _FEATURES, source.shape[1]))
        directions = random.standard_normal((part.stop - part.start, dim), dtype=np.float32)
        result[: source.shape[0]] += source[:, part] @ directions
        result[source.shape[0] :] += target[:, part] @ directions
    return result


def encoder_package(encoder: str) -> Any:
    """The package of sentence encoders; refused if it is not there, or if `encoder` is no folder."""
    if not Path(encoder).is_dir():
        raise InputError(
            "is no folder of a sentence encoder", path=encoder, remedy="give the folder that the model was saved to"
        )
    try:
        return importlib.import_module("sentence_transformers")
    except ImportError as problem:
        raise InputError(
            "a sentence encoder needs the package sentence-transformers", remedy='pip install "rlea[encoder]"'
        ) from problem


def _encode(names: tuple[str, ...], encoder: str, dim: int, seed: int) -> NDArray[np.float32]:
    """Vectors of a sentence encoder, by a random rotation cut to `dim` dimensions or filled up with zeros."""
    model = encoder_package(encoder).SentenceTransformer(encoder, device="cpu")
    distinct = sorted(set(names) - {""})
    result = np.zeros((len(names), dim), dtype=np.float32)
    if not distinct:
        return result
    encoded = np.asarray(model.encode(distinct, show_progress_bar=False), dtype=np.float32)
    encoded -= encoded.mean(axis=0)  # encoders put all texts into a narrow cone; without this all names are alike
    if encoded.shape[1] > dim:
        random = np.random.default_rng([seed, 3])
        encoded = encoded @ random.standard_normal((encoded.shape[1], dim), dtype=np.float32)
    place = {name: number for number, name in enumerate(distinct)}
    rows = np.array([place.get(name, -1) for name in names])
    result[rows >= 0, : encoded.shape[1]] = encoded[rows[rows >= 0]]
    return result
