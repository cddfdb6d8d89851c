"""The agents on the command line."""

import functools
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import rlea
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.models import aligne
from rlea.paper.agent import Agent
from rlea.paper.presets import PRESETS


@pytest.fixture
def short(monkeypatch):
    """The preset `paper` with three episodes."""
    whole = PRESETS["paper"]
    monkeypatch.setitem(PRESETS, "paper", replace(whole, train=replace(whole.train, episodes=3)))


def test_train_then_align_with_the_kept_agent(run_cli, vectors, tmp_path):
    file, agent, again = vectors / "v.safetensors", tmp_path / "agent.safetensors", tmp_path / "again.safetensors"
    train = ["train", vectors / "pair", "--embedding", file, "--episodes", 4, "--preset", "paper", "--output"]
    done = run_cli(*train, agent, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["episodes"] == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.json", "agent.safetensors"]
    record = json.loads((tmp_path / "agent.json").read_text())
    assert record["settings"]["train"]["episodes"] == 4
    assert record["fingerprint"]
    done = run_cli("align", vectors / "pair", "--agent", agent, "--embedding", file)
    assert (done.code, done.err) == (2, f"Error: {agent}: is an agent of the paper's; add --matcher rlea.\n")
    arguments = ["align", vectors / "pair", "--matcher", "rlea", "--agent", agent, "--embedding"]
    one, two = (json.loads(run_cli(*arguments, file, "--json").out) for _ in range(2))
    assert (one["matched"], one["f1"]) == (two["matched"], two["f1"])
    assert "train" in one["seconds"]
    done = run_cli(*arguments, "aligne")
    assert done.code == 2
    assert "knows only the vectors it was trained on" in done.err
    run_cli(*train, again, "--quiet")
    assert again.read_bytes() == agent.read_bytes()


def test_the_agent_is_trained_kept_and_used(run_cli, flow, tmp_path):
    """With the same evidence the kept agent finds what a fresh one finds."""
    file, agent = flow / "vectors.safetensors", tmp_path / "agent.safetensors"
    train = ["train", flow / "pair", "--channels", "structure,names", "--embedding", file, "--seed", 1, "--output"]
    done = run_cli(*train, agent, "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert (summary["preset"], summary["channels"], summary["seed"]) == ("", "structure, names", 1)
    assert summary["chosen_by"] == "validation links"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.json", "agent.safetensors"]
    assert json.loads((tmp_path / "agent.json").read_text())["embedding"] == [str(file)]
    assert run_cli(*train, tmp_path / "again.safetensors", "--quiet").code == 0
    assert (tmp_path / "again.safetensors").read_bytes() == agent.read_bytes()
    arguments = ["align", flow / "pair", "--embedding", file, "--quiet", "--output"]
    done = run_cli(*arguments, tmp_path / "kept", "--agent", agent)
    assert done.code == 0, done.err
    done = run_cli(*arguments, tmp_path / "fresh", "--channels", "structure,names", "--seed", 1)
    assert done.code == 0, done.err
    kept, fresh = ((tmp_path / name / "links.tsv").read_bytes() for name in ("kept", "fresh"))
    assert kept == fresh
    told = json.loads((tmp_path / "kept" / "run.json").read_text())["embedding_info"]["agent"]
    assert (told["file"], told["weights"]["chosen_by"]) == (str(agent), "validation links")
    assert (tmp_path / "kept" / "decisions.safetensors").exists()
    done = run_cli("align", flow / "pair", "--agent", agent, "--channels", "names")
    assert (done.code, done.out) == (2, "")
    assert "the trained agent keeps to its own" in done.err


@pytest.mark.parametrize("matcher", ["best-first", "rlea"])
def test_a_threshold_and_worthwhile_keep_the_surest_links(vectors, matcher):
    """Neither has calibrated confidences here: all links are kept by default, and no precision is promised."""
    pair = rlea.read(vectors / "pair")
    given = {"embedding": vectors / "v.safetensors", "matcher": matcher}
    kept = {"all": {}, "0.9": {"threshold": 0.9}, "0.99": {"threshold": 0.99}, "f1": {"keep": "worthwhile"}}
    found = {}
    for name, more in kept.items():
        result = rlea.align(pair, **given, **more)
        assert (result.overlap, result.expected_right) == (None, None)
        links = result.matching
        ids = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
        found[name] = dict(zip(ids, links.confidences.tolist(), strict=True))
        left = [confidence for link, confidence in found["all"].items() if link not in found[name]]
        assert found[name].items() <= found["all"].items()
        assert max(left, default=0) <= min(found[name].values(), default=1)
    assert found["0.9"].keys() >= found["0.99"].keys() < found["all"].keys()
    for threshold in ("0.9", "0.99"):
        assert found[threshold] == {link: one for link, one in found["all"].items() if one >= float(threshold)}
    # No other number of links has a better expected F1.
    ordered = sorted(found["all"].values(), reverse=True)
    expected = [2 * sum(ordered[:n]) / (n + len(pair.test)) for n in range(1, len(ordered) + 1)]
    assert expected[len(found["f1"]) - 1] == pytest.approx(max(expected), abs=1e-4)
    with pytest.raises(InputError, match="cannot be promised"):
        rlea.align(pair, **given, precision=0.9)


def test_precision_keeps_the_surest_links_of_all_evidence():
    """Two fifths of either side have no counterpart, so that many links are doubtful."""
    planted = generate(SyntheticSettings(150, name_noise=0.4, dangling=0.4, seed=5))
    pair = rlea.GraphPair("", planted.source, planted.target)
    every = rlea.align(pair, keep="all").matching
    whole = dict(
        zip(zip(every.source_ids.tolist(), every.target_ids.tolist(), strict=True), every.confidences, strict=True)
    )
    assert len(whole) >= 50
    before = whole.keys()
    for precision in (0.9, 0.99):
        links = rlea.align(pair, precision=precision).matching
        ids = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
        found = dict(zip(ids, links.confidences, strict=True))
        assert found.items() <= whole.items()
        assert max((one for link, one in whole.items() if link not in found), default=0) < min(
            found.values(), default=1
        )
        assert np.mean([*found.values(), 1.0]) >= precision
        assert found.keys() < before
        before = found.keys()


def test_joint_rounds_train_the_vectors_anew(vectors):
    """Links that the agent is sure of become seeds: the second round of the model has more of them."""
    from rlea.agent.joint import train_jointly

    pair = rlea.read(vectors / "pair")
    seeds = []

    def embed(grown, number):
        seeds.append(len(grown.train))
        assert not set(grown.train.source_ids) & set(pair.valid.source_ids)
        assert not set(grown.train.target_ids) & set(pair.valid.target_ids)
        assert set(zip(pair.train.source_ids, pair.train.target_ids, strict=True)) <= set(
            zip(grown.train.source_ids, grown.train.target_ids, strict=True)
        )
        return aligne.train_aligne(grown, aligne.AlignESettings(dim=16, max_epochs=10), device="cpu", seed=number)

    joint = train_jointly(pair, embed, 2, rlea.Aligner(channels=("structure",)))
    assert seeds[0] == len(pair.train)
    assert all(count > seeds[0] for count in seeds[1:])
    assert [row["round"] for row in joint.rounds] == list(range(len(joint.rounds)))
    best = max(row["valid"] for row in joint.rounds)
    assert len(joint.agent.match(pair, [joint.vectors], pool="all"))
    assert best in (joint.rounds[-1]["valid"], joint.rounds[-2]["valid"])


def test_joint_on_the_command_line(run_cli, vectors, tmp_path, monkeypatch):
    monkeypatch.setattr(aligne.AlignESettings, "__init__", short_init(aligne.AlignESettings))
    arguments = ["align", vectors / "pair", "--embedding", "aligne", "--matcher", "rlea", "--joint", 1]
    done = run_cli(*arguments, "--output", tmp_path / "out", "--json", "--device", "cpu")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    rounds = record["embedding_info"]["joint"]
    assert rounds[0]["round"] == 0
    assert rounds[0]["sure"] > 0
    assert not list((tmp_path / "out").glob("*checkpoint*"))


def short_init(settings):
    """The settings of a model with few epochs and dimensions, whoever makes them."""
    whole = settings.__init__

    @functools.wraps(whole)
    def init(self, *args, **more):
        whole(self, *args, **{"dim": 16, "max_epochs": 10, **more})

    return init


def test_align_trains_an_agent_and_reports_its_curves(run_cli, vectors, tmp_path, short):
    arguments = ["align", vectors / "pair", "--embedding", vectors / "v.safetensors", "--matcher", "rlea"]
    done = run_cli(*arguments, "--preset", "paper", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert len(record["embedding_info"]["agent"]["history"]) == 3
    assert "episode" in (tmp_path / "out" / "report.html").read_text()


def test_test_links_change_no_decision_of_the_papers_agent(vectors, short):
    """It learns from seeds and is chosen by validation links; which test source has which target is unknown."""
    pair = rlea.read(vectors / "pair")
    mixed = rlea.Links.of(pair.test.source_ids, np.random.default_rng(0).permutation(pair.test.target_ids))
    settings = rlea.AlignSettings(embedding=vectors / "v.safetensors", matcher="rlea", preset="paper")
    one, two = rlea.align(pair, settings), rlea.align(replace(pair, test=mixed), settings)
    assert one.matching.target_ids.tobytes() == two.matching.target_ids.tobytes()
    assert one.matching.confidences.tobytes() == two.matching.confidences.tobytes()


def curves_in(folder):
    """What TensorBoard's own reader finds in a run: {curve: {episode: value}}; no episode may stand there twice."""
    pytest.importorskip("tensorboard", reason="tensorboard is missing: pip install 'rlea[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(folder)).Reload()
    found = {}
    for name in reader.Tags()["scalars"]:
        points = reader.Scalars(name)
        found[name] = {point.step: point.value for point in points}
        assert len(found[name]) == len(points), name
    return found


def curves_of(history):
    names = ("aligned", "length", "reward", "accepted", "valid_aligned")
    return {name: {row["episode"]: pytest.approx(row[name]) for row in history if name in row} for name in names}


def test_tensorboard_gets_the_curves(run_cli, vectors, tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is missing: pip install 'rlea[tensorboard]'")
    arguments = ["train", vectors / "pair", "--embedding", vectors / "v.safetensors", "--tensorboard", tmp_path / "tb"]
    arguments += ["--preset", "paper"]
    for name, episodes in (("one", 4), ("two", 22)):
        done = run_cli(*arguments, "--episodes", episodes, "--output", tmp_path / f"{name}.safetensors", "--quiet")
        assert done.code == 0, done.err
    history = Agent.load(tmp_path / "two.safetensors").history
    assert set(curves_of(history)["valid_aligned"]) == {20, 22}
    assert curves_in(tmp_path / "tb" / "two") == curves_of(history)
    assert len(curves_in(tmp_path / "tb" / "one")["reward"]) == 4


@pytest.mark.parametrize("unflushed", [False, True])
def test_tensorboard_shows_a_resumed_run_once_and_whole(vectors, tmp_path, unflushed):
    """Stopped between two checkpoints, right after one, and after the last episode, when only saving was left."""
    pytest.importorskip("tensorboard", reason="tensorboard is missing: pip install 'rlea[tensorboard]'")
    from rlea.commands import train_to_file

    class StopError(Exception):
        pass

    output, board = tmp_path / "agent.safetensors", tmp_path / "tb"

    def start(stop_at):
        def progress(stage, done, total, note=""):
            if stage == "agent" and done == stop_at:
                raise StopError

        more = {"fold": None, "seed": 0, "device": "cpu", "episodes": 24, "tensorboard": board, "progress": progress}
        train_to_file(vectors / "pair", [str(vectors / "v.safetensors")], "paper", output, **more)

    (board / "agent").mkdir(parents=True)
    (board / "agent" / "events.out.tfevents.1.elsewhere").touch()
    for stop_at in (4, 14, 20, 23, 24):
        with pytest.raises(StopError):
            start(stop_at)
        assert set(curves_in(board / "agent")["reward"]) == set(range(1, stop_at + 1))
        if unflushed:  # what a run that is killed had not yet brought to the disk
            for path in (board / "agent").glob("*.rlea"):
                path.write_bytes(b"")
    start(None)
    assert curves_in(board / "agent") == curves_of(Agent.load(output).history)
    assert len(list((board / "agent").glob("*.rlea"))) == 1
    assert (board / "agent" / "events.out.tfevents.1.elsewhere").exists()


def test_without_tensorboard_the_remedy_is_named(run_cli, vectors, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    arguments = ["train", vectors / "pair", "--channels", "names"]
    output = tmp_path / "agent.safetensors"
    done = run_cli(*arguments, "--output", output, "--tensorboard", tmp_path / "tb", "--quiet")
    assert done.code == 2
    assert done.err == "Error: --tensorboard needs the package tensorboard; run pip install 'rlea[tensorboard]'.\n"
    assert list(tmp_path.iterdir()) == []
    assert run_cli(*arguments, "--output", output, "--quiet").code == 0
