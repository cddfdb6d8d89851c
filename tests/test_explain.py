"""Explanations: by hand on a tiny pair, against the agent's features on a synthetic one, and on the command line."""

import contextlib
import json
import re
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import rlea
from rlea import cli
from rlea.agent.features import COLUMNS, compute_features
from rlea.agent.passes import Decisions
from rlea.agent.trace import DECISIONS as FILE
from rlea.agent.trace import Trace
from rlea.errors import InputError
from rlea.graph import KnowledgeGraph
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.search.pairs import Pairs
from rlea.views.explain import Run, explain
from rlea.views.explain.entities import find_entity, find_in_either
from rlea.views.explanation import explanation_view
from rlea.views.terminal import out

PAGE = Path(__file__).parent.parent / "docs" / "explain.md"
CITIES = [("Paris", "France", "Parigi", "Francia"), ("Rome", "Italy", "Roma", "Italia"),
          ("Madrid", "Spain", "Madrido", "Spagna")]  # fmt: skip


def run_align(monkeypatch, *arguments):
    """`rlea align` in this process, for fixtures that serve many tests."""
    monkeypatch.setattr(sys, "argv", ["rlea", "align", *map(str, arguments), "--json"])
    with contextlib.suppress(SystemExit):  # whether there is a run to be explained, the tests will see
        cli.main()


def write_europe(folder):
    """Three capitals of three seeded countries on a seeded continent; Atlantis has no counterpart."""
    s, t = "http://s.example/", "http://t.example/"
    source = [("Atlantis", "locatedIn", "Europe"), ("place/Springfield", "twinOf", "film/Springfield")]
    target = []
    seeds = [("Europe", "Europa")]
    for city, country, other_city, other_country in CITIES:
        source += [(city, "capitalOf", country), (city, "locatedIn", "Europe")]
        target += [(other_city, "hauptstadtVon", other_country), (other_city, "liegtIn", "Europa")]
        seeds.append((country, other_country))
    for name, prefix, triples in (("source.nt", s, source), ("target.nt", t, target)):
        lines = [" ".join(f"<{prefix}{word}>" for word in triple) + " .\n" for triple in triples]
        (folder / name).write_text("".join(lines))
    (folder / "seeds.tsv").write_text("".join(f"{s}{first}\t{t}{second}\n" for first, second in seeds))


@pytest.fixture(scope="module")
def europe(tmp_path_factory):
    """The folder of a run on the tiny pair; its inputs lie beside it and were typed as relative paths."""
    folder = tmp_path_factory.mktemp("europe")
    write_europe(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = "--seeds=seeds.tsv --matcher best-first --output runs/out -q"
        run_align(patch, "source.nt", "target.nt", *options.split())
    return folder / "runs" / "out"


@pytest.fixture
def own(europe, tmp_path):
    """A copy of the run and its inputs, to be changed; the record has paths that are gone, as after a move."""
    shutil.copytree(europe.parent.parent, tmp_path / "europe")
    run = tmp_path / "europe" / "runs" / "out"
    inputs = json.loads((run / "run.json").read_text())["inputs"]
    # Its files are to be changed one at a time, so it lists none, as records of earlier versions did.
    change_record(
        run,
        files={},
        inputs={name: path.replace(str(europe.parents[1]), "/gone/europe") for name, path in inputs.items()},
    )
    return run


def change_record(run, **changes):
    record = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**record, **changes}))


def drop_link(run, name):
    lines = (run / "links.tsv").read_text().splitlines(keepends=True)
    (run / "links.tsv").write_text("".join(line for line in lines if name not in line))


def confidences(run):
    rows = [line.split("\t") for line in (run / "links.tsv").read_text().splitlines()[1:]]
    return {source.removeprefix("http://s.example/"): float(value) for source, _, value, *_ in rows}


