from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from rlea.errors import InputError
from rlea.graph import LITERAL_COLUMNS, GraphPair, KnowledgeGraph, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models.attributes import Similar
from rlea.models.early_stop import hits_at_1
from rlea.models.jape import (
    JAPE,
    CompiledTrainer,
    JAPESettings,
    TorchTrainer,
    shared_rows,
    similarity_loss,
    structure_loss,
    train_jape,
)
from rlea.search.embeddings import Embeddings

# A similarity that pairs do reach, and a weight that shows within a few epochs.
SHORT = JAPESettings(
    dim=16,
    max_epochs=14,
    batch_size=300,
    attribute_epochs=5,
    min_similarity=0.3,
    similarity_weight=0.1,
    valid_from=4,
    valid_every=4,
    patience=9,
)
ROWS, ENTITIES, DIM = 60, 50, 24


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return generate(SyntheticSettings(num_entities=120, num_relations=8, values_per_entity=3.0))


def without_attributes(graph: KnowledgeGraph) -> KnowledgeGraph:
    names = [graph.entities[i] for i in range(graph.num_entities)]
    triples = pl.DataFrame(
        {
            "head": [names[h] for h in graph.triples[:, 0]],
            "relation": [graph.relations[r] for r in graph.triples[:, 1]],
            "tail": [names[t] for t in graph.triples[:, 2]],
        }
    )
    return KnowledgeGraph.build(triples, entities=names)


def bytes_of(embeddings: Embeddings) -> bytes:
    return np.asarray(embeddings.source).tobytes() + np.asarray(embeddings.target).tobytes()


