"""The flow: it does not peek at gold links, shares what can be shared, and refuses what would not be used."""

import re
from dataclasses import replace

import numpy as np
import pytest

import rlea
from rlea import deciders
from rlea.commands import bench_summary
from rlea.deciders import DECIDERS, Decision, choose_search
from rlea.errors import InputError
from rlea.graph import GraphPair, Links, choose_pool, hubs
from rlea.matching import Matching
from rlea.settings import evidence_uses, settle, suggest


@pytest.fixture(scope="module")
def demo():
    return rlea.read_demo()


@pytest.fixture(scope="module")
def pair(flow):
    return rlea.read(flow / "pair")


@pytest.fixture(scope="module")
def file(flow):
    return str(flow / "vectors.safetensors")


@pytest.fixture(scope="module")
def by_names(pair):
    """A quick run."""
    return rlea.align(pair, matcher="mutual")


@pytest.fixture(scope="module")
def fused(pair):
    """A run with some evidence, and structure."""
    return rlea.align(pair, channels=("structure", "names"))


def same(one, other):
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("source_ids", "target_ids", "confidences")
    )


# ---- gold -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("matcher", ["best-first", "paris", "rlea", "fused"])
def test_wrong_gold_gives_the_same_links_and_a_worse_score(pair, matcher):
    """Test links whose targets are exchanged among them: the pool is the same, so the links must be."""
    order = np.random.default_rng(0).permutation(len(pair.test))
    wrong = replace(pair, test=Links.of(pair.test.source_ids, pair.test.target_ids[order]))
    right_result, wrong_result = (rlea.align(each, matcher=matcher, pool="test") for each in (pair, wrong))
    assert same(right_result.matching, wrong_result.matching)
    assert wrong_result.links.hits_at_1 < 0.1 < right_result.links.hits_at_1
    assert right_result.matching.is_one_to_one


