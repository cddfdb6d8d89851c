"""All evidence by the command line: what `auto` takes, what is refused, and what is written beside the links."""

import codecs
import io
import json
import sys
import types
import zlib
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rlea import pipeline
from rlea.errors import InputError
from rlea.evidence import CHANNELS, matcher
from rlea.graph import Links
from rlea.graph.schema import SCHEMA_FILES
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.matching import Matching
from rlea.pipeline import cut_links
from rlea.settings import AlignSettings, check_settings, settle
from rlea.views.terminal import channel_table

from .conftest import bytes_of, unlinked


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two graphs as files, with gold links and 40 seeds."""
    folder = tmp_path_factory.mktemp("graphs")
    write_synthetic(folder, SyntheticSettings(200, seeds=0.2, valid=0.0, name_noise=0.2, nameless=0.2, seed=2))
    return folder


@pytest.fixture(scope="module")
def output(files, tmp_path_factory):
    """A run without seeds and its folder."""
    pair = pipeline.read(files / "source.nt", files / "target.nt", gold=files / "test.tsv")
    result = pipeline.align(pair, AlignSettings())
    folder = tmp_path_factory.mktemp("out")
    pipeline.write(folder, result)
    return folder, result


# ---- which matcher --------------------------------------------------------------------------------------------------


def test_auto_is_all_evidence_unless_vectors_are_given_or_the_graphs_are_large(planted, monkeypatch):
    def chosen(**more):
        settings = settle(AlignSettings(**more), planted)
        return settings.matcher, settings.embedding

    assert chosen() == ("fused", "")
    assert chosen(embedding="names") == ("best-first", "names")
    assert chosen(matcher="hungarian") == ("hungarian", "names")
    assert chosen(matcher="paris") == ("paris", "")
    assert chosen(matcher="rlea", embedding="aligne") == ("rlea", "aligne")
    monkeypatch.setattr("rlea.settings.MOST_FUSED", 300)
    assert chosen() == ("fused", "")
    monkeypatch.setattr("rlea.settings.MOST_FUSED", 299)
    assert chosen() == ("best-first", "names")
    assert chosen(matcher="fused") == ("fused", "")


def test_channels_are_not_dropped_where_the_graphs_are_too_large_for_auto(planted, monkeypatch):
    monkeypatch.setattr("rlea.settings.MOST_FUSED", 299)
    with pytest.raises(InputError, match="--channels is for the matcher fused, which is not asked for"):
        pipeline.align(planted, AlignSettings(channels=("names",)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--matcher", "fused", "--embedding", "names"], ["fused", "takes no vectors", "leave --embedding out"]),
        (["--matcher", "paris", "--embedding", "names"], ["paris", "takes no vectors"]),
        (["--matcher", "fused", "--search", "exact"], ["--search is for matchers that take vectors", "fused"]),
        (["--channels", "nmaes"], ["unknown channel 'nmaes'", "did you mean names"]),
        (["--matcher", "fused", "--channels", "names,zzz"], ["unknown channel 'zzz'", "structure, names, words"]),
        (["--matcher", "best-first", "--channels", "names"], ["--channels is for the matcher fused"]),
        (["--embedding", "names", "--channels", "names"], ["--channels", "add --matcher fused"]),
        (["--matcher", "paris", "--channels", "names"], ["--channels is for the matcher fused"]),
        (["--matcher", "best-first", "--encoder", "{tmp}"], ["--encoder is for the matcher fused"]),
        (["--encoder", "{tmp}/gone"], ["gone", "is no folder of a sentence encoder"]),
        (["--encoder", "{tmp}", "--channels", "structure,paris"], ["compares names", "--channels leaves out"]),
        (["--encoder", "{tmp}", "--hide", "names"], ["--encoder compares names", "--hide hides"]),
        (["--encoder", "{tmp}"], ["needs the package sentence-transformers", 'pip install "rlea[encoder]"']),
        (["--matcher", "fused", "--preset", "paper"], ["--preset is for the agent"]),
        (["--matcher", "fused", "--joint", "1"], ["--joint"]),
        (["--hide", "names,attributes"], ["nothing to begin with", "--seeds"]),
    ],
)  # fmt: skip
def test_mistakes_end_in_one_sentence(run_cli, tmp_path, files, arguments, words):
    filled = [part.replace("{tmp}", str(tmp_path)) for part in arguments]
    done = run_cli("align", files / "source.nt", files / "target.nt", *filled, "--output", tmp_path / "out", "--quiet")
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("Error: ")
    assert len(done.err.strip().splitlines()) == 1
    for word in words:
        assert word in done.err
    assert list(tmp_path.iterdir()) == []


def test_several_matchers_may_be_compared_with_and_without_vectors():
    check_settings(AlignSettings("names", "fused"), ["nearest", "fused"])
    with pytest.raises(InputError, match="takes no vectors"):
        check_settings(AlignSettings("names", "fused"))


# ---- a run ----------------------------------------------------------------------------------------------------------


def test_two_files_are_all_that_is_needed(run_cli, files, output, tmp_path):
    folder, result = output
    done = run_cli("align", files / "source.nt", files / "target.nt", "--output", tmp_path / "again", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["matcher"], told["embedding"]) == ("fused", "")
    assert told["began"].startswith("there are no seeds: it began with ")
    assert [row["channel"] for row in told["channels"]] == list(CHANNELS)
    assert told["search"] == {"kind": "evidence"}
    assert told["f1"] is None
    # No gold given: the same links to the last letter.
    assert (tmp_path / "again" / "links.tsv").read_bytes() == (folder / "links.tsv").read_bytes()
    assert result.links.f1 > 0.7
    assert result.links.f1 <= 1
    assert result.ranks is None
    assert result.coverage > 0.8


def test_on_the_screen(run_cli, files):
    done = run_cli(
        "align", files / "source.nt", files / "target.nt", "--gold", files / "test.tsv", "--seeds", files / "seeds.tsv",
        "--channels", " names, structure,", "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "What each channel contributed" in done.out
    table = done.out.split("What each channel contributed")[1]
    assert "names" in table
    assert "structure" in table
    assert "words" not in table.split("└")[0]
    assert "40 seeds, which are few" in " ".join(done.out.split())


def test_the_table_of_channels(output):
    _, result = output
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(channel_table(result))
    text = console.export_text()
    for row in result.info["channels"]:
        (line,) = [line for line in text.splitlines() if f" {row['channel']} " in line]
        assert [f"{row[key]:,}" in line for key in ("proposed", "found", "alone")] == [True] * 3
    assert channel_table(replace(result, info={})) is None


def test_the_page_tells_what_channels_contributed(output, files):
    folder, result = output
    page = (folder / "report.html").read_text()
    assert "What each channel contributed" in page
    began = result.info["beginning"]["told"]
    assert f"T{began[1:]}." in page
    other = pipeline.align(result.pair, AlignSettings(matcher="nearest"))
    from rlea.record import describe_run
    from rlea.views.report.run import render_run

    record = describe_run(result=other.summary(), fingerprint="", embedding_info=other.info, notes=[])
    assert "What each channel contributed" not in render_run(other.pair, other.matching, record)


@pytest.mark.parametrize("matcher", ["fused", "paris"])
def test_what_corresponds_is_written_beside_the_links_and_goes_with_them(matcher, output, files, tmp_path):
    _, result = output
    if matcher == "paris":
        result = pipeline.align(result.pair, AlignSettings(matcher="paris"))
    pipeline.write(tmp_path, result)
    relations = tmp_path / SCHEMA_FILES[0]
    lines = relations.read_text().splitlines()
    assert lines[0].split("\t")[:3] == ["source", "target", "direction"]
    assert len(lines) - 1 == len(result.schema.relations) > 5
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["result"]["matcher"] == matcher
    bare = pipeline.align(result.pair, AlignSettings(matcher="nearest"))
    pipeline.write(tmp_path, bare)
    assert not any((tmp_path / name).exists() for name in SCHEMA_FILES)


def test_hidden_names_are_seen_by_no_channel(files):
    pair = pipeline.read(files / "source.nt", files / "target.nt", seeds=files / "seeds.tsv", gold=files / "test.tsv")
    result = pipeline.align(pair, AlignSettings(hide=("names",)))
    found = {row["channel"]: row for row in result.info["channels"]}
    assert found["names"]["proposed"] == 0
    assert found["names"]["found"] == 0
    assert result.summary()["hidden"] == ["names"]
    assert result.links.f1 > 0.3
    scrambled = replace(pair, source=replace(pair.source, names=pair.source.names[::-1]))
    again = pipeline.align(scrambled, AlignSettings(hide=("names",), channels=("structure", "paris")))
    before = pipeline.align(pair, AlignSettings(hide=("names",), channels=("structure", "paris")))
    assert len(again.matching) > 0
    assert again.links.f1 == pytest.approx(before.links.f1, abs=0.1)


def test_gold_links_change_nothing_but_the_scores(output):
    _, result = output
    bare = pipeline.align(unlinked(result.pair), AlignSettings())
    assert bytes_of(bare.matching) == bytes_of(result.matching)
    assert bare.links is None


class Translator:
    """A sentence encoder that knows one cipher: a text and its translation have the same vector."""

    def __init__(self, folder, device):
        self.folder = folder

    def encode(self, texts, show_progress_bar):
        meanings = [min(text, codecs.encode(text, "rot13")) for text in texts]
        return np.stack([np.random.default_rng(zlib.crc32(text.encode())).normal(size=64) for text in meanings])


def test_a_run_with_a_sentence_encoder_finds_what_letters_do_not_tell(tmp_path, monkeypatch):
    write_synthetic(tmp_path, SyntheticSettings(200, seeds=0.2, valid=0.0, name_noise=0.0, nameless=0.0, seed=2))
    pair = pipeline.read(tmp_path / "source.nt", tmp_path / "target.nt", gold=tmp_path / "test.tsv")
    translated = tuple(codecs.encode(name, "rot13") for name in pair.target.names)
    pair = replace(pair, target=replace(pair.target, names=translated))
    bare = pipeline.align(pair, AlignSettings(channels=("structure", "names")))
    monkeypatch.setitem(sys.modules, "sentence_transformers", types.SimpleNamespace(SentenceTransformer=Translator))
    told = pipeline.align(pair, AlignSettings(channels=("structure", "names"), encoder=str(tmp_path)))
    assert told.links.f1 > 0.95 > bare.links.f1 + 0.2
    assert "meaning" in told.summary()["began"]
    assert [one.get("encoder") for one in told.info["heard"]] == [None, str(tmp_path)]
    assert "meaning" not in bare.summary()["began"]


def test_the_justification_goes_by_the_channels(output, tmp_path):
    _, result = output
    for channels, term in (
        (("names",), "LexicalMatching"),
        (("structure", "names"), "CompositeMatching"),
        ((), "CompositeMatching"),
    ):
        pipeline.write(tmp_path, replace(result, settings=replace(result.settings, channels=channels)))
        assert f"semapv:{term}\t" in (tmp_path / "links.sssom.tsv").read_text(encoding="utf-8")


def test_what_decides_is_given_no_gold(files, monkeypatch):
    seen = []
    own = matcher.find_by_all

    def spy(pair, *given, **more):
        seen.append(pair)
        return own(pair, *given, **more)

    monkeypatch.setattr(matcher, "find_by_all", spy)
    pair = pipeline.read(files / "source.nt", files / "target.nt", seeds=files / "seeds.tsv", gold=files / "test.tsv")
    pipeline.align(pair, AlignSettings(channels=("structure", "names")))
    (given,) = seen
    assert (len(given.train), len(given.valid), len(given.test)) == (len(pair.train), 0, 0)


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
    done = run_cli("align", tmp_path / "a.nt", tmp_path / "b.nt")
    assert done.code == 2
    assert "nothing to begin with" in done.err


# ---- leaving links out ----------------------------------------------------------------------------------------------


def test_links_are_left_out_by_confidence():
    matching = Matching.of(range(6), range(6), [0.99, 0.98, 0.9, 0.5, 0.2, 0.05])
    assert cut_links(matching, AlignSettings(), 6) is matching
    sure = cut_links(matching, AlignSettings(precision=0.95), 6)
    assert sure.source_ids.tolist() == [0, 1, 2]
    kept = cut_links(matching, AlignSettings(abstain=True), 6)
    assert 0 < len(kept) < 6
    assert kept.confidences.min() > 0.2
    assert len(cut_links(Matching.of([], [], []), AlignSettings(abstain=True), 0)) == 0


def test_a_run_with_links_left_out_has_the_surest_of_all(output):
    _, result = output
    sure = pipeline.align(result.pair, AlignSettings(precision=0.99))
    assert 0 < len(sure.matching) <= len(result.matching)
    whole = dict(zip(result.matching.source_ids.tolist(), result.matching.confidences.tolist(), strict=True))
    assert all(
        whole[s] == c
        for s, c in zip(sure.matching.source_ids.tolist(), sure.matching.confidences.tolist(), strict=True)
    )
    assert sure.links.precision >= result.links.precision
    assert sure.cut == "--precision 0.99"
    # What channels contributed is told of the links that stayed.
    assert all(row["found"] <= len(sure.matching) for row in sure.info["channels"])
    few = pipeline.align(result.pair, AlignSettings(precision=1.0))
    assert len(few.matching) < len(result.matching)
    for row, before in zip(few.info["channels"], result.info["channels"], strict=True):
        assert row["found"] <= min(before["found"], len(few.matching))


# ---- real data ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_real_graphs_without_a_seed(data_folder):
    pair = pipeline.read(data_folder / "openea-15k-v1" / "EN_FR_15K_V1")
    gold = Links.union([pair.train, pair.valid, pair.test])
    bare = replace(unlinked(pair), test=gold, default_pool="all")
    result = pipeline.align(bare, AlignSettings())
    assert result.matching.is_one_to_one
    assert result.links.f1 > 0.95
    assert np.isin(result.matching.source_ids, gold.source_ids).all()
