"""All evidence through the flow: what is told and written beside the links, and which links are left out."""

import codecs
import json
import sys
import types
import zlib
from dataclasses import replace

import numpy as np
import pytest

import rlea
from planted import bytes_of
from rlea.errors import InputError
from rlea.evidence import CHANNELS
from rlea.graph import Links
from rlea.graph.schema import SCHEMA_FILES
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.matching import Matching
from rlea.pipeline import cut_links
from rlea.result import Overlap
from rlea.settings import AlignSettings


@pytest.fixture(scope="module")
def result(flow):
    """A run without seeds."""
    files = flow / "pair"
    return rlea.align(rlea.read(files / "source.nt", files / "target.nt", gold=files / "test.tsv"))


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    place = tmp_path_factory.mktemp("out")
    rlea.write(place, result)
    return place


def test_two_files_are_all_that_is_needed(run_cli, flow, folder, result, tmp_path):
    files = flow / "pair"
    done = run_cli("align", files / "source.nt", files / "target.nt", "--output", tmp_path, "--quiet")
    assert done.code == 0, done.err
    told = json.loads((tmp_path / "run.json").read_text())["result"]
    assert (told["matcher"], told["embedding"], told["f1"]) == ("fused", "", None)
    assert told["started"].startswith("No seeds: started from ")
    assert [row["channel"] for row in told["channels"]] == list(CHANNELS)
    assert told["search"] == {"kind": "evidence"}
    # No gold given: the same links to the last letter.
    assert (tmp_path / "links.tsv").read_bytes() == (folder / "links.tsv").read_bytes()
    assert result.ranks is None
    assert result.coverage > 0.8
    table = done.out.split("What each channel contributed")[1]
    for row in result.info["channels"]:
        (line,) = [line for line in table.splitlines() if f" {row['channel']} " in line]
        assert all((f"{row[key]:,}" if row[key] else "-") in line for key in ("proposed", "found", "alone"))
    assert told["started"] in " ".join(done.out.replace("│", " ").split())


def test_the_page_tells_what_channels_contributed(folder, result):
    page = (folder / "report.html").read_text()
    assert "What each channel contributed" in page
    assert f"{result.info['bootstrap']['told']}." in page
    other = rlea.align(result.pair, matcher="nearest")
    assert "What each channel contributed" not in rlea.result.render(other)[1]


@pytest.mark.parametrize("matcher", ["fused", "paris"])
def test_what_corresponds_is_written_beside_the_links_and_goes_with_them(matcher, result, tmp_path):
    if matcher == "paris":
        result = rlea.align(result.pair, matcher="paris")
    rlea.write(tmp_path, result)
    lines = (tmp_path / SCHEMA_FILES[0]).read_text().splitlines()
    assert lines[0].split("\t")[:3] == ["source", "target", "direction"]
    assert len(lines) - 1 == len(result.schema.relations) > 3
    assert json.loads((tmp_path / "run.json").read_text())["result"]["matcher"] == matcher
    rlea.write(tmp_path, rlea.align(result.pair, matcher="nearest"))
    assert not any((tmp_path / name).exists() for name in (*SCHEMA_FILES, "decisions.safetensors"))


def test_hidden_names_are_seen_by_no_channel(flow):
    pair = rlea.read(flow / "pair")
    blind = rlea.align(pair, hide="names")
    (row,) = [row for row in blind.info["channels"] if row["channel"] == "names"]
    assert (row["proposed"], row["found"]) == (0, 0)
    assert blind.summary()["hidden"] == ["names"]
    assert blind.links.f1 > 0.3


class Translator:
    """A sentence encoder that knows one cipher: a text and its translation have the same vector."""

    def __init__(self, folder, device):
        self.folder = folder

    def encode(self, texts, show_progress_bar):
        meanings = [min(text, codecs.encode(text, "rot13")) for text in texts]
        return np.stack([np.random.default_rng(zlib.crc32(text.encode())).normal(size=64) for text in meanings])


def test_a_run_with_a_sentence_encoder_finds_what_letters_do_not_tell(tmp_path, monkeypatch):
    write_synthetic(tmp_path, SyntheticSettings(200, seeds=0.2, valid=0.0, name_noise=0.0, nameless=0.0, seed=2))
    pair = rlea.read(tmp_path / "source.nt", tmp_path / "target.nt", gold=tmp_path / "test.tsv")
    translated = tuple(codecs.encode(name, "rot13") for name in pair.target.names)
    pair = replace(pair, target=replace(pair.target, names=translated))
    bare = rlea.align(pair, channels="structure,names")
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Translator))
    told = rlea.align(pair, channels="structure,names", encoder=str(tmp_path))
    assert told.links.f1 > 0.95 > bare.links.f1 + 0.2
    assert "meaning" in told.summary()["started"]
    assert [one.get("encoder") for one in told.info["evidence"]] == [None, str(tmp_path)]
    assert "meaning" not in bare.summary()["started"]


