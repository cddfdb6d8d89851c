from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.graph.masking import hide
from rlea.models.jape import JAPE, JAPESettings, shared_rows, train_jape

from .conftest import bytes_of, started

# A similarity that pairs do reach, and a weight that shows within a few epochs.
SHORT = JAPESettings(
    dim=16, max_epochs=14, batch_size=300, valid_from=4, valid_every=4, patience=9,
    attribute_epochs=5, min_similarity=0.3, similarity_weight=0.1,
)  # fmt: skip


def test_seeds_share_a_vector(pair: GraphPair):
    embeddings = train_jape(pair, SHORT, device="cpu", epochs=3)
    source, target = np.asarray(embeddings.source), np.asarray(embeddings.target)
    assert (source[pair.train.source_ids] == target[pair.train.target_ids]).all()
    assert not (source[pair.valid.source_ids] == target[pair.valid.target_ids]).any()


def test_rows_are_shared_by_seeds_of_any_kind():
    # 3 is linked to 15 and 16, and 16 also to 2; 9 to 10.
    rows = shared_rows(np.array([[3, 15], [3, 16], [2, 16], [9, 10]]), 18)
    assert rows.tolist() == [0, 1, 2, 2, 4, 5, 6, 7, 8, 9, 9, 11, 12, 13, 14, 2, 2, 17]


def attributes_only() -> GraphPair:
    """Two kinds of entities, films and persons, told apart by attributes; the triples say nothing of who is which."""
    kinds = {"person": ["birthDate", "height", "alias"], "film": ["runtime", "budget", "tagline"]}

    def build(side: str) -> KnowledgeGraph:
        names = {f"{side}:{kind}{i:02}": kind for kind in kinds for i in range(30)}
        facts = [
            (name, f"{side}:{attribute}", "x", "", "") for name, kind in names.items() for attribute in kinds[kind]
        ]
        rows = np.array(list(names))[np.random.default_rng(len(side)).integers(0, 60, (60, 2))]
        triples = [(head, f"{side}:r", tail) for head, tail in rows.tolist()]
        return KnowledgeGraph.build(
            pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row"),
            pl.DataFrame(facts, schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row"),
            entities=list(names),
        )

    seeds = np.array([0, 1, 2, 30, 31, 32])  # films come first in the order of identifiers
    return GraphPair("kinds", build("a"), build("bb"), Links.of(seeds, seeds))


def test_attributes_draw_entities_of_a_kind_together():
    settings = replace(SHORT, min_similarity=0.7, attribute_epochs=100, attribute_share=1.0, similarity_weight=1.0)
    model = started(JAPE, attributes_only(), settings)
    assert model.similar is not None
    assert model.similar.num_pairs == 120 * settings.max_matches
    of_film = np.tile(np.arange(60) < 30, 2)
    assert (of_film[model.similar.matches] == of_film[model.similar.rows][:, None]).all()

    def advantage() -> float:
        """How much more similar a film is to the films than to the persons of the other graph; seeds left out."""
        source, target = model.vectors()
        similarity = source @ target.T
        return float(similarity[3:30, 3:30].mean() - similarity[3:30, 33:].mean())

    before = advantage()
    losses = [model.trainer.follow_similarity() for _ in range(200)]
    assert losses[-1] < 0.5 * losses[0]
    assert advantage() > before + 0.1


def test_a_graph_without_attributes_is_said(pair: GraphPair, tmp_path: Path):
    for side in ("source", "target"):
        changed = replace(pair, **{side: getattr(hide(pair, "attributes"), side)})
        embeddings = train_jape(changed, SHORT, device="cpu", checkpoint=tmp_path / f"{side}.checkpoint")
        assert embeddings.info["attributes"] == f"not used: the {side} graph has none"
        assert embeddings.info["similar_pairs"] == 0
        assert f"the {side} graph has none; trained on structure alone" in embeddings.info["note"]
        alone = train_jape(pair, replace(SHORT, similarity_weight=0.0), device="cpu")
        assert bytes_of(alone) == bytes_of(embeddings)
        assert alone.info["attributes"] == "not used: their weight is zero"
    with_them = train_jape(pair, SHORT, device="cpu")
    assert with_them.info["attributes"] == "used"
    assert with_them.info["similar_pairs"] > 0
    assert "note" not in with_them.info
    assert bytes_of(with_them) != bytes_of(alone)


def test_notes_do_not_drive_out_each_other(pair: GraphPair):
    changed = replace(pair, valid=Links.empty(), target=hide(pair, "attributes").target)
    note = train_jape(changed, replace(SHORT, epochs_without_valid=2), device="cpu").info["note"]
    assert "fixed 2 epochs" in note
    assert "the target graph has none" in note


def test_no_entities_alike_enough_is_said(pair: GraphPair, tmp_path: Path):
    settings = replace(SHORT, min_similarity=1.0)
    for epochs in (4, 8):  # the second time from a checkpoint
        embeddings = train_jape(pair, settings, device="cpu", checkpoint=tmp_path / "jape.checkpoint", epochs=epochs)
        assert embeddings.info["similar_pairs"] == 0
        assert "alike enough" in embeddings.info["note"]
    assert embeddings.info["resumed_at"] == [4]
    alone = train_jape(pair, replace(SHORT, similarity_weight=0.0), device="cpu", epochs=8)
    assert bytes_of(embeddings) == bytes_of(alone)