def keep_trace(run, order, logits=()):
    """A `decisions.safetensors` with the run's links in an order (source names), and pairs with logits."""
    opened = Run.open(run)
    source, target = opened.pair.source.entity_index, opened.pair.target.entity_index
    places = [opened.source_ids.tolist().index(source[f"http://s.example/{name}"]) for name in order]
    links = opened.source_ids[places], opened.target_ids[places]
    rows = sorted((source[f"http://s.example/{s}"], target[f"http://t.example/{t}"], logit) for s, t, logit in logits)
    pairs = Pairs(*(np.array([row[k] for row in rows], np.int32) for k in (0, 1)))
    values = np.array([row[2] for row in rows], np.float32)
    Trace.of(Decisions(*links, *[opened.confidences[places]] * 2, pairs, values)).save(run / FILE)


# ---- by hand --------------------------------------------------------------------------------------------------------


def test_a_link_by_hand(europe):
    """Relations correspond W / (W + 1), W the trust in the three cities; Europe has four places, a country one."""
    sure = confidences(europe)
    assert set(sure) == {"Paris", "Rome", "Madrid"}
    total = sum(sure.values())
    like = total / (total + 1)
    answer = explain(europe, "Paris")
    assert (answer.outcome, answer.target.name, answer.matcher, answer.pool) == (
        "matched", "Parigi", "best-first", "all"
    )  # fmt: skip
    assert answer.link.confidence == pytest.approx(sure["Paris"], abs=1e-6)
    assert (answer.link.step, answer.num_steps, answer.in_pool, answer.target_link) == (None, None, True, None)
    country, continent = answer.evidence.supports
    assert (country.source.name, country.target.name, country.is_seed) == ("France", "Francia", True)
    assert (country.source_relation.name, country.target_relation.name) == ("capitalOf", "hauptstadtVon")
    assert country.source_relation.is_outward
    assert country.target_relation.is_outward
    for row, identifying in ((country, 1.0), (continent, 0.25)):
        assert row.correspondence == pytest.approx(like, rel=1e-5)
        assert row.identifying == pytest.approx(identifying)
        assert row.trust == 1
        assert row.evidence == pytest.approx(like * identifying, rel=1e-5)
    assert answer.evidence.total == pytest.approx(1.25 * like, rel=1e-5)
    assert answer.evidence.source_contradictions == answer.evidence.target_contradictions == ()
    assert {(rival.target.name, rival.link.source.name) for rival in answer.rivals} == {
        ("Roma", "Rome"), ("Madrido", "Madrid")
    }  # fmt: skip
    for rival in answer.rivals:
        assert rival.evidence.total == pytest.approx(0.25 * like, rel=1e-5)
        assert rival.reason == f"taken by {rival.link.source.name} (confidence {rival.link.confidence:.2f})"


def test_a_pair_that_was_not_matched(europe):
    total = sum(confidences(europe).values())
    like = total / (total + 1)
    answer = explain(europe, "Paris", "Roma")
    assert answer.outcome == "not matched"
    assert (answer.link.target.name, answer.target_link.source.name) == ("Parigi", "Rome")
    assert [row.source.name for row in answer.evidence.supports] == ["Europe"]
    (mine,), (its,) = answer.evidence.source_contradictions, answer.evidence.target_contradictions
    assert (mine.neighbour.name, mine.counterpart.name, mine.relation.name) == ("France", "Francia", "capitalOf")
    assert (its.neighbour.name, its.counterpart.name, its.relation.name) == ("Italia", "Italy", "hauptstadtVon")
    for row in (mine, its):
        assert (row.seen, row.is_seed) == (0, True)
        assert row.missing == row.expected == pytest.approx(like, rel=1e-5)
    assert [rival.target.name for rival in answer.rivals] == ["Parigi", "Madrido"]
    assert answer.rivals[0].reason == "it is the link of the source"


def test_a_source_without_a_link_has_candidates(europe):
    answer = explain(europe, "Atlantis")
    assert (answer.outcome, answer.target, answer.link, answer.evidence) == ("no link", None, None, None)
    assert sorted(rival.target.name for rival in answer.rivals) == ["Madrido", "Parigi", "Roma"]
    assert all("taken by" in rival.reason for rival in answer.rivals)
    assert explain(europe, "http://s.example/film/Springfield").rivals == ()