def test_the_package_of_sentence_encoders_may_be_missing(run_cli, flow, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    done = run_cli("align", flow / "pair", "--encoder", tmp_path)
    assert done.code == 2
    assert "needs the package sentence-transformers" in done.err


@pytest.mark.parametrize(
    ("channels", "term"),
    [(("names",), "LexicalMatching"), (("structure", "names"), "CompositeMatching"), (CHANNELS, "CompositeMatching")],
)
def test_the_justification_goes_by_the_channels_that_were_used(result, tmp_path, channels, term):
    """Not by those of the settings: a trained agent has its own."""
    rows = [row for row in result.info["channels"] if row["channel"] in channels]
    rlea.write(tmp_path, replace(result, info={**result.info, "channels": rows}))
    assert f"semapv:{term}\t" in (tmp_path / "links.sssom.tsv").read_text(encoding="utf-8")


def test_no_link_at_all_is_said(run_cli, tmp_path):
    """Two scripts, nothing in common: no warning (they are errors here), no empty table."""
    for name, (one, other) in {"a": ("Aachen", "Ulm"), "b": ("北京", "上海")}.items():
        lines = [
            f'<http://{name}.org/{name}{n}> <http://{name}.org/label> "{text}" .' for n, text in ((1, one), (2, other))
        ]
        (tmp_path / f"{name}.nt").write_text("\n".join(lines), encoding="utf-8")
    done = run_cli("align", tmp_path / "a.nt", tmp_path / "b.nt", "--matcher", "paris")
    assert done.code == 0
    assert "No link was found: the graphs have nothing in common that was used." in " ".join(done.out.split())
    assert "confident" not in done.out


# ---- leaving links out ----------------------------------------------------------------------------------------------


def test_links_are_left_out_by_confidence():
    matching = Matching.of(range(6), range(6), [0.99, 0.98, 0.9, 0.5, 0.2, 0.05])
    right = Overlap(3.6, 3.0, 4.0, 6)
    for known in (None, right):
        assert cut_links(matching, AlignSettings(keep="all"), 6, known) is matching
        kept = cut_links(matching, AlignSettings(threshold=0.9), 6, known)
        assert kept.source_ids.tolist() == [0, 1, 2]  # 0.9 itself stays
        kept = cut_links(matching, AlignSettings(keep="worthwhile"), 6, known)
        assert 0 < len(kept) < 6
        assert kept.confidences.min() > 0.2
        assert len(cut_links(Matching.of([], [], []), AlignSettings(keep="worthwhile"), 0, known)) == 0


def test_by_default_links_are_left_out_where_confidences_are_calibrated():
    matching = Matching.of(range(6), range(6), [0.99, 0.98, 0.9, 0.5, 0.2, 0.05])
    assert cut_links(matching, AlignSettings(), 6) is matching
    kept = cut_links(matching, AlignSettings(), 6, Overlap(3.6, 3.0, 4.0, 6))
    assert bytes_of(kept) == bytes_of(cut_links(matching, AlignSettings(keep="worthwhile"), 6, Overlap(3.6, 3, 4, 6)))
    assert kept.source_ids.tolist() == [0, 1, 2, 3]
    # Where next to nothing is shared, expected F1 would gain from guesses; they are not written.
    guesses = Matching.of(range(6), range(6), [0.3, 0.1, 0.05, 0.05, 0.05, 0.05])
    assert len(cut_links(guesses, AlignSettings(), 6, Overlap(0.6, 0.0, 2.0, 6))) == 0


def test_a_precision_is_promised_only_with_calibrated_confidences_and_fifty_links():
    matching = Matching.of(range(50), range(50), [0.99] * 20 + [0.92] * 10 + [0.2] * 20)
    right, settings = Overlap(33.0, 30.0, 36.0, 40), AlignSettings(precision=0.95)
    kept = cut_links(matching, settings, 50, right)
    assert kept.source_ids.tolist() == list(range(30))
    assert kept.confidences.mean() >= 0.95
    reasons = {"there is too little to learn from": (matching, None)}
    reasons["there are only 49 links"] = matching.some(np.arange(50) > 0), right
    for reason, (few, known) in reasons.items():
        with pytest.raises(InputError, match=rf"--precision 0\.95 cannot be promised: {reason}"):
            cut_links(few, settings, 50, known)
    nothing = Matching.of([], [], [])
    assert len(cut_links(nothing, settings, 50, right)) == 0


def test_what_channels_contributed_is_told_of_the_links_that_stayed(result, monkeypatch):
    def keep_half(matching, *_):
        rows = (matching.source_ids, matching.target_ids, matching.confidences)
        return Matching.of(*(row[::2] for row in rows))

    every = rlea.align(result.pair, keep="all")
    monkeypatch.setattr("rlea.pipeline.cut_links", keep_half)
    few = rlea.align(result.pair, precision=0.9)
    assert len(every.doubtful) == 0
    assert len(few) == (len(every) + 1) // 2
    assert len(few) + len(few.doubtful) == len(every) == len(result) + len(result.doubtful)
    by_default = "--keep worthwhile" if len(result.doubtful) else ""
    assert (few.cut, result.cut, every.cut) == ("--precision 0.9", by_default, "")
    for row, before in zip(few.info["channels"], every.info["channels"], strict=True):
        assert row["found"] <= min(before["found"], len(few))


@pytest.mark.slow
def test_two_real_graphs_without_a_seed(data_folder):
    pair = rlea.read(data_folder / "openea-15k-v1" / "EN_FR_15K_V1")
    gold = Links.union([pair.train, pair.valid, pair.test])
    result = rlea.align(rlea.GraphPair(pair.name, pair.source, pair.target, test=gold, default_pool="all"))
    assert result.matching.is_one_to_one
    assert result.links.f1 > 0.95
    assert np.isin(result.matching.source_ids, gold.source_ids).all()
