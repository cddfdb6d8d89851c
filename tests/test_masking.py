"""What is hidden is nowhere to be found: not in the graphs that models see, and not in what they make of them."""

import contextlib
import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlea
from rlea import commands
from rlea.errors import InputError
from rlea.evidence.paris import ParisSettings, run_paris
from rlea.graph import GraphPair, Links
from rlea.graph.masking import hide, parse_hidden
from rlea.graph.names import LABELS, SECOND_LABELS, is_readable, local_name, plain
from rlea.io.synthetic import SyntheticSettings, generate, synthetic_embeddings
from rlea.io.writers.graphs import write_pair
from rlea.io.writers.vectors import write_embeddings
from rlea.matching import Task
from rlea.models import MODELS
from rlea.models.embed import UNKNOWN, check_hidden, check_vectors, embed_entities, shown_uses
from rlea.models.name_vectors import readable_names
from rlea.models.names import embed_names
from rlea.search.embeddings import Embeddings
from small_graphs import build

NEEDS_NAMES = [name for name, model in MODELS.items() if "names" in model.uses]


@pytest.fixture(scope="module")
def pair():
    return generate(SyntheticSettings(num_entities=150, num_relations=8))


@pytest.fixture(scope="module")
def folder(pair, tmp_path_factory):
    made = tmp_path_factory.mktemp("blind") / "pair"
    write_pair(made, pair)
    return made


@pytest.fixture(scope="module")
def vectors(folder):
    """Vectors of nobody knows what, as a file."""
    pair = rlea.read(folder)
    made = synthetic_embeddings(pair, noise=0.3)
    write_embeddings(folder.parent / "vectors.safetensors", replace(made, info={}), pair.source, pair.target)
    return folder.parent / "vectors.safetensors"


def graph_of(literals, *, names=None, entities=()):
    """A graph whose triples join the entities in a row."""
    ends = sorted({row[0] for row in literals} | set(entities))
    triples = [(one, "http://r/near", other) for one, other in zip(ends, ends[1:] + ends[:1], strict=True)]
    return build(triples, literals, names=names, entities=entities)


def strings_of(graph):
    """All text of a graph that a model might look at."""
    return [*graph.entities, *graph.relations, *graph.attributes, *graph.names, *graph.literals.values]


# ---- no string of a name is left ------------------------------------------------------------------------------------

WORDS = st.text("abcdefgéßжю京都", min_size=2, max_size=6)
NAMES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
ATTRIBUTES = ("http://a/code", "http://a/text", "http://a/birthName", LABELS[0], LABELS[1], SECOND_LABELS[0])


@st.composite
def described_graphs(draw, side):
    """A graph in which names stand in identifiers, labels, names given beside, and inside of other values."""
    names = draw(st.lists(NAMES, min_size=1, max_size=8, unique=True))
    identifiers = [f"http://{side}/resource/{number}_{name.replace(' ', '_')}" for number, name in enumerate(names)]
    rows = []
    for identifier, name in zip(identifiers, names, strict=True):
        for attribute in draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=4)):
            form = draw(st.sampled_from(["{}", "the {}.", "{}!", "http://x/{}#y", "{}京", "7"]))
            shape = draw(st.sampled_from([str, str.upper, str.title, lambda text: text.replace(" ", "_")]))
            rows.append((identifier, attribute, form.format(shape(name))))
        rows.append((identifier, "http://a/number", str(draw(st.integers(0, 10**6)))))
        if draw(st.booleans()):
            rows.append((identifier, "http://a/text", draw(WORDS)))
    called = dict(zip(identifiers, names, strict=True)) if draw(st.booleans()) else None
    return graph_of(rows, names=called)


