"""How much two graphs share, through the flow: planted tables and graphs, what is written, and what is promised."""

import json
from dataclasses import replace

import numpy as np
import pytest

import rlea
from planted import bytes_of, gold_of, links_of, make_graph, unlinked
from rlea.agent.overlap import FEWEST_KNOWN
from rlea.errors import InputError
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import LABEL, SyntheticSettings, generate
from rlea.matching import Matching, keep_worthwhile
from rlea.result import LEAST, LEAST_IF_NOTHING, LEAST_IF_UNSURE, WORTH_A_LOOK, Overlap

pytestmark = pytest.mark.usefixtures("one_thread")  # the pairs are small

PARTS = [one + other for one in "bdgklmnprstvz" for other in "aeiou"]  # of words
OTHERS = [one + other for one in ("qu", "x", "sh", "gr", "pl", "sk") for other in ("ui", "y", "ow", "eau")]
NOTHING = "These graphs appear to share no entities"
HEADER = ["source", "target", "confidence", "source_label", "target_label"]


def make_names(rng, count, parts):
    """Different names, of three of eighty words each."""
    words, names = set(), set()
    while len(words) < 80:
        words.add("".join(rng.choice(parts, rng.integers(2, 5))))
    words = sorted(words)
    while len(names) < count:
        names.add(" ".join(rng.choice(words, 3, replace=False)))
    return rng.permutation(sorted(names)).tolist()


def misspell(rng, text):
    """The text with one letter changed, lost or put in."""
    place, kind, letter = int(rng.integers(1, len(text) - 1)), rng.integers(3), chr(97 + rng.integers(26))
    return text[:place] + ("" if kind == 1 else letter) + text[place + (kind != 2) :]


def make_tables(size, share, seed, parts=(PARTS, PARTS)):
    """Two tables of names, those of the target misspelt, and which rows are of the same entity."""
    rng = np.random.default_rng([seed, size])
    shared = round(share * size)
    names = make_names(rng, size if parts[0] is not parts[1] else 2 * size - shared, parts[0])
    if parts[0] is not parts[1]:
        names += make_names(rng, size - shared, parts[1])
    ids = [[f"http://{letter}.org/{k:04}" for k in rng.permutation(size)] for letter in "st"]
    sides = names[:size], [misspell(rng, name) for name in names[size - shared :]]
    graphs = [
        make_graph(literals=[(entity, LABEL, name) for entity, name in zip(own, texts, strict=True)])
        for own, texts in zip(ids, sides, strict=True)
    ]
    rows = zip(ids[0][size - shared :], ids[1][:shared], strict=True)
    gold = {(graphs[0].entity_index[one], graphs[1].entity_index[other]) for one, other in rows}
    return GraphPair("", *graphs), gold


def write_table(path, graph):
    """As N-Triples."""
    rows = zip(graph.literals.entity_ids, graph.literals.attribute_ids, graph.literals.values, strict=True)
    lines = [f'<{graph.entities[e]}> <{graph.attributes[a]}> "{value}" .\n' for e, a, value in rows]
    path.write_text("".join(lines))
    return path


def rows_of(path):
    head, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert head == HEADER
    return rows


# ---- planted overlaps -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parts", [(PARTS, OTHERS), (PARTS, PARTS)], ids=["other words", "the same words"])
def test_tables_that_share_nothing(parts):
    pair, _ = make_tables(150, 0.0, 0, parts)
    result = rlea.align(pair)
    assert len(result) <= 3
    assert result.overlap.is_nothing
    assert result.summary()["overlap"]["told"] == NOTHING
    assert result.matching.confidences.sum() + result.doubtful.confidences.sum() < 0.02 * 150


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_the_share_of_two_tables_is_found_and_sure_links_are_right(share):
    pair, gold = make_tables(150, share, 0)
    result = rlea.align(pair)
    sure = links_of(result.matching.at_least(0.9))
    assert len(sure & gold) >= 0.9 * len(sure)
    assert result.overlap.shared / 150 == pytest.approx(share, abs=0.15)
    assert result.overlap.low <= result.overlap.shared <= result.overlap.high
    assert result.overlap.low - 8 <= len(gold) <= result.overlap.high + 8
    found = links_of(result.matching)
    assert len(found & gold) >= 0.7 * len(found)
    assert len(found & gold) >= (0.3 if share < 0.5 else 0.7) * len(gold)
    assert result.matching.confidences.min() >= LEAST
    assert result.expected_right == pytest.approx(result.matching.confidences.sum())
    assert result.expected_right == pytest.approx(len(found & gold), abs=0.1 * 150)
    assert result.overlap.tell().startswith(f"About {result.overlap.shared:.0f} of 150 entities seem to have a counter")


