"""The flow does not peek: gold links change no decision, and neither does the order of anything."""

from dataclasses import replace

import numpy as np
import pytest

import rlea
from rlea.commands import bench_summary
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.evaluation.metrics import coverage
from rlea.graph import Links, hubs
from rlea.io.readers import read_pair
from rlea.matchers import MATCHERS
from rlea.matching import toy_task
from rlea.pipeline import (
    choose_pool,
    common_result,
    look_up_gold,
    make_task,
)
from rlea.search.embeddings import Embeddings
from rlea.settings import choose_search, evidence_uses, settle, suggest


@pytest.fixture(scope="module")
def pair():
    return read_pair(demo_folder())


def same(one, other):
    return (
        one.source_ids.tobytes() == other.source_ids.tobytes()
        and one.target_ids.tobytes() == other.target_ids.tobytes()
        and one.confidences.tobytes() == other.confidences.tobytes()
    )


@pytest.mark.parametrize("matcher", [name for name, matcher in MATCHERS.items() if not matcher.trained] + ["fused"])
def test_wrong_gold_gives_the_same_links_and_a_worse_score(pair, matcher):
    """Test links whose targets are exchanged among them: the pool is the same, so the links must be."""
    rng = np.random.default_rng(0)
    wrong = replace(
        pair,
        test=Links.of(pair.test.source_ids, rng.permutation(pair.test.target_ids)),
        valid=Links.of(pair.valid.source_ids, rng.permutation(pair.valid.target_ids)),
    )
    settings = rlea.AlignSettings(matcher=matcher, pool="test")
    right_result, wrong_result = rlea.align(pair, settings), rlea.align(wrong, settings)
    assert same(right_result.matching, wrong_result.matching)
    assert wrong_result.links.hits_at_1 < 0.02 < right_result.links.hits_at_1
    assert right_result.matching.is_one_to_one or not MATCHERS[matcher].one_to_one


def test_positions_in_the_pool_tell_nothing(pair):
    _, source_ids, target_ids = choose_pool(pair, "test")
    place = {target: number for number, target in enumerate(target_ids.tolist())}
    gold = dict(zip(pair.test.source_ids.tolist(), pair.test.target_ids.tolist(), strict=True))
    others = np.array([place[gold[source]] for source in source_ids.tolist()])
    assert (others == np.arange(len(others))).sum() < 10
    assert abs(np.corrcoef(others, np.arange(len(others)))[0, 1]) < 0.1


def test_same_identifiers_do_not_give_same_positions(pair):
    """Both graphs the same, links on the diagonal: the case where numbering by identifier would show the answer."""
    ids = np.arange(pair.source.num_entities)
    twin = replace(pair, target=pair.source, train=Links.empty(), valid=Links.empty(), test=Links.of(ids, ids))
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


def test_a_task_has_no_place_for_gold(pair):
    """What a matcher can reach by any attribute holds the training links and no others."""
    settings = rlea.AlignSettings("names", "nearest")
    vectors = rlea.embed_entities(pair, "names")
    _, source_ids, target_ids = choose_pool(pair, "test")
    task = make_task(pair, rlea.find_candidates(vectors, source_ids, target_ids, 5), settings.seed)
    seen, stack, found = set(), [task], []
    while stack:
        thing = stack.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, Links):
            found.append(thing)
        elif hasattr(thing, "__dataclass_fields__"):
            stack += [getattr(thing, name) for name in thing.__dataclass_fields__]
    assert [len(links) for links in found] == [len(pair.train)]


def test_gold_is_looked_up_among_what_the_matcher_saw(pair):
    """All candidates; of an agent those that it looks at. As many gold links stand there as `coverage` says."""
    vectors = rlea.embed_entities(pair, "names")
    _, source_ids, target_ids = choose_pool(pair, "test")
    candidates = rlea.find_candidates(vectors, source_ids, target_ids, 9)
    every, best = (look_up_gold(pair, candidates, info) for info in ({}, {"agent": {"candidates": 2}}))
    assert (every.best_ranks.max(), best.best_ranks.max()) == (9, 2)
    assert np.mean(every.best_ranks > 0) == pytest.approx(coverage(candidates, pair.test))
    assert np.mean(best.best_ranks > 0) == pytest.approx(coverage(candidates.best(2), pair.test))
    assert look_up_gold(replace(pair, test=Links.empty()), candidates, {}) is None


