"""Which pair is asked next, what is shown of it, and what the answers change."""

import numpy as np
import pytest

import rlea
from review.conftest import NUMBER, SCRIPT, S, T
from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, write_synthetic
from rlea.review.compare import marked
from rlea.review.questions import ORDERS, Questions, in_order
from rlea.review.session import Filters, Review


def number_of(review, found):
    """The number of the town in a pair, which must be of the same number on both sides."""
    source, target = (review.run.pair.source.entities[found[0]], review.run.pair.target.entities[found[1]])
    assert source.removeprefix(S) == target.removeprefix(T)
    return int(source[-2:])


def say(review, number, answer="accept", reviewer="Ann", instead="", **more):
    say.number = getattr(say, "number", 0) + 1
    other = f"{T}t{instead}" if instead else ""
    ends = f"{S}t{number:02}", f"{T}t{number:02}"
    return review.answer(*ends, answer, reviewer=reviewer, key=str(say.number), instead=other, **more)


def ask(review, reviewer="Ann", holder="h", **filters):
    found = review.next(Filters(**filters), reviewer=reviewer, holder=holder)
    return None if found is None else number_of(review, found)


def chosen(review, reviewer="Ann", **filters):
    mask = review.chosen(Filters(**filters), reviewer)
    return {int(review.run.pair.source.entities[s][-2:]) for s in review.questions.source_ids[mask].tolist()}


# ---- questions ------------------------------------------------------------------------------------------------------


def test_links_and_what_was_left_out_are_asked_about_and_seeds_are_not(review):
    questions = review.questions
    assert len(questions) == NUMBER
    assert questions.is_link.sum() == NUMBER - 2
    assert chosen(review, kind="left out") == {0, 1}
    assert chosen(review, kind="links") == set(range(2, NUMBER))


def test_without_a_trace_questions_come_from_the_files(run):
    from dataclasses import replace

    few = replace(run, trace=None, doubtful={int(run.source_ids[0]) - 1: (int(run.target_ids[0]) - 1, 0.125)})
    questions = Questions.of(few)
    assert len(questions) == NUMBER - 1
    assert questions.confidences[~questions.is_link].tolist() == [0.125]
    assert np.isnan(questions.margins).all()
    assert questions.channels == ()
    for name in ORDERS:
        assert sorted(in_order(questions, name)) == list(range(NUMBER - 1))


def test_channels_speak_for_the_pair_or_for_another(review):
    assert review.questions.channels == ("name", "words")
    everything = set(range(NUMBER))
    against = {k for k in everything if k % 4 == 0}
    assert chosen(review, channel="name for") == everything
    assert chosen(review, channel="words against") == against == chosen(review, disagree=True)
    assert chosen(review, channel="name against") == set()
    with pytest.raises(InputError, match="unknown channel"):
        chosen(review, channel="smell for")


def test_margins_are_leads_over_the_best_rival(review):
    """The rival of town k has half its logit."""
    assert review.questions.margins == pytest.approx(review.questions.confidences / 2, abs=1e-6)


@pytest.mark.parametrize(
    ("order", "first"), [("least confident", {19, 20}), ("least margin", {0}), ("learned", {19, 20})]
)
def test_orders_put_the_doubtful_first(review, order, first):
    assert ask(review, order=order) in first


def test_every_order_asks_everything_once(review):
    for order in ORDERS:
        asked = [number_of(review, (int(review.questions.source_ids[k]), int(review.questions.target_ids[k])))
                 for k in in_order(review.questions, order)]  # fmt: skip
        assert sorted(asked) == list(range(NUMBER))


def test_filters_narrow_the_questions(review):
    assert chosen(review, low=0.5, high=0.6) == {k for k in range(NUMBER) if 0.5 <= (k + 1) / (NUMBER + 1) <= 0.6}
    assert chosen(review, class_=f"{S}City") == {k for k in range(NUMBER) if k % 2}
    assert {name for name, _ in review.classes} == {f"{S}City", f"{S}Village", f"{T}City", f"{T}Village"}
    for bad in ({"order": "x"}, {"scope": "x"}, {"kind": "x"}, {"low": 0.5, "high": 0.4}, {"high": 2}):
        with pytest.raises(InputError):
            Filters(**bad)


