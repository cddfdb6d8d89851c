"""What must be reproduced on real benchmark data. Skipped where RLEA_DATA is unset; training is marked slow."""

import json

import pytest

import rlea
from rlea.deciders import DECIDERS


def folder(data_folder, name):
    return data_folder / "openea-15k-v1" / f"{name}_15K_V1"


def test_names_and_hungarian(data_folder, run_cli):
    done = run_cli("align", folder(data_folder, "D_Y"), "--embedding", "names", "--matcher", "hungarian", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["hits@1"] >= 0.99
    assert answer["pool"] == "test"
    assert answer["matched"] == 10_500 or answer["recall"] <= answer["precision"]


def test_neighbours_help_names(data_folder):
    """Structure settles what names leave open: on EN_FR best-first must beat the best assignment clearly."""
    pair = rlea.read(folder(data_folder, "EN_FR"))
    results = {
        result.settings.matcher: result.links.hits_at_1
        for result in rlea.compare(pair, ["nearest", "hungarian", "best-first"])
    }
    assert results["best-first"] > results["hungarian"] + 0.02 > results["nearest"] + 0.02
    assert results["best-first"] > 0.97
    assert results["hungarian"] >= 0.90


def test_two_files_give_the_links_of_the_folder(data_folder, run_cli, tmp_path):
    """D_W written as two N-Triples files and a TSV of seeds, and aligned from there."""
    assert run_cli("convert", folder(data_folder, "D_W"), tmp_path / "pair").code == 0
    pair = tmp_path / "pair"
    own = ["align", pair / "source.nt", pair / "target.nt", "--seeds", pair / "seeds.tsv", "--output", tmp_path / "a"]
    assert run_cli(*own, "--matcher", "best-first", "--quiet").code == 0
    again = ["align", folder(data_folder, "D_W"), "--pool", "all", "--output", tmp_path / "b", "--quiet"]
    assert run_cli(*again, "--matcher", "best-first").code == 0
    links = (tmp_path / "a" / "links.tsv").read_bytes()
    assert links == (tmp_path / "b" / "links.tsv").read_bytes()
    assert links.count(b"\n") > 5000


@pytest.mark.slow  # reading is tested by test_read_dbp15k.py
def test_dbp15k_runs_and_names_help_little(data_folder):
    pair = rlea.read(data_folder / "dbp15k" / "zh_en")
    assert (len(pair.train), len(pair.test)) == (4500, 10_500)
    result = rlea.align(pair, matcher="best-first")
    assert result.matching.is_one_to_one
    assert result.links.hits_at_1 > 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "nearest", "hungarian", "best_first"),
    [("D_W", 0.40, 0.12, 0.23), ("EN_FR", 0.35, 0.10, 0.19), ("D_Y", 0.54, 0.10, 0.16)],
)
def test_aligne_and_what_matchers_make_of_it(data_folder, run_cli, tmp_path, name, nearest, hungarian, best_first):
    file = tmp_path / "vectors.safetensors"
    done = run_cli("embed", folder(data_folder, name), "--model", "aligne", "--output", file, "--json")
    assert done.code == 0, done.err
    done = run_cli("bench", folder(data_folder, name), "--embedding", file, "--matchers", "all", "--json")
    rows = {row["matcher"]: row for row in json.loads(done.out)["rows"]}
    assert rows["nearest"]["hits@1"] >= nearest
    assert rows["hungarian"]["hits@1"] >= rows["nearest"]["hits@1"] + hungarian
    assert rows["best-first"]["hits@1"] >= rows["nearest"]["hits@1"] + best_first
    for matcher, row in rows.items():
        assert row["one_to_one"] or not DECIDERS[matcher].one_to_one