@pytest.mark.parametrize("dangling", [0.5, 0.0])
def test_the_share_of_two_graphs_is_found_and_sure_links_are_right(dangling):
    planted = generate(SyntheticSettings(120, dangling=dangling, name_noise=0.2))
    result = rlea.align(unlinked(planted))
    gold = links_of(gold_of(planted))
    sure = links_of(result.matching.at_least(0.9))
    assert len(sure & gold) >= 0.9 * len(sure)
    assert result.overlap.shared / 120 == pytest.approx(1 - dangling, abs=0.15)
    assert len(links_of(result.matching) & gold) >= 0.9 * len(gold)


@pytest.mark.parametrize(("numbers", "harm"), [((1,), 0.04), pytest.param((1, 2, 3), 0.02, marks=pytest.mark.slow)])
def test_seeds_do_no_harm_even_where_they_are_the_popular_entities(numbers, harm):
    """In the mean over three pairs: one of some two hundred links says little."""
    scores = {"degree": [], "chance": []}
    for number in numbers:
        planted = generate(SyntheticSettings(400, dangling=0.4, name_noise=0.3, nameless=0.3, seed=number))
        gold = gold_of(planted)
        degrees = np.bincount(planted.source.triples[:, [0, 2]].ravel(), minlength=planted.source.num_entities)
        orders = {
            "degree": np.argsort(-degrees[gold.source_ids], kind="stable"),
            "chance": np.random.default_rng(0).permutation(len(gold)),
        }
        blind = rlea.align(unlinked(planted))
        for by, order in orders.items():
            chosen, rest = np.split(order, [110])
            seeds, judged = (Links.of(gold.source_ids[part], gold.target_ids[part]) for part in (chosen, rest))
            seeing = rlea.align(replace(unlinked(planted), train=seeds), pool="all")
            assert ("confidences do not rest on them" in seeing.info["bootstrap"]["told"]) == (by == "degree")
            for result in (blind, seeing):
                links = {one for one in links_of(result.matching) if one[0] not in set(seeds.source_ids.tolist())}
                scores[by].append(2 * len(links & links_of(judged)) / (len(links) + len(judged)))
    for found in scores.values():
        assert np.mean(found[1::2]) > np.mean(found[::2]) - harm
        assert min(found) > 0.9


@pytest.mark.parametrize(("dangling", "seed"), [(1.0, 1), (1.0, 2), (0.85, 1)])
def test_the_share_of_two_graphs_is_found_where_little_is_shared(dangling, seed):
    planted = generate(SyntheticSettings(200, dangling=dangling, name_noise=0.2, seed=seed))
    result = rlea.align(unlinked(planted))
    gold, found = links_of(gold_of(planted)), links_of(result.matching)
    assert result.overlap.shared / 200 == pytest.approx(1 - dangling, abs=0.15)
    assert len(found & gold) >= 0.7 * len(found) - 3


