"""Answers count at once in the page: in a process beside it, whose end harms nothing."""

import json
import time

import numpy as np
import pytest

import rlea
from agent.test_live import FAMILIES, make_families
from rlea.agent.kept import KEPT, Kept
from rlea.errors import InputError
from rlea.io.writers.graphs import write_graph
from rlea.resumed import Resumed, settings_of, why_not
from rlea.review.live import FAILED, READY, LiveAnswers
from rlea.review.session import Filters, Review
from rlea.review.terminal import ask_questions
from rlea.verdicts import VERDICTS, VerdictStore

S, T = "http://s.org/", "http://t.org/"
PATIENCE = 300  # seconds: machines that run tests are slow, and code may have to be compiled


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a run on families of which one has no name: only an answer tells who is its child."""
    folder = tmp_path_factory.mktemp("families")
    pair, _ = make_families()
    write_graph(folder / "source.nt", pair.source)
    write_graph(folder / "target.nt", pair.target)
    rlea.write(folder / "run", rlea.align(rlea.read(folder / "source.nt", folder / "target.nt"), keep="all"))
    return folder / "run"


@pytest.fixture
def folder(made):
    (made / VERDICTS).unlink(missing_ok=True)
    return made


@pytest.fixture(scope="module")
def process(made):
    live = LiveAnswers(made)
    yield live
    live.close()


@pytest.fixture
def review(folder, process):
    """A review with a live part that has made itself ready; each test begins without answers."""
    process.tell({})
    until(lambda: process.status in (READY, FAILED))
    assert process.status == READY, process.reason
    with VerdictStore.of_run(folder) as store:
        yield Review(Resumed.open(folder).run, store, live=process)


def until(is_so):
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def say(review, source, target, answer="accept", **more):
    number = len(review.store.entries())
    entry = review.answer(S + source, T + target, answer, reviewer="Ann", key=f"key {number}", **more)
    assert review.live.wait(PATIENCE)
    return entry


def names_of(links, pair):
    return {
        (pair.source.entities[s].removeprefix(S), pair.target.entities[t].removeprefix(T))
        for s, t in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    }


def state(review, **more):
    return review.state(Filters(), "Ann", **more)


# ---- what a run keeps -----------------------------------------------------------------------------------------------


def test_a_run_goes_on_from_its_folder_as_from_memory(folder):
    """The same evidence, the same agent and the same confidences: the next answers lead to the same links."""
    resumed = Resumed.open(folder)
    assert resumed.kept is not None
    pair = resumed.inputs.pair
    one, other = resumed.live(), rlea.agent.live.LiveRun.start(rlea.Aligner(), pair)
    for run in (one, other):
        run.answer(pair.source.entity_index[S + "head00"], pair.target.entity_index[T + "head01"], is_right=True)
    assert names_of(one.links, pair) == names_of(other.links, pair)
    assert one.links.confidences == pytest.approx(other.links.confidences, abs=1e-5)


def test_what_is_kept_is_what_was_written(folder, tmp_path):
    kept = Kept.load(folder / KEPT)
    kept.put(tmp_path / KEPT)
    assert (tmp_path / KEPT).read_bytes() == (folder / KEPT).read_bytes()
    rows = np.random.default_rng(0).normal(size=(50, len(kept.rating.rater.used))).astype(np.float32)
    assert kept.rating.rater(rows).tolist() == Kept.load(tmp_path / KEPT).rating.rater(rows).tolist()
    assert rlea.Aligner.load(folder / KEPT).is_fitted  # as a file of a trained agent


def test_a_damaged_agent_is_one_sentence(folder, tmp_path):
    content = (folder / KEPT).read_bytes()
    (tmp_path / KEPT).write_bytes(content[:-3])
    with pytest.raises(InputError, match="cannot be read"):
        Kept.load(tmp_path / KEPT)
    rlea.Aligner.load(folder / KEPT).save(tmp_path / KEPT)
    with pytest.raises(InputError, match="is an agent alone"):
        Kept.load(tmp_path / KEPT)


def test_settings_are_those_of_the_record(folder):
    record = json.loads((folder / "run.json").read_text())
    assert settings_of(record) == rlea.AlignSettings(matcher="fused", keep="all")
    assert why_not(record) == ""


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"result": {"matcher": "mutual"}}, "decided by mutual"),
        ({"settings": {"cardinality": "1:n"}}, "cardinality is 1:n"),
        ({"settings": {"joint": 2}}, "joint rounds"),
        ({"settings": None}, "earlier version"),
    ],
)
def test_runs_that_cannot_go_on_say_why(change, why):
    record = {"result": {"matcher": "fused"}, "settings": {"cardinality": "1:1"}} | change
    assert why in why_not(record)


# ---- the page -------------------------------------------------------------------------------------------------------


def test_an_answer_changes_what_is_around_it(review):
    """Heads 0 and 1 have no name in the target: who is head 0 says whose child is child 0."""
    for other in ("00", "01"):
        say(review, "head00", f"head{other}")
        told = state(review)
        assert ("child00", f"child{other}") in names_of(review.live.decided.links, review.run.pair)
        assert told["live"]["status"] == READY
        assert told["live"]["text"] == "Answers count at once."
        review.undo(reviewer="Ann", key=f"undo {other}")
        assert review.live.wait(PATIENCE)


def test_undo_brings_back_what_was(review):
    before = state(review)
    say(review, "head00", "head01")
    say(review, "child10", "child10", "reject")
    review.undo(reviewer="Ann", key="one")
    review.undo(reviewer="Ann", key="two")
    assert review.live.wait(PATIENCE)
    after = state(review)
    for name in ("links_now", "expected_now", "curve", "added", "removed"):
        assert after[name] == before[name]


def test_what_changed_is_listed_and_can_be_looked_at(review):
    say(review, "head00", "head01")
    first = names_of(review.live.decided.links, review.run.pair)
    say(review, "head00", "head01", "reject")
    told = state(review)["live"]
    assert {"head00"}.isdisjoint(one["source"] for one in told["changes"])  # the pair itself is no news
    for one in told["changes"]:
        source, target = one["pair"]
        assert review.card(*review.find(source, target), reviewer="Ann", is_blind=False)["now"] is not None
    assert told["num_changes"] == len(told["changes"])
    assert names_of(review.live.decided.links, review.run.pair) != first


def test_links_that_the_run_has_not_decided_on_become_questions(review):
    """Somebody says that head 0 is head 1; then head 1 can be head 0, which the run may never have thought of."""
    say(review, "head00", "head01")
    state(review)
    links = review.live.decided.links
    pairs = set(zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True))
    assert pairs <= set(review.places)
    assert len(review.questions) == len(review.places) == len(review.confidences)
    open_pairs = {
        (int(review.questions.source_ids[k]), int(review.questions.target_ids[k]))
        for k in np.flatnonzero(review.chosen(Filters(), "Ann"))
    }
    assert open_pairs <= pairs


def test_the_learned_order_asks_what_is_expected_to_bring_most(review):
    review.refresh()
    gains = review.questions.gains
    assert np.isfinite(gains[review._now > 0]).all()
    place = review.places[review.next(Filters(order="learned"), reviewer="Ann", holder="h")]
    assert gains[place] == np.nanmax(gains)
    source, target = int(review.questions.source_ids[place]), int(review.questions.target_ids[place])
    pair = review.run.pair
    review.answer(pair.source.entities[source], pair.target.entities[target], "accept", reviewer="Ann", key="a gain")
    assert review.live.wait(PATIENCE)
    review.refresh()
    assert review.questions.gains[place] == -np.inf
    assert review.next(Filters(order="learned"), reviewer="Ann", holder="h") != (source, target)


def test_thresholds_use_corrected_confidences(review):
    """Where people reject what was thought to be likely, links like these are less sure than before."""
    confidences = review.questions.confidences.astype(float)
    order = np.argsort(np.abs(confidences - np.median(confidences)), kind="stable")[:12]
    pair = review.run.pair
    for place in order.tolist():
        ends = review.questions.source_ids[place], review.questions.target_ids[place]
        names = pair.source.entities[ends[0]], pair.target.entities[ends[1]]
        review.answer(*names, "reject", reviewer="Ann", key=f"reject {place}")
    assert review.live.wait(PATIENCE)
    told = state(review)
    count = len(confidences)  # pairs that are new stand after those of the run
    near = (~review._answered & (review._now > 0))[:count] & (np.abs(confidences - np.median(confidences)) < 0.02)
    assert near.any()
    assert review.confidences[:count][near].mean() < confidences[near].mean()
    assert told["expected_now"] < told["expected_before"]
    assert told["curve"]["links"][0] == np.count_nonzero(review.confidences)


def test_somebody_who_sees_no_scores_is_told_no_links(review):
    say(review, "head00", "head01")
    assert state(review, is_blind=True)["live"]["changes"] == []


def test_in_a_terminal_changes_are_told_before_the_next_question(review):
    shown, typed = [], iter(["n", "n", "q"])
    asked = ask_questions(
        review, 5, filters=Filters(), reviewer="Ann", is_blind=False, read=lambda: next(typed), show=shown.append
    )
    assert asked.answers == 2
    texts = [str(one) for one in shown if not hasattr(one, "renderables")]
    changed = state(review)["live"]["num_changes"]
    assert any("The last answer changed" in text for text in texts) or not changed


# ---- what goes wrong ------------------------------------------------------------------------------------------------


def test_answers_given_before_it_is_ready_count_then(folder):
    with Review.open(folder, live=True) as review:
        assert review.live.status == "making"
        assert state(review)["live"]["text"].startswith("Answers will count at once ")
        review.answer(S + "head00", T + "head01", "accept", reviewer="Ann", key="early")
        assert [one.key for one in review.store.entries()] == ["early"]
        until(lambda: review.live.status in (READY, FAILED) and review.live.decided is not None)
        until(lambda: review.live.wait(PATIENCE))
        assert ("head00", "head01") in names_of(review.live.decided.links, review.run.pair)
        assert ("child00", "child01") in names_of(review.live.decided.links, review.run.pair)


def test_when_the_live_part_is_killed_the_page_goes_on(folder):
    with Review.open(folder, live=True) as review:
        review.live._process.kill()
        until(lambda: review.live.status == FAILED)
        entry = review.answer(S + "head00", T + "head01", "accept", reviewer="Ann", key="kept")
        assert review.store.entries() == [entry]
        told = state(review)
        assert told["accepted"] == 1
        assert told["live"]["text"].startswith("Answers do not count at once: the process that decides has ended")
        assert review.next(Filters(), reviewer="Ann", holder="h") is not None


def test_a_run_that_cannot_be_made_live_says_so(folder, tmp_path):
    live = LiveAnswers(tmp_path / "nowhere")
    until(lambda: live.status == FAILED)
    assert "there is no such folder" in live.text
    live.tell({(0, 0): True})
    assert not live.wait(1)
    live.close()


def test_other_matchers_stay_as_they_are(tmp_path):
    pair, _ = make_families()
    write_graph(tmp_path / "source.nt", pair.source)
    write_graph(tmp_path / "target.nt", pair.target)
    result = rlea.align(rlea.read(tmp_path / "source.nt", tmp_path / "target.nt"), matcher="best-first")
    rlea.write(tmp_path / "run", result)
    assert not (tmp_path / "run" / KEPT).exists()
    with Review.open(tmp_path / "run", live=True) as review:
        assert review.live is None
        assert state(review)["live"] == {"status": "off", "text": ""}
    with pytest.raises(InputError, match="decided by best-first"):
        Resumed.open(tmp_path / "run")
    assert FAMILIES > 1
