"""The smallest pairs there are: every model trains on them, or says in a sentence why it cannot."""

from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from typing import Any, get_args, get_type_hints

import numpy as np
import polars as pl
import pytest

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.models import MODELS
from rlea.search.embeddings import Embeddings

LOOP = [("a", "r", "a")]  # one entity
ARROW = [("a", "r", "b")]  # two entities
ALL = [("a", "r", "a"), ("a", "r", "b"), ("b", "r", "a"), ("b", "r", "b")]  # there is no false triple
BEGIN, REST, NONE = Links.of([0], [0]), Links.of([1], [1]), Links.empty()
# Every search, round of labels and validation falls into four epochs.
SOON = {"refresh_every": 2, "label_every": 2, "valid_from": 2, "valid_every": 2}
# What a model needs and a pair lacks, by model and pair.
REFUSED = {("rdgcn", "one entity a side"): "needs a third"}


def build(prefix: str, triples: list[tuple[str, str, str]], *, has_attribute: bool) -> KnowledgeGraph:
    told = [(prefix + head, relation, prefix + tail) for head, relation, tail in triples]
    frame = pl.DataFrame(told, schema=["head", "relation", "tail"], orient="row")
    columns = ["entity", "attribute", "value", "datatype", "language"]
    literals = pl.DataFrame([(prefix + "a", "p", "1", "", "")], schema=columns, orient="row")
    return KnowledgeGraph.build(frame, literals if has_attribute else None)


def tiny(source: Any, target: Any, train: Links, valid: Links = NONE, *, has_attribute: bool = False) -> GraphPair:
    graphs = (build(prefix, triples, has_attribute=has_attribute) for prefix, triples in (("s", source), ("t", target)))
    return GraphPair("tiny", *graphs, train, valid, NONE)


PAIRS = {
    "one entity a side": tiny(LOOP, LOOP, BEGIN),
    "one source entity": tiny(LOOP, ARROW, BEGIN),
    "one target entity": tiny(ARROW, LOOP, BEGIN),
    "two entities a side": tiny(ARROW, ARROW, BEGIN),
    "one seed, one for validation": tiny(ARROW, ARROW, BEGIN, REST),
    "all are seeds": tiny(ARROW, ARROW, Links.of([0, 1], [0, 1])),
    "all triples are true": tiny(ALL, ALL, BEGIN),
    "one attribute": tiny(ARROW, ARROW, BEGIN, has_attribute=True),
}


def trainer_of(model: str) -> tuple[Callable[..., Embeddings], Any]:
    """The function that trains a model, and settings under which all happens soon."""
    known = MODELS[model]
    function = getattr(import_module(f"rlea.models.{known.module}"), known.function)
    settings = get_args(get_type_hints(function)["settings"])[0]()
    own = {field.name for field in fields(settings)}
    return function, replace(settings, **{name: value for name, value in SOON.items() if name in own})


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("model", [name for name, model in MODELS.items() if model.trained])
def test_tiny_pairs_are_trained_on_or_refused(model: str, name: str):
    train, settings = trainer_of(model)
    pair = PAIRS[name]
    if (model, name) in REFUSED:
        with pytest.raises(InputError, match=REFUSED[model, name]):
            train(pair, settings, device="cpu", epochs=4)
        return
    embeddings = train(pair, settings, device="cpu", epochs=4)
    assert embeddings.info["epochs"] == 4
    for vectors, graph in ((embeddings.source, pair.source), (embeddings.target, pair.target)):
        assert len(vectors) == graph.num_entities
        assert np.isfinite(np.asarray(vectors)).all()
        assert np.asarray(vectors).any()