@given(described_graphs("s"), described_graphs("t"))
@settings(max_examples=60, deadline=None)
def test_no_entity_keeps_a_string_of_its_name(source, target):
    both = range(min(source.num_entities, target.num_entities))
    whole = GraphPair("p", source, target, train=Links.of(both, both))
    seen = hide(whole, ["names"])
    for before, after in ((source, seen.source), (target, seen.target)):
        assert set(after.names) == {""}
        assert all(re.fullmatch(r"urn:hidden:\d+", code) for code in after.entities)
        assert after.triples.tobytes() == before.triples.tobytes()
        values = [[] for _ in after.entities]
        for entity, value in zip(after.literals.entity_ids.tolist(), after.literals.values, strict=True):
            values[entity].append(plain(value).replace(" ", ""))
        facts = before.literals
        for entity, (identifier, name) in enumerate(zip(before.entities, before.names, strict=True)):
            labels = [
                facts.values[row]
                for row in np.flatnonzero(facts.entity_ids == entity)
                if before.attributes[facts.attribute_ids[row]] in (*LABELS, *SECOND_LABELS)
            ]
            for known in (name, local_name(identifier), *labels):
                if is_readable(known):
                    text = plain(known).replace(" ", "")
                    assert not [value for value in values[entity] if text in value]


def test_the_hidden_names_are_nowhere(pair):
    """Names that occur nowhere else are found nowhere at all, in neither graph; the other literals stay."""
    seen = hide(pair, "names")
    for before, after in ((pair.source, seen.source), (pair.target, seen.target)):
        everything = plain(" ".join(strings_of(after)))
        assert not [name for name in before.names if plain(name) in everything]
        assert not [one for one in before.entities if one in everything]
        others = sum(before.attributes[number] not in LABELS for number in before.literals.attribute_ids.tolist())
        assert len(after.literals) == others > 0
        assert not set(LABELS) & set(after.attributes)
        assert list(after.entities) == sorted(after.entities)
    assert not set(seen.source.entities) & set(seen.target.entities)


def test_attributes_that_say_names_go_whole_and_seeds_tell_which():
    """P1 says the name, once in another language; the graph itself has nothing but codes for names."""
    english = ["north hill", "old bridge", "red mill", "green lake", "stone gate", "white tower", "long street"]
    opaque = [f"http://w/Q{number}" for number in range(len(english))]
    told = [*english[:-1], "lange strasse"]
    source = graph_of(
        [(one, "http://w/P1", name) for one, name in zip(opaque, told, strict=True)]
        + [(one, "http://w/P2", f"{1900 + number}-01-01") for number, one in enumerate(opaque)]
    )
    target = graph_of([(f"http://d/{name.replace(' ', '_')}", "http://d/year", "1900") for name in english])
    links = [(s, target.entity_index[f"http://d/{name.replace(' ', '_')}"]) for s, name in enumerate(english)]
    seeds = Links.of(*np.array(links).T)
    assert hide(GraphPair("p", source, target, train=seeds), "names").source.attributes == ("http://w/P2",)
    # Without seeds its values tell: they look like names.
    assert hide(GraphPair("p", source, target), "names").source.attributes == ("http://w/P2",)


def test_parts_of_names_and_values_that_only_look_like_some():
    one = "http://d/Albert_Einstein"
    rows = [
        (one, "http://a/family", "Einstein"),
        (one, "http://a/full", "Albert Otto Einstein"),
        (one, "http://a/handle", "AlbertEinstein55"),
        (one, "http://a/born", "1879-03-14"),
        (one, "http://a/field", "physics"),
        ("http://d/66", "http://a/length", "3669"),
        ("http://d/66", "http://a/number", "66"),
    ]
    seen = hide(GraphPair("p", graph_of(rows), graph_of(rows)), "names")
    assert set(seen.source.literals.values) == {"1879-03-14", "physics", "3669"}


def test_hidden_attributes_take_labels_with_them_and_leave_other_names():
    rows = [
        ("http://d/Q1", LABELS[0], "One"),
        ("http://d/Two_Words", LABELS[0], "Zwei"),
        ("http://d/Three", "http://a/x", "3"),
    ]
    graph = graph_of(rows, names={"http://d/Three": "given"})
    assert dict(zip(graph.entities, graph.names, strict=True))["http://d/Two_Words"] == "Zwei"
    seen = hide(GraphPair("p", graph, graph), "attributes").source
    assert dict(zip(seen.entities, seen.names, strict=True)) == {
        "http://d/Q1": "Q1",
        "http://d/Two_Words": "Two Words",
        "http://d/Three": "given",
    }
    assert (seen.attributes, len(seen.literals)) == ((), 0)
    both = hide(GraphPair("p", graph, graph), "attributes,names").source
    assert set(both.names) == {""}
    assert len(both.literals) == 0


