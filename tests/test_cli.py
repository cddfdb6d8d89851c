"""The command line as people and machines use it, on the pair that comes with the package."""

import json
import re

import pytest

from rlea.demo import demo_folder
from rlea.io.readers import read_pair
from rlea.pipeline import CHANNELS

ALIGN_KEYS = {
    "pair", "fold", "embedding", "matcher", "pool", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "seed",
}  # fmt: skip
BENCH_KEYS = {"matcher", "hits@1", "precision", "recall", "f1", "seconds", "peak_memory_mb"}
OUTPUTS = {"links.tsv", "links.sssom.tsv", "links.nt", "links.rdf", "run.json", "report.html", "gold_ranks.safetensors"}
EVIDENCE_OUTPUTS = {"decisions.safetensors", "relations.tsv", "attributes.tsv"}  # of the demo, which has no classes


def test_demo_finds_links_and_leaves_everything(run_cli, tmp_path):
    done = run_cli("demo", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    rows = {row["matcher"]: row for row in json.loads(done.out)["rows"]}
    assert rows["best-first"]["f1"] > rows["hungarian"]["f1"] > rows["nearest"]["f1"]
    assert rows["fused"]["f1"] > rows["best-first"]["f1"] > 0.75
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*OUTPUTS, *EVIDENCE_OUTPUTS, "bench.json"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "http" not in page.split("</style>")[0]
    pair = read_pair(demo_folder())
    links = [line.split("\t") for line in (tmp_path / "out" / "links.tsv").read_text().splitlines()[1:]]
    assert sum(source in page and target in page for source, target, _ in links) >= 30
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["result"]["matcher"], record["result"]["embedding"]) == ("fused", "")
    assert [row["channel"] for row in record["result"]["channels"]] == list(CHANNELS)
    assert record["result"]["began"] == rows["fused"]["began"] != ""
    assert "What each channel contributed" in page
    assert record["fingerprint"] == pair.fingerprint
    assert {"command", "commit", "versions", "machine", "result", "time"} <= set(record)


def test_demo_prints_a_table(run_cli, tmp_path):
    done = run_cli("demo", "--output", tmp_path / "out")
    assert done.code == 0
    assert "best-first" in done.out
    assert "fused" in done.out
    assert "What each channel contributed" in done.out
    assert "report.html" in done.out.replace("\n", "")


