"""The command line as people and machines use it, on the pair that comes with the package."""

import itertools
import json
import re
import subprocess
import sys

import pytest

import rlea
from rlea.deciders import DECIDERS
from rlea.demo import demo_folder
from rlea.evidence import CHANNELS
from rlea.io.readers import read_pair
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.io.writers import ALWAYS, LINK_FILES

ALIGN_KEYS = {
    "pair", "fold", "embedding", "matcher", "pool", "hits@1", "precision", "recall", "f1", "matched", "seconds",
    "peak_memory_mb", "seed",
}  # fmt: skip
BENCH_KEYS = {"matcher", "hits@1", "precision", "recall", "f1", "seconds", "peak_memory_mb"}
OUTPUTS = {*(LINK_FILES[name] for name in ALWAYS), "run.json", "run.toml", "report.html", "gold_ranks.safetensors"}
# Of the demo, which has no classes.
EVIDENCE_OUTPUTS = {
    *("decisions.safetensors", "agent.safetensors", "relations.tsv", "attributes.tsv", "schema.sssom.tsv"),
    "doubtful.tsv",
}


def test_demo_finds_links_and_leaves_everything(run_cli, tmp_path):
    done = run_cli("demo", "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    rows = {row["matcher"]: row for row in json.loads(done.out)["rows"]}
    assert rows["best-first"]["f1"] > rows["hungarian"]["f1"] > rows["nearest"]["f1"]
    assert rows["fused"]["f1"] == pytest.approx(0.9535, abs=0.0015)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*OUTPUTS, *EVIDENCE_OUTPUTS, "bench.json"}
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<script" not in page
    assert "http" not in page.split("</style>")[0]
    links = [line.split("\t") for line in (tmp_path / "out" / "links.tsv").read_text().splitlines()[1:]]
    assert sum(source in page and target in page for source, target, *_ in links) >= 30
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (record["result"]["matcher"], record["result"]["embedding"]) == ("fused", "")
    assert [row["channel"] for row in record["result"]["channels"]] == list(CHANNELS)
    assert record["result"]["started"] == rows["fused"]["started"] != ""
    assert "What each channel contributed" in page
    assert (record["inputs"], record["fingerprint"]) == ({"demo": "yes"}, read_pair(demo_folder()).fingerprint)
    assert {"command", "commit", "versions", "machine", "result", "settings", "time"} <= set(record)
    assert (record["settings"]["matcher"], record["settings"]["pool"]) == ("fused", "all")
    # The run is explained, and its page made again, from the folder.
    assert run_cli("explain", tmp_path / "out", links[0][0]).code == 0
    assert run_cli("report", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "report.html").read_text() == page


def test_demo_prints_a_table(run_cli, tmp_path, monkeypatch):
    from rlea import pipeline

    few = pipeline.compare
    monkeypatch.setattr("rlea.cli.align.CLASSIC", ("nearest",))
    monkeypatch.setattr(pipeline, "compare", lambda *given, **more: few(*given, channels=("names",), **more))
    done = run_cli("demo", "--output", tmp_path / "out")
    assert done.code == 0
    for words in ("nearest", "fused", "What each channel contributed", "Started from 128 seeds"):
        assert words in done.out
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


def test_bench_json_has_a_row_for_every_matcher(run_cli, flow, tmp_path):
    kept = tmp_path / "bench.json"
    done = run_cli("bench", flow / "pair", "--json", "--output", kept)
    assert done.code == 0, done.err
    rows = json.loads(done.out)["rows"]
    assert [row["matcher"] for row in rows] == [name for name, one in DECIDERS.items() if not one.is_trained]
    for row in rows:
        assert set(row) >= BENCH_KEYS
        assert row["one_to_one"] or not DECIDERS[row["matcher"]].one_to_one
        assert row["seconds"] >= 0
        assert row["peak_memory_mb"] > 10
    record = json.loads(kept.read_text())
    assert record["rows"] == rows
    assert record["fingerprint"]
    assert record["command"].startswith("rlea ")


def test_bench_compares_matchers_with_and_without_vectors(run_cli, flow):
    vectors = ["--embedding", flow / "vectors.safetensors"]
    done = run_cli("bench", flow / "pair", "--matchers", "nearest, paris,rlea,fused", *vectors, "--json")
    assert (done.code, done.err) == (0, "")
    told = json.loads(done.out)
    assert [row["matcher"] for row in told["rows"]] == ["nearest", "paris", "rlea", "fused"]
    assert [row["train_seconds"] > 0 for row in told["rows"]] == [False, False, True, True]
    assert all(row["matched"] > 0 for row in told["rows"])
    assert told["embedding"] == str(vectors[1])
    shown = run_cli("bench", flow / "pair", "--matchers", "paris", "--quiet")
    assert shown.code == 0, shown.err
    assert "pool test (per cent)" in shown.out
    assert "candidates" not in shown.out
    assert "hungarian" not in shown.out


