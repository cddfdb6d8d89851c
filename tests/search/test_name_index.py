"""The name search finds what the exact search finds, misspelt or in another script, and its recall is true."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from planted import arrays_of
from rlea.graph import GraphPair, KnowledgeGraph
from rlea.graph.transliterate import transliterate
from rlea.models.names import embed_names
from rlea.search import name_index as module
from rlea.search.candidates import find_candidates
from rlea.search.name_index import search_names
from rlea.search.name_pieces import embed_name_pieces


def graph(names, prefix="http://example.org/"):
    """Entities of which the identifiers are codes, so that names are what is given; None leaves the code."""
    codes = [f"{prefix}E{number:05}" for number in range(len(names))]
    given = {code: name for code, name in zip(codes, names, strict=True) if name is not None}
    nothing = pl.DataFrame(schema=dict.fromkeys(("head", "relation", "tail"), pl.String))
    return KnowledgeGraph.build(nothing, names=given, entities=codes)


def named(source, target):
    return GraphPair("names", graph(source), graph(target))


def everyone(pair):
    return np.arange(pair.source.num_entities), np.arange(pair.target.num_entities)


def true_recalls(found, exact):
    """The share of the exact candidates that were found, by score and each way."""
    return [
        float((mine >= np.where(np.isfinite(best), best, np.inf).min(axis=1, keepdims=True) - 1e-6).mean())
        for mine, best in (
            (found.forward_scores, exact.forward_scores),
            (found.backward_scores, exact.backward_scores),
        )
    ]


def best_names(pair, k=1, **more):
    """The name of the best target for every source."""
    found = search_names(pair, *everyone(pair), k, **more).candidates.forward_columns[:, 0]
    return [pair.target.names[column] if column >= 0 else None for column in found.tolist()]


def same_scores(found, exact):
    for one, other in zip(arrays_of(found), arrays_of(exact), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
    np.testing.assert_allclose(found.forward_scores, exact.forward_scores, atol=1e-5)
    np.testing.assert_allclose(found.backward_scores, exact.backward_scores, atol=1e-5)


def test_without_a_limit_it_is_the_exact_search(planted_names):
    pair = planted_names(400, name_noise=0.2)
    rng = np.random.default_rng(0)
    source_ids, target_ids = rng.permutation(400)[:300], rng.permutation(400)[:350]
    search = search_names(pair, source_ids, target_ids, 12, recall=1.0)
    exact = find_candidates(embed_names(pair), source_ids, target_ids, 12)
    assert search.is_exact
    assert (search.recall, search.share) == (1, 1)
    assert (search.candidates.source_ids == source_ids).all()
    assert (search.candidates.target_ids == target_ids).all()
    same_scores(search.candidates, exact)
    # Rounding and ties may exchange neighbours or those at the edge.
    assert (search.candidates.forward_columns == exact.forward_columns).mean() > 0.98
    assert (search.candidates.backward_rows == exact.backward_rows).mean() > 0.98
    rows, places = np.nonzero(search.candidates.forward_columns >= 0)
    true = search.candidates.score_pairs(rows, search.candidates.forward_columns[rows, places])
    np.testing.assert_allclose(search.candidates.forward_scores[rows, places], true, atol=1e-5)


def test_the_vectors_are_those_of_the_names():
    """Of Latin names whatever the accents, spaces and signs; only the order of the columns is another."""
    names = ["Île-de-France", "a", "A b", "x_y  z!", "Straße 5", "İzmir", "ﬁne", "mississippi", "New\nYork", "aa", "__"]
    pair = named(names, [*reversed(names), "Zoë Ångström"])
    mine, known = embed_name_pieces(pair), embed_names(pair)
    assert mine.source.shape == known.source.shape
    assert (mine.is_fitted, known.is_fitted) == (False, False)  # no seed has a part in them
    for own, other in ((mine.source, known.source), (mine.target, known.target)):
        np.testing.assert_allclose(np.sort(own.toarray(), axis=1), np.sort(other.toarray(), axis=1), atol=1e-6)
    products = (mine.source @ mine.target.T).toarray()
    np.testing.assert_allclose(products, (known.source @ known.target.T).toarray(), atol=1e-6)


@pytest.mark.parametrize("more", [{}, {"recall": 0.95}, {"budget": 20}])
def test_finds_the_wanted_share_and_knows_how_much(more, planted_names):
    pair = planted_names(4000, name_noise=0.1)
    search = search_names(pair, *everyone(pair), 10, **more)
    exact = find_candidates(embed_names(pair), *everyone(pair), 10)
    recalls = true_recalls(search.candidates, exact)
    assert not search.is_exact
    assert search.share < 0.3
    assert search.sampled == module.SAMPLE
    assert search.forward_recall == pytest.approx(recalls[0], abs=0.04)
    assert search.backward_recall == pytest.approx(recalls[1], abs=0.04)
    assert search.recall == min(search.forward_recall, search.backward_recall)
    if "budget" in more:
        assert search.budgets == (20, 20)
        assert min(recalls) < 0.95
    else:
        assert min(recalls) >= more.get("recall", module.RECALL) - 0.005
        assert min(recalls) >= 0.95
        right, found = (
            (some.forward_columns[pair.test.source_ids] == pair.test.target_ids[:, None]).any(axis=1).mean()
            for some in (exact, search.candidates)
        )
        assert right > 0.9
        assert found > right - 0.002  # what is missed are poor candidates


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Москва", "Moskva"),
        ("Αθήνα", "Athina"),
        ("München", "Munchen"),
        ("Нижний Новгород", "Nizhniy Novgorod"),
        ("Чайковский", "Chaykovskiy"),
        ("Łódź", "Lodz"),
        ("Ευρώπη", "Evropi"),
        ("서울", "Seoul"),
        ("きょうと", "Kyoto"),
        ("北京", "Beijing"),
        ("თბილისი", "Tbilisi"),
        ("मुंबई", "Mumbai"),
        ("ＴＯＫＹＯ", "Tokyo"),
    ],
)
def test_names_meet_in_another_script(one, other, planted_names):
    rest = planted_names(150).target.names
    assert best_names(named([one, "Unrelated"], [*rest, other]))[0] == other
    assert best_names(named([other, "Unrelated"], [*rest, one]))[0] == one


def test_the_same_script_comes_before_the_other():
    """The Latin form is one more view and takes nothing from names that share the script."""
    targets = ["Moskva", "Москва", "Moscow", "Минск"]
    assert best_names(named(["Москва", "Moskva"], targets)) == ["Москва", "Moskva"]
    search = search_names(named(["Москва", "Moskva"], targets), [0, 1], [0, 1, 2, 3], 4, recall=1.0)
    assert search.candidates.forward_scores[:, 0] == pytest.approx(1.0)
    assert search.candidates.forward_columns[0, :2].tolist() == [1, 0]
    assert 0.3 < search.candidates.forward_scores[0, 1] < 1


def test_transliteration_of_one_and_of_many():
    forms = {
        "Киев": "kiev", "Ёж": "ezh", "Подъезд": "podezd", "Αυστρία": "afstria", "Εύα": "eva", "Λουκάς": "loukas",
        "Προϊόν": "proion", "ΑΓΓΕΛΟΣ": "angelos", "Μπάμπης": "bampis", "Øresund": "oresund", "ファミリー": "famiri",
        "ジョン": "jon", "ホップ": "hoppu", "北京": "beijing", "दिल्ली": "dilli", "a\u2028b": "a b",
        "Plain Name": "plain name", "": "",
    }  # fmt: skip
    for name, form in forms.items():
        assert transliterate(name) == form
    assert transliterate("\n".join(forms)).split("\n") == list(forms.values())


def test_entities_without_a_name_have_no_candidates():
    pair = named(["Anna Berg", None, "", "1984", "?!"], ["Anna Berg", "E00001", None, "1984", " "])
    assert pair.source.names[1] == "E00001"  # the code stands in for a name
    search = search_names(pair, *everyone(pair), 3)
    columns = search.candidates.forward_columns
    assert columns[:, 0].tolist() == [0, -1, -1, 3, -1]
    assert (search.candidates.forward_scores[[1, 2, 4]] == -np.inf).all()
    assert not np.isin(search.candidates.backward_rows, [1, 2, 4]).any()
    # A code that is given as a label would be a name, but here it is what the identifier says.
    assert search.num_nameless == (3, 3)
    nobody = named([None, None], [None])
    empty = search_names(nobody, *everyone(nobody), 2)
    assert (empty.candidates.forward_columns == -1).all()
    assert empty.candidates.forward_columns.shape == (2, 1)
    assert empty.candidates.backward_rows.shape == (1, 2)
    assert empty.recall == 1


def test_names_that_share_nothing_are_no_candidates():
    pair = named(["abc", "xyz"], ["abd", "uvw", "xyzz"])
    found = search_names(pair, *everyone(pair), 3).candidates
    assert found.forward_columns.tolist() == [[0, -1, -1], [2, -1, -1]]
    assert found.backward_rows.tolist() == [[0, -1], [-1, -1], [1, -1]]


def test_equal_names_are_all_found_and_shared_out(planted_names):
    """40 sources and 40 targets of one name: every place holds one, and no few targets take them all."""
    others = planted_names(100)
    pair = named([*["Anna Berg"] * 40, *others.source.names], [*others.target.names, *["Berg, Anna"] * 40])
    search = search_names(pair, *everyone(pair), 10)
    columns, scores = search.candidates.forward_columns[:40], search.candidates.forward_scores[:40]
    assert scores == pytest.approx(np.ones((40, 10)))
    assert (columns >= 100).all()
    assert all(len(set(row)) == 10 for row in columns.tolist())
    assert len(np.unique(columns)) >= 30
    assert len(np.unique(columns[:, 0])) >= 15
    assert search.num_names[1] == len(set(others.target.names)) + 1
    few = search_names(pair, *everyone(pair), 60, recall=1.0).candidates
    assert all(set(range(100, 140)) <= set(row) for row in few.forward_columns[:40].tolist())
    same_scores(few, find_candidates(embed_names(pair), *everyone(pair), 60))


def test_ties_do_not_depend_on_the_order_of_the_pools(planted_names):
    rng = np.random.default_rng(3)
    names = planted_names(700, name_noise=0.2)
    pair = named([*names.source.names, *["Twin"] * 30], [*["Twin"] * 50, *names.target.names, "Twin B", "B Twin"])
    orders = [rng.permutation(ids) for ids in everyone(pair)]
    for more in ({"budget": 200}, {"recall": 1.0}):
        plain, moved = search_names(pair, *everyone(pair), 7, **more), search_names(pair, *orders, 7, **more)
        assert plain.as_dict() == moved.as_dict()
        found = moved.candidates
        columns = np.where(found.forward_columns < 0, -1, orders[1][found.forward_columns])
        rows = np.where(found.backward_rows < 0, -1, orders[0][found.backward_rows])
        assert (columns == plain.candidates.forward_columns[orders[0]]).all()
        assert (rows == plain.candidates.backward_rows[orders[1]]).all()


def test_small_pools_and_two_graphs_without_a_pair():
    pair = named(["Anna Berg", "Carl Dorn"], ["Karl Dorn", "Ana Berg", "Eva Funk"])
    one = search_names((pair.source, pair.target), [1], [0], 5).candidates
    assert one.forward_columns.tolist() == [[0]]
    assert one.backward_rows.tolist() == [[0]]
    assert 0.5 < one.forward_scores[0, 0] < 1
    against = search_names(pair, [1], [2, 1, 0], 5).candidates
    assert against.forward_columns[0, 0] == 2
    assert against.backward_rows.shape == (3, 1)


def test_frequent_pieces_alone_still_find_the_name(planted_names):
    """All names have the same first word; the budget is less than the names that have any piece of "the"."""
    others = planted_names(2000).source.names
    pair = named(["The", *(f"The {name}" for name in others)], [*(f"The {name}" for name in others), "The"])
    search = search_names(pair, *everyone(pair), 3, budget=10)
    assert search.candidates.forward_columns[0, 0] == 2000
    best = search.candidates.forward_columns[1:, 0]
    assert (
        np.mean([pair.target.names[column] == f"The {name}" for column, name in zip(best, others, strict=True)]) > 0.99
    )


def test_gold_links_are_not_read(planted_names):
    pair = planted_names(300)
    blind = replace(pair, train=type(pair.train).empty(), valid=type(pair.train).empty(), test=type(pair.train).empty())
    one, other = (search_names(given, *everyone(given), 4).candidates for given in (pair, blind))
    for first, second in zip(arrays_of(one), arrays_of(other), strict=True):
        assert first.tobytes() == second.tobytes()