def test_bench_gives_what_align_gives(pair):
    settings = rlea.AlignSettings("names", "best-first", pool="all")
    alone = rlea.align(pair, settings)
    beside = list(rlea.bench(pair, ["mutual", "best-first"], settings))[1]
    assert same(alone.matching, beside.matching)
    assert alone.links == beside.links
    assert alone.ranks == beside.ranks
    assert alone.standing.source_ranks.tobytes() == beside.standing.source_ranks.tobytes()


def test_the_search_is_chosen_by_size_and_the_record_says_so(pair, monkeypatch, tmp_path):
    names, vectors = rlea.AlignSettings("names"), rlea.AlignSettings(embedding="some.safetensors")
    assert choose_search(names, 40_000, 40_000) == choose_search(vectors, 200_000, 200_000) == "exact"
    assert choose_search(names, 40_001, 40_000) == choose_search(vectors, 200_001, 200_000) == "approximate"
    for search in ("exact", "approximate"):
        for size in (10, 10_000_000):
            assert choose_search(replace(names, search=search), size, size) == search
    exact = rlea.align(pair, names)
    assert exact.search == {"asked": "auto", "kind": "exact"}
    monkeypatch.setattr("rlea.settings.MOST_EXACT_NAMES", 100)
    found = rlea.align(pair, names)
    assert (found.search["asked"], found.search["kind"]) == ("auto", "names")
    assert found.search["recall"] > 0.9
    assert found.matching.is_one_to_one
    assert found.links.f1 == pytest.approx(exact.links.f1, abs=0.02)
    assert found.summary()["search"] == found.search
    (compared,) = rlea.bench(pair, ["best-first"])
    assert (compared.matching.target_ids == found.matching.target_ids).all()
    rlea.write(tmp_path, found)
    page = (tmp_path / "report.html").read_text()
    assert ("by an index of names" in page) == (not found.search["exact_instead"])
    assert rlea.align(pair, replace(names, search="exact")).search == {"asked": "exact", "kind": "exact"}


def test_the_index_of_names_can_be_asked_for(run_cli):
    done = run_cli(
        "align", demo_folder(), "--embedding", "names", "--search", "approximate", "--candidates", 3, "--quiet"
    )
    assert done.code == 0, done.err
    assert "index of names" in done.out or "an index would not have been faster" in done.out


def test_matchers_see_no_crowds_of_large_graphs_and_the_record_says_so(pair, monkeypatch):
    names = rlea.AlignSettings("names")
    assert "triples_left_out" not in rlea.align(pair, names).info
    monkeypatch.setattr(hubs, "LARGE", 100)
    monkeypatch.setattr(hubs.prune_hubs, "__defaults__", (2.0,))
    result = rlea.align(pair, names)
    assert all(0 < left_out < pair.source.num_triples for left_out in result.info["triples_left_out"])
    assert result.links.f1 > 0.8
    assert result.pair is pair


def test_write_then_read_gives_the_same_links(pair, tmp_path):
    from rlea.io.readers.link_files import read_link_rows
    from rlea.io.readers.links import place_links

    result = rlea.align(pair, rlea.AlignSettings("names", "mutual"))
    written = rlea.write(tmp_path / "out", result)
    expected = set(zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True))
    for path in written:
        if path.name.startswith("links"):
            placed = place_links(read_link_rows(path), pair.source, pair.target)
            links = placed.links
            assert set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)) == expected
            assert placed.notes == ()