def test_hiding_twice_is_hiding_once_and_hiding_nothing_is_nothing(pair):
    assert hide(pair, ()) is pair
    once = hide(pair, "names")
    assert hide(once, "names").fingerprint == once.fingerprint
    prints = {hide(pair, what).fingerprint for what in ((), ("names",), ("attributes",), ("names", "attributes"))}
    assert len(prints) == 4


# ---- renaming changes nothing ---------------------------------------------------------------------------------------


def renamed(pair, seed=7):
    """All entities under other identifiers, names and labels; the order of the identifiers stays, as ids hang on it."""
    rng = np.random.default_rng(seed)

    def word():
        return "".join(rng.choice(list("qwxyzkvj"), 9))

    def other(graph):
        called = [f"{word()} {word()}" for _ in graph.entities]
        facts = graph.literals
        values = tuple(
            called[entity] if graph.attributes[attribute] in LABELS else value
            for entity, attribute, value in zip(facts.entity_ids, facts.attribute_ids, facts.values, strict=True)
        )
        entities = tuple(f"http://new/{number:06d}/{word()}" for number in range(graph.num_entities))
        return replace(graph, entities=entities, names=tuple(called), literals=replace(facts, values=values))

    return replace(pair, source=other(pair.source), target=other(pair.target))


def same(one, other):
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("source_ids", "target_ids", "confidences")
    )


def test_renaming_all_entities_changes_nothing_that_a_model_may_see(pair):
    """The same fingerprint: whatever a model makes of the graphs, it makes the same of both."""
    assert renamed(pair).fingerprint != pair.fingerprint
    assert hide(renamed(pair), "names").fingerprint == hide(pair, "names").fingerprint


@pytest.mark.parametrize("matcher", ["best-first", "paris", "fused"])
def test_a_blind_run_gives_the_same_links_under_other_names(pair, matcher, monkeypatch):
    monkeypatch.setattr("rlea.models.embed.embed_entities", functools.partial(embed_entities, epochs=5))
    if matcher == "fused":  # plays the whole many times
        pair = generate(SyntheticSettings(num_entities=70, num_relations=8))
    chosen = rlea.AlignSettings(matcher=matcher, embedding="aligne" if matcher == "best-first" else (), hide="names")
    one, other = (rlea.align(each, chosen, device="cpu") for each in (pair, renamed(pair)))
    assert len(one.matching) > 20
    assert same(one.matching, other.matching)
    assert one.pair is pair  # so that the links are written under the true identifiers
    assert one.summary()["hidden"] == one.info["hidden"] == ["names"]
    assert one.info["fingerprint_seen"] == hide(pair.without_gold, "names").fingerprint


def test_the_same_run_with_names_does_not(pair):
    """The test above can fail: a channel that looks at names tells the two runs apart."""
    one, other = (rlea.align(each, matcher="greedy") for each in (pair, renamed(pair)))
    assert not same(one.matching, other.matching)


# ---- every way to a model -------------------------------------------------------------------------------------------


class SeenError(Exception):
    """Enough was seen."""


@pytest.fixture
def watch(monkeypatch):
    """Graphs that reach a model, a matcher or an agent, by what saw them; the model makes vectors of nothing."""
    import rlea.agent.agent
    import rlea.models.aligne
    import rlea.paper.agent

    seen = {}

    def note(who):
        def hook(*given, **more):
            at = next(one for one in given if isinstance(one, (GraphPair, Task)))
            seen.setdefault(who, []).append(at)
            if who != "model":
                raise SeenError
            rng = np.random.default_rng(0)
            made = [rng.random((graph.num_entities, 8), np.float32) for graph in (at.source, at.target)]
            return Embeddings(*made, info={"model": "AlignE", "seconds": 0.0})

        return hook

    monkeypatch.setattr(rlea.models.aligne, "train_aligne", note("model"))
    monkeypatch.setattr(rlea.agent.agent.Aligner, "fit", note("agent"))
    monkeypatch.setattr(rlea.paper.agent.Agent, "fit", note("agent"))
    monkeypatch.setattr("rlea.matchers.best_first.match", note("matcher"))
    monkeypatch.setattr("rlea.evidence.paris.run_paris", note("paris"))
    # The toy task, on which compiled code is loaded, has names of its own.
    monkeypatch.setattr("rlea.deciders.Inputs._load_compiled", lambda *given: None)
    return seen


