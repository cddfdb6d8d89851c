"""Which question to ask: what strategies see, what they prefer, what a question is worth; nothing of it knows gold."""

from dataclasses import replace

import numpy as np
import pytest

import rlea
from planted import bytes_of, links_of, make_graph
from rlea.agent.live import LiveRun, changed_by
from rlea.agent.questions import FEATURES, STRATEGIES, Asker, Situation, Values, best, next_questions, shipped_values
from rlea.agent.sessions import (
    Person,
    Played,
    Written,
    answers_alone,
    learn_values,
    play_out,
    reward,
    session,
    worth,
)
from rlea.graph import GraphPair, Links
from rlea.io.synthetic import LABEL, SyntheticSettings, generate
from rlea.matching import Matching

pytestmark = pytest.mark.usefixtures("one_thread")  # the pairs are small

MEMBERS = 10
WORDS = [one + other for one in ("ba", "ke", "lo", "mi", "tu", "zar") for other in ("ne", "vi", "sta", "dor", "pu")]


def make_clubs():
    """Towns with clear names; two clubs of one name whose members are namesakes; two lone namesakes.

    Which of the clubs is which settles ten members each. Which of the loners is which settles nothing else.
    """
    graphs = []
    for side in "st":
        triples, literals = [], []

        def add(name, label, side=side, literals=literals):
            iri = f"http://{side}.org/{name}"
            literals.append((iri, LABEL, label))
            return iri

        for k in range(50):
            town = add(f"town{k:02}", f"{WORDS[k % 30]} {WORDS[(7 * k + 3) % 30]} {WORDS[(k * k + 1) % 30]}")
            triples.append((town, "in", add(f"land{k // 5}", f"land {WORDS[(11 * (k // 5)) % 30]} {k // 5}")))
        for club in "ab":
            own = add(f"club{club}", "united club")
            members = [add(f"member{club}{k}", f"{WORDS[k]} {WORDS[k + 9]} player") for k in range(MEMBERS)]
            triples += [(member, "plays for", own) for member in members]
        for loner in "ab":
            add(f"loner{loner}", "john doe smith")
        graphs.append(make_graph(triples, literals))
    gold = [
        (graphs[0].entity_index[name], graphs[1].entity_index[name.replace("//s", "//t")])
        for name in graphs[0].entities
    ]
    towns = [one for name, one in zip(graphs[0].entities, gold, strict=True) if "town" in name][:30]
    return GraphPair("", *graphs, train=Links.of(*np.array(towns).T)), Links.of(*np.array(gold).T)


@pytest.fixture(scope="module")
def decided_clubs():
    pair, gold = make_clubs()
    return pair, gold, LiveRun.start(rlea.Aligner(), pair)


def is_namesake(name):
    return any(kind in name for kind in ("club", "member", "loner"))


@pytest.fixture(scope="module")
def clubs(decided_clubs):
    """The same, had the agent doubted what nothing tells apart (see the test of that below)."""
    pair, gold, run = decided_clubs
    links = run.links
    is_doubted = np.array([is_namesake(pair.source.entities[one]) for one in links.source_ids.tolist()])
    confidences = np.where(is_doubted, 0.4, links.confidences)
    return pair, gold, LiveRun(run.aligner, run.state, Matching.of(links.source_ids, links.target_ids, confidences))


@pytest.mark.xfail(
    reason="members support their club and the club its members, so that one of two equal worlds is sure"
)
def test_what_nothing_tells_apart_is_in_doubt(decided_clubs):
    pair, _, run = decided_clubs
    links = run.links
    of_clubs = [
        confidence
        for source, confidence in zip(links.source_ids.tolist(), links.confidences.tolist(), strict=True)
        if "club" in pair.source.entities[source]
    ]
    assert max(of_clubs) < 0.7


@pytest.fixture(scope="module")
def synthetic():
    whole = generate(SyntheticSettings(num_entities=60, name_noise=0.4, nameless=0.3, dangling=0.3, seed=3))
    gold = Links.union([whole.train, whole.valid, whole.test])
    pair = GraphPair("", whole.source, whole.target)
    return pair, gold, LiveRun.start(rlea.Aligner(), pair)


def value_of(situation, values, pair, name):
    source = pair.source.entity_index[f"http://s.org/{name}"]
    (place,) = np.flatnonzero(situation.source_ids == source)
    return values[place]