@pytest.mark.parametrize(("sizes", "shared"), [((60, 600), 0), ((600, 60), 30)])
def test_one_table_ten_times_the_other(sizes, shared):
    """The best of six hundred strangers looks better than the best of sixty."""
    rng = np.random.default_rng(4)
    names = make_names(rng, sum(sizes) - shared, PARTS)
    sides = names[: sizes[0]], [misspell(rng, name) for name in names[sizes[0] - shared :]]
    graphs = [
        make_graph(literals=[(f"http://{letter}.org/{k:04}", LABEL, name) for k, name in enumerate(texts)])
        for letter, texts in zip("st", sides, strict=True)
    ]
    gold = {(sizes[0] - shared + k, k) for k in range(shared)}
    result = rlea.align(GraphPair("", *graphs))
    found = links_of(result.matching)
    assert len(found & gold) >= 0.7 * len(found) - 3
    assert len(found & gold) >= 0.6 * len(gold)
    assert result.overlap.shared == pytest.approx(shared, abs=12)


def test_namesakes_are_not_taken_for_the_same():
    """Every fourth city has a time zone of its name, and no entity of one graph is in the other."""
    rng = np.random.default_rng(6)
    cities = make_names(rng, 320, PARTS)
    things = [*cities, *(f"{city} time" for city in cities[::4])]
    is_source = rng.permutation(len(things)) < len(things) // 2
    graphs = []
    for letter, mine in (("s", is_source), ("t", ~is_source)):
        own = [(f"http://{letter}.org/{k:04}", LABEL, things[k]) for k in rng.permutation(np.flatnonzero(mine))]
        graphs.append(make_graph(literals=own))
    result = rlea.align(GraphPair("", *graphs))
    assert len(result.matching.at_least(0.9)) <= 3
    assert result.overlap.low < 0.05 * 200
    assert result.overlap.shared < 0.2 * 200


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0.9, 0, 20, 50), NOTHING),
        ((1.0, 0, 20, 50), "About 1 of 50 entities seem to have a counterpart (2 %, between 0 and 40 %)"),
        ((9.9, 0, 20, 1000), NOTHING),
        (
            (1234.4, 1000, 1500, 2000),
            "About 1,234 of 2,000 entities seem to have a counterpart (62 %, between 50 and 75 %)",
        ),
        ((0.0, 0, 0, 0), NOTHING),
        ((0.9, 0, 20, 50, 3), "These graphs appear to share no other entities"),
    ],
)
def test_the_sentence(given, words):
    assert Overlap(*given).tell() == words


@pytest.mark.parametrize(
    ("given", "least"),
    [
        ((30, 2, 60, 100), LEAST),
        ((30, 1.9, 60, 100), LEAST_IF_UNSURE),
        ((30, 0, 60, 100), LEAST_IF_UNSURE),
        ((5, 0, 60, 100), LEAST_IF_NOTHING),
        ((5, 0, 60, 100, 2), LEAST_IF_NOTHING),
        ((5, 0, 60, 100, FEWEST_KNOWN), LEAST),  # these graphs do share something
    ],
)
def test_links_must_be_surer_where_graphs_may_share_nothing(given, least):
    assert Overlap(*given).least_confidence == least


# ---- what is written ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def half():
    """Two tables of eighty names, of which half are shared."""
    return make_tables(80, 0.5, 0)[0]


@pytest.fixture(scope="module")
def by_default(half):
    return rlea.align(half)


def test_what_is_kept_and_what_is_left_out_are_all_that_was_found(half, by_default):
    every = rlea.align(half, keep="all")
    assert len(every) > len(by_default) > 0
    assert len(every.doubtful) == 0
    assert links_of(by_default.matching) | links_of(by_default.doubtful) == links_of(every.matching)
    assert len(by_default) + len(by_default.doubtful) == len(every)
    assert by_default.matching.confidences.min() >= by_default.doubtful.confidences.max()
    assert every.overlap == by_default.overlap
    assert bytes_of(rlea.align(half, keep="worthwhile").matching) == bytes_of(by_default.matching)
    told = by_default.summary()
    assert (told["doubtful"], told["matched"]) == (len(by_default.doubtful), len(by_default))
    assert told["expected_right"] == pytest.approx(by_default.matching.confidences.sum(), abs=0.06)
    assert (by_default.cut, every.cut) == ("--keep worthwhile", "")