BLIND = {"embedding": "aligne", "hide": "names"}
KEPT = {"fold": None, "seed": 0, "hidden": ("names",)}
WAYS = {
    "align": (lambda pair, folder, out: rlea.align(pair, matcher="best-first", **BLIND), {"model", "matcher"}),
    "paris": (lambda pair, folder, out: rlea.align(pair, matcher="paris", hide="names"), {"paris"}),
    "fused": (lambda pair, folder, out: rlea.align(pair, hide="names"), {"agent"}),
    "vectors": (lambda pair, folder, out: rlea.align(pair, **BLIND), {"model", "agent"}),
    "paper": (lambda pair, folder, out: rlea.align(pair, matcher="rlea", preset="paper", **BLIND), {"model", "agent"}),
    "joint": (lambda pair, folder, out: rlea.align(pair, matcher="rlea", joint=1, **BLIND), {"model", "agent"}),
    "compare": (lambda pair, folder, out: list(rlea.compare(pair, ["best-first"], **BLIND)), {"model", "matcher"}),
    "embed": (lambda pair, folder, out: commands.embed_to_file(folder, "aligne", out, epochs=1, **KEPT), {"model"}),
    "train": (
        lambda pair, folder, out: commands.train_to_file(
            folder, ["aligne"], "", out, device="cpu", episodes=None, **KEPT
        ),
        {"model", "agent"},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_around_it(pair, folder, tmp_path, watch, way):
    run, expected = WAYS[way]
    with contextlib.suppress(SeenError):
        run(pair, folder, tmp_path / "x.safetensors")
    assert set(watch) == expected
    for at in (one for many in watch.values() for one in many):
        for before, after in ((pair.source, at.source), (pair.target, at.target)):
            everything = plain(" ".join(strings_of(after)))
            assert not [name for name in before.names if plain(name) in everything]


def test_channels_of_names_find_nothing_in_hidden_ones(pair):
    """Names as vectors, names for RDGCN, and names as facts of PARIS: all silent."""
    seen = hide(pair, "names")
    vectors = embed_names(seen)
    assert vectors.source.nnz == vectors.target.nnz == 0
    assert set(readable_names(seen.source, seen.target, seen.train)[0]) == {""}
    with_names, without = (run_paris(seen, ParisSettings(use_names=use)) for use in (True, False))
    assert with_names.source_ids.tobytes() == without.source_ids.tobytes()
    assert with_names.doubts.tobytes() == without.doubts.tobytes()


def test_a_checkpoint_is_not_carried_on_by_a_run_that_sees_something_else(pair, tmp_path):
    kept = tmp_path / "c"
    embed_entities(pair, "aligne", device="cpu", epochs=10, checkpoint=kept)
    assert kept.exists()
    with pytest.raises(InputError, match="another run"):
        embed_entities(pair, "aligne", device="cpu", epochs=10, checkpoint=kept, hidden=["names"])


# ---- what is refused, and what does without -------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEEDS_NAMES)
def test_models_of_names_are_refused_in_one_sentence(run_cli, folder, name):
    assert NEEDS_NAMES == ["names", "rdgcn"]
    for command in (["align", folder, "--embedding"], ["bench", folder, "--embedding"], ["embed", folder, "--model"]):
        if (command[0], name) != ("embed", "names"):  # has no vectors worth keeping in any case
            done = run_cli(*command, name, "--hide", "names")
            assert done.code == 2
            assert f"{name} looks at names and these are hidden" in done.err
            assert "aligne" in done.err
    more = {"fold": None, "seed": 0, "device": "cpu", "episodes": 1, "hidden": ["names"]}
    with pytest.raises(InputError, match="these are hidden"):
        commands.train_to_file(folder, [name], "paper", folder / "a.safetensors", **more)


def test_only_what_there_is_can_be_hidden():
    assert parse_hidden(" attributes , names,") == ("names", "attributes")
    assert rlea.AlignSettings(hide="attributes,names").hide == ("names", "attributes")
    with pytest.raises(InputError):
        rlea.AlignSettings(hide=("name",))


@pytest.mark.parametrize("model", ["jape", "gcnalign"])
def test_models_do_without_attributes_and_say_so(pair, model):
    check_hidden(("attributes",), model)
    made = embed_entities(pair, model, device="cpu", epochs=1, hidden=("attributes",))
    assert made.info["hidden"] == ["attributes"]
    assert made.info["attributes"] is False or made.info["attributes"].startswith("not used")
    assert shown_uses(model, ("attributes",)) == "structure"


def test_vectors_of_a_file_are_judged_by_what_they_tell():
    hidden = ("names", "attributes")
    assert check_vectors(("names",), {"model": "AlignE"}, "x") == {"model": "AlignE"}
    assert "hidden_note" not in check_vectors(hidden, {"model": "RDGCN", "hidden": list(hidden)}, "x")
    assert check_vectors(("names",), {}, "x") == {"hidden_note": UNKNOWN}
    assert check_vectors(("names",), {"model": "RDGCN", "library": "PyKEEN"}, "x")["hidden_note"] == UNKNOWN
    with pytest.raises(InputError, match="RDGCN, which looks at names"):
        check_vectors(hidden, {"model": "RDGCN"}, "x")
    with pytest.raises(InputError, match="GCN-Align, which looks at attributes"):
        check_vectors(hidden, {"model": "GCN-Align", "hidden": ["names"]}, "x")


# ---- what is told afterwards ----------------------------------------------------------------------------------------


def test_the_folder_of_a_blind_run(run_cli, folder, vectors, tmp_path):
    out = tmp_path / "out"
    arguments = ["align", folder, "--matcher", "best-first", "--embedding", vectors, "--output", out]
    done = run_cli(*arguments, "--hide", "names")
    assert done.code == 0, done.err
    assert UNKNOWN in " ".join(done.out.replace("│", " ").split())
    record = json.loads((out / "run.json").read_text())
    assert record["result"]["hidden"] == ["names"]
    assert record["result"]["strings"]["solved"] > 0.1  # of the graphs as they are
    pair = rlea.read(folder)
    rows = [line.split("\t") for line in (out / "links.tsv").read_text().splitlines()[1:]]
    assert len(rows) > 50
    assert {row[0] for row in rows} <= set(pair.source.entities)
    assert {row[1] for row in rows} <= set(pair.target.entities)
    page = (out / "report.html").read_bytes()
    assert b"Hidden from all models: names" in page
    assert run_cli("report", out).code == 0
    assert (out / "report.html").read_bytes() == page
    assert run_cli("explain", out, rows[0][0]).code == 0
    # These vectors hang on nothing hidden, nor does this matcher: with names shown the links are the same.
    assert run_cli(*arguments[:-1], tmp_path / "open").code == 0
    assert (tmp_path / "open" / "links.tsv").read_bytes() == (out / "links.tsv").read_bytes()
    assert json.loads((tmp_path / "open" / "run.json").read_text())["result"]["hidden"] == []


def test_blind_vectors_are_known_again(run_cli, folder, tmp_path):
    file = tmp_path / "v.safetensors"
    done = run_cli("embed", folder, "--hide", "names,attributes", "--epochs", 2, "--output", file, "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["hidden"] == ["names", "attributes"]
    done = run_cli("bench", folder, "--embedding", file, "--hide", "names", "--matchers", "greedy,paris", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["hidden"] == ["names"]
    assert told["strings"]["gold"] == 105
    done = run_cli("bench", folder, "--embedding", file, "--hide", "names,attributes", "--matchers", "greedy")
    assert "names and attributes hidden" in " ".join(done.out.split())
    assert UNKNOWN not in " ".join(done.out.split())
