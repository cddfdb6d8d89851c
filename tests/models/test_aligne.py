import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import polars as pl
import pytest

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links
from rlea.models import negatives
from rlea.models.aligne import AlignE, AlignESettings, train_aligne
from rlea.models.early_stop import hits_at_1
from rlea.search.embeddings import Embeddings

# Neighbour searches and validations that do not fall on the same epochs, so that a checkpoint must keep both apart.
SHORT = AlignESettings(dim=16, max_epochs=14, batch_size=300, refresh_every=3, valid_from=4, valid_every=4, patience=9)


def planted_pair(num_entities: int, num_triples: int, seed: int = 0) -> GraphPair:
    """Two copies of one random graph under other names; 30 % of the links are seeds, 10 % for validation."""
    random = np.random.default_rng(seed)
    heads, tails = random.integers(0, num_entities, (2, num_triples))
    relations = random.integers(0, 20, num_triples)
    other = random.permutation(num_entities)

    def build(names: np.ndarray, prefix: str) -> KnowledgeGraph:
        columns = {
            "head": [f"{prefix}{names[h]:04}" for h in heads],
            "relation": [f"{prefix}r{r}" for r in relations],
            "tail": [f"{prefix}{names[t]:04}" for t in tails],
        }
        return KnowledgeGraph.build(pl.DataFrame(columns), entities=[f"{prefix}{i:04}" for i in range(num_entities)])

    order = random.permutation(num_entities)
    cuts = np.split(order, [num_entities * 3 // 10, num_entities * 4 // 10])
    train, valid, test = (Links.of(part, other[part]) for part in cuts)
    return GraphPair("planted", build(np.arange(num_entities), "s"), build(other, "t"), train, valid, test)


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return planted_pair(120, 500)


def bytes_of(embeddings: Embeddings) -> bytes:
    return np.asarray(embeddings.source).tobytes() + np.asarray(embeddings.target).tobytes()


def test_finds_a_planted_alignment():
    pair = planted_pair(300, 1500)
    settings = AlignESettings(dim=150, batch_size=1000, max_epochs=150, patience=20)
    embeddings = train_aligne(pair, settings, device="cpu")
    assert isinstance(embeddings.source, np.ndarray)
    assert isinstance(embeddings.target, np.ndarray)
    np.testing.assert_allclose(np.linalg.norm(embeddings.source, axis=1), 1, atol=1e-5)
    pool = np.setdiff1d(np.arange(300, dtype=np.int32), pair.train.target_ids)
    assert hits_at_1(embeddings.source, embeddings.target, pair.test, pool) > 0.9
    assert embeddings.info["valid_hits_at_1"] > 0.9
    assert embeddings.info["epoch_of_vectors"] <= embeddings.info["epochs"] <= 150


def test_test_links_are_not_read(pair: GraphPair):
    expected = bytes_of(train_aligne(pair, SHORT, device="cpu"))
    for test in (Links.empty(), Links.of([10**6, -5], [3, 3])):
        assert bytes_of(train_aligne(replace(pair, test=test), SHORT, device="cpu")) == expected


def test_same_seed_same_bytes_for_any_number_of_threads(pair: GraphPair):
    expected = bytes_of(train_aligne(pair, SHORT, seed=1, device="cpu"))
    threads = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = bytes_of(train_aligne(pair, SHORT, seed=1, device="cpu"))
    finally:
        numba.set_num_threads(threads)
    assert alone == expected
    assert bytes_of(train_aligne(pair, SHORT, seed=2, device="cpu")) != expected


def test_the_old_table_of_neighbours_is_gone_before_a_new_one_is_made(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    search = negatives.nearest_neighbours
    tables: list[Any] = []
    still_there = []

    def watch(*given: Any, **options: Any) -> np.ndarray:
        still_there.append(sum(table() is not None for table in tables))
        found = search(*given, **options)
        tables.append(weakref.ref(found))
        return found

    monkeypatch.setattr(negatives, "nearest_neighbours", watch)
    model = AlignE(pair, SHORT, 0, "cpu", 0, {})
    for epoch in range(1, 11):
        model.run_epoch(epoch)
    assert still_there == [0, 0, 0]  # before epochs 4, 7 and 10
    assert tables[-1]() is model.neighbours


class KilledError(Exception):
    pass


@pytest.mark.parametrize("killed_at", [6, 13])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(pair: GraphPair, tmp_path: Path, killed_at: int):
    path = tmp_path / "aligne.safetensors"

    def kill(stage: str, done: float, total: float, note: str = "") -> None:
        if done == killed_at:
            raise KilledError

    expected = train_aligne(pair, SHORT, device="cpu")
    with pytest.raises(KilledError):
        train_aligne(pair, SHORT, device="cpu", progress=kill, checkpoint=path)
    told = []
    resumed = train_aligne(pair, SHORT, device="cpu", progress=lambda *call: told.append(call), checkpoint=path)
    kept = killed_at - killed_at % 4
    assert told[0] == ("aligne", kept, 14, f"going on from epoch {kept}")
    assert [call[1] for call in told[1:]] == list(range(kept + 1, 15))
    assert not any("going on" in call[3] for call in told[1:])
    assert bytes_of(resumed) == bytes_of(expected)
    of_the_run = {"seconds": pytest.approx(0, abs=600), "resumed_at": [kept]}
    assert expected.info["resumed_at"] == []
    assert resumed.info == {**expected.info, **of_the_run}


def test_seconds_are_those_of_the_whole_training(pair: GraphPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import rlea.models.training as module

    path = tmp_path / "aligne.checkpoint"
    clock = iter(range(0, 10**6, 100))  # every look at it is 100 s after the one before
    monkeypatch.setattr(module.time, "perf_counter", lambda: float(next(clock)))
    first = train_aligne(pair, replace(SHORT, max_epochs=4), device="cpu", checkpoint=path)
    assert (first.info["seconds"], first.info["resumed_at"]) == (200, [])  # the second look is for the checkpoint
    second = train_aligne(pair, replace(SHORT, max_epochs=8), device="cpu", checkpoint=path)
    assert (second.info["seconds"], second.info["resumed_at"]) == (300, [4])
    third = train_aligne(pair, replace(SHORT, max_epochs=9), device="cpu", checkpoint=path)
    assert (third.info["seconds"], third.info["resumed_at"]) == (300, [4, 8])


def test_a_checkpoint_beyond_the_epochs_asked_for_is_refused(pair: GraphPair, tmp_path: Path):
    path = tmp_path / "aligne.checkpoint"
    train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=8)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"aligne\.checkpoint: is the checkpoint of epoch 8.*delete it.*--epochs 8 or"):
        train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=7)
    assert path.read_bytes() == before
    assert train_aligne(pair, SHORT, device="cpu", checkpoint=path, epochs=8).info["epochs"] == 8


def test_seeds_out_of_range_are_refused(pair: GraphPair):
    settings = replace(SHORT, max_epochs=1)
    for seed in (-1, 2**63):
        with pytest.raises(InputError, match=f"the seed is {seed}"):
            train_aligne(pair, settings, seed=seed, device="cpu")
    assert train_aligne(pair, settings, seed=2**63 - 1, device="cpu").info["seed"] == 2**63 - 1


def test_a_finished_run_is_not_trained_again(pair: GraphPair, tmp_path: Path):
    path = tmp_path / "aligne.safetensors"
    settings = replace(SHORT, max_epochs=12)
    first = train_aligne(pair, settings, device="cpu", checkpoint=path)

    def fail(stage: str, done: float, total: float, note: str = "") -> None:
        raise AssertionError("trained again")

    assert bytes_of(train_aligne(pair, settings, device="cpu", progress=fail, checkpoint=path)) == bytes_of(first)
    with pytest.raises(InputError, match="its seed differ"):
        train_aligne(pair, settings, seed=9, device="cpu", checkpoint=path)
    with pytest.raises(InputError, match="its links differ"):
        train_aligne(replace(pair, valid=Links.empty()), settings, device="cpu", checkpoint=path)


def test_returns_the_vectors_of_the_best_validation(pair: GraphPair):
    settings = replace(SHORT, dim=2, max_epochs=40, valid_every=1, valid_from=1, patience=40)
    embeddings = train_aligne(pair, settings, device="cpu")
    best = embeddings.info["epoch_of_vectors"]
    assert best < 40
    up_to_best = train_aligne(pair, replace(settings, max_epochs=best), device="cpu")
    assert bytes_of(up_to_best) == bytes_of(embeddings)


def test_without_validation_links_the_number_of_epochs_is_fixed(pair: GraphPair):
    settings = replace(SHORT, epochs_without_valid=5)
    embeddings = train_aligne(replace(pair, valid=Links.empty()), settings, device="cpu")
    assert embeddings.info["epochs"] == 5
    assert embeddings.info["valid_hits_at_1"] is None
    assert "fixed 5 epochs" in embeddings.info["note"]


def test_progress_tells_loss_and_validation(pair: GraphPair):
    told = []
    train_aligne(pair, SHORT, device="cpu", progress=lambda *call: told.append(call))
    assert [call[:3] for call in told] == [("aligne", epoch, 14) for epoch in range(1, 15)]
    losses = [float(call[3].split()[1]) for call in told]
    assert losses[-1] < losses[0]
    assert "valid Hits@1 0." in told[-1][3]
    assert "valid" not in told[0][3]


def test_the_two_trainers_learn_the_same(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    import rlea.models.aligne as module

    settings = replace(SHORT, max_epochs=6)
    expected = train_aligne(pair, settings, device="cpu")
    monkeypatch.setattr(module, "WrittenOutTrainer", lambda arrays, chosen: module.TorchTrainer(arrays, chosen, "cpu"))
    reference = train_aligne(pair, settings, device="cpu")
    assert expected.info["loss"] == pytest.approx(reference.info["loss"], rel=1e-3)


def test_pairs_it_cannot_learn_from_are_refused(pair: GraphPair):
    with pytest.raises(InputError, match="no training links"):
        train_aligne(replace(pair, train=Links.empty()), SHORT)
    empty = KnowledgeGraph.build(pl.DataFrame(schema={"head": pl.String, "relation": pl.String, "tail": pl.String}))
    with pytest.raises(InputError, match="without relation triples"):
        train_aligne(replace(pair, source=empty), SHORT)


def test_settings_that_cannot_train_are_refused():
    with pytest.raises(InputError, match="initial_squares is 0"):
        AlignESettings(initial_squares=0)
    with pytest.raises(InputError, match="batch_size is -1"):
        AlignESettings(batch_size=-1)
    assert AlignESettings(positive_limit=0.0).positive_limit == 0.0


def test_a_missing_gpu_is_said(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="no CUDA device"):
        train_aligne(pair, SHORT, device="cuda")
    assert train_aligne(pair, replace(SHORT, max_epochs=1), device="auto").info["device"] == "cpu"