@pytest.mark.parametrize("strategy", ["learned", "doubt x reach", "degree"])
def test_a_pair_that_settles_ten_others_comes_before_one_that_settles_none(clubs, strategy):
    pair, _, run = clubs
    situation = Asker(run).situation()
    values = STRATEGIES[strategy](situation, np.random.default_rng(0))
    club, loner = (max(value_of(situation, values, pair, f"{name}{k}") for k in "ab") for name in ("club", "loner"))
    assert club > loner


# A game without the answer may break a tie the other way than it stands: then both games agree, and the tie stays.
STAYS = pytest.param("a", marks=pytest.mark.xfail(reason="four of ten members stay as the tie was broken before"))


@pytest.mark.parametrize("club", [STAYS, "b"])
def test_the_answer_about_a_club_settles_its_members(clubs, club):
    pair, _, run = clubs
    tried = run.copy()
    ids = (pair.source.entity_index, "http://s.org/"), (pair.target.entity_index, "http://t.org/")
    tried.answer(
        *(index[f"{start}club{one}"] for (index, start), one in zip(ids, ("a", club), strict=True)), is_right=True
    )
    wanted = {
        tuple(index[f"{start}member{one}{k}"] for (index, start), one in zip(ids, ("a", club), strict=True))
        for k in range(MEMBERS)
    }
    assert wanted <= links_of(tried.links)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_asks_about_links_without_an_answer(synthetic, strategy):
    _, gold, run = synthetic
    tried = run.copy()
    first = next_questions(tried, strategy, 5)
    assert set(first) <= links_of(tried.links)
    tried.answer_all((*one, Person(gold).says(*one)) for one in first)
    assert not set(first) & set(next_questions(tried, strategy, 20))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_session_is_the_same_again(synthetic, strategy):
    _, gold, run = synthetic
    before = bytes_of(run.links)
    once, again = (
        [
            (stage.answers, bytes_of(stage.run.links))
            for stage in session(run, Person(gold), strategy, questions=6, batch=3)
        ]
        for _ in range(2)
    )
    assert once == again
    assert [len(answers) for answers, _ in once] == [0, 3, 6]
    assert bytes_of(run.links) == before  # the run that was given stays as it was


def test_features_know_nothing_of_gold(synthetic):
    pair, gold, run = synthetic
    knowing = LiveRun.start(run.aligner, replace(pair, test=gold))
    features, other = (Asker(one).situation().features for one in (run, knowing))
    np.testing.assert_array_equal(features, other)
    assert np.isfinite(features).all()


def test_a_person_errs_as_often_as_told():
    gold = Links.of(range(4000), range(4000))
    for errs in (0.0, 0.02, 0.3):
        person = Person(gold, errs, seed=1)
        wrong = np.mean([not person.says(k, k) for k in range(2000)] + [person.says(k, k + 1) for k in range(2000)])
        assert wrong == pytest.approx(errs, abs=4 * np.sqrt(errs / 4000))
    assert [person.says(k, k) for k in range(50)] == [person.says(k, k) for k in range(50)]
    assert [person.says(k, k) for k in range(50)] != [Person(gold, 0.3, 2).says(k, k) for k in range(50)]


def test_links_are_worth_more_the_more_right_ones_are_believed():
    person = Person(Links.of([0, 1], [0, 1]))
    links = [Matching.of([0, 1], [0, other], [sure, 0.5]) for other, sure in ((1, 0.9), (1, 0.6), (0, 0.6))]
    assert worth(links[0], person) > worth(links[1], person) > worth(links[2], person)
    assert worth(Matching.of([], [], []), person) == 0


def test_a_question_that_brings_nothing_is_worth_no_more_than_nothing():
    assert reward(7.0, 7.0, price=0.0) == 0
    assert reward(7.0, 7.0, price=0.1) < 0
    random = np.random.default_rng(0)
    features = random.random((60, len(FEATURES)))
    nothing = Played(features, np.arange(60) % 2 == 0, np.zeros(60))
    values = learn_values(nothing, price=0.1)
    situation = Situation(np.arange(60, dtype=np.int32), np.arange(60, dtype=np.int32), features)
    assert (values(situation) <= 0).all()