def test_own_graphs_give_the_links_of_the_folder(run_cli, flow, tmp_path):
    """convert -> two files and seeds -> the same links as the folder with --pool all."""
    pair, few = tmp_path / "pair", ["--channels", "names", "--quiet", "--output"]
    assert run_cli("convert", flow / "pair", pair, "--to", "ttl").code == 0
    own = ["align", pair / "source.ttl", pair / "target.ttl", "--seeds", pair / "seeds.tsv"]
    assert run_cli(*own, *few, tmp_path / "own").code == 0
    assert run_cli("align", flow / "pair", "--pool", "all", *few, tmp_path / "folder").code == 0
    for name in ("links.tsv", "links.nt", "links.rdf"):
        assert (tmp_path / "own" / name).read_bytes() == (tmp_path / "folder" / name).read_bytes()


def test_no_seeds_is_said_and_works(run_cli, flow):
    graphs = ["align", flow / "pair" / "source.nt", flow / "pair" / "target.nt"]
    done = run_cli(*graphs, "--gold", flow / "pair" / "test.tsv", "--json")
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert answer["matcher"] == "fused"
    assert answer["f1"] > 0.75
    assert answer["started"].startswith("No seeds: started from ")
    assert answer["notes"][0] == "there are no seeds: matching starts from what the two graphs have in common"
    said = run_cli(*graphs, "--matcher", "mutual")
    assert "no seeds" in said.err.replace("\n", " ")
    assert "--output" in said.out


def test_gold_may_be_complete(run_cli, tmp_path):
    """The same links, judged twice: links between entities that gold does not know are open, or wrong."""
    demo, out = demo_folder(), tmp_path / "out"
    common = ["align", demo, "--matcher", "mutual", "--pool", "all", "--json"]
    open_, strict = (json.loads(run_cli(*common, *more).out) for more in ([], ["--gold-complete", "--output", out]))
    assert (open_["matched"], open_["correct"]) == (strict["matched"], strict["correct"])
    assert open_["judged"] < strict["judged"] < strict["matched"]  # those of validation entities are not judged
    assert open_["precision"] > open_["precision_of_all"] == strict["precision"] == strict["precision_of_all"]
    assert any("add --gold-complete" in note for note in open_["notes"])
    assert not any("--gold-complete" in note for note in strict["notes"])
    known = tmp_path / "gold.tsv"
    pair = read_pair(demo)
    ends = zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True)
    known.write_text("".join(f"{pair.source.entities[s]}\t{pair.target.entities[t]}\n" for s, t in ends))
    told = json.loads(run_cli("evaluate", out / "links.tsv", known, "--gold-complete", "--json").out)
    assert (told["judged"], told["gold_complete"]) == (strict["matched"], True)  # a file has no validation links
    assert told["precision"] == told["correct"] / told["matched"] == strict["correct"] / strict["matched"]
    assert f"({strict['judged'] - strict['correct']:,} in total)" in (out / "report.html").read_text()
    rows = json.loads(run_cli("bench", demo, "--matchers", "mutual", "--pool", "all", "--gold-complete", "--json").out)
    assert rows["rows"][0]["precision"] == strict["precision"]


def test_validation_links_are_no_matter_of_complete_gold(run_cli, tmp_path):
    """Entities of validation links have a counterpart that gold does not name: their links are not wrong for that."""
    write_synthetic(tmp_path / "pair", SyntheticSettings(300, seeds=0.1, valid=0.3, seed=2))
    common = ["align", tmp_path / "pair", "--matcher", "mutual", "--pool", "all", "--json"]
    open_, strict = (json.loads(run_cli(*common, *more).out) for more in ([], ["--gold-complete"]))
    pair = read_pair(tmp_path / "pair")
    result = rlea.align(pair, matcher="mutual", pool="all", gold_complete=True)
    known = set(zip(pair.valid.source_ids.tolist(), pair.valid.target_ids.tolist(), strict=True))
    found = set(zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True))
    assert len(known & found) > 20
    assert strict["judged"] <= strict["matched"] - len(known & found)
    assert strict["precision"] == pytest.approx(open_["precision"], abs=0.1)


