"""Options in a TOML file: a run makes its own, and what is wrong in one is refused by its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlea
from rlea.config import RUN_CONFIG, config_text, read_config
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, write_synthetic

KINDS = {
    "source": Path,
    "fold": str | None,
    "matcher": str,
    "channels": str,
    "embedding": list[str] | None,
    "candidates": int,
    "precision": float,
    "gold_complete": bool,
}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    write_synthetic(folder / "pair", SyntheticSettings(80, seeds=0.3, seed=5))
    return folder / "pair"


def test_a_run_leaves_the_options_that_make_it_again(run_cli, pair, tmp_path):
    graphs = [pair / "source.nt", pair / "target.nt"]
    links = ["--seeds", pair / "seeds.tsv", "--gold", pair / "test.tsv"]
    first, again, other = (tmp_path / name for name in ("first", "again", "other"))
    chosen = ["--matcher", "best-first", "--threshold", "0.3", "--candidates", "7", "--format", "csv"]
    assert run_cli("align", *graphs, *links, *chosen, "--output", first, "-q").code == 0
    done = run_cli("align", "--config", first / RUN_CONFIG, "--output", again, "-q")
    assert done.code == 0, done.err
    for name in ("links.tsv", "links.csv", RUN_CONFIG):
        assert (again / name).read_text() == (first / name).read_text()
    records = [json.loads((folder / "run.json").read_text()) for folder in (first, again)]
    assert records[0]["settings"] == records[1]["settings"]
    # Options of the command line go before those of the file.
    done = run_cli(
        "align", "--config", first / RUN_CONFIG, "--threshold", "0", "--matcher", "mutual", "--output", other
    )
    assert done.code == 0, done.err
    settings = json.loads((other / "run.json").read_text())["settings"]
    assert (settings["matcher"], settings["threshold"], settings["candidates"]) == ("mutual", 0.0, 7)


def test_a_source_of_the_command_line_leaves_out_the_target_of_the_file(run_cli, pair, tmp_path):
    (tmp_path / "run.toml").write_text(f'source = "nowhere.nt"\ntarget = "{pair / "target.nt"}"\nmatcher = "mutual"\n')
    done = run_cli("align", pair, "--config", tmp_path / "run.toml", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["matcher"] == "mutual"


def test_paths_are_relative_to_the_file(tmp_path):
    (tmp_path / "run.toml").write_text('source = "a.nt"\nembedding = ["aligne", "v.npy", "/w.npy"]\nfold = 2\n')
    read = read_config(tmp_path / "run.toml", KINDS)
    own = tmp_path / "v.npy"
    assert read == {"source": str(tmp_path / "a.nt"), "embedding": ["aligne", str(own), "/w.npy"], "fold": "2"}


def test_lists_and_numbers_become_what_options_take(tmp_path):
    (tmp_path / "run.toml").write_text('channels = ["names", "words"]\nprecision = 1\nembedding = "aligne"\n')
    read = read_config(tmp_path / "run.toml", KINDS)
    assert read == {"channels": "names,words", "precision": 1, "embedding": ["aligne"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('matcher = "fused"\nmatchre = "x"\n', ("line 2", "'matchre'", "did you mean matcher")),
        ("\n[align]\nseed = 1\n", ("line 2", "'align'")),
        ('matcher = fused\n', ("line 1", "no TOML")),
        ('candidates = "many"\n', ("line 1", "candidates is", "whole number")),
        ("candidates = 1.5\n", ("line 1", "whole number")),
        ("candidates = true\n", ("line 1", "whole number")),
        ('precision = "high"\n', ("line 1", "a number")),
        ('gold-complete = "yes"\n', ("line 1", "true or false")),
        ("gold-complete = true\ngold_complete = true\n", ("line 2", "twice")),
        ("channels = [1]\n", ("line 1", "text")),
        ("matcher = 2026-01-01\n", ("line 1", "text")),
        ('source = ["a", "b"]\n', ("line 1", "one path")),
        ("", ("empty",)),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_its_place(tmp_path, run_cli, text, words):
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_config(path, KINDS)
    for word in ("run.toml", *words):
        assert word in str(caught.value)
    done = run_cli("align", "--config", path, "--output", tmp_path / "out")
    assert done.code == 2
    assert "run.toml" in done.err.replace("\n", "")
    assert not (tmp_path / "out").exists()


def test_what_asks_for_another_answer_is_no_option_of_a_file(tmp_path, run_cli):
    for key in ("json", "config"):
        (tmp_path / "run.toml").write_text(f"{key} = true\n")
        assert f"unknown option '{key}'" in run_cli("align", "--config", tmp_path / "run.toml").err


def test_graphs_of_python_and_of_the_demo():
    settings = rlea.AlignSettings(matcher="mutual", embedding="names")
    text = config_text(settings, {})
    assert "source" not in tomllib.loads(text)
    assert "made in Python" in text
    assert tomllib.loads(config_text(settings, {"demo": "yes"}))["source"] == str(demo_folder())


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_any_text_is_written_as_toml(text):
    written = tomllib.loads(config_text(rlea.AlignSettings(preset=text), {"source": "/" + text}))
    assert written["preset"] == text
    assert written["source"] == str(Path("/" + text))