def test_a_link_that_was_left_out_is_explained_without_a_trace(own):
    """A run without steps of its own has it in doubtful.tsv; it may be asked for by either end."""
    header, *lines = (own / "links.tsv").read_text().splitlines(keepends=True)
    (rome,) = (line for line in lines if "/Rome" in line)
    drop_link(own, "/Rome")
    assert explain(own, "Rome").dropped is None
    (own / "doubtful.tsv").write_text(header + rome)
    for asked in (explain(own, "Rome"), explain(own, "Roma")):
        assert asked.outcome in ("no link", "not matched")
        assert (asked.dropped.target.name, asked.dropped.step) == ("Roma", None)
        assert asked.dropped.confidence == pytest.approx(float(rome.split("\t")[2]), abs=1e-6)
        assert asked.evidence.supports
    taken = next(rival for rival in explain(own, "Atlantis").rivals if rival.target.name == "Roma")
    assert "dropped" in taken.reason


def test_seeds_were_given(europe):
    answer = explain(europe, "Europe")
    assert (answer.outcome, answer.link.is_seed, answer.in_pool) == ("seed", True, False)
    assert sorted(row.source.name for row in answer.evidence.supports) == ["Madrid", "Paris", "Rome"]
    assert not any(row.source_relation.is_outward for row in answer.evidence.supports)
    wrong = explain(europe, "Paris", "Francia")
    assert wrong.target_link.is_seed
    assert not wrong.in_pool
    # The counterpart of France is this very target: that is no contradiction.
    assert [row.neighbour.name for row in wrong.evidence.source_contradictions] == ["Europe"]


# ---- with the decisions ---------------------------------------------------------------------------------------------


def test_steps_and_logits(own):
    logits = [("Paris", "Parigi", 5.0), ("Paris", "Roma", 2.0), ("Paris", "Madrido", 3.0), ("Atlantis", "Roma", 1.0)]
    keep_trace(own, ["Madrid", "Paris", "Rome"], logits)
    answer = explain(own, "Paris")
    assert (answer.link.step, answer.num_steps, answer.evidence.logit) == (2, 3, 5.0)
    first, second = answer.rivals
    assert (first.target.name, first.evidence.logit, first.link.step) == ("Madrido", 3.0, 1)
    assert re.fullmatch(r"taken by Madrid \(step 1, confidence [\d.]+\)", first.reason)
    assert second.reason.endswith("after the source got its link (step 2)")
    (candidate,) = explain(own, "Atlantis").rivals
    assert candidate.reason.startswith("taken by Rome (step 3")
    # Rome has no pairs there: its rivals come from the neighbours.
    assert len(explain(own, "Rome").rivals) == 2
    # With a matcher that is not one-to-one, being taken is no reason.
    change_record(own, result={**json.loads((own / "run.json").read_text())["result"], "matcher": "nearest"})
    assert explain(own, "Paris").rivals[1].reason == "lower logit (2.00 against 5.00)"
    (own / FILE).unlink()
    assert explain(own, "Paris").rivals[0].reason.startswith("less evidence (0.")


def test_a_dropped_link_is_named(own):
    keep_trace(own, ["Rome", "Madrid", "Paris"], [("Rome", "Roma", 1.0), ("Madrid", "Roma", 0.5)])
    drop_link(own, "Rome")
    answer = explain(own, "Rome")
    assert (answer.outcome, answer.dropped.target.name, answer.dropped.step) == ("no link", "Roma", 1)
    # The evidence is that of the dropped pair, so that one can see why.
    assert answer.evidence == explain(own, "Rome", "Roma").evidence
    assert "Roma" not in [rival.target.name for rival in answer.rivals]
    other = explain(own, "Madrid").rivals[0]
    assert (other.target.name, other.link) == ("Roma", None)
    assert re.fullmatch(r"taken by Rome \(step 1, confidence [\d.]+\), a link that was dropped", other.reason)
    pair = explain(own, "Madrid", "Roma")
    assert (pair.dropped, pair.target_dropped) == (None, answer.dropped)
    alone = explain(own, "Roma")
    assert (alone.dropped, alone.target_dropped, alone.notes) == (answer.dropped, answer.dropped, ())