def test_a_pair_that_is_answered_is_not_asked_again(review):
    first = ask(review)
    assert ask(review) == first  # the page was loaded again
    say(review, first, "skip")
    assert ask(review) != first
    assert chosen(review, scope="skipped") == {first}
    assert chosen(review, scope="second opinion") == set()
    assert chosen(review, "Bob", scope="second opinion") == {first}
    review.undo(reviewer="Ann", key="u")
    assert ask(review) == first


def test_two_people_get_two_pairs(review):
    assert ask(review, holder="one") != ask(review, holder="two")


def test_answers_of_another_process_are_heard_of(review):
    from rlea.verdicts import VerdictStore

    first = ask(review)
    with VerdictStore(review.store.path) as other:
        other.answer(f"{S}t{first:02}", f"{T}t{first:02}", "reject", reviewer="Bob", key="elsewhere")
    assert ask(review) != first
    assert review.state(Filters(), "Ann")["rejected"] == 1


def test_when_all_is_answered_nothing_is_asked(review):
    for number in range(NUMBER):
        say(review, number, "reject")
    assert ask(review) is None
    assert review.state(Filters(), "Ann")["left"] == 0


# ---- what is told ---------------------------------------------------------------------------------------------------


def test_answers_change_links_and_what_is_expected_of_them(review):
    before = review.state(Filters(), "Ann")
    assert (before["links_before"], before["links_now"]) == (NUMBER - 2, NUMBER - 2)
    say(review, 10, "reject")
    say(review, 0, "accept")  # was left out
    say(review, 20, "other", instead="t21"[1:])  # takes the target of 21
    after = review.state(Filters(), "Ann")
    assert (after["num_removed"], after["num_added"]) == (3, 2)
    assert after["links_now"] == NUMBER - 2 - 3 + 2
    assert ["Town 10", "Town 10"] in after["removed"]
    assert ["Town 20", "Town 21a"] in after["added"]
    gone = sum((k + 1) / (NUMBER + 1) for k in (10, 20, 21))
    assert after["expected_now"] == pytest.approx(before["expected_before"] - gone + 2, abs=1e-4)
    assert (after["answers"], after["mine"], after["accepted"], after["rejected"]) == (3, 3, 2, 2)
    assert 21 not in chosen(review)  # its target is taken


def test_the_curve_counts_what_a_threshold_keeps(review):
    curve = review.state(Filters(), "Ann")["curve"]
    confidences = np.array([(k + 1) / (NUMBER + 1) for k in range(NUMBER)])
    for at in (0, 25, 50, 90, 100):
        kept = confidences[confidences >= at / 100]
        assert curve["links"][at] == len(kept)
        if len(kept):
            assert curve["precision"][at] == pytest.approx(kept.mean(), abs=1e-3)
            assert curve["recall"][at] == pytest.approx(kept.sum() / confidences.sum(), abs=1e-3)
    assert curve["precision"][100] is None
    say(review, 5, "accept")
    assert review.state(Filters(), "Ann")["curve"]["links"][100] == 1


def test_contradictions_are_listed(review):
    say(review, 3, "accept", "Ann")
    say(review, 3, "reject", "Bob")
    (one,) = review.state(Filters(), "Ann")["disputed"]
    assert (one["source"], one["answer"]) == (f"{S}t03", "disputed")
    assert chosen(review, scope="disputed") == {3}


def test_entities_that_are_not_there_are_refused(review):
    for ends, more in ((("x", f"{T}t01"), {}), ((f"{S}t01", "x"), {}), ((f"{S}t01", f"{T}t01"), {"instead": "x"})):
        with pytest.raises(InputError, match="graph has no entity"):
            review.answer(*ends, "other" if more else "accept", reviewer="Ann", key="k", **more)
    assert review.store.entries() == []