def links_within(thing, seen):
    """All links that can be reached by attributes, lists and dicts."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    if isinstance(thing, Links):
        yield thing
    elif isinstance(thing, dict | list | tuple):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from links_within(part, seen)
    elif hasattr(thing, "__dict__") and not isinstance(thing, type) and not callable(thing):
        yield from links_within(vars(thing), seen)


@pytest.mark.parametrize("matcher", DECIDERS)
def test_no_decider_is_given_gold(pair, matcher, monkeypatch):
    """What a decider can reach holds training and validation links and no others."""
    found = []

    def look(inputs):
        if DECIDERS[matcher].needs_vectors:
            assert len(inputs.task.seeds) == len(pair.train)
        found.extend(links_within(inputs, {}))
        nothing = Matching.of([], [], [])
        pairs = rlea.find_candidates(rlea.embed_entities(pair, "names"), inputs.source_ids, inputs.target_ids, 1)
        return Decision(nothing, pairs)

    monkeypatch.setitem(DECIDERS, matcher, replace(DECIDERS[matcher], decide=look))
    assert rlea.align(pair, matcher=matcher, hide=("attributes",)).links.correct == 0
    sizes = {len(links) for links in found}
    assert {len(pair.train), len(pair.valid)} <= sizes <= {0, len(pair.train), len(pair.valid)}
    assert len(pair.test) not in sizes


def test_positions_in_the_pool_tell_nothing(demo):
    _, source_ids, target_ids = choose_pool(demo, "test")
    place = {target: number for number, target in enumerate(target_ids.tolist())}
    gold = dict(zip(demo.test.source_ids.tolist(), demo.test.target_ids.tolist(), strict=True))
    others = np.array([place[gold[source]] for source in source_ids.tolist()])
    assert (others == np.arange(len(others))).sum() < 10
    assert abs(np.corrcoef(others, np.arange(len(others)))[0, 1]) < 0.1
    # Both graphs the same, links on the diagonal: the case where numbering by identifier would show the answer.
    ids = np.arange(demo.source.num_entities)
    twin = GraphPair("twin", demo.source, demo.source, test=Links.of(ids, ids))
    for pool in ("test", "all"):
        _, source_ids, target_ids = choose_pool(twin, pool)
        assert sorted(source_ids.tolist()) == sorted(target_ids.tolist()) == ids.tolist()
        assert (source_ids == target_ids).sum() < 10


def test_pools(pair):
    name, source_ids, target_ids = choose_pool(pair, "auto")
    assert name == "test"
    assert sorted(source_ids) == sorted(pair.test.source_ids)
    name, source_ids, target_ids = choose_pool(pair, "all")
    assert not set(source_ids) & set(pair.train.source_ids)
    assert len(target_ids) == pair.target.num_entities - len(pair.train)
    assert choose_pool(replace(pair, test=Links.empty()), "auto")[0] == "all"


# ---- what is shared, and what is chosen -----------------------------------------------------------------------------


def test_a_comparison_gives_what_align_gives_and_embeds_once(pair, monkeypatch):
    alone = rlea.align(pair, matcher="best-first", pool="all")
    embedded, searched = [], []
    embed, find = rlea.embed_entities, rlea.find_candidates

    def count_embed(*given, **more):
        embedded.append(given[1])
        return embed(*given, **more)

    def count_find(vectors, *given, **more):
        searched.append(len(given[0]))
        return find(vectors, *given, **more)

    monkeypatch.setattr("rlea.models.embed.embed_entities", count_embed)
    monkeypatch.setattr("rlea.search.candidates.find_candidates", count_find)
    _, beside = rlea.compare(pair, ["mutual", "best-first"], pool="all")
    assert embedded == ["names"]
    assert len([size for size in searched if size > 20]) == 1
    assert same(alone.matching, beside.matching)
    assert (alone.links, alone.ranks) == (beside.links, beside.ranks)
    assert alone.gold_ranks.source_ranks.tobytes() == beside.gold_ranks.source_ranks.tobytes()
    assert np.mean(alone.gold_ranks.best_ranks > 0) == pytest.approx(alone.coverage)


def test_a_comparison_with_and_without_vectors(pair):
    """Rows without vectors say so; what the rows share is that of the vectors, wherever they stand."""
    paris, nearest = rlea.compare(pair, ["paris", "nearest"])
    assert (paris.settings.embedding, nearest.settings.embedding) == ((), ("names",))
    assert (paris.search, paris.ranks) == ({"kind": "evidence"}, None)
    told = bench_summary([paris, nearest])
    assert (told["embedding"], told["search"]["kind"]) == ("names", "exact")
    assert told["ranks"] is not None
    assert same(rlea.align(pair, matcher="paris").matching, paris.matching)
    assert bench_summary([paris])["embedding"] == ""
    assert [result.settings.matcher for result in rlea.compare(pair, "mutual, greedy")] == ["mutual", "greedy"]
    for nothing in ([], ""):
        with pytest.raises(InputError, match="no matcher is named"):
            next(rlea.compare(pair, nothing))


def test_the_search_is_chosen_by_size_and_the_record_says_so(pair, monkeypatch, tmp_path):
    names, vectors = (rlea.AlignSettings(matcher="best-first", embedding=name) for name in ("names", "x.safetensors"))
    assert choose_search(names, 40_000, 40_000) == choose_search(vectors, 200_000, 200_000) == "exact"
    assert choose_search(names, 40_001, 40_000) == choose_search(vectors, 200_001, 200_000) == "approximate"
    for search in ("exact", "approximate"):
        for size in (10, 10_000_000):
            assert choose_search(replace(names, search=search), size, size) == search
    exact = rlea.align(pair, names)
    assert exact.search == {"asked": "auto", "kind": "exact"}
    monkeypatch.setattr(deciders, "MOST_EXACT_NAMES", 100)
    found = rlea.align(pair, names)
    assert (found.search["asked"], found.search["kind"]) == ("auto", "names")
    assert found.search["recall"] > 0.9
    assert found.links.f1 == pytest.approx(exact.links.f1, abs=0.05)
    assert found.summary()["search"] == found.search
    page = found.report(tmp_path / "page.html").read_text()
    assert ("by an index of names" in page) == (not found.search["exact_instead"])
    assert rlea.align(pair, names, search="exact").search == {"asked": "exact", "kind": "exact"}


def test_matchers_see_no_hubs_of_large_graphs_and_the_record_says_so(pair, monkeypatch):
    assert "triples_left_out" not in rlea.align(pair, matcher="nearest").info
    monkeypatch.setattr(hubs, "LARGE", 100)
    monkeypatch.setattr(hubs.prune_hubs, "__defaults__", (0.5,))
    result = rlea.align(pair, matcher="nearest")
    assert all(0 < left_out < pair.source.num_triples for left_out in result.info["triples_left_out"])
    assert result.pair is pair


def test_what_auto_and_no_embedding_stand_for(pair):
    def chosen(**more):
        settings = settle(rlea.AlignSettings(**more))
        return settings.matcher, settings.embedding

    assert chosen() == ("fused", ())
    assert chosen(embedding="aligne") == ("fused", ("aligne",))
    assert chosen(matcher="hungarian") == ("hungarian", ("names",))
    assert chosen(matcher="rlea") == ("rlea", ("names",))
    assert chosen(matcher="paris") == ("paris", ())
    with pytest.raises(InputError, match="--channels is for the agent, which is not asked for"):
        rlea.align(pair, matcher="mutual", channels=("names",))


def test_settings_take_one_embedding_or_several():
    assert rlea.AlignSettings(embedding="a,b.npy").embedding == ("a,b.npy",)
    assert rlea.AlignSettings(embedding=["names", "x.npy"]).embedding == ("names", "x.npy")
    assert rlea.AlignSettings(channels=" names, paris,").channels == ("names", "paris")
    with pytest.raises(TypeError):
        rlea.AlignSettings("names")
    with pytest.raises(InputError, match="'names' are no settings; name options"):
        rlea.AlignSettings.with_options("names")


# ---- embeddings as evidence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("matcher", "own"), [("fused", ["structure", "names"]), ("rlea", ["structure"])])
def test_every_embedding_is_a_channel_of_the_agent(pair, file, matcher, own):
    channels = ("structure", "names") if matcher == "fused" else ()
    result = rlea.align(pair, matcher=matcher, channels=channels, embedding=("names", file))
    assert [row["channel"] for row in result.info["channels"]] == [*own, "vectors"]
    assert min(result.info["channels"][-1][key] for key in ("proposed", "found")) > 0
    columns = [one["columns"] for one in result.info["evidence"] if one["channel"] == "vectors"]
    assert len(columns) == 2
    assert columns[0] != columns[1]
    assert len(result.info["embeddings"]) == 2
    assert result.summary()["embedding"] == f"names, {file}"
    assert result.search == {"kind": "evidence"}
    assert result.links.f1 > 0.9


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"matcher": "paris", "embedding": "names"}, "paris takes no vectors"),
        ({"search": "approximate"}, "--search is for matchers over candidates, and fused has none"),
        ({"candidates": 3}, "--candidates is for matchers over candidates, and fused has none"),
        ({"matcher": "rlea", "candidates": 3}, "--candidates is for matchers over candidates, and rlea has none"),
        ({"matcher": "paris", "search": "exact"}, "--search is for matchers"),
        ({"matcher": "mutual", "channels": ("names",)}, "--channels is for the agent"),
        ({"matcher": "rlea", "preset": "paper", "channels": ("names",)}, "the paper's agent has none"),
        ({"matcher": "rlea", "preset": "paper", "embedding": ("names", "aligne")}, "rlea takes one embedding"),
        ({"matcher": "nearest", "embedding": ("names", "aligne")}, "nearest takes one embedding"),
        ({"channels": ("nmaes",)}, "did you mean names"),
        ({"matcher": "rlea", "hide": "names"}, "names looks at names and these are hidden"),
        ({"matchre": "fused"}, "unknown option 'matchre'; did you mean matcher"),
        ({"embeddings": "names"}, "unknown option 'embeddings'; did you mean embedding"),
    ],
)  # fmt: skip
def test_what_would_not_be_used_is_refused(pair, options, words):
    with pytest.raises(InputError, match=words):
        rlea.align(pair, **options)


def test_a_graph_without_entities_is_refused(pair):
    import polars as pl

    nothing = rlea.KnowledgeGraph.build(pl.DataFrame(schema=dict.fromkeys(["head", "relation", "tail"], pl.String)))
    with pytest.raises(InputError, match="a graph has no entities"):
        rlea.align(GraphPair("empty", pair.source, nothing))


def test_suggestions():
    assert "hungarian" in suggest("hungarain", DECIDERS)
    assert "use one of" in suggest("zzz", DECIDERS)


# ---- the result -----------------------------------------------------------------------------------------------------


def test_a_result_as_a_frame(by_names):
    frame = by_names.to_polars()
    assert frame.columns == ["source", "target", "confidence", "source_label", "target_label"]
    assert len(frame) == len(by_names) == len(by_names.matching)
    assert frame["confidence"].is_sorted(descending=True)
    index = by_names.pair.source.entity_index
    assert sorted(index[name] for name in frame["source"]) == by_names.matching.source_ids.tolist()
    pytest.importorskip("pandas")
    assert list(by_names.to_pandas()["target"]) == frame["target"].to_list()


def test_a_result_in_a_line_and_as_html(by_names):
    assert repr(by_names).startswith(f"Result({by_names.pair.name}: {len(by_names)} links by mutual, F1 0.")
    assert "\n" not in repr(by_names)
    nasty = '<img src=x onerror="alert(1)">'
    source = replace(by_names.pair.source, names=(nasty,) * by_names.pair.source.num_entities)
    shown = replace(by_names, pair=replace(by_names.pair, source=source, name=nasty))
    for page in (shown._repr_html_(), rlea.result.render(shown)[1]):
        assert nasty not in page
        assert "&lt;img" in page


def test_a_result_explains_itself_and_writes_its_page(fused, tmp_path):
    first = fused.to_polars()["source"][0]
    answer = fused.explain(first)
    assert (answer.outcome, answer.matcher) == ("matched", "fused")
    assert answer.source.identifier == first
    page = fused.report(tmp_path / "page.html")
    rlea.write(tmp_path / "out", fused)
    pages = (page, tmp_path / "out" / "report.html")
    own, written = (re.sub(r"\d\d:\d\d:\d\d", "", path.read_text()) for path in pages)  # made one after the other
    assert own == written


def test_files_that_no_run_wrote_stay(by_names, tmp_path):
    (tmp_path / "attributes.tsv").write_text("somebody's own")
    rlea.write(tmp_path, by_names)
    assert (tmp_path / "attributes.tsv").read_text() == "somebody's own"
    rlea.write(tmp_path, by_names)  # now it is the folder of a run, but its record does not list that file
    assert (tmp_path / "attributes.tsv").read_text() == "somebody's own"


def test_write_then_read_gives_the_same_links(by_names, tmp_path):
    from rlea.io.readers.link_files import read_link_rows
    from rlea.io.readers.links import place_links

    pair, matching = by_names.pair, by_names.matching
    expected = set(zip(matching.source_ids.tolist(), matching.target_ids.tolist(), strict=True))
    for path in rlea.write(tmp_path / "out", by_names):
        if path.name.startswith("links"):
            placed = place_links(read_link_rows(path), pair.source, pair.target)
            links = placed.links
            assert set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)) == expected
            assert placed.notes == ()


@pytest.mark.parametrize(
    ("options", "uses"),
    [
        ({"matcher": "paris"}, "structure and attributes"),
        ({"matcher": "paris", "hide": "attributes"}, "structure"),
        ({"matcher": "fused"}, "structure and names and attributes"),
        ({"matcher": "fused", "hide": "names,attributes"}, "structure"),
        ({"matcher": "fused", "channels": "names"}, "names"),
        ({"matcher": "fused", "channels": "names", "embedding": "aligne"}, "names and structure"),
    ],
)
def test_links_are_justified_by_what_was_seen(options, uses):
    assert evidence_uses(rlea.AlignSettings(**options)) == uses