def test_doubtful_links_are_listed_with_their_labels_until_there_are_none(half, by_default, tmp_path):
    some = rlea.align(half, threshold=float(by_default.matching.confidences.max()))  # leaves out all but the surest
    rlea.write(tmp_path, some)
    links, doubtful = rows_of(tmp_path / "links.tsv"), rows_of(tmp_path / "doubtful.tsv")
    for (s, t, confidence, *labels), matching in [
        *((row, some.matching) for row in links),
        *((row, some.doubtful) for row in doubtful),
    ]:
        ends = half.source.entity_index[s], half.target.entity_index[t]
        place = list(zip(matching.source_ids, matching.target_ids, strict=True)).index(ends)
        assert float(confidence) == pytest.approx(matching.confidences[place], abs=1e-6)
        assert labels == [half.source.names[ends[0]], half.target.names[ends[1]]]
        assert all(labels)
    assert {row[0] for row in links}.isdisjoint(row[0] for row in doubtful)
    assert len(links) == len(some)
    assert len(doubtful) == (some.doubtful.confidences >= WORTH_A_LOOK).sum() > 0
    numbers = [float(row[2]) for row in doubtful]
    assert numbers == sorted(numbers, reverse=True)
    rlea.write(tmp_path, rlea.align(half, matcher="mutual"))  # leaves nothing out
    assert len(rows_of(tmp_path / "links.tsv")) != len(some)
    assert not (tmp_path / "doubtful.tsv").exists()


def test_a_file_that_no_run_has_written_is_left_alone(by_default, tmp_path):
    (tmp_path / "doubtful.tsv").write_text("mine\n")
    rlea.write(tmp_path, rlea.align(by_default.pair, matcher="mutual"))
    assert (tmp_path / "doubtful.tsv").read_text() == "mine\n"


def test_tabs_and_line_breaks_of_a_label_are_blanks(tmp_path):
    graphs = [make_graph(entities=[f"http://{letter}.org/1"]) for letter in "st"]
    names = ("two\twords\nand\rmore",)
    pair = GraphPair("", *(rlea.KnowledgeGraph(**{**vars(graph), "names": names}) for graph in graphs))
    from rlea.io.writers import LinkRows
    from rlea.io.writers.tsv import put_links_tsv

    put_links_tsv(tmp_path / "links.tsv", LinkRows.of(Matching.of([0], [0], [0.5]), pair.source, pair.target))
    (row,) = rows_of(tmp_path / "links.tsv")
    assert row[3:] == ["two words and more"] * 2


def test_on_the_command_line(run_cli, tmp_path):
    """Nothing shared: one sentence says so, a run without links is a run."""
    pair, _ = make_tables(60, 0.0, 0, (PARTS, OTHERS))
    files = [write_table(tmp_path / f"{side}.nt", getattr(pair, side)) for side in ("source", "target")]
    done = run_cli("align", *files, "--output", tmp_path / "out", "--quiet")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    told = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert told["matched"] == 0
    assert f"{NOTHING}. 0 links accepted; {told['doubtful']} left out" in text
    assert "No link is sure enough to be written." in text
    assert NOTHING in " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert rows_of(tmp_path / "out" / "links.tsv") == []


# ---- what is promised -----------------------------------------------------------------------------------------------


def test_no_precision_is_promised_for_ten_entities(run_cli, tmp_path):
    pair, _ = make_tables(10, 1.0, 0)
    files = [write_table(tmp_path / f"{side}.nt", getattr(pair, side)) for side in ("source", "target")]
    done = run_cli("align", *files, "--precision", 0.9, "--output", tmp_path / "out", "--quiet")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Error: --precision 0.9 cannot be promised: there are only 10 links; use --threshold")
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="cannot be promised"):
        rlea.align(pair, precision=0.9)


@pytest.mark.parametrize("matcher", ["nearest", "hungarian", "best-first", "paris"])
def test_no_precision_is_promised_without_calibrated_confidences(half, matcher):
    with pytest.raises(InputError, match=f"{matcher} has no calibrated confidences, so --precision cannot be promised"):
        rlea.align(half, precision=0.9, matcher=matcher)