# ---- the card -------------------------------------------------------------------------------------------------------


def card_of(review, number, is_blind=False, reviewer="Ann"):
    ends = review.find(f"{S}t{number:02}", f"{T}t{number:02}")
    return review.card(*ends, reviewer=reviewer, is_blind=is_blind)


def test_a_card_shows_both_entities_side_by_side(review):
    card = card_of(review, 3)
    assert card["source"]["name"] == "Town 03"
    assert card["target"]["pieces"] == (("Town 03", False), ("a", True))
    assert card["source"]["types"] == ["City"]
    rows = {row["source_attribute"] or row["target_attribute"]: row for row in card["values"]}
    assert (rows["people"]["mark"], rows["people"]["source"]) == ("same", (("1003", False),))
    assert rows["label"]["mark"] == "similar"
    (neighbour,) = card["neighbours"]
    assert (neighbour["kind"], neighbour["source"], neighbour["target"]) == ("seed", "c1", "c1")
    assert (neighbour["source_relation"], neighbour["target_relation"]) == ("in →", "lies →")
    assert [row["name"] for row in card["rivals"]] == ["Town 04"]
    assert card["confidence"] == pytest.approx(4 / (NUMBER + 1), abs=1e-6)
    assert "confidence 0.10" in card["decision"]
    assert {row["channel"] for row in card["channels"]} == {"name", "words", "structure"}


def test_a_blind_card_has_no_score_and_no_decision(review):
    say(review, 3, "accept", "Bob")
    say(review, 3, "reject", "Ann")
    card = card_of(review, 3, is_blind=True)
    assert {"confidence", "decision", "channels"}.isdisjoint(card)
    assert all({"logit", "evidence", "reason"}.isdisjoint(row) for row in card["rivals"])
    assert [one["reviewer"] for one in card["said"]] == ["Ann"]
    assert [one["reviewer"] for one in card_of(review, 3)["said"]] == ["Bob", "Ann"]


@pytest.mark.parametrize(
    ("source", "target", "pieces"),
    [
        ("Zürich", "zurich", ((("Zürich", False),), (("zurich", False),))),
        ("colour", "color", ((("colo", False), ("u", True), ("r", False)), (("color", False),))),
        ("The Big Town", "Town", ((("The Big ", True), ("Town", False)), (("Town", False),))),
        ("abc", "xyz", ((("abc", False),), (("xyz", False),))),
    ],
)
def test_what_differs_is_marked(source, target, pieces):
    assert marked(source, target) == pieces


def test_search_finds_both_sides_by_parts_and_identifiers(review):
    found = review.search("wn 1")
    assert {hit["side"] for hit in found} == {"source", "target"}
    assert all("Town 1" in hit["name"] for hit in found)
    (hit,) = [hit for hit in review.search(f"{S}t05") if hit["side"] == "source"]
    assert hit["pair"] == [f"{S}t05", f"{T}t05"]
    assert [hit["side"] for hit in review.search("Town 07", "target")] == ["target"]
    assert review.search("zzzz") == []
    assert review.search("script")[0]["name"] == SCRIPT


def test_runs_by_structure_alone_begin_with_what_their_answers_say_about_others(review, tmp_path):
    assert review.default_order == review.choices()["orders"][0] == "least confident"
    write_synthetic(tmp_path / "pair", SyntheticSettings(num_entities=120))
    files = {name: tmp_path / "pair" / f"{name}.nt" for name in ("source", "target")}
    pair = rlea.read(*files.values(), seeds=tmp_path / "pair" / "seeds.tsv")
    rlea.write(tmp_path / "run", rlea.align(pair, channels=("structure",)))
    with Review.open(tmp_path / "run") as other:
        assert other.default_order == other.choices()["orders"][0] == "doubt x reach"
        assert sorted(other.choices()["orders"]) == sorted(review.choices()["orders"])