def test_report_escapes_names(pair, tmp_path):
    from rlea.pipeline import write

    nasty = '<img src=x onerror="alert(1)">'
    renamed = replace(pair, source=replace(pair.source, names=(nasty,) * pair.source.num_entities))
    result = replace(rlea.align(pair, rlea.AlignSettings("names", "mutual")), pair=renamed)
    write(tmp_path, result)
    page = (tmp_path / "report.html").read_text()
    assert nasty not in page
    assert "&lt;img" in page


# ---- matchers that take no vectors ----------------------------------------------------------------------------------


def test_all_evidence_is_the_default_of_graphs_that_are_not_very_large(pair, monkeypatch):
    chosen = settle(rlea.AlignSettings(), pair)
    assert (chosen.matcher, chosen.embedding) == ("fused", "")
    given = settle(rlea.AlignSettings("aligne"), pair)
    assert (given.matcher, given.embedding) == ("best-first", "aligne")
    assert settle(rlea.AlignSettings(matcher="mutual"), pair).embedding == "names"
    monkeypatch.setattr("rlea.settings.MOST_FUSED", 100)
    large = settle(rlea.AlignSettings(), pair)
    assert (large.matcher, large.embedding) == ("best-first", "names")


@pytest.mark.parametrize("matcher", ["paris", "fused"])
def test_a_toy_task_is_solved_without_vectors(matcher):
    """Two equal graphs: whatever is linked is linked with itself, and something is."""
    found = MATCHERS[matcher](toy_task(Embeddings(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))))
    assert found.is_one_to_one
    assert len(found) >= 2
    assert found.source_ids.tolist() == found.target_ids.tolist()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (rlea.AlignSettings("names", "fused"), "fused looks at the graphs themselves"),
        (rlea.AlignSettings("names", "paris"), "paris looks at the graphs themselves"),
        (rlea.AlignSettings(search="approximate"), "--search is for matchers that take vectors, and fused"),
        (rlea.AlignSettings(candidates=3), "--candidates is for matchers that take vectors, and fused"),
        (rlea.AlignSettings(matcher="paris", search="exact"), "--search is for matchers"),
        (rlea.AlignSettings(matcher="mutual", channels=("names",)), "--channels is for the matcher fused"),
        (rlea.AlignSettings(channels=("nmaes",)), "did you mean names"),
    ],
)
def test_what_would_not_be_used_is_refused(pair, settings, words):
    with pytest.raises(InputError, match=words):
        rlea.align(pair, settings)


def test_a_comparison_with_and_without_vectors(pair):
    """Rows without vectors say so; what the rows share is that of the vectors, wherever they stand."""
    paris, nearest = rlea.bench(pair, ["paris", "nearest"])
    assert (paris.settings.embedding, nearest.settings.embedding) == ("", "names")
    assert (paris.summary()["search"]["kind"], paris.ranks) == ("evidence", None)
    assert common_result([paris, nearest]) is nearest
    told = bench_summary([paris, nearest])
    assert (told["embedding"], told["search"]["kind"]) == ("names", "exact")
    assert told["ranks"] is not None
    alone = rlea.align(pair, rlea.AlignSettings(matcher="paris"))
    assert same(alone.matching, paris.matching)
    (only,) = rlea.bench(pair, ["paris"])
    assert same(only.matching, paris.matching)
    assert bench_summary([only])["embedding"] == ""


@pytest.mark.parametrize(
    ("settings", "uses"),
    [
        (rlea.AlignSettings(matcher="paris"), "structure and attributes"),
        (rlea.AlignSettings(matcher="paris", hide=("attributes",)), "structure"),
        (rlea.AlignSettings(matcher="fused"), "structure and names and attributes"),
        (rlea.AlignSettings(matcher="fused", hide=("names", "attributes")), "structure"),
        (rlea.AlignSettings(matcher="fused", channels=("names",)), "names"),
    ],
)
def test_links_are_justified_by_what_was_seen(settings, uses):
    assert evidence_uses(settings) == uses


def test_suggestions():
    assert "hungarian" in suggest("hungarain", MATCHERS)
    assert "use one of" in suggest("zzz", MATCHERS)
