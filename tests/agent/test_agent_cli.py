"""The agent on the command line."""

import json

import pytest

from rlea.demo import demo_folder


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """A small trained pair: a folder and its vectors."""
    import rlea
    from rlea.embed.aligne import AlignESettings, train_aligne
    from rlea.synthetic import SyntheticSettings, generate
    from rlea.writers.graphs import write_pair
    from rlea.writers.vectors import write_embeddings

    place = tmp_path_factory.mktemp("agent")
    pair = generate(SyntheticSettings(num_entities=150))
    write_pair(place / "pair", pair)
    pair = rlea.read(place / "pair")
    trained = train_aligne(pair, AlignESettings(dim=16, max_epochs=30), device="cpu")
    write_embeddings(place / "v.safetensors", trained, pair.source, pair.target)
    return place


def test_train_then_align_with_the_kept_agent(run_cli, vectors, tmp_path):
    file, agent = vectors / "v.safetensors", tmp_path / "agent.safetensors"
    done = run_cli("train", vectors / "pair", "--embedding", file, "--episodes", 4, "--output", agent, "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary["episodes"] == 4
    assert [path.name for path in tmp_path.iterdir()] == ["agent.safetensors"]
    arguments = ["align", vectors / "pair", "--embedding", file, "--matcher", "rlea", "--agent", agent]
    one, two = (json.loads(run_cli(*arguments, "--json").out) for _ in range(2))
    assert one["matched"] == two["matched"]
    assert one["f1"] == two["f1"]
    assert "train" in one["seconds"]
    again = tmp_path / "again.safetensors"
    run_cli("train", vectors / "pair", "--embedding", file, "--episodes", 4, "--output", again, "--quiet")
    assert again.read_bytes() == agent.read_bytes()


def test_align_trains_an_agent_and_reports_its_curves(run_cli, vectors, tmp_path, monkeypatch):
    from dataclasses import replace

    from rlea.agent import agent as module

    short = replace(module.PRESETS["paper"], train=replace(module.PRESETS["paper"].train, episodes=3))
    monkeypatch.setitem(module.PRESETS, "paper", short)
    arguments = ["align", vectors / "pair", "--embedding", vectors / "v.safetensors", "--matcher", "rlea"]
    done = run_cli(*arguments, "--preset", "paper", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert len(record["embedding_info"]["agent"]["history"]) == 3
    assert "episode" in (tmp_path / "out" / "report.html").read_text()


def test_test_links_change_no_decision(vectors, monkeypatch):
    """The agent learns from seeds and is chosen by validation links; which test source has which target is unknown."""
    from dataclasses import replace

    import numpy as np

    import rlea
    from rlea.agent import agent as module

    short = replace(module.PRESETS["paper"], train=replace(module.PRESETS["paper"].train, episodes=3))
    monkeypatch.setitem(module.PRESETS, "paper", short)
    pair = rlea.read(vectors / "pair")
    mixed = rlea.Links.of(pair.test.source_ids, np.random.default_rng(0).permutation(pair.test.target_ids))
    settings = rlea.AlignSettings(str(vectors / "v.safetensors"), "rlea")
    one, two = rlea.align(pair, settings), rlea.align(replace(pair, test=mixed), settings)
    assert one.matching.target_ids.tobytes() == two.matching.target_ids.tobytes()
    assert one.matching.confidences.tobytes() == two.matching.confidences.tobytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "{demo}", "--preset", "papper"], ["papper", "did you mean paper"]),
        (["train", "{demo}", "--episodes", "0"], ["--episodes"]),
        (["train", "{demo}", "--output", "x.bin"], [".safetensors"]),
        (["train", "{demo}", "--embedding", "nmaes"], ["did you mean names"]),
        (["align", "{demo}", "--matcher", "rlea", "--agent", "nowhere"], ["nowhere", "rlea train"]),
        (["align", "{demo}", "--matcher", "rlea", "--preset", "papper"], ["papper"]),
        (["align", "{demo}", "--matcher", "rlea", "--agent", "{demo}/test.tsv"], ["test.tsv", "agent"]),
    ],
)
def test_mistakes(run_cli, arguments, words):
    done = run_cli(*(part.replace("{demo}", str(demo_folder())) for part in arguments), "--quiet")
    assert done.code == 2, done.err
    assert done.err.startswith("Error: ")
    for word in words:
        assert word in done.err
