"""Runs go on: what is new gets its links, what stands keeps standing, and every change is told."""

import csv
import json
import os

import numpy as np
import pytest

import rlea
from planted import links_of, make_graph
from rlea.agent.kept import KEPT
from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import LABEL
from rlea.io.union import grown, union_of
from rlea.update import CHANGES, COLUMNS, News, update, write_update

pytestmark = pytest.mark.usefixtures("one_thread")  # the pairs are small

PEOPLE = 90  # in the earlier run; ten more come later
PARTS = [
    one + other
    for one in ("ba", "ke", "lo", "mi", "tu")
    for other in ("ne", "vi", "sta", "dor", "pu", "lan", "gro", "shi")
]


def name_of(k):
    return f"{PARTS[k % 40]} {PARTS[(7 * k + 3) % 40]} {PARTS[(k * k + k // 40) % 40]}"


def lines_of(side, people, *, spelt=str):
    """Who knows whom, and how everybody is called, as N-Triples."""
    lines = []
    for k in people:
        who = f"<http://{side}.org/p{k:03}>"
        lines.append(f"{who} <{LABEL}> {json.dumps(spelt(name_of(k)))} .")
        lines.append(f'{who} <http://{side}.org/born> "{1900 + (13 * k) % 97}" .')
        known = sorted({(k + 1) % (PEOPLE + 10), (3 * k + 5) % (PEOPLE + 10)} - {k})
        lines += [
            f"{who} <http://{side}.org/knows> <http://{side}.org/p{other:03}> ."
            for other in known
            if other in people or other < min(people)
        ]
    return lines


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two graphs of people, what came later (more.s.nt, more.t.nt), and an earlier run on the former."""
    folder = tmp_path_factory.mktemp("people")
    old, new = range(PEOPLE), range(PEOPLE, PEOPLE + 10)
    for side in "st":
        spelt = str if side == "s" else lambda text: text.replace("sta", "stah").title()
        (folder / f"{side}.nt").write_text("\n".join(lines_of(side, old, spelt=spelt)) + "\n")
        (folder / f"more.{side}.nt").write_text("\n".join(lines_of(side, new, spelt=spelt)) + "\n")
    rlea.write(folder / "run", rlea.align(rlea.read(folder / "s.nt", folder / "t.nt")))
    return folder


@pytest.fixture(scope="module")
def both(files):
    """An update with ten people more on either side."""
    return update(files / "run", [files / "more.s.nt"], [files / "more.t.nt"])


def named(result):
    pair, links = result.pair, result.matching
    ends = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    return {(pair.source.entities[s][-4:], pair.target.entities[t][-4:]) for s, t in ends}


def test_new_counterparts_get_their_links(files, both):
    found = named(both.result)
    right = {(f"p{k:03}", f"p{k:03}") for k in range(PEOPLE, PEOPLE + 10)}
    assert len(found & right) >= 9
    assert len(found & {(f"p{k:03}", f"p{k:03}") for k in range(PEOPLE)}) >= 0.95 * PEOPLE
    assert both.result.matching.is_one_to_one


def test_one_run_over_all_finds_the_same(files, both):
    places = {"add_source": files / "more.s.nt", "add_target": files / "more.t.nt"}
    whole = rlea.align(rlea.read(files / "s.nt", files / "t.nt", **places))
    assert whole.pair.fingerprint == both.result.pair.fingerprint
    same = named(whole) & named(both.result)
    assert len(same) >= 0.97 * len(named(whole))


def test_links_that_stand_keep_standing(files, both):
    earlier = {(one[0][-4:], one[1][-4:]) for one in rows_of(files / "run" / "links.tsv")}
    assert len(earlier & named(both.result)) >= len(earlier) - 2


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))[1:]


def test_every_change_is_told_with_its_reason(files, both):
    earlier = {tuple(one[:2]): float(one[2]) for one in rows_of(files / "run" / "links.tsv")}
    pair, links = both.result.pair, both.result.matching
    now = {
        (pair.source.entities[s], pair.target.entities[t]): sure
        for s, t, sure in zip(
            links.source_ids.tolist(), links.target_ids.tolist(), links.confidences.tolist(), strict=True
        )
    }
    told = {one.source: one for one in both.changes}
    assert len(told) == len(both.changes)
    for source, target in earlier.keys() - now.keys():
        assert told[source].old_target == target
    for source, target in now.keys() - earlier.keys():
        assert told[source].new_target == target
    for ends in earlier.keys() & now.keys():
        assert (ends[0] in told) == (abs(earlier[ends] - now[ends]) >= 0.05 - 1e-6) or abs(
            abs(earlier[ends] - now[ends]) - 0.05
        ) < 1e-5
    of_new = [one for one in both.changes if int(one.source[-3:]) >= PEOPLE]
    assert {one.why for one in of_new} == {"both are new"}
    assert all(not one.old_target and one.old_confidence == 0 for one in of_new)


def test_nothing_new_changes_nothing(files):
    found = update(files / "run", [files / "s.nt"], [files / "t.nt"])
    assert found.changes == []
    assert found.result.pair.fingerprint == rlea.read(files / "s.nt", files / "t.nt").fingerprint
    links = rows_of(files / "run" / "links.tsv")
    assert {tuple(name[-4:] for name in one[:2]) for one in links} == named(found.result)
    assert found.summary()["new_source_entities"] == found.summary()["new_target_entities"] == 0


def test_the_order_of_lines_does_not_matter(files, both, tmp_path):
    rng = np.random.default_rng(3)
    for side in "st":
        lines = (files / f"more.{side}.nt").read_text().splitlines()
        cut = len(lines) // 2
        order = rng.permutation(len(lines)).tolist()
        (tmp_path / f"1.{side}.nt").write_text("".join(lines[k] + "\n" for k in order[:cut]))
        (tmp_path / f"2.{side}.nt").write_text("".join(lines[k] + "\n" for k in order[cut:]))
    sides = [[tmp_path / f"{number}.{side}.nt" for number in (2, 1)] for side in "st"]
    other = update(files / "run", *sides)
    assert other.result.pair.fingerprint == both.result.pair.fingerprint
    assert links_of(other.result.matching) == links_of(both.result.matching)
    assert other.result.matching.confidences.tolist() == both.result.matching.confidences.tolist()
    assert other.changes == both.changes


def test_nothing_is_learned_again(files, monkeypatch):
    monkeypatch.setattr(rlea.Aligner, "fit", lambda *given, **more: pytest.fail("it learned"))
    found = update(files / "run", [files / "more.s.nt"])
    assert found.result.kept is not None
    assert [len(part.entities) for part in found.news] == [10, 0]


def test_an_updated_run_is_a_run_like_any_other(files, both, tmp_path):
    from rlea.views.explain import Run

    written = write_update(tmp_path / "new", both)
    assert {CHANGES, KEPT, "links.tsv", "run.toml", "decisions.safetensors"} <= {path.name for path in written}
    again = Run.open(tmp_path / "new")
    assert again.pair.fingerprint == both.result.pair.fingerprint
    assert again.trace is not None
    assert again.notes == ()
    source = again.pair.source.entities[int(both.result.matching.source_ids[-1])]
    assert again.explain(source).outcome == "matched"
    third = update(tmp_path / "new", [files / "more.s.nt"])  # what is known already
    assert third.changes == []


# ---- graphs ---------------------------------------------------------------------------------------------------------


def test_a_union_is_what_reading_at_once_gives():
    triples = [("a", "near", "b"), ("b", "near", "c"), ("c", "in", "d")]
    literals = [("a", LABEL, "Alpha"), ("b", LABEL, "Beta"), ("c", LABEL, "Gamma"), ("d", LABEL, "Delta")]
    parts = make_graph(triples[:2], literals[:2]), make_graph(triples[1:], literals[2:])
    assert union_of(parts[0], [parts[1]]).fingerprint == make_graph(triples, literals).fingerprint
    assert union_of(parts[1], [parts[0]]).fingerprint == make_graph(triples, literals).fingerprint


def test_links_go_with_their_entities():
    one = make_graph([("b", "near", "d")], [])
    larger = union_of(one, [make_graph([("a", "near", "c")], [])])
    pair = grown(GraphPair("", one, one, train=Links.of([0], [1])), larger, larger)
    ends = pair.train.source_ids[0], pair.train.target_ids[0]
    assert (larger.entities[ends[0]], larger.entities[ends[1]]) == ("b", "d")


def test_news_are_what_was_not_known():
    one = make_graph([("a", "near", "b")], [("a", LABEL, "A"), ("b", LABEL, "B")])
    more = make_graph([("b", "near", "c")], [("a", LABEL, "A")])
    whole = union_of(one, [more])
    news = News.of(one, whole)
    assert [whole.entities[k] for k in news.entities] == ["c"]
    assert [whole.entities[k] for k in news.told_of] == ["b"]


# ---- as a person runs it --------------------------------------------------------------------------------------------


def test_the_command(files, run_cli, tmp_path):
    more = "--source", files / "more.s.nt", "--target", files / "more.t.nt"
    done = run_cli("update", files / "run", *more, "--output", tmp_path / "new", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["new_source_entities"], told["new_target_entities"]) == (10, 10)
    lines = (tmp_path / "new" / CHANGES).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "\t".join(COLUMNS)
    assert len(lines) - 1 == sum(told["changes"].values())
    done = run_cli("update", tmp_path / "new", "--source", files / "more.s.nt", "--quiet")  # in place
    assert done.code == 0, done.err
    assert "0 new source entities" in done.out
    assert (tmp_path / "new" / CHANGES).read_text(encoding="utf-8").splitlines() == lines[:1]


def refused(done):
    """The one sentence of an error."""
    assert done.code == 2
    assert "Traceback" not in done.err
    return " ".join(done.err.split())


def test_what_cannot_be_updated_is_one_sentence(files, run_cli, tmp_path):
    assert "there is nothing new" in refused(run_cli("update", files / "run"))
    assert "there is no such folder" in refused(run_cli("update", tmp_path / "no", "--source", files / "s.nt"))
    assert not (tmp_path / "no").exists()
    (tmp_path / "bad.nt").write_text("<a> <b> .\n")
    assert "bad.nt" in refused(run_cli("update", files / "run", "--source", tmp_path / "bad.nt"))
    assert "no such file" in refused(run_cli("update", files / "run", "--target", tmp_path / "none.nt")).lower()
    rlea.write(tmp_path / "other", rlea.align(rlea.read(files / "s.nt", files / "t.nt"), matcher="mutual"))
    done = run_cli("update", tmp_path / "other", "--source", files / "more.s.nt")
    assert "this run cannot go on: its links were decided by mutual" in refused(done)


def test_an_input_is_never_overwritten(files, run_cli, tmp_path):
    (tmp_path / "links.tsv").write_text((files / "more.s.nt").read_text())
    done = run_cli("update", files / "run", "--source", tmp_path / "links.tsv", "--output", tmp_path)
    assert done.code == 2
    assert os.listdir(tmp_path) == ["links.tsv"]


def test_without_a_kept_agent_it_is_trained_again(files, tmp_path):
    import shutil

    shutil.copytree(files / "run", tmp_path / "run")
    (tmp_path / "run" / KEPT).unlink()
    found = update(tmp_path / "run", [files / "more.s.nt"], [files / "more.t.nt"])
    assert len(named(found.result) & {(f"p{k:03}", f"p{k:03}") for k in range(PEOPLE, PEOPLE + 10)}) >= 9
    assert found.result.kept is not None


def test_read_takes_more_and_a_run_can_be_repeated(files, run_cli, tmp_path):
    more = "--add-source", files / "more.s.nt", "--add-target", files / "more.t.nt"
    done = run_cli(
        "align", files / "s.nt", files / "t.nt", *more, "--matcher", "mutual", "--output", tmp_path / "one", "-q"
    )
    assert done.code == 0, done.err
    done = run_cli("align", "--config", tmp_path / "one" / "run.toml", "--output", tmp_path / "two", "-q")
    assert done.code == 0, done.err
    assert (tmp_path / "one" / "links.tsv").read_bytes() == (tmp_path / "two" / "links.tsv").read_bytes()


def test_a_run_of_an_update_counts_seeds(files, tmp_path):
    (tmp_path / "seeds.tsv").write_text("".join(f"http://s.org/p{k:03}\thttp://t.org/p{k:03}\n" for k in range(30)))
    pair = rlea.read(files / "s.nt", files / "t.nt", seeds=tmp_path / "seeds.tsv")
    rlea.write(tmp_path / "run", rlea.align(pair))
    found = update(tmp_path / "run", [files / "more.s.nt"], [files / "more.t.nt"])
    assert len(found.result.pair.train) == 30
    assert not {(f"p{k:03}", f"p{k:03}") for k in range(30)} & named(found.result)  # seeds are not repeated
    with pytest.raises(InputError, match="nothing new"):
        update(tmp_path / "run")