def test_values_are_learned_from_what_answers_brought():
    """Planted: *yes* brings what hangs on a link, *no* brings one."""
    random = np.random.default_rng(1)
    features = random.random((400, len(FEATURES)))
    right = random.random(400) < 0.5
    hanging = FEATURES.index("hanging")
    played = Played(features, right, np.where(right, 4 * features[:, hanging], 1.0))
    values = learn_values(played)
    situation = Situation(np.arange(400, dtype=np.int32), np.arange(400, dtype=np.int32), features)
    confidence = situation.column("confidence")
    wanted = confidence * 4 * features[:, hanging] + (1 - confidence)
    np.testing.assert_allclose(values(situation), wanted, atol=0.25)
    again = learn_values(played)
    assert values.as_dict() == again.as_dict()
    assert Values.of_dict(values.as_dict()).yes == pytest.approx(values.yes, abs=1e-5)


def test_answers_played_out_leave_the_run_alone_and_are_the_same_again(synthetic):
    _, gold, run = synthetic
    before = bytes_of(run.links)
    once, again = (play_out(run, Person(gold), questions=6, stages=(0, 10), seed=4) for _ in range(2))
    assert bytes_of(run.links) == before
    np.testing.assert_array_equal(once.gains, again.gains)
    np.testing.assert_array_equal(once.features, again.features)
    assert once.features.shape == (6, len(FEATURES))


def test_the_weights_that_are_shipped_are_about_these_features():
    values = shipped_values()
    assert len(values.means) == len(FEATURES)
    assert (values.scales > 0).all()
    with pytest.raises(ValueError, match="learn them again"):
        Values.of_dict(values.as_dict() | {"features": ["other"]})


def test_the_best_are_told_apart_by_more_than_their_order():
    ids = np.arange(5, dtype=np.int32)
    situation = Situation(ids, ids, np.zeros((5, len(FEATURES))))
    assert best(situation, np.array([0.0, 3.0, 1.0, 2.0, 0.0]), 3) == [(1, 1), (3, 3), (2, 2)]
    back = Situation(ids[::-1], ids[::-1], np.zeros((5, len(FEATURES))))
    assert best(situation, np.zeros(5), 5) == best(back, np.zeros(5), 5)


# ---- links --------------------------------------------------------------------------------------------------------


def test_answers_alone_change_the_pairs_that_they_are_about():
    links = Matching.of([0, 1, 2], [0, 1, 2], [0.5, 0.6, 0.7])
    found = answers_alone(links, [(0, 1, True), (2, 2, False)])
    assert links_of(found) == {(0, 1)}
    assert links_of(answers_alone(links, [])) == links_of(links)


def test_what_two_games_agree_on_stays_as_it_was():
    links = Matching.of([0, 1, 2, 3], [0, 1, 2, 3], [0.9, 0.6, 0.7, 0.5])
    without = Matching.of([0, 1, 2, 3], [4, 1, 2, 3], [0.3, 0.5, 0.5, 0.5])
    same = changed_by(links, without, without, set())
    assert links_of(same) == links_of(links)
    np.testing.assert_allclose(same.confidences, links.confidences, atol=1e-6)
    found = Matching.of([0, 1, 2], [4, 1, 5], [0.3, 0.8, 0.4])
    changed = changed_by(links, without, found, set())
    told = {source: (target, sure) for source, target, sure in zip(*map(list, vars(changed).values()), strict=True)}
    assert told[0] == (0, pytest.approx(0.9))
    assert told[1][0] == 1
    assert told[1][1] == pytest.approx(0.6 / 0.4 * 4 / (1 + 0.6 / 0.4 * 4))  # odds of 1 to 4 more than before
    assert told[2] == (5, pytest.approx(0.4))
    assert 3 not in told
    assert dict(zip(*map(list, list(vars(changed_by(links, without, without, {0})).values())[:2]), strict=True))[0] == 4


def test_what_is_written_follows_what_answers_say(synthetic):
    run = synthetic[2]
    expected = float(run.links.confidences.sum())
    written = Written(expected, expected, 120)
    assert 0 < len(written.links(run)) <= len(run.links)
    assert len(Written(expected, expected, 120, is_all=True).links(run)) == len(run.links)
    assert len(written.links(run).at_least(0.99)) <= len(Written(expected, expected, 120, 0.99).links(run))