def test_align_json_is_one_object_with_the_promised_keys(run_cli):
    done = run_cli("align", demo_folder(), "--matcher", "mutual", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert set(answer) >= ALIGN_KEYS
    assert set(answer["seconds"]) >= {"read", "embed", "candidates", "match"}
    assert answer["pool"] == "test"
    assert 0 < answer["hits@1"] <= 1
    assert done.err == ""


def test_bench_json_has_a_row_for_every_matcher(run_cli, tmp_path):
    from rlea.matchers import MATCHERS

    kept = tmp_path / "bench.json"
    done = run_cli("bench", demo_folder(), "--embedding", "names", "--matchers", "all", "--json", "--output", kept)
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert [row["matcher"] for row in rows] == [name for name, matcher in MATCHERS.items() if not matcher.trained]
    for row in rows:
        assert set(row) >= BENCH_KEYS
        assert row["one_to_one"] or not MATCHERS[row["matcher"]].one_to_one
        assert row["seconds"] >= 0
        assert row["peak_memory_mb"] > 10
    record = json.loads(kept.read_text())
    assert record["rows"] == rows
    assert record["fingerprint"]
    assert record["command"].startswith("rlea ")


def test_bench_prints_a_table_of_the_chosen_matchers(run_cli):
    done = run_cli("bench", demo_folder(), "--matchers", "nearest, mutual", "--quiet")
    assert done.code == 0
    assert "mutual" in done.out
    assert "hungarian" not in done.out


def test_bench_compares_matchers_with_and_without_vectors(run_cli, tmp_path):
    run_cli("synthesize", tmp_path / "pair", "--entities", 120, "--json")
    done = run_cli("bench", tmp_path / "pair", "--matchers", "nearest,paris,fused", "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert [row["matcher"] for row in told["rows"]] == ["nearest", "paris", "fused"]
    assert [row["one_to_one"] for row in told["rows"]][1:] == [True, True]
    assert all(row["matched"] > 0 for row in told["rows"])
    assert told["embedding"] == "names"
    shown = run_cli("bench", tmp_path / "pair", "--matchers", "paris", "--quiet")
    assert shown.code == 0, shown.err
    assert "pool test (per cent)" in shown.out
    assert "candidates" not in shown.out


def test_own_graphs_give_the_links_of_the_folder(run_cli, tmp_path):
    """convert -> two files and seeds -> the same links as the folder with --pool all."""
    done = run_cli("convert", demo_folder(), tmp_path / "pair", "--to", "nt")
    assert done.code == 0, done.err
    pair = tmp_path / "pair"
    own = ["align", pair / "source.nt", pair / "target.nt", "--seeds", pair / "seeds.tsv", "--output", tmp_path / "own"]
    assert run_cli(*own, "--quiet").code == 0
    assert run_cli("align", demo_folder(), "--pool", "all", "--output", tmp_path / "folder", "--quiet").code == 0
    for name in ("links.tsv", "links.nt", "links.rdf"):
        assert (tmp_path / "own" / name).read_bytes() == (tmp_path / "folder" / name).read_bytes()


def test_no_seeds_is_said_and_works(run_cli, tmp_path):
    folder = demo_folder()
    done = run_cli("align", folder / "source.nt.gz", folder / "target.nt.gz", "--gold", folder / "test.tsv", "--json")
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert answer["matcher"] == "fused"
    assert answer["f1"] > 0.75
    assert answer["began"].startswith("there are no seeds: it began with")
    assert answer["notes"] == ["there are no seeds: matching starts from what the two graphs have in common"]
    said = run_cli("align", folder / "source.nt.gz", folder / "target.nt.gz", "--matcher", "mutual")
    assert "no seeds" in said.err.replace("\n", " ")
    assert "--output" in said.out


def test_evaluate_agrees_with_align(run_cli, tmp_path):
    answer = json.loads(run_cli("align", demo_folder(), "--embedding", "names", "--output", tmp_path, "--json").out)
    for name in ("links.tsv", "links.sssom.tsv", "links.nt", "links.rdf"):
        done = run_cli("evaluate", tmp_path / name, demo_folder() / "test.tsv", "--json")
        assert done.code == 0, done.err
        scores = json.loads(done.out)
        assert scores["precision"] == pytest.approx(answer["precision"])
        assert scores["f1"] == pytest.approx(answer["f1"])
    assert "precision" in run_cli("evaluate", tmp_path / "links.tsv", demo_folder() / "test.tsv").out


def test_convert_links_and_graphs(run_cli, tmp_path):
    run_cli("align", demo_folder(), "--embedding", "names", "--output", tmp_path / "out", "--json")
    chain = ["links.tsv", "a.sssom.tsv", "b.rdf", "c.tsv"]
    place = tmp_path / "out" / chain[0]
    for name in chain[1:]:
        done = run_cli("convert", place, tmp_path / name)
        assert done.code == 0, done.err
        place = tmp_path / name
    assert place.read_bytes() == (tmp_path / "out" / "links.tsv").read_bytes()
    done = run_cli("convert", demo_folder() / "source.nt.gz", tmp_path / "source.ttl", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["written"].endswith("source.ttl")


def test_candidates_and_seed_options_reach_the_work(run_cli):
    few = json.loads(run_cli("align", demo_folder(), "--candidates", 1, "--matcher", "greedy", "--json").out)
    many = json.loads(run_cli("align", demo_folder(), "--candidates", 50, "--matcher", "greedy", "--json").out)
    assert few["coverage"] < many["coverage"]
    runs = [
        json.loads(run_cli("align", demo_folder(), "--matcher", "seq", "--seed", seed, "--json").out)
        for seed in (1, 1, 2)
    ]
    strip = [{key: value for key, value in run.items() if key not in ("seconds", "peak_memory_mb")} for run in runs]
    assert strip[0] == strip[1]
    assert strip[0]["matched"] != strip[2]["matched"] or strip[0]["f1"] != strip[2]["f1"]


def test_embed_writes_vectors_that_align_can_use(run_cli, tmp_path, monkeypatch):
    done = run_cli("synthesize", tmp_path / "pair", "--entities", 200, "--triples", 6, "--json")
    assert done.code == 0, done.err
    file = tmp_path / "vectors.safetensors"
    done = run_cli("embed", tmp_path / "pair", "--model", "aligne", "--output", file, "--json")
    assert done.code == 0, done.err
    summary = json.loads(done.out)
    assert summary["model"] == "aligne"
    assert [path.name for path in tmp_path.iterdir() if "checkpoint" in path.name] == []
    done = run_cli("align", tmp_path / "pair", "--embedding", file, "--matcher", "nearest", "--json")
    assert json.loads(done.out)["hits@1"] == pytest.approx(summary["hits@1"], abs=0.01)
    record = json.loads((tmp_path / "vectors.json").read_text())
    assert record["result"] == summary
    assert record["fingerprint"] == read_pair(tmp_path / "pair").fingerprint
    short = run_cli("embed", tmp_path / "pair", "--epochs", 3, "--output", tmp_path / "short.safetensors", "--json")
    assert json.loads(short.out)["training"]["epochs"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["align", "nowhere"], ["nowhere", "no such folder"]),
        (["align", "{demo}", "--matcher", "hungarain"], ["hungarain", "did you mean hungarian"]),
        (["align", "{demo}", "--embedding", "nmaes"], ["nmaes", "did you mean names"]),
        (["align", "{demo}", "--pool", "some"], ["some", "test or all"]),
        (["align", "{demo}", "--candidates", "0"], ["--candidates", "at least 1"]),
        (["align", "{demo}", "--search", "quick"], ["'quick'", "auto, exact or approximate"]),
        (["bench", "{demo}", "--search", "aproximate"], ["'aproximate'", "exact or approximate"]),
        (["align", "{demo}", "--fold", "2"], ["fold"]),
        (["align", "{demo}", "--seeds", "x.tsv"], ["two graphs"]),
        (["align", "{demo}/source.nt.gz", "{demo}/target.nt.gz", "--fold", "1"], ["--fold"]),
        (["align", "{demo}/source.nt.gz", "{demo}/target.nt.gz", "--pool", "test"], ["--pool all"]),
        (["align", "{demo}/source.nt.gz", "{demo}/target.nt.gz", "--embedding", "aligne"], ["--seeds"]),
        (["bench", "{demo}", "--matchers", ","], ["--matchers"]),
        (["bench", "{demo}", "--matchers", "nearest,best"], ["'best'"]),
        (["embed", "{demo}", "--model", "alignee"], ["did you mean aligne"]),
        (["embed", "{demo}", "--model", "names"], ["--embedding names"]),
        (["embed", "{demo}", "--model", "aligne", "--output", "x.npy"], [".safetensors"]),
        (["embed", "{demo}", "--model", "aligne", "--device", "gpu"], ["gpu", "cpu"]),
        (["embed", "{demo}", "--model", "aligne", "--epochs", "0"], ["epochs"]),
        (["convert", "{demo}", "{tmp}/x", "--to", "docx"], ["docx", "nt"]),
        (["convert", "{demo}/source.nt.gz", "{tmp}/x.docx"], ["x.docx"]),
        (["convert", "{demo}/source.nt.gz", "{tmp}/x.nt", "--fold", "1"], ["--fold"]),
        (["evaluate", "{demo}/test.tsv", "nowhere.tsv"], ["nowhere.tsv"]),
        (["synthesize", "{tmp}/x", "--entities", "0"], ["entities"]),
        (["synthesize", "{demo}"], ["not empty"]),
    ],
)  # fmt: skip
def test_mistakes_end_in_one_sentence(run_cli, tmp_path, arguments, words):
    folder = str(demo_folder())
    filled = [part.replace("{demo}", folder).replace("{tmp}", str(tmp_path)) for part in arguments]
    done = run_cli(*filled, *(["--output", tmp_path / "out"] if arguments[0] == "align" else []))
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert done.err.startswith("Error: ")
    assert done.err.rstrip().endswith(".")
    assert len(done.err.strip().splitlines()) == 1
    for word in words:
        assert word in done.err
    assert list(tmp_path.iterdir()) == []


def test_interrupt_is_quiet(run_cli, tmp_path, monkeypatch):
    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("rlea.pipeline.align", stop)
    done = run_cli("align", demo_folder(), "--output", tmp_path / "out")
    assert done.code == 130
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_matchers_lists_them(run_cli):
    assert "best-first" in run_cli("matchers").out
    assert json.loads(run_cli("matchers", "--json").out)["nearest"]["one_to_one"] is False


def test_version(run_cli):
    assert run_cli("--version").out.startswith("rlea 0.")


def test_help_of_every_command_has_an_example(run_cli):
    for command in ("demo", "align", "bench", "embed", "evaluate", "convert", "synthesize"):
        done = run_cli(command, "--help")
        assert done.code == 0
        assert "Example" in done.out


def test_progress_in_a_log_is_a_line_now_and_then(capsys, monkeypatch):
    from rlea.views import terminal as screen

    monkeypatch.setattr(screen, "err", screen.Console(stderr=True))
    report = screen.progress_lines(every=0.0)
    report("aligne", 250, 1000, "loss 0.7")
    assert re.search(r"aligne: 25 % after \d+ s  loss 0\.7", capsys.readouterr().err)
    seldom = screen.progress_lines(every=60.0)
    seldom("aligne", 1, 2)
    assert capsys.readouterr().err == ""


def test_progress_bars_on_a_terminal(monkeypatch):
    import io

    from rlea.views import terminal as screen

    printed = io.StringIO()
    monkeypatch.setattr(screen, "err", screen.Console(file=printed, force_terminal=True, width=100))
    with screen.progress_bars(quiet=False) as report:
        report("candidates", 1, 4, "words")
        report("candidates", 2, 4, "words")
    assert "candidates" in printed.getvalue()
    assert "50 %" in printed.getvalue()
    with screen.progress_bars(quiet=True) as report:
        report("match", 1, 4)
    assert "match" not in printed.getvalue()