def test_complete_gold_needs_gold(run_cli, tmp_path):
    for name in ("a.tsv", "b.tsv"):
        (tmp_path / name).write_text("x\tnear\ty\n")
    done = run_cli("align", tmp_path / "a.tsv", tmp_path / "b.tsv", "--gold-complete")
    assert done.code == 2
    assert "add --gold" in done.err


def test_evaluate_agrees_with_align_in_every_format(run_cli, flow, tmp_path):
    every = ["--format", ",".join(LINK_FILES)]
    done = run_cli("align", flow / "pair", "--matcher", "mutual", "--output", tmp_path, *every, "--json")
    answer = json.loads(done.out)
    for name in LINK_FILES.values():
        done = run_cli("evaluate", tmp_path / name, flow / "pair" / "test.tsv", "--json")
        assert done.code == 0, done.err
        scores = json.loads(done.out)
        assert scores["precision"] == pytest.approx(answer["precision"])
        assert scores["f1"] == pytest.approx(answer["f1"])
    assert "precision" in run_cli("evaluate", tmp_path / "links.tsv", flow / "pair" / "test.tsv").out
    chain = ["links.tsv", "a.sssom.tsv", "b.csv", "c.jsonl", "d.parquet", "labels.tsv"]
    for one, other in itertools.pairwise(chain):
        assert run_cli("convert", tmp_path / one, tmp_path / other).code == 0
    assert (tmp_path / "labels.tsv").read_bytes() == (tmp_path / "links.tsv").read_bytes()
    chain = ["links.tsv", "a.sssom.tsv", "b.rdf", "c.tsv"]
    for one, other in itertools.pairwise(chain):
        done = run_cli("convert", tmp_path / one, tmp_path / other)
        assert done.code == 0, done.err
    lines = [line.split("\t") for line in (tmp_path / "links.tsv").read_text().splitlines()]
    # RDF has no place for labels.
    assert (tmp_path / "c.tsv").read_text() == "".join("\t".join(line[:3]) + "\n" for line in lines)
    assert {len(line) for line in lines} == {5}
    done = run_cli("convert", flow / "pair" / "source.nt", tmp_path / "source.ttl", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["written"].endswith("source.ttl")


# ---- every option does something ------------------------------------------------------------------------------------


def align(run_cli, flow, *arguments):
    """The summary of a run, without what differs from run to run."""
    done = run_cli("align", flow / "pair", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return {key: value for key, value in json.loads(done.out).items() if key not in ("seconds", "peak_memory_mb")}


def test_options_of_matchers_over_candidates(run_cli, flow):
    demo = ["align", demo_folder(), "--matcher", "greedy", "--json", "--candidates"]
    few, many = (json.loads(run_cli(*demo, k).out)["coverage"] for k in (1, 50))
    assert few < many
    assert align(run_cli, flow, "--matcher", "seq", "--seed", 1) == align(
        run_cli, flow, "--matcher", "seq", "--seed", 1
    )
    seeds = [align(run_cli, flow, "--matcher", "seq", "--seed", seed, "--pool", "all") for seed in range(4)]
    assert len({(run["matched"], run["f1"]) for run in seeds}) > 1
    assert {run["pool"] for run in seeds} == {"all"}
    done = run_cli("align", flow / "pair", "--matcher", "nearest", "--search", "approximate", "--quiet")
    assert done.code == 0, done.err
    assert "index of names" in done.out or "an index would not have been faster" in done.out


def test_several_embeddings_are_evidence(run_cli, flow):
    file = flow / "vectors.safetensors"
    told = align(run_cli, flow, "--channels", "structure", "--embedding", "names", "--embedding", file)
    assert (told["matcher"], told["embedding"]) == ("fused", f"names, {file}")
    assert [row["channel"] for row in told["channels"]] == ["structure", "vectors"]
    assert told["f1"] > 0.9
    done = run_cli("align", flow / "pair", "--matcher", "rlea", "--embedding", "names", "--embedding", file, "--quiet")
    assert done.code == 0, done.err
    assert f"names + {file} + rlea on pair"[:30] in done.out.replace("\n", "")
    assert "vectors" in done.out


def test_seeds_valid_and_gold_of_ones_own(run_cli, flow):
    pair, seeds = flow / "pair", ["--seeds", flow / "pair" / "seeds.tsv"]
    own = ["align", pair / "source.nt", pair / "target.nt", "--channels", "structure", "--json", "--quiet"]
    vectors = ["--embedding", flow / "vectors.safetensors"]
    done = run_cli(*own, *seeds, *vectors, "--valid", pair / "valid.tsv", "--gold", pair / "test.tsv")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["pool"], told["started"]) == ("all", "Started from 45 seeds alone: no channels agree on a pair")
    assert told["f1"] > 0.5
    assert json.loads(run_cli(*own, *seeds, *vectors).out)["f1"] is None


def test_embed_writes_vectors_that_align_can_use(run_cli, tmp_path):
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


MISTAKES = {
    "align nowhere": "no such folder",
    "align {pair} --matcher hungarain": "did you mean hungarian",
    "align {pair} --embedding nmaes": "'nmaes' is neither an embedding nor a file; did you mean names",
    "align {pair} --embedding gone.npy": "'gone.npy' is neither an embedding nor a file",
    "align {pair} --embedding {pair}/test.tsv": "test.tsv",
    "align {pair} --pool some": "unknown pool 'some'; use test or all",
    "align {pair} --matcher nearest --candidates 0": "--candidates is 0; give a number of at least 1",
    "align {pair} --candidates 3": "--candidates is for matchers over candidates, and fused has none",
    "align {pair} --matcher rlea --search exact": "--search is for matchers over candidates, and rlea has none",
    "align {pair} --search quick": "unknown search 'quick'; use one of auto, exact, approximate",
    "align {pair} --seed -1": "--seed is -1",
    "align {pair} --device gpu": "unknown device 'gpu'; use auto, cpu or cuda",
    "align {pair} --hide nmaes": "'nmaes' cannot be hidden; use names or attributes",
    "align {pair} --fold 2": "fold",
    "align {pair} --seeds x.tsv": "two graphs",
    "align {source} {target} --fold 1": "--fold is for benchmark folders",
    "align {source} {target} --pool test": "--pool all",
    "align {source} {target} --embedding aligne": "--seeds",
    "align {source} {target} --seeds gone.tsv": "gone.tsv",
    "align {source} {target} --hide names,attributes": "nothing to begin with",
    "align {pair} --channels nmaes": "unknown channel 'nmaes'; did you mean names",
    "align {pair} --matcher fused --channels names,zzz": "unknown channel 'zzz'; use one of structure, names, words",
    "align {pair} --matcher best-first --channels names": "--channels is for the agent, which is not asked for",
    "align {pair} --matcher paris --channels names": "--channels is for the agent",
    "align {pair} --matcher paris --embedding names": "paris takes no vectors",
    "align {pair} --matcher csls --embedding names --embedding aligne": "csls takes one embedding",
    "align {pair} --matcher best-first --encoder {tmp}": "--encoder is for the agent",
    "align {pair} --encoder {tmp}/gone": "is no folder of a sentence encoder",
    "align {pair} --encoder {tmp} --channels structure,paris": "--encoder compares names, which --channels leaves out",
    "align {pair} --encoder {tmp} --matcher rlea": "--encoder compares names, which rlea does not use",
    "align {pair} --encoder {tmp} --hide names": "--encoder compares names, which --hide hides",
    "align {pair} --precision 1.5": "--precision is 1.5; give a number from 0 to 1",
    "align {pair} --keep worthwhile --precision 0.9": "--precision and --keep both",
    "align {pair} --keep all --threshold 0.9": "--threshold and --keep both",
    "align {pair} --precision 0.9 --threshold 0.9": "--precision and --threshold both",
    "align {pair} --keep some": "unknown word 'some' of --keep; use one of auto, worthwhile, all",
    "align {pair} --precision 0.9 --matcher greedy": "greedy has no calibrated confidences, so --precision cannot be",
    "align {pair} --precision 0.9 --matcher paris": "paris has no calibrated confidences",
    "align {pair} --precision 0.9 --matcher rlea --preset paper": "the paper's agent has no calibrated confidences",
    "align {pair} --threshold 1.5": "--threshold is 1.5",
    "align {pair} --preset papper --matcher rlea": "unknown preset 'papper'; did you mean paper",
    "align {pair} --preset released": "--preset is for the agent, which is not asked for; add --matcher rlea",
    "align {pair} --matcher rlea --preset paper --channels names": "the paper's agent has none",
    "align {pair} --matcher rlea --agent nowhere": "nowhere: there is no such file; give a file that",
    "align {pair} --agent {pair}/test.tsv": "cannot be read as a trained agent",
    "align {pair} --matcher greedy --agent {pair}/test.tsv": "--agent is for the agent",
    "align {pair} --joint 2": "--joint trains vectors anew, and no embedding is named",
    "align {pair} --joint 2 --embedding names": "--joint trains vectors anew, and names is not one trained model",
    "align {pair} --joint -1 --embedding aligne": "--joint is -1; give a number of rounds from 0",
    "align {pair} --joint 2 --embedding aligne --matcher greedy": "--joint is for the agent",
    "align {pair} --joint 2 --embedding aligne --matcher rlea --preset paper": "--joint is for the agent",
    "bench {pair} --matchers ,": "--matchers names none",
    "bench {pair} --matchers nearest,best": "unknown matcher 'best'; use one of nearest, mutual",
    "bench {pair} --matchers paris --embedding names": "paris takes no vectors",
    "bench {pair} --search aproximate": "unknown search 'aproximate'",
    "bench {pair} --hide names": "names looks at names and these are hidden",
    "bench {pair} --embedding names --embedding aligne": "nearest takes one embedding",
    "bench {pair} --device tpu": "unknown device 'tpu'",
    "train {pair} --preset papper": "unknown preset 'papper'; did you mean paper",
    "train {pair} --preset paper --episodes 0": "--episodes is 0; give a number of at least 1",
    "train {pair} --episodes 3": "--episodes is 3; leave it out, or name a preset of the paper's agent",
    "train {pair} --preset paper --channels names": "the paper's agent has none",
    "train {pair} --channels nmaes": "did you mean names",
    "train {pair} --output x.bin": "x.bin: agents are written as safetensors",
    "train {pair} --embedding nmaes": "did you mean names",
    "train {pair} --device tpu": "unknown device 'tpu'",
    "embed {pair} --model alignee": "unknown model 'alignee'; did you mean aligne",
    "embed {pair} --model names": "--embedding names",
    "embed {pair} --output x.npy": ".safetensors",
    "embed {pair} --device gpu": "unknown device 'gpu'",
    "embed {pair} --epochs 0": "epochs",
    "convert {pair} {tmp}/x --to docx": "docx",
    "convert {source} {tmp}/x.docx": "x.docx",
    "convert {source} {tmp}/x.nt --fold 1": "--fold is for benchmark folders",
    "evaluate {pair}/test.tsv nowhere.tsv": "nowhere.tsv",
    "synthesize {tmp}/x --entities 0": "entities",
    "synthesize {pair}": "not empty",
    "explain {tmp}/gone x": "no such folder",
    "report {pair}": "not the folder of a run",
}  # fmt: skip


@pytest.mark.parametrize(("command", "words"), MISTAKES.items(), ids=MISTAKES)
def test_mistakes_end_in_one_sentence(run_cli, flow, tmp_path, command, words):
    pair = flow / "pair"
    places = {"pair": pair, "source": pair / "source.nt", "target": pair / "target.nt", "tmp": tmp_path}
    arguments = [part.format(**places) for part in command.split()]
    done = run_cli(*arguments, *(["--output", tmp_path / "out"] if arguments[0] == "align" else []))
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Error: ")
    assert done.err.rstrip().endswith(".")
    assert len(done.err.strip().splitlines()) == 1
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["align --mather fused", "bench --matcher all", "train --episode 3", "aling"])
def test_misspelt_options_are_said(run_cli, command):
    first, *others = command.split()
    done = run_cli(first, demo_folder(), *others)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert "No such" in done.err


def test_interrupt_is_quiet(run_cli, tmp_path, monkeypatch):
    def stop(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("rlea.pipeline.align", stop)
    done = run_cli("align", demo_folder(), "--output", tmp_path / "out")
    assert done.code == 130
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_lists(run_cli):
    for command, name, key in (("matchers", "fused", "one_to_one"), ("embeddings", "aligne", "uses")):
        assert name in run_cli(command).out
        assert key in json.loads(run_cli(command, "--json").out)[name]
    assert "main" in run_cli("experiments").out


def test_version_and_help(run_cli):
    assert run_cli("--version").out.startswith("rlea 0.")
    for command in (
        *("demo", "align", "bench", "embed", "train"),
        *("evaluate", "convert", "synthesize", "explain", "report"),
    ):
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


def test_unknown_formats_of_links_are_refused_before_any_work(run_cli, tmp_path):
    done = run_cli("align", tmp_path / "nowhere", "--format", "csv,docx", "--output", tmp_path / "out")
    assert done.code == 2
    assert "'docx'" in done.err
    assert not (tmp_path / "out").exists()


def test_the_package_is_a_program(tmp_path):
    done = subprocess.run([sys.executable, "-m", "rlea", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"rlea {rlea.__version__}\n"