@pytest.mark.parametrize("how", ["other links", "other graphs"])
def test_decisions_of_another_run_are_ignored(own, how):
    keep_trace(own, ["Rome", "Madrid", "Paris"])
    trace = Trace.load(own / FILE)
    if how == "other links":
        replace(trace, confidences=trace.confidences[::-1] / 2).save(own / FILE)
    else:
        far = np.array([10**6], np.int32)
        one = {"logits": np.ones(1, np.float32), "features": np.zeros((1, 0), np.float32)}
        replace(trace, pair_source_ids=far, pair_target_ids=far, **one).save(own / FILE)
    answer = explain(own, "Paris")
    assert answer.num_steps is None
    assert "belongs to other links" in answer.notes[0]


# ---- against the agent's features -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """A run of the agent on a synthetic pair, and its decisions."""
    folder = tmp_path_factory.mktemp("synthetic")
    write_synthetic(folder / "pair", SyntheticSettings(num_entities=250, triples_per_entity=6, seed=3))
    pair = rlea.read(folder / "pair")
    result = rlea.align(pair, channels=("structure", "names"), pool="all")
    rlea.write(folder / "run", result)
    return Run.open(folder / "run", pair=pair), result.trace


def features_of(run, pairs):
    nothing = tuple(np.zeros((side.num_entities, 1), np.float32) for side in (run.pair.source, run.pair.target))
    features = compute_features(pairs, run.memory, nothing, evidence_weight=1.0).columns
    names = ("evidence", "missing source", "missing target")
    return np.stack([features[:, COLUMNS.index(name)] for name in names], axis=1).astype(np.float64)


def test_sums_are_the_features_of_the_agent(synthetic):
    """Links, near pairs and any pairs: evidence and contradictions add up to what the agent sees."""
    run, trace = synthetic
    rng = np.random.default_rng(0)
    anyone = rng.integers(run.pair.source.num_entities, size=200), rng.integers(run.pair.target.num_entities, size=200)
    pairs = Pairs.of(
        np.concatenate([run.source_ids, trace.pair_source_ids, anyone[0]]),
        np.concatenate([run.target_ids, trace.pair_target_ids, anyone[1]]),
    )
    seen = features_of(run, pairs)
    cases = [run.evidence_for(int(s), int(t)) for s, t in zip(pairs.source_ids, pairs.target_ids, strict=True)]
    rows = [(case.total, case.source_missing, case.target_missing) for case in cases]
    assert np.allclose(rows, np.column_stack([seen[:, 0] ** 2, seen[:, 1:]]), rtol=1e-4, atol=1e-5)
    assert (seen[:, 0] > 0).mean() > 0.3
    assert (seen[:, 1:] > 0).any(axis=0).all()
    for case in cases:
        assert case.total == pytest.approx(sum(row.evidence for row in case.supports))
        for row in (*case.source_contradictions, *case.target_contradictions):
            assert row.missing == pytest.approx(row.expected - row.seen)


def test_every_link_of_a_pass_has_its_step(synthetic):
    run, trace = synthetic
    assert len(trace) > 150
    for place, source in enumerate(trace.source_ids.tolist()[:40]):
        answer = run.explain(run.pair.source.entities[source])
        assert (answer.outcome, answer.link.step, answer.num_steps) == ("matched", place + 1, len(trace))
        assert answer.target.identifier == run.pair.target.entities[trace.target_ids[place]]
        logits = [rival.evidence.logit for rival in answer.rivals]
        assert len(logits) <= 5
        assert None in logits or logits == sorted(logits, reverse=True)


def test_without_decisions_the_best_by_evidence_are_found(synthetic):
    """Of all targets, by brute force."""
    run, _ = synthetic
    run = replace(run, trace=None)
    checked = 0
    for source in run.source_ids[::20].tolist():
        answer = run.explain(run.pair.source.entities[source])
        targets = np.flatnonzero(run._is_open[1])
        evidence = features_of(run, Pairs(np.full(len(targets), source, np.int32), targets.astype(np.int32)))[:, 0] ** 2
        evidence[targets == run.memory.counterparts[source]] = 0
        best = np.sort(evidence)[::-1][:5]
        found = [rival.evidence.total for rival in answer.rivals]
        assert np.allclose(found, best[: len(found)], rtol=1e-4)
        assert len(found) == min((best > 0).sum(), 5)
        checked += len(found)
    assert checked > 20