def tables(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    raw = random.standard_normal((ROWS, DIM)).astype(np.float32) * random.uniform(0.3, 3, (ROWS, 1)).astype(np.float32)
    return {"raw": raw, "squares": np.full_like(raw, 0.1)}


def batch(seed: int = 0, size: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    random = np.random.default_rng(seed)
    entities = random.integers(0, ENTITIES, (size, 2))
    relations = random.integers(ENTITIES, ROWS, size)
    negatives = random.integers(-1, ENTITIES, (size, 2))  # -1: none found
    positives = np.stack([entities[:, 0], relations, entities[:, 1]], axis=1)
    cuts = [0, size // 3, size]
    return positives.astype(np.int32), negatives.astype(np.int32), random.random(size) < 0.5, cuts


def some_similar(seed: int = 0) -> Similar:
    """Two to four matches each for 20 entities, among them one that is its own match, as with seeds."""
    random = np.random.default_rng(seed)
    weights = random.uniform(0.5, 1, (20, 4)).astype(np.float32)
    weights[::2, 2:] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    rows = random.permutation(ENTITIES)[:20].astype(np.int32)
    matches = random.integers(0, ENTITIES, (20, 4)).astype(np.int32)
    matches[3, 1] = rows[3]
    return Similar(rows, np.where(weights > 0, matches, 0).astype(np.int32), weights)


# ---- the losses ------------------------------------------------------------------------------------------------------


def test_the_loss_of_two_triples_by_hand():
    # Vectors of any length count as unit vectors: rows 0 1 2 are the entities (1,0), (0,1), (-1,0); row 3 is (0,1).
    raw = torch.tensor([[2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [0.0, 3.0]])
    positives = torch.tensor([[0, 3, 1], [1, 3, 2]])
    negatives = torch.tensor([[2, -1], [0, 2]])
    corrupt_tail = torch.tensor([True, False])
    # (1,0)+(0,1)-(0,1) = (1,0): 1; (0,1)+(0,1)-(-1,0) = (1,2): 5. False tail 2 of the first: (2,1), 5; the other is
    # missing. False heads of the second: 0 gives (2,1), 5; 2 gives (0,1), 1.
    expected = 1 + 5 - 0.25 * (5 + 5 + 1)
    assert float(structure_loss(raw, positives, negatives, corrupt_tail, 0.25)) == pytest.approx(expected)
    arrays = {"raw": raw.numpy(), "squares": np.full((4, 2), 0.1, dtype=np.float32)}
    trainer = CompiledTrainer(arrays, JAPESettings(negative_weight=0.25), None)
    args = positives.numpy().astype(np.int32), negatives.numpy().astype(np.int32), corrupt_tail.numpy(), [0, 2]
    assert trainer.follow_triples(*args) == pytest.approx(expected, rel=1e-6)


def test_the_similarity_loss_and_its_step_by_hand():
    # Row 0 is (1,0); it should be 3/4 of row 1, (0,1), and 1/4 of row 2, (-1,0): |(1,0) - (-.25,.75)|^2 = 2.125.
    raw = np.array([[1, 0], [0, 1], [-1, 0]], dtype=np.float32)
    similar = Similar(
        np.array([0], dtype=np.int32),
        np.array([[1, 2, 0]], dtype=np.int32),
        np.array([[0.75, 0.25, 0]], dtype=np.float32),
    )
    tensors = (torch.tensor(x) for x in (similar.rows, similar.matches, similar.weights))
    assert float(similarity_loss(torch.tensor(raw), *tensors)) == pytest.approx(2.125)
    trainer = CompiledTrainer(
        {"raw": raw, "squares": np.full_like(raw, 0.1)}, JAPESettings(similarity_weight=0.5), similar
    )
    assert trainer.follow_similarity() == pytest.approx(0.5 * 2.125)
    # Residual (1.25, -.75). Gradients: 2 * .5 * that for row 0, times -.75 for row 1, times -.25 for row 2;
    # normalising keeps what is across the vector.
    gradient = np.array([[0, -0.75], [-0.75 * 1.25, 0], [0, 0.25 * 0.75]])
    assert trainer.squares == pytest.approx(0.1 + gradient**2, abs=1e-6)
    assert trainer.table.raw == pytest.approx(raw - 0.01 * gradient / np.sqrt(0.1 + gradient**2), abs=1e-6)


def test_written_out_steps_equal_the_reference():
    settings = replace(SHORT, dim=DIM)
    reference = TorchTrainer(tables(), settings, some_similar(), "cpu")
    written_out = CompiledTrainer(tables(), settings, some_similar())
    for seed in range(4):
        assert written_out.follow_triples(*batch(seed)) == pytest.approx(
            reference.follow_triples(*batch(seed)), rel=1e-5
        )
        assert written_out.follow_similarity() == pytest.approx(reference.follow_similarity(), rel=1e-5)
    assert np.abs(reference.arrays()["raw"] - tables()["raw"]).max() > 0.01  # there was something to compare
    for name, array in reference.arrays().items():
        np.testing.assert_allclose(written_out.arrays()[name], array, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(written_out.units(ENTITIES), reference.units(ENTITIES), atol=1e-5)


def test_no_triple_is_too_far_to_count():
    # h = r = -t: the farthest a triple can be, |3h|^2 = 9, as positive and as negative.
    raw = np.array([[1, 0], [-1, 0], [1, 0]], dtype=np.float32)
    trainer = CompiledTrainer({"raw": raw, "squares": np.full_like(raw, 0.1)}, JAPESettings(), None)
    one = np.array([[0, 2, 1]], dtype=np.int32), np.array([[1]], dtype=np.int32), np.array([True]), [0, 1]
    assert trainer.follow_triples(*one) == pytest.approx(9 - 0.1 * 9, rel=1e-6)


# ---- the model -------------------------------------------------------------------------------------------------------


def test_finds_a_planted_alignment():
    world = SyntheticSettings(num_entities=300, triples_per_entity=8.0, num_relations=20, drop=0.0, add=0.0, seeds=0.4)
    pair = generate(replace(world, split_relations=0.0, merge_relations=0.0))
    settings = JAPESettings(
        dim=75, batch_size=500, learning_rate=0.03, max_epochs=200, patience=5, attribute_epochs=20, min_similarity=0.8
    )
    embeddings = train_jape(pair, settings, device="cpu")
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    assert hits_at_1(embeddings.source, embeddings.target, pair.test, pool) > 0.9
    assert embeddings.info["valid_hits_at_1"] > 0.9
    assert embeddings.info["attributes"] == "used"
    assert embeddings.measure == "cosine"


def test_seeds_share_a_vector(pair: GraphPair):
    embeddings = train_jape(pair, SHORT, device="cpu", epochs=3)
    source, target = np.asarray(embeddings.source), np.asarray(embeddings.target)
    assert (source[pair.train.source_ids] == target[pair.train.target_ids]).all()
    assert not (source[pair.valid.source_ids] == target[pair.valid.target_ids]).any()


def test_rows_are_shared_by_seeds_of_any_kind(pair: GraphPair):
    first = pair.source.num_entities
    # 3 is linked to 5 and 6, and 6 also to 2; 9 to 0.
    rows = shared_rows(replace(pair, train=Links.of([3, 3, 2, 9], [5, 6, 6, 0])))
    assert rows[[2, 3, first + 5, first + 6]].tolist() == [2, 2, 2, 2]
    assert rows[[9, first]].tolist() == [9, 9]
    others = np.setdiff1d(np.arange(len(rows)), [2, 3, 9, first, first + 5, first + 6])
    assert (rows[others] == others).all()


def attributes_only() -> GraphPair:
    """Two kinds of entities, films and persons, told apart by attributes; the triples say nothing of who is which."""
    kinds = {"person": ["birthDate", "height", "alias"], "film": ["runtime", "budget", "tagline"]}

    def build(side: str) -> KnowledgeGraph:
        facts = [
            (f"{side}:{kind}{i:02}", f"{side}:{attribute}", "x")
            for kind, attributes in kinds.items()
            for i in range(30)
            for attribute in attributes
        ]
        frame = pl.DataFrame(
            [(*fact, "", "") for fact in facts], schema=dict.fromkeys(LITERAL_COLUMNS, pl.String), orient="row"
        )
        names = [f"{side}:{kind}{i:02}" for kind in kinds for i in range(30)]
        random = np.random.default_rng(len(side))
        rows = random.integers(0, 60, (60, 2))
        triples = pl.DataFrame(
            {
                "head": [names[h] for h in rows[:, 0]],
                "relation": [f"{side}:r"] * 60,
                "tail": [names[t] for t in rows[:, 1]],
            }
        )
        return KnowledgeGraph.build(triples, frame, entities=names)

    seeds = np.array([0, 1, 2, 30, 31, 32])  # films come first in the order of identifiers
    return GraphPair("kinds", build("a"), build("bb"), Links.of(seeds, seeds))


def test_attributes_draw_entities_of_a_kind_together():
    settings = replace(SHORT, min_similarity=0.7, attribute_epochs=100, attribute_share=1.0, similarity_weight=1.0)
    model = JAPE(attributes_only(), settings, 0, "cpu")
    model.start(0, {})
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
    for side, graph in (("source", pair.source), ("target", pair.target)):
        changed = replace(pair, **{side: without_attributes(graph)})
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
    changed = replace(pair, valid=Links.empty(), target=without_attributes(pair.target))
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


def test_settings_that_cannot_train_are_refused():
    for name, value in (
        ("batch_size", -1),
        ("initial_squares", 0),
        ("max_matches", 0),
        ("similarity_weight", -0.1),
        ("negative_weight", -1.0),
        ("min_similarity", 1.5),
        ("attribute_share", 1.1),
    ):
        with pytest.raises(InputError, match=f"{name} is {value}"):
            JAPESettings(**{name: value})
    assert JAPESettings(negative_weight=0.0).negative_weight == 0.0