def test_a_precision_that_is_promised_is_kept(half, by_default):
    result = rlea.align(half, precision=0.95)
    assert len(result) > 0
    assert result.matching.confidences.mean() >= 0.95
    assert result.cut == "--precision 0.95"
    assert links_of(result.matching) < links_of(by_default.matching) | links_of(by_default.doubtful)


# ---- which links ----------------------------------------------------------------------------------------------------


def test_some_links_and_those_of_other_sources():
    matching = Matching.of([0, 1, 2, 3], [7, 6, 5, 4], [0.9, 0.2, 0.4, 0.4])
    some = matching.some(np.array([True, False, True, False]))
    assert links_of(some) == {(0, 7), (2, 5)}
    assert some.confidences.tolist() == [0.9, 0.4]
    assert links_of(matching.without(some)) == {(1, 6), (3, 4)}
    assert links_of(matching.without(Matching.of([1, 9], [0, 0], [1, 1]))) == {(0, 7), (2, 5), (3, 4)}
    assert len(matching.without(matching)) == 0
    assert bytes_of(matching.without(Matching.of([], [], []))) == bytes_of(matching)
    assert bytes_of(matching.some(matching.confidences >= 0.4)) == bytes_of(matching.at_least(0.4))


def test_worthwhile_links_have_at_least_the_confidence_asked_for():
    matching = Matching.of(range(5), range(5), [0.9, 0.6, 0.4, 0.3, 0.1])
    # Expected F1 of the surest n, if three are right: 0.45, 0.6, 0.63, 0.63, 0.575.
    assert len(keep_worthwhile(matching, 3)) in (3, 4)
    assert len(keep_worthwhile(matching, 3, least=0.4)) == 3  # 0.4 itself stays
    assert len(keep_worthwhile(matching, 3, least=0.41)) == 2
    assert len(keep_worthwhile(matching, 3, least=0.95)) == 0
    # Where few links are right, doubtful ones cost more than they bring, whatever the least.
    assert len(keep_worthwhile(matching, 0.5, least=0.1)) < len(keep_worthwhile(matching, 50, least=0.1)) == 5
    nothing = Matching.of([], [], [])
    assert len(keep_worthwhile(nothing, 3, least=0.4)) == 0


def make_staff(size, share, seed=6):
    """Two tables of people with a name and a birthday, all of one of six departments, and which people are the same."""
    rng = np.random.default_rng(seed)
    names = make_names(rng, 2 * size, PARTS)
    days = [f"{rng.integers(1940, 2004)}-{rng.integers(1, 13):02}-{rng.integers(1, 29):02}" for _ in range(2 * size)]
    kept = round(share * size)
    graphs = []
    for side, first in (("s", 0), ("t", size - kept)):
        triples, literals = [], []
        for k in range(first, first + size):
            triples.append((f"{side}/p{k:03}", f"{side}/department", f"{side}/d{k % 6}"))
            literals += [(f"{side}/p{k:03}", LABEL, names[k]), (f"{side}/p{k:03}", f"{side}/born", days[k])]
        literals += [
            (f"{side}/d{k}", LABEL, f"{OTHERS[3 * k]} {OTHERS[3 * k + 1]} {OTHERS[3 * k + 2]}") for k in range(6)
        ]
        graphs.append(make_graph(triples, literals))
    return GraphPair("", *graphs), kept + 6


def test_strangers_of_one_department_are_no_links():
    """What the rest of two departments share is the department alone, which all that are linked share as well."""
    pair, num_right = make_staff(150, 0.7)
    result = rlea.align(pair, keep="all")
    links = zip(result.matching.source_ids.tolist(), result.matching.target_ids.tolist(), strict=True)
    wrong = [pair.source.entities[one][2:] != pair.target.entities[other][2:] for one, other in links]
    assert np.count_nonzero(wrong) > 20
    assert result.matching.confidences[wrong].mean() < 0.25
    assert result.matching.confidences[~np.array(wrong)].mean() > 0.8
    assert result.expected_right == pytest.approx(num_right, rel=0.15)
