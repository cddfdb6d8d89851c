"""Options in a TOML file: a run makes its own, and what is wrong in one is refused by its place."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlea
from rlea.config import config_text, read_config
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.io.writers.run_folder import RUN_CONFIG

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


def write_people(folder):
    """Three tables of the same people, and of the first a copy in which two of them stand twice."""
    first, last = ("Ada", "Alan", "Grace", "Edsger"), ("Lovelace", "Turing", "Hopper", "Dijkstra", "Liskov")
    people = [(f"{first[k % 4]} {last[k % 5]}", f"{last[k * 3 % 5]} road {k}") for k in range(20)]
    for name, shift in (("one", 0), ("two", 3), ("three", 7)):
        rows = [f"{name[0]}{(k + shift) % 20};{person};{street}" for k, (person, street) in enumerate(people)]
        (folder / f"{name}.csv").write_text("\n".join(["Nr;Kunde;Ort", *rows]) + "\n")
    twice = [f"x{k};{person};{street}" for k, (person, street) in enumerate(people[:2])]
    text = (folder / "one.csv").read_text() + "\n".join(twice) + "\n"
    (folder / "twice.csv").write_text(text)


def same_files(first, again):
    names = ("clusters.tsv", "pairs.tsv", RUN_CONFIG)
    assert [(first / name).read_text() == (again / name).read_text() for name in names] == [True] * 3
    assert len((first / "clusters.tsv").read_text().splitlines()) > 1
    return tomllib.loads((first / RUN_CONFIG).read_text())


def test_duplicates_are_found_again_with_the_options_of_the_run(run_cli, tmp_path):
    write_people(tmp_path)
    (tmp_path / "apart.tsv").write_text("o1\tx1\n")
    (tmp_path / "kinds.tsv").write_text("Ort=Lovelace road 0\tOrt=Hopper road 4\n")
    chosen = ["--id", "Nr", "--name", "Kunde", "--columns", "Kunde,Ort", "--threshold", "0.4"]
    chosen += ["--different", tmp_path / "apart.tsv", "--disjoint", tmp_path / "kinds.tsv"]
    done = run_cli("dedupe", tmp_path / "twice.csv", *chosen, "--output", tmp_path / "first", "-q")
    assert done.code == 0, done.err
    done = run_cli("dedupe", "--config", tmp_path / "first" / RUN_CONFIG, "--output", tmp_path / "again", "-q")
    assert done.code == 0, done.err
    told = same_files(tmp_path / "first", tmp_path / "again")
    assert told["disjoint"] == str(tmp_path / "kinds.tsv")
    assert (told["id"], told["name"], told["columns"], told["threshold"]) == ("Nr", "Kunde", "Kunde,Ort", 0.4)
    assert "x1" not in (tmp_path / "first" / "clusters.tsv").read_text()
    # Another graph and threshold with the same options.
    more = ["--threshold", "0.6", "--different", tmp_path / "apart.tsv", "--json"]
    done = run_cli("dedupe", tmp_path / "twice.csv", "--config", tmp_path / "first" / RUN_CONFIG, *more)
    assert json.loads(done.out)["threshold"] == 0.6


def test_several_graphs_are_aligned_again_with_the_options_of_the_run(run_cli, tmp_path):
    write_people(tmp_path)
    (tmp_path / "kinds.tsv").write_text("Ort=Lovelace road 0\tOrt=Hopper road 4\n")
    graphs = [tmp_path / f"{name}.csv" for name in ("one", "two", "three")]
    chosen = ["--matcher", "best-first", "--name", "Kunde", "--disjoint", tmp_path / "kinds.tsv", "--threshold", "0.1"]
    done = run_cli("align", *graphs, *chosen, "--output", tmp_path / "first", "-q")
    assert done.code == 0, done.err
    done = run_cli("align", "--config", tmp_path / "first" / RUN_CONFIG, "--output", tmp_path / "again", "-q")
    assert done.code == 0, done.err
    told = same_files(tmp_path / "first", tmp_path / "again")
    assert [told["source"], told["target"], *told["others"]] == [str(path) for path in graphs]
    assert (told["matcher"], told["disjoint"], told["name"]) == ("best-first", str(tmp_path / "kinds.tsv"), "Kunde")
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("first", "again")]
    assert records[0]["settings"] == records[1]["settings"]
    # The graphs of the command line take the place of all of the file.
    done = run_cli("align", *graphs[:2], "--config", tmp_path / "first" / RUN_CONFIG, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["pair"] == "one-two"


def test_clusters_of_graphs_of_python_say_so(tmp_path):
    graph = {"triples": [], "names": [(letter, f"{letter} person") for letter in "abc"]}
    rlea.dedupe(graph).write(tmp_path / "one")
    rlea.align_several([graph] * 3, matcher="mutual", embedding="names").write(tmp_path / "three")
    for folder in ("one", "three"):
        text = (tmp_path / folder / RUN_CONFIG).read_text()
        assert "made in Python" in text
        assert not {"graph", "source", "others"} & set(tomllib.loads(text))


def test_an_output_of_clusters_is_never_an_input(run_cli, tmp_path):
    write_people(tmp_path)
    graphs = [tmp_path / f"{name}.csv" for name in ("one", "two", "three")]
    (tmp_path / "clusters.tsv").write_text("of somebody else\n")
    done = run_cli("align", *graphs, "--output", tmp_path, "-q")
    assert done.code == 2
    assert "would be overwritten" in " ".join(done.err.split())
    assert (tmp_path / "clusters.tsv").read_text() == "of somebody else\n"
    done = run_cli("align", *graphs, "--format", "csv")
    assert "--format is for two graphs" in " ".join(done.err.split())


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