def star(prefix, leaves):
    rows = [(f"{prefix}hub", f"{prefix}r{2 - leaf % 3}", f"{prefix}{leaf:03}") for leaf in range(leaves)]
    return KnowledgeGraph.build(pl.DataFrame(rows, schema=["head", "relation", "tail"], orient="row"))


def star_run(leaves):
    source, target = star("s", leaves), star("t", leaves)
    ids = np.arange(leaves + 1, dtype=np.int32)  # of the leaves, then the hub
    pair = rlea.GraphPair("stars", source, target, rlea.Links.of(ids[::2], ids[::2]), default_pool="all")
    found = ids[1::2]
    return Run(pair, "best-first", "names", "all", found, found, np.full(len(found), 0.5, np.float32), None)


def test_hubs_and_many_relations_are_cut_as_the_agent_cuts_them(monkeypatch):
    run = star_run(300)
    hubs = run.pair.source.entity_index["shub"], run.pair.target.entity_index["thub"]
    evidence = run.evidence_for(*hubs)
    seen = features_of(run, Pairs.of(np.array(hubs[:1]), np.array(hubs[1:])))[0]
    assert evidence.total == pytest.approx(seen[0] ** 2, rel=1e-4)
    assert len(evidence.supports) == 256
    # Of r0, r1 and r2 with 10, 11 and 11 edges, and a cap of two, the last two are left and keep their names.
    monkeypatch.setattr("rlea.agent.memory.MAX_RELATIONS", 2)
    monkeypatch.setattr("rlea.views.explain.run.MAX_RELATIONS", 2)
    run = star_run(32)
    evidence = run.evidence_for(run.pair.source.entity_index["shub"], run.pair.target.entity_index["thub"])
    assert len(evidence.supports) > 10
    for row in evidence.supports:
        assert row.source_relation.name == f"sr{2 - int(row.source.name[1:]) % 3}"
        assert row.target_relation.name == f"tr{2 - int(row.target.name[1:]) % 3}"


# ---- names ----------------------------------------------------------------------------------------------------------


def test_a_target_alone_can_be_asked_for(own, run_cli):
    assert explain(own, "Roma") == explain(own, "Rome", "Roma") == explain(own, "<http://s.example/Rome>")
    assert explain(own, "http://t.example/Italia").outcome == "seed"
    drop_link(own, "Roma")
    done = run_cli("explain", own, "Roma")
    assert (done.code, done.out) == (2, "")
    assert "'Roma' of the target graph has no link; ask about a pair" in done.err
    assert explain(own, "Rome", "Roma").outcome == "not matched"
    keep_trace(own, ["Madrid", "Paris"], [("Paris", "Roma", 0.1), ("Madrid", "Roma", 0.5), ("Paris", "Parigi", 2.0)])
    answer = explain(own, "Roma")
    assert (answer.outcome, answer.source.name, answer.target.name) == ("not matched", "Madrid", "Roma")
    assert answer.notes == ("Roma has no link; this is the source with the highest score for it",)
    drop_link(own, "Madrid")
    answer = explain(own, "Madrido")
    assert (answer.source.name, answer.dropped.target.name) == ("Madrid", "Madrido")


def test_a_target_with_several_links_says_so(own):
    head, *rows = (own / "links.tsv").read_text().splitlines(keepends=True)
    sources = [row.split("\t")[0] for row in rows]
    changed = [f"{source}\thttp://t.example/Roma\t0.{k + 1}\t\t\n" for k, source in enumerate(sources)]
    (own / "links.tsv").write_text("".join([head, *changed]))
    answer = explain(own, "Roma")
    names = [source.rpartition("/")[2] for source in sources]
    assert answer.source.name == names[-1]
    assert answer.notes == (f"Roma has other links with lower confidence: {', '.join(names[-2::-1])}",)


