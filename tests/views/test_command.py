"""`rlea report`: the page made again from the folder of a run, and what folders it refuses."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import pytest

from rlea.evaluation.gold_ranks import GoldRanks
from rlea.views.report.schema import TITLE as SCHEMA_TITLE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on files of its own, with gold links, as `rlea align --keep worthwhile` leaves it."""
    import contextlib
    import sys

    from rlea import cli
    from rlea.io.synthetic import SyntheticSettings, write_synthetic

    place = tmp_path_factory.mktemp("report")
    write_synthetic(place / "pair", SyntheticSettings(num_entities=120, name_noise=0.5, seed=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        arguments = ["align", "pair", "--matcher", "mutual", "--keep", "worthwhile", "--output", "out", "--json"]
        patch.setattr(sys, "argv", ["rlea", *arguments])
        with contextlib.suppress(SystemExit):
            cli.main()
    return place


@pytest.fixture
def run(folder, tmp_path):
    """A copy of it, to be spoilt: its record lists no files, as those of earlier versions did."""
    shutil.copytree(folder, tmp_path / "copy")
    out = tmp_path / "copy" / "out"
    record = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**record, "files": {}}))
    return out


def test_the_page_is_made_again_to_the_byte(run, run_cli, tmp_path):
    before = (run / "report.html").read_bytes()
    done = run_cli("report", run, "--output", tmp_path / "new" / "page.html", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out) == {"written": str(tmp_path / "new" / "page.html")}
    assert (tmp_path / "new" / "page.html").read_bytes() == before
    (run / "report.html").unlink()
    assert run_cli("report", run).code == 0
    assert (run / "report.html").read_bytes() == before


@pytest.mark.parametrize("matcher", ["paris", "fused"])
def test_the_page_of_a_run_without_vectors_is_made_again_to_the_byte(folder, run_cli, tmp_path, monkeypatch, matcher):
    """With what corresponds in the schemas; the run can be asked for reasons as well."""
    shutil.copytree(folder / "pair", tmp_path / "pair")
    monkeypatch.chdir(tmp_path)
    done = run_cli("align", "pair", "--matcher", matcher, "--output", "out", "--json")
    assert (done.code, done.err) == (0, "")
    out = tmp_path / "out"
    assert json.loads(done.out)["matcher"] == matcher
    assert (out / "decisions.safetensors").exists() == (matcher == "fused")
    relations = [line.split("\t") for line in (out / "relations.tsv").read_text().splitlines()[1:]]
    assert relations
    page = (out / "report.html").read_text()
    assert SCHEMA_TITLE in page
    assert ("What each channel contributed" in page) == (matcher == "fused")
    assert f"Aligned with matcher {matcher}, pool test, seed 0." in page
    assert "gold links among the candidates" in page
    assert run_cli("report", out, "--output", "page.html").code == 0
    assert (tmp_path / "page.html").read_bytes() == (out / "report.html").read_bytes()
    source = (out / "links.tsv").read_text().splitlines()[1].split("\t")[0]
    answer = json.loads(run_cli("explain", out, source, "--json").out)
    assert (answer["outcome"], answer["matcher"], answer["embedding"]) == ("matched", matcher, "")
    assert (answer["num_steps"] is not None) == (answer["link"]["step"] is not None) == (matcher == "fused")


def test_the_classes_of_a_real_run_add_up(run):
    text = (run / "report.html").read_text()
    result = json.loads((run / "run.json").read_text())["result"]
    assert result["doubtful"] > 0
    assert f" Left out by --keep worthwhile: {result['doubtful']} doubtful links." in text
    *counts, total = (int(n.replace(",", "")) for n in re.findall(
        r'<td class="num">([\d,]+)</td>', re.search(r'<table class="errors">.*?</table>', text, flags=re.S).group()
    ))  # fmt: skip
    assert len(counts) == 4
    assert sum(counts) == total
    assert counts[0] == result["correct"]
    assert counts[0] < total


def test_a_run_without_its_ranks_has_a_page(run, run_cli):
    none = np.zeros(1, np.int32)
    GoldRanks(none, none, none, none).put(run / "gold_ranks.safetensors")
    assert run_cli("report", run).code == 0
    assert "gold_ranks.safetensors belongs to other gold links" in (run / "report.html").read_text()
    (run / "gold_ranks.safetensors").unlink()
    assert run_cli("report", run).code == 0
    assert "does not keep which gold links were candidates" in (run / "report.html").read_text()


def blank_confidence(run):
    head, first, *rows = (run / "links.tsv").read_text().splitlines()
    source, target, _, *labels = first.split("\t")
    (run / "links.tsv").write_text("\n".join([head, "\t".join([source, target, "", *labels]), *rows]) + "\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (shutil.rmtree, "out: there is no such folder; give the folder that `rlea align --output` wrote."),
        (lambda run: (run / "links.tsv").unlink(), "out: is without links.tsv, so it is not the folder of a run"),
        (lambda run: (shutil.rmtree(run), run.write_text("")), "out: is a file, not the folder of a run; give the"),
        (lambda run: (run / "run.json").write_text('{"result": '), "run.json: cannot be read as the record of a run"),
        (lambda run: (run / "run.json").write_text('{"result": []}'), "run.json: is not the record of an alignment"),
        (blank_confidence, "links.tsv"),
        (
            lambda run: (run / "gold_ranks.safetensors").write_bytes(b"\0" * 40),
            "gold_ranks.safetensors: cannot be read",
        ),
    ],
)
def test_bad_folders_end_in_one_sentence_and_leave_nothing(run, run_cli, tmp_path, spoil, words):
    spoil(run)
    done = run_cli("report", run, "--output", tmp_path / "new" / "page.html")
    assert done.code == 2
    assert words in " ".join(done.err.split())
    assert done.err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_file_that_is_not_that_of_the_record_is_seen(folder, run_cli, tmp_path):
    """As where a run was killed after its links and before its record."""
    shutil.copytree(folder, tmp_path / "copy")
    run = tmp_path / "copy" / "out"
    assert run_cli("report", run).code == 0
    links = (run / "links.tsv").read_text()
    (run / "links.tsv").write_text(links.rpartition("\n")[0].rpartition("\n")[0] + "\n")
    for command in (["report", run], ["explain", run, "e1"], ["merge", run]):
        done = run_cli(*command)
        assert done.code == 2
        assert "links.tsv: is not the file that run.json lists" in " ".join(done.err.split())


def test_a_mistyped_folder_is_helped(run, run_cli):
    done = run_cli("report", run.with_name("oud"))
    assert done.code == 2
    assert done.err == f"Error: {run.with_name('oud')}: there is no such folder; did you mean {run}.\n"
    done = run_cli("report", run / "report.html")
    assert done.code == 2
    assert f"is a file, not the folder of a run; give the folder that contains it, {run}." in done.err


def test_a_page_in_place_of_a_folder_is_refused(run, run_cli):
    done = run_cli("report", run, "--output", run)
    assert done.code == 2
    assert "is a folder where a file is to be written" in " ".join(done.err.split())
