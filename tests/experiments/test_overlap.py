"""Graphs that share a part: how they are cut, what a cell says, and what is shown of it."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlea
from rlea.errors import InputError
from rlea.experiments import EXPERIMENTS, overlap, results_of
from rlea.experiments.grid import is_finished, run_grids
from rlea.experiments.options import DEMO, Options, find_folder
from rlea.experiments.overlap import (
    AGENT,
    BEGINNINGS,
    FIFTH,
    MANY,
    NO_SEEDS,
    QUICK_SHARES,
    SHARES,
    STORE,
    off,
    pooled,
    precision_of,
    seen_and_judged,
)
from rlea.experiments.partial import cut, draw_seeds, unrelated
from rlea.experiments.workspace import Workspace
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matching import Matching
from rlea.progress import silent
from small_graphs import relations

WHOLE = generate(SyntheticSettings(num_entities=60, dangling=0.1, seed=3))
GOLD = Links.union([WHOLE.train, WHOLE.valid, WHOLE.test])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """In it the quick run was done."""
    folder = tmp_path_factory.mktemp("overlap")
    workspace = Workspace(Options(work=folder / "work", output=folder / "out", quick=True))
    outcome = run_grids(overlap.grids(workspace))
    assert (outcome.done, outcome.there, outcome.failed) == (16, 0, {})
    return workspace


@pytest.fixture(scope="module")
def results(workspace):
    return results_of(EXPERIMENTS["overlap"].records(workspace.options.output))


def names_of(pair, links):
    """Links by the identifiers of their entities."""
    ends = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    return {(pair.source.entities[one], pair.target.entities[other]) for one, other in ends}


# ---- cutting --------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(share=st.floats(0, 1), seed=st.integers(0, 5))
def test_a_cut_keeps_the_share_of_links_and_gold_stays_complete(share, seed):
    pair, left = cut(WHOLE, GOLD, share, seed)
    all_links, kept = names_of(WHOLE, GOLD), names_of(pair, left)
    assert len(kept) == len(left) == round(share * len(GOLD))
    assert kept <= all_links
    sides = set(pair.source.entities), set(pair.target.entities)
    # Of every other link one end is gone, and only one; so no link is true that is not among those left.
    for one, other in all_links - kept:
        assert (one in sides[0]) != (other in sides[1])
    assert sides[0] | sides[1] <= {end for link in all_links for end in link}
    assert abs(len(sides[0]) - len(sides[1])) <= 1
    # The graphs are the whole ones but for what is gone.
    for small, whole in ((pair.source, WHOLE.source), (pair.target, WHOLE.target)):
        here = set(small.entities)
        assert relations(small) == {row for row in relations(whole) if row[0] in here and row[2] in here}
    assert pair.fingerprint == cut(WHOLE, GOLD, share, seed)[0].fingerprint


def test_a_cut_wants_one_to_one_gold():
    with pytest.raises(ValueError, match="two gold links"):
        cut(WHOLE, Links.of([0, 0], [1, 2]), 0.5)


def test_seeds_are_drawn_and_the_rest_is_gold(workspace):
    seeds, rest = draw_seeds(GOLD, 20)
    assert (len(seeds), len(rest)) == (20, len(GOLD) - 20)
    assert names_of(WHOLE, seeds) | names_of(WHOLE, rest) == names_of(WHOLE, GOLD)
    for beginning, number in ((NO_SEEDS, 0), (MANY, 50), (FIFTH, 20)):  # of 100 links half are seeds, not 100
        pair, gold = seen_and_judged(workspace, "quick", 0.5, beginning)
        assert (len(pair.train), len(gold)) == (number, 100 - number)
        assert len(pair.valid) == len(pair.test) == 0
        assert not np.isin(gold.source_ids, pair.train.source_ids).any()
    assert len(seen_and_judged(workspace, "quick", 1.0, MANY)[0].train) == 100


def test_unrelated_graphs_have_no_name_in_common():
    def graph(*names):
        return rlea.read([(name, "near", names[0]) for name in names], [("x", "near", "y")]).source

    pair = unrelated(graph("Île", "New York", "Rome"), graph("ile", "york", "York, New", "Old Rome Road", "Oslo"), "no")
    assert pair.target.entities == ("Oslo", "york")
    assert len(pair.source.entities) == 3


def test_tables_are_found_beside_the_data_sets(tmp_path):
    folder = tmp_path / "tables" / "shops"
    folder.mkdir(parents=True)
    (tmp_path / "sets").mkdir()
    (folder / "abt.csv").write_text("id|name|price\n1|Red lamp|10\n2|Blue chair|\n")
    (folder / "buy.csv").write_text("id|title|price\n7|chair, blue|20\n1|lamp|10\n")
    (folder / "gold.csv").write_text("D1|D2\n1|1\n2|7\n")
    for data in (tmp_path, tmp_path / "sets"):
        assert find_folder(data, "shops") == folder
        assert overlap.at_hand(data) == tuple(name for name in overlap.ALL if name != "bibliographies")
        pair = Workspace(Options(data=data)).pair("shops", "1")
        assert names_of(pair, pair.test) == {("0/1", "1/1"), ("0/2", "1/7")}
        assert pair.source.names == ("Red lamp", "Blue chair")
        assert sorted(pair.source.literals.values) == ["10", "Blue chair", "Red lamp"]
    (folder / "gold.csv").unlink()
    with pytest.raises(InputError, match=r"gold\.csv"):
        Workspace(Options(data=tmp_path)).pair("shops", "1")


# ---- cells ----------------------------------------------------------------------------------------------------------


def cells(**more):
    (grid,) = overlap.grids(Workspace(Options(**more)))
    return [tuple(cell.result.values()) for cell in grid.cells]


def test_cells_are_shares_by_beginnings():
    found = cells(pairs=(DEMO, "unrelated"), deciders=(AGENT,))
    wanted = [(DEMO, share, name, AGENT) for share in SHARES for name in BEGINNINGS if share or name == NO_SEEDS]
    assert found == [*wanted, ("unrelated", 0.0, NO_SEEDS, AGENT)]
    assert {row[0] for row in cells()} == set(overlap.ALL) - {"shops", "bibliographies"}
    assert {row[1] for row in cells(quick=True)} == set(QUICK_SHARES)


def test_what_means_nothing_is_refused(run_cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--folds means nothing here"):
        cells(quick=True, folds=("1", "2"))
    with pytest.raises(InputError, match="unknown beginning '100-seed' in this experiment; did you mean 100-seeds"):
        cells(quick=True, models=("100-seed",))
    for arguments, words in (
        (["--pairs", "dmeo"], "did you mean demo"),
        (["--pairs", "demo,D_W"], "--data is not given"),
        (["--pairs", "unrelated", "--data", "."], "has no data set D_W_15K_V1"),
    ):
        done = run_cli("reproduce", "overlap", *arguments)
        assert done.code == 2
        assert words in " ".join((done.err + done.out).split())
    done = run_cli("reproduce", "main", "--data", ".", "--pairs", "demo")
    assert "unknown data set 'demo'" in " ".join(done.err.split())
    assert list(tmp_path.iterdir()) == []


def test_cells_are_run_once_unless_something_has_changed(workspace):
    (grid,) = overlap.grids(workspace)
    assert run_grids([grid]).there == 16
    record, wanted = grid.store.records()["quick 0.5 20%-seeds fused"], grid.cells[6].wanted(silent)
    assert is_finished(record, wanted)
    for key in ("code", "fingerprint", "settings", "gold", "seed"):
        assert not is_finished(record | {key: "other"}, wanted)


@pytest.mark.parametrize("decider", ["fused", "paris"])
def test_the_figures_of_a_cell_by_hand(workspace, results, decider):
    (one,) = [
        row
        for row in results["overlap"]
        if (row["pair"], row["share"], row["beginning"], row["decider"]) == ("quick", 0.5, FIFTH, decider)
    ]
    whole = workspace.pair("quick", "1")
    pair, links = cut(whole, Links.union([whole.train, whole.valid, whole.test]), 0.5)
    seeds, gold = draw_seeds(links, 20)
    run = rlea.align(GraphPair("again", pair.source, pair.target, train=seeds), matcher=decider, pool="all")
    right = set(zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True))

    def rows(matching):
        columns = (matching.source_ids, matching.target_ids, matching.confidences)
        return [((s, t) in right, c) for s, t, c in zip(*(column.tolist() for column in columns), strict=True)]

    written, decided = rows(run.matching), rows(run.matching) + rows(run.doubtful)
    correct = sum(is_right for is_right, _ in written)
    assert (one["entities"], one["gold"], one["seeds"]) == (130, 80, 20)
    assert (one["links"], one["written"]) == (len(decided), len(written))
    assert one["precision"] == pytest.approx(correct / len(written))
    assert one["recall"] == pytest.approx(correct / 80)
    assert one["f1"] == pytest.approx(2 * correct / (len(written) + 80))
    for level, name in ((0.5, ".5"), (0.9, ".9")):
        kept = [is_right for is_right, confidence in decided if confidence >= level]
        assert one[f"links@{name}"] == len(kept) > 0
        assert one[f"precision@{name}"] == pytest.approx(np.mean(kept))
    error = 0.0
    for place in range(10):
        here = [(r, c) for r, c in decided if min(int(10 * c), 9) == place]
        if here:
            means = np.mean(here, axis=0)
            error += len(here) / len(decided) * abs(means[0] - means[1])
    assert one["ece"] == pytest.approx(error)
    ordered = sorted(decided, key=lambda row: -row[1])
    most = max(k for k in range(1, len(ordered) + 1) if np.mean([c for _, c in ordered[:k]]) >= 0.95)
    assert one["links_asked"] == most
    assert one["precision_asked"] == pytest.approx(np.mean([r for r, _ in ordered[:most]]))
    assert one["overlap_true"] == pytest.approx(80 / 130)
    if decider == AGENT:
        assert one["overlap"] == pytest.approx(run.overlap.shared / 130)
        assert 0 <= one["overlap_low"] <= one["overlap"] <= one["overlap_high"]
        assert one["expected_right"] == pytest.approx(sum(c for _, c in written))
    else:
        assert one["overlap"] is one["expected_right"] is None
        assert one["links"] == one["written"]


def test_where_nothing_can_be_right_there_is_no_f1(results):
    none = [one for one in results["overlap"] if not one["gold"]]
    assert {(one["pair"], one["decider"]) for one in none} == {
        (pair, decider) for pair in ("quick", "unrelated-synthetic") for decider in ("fused", "paris")
    }
    for one in none:
        assert one["f1"] is one["recall"] is None
        assert one["overlap_true"] == 0
        assert one["precision"] in (None, 0.0)
    assert precision_of(Matching.of([], [], []), Links.empty()) is None
    assert precision_of(Matching.of([1], [1], [0.5]), Links.empty()) == 0


# ---- what is shown --------------------------------------------------------------------------------------------------


def planted(**more):
    """A result of the agent, good in all respects."""
    figures = {"f1": 0.9, "precision": 0.9, "precision@.5": 0.95, "links@.9": 100, "precision@.9": 0.97, "ece": 0.01}
    figures |= {"overlap": 0.4, "overlap_low": 0.3, "overlap_high": 0.5, "overlap_true": 0.4, "entities": 200}
    figures |= {"gold": 80, "seeds": 0, "written": 75, "links_asked": 70, "precision_asked": 0.96}
    bins = {"calibration": [[0.05, 0.0, 30], [0.95, 0.9, 60]]}
    return {"pair": "D_W", "share": 0.25, "beginning": NO_SEEDS, "decider": AGENT, **figures, **bins, **more}


def test_the_table():
    nothing = {"f1": None, "gold": 0, "share": 0.0, "precision@.9": None, "links@.9": 0, "overlap_true": 0.0}
    rows = [
        planted(pair="unrelated", **nothing, written=1234),
        planted(),
        planted(beginning=FIFTH, ece=0.2, overlap=None),
        planted(decider="paris", f1=0.5),
        planted(pair="demo", share=0.5, overlap=0.6),
    ]
    by_share, means, worst = overlap.table({"overlap": rows}).split("\n\n")
    assert by_share.splitlines()[2:] == [
        "| D-W | 25 % | 200 | .900 / .970 / .010 / .400 (.400) | - | .900 / .970 / .200 / - (.400) |",
        "| demo | 50 % | 200 | .900 / .970 / .010 / .600 (.400) | - | - |",
        "| unrelated |  | 200 | 1,234 written / - / .010 / .400 (.000) | - | - |",
    ]
    assert means.splitlines()[2:] == [
        "| fused | no-seeds | 3 | .900 | .900 | .950 | .970 | .010 | .200 | .960 (210) |",
        "| fused | 20%-seeds | 1 | .900 | .900 | .950 | .970 | .200 | - | .960 (70) |",
        "| paris | no-seeds | 1 | .500 | .900 | .950 | .970 | .010 | .000 | .960 (70) |",
    ]
    assert "| calibration error | D-W 25 % 20%-seeds .200; " in worst
    assert "| overlap off by | unrelated no-seeds .400; demo 50 % no-seeds .200; " in worst
    assert off(rows[2]) is None


def test_remarks_count_what_is_off():
    rows = [
        planted(),
        planted(share=0.5, ece=0.06),
        planted(share=0.75, **{"precision@.9": 0.92}),
        planted(share=0.1, **{"precision@.9": 0.5, "links@.9": 4}),
        planted(share=1.0, overlap=0.6, overlap_low=0.55),
        planted(pair="unrelated", f1=None, gold=0, share=0.0, **{"links@.9": 0, "precision@.9": None}),
        planted(decider="paris", f1=0.95),
        planted(decider="paris", share=0.5, f1=0.5),
    ]
    text = overlap.remarks({"overlap": rows})
    assert "Of 6 cells of the agent, 1 have a calibration error above .05." in text
    assert "Of 5 cells with links of a confidence of .9 and more, 2 have a precision below .93 there, 1 of them" in text
    assert "off by more than .08 in 1 of 6 cells; the true one is between the bounds told in 5." in text
    assert "Where nothing is shared (1 cell), 75 links are written for 200 entities." in text
    assert (
        "The mean F1 of the agent is .900, that of PARIS on the same cells .725; PARIS has the higher F1 in 1" in text
    )
    assert overlap.remarks({"overlap": []}) == ""


def test_bins_are_pooled_over_runs():
    runs = [planted(), planted(calibration=[[0.97, 1.0, 20], [0.5, 0.5, 9]])]
    assert pooled(runs) == [pytest.approx((0.05, 0.0)), pytest.approx(((57 + 19.4) / 80, (54 + 20) / 80))]


def test_a_quick_run_writes_table_and_pictures(workspace, tmp_path, run_cli):
    """The cells are there already: what is left is to show them."""
    out = workspace.options.output
    done = run_cli("reproduce", "overlap", "--quick", "--work", tmp_path, "--output", out, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["done"], told["there"], told["failed"]) == (0, 16, {})
    assert {path.name for path in out.iterdir()} == {
        "overlap.csv", "overlap.json", "overlap.md", "overlap.svg", "overlap_reliability.svg"
    }  # fmt: skip
    assert (out / "overlap.md").read_text().startswith("| F1 / precision at .9")
    for name in ("overlap", "overlap_reliability"):
        assert (out / f"{name}.svg").read_text().startswith("<svg ")
    assert "as stated" in (out / "overlap_reliability.svg").read_text()
    lines = (out / "overlap.csv").read_text().splitlines()
    assert lines[0] == ",".join(STORE.columns)
    assert len(lines) == 17