def named(side, **names):
    """A graph of entities with these names, by identifier."""
    ends = [f"http://{side}/{key}" for key in names]
    triples = pl.DataFrame({"head": ends, "relation": ["http://r"] * len(ends), "tail": ends[::-1]})
    return KnowledgeGraph.build(triples, names=dict(zip(ends, names.values(), strict=True)))


def test_identifiers_come_before_names_and_names_before_spellings():
    pair = rlea.GraphPair("", named("s", a="C", b="A B"), named("t", c="C", d="C#", e="A_B", f="Python", a="Z"))
    meant = [find_in_either(pair, text) for text in ("C", "C#", "A_B", "A%20B", "http://t/a", "<http://t/c>", "a")]
    found = [(side, getattr(pair, side).names[number]) for side, number in meant]
    assert found == [
        ("source", "C"), ("target", "C#"), ("target", "A_B"), ("source", "A B"),
        ("target", "Z"), ("target", "C"), ("source", "C"),
    ]  # fmt: skip
    assert pair.target.names[find_entity(pair.target, "C#", "target", pair.source)] == "C#"
    # A name may be an identifier of the other graph.
    source = KnowledgeGraph.build(pl.DataFrame({"head": ["Python"], "relation": ["r"], "tail": ["Snake"]}))
    assert find_in_either(replace(pair, source=source), "Python") == ("source", 0)
    triples = pl.DataFrame({"head": ["http://x/resource/New_York%21"], "relation": ["r"], "tail": ["http://x/Q1"]})
    graph = KnowledgeGraph.build(triples, names={"http://x/Q1": "Hudson"})
    ids = [find_entity(graph, text, "source") for text in ("New York!", "New_York%21", "New_York!", "Hudson", "Q1")]
    assert [graph.entities[number] for number in ids] == ["http://x/resource/New_York%21"] * 3 + ["http://x/Q1"] * 2
    with pytest.raises(InputError, match="is in the target graph"):
        find_entity(pair.source, "http://t/c", "source", pair.target)
    with pytest.raises(InputError, match="neither graph has an entity 'http://u/a'"):
        find_in_either(pair, "http://u/a")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Pariss"], "neither graph has an entity 'Pariss'; did you mean Paris."),
        (["Madriddo"], "did you mean Madrid or Madrido."),
        (["Paris", "Romma"], "the target graph has no entity 'Romma'; did you mean Roma."),
        (["Rome", "Paris"], "the target graph has no entity 'Paris'; it is in the source graph"),
        (["Roma", "Rome"], "the source graph has no entity 'Roma'; it is in the target graph"),
        (["xyzzy"], "such as http://s.example/Atlantis."),
        ([""], "neither graph has an entity ''"),
        (["http://s.example/Pari"], "did you mean http://s.example/Paris"),
        (
            ["Springfield"],
            "2 entities of the source graph are called 'Springfield'; give the identifier: http://s.example",
        ),
    ],
)
def test_unknown_entities_end_in_one_sentence(europe, run_cli, arguments, words):
    done = run_cli("explain", europe, *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_in_large_graphs_close_names_have_the_same_first_letter(europe, monkeypatch):
    monkeypatch.setattr("rlea.views.explain.entities.MOST_COMPARED", 2)
    with pytest.raises(InputError, match="did you mean Paris"):
        explain(europe, "pariss")


# ---- the command line -----------------------------------------------------------------------------------------------


def printed(run_cli, *arguments):
    done = run_cli("explain", *arguments)
    assert (done.code, done.err) == (0, "")
    return " ".join(done.out.split())


def test_the_terminal_shows_the_same(own, run_cli):
    done = run_cli("explain", own, "Paris", "Roma", "--json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == json.loads(json.dumps(asdict(explain(own, "Paris", "Roma"))))
    text = printed(run_cli, own, "Paris")
    for words in ("Paris - Parigi", "Matched by best-first on names: confidence", "France", "Francia (seed)",
                  "capitalOf →", "hauptstadtVon →", "Rivals", "taken by Rome"):  # fmt: skip
        assert words in text
    assert "matched elsewhere" not in text
    text = printed(run_cli, own, "Paris", "Roma")
    for words in ("Not matched", "Paris is matched with Parigi: confidence", "Roma is matched with Rome: confidence",
                  "Neighbours matched elsewhere", "Italia"):  # fmt: skip
        assert words in text
    assert "No link was found by best-first" in printed(run_cli, own, "Atlantis")
    assert "A seed: it was given" in printed(run_cli, own, "Europe")
    assert "not to be matched" in printed(run_cli, own, "Paris", "Francia")
    lonely = printed(run_cli, own, "http://s.example/film/Springfield", "Roma")
    assert "No matched neighbour supports it" in lonely
    keep_trace(own, ["Rome", "Madrid", "Paris"], [("Paris", "Parigi", 1.5), ("Paris", "Roma", 0.5)])
    text = printed(run_cli, own, "Paris")
    assert "step 3 of 3, confidence" in text
    assert "logit" in text
    drop_link(own, "Rome")
    assert "It was matched with Roma (step 1 of 3" in printed(run_cli, own, "Rome")
    assert printed(run_cli, own, "Roma").count("Rome was matched with Roma (step 1 of 3") == 1
    with out.capture() as caught:
        out.print(explanation_view(star_run(40).explain("shub", "thub"), rows=3))
    assert "and 37 more (--json has them all)" in " ".join(caught.get().split())
    replace(Trace.load(own / FILE), target_ids=np.zeros(3, np.int32)).save(own / FILE)
    assert "Note: decisions.safetensors belongs to other links" in printed(run_cli, own, "Paris")


@pytest.mark.parametrize("matcher", ["nearest", "stable", "fused"])
def test_runs_of_any_matcher(own, run_cli, matcher, monkeypatch):
    monkeypatch.chdir(own.parent.parent)
    files = ["source.nt", "target.nt", "--seeds", "seeds.tsv"]
    assert run_cli("align", *files, "--matcher", matcher, "--output", "x", "--json").code == 0
    answer = json.loads(run_cli("explain", "x", "Paris", "Parigi", "--json").out)
    assert answer["matcher"] == matcher
    assert answer["embedding"] == ("" if matcher == "fused" else "names")
    assert answer["evidence"]["supports"]
    assert f"by {matcher}{' on names' if answer['embedding'] else ''}" in printed(run_cli, "x", "Paris", "Parigi")


def test_a_benchmark_folder_with_a_fold_is_found_from_elsewhere(run_cli, tmp_path, monkeypatch):
    from rlea.io.synthetic import generate
    from rlea.io.writers.graphs import write_pair

    write_pair(tmp_path / "pair", generate(SyntheticSettings(num_entities=60, seed=1)), "openea")
    monkeypatch.chdir(tmp_path)
    done = run_cli("align", "pair", "--fold", 1, "--embedding=names", "--pool", "all", "-q", "--output", "deep/out")
    assert done.code == 0, done.err
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    source = (tmp_path / "deep" / "out" / "links.tsv").read_text().splitlines()[1].split("\t")[0]
    assert json.loads(run_cli("explain", tmp_path / "deep" / "out", source, "--json").out)["outcome"] == "matched"


# ---- bad input ------------------------------------------------------------------------------------------------------


def append_triple(run):
    with (run.parents[1] / "source.nt").open("a") as file:
        file.write("<http://s.example/a> <http://s.example/b> <http://s.example/c> .\n")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda run: (run / "run.json").unlink(), "is not the folder of a run; give the folder"),
        (lambda run: (run / "run.json").write_text("{"), "cannot be read as the record"),
        (lambda run: (run / "run.json").write_text("[]"), "is not the record of an alignment"),
        (lambda run: change_record(run, fingerprint=None), "is not the record of an alignment"),
        (lambda run: change_record(run, result={"matcher": "none"}), "is not the record of an alignment"),
        (lambda run: change_record(run, inputs={}), "run.json does not say where the graphs are"),
        (
            lambda run: change_record(run, inputs=None),
            "of an earlier version, of graphs made in Python, or of standard input; align",
        ),
        (lambda run: (run.parents[1] / "target.nt").unlink(), "target.nt of this run is not there; put it back"),
        (lambda run: (run.parents[1] / "seeds.tsv").unlink(), "seeds.tsv of this run is not there"),
        (append_triple, "have changed since this run; align them again"),
        (
            lambda run: (run / "links.tsv").write_text("source\ttarget\tconfidence\nhttp://s.example/Oslo\tx\t1\n"),
            "links.tsv, line 2: the graphs have no entity 'http://s.example/Oslo'",
        ),
        (lambda run: (run / FILE).write_bytes(b"nothing"), "cannot be read as the decisions of a run"),
    ],
)
def test_a_changed_run_ends_in_one_sentence(own, run_cli, spoil, words):
    spoil(own)
    done = run_cli("explain", own, "Paris")
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_the_pair_can_be_given(own):
    expected = explain(own, "Paris")
    pair = Run.open(own).pair
    result = {**json.loads((own / "run.json").read_text())["result"], "hidden": None}
    change_record(own, inputs={}, embedding_info=None, result=result)  # nor is anything else of the record needed
    assert explain(own, "Paris", pair=pair) == expected
    with pytest.raises(InputError, match="have changed since this run"):
        explain(own, "Paris", pair=replace(pair, train=rlea.Links.empty()))
    (own / "links.tsv").write_text("source\ttarget\tconfidence\n")
    assert explain(own, "Paris", pair=pair).outcome == "no link"


# ---- the page -------------------------------------------------------------------------------------------------------

NUMBER = r"-?[\d,]+(?:\.\d+)?"
FEATURES = "Features by channel"


def read_printed(text):
    """The lines before the first table, and of every table, by title (numbers as #), the text of its columns."""
    lines, head, tables = text.rstrip().splitlines(), [], {}
    for number, line in enumerate(lines):
        if line.startswith("┏"):
            end = next(place for place in range(number, len(lines)) if lines[place].startswith("└"))
            rows = [re.split("[┃│]", row)[1:-1] for row in lines[number + 1 : end] if not row.startswith("┡")]
            columns = [" ".join(" ".join(cells).split()) for cells in zip(*rows, strict=True)]
            tables[re.sub(NUMBER, "#", lines[number - 1]).strip()] = columns
        elif not tables:
            head.append(line)
    return head[:3], tables


def headings_of(columns):
    """The first words of the columns, which are their headings."""
    return [re.match(r"why not|matched with|this pair|\S+", column).group() for column in columns]


def test_the_page_shows_what_is_printed(run_cli, tmp_path, monkeypatch):
    """Sentences, tables and headings. Which links the agent finds may differ by machine."""
    page = PAGE.read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in re.search(r"```sh\n(.*?)```", page, flags=re.S).group(1).splitlines()]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rlea.cli.align.out", Console(width=80))
    done = [run_cli(*command) for command in commands]
    assert [one.code for one in done] == [0, 0]
    of_page = read_printed(re.search(r"```text\n(.*?)```", page, flags=re.S).group(1))
    of_run = read_printed(done[1].out)
    for head, _ in (of_page, of_run):
        assert re.fullmatch(rf"{commands[1][-1]} - .+", head[0])
        assert re.fullmatch(r"https://\S+ - https://\S+", head[1])
        assert re.fullmatch(rf"Matched by fused: step {NUMBER} of {NUMBER}, confidence {NUMBER}\.", head[2])
    assert of_page[1][FEATURES][:2] == of_run[1][FEATURES][:2]  # all channels and the meanings of their features
    # Other tables depend on the neighbours that are linked; the links of the run together have all of them.
    run, printed_ones = Run.open(tmp_path / commands[0][-1]), {**of_run[1]}
    for source in run.source_ids.tolist():
        if printed_ones.keys() >= of_page[1].keys():
            break
        screen = Console(width=80)
        with screen.capture() as caught:
            screen.print(explanation_view(run.explain(run.pair.source.entities[source])))
        printed_ones |= read_printed(caught.get())[1]
    for title, columns in of_page[1].items():
        if title != FEATURES:
            assert headings_of(printed_ones[title]) == headings_of(columns), title
