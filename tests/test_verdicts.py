"""The log of verdicts: what it says, that it loses and doubles nothing, and what a later run makes of it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlea
from rlea.demo import demo_folder
from rlea.errors import InputError
from rlea.io.readers.verdicts import parse_place, with_verdicts
from rlea.verdicts import ANSWERS, LEASE_SECONDS, OTHER, UNDO, Entry, VerdictStore, resolve


@pytest.fixture
def store(tmp_path):
    with VerdictStore(tmp_path / "verdicts.sqlite") as opened:
        yield opened


def say(store, pair, answer="accept", reviewer="Ann", **more):
    say.number = getattr(say, "number", 0) + 1
    return store.answer(*pair, answer, reviewer=reviewer, key=f"key {say.number}", **more)


def standing(verdicts):
    return {(one.source, one.target): one.answer for one in verdicts}


# ---- what a log says ------------------------------------------------------------------------------------------------


def test_the_last_answer_counts_and_an_undone_one_does_not(store):
    say(store, "ax", "accept")
    say(store, "ax", "reject")
    assert standing(store.current()) == {("a", "x"): "reject"}
    undone = store.undo(reviewer="Ann", key="u1")
    assert (undone.answer, undone.undoes, undone.source, undone.target) == (UNDO, 2, "a", "x")
    assert standing(store.current()) == {("a", "x"): "accept"}
    store.undo(reviewer="Ann", key="u2")
    assert standing(store.current()) == {}
    assert store.undo(reviewer="Ann", key="u3") is None
    assert [entry.number for entry in store.entries()] == [1, 2, 3, 4]


def test_another_one_rejects_a_pair_and_accepts_another(store):
    entry = say(store, "ax", OTHER, instead="y", is_blind=True, confidence=0.25)
    assert (entry.instead, entry.is_blind, entry.confidence, entry.reviewer) == ("y", True, 0.25, "Ann")
    assert entry.time.endswith("+00:00")
    assert standing(store.current()) == {("a", "x"): "reject", ("a", "y"): "accept"}
    store.undo(reviewer="Ann", key="u")
    assert standing(store.current()) == {}


def test_reviewers_who_contradict_each_other_make_a_dispute(store):
    say(store, "ax", "accept", "Ann")
    say(store, "ax", "reject", "Bob")
    say(store, "by", "skip", "Ann")
    say(store, "by", "accept", "Bob")
    found = store.current()
    assert standing(found) == {("a", "x"): "disputed", ("b", "y"): "accept"}
    assert found.disputed[0].reviewers == ("Ann", "Bob")
    assert found.disputed[0].reason == "Ann: accept, Bob: reject"
    store.undo(reviewer="Bob", key="u1")  # that of b and y
    store.undo(reviewer="Bob", key="u2")
    assert standing(store.current()) == {("a", "x"): "accept", ("b", "y"): "skip"}


@pytest.mark.parametrize(
    ("cardinality", "disputed"), [("1:1", "ax ay bx"), ("1:n", "ax bx"), ("n:1", "ax ay"), ("n:m", "")]
)
def test_accepted_pairs_that_cannot_all_be_right_are_disputed(store, cardinality, disputed):
    for pair in ("ax", "ay", "bx", "cz"):
        say(store, pair)
    found = store.current(cardinality)
    assert {"".join((one.source, one.target)) for one in found.disputed} == set(disputed.split())
    assert len(found.accepted) == 4 - len(found.disputed)
    assert all("was also accepted with" in one.reason for one in found.disputed)


def test_nobody_undoes_what_somebody_else_said(store):
    first = say(store, "ax", "accept", "Ann")
    assert store.undo(reviewer="Bob", key="u") is None
    assert store.undo(reviewer="Bob", key="v", number=first.number) is None
    assert standing(store.current()) == {("a", "x"): "accept"}


def test_what_a_log_said_earlier_can_be_told_again(store):
    say(store, "ax", "accept")
    say(store, "by", "reject")
    store.undo(reviewer="Ann", key="u")
    assert [len(list(store.current(until=number))) for number in range(4)] == [0, 1, 2, 1]


answers = st.tuples(
    st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from((*ANSWERS, UNDO)), st.sampled_from(("Ann", "Bob"))
)


@given(st.lists(answers, max_size=12))
def test_every_log_says_one_thing_of_a_pair(said):
    """Accepted and rejected pairs are disjoint, accepted ones one-to-one, and nobody's undone answer counts."""
    entries, mine = [], {"Ann": [], "Bob": []}
    for number, (source, target, answer, reviewer) in enumerate(said, start=1):
        undoes = mine[reviewer].pop() if answer == UNDO and mine[reviewer] else None
        if answer != UNDO:
            mine[reviewer].append(number)
        instead = {"x": "y", "y": "x"}[target] if answer == OTHER else ""
        more = {"key": str(number), "instead": instead, "undoes": undoes, "reviewer": reviewer}
        facts = {"number": number, "source": source, "target": target, "answer": answer, "time": f"{number:03}"}
        if answer != UNDO or undoes is not None:
            entries.append(Entry(**facts, **more, is_blind=False, confidence=None))
    found = resolve(entries)
    pairs = [(one.source, one.target) for one in found]
    assert len(pairs) == len(set(pairs))
    for side in (0, 1):
        ends = [(one.source, one.target)[side] for one in found.accepted]
        assert len(ends) == len(set(ends))
    left = [entry for entry in entries if entry.number in mine["Ann"] + mine["Bob"]]
    assert resolve(left) == found


# ---- nothing lost, nothing doubled ----------------------------------------------------------------------------------


def test_a_repeated_request_counts_once(store):
    first = store.answer("a", "x", "accept", reviewer="Ann", key="same")
    assert store.answer("a", "x", "accept", reviewer="Ann", key="same") == first
    undone = store.undo(reviewer="Ann", key="again")
    assert store.undo(reviewer="Ann", key="again") == undone
    assert len(store.entries()) == 2
    for change in ({"answer": "reject"}, {"target": "y"}, {"reviewer": "Bob"}):
        facts = {"source": "a", "target": "x", "answer": "accept", "reviewer": "Ann"} | change
        with pytest.raises(InputError, match="belongs to another"):
            store.answer(**facts, key="same")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"answer": "maybe"}, "unknown answer"),
        ({"answer": "other"}, "another target"),
        ({"answer": "accept", "instead": "y"}, "another target"),
        ({"answer": "other", "instead": "x"}, "another target"),
        ({"reviewer": " "}, "name of a reviewer"),
        ({"reviewer": "A" * 201}, "name of a reviewer"),
        ({"key": ""}, "key of its own"),
    ],
)
def test_bad_answers_are_refused(store, facts, words):
    usual = {"source": "a", "target": "x", "answer": "accept", "reviewer": "Ann", "key": "k"}
    with pytest.raises(InputError, match=words):
        store.answer(**usual | facts)
    assert store.entries() == []


def test_rows_are_never_changed_or_removed(store):
    say(store, "ax")
    with sqlite3.connect(store.path) as other:
        for statement in ("UPDATE entries SET answer = 'reject'", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="only added"):
                other.execute(statement)
    other.close()
    assert standing(store.current()) == {("a", "x"): "accept"}


def test_threads_and_processes_write_at_once(store):
    def work(name):
        with VerdictStore(store.path) as own:
            for number in range(10):
                own.answer(f"{name}{number}", "x", "skip", reviewer=name, key=f"{name}{number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("Ann", "Bob", "Cem")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = store.entries()
    assert len({entry.key for entry in entries}) == 30
    assert [entry.number for entry in entries] == list(range(1, 31))


WRITER = """
import sys
from rlea.verdicts import VerdictStore
store = VerdictStore(sys.argv[1])
for number in range(int(sys.argv[2]), 10000):
    store.answer(f"s{number}", "t", "accept", reviewer="Ann", key=str(number))
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_has_acknowledged(tmp_path):
    """Killed in the middle of its work, several times; it starts again where its reader has heard of last."""
    path, heard = tmp_path / "verdicts.sqlite", 0
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, str(path), str(heard)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ})
        try:
            for _ in range(7):
                assert process.stdout.readline() == f"{heard}\n"
                heard += 1
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        with VerdictStore(path) as store:
            keys = [entry.key for entry in store.entries()]
        # What was written after the last line that was read may be there, too; that it is sent again doubles nothing.
        assert keys == [str(number) for number in range(len(keys))]
        assert len(keys) >= heard
    assert list(tmp_path.glob("*-wal")) == []


# ---- who looks at what ----------------------------------------------------------------------------------------------


def test_a_pair_that_somebody_looks_at_is_not_handed_to_another(store):
    assert store.lease("a", "x", "one", now=0)
    assert store.lease("a", "x", "one", now=1)
    assert not store.lease("a", "x", "two", now=2)
    assert store.leased_to_others("two", now=2) == {("a", "x")}
    assert store.leased_to_others("one", now=2) == set()
    assert store.lease("a", "x", "two", now=2 + LEASE_SECONDS)
    assert store.lease("b", "y", "two", now=2 + LEASE_SECONDS)  # who looks at the next pair leaves the last one
    assert store.lease("a", "x", "one", now=3 + LEASE_SECONDS)


# ---- files ----------------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_store_is_said_in_a_sentence(tmp_path):
    path = tmp_path / "verdicts.sqlite"
    with pytest.raises(InputError, match=r"there are no verdicts; .*rlea review"):
        VerdictStore(path, must_exist=True)
    assert not path.exists()
    path.write_text("nonsense " * 1000)
    with pytest.raises(InputError, match="cannot be opened as verdicts"):
        VerdictStore(path)
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 9")
        other.execute("CREATE TABLE entries (x)")
    other.close()
    with pytest.raises(InputError, match="format is 9"):
        VerdictStore(path)


def test_a_store_can_be_read_where_nothing_can_be_written(store):
    say(store, "ax")
    store.path.chmod(0o444)
    with VerdictStore(store.path, must_exist=True) as again:
        assert standing(again.current()) == {("a", "x"): "accept"}


# ---- in later runs --------------------------------------------------------------------------------------------------


@pytest.fixture
def reviewed(tmp_path):
    """A pair of graphs whose entities are a0.. and b0.., and folders of runs to say something in."""
    sides = {"a": "source.nt", "b": "target.nt"}
    for letter, name in sides.items():
        triples = [f"<e:{letter}{n}> <e:next> <e:{letter}{(n + 1) % 8}> .\n" for n in range(8)]
        (tmp_path / name).write_text("".join(triples))

    def put(folder, *said):
        (tmp_path / folder).mkdir(exist_ok=True)
        with VerdictStore.of_run(tmp_path / folder) as store:
            for number, (answer, source, target) in enumerate(said, start=len(store.entries())):
                store.answer(f"e:{source}", f"e:{target}", answer, reviewer="Ann", key=f"{number}")
        return tmp_path / folder

    def read(places, seeds=None, **more):
        return rlea.read(tmp_path / "source.nt", tmp_path / "target.nt", seeds=seeds, verdicts=places, **more)

    return put, read


def pairs(links, graphs):
    rows = zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)
    return {(graphs.source.entities[s][2:], graphs.target.entities[t][2:]) for s, t in rows}


def barred(pair):
    return {(pair.source.entities[s][2:], pair.target.entities[t][2:]) for s, t in pair.cannot_link.pairs}


def test_accepted_pairs_are_seeds_and_rejected_ones_are_forbidden(reviewed):
    put, read = reviewed
    folder = put("run", ("accept", "a1", "b1"), ("reject", "a2", "b3"), ("accept", "a7", "b7"))
    pair = read(
        folder, seeds=[("e:a0", "e:b0"), ("e:a1", "e:b2"), ("e:a2", "e:b3")], gold=[("e:a7", "e:b5"), ("e:a6", "e:b6")]
    )
    assert pairs(pair.train, pair) == {("a0", "b0"), ("a1", "b1"), ("a7", "b7")}  # a person's word goes before a seed's
    assert barred(pair) == {("a2", "b3")}
    assert pairs(pair.test, pair) == {("a6", "b6")}
    assert any("left out 2 seeds" in note for note in pair.notes)
    assert any("not repeated among the links" in note for note in pair.notes)
    assert any("left out 1 gold links" in note for note in pair.notes)
    assert pair.inputs["verdicts"] == f"{folder}@3"
    assert barred(pair.without_gold) == {("a2", "b3")}


def test_a_later_folder_goes_before_an_earlier_one(reviewed):
    put, read = reviewed
    first = put("one", ("accept", "a1", "b1"), ("reject", "a2", "b2"), ("accept", "a5", "b5"))
    second = put("two", ("reject", "a1", "b1"), ("accept", "a2", "b2"), ("accept", "a5", "b6"))
    pair = read([first, second])
    assert pairs(pair.train, pair) == {("a2", "b2"), ("a5", "b6")}
    assert barred(pair) == {("a1", "b1")}


def test_a_log_is_taken_as_it_was(reviewed):
    put, read = reviewed
    folder = put("run", ("accept", "a1", "b1"), ("accept", "a2", "b2"))
    assert len(read(f"{folder}@1").train) == 1
    assert parse_place(f"{folder}@1") == (folder, 1)
    (folder.parent / "run@7").mkdir()
    assert parse_place(folder.parent / "run@7") == (folder.parent / "run@7", None)


def test_verdicts_on_other_graphs_are_refused_or_left_out(reviewed):
    put, read = reviewed
    with pytest.raises(InputError, match="no verdict is about these graphs"):
        read(put("other", ("accept", "x", "y")))
    pair = read(put("some", ("accept", "a1", "b1"), ("accept", "x", "y")))
    assert len(pair.train) == 1
    assert any("left out 1 verdicts" in note for note in pair.notes)


def test_disputed_pairs_are_neither(reviewed):
    put, read = reviewed
    folder = put("run", ("accept", "a1", "b1"), ("accept", "a1", "b2"), ("accept", "a3", "b3"))
    pair = read(folder)
    assert pairs(pair.train, pair) == {("a3", "b3")}
    assert pair.cannot_link.is_empty
    assert any("2 pairs are disputed" in note for note in pair.notes)


def test_a_run_with_verdicts_is_recorded_and_can_be_made_and_read_again(reviewed, run_cli, tmp_path):
    """A log that has grown since changes neither the repetition nor the explanation of a run."""
    put, _ = reviewed
    folder = put("run", *(("accept", f"a{n}", f"b{n}") for n in range(4)), ("reject", "a6", "b6"))
    command = ["align", tmp_path / "source.nt", tmp_path / "target.nt", "--matcher", "mutual", "--embedding", "names"]
    done = run_cli(*command, "--verdicts", folder, "--output", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["inputs"]["verdicts"] == f"{folder}@5"
    links = (tmp_path / "out" / "links.tsv").read_text()
    assert "e:a0\t" not in links  # a seed now
    assert "e:a6\te:b6\t" not in links
    put("run", ("accept", "a5", "b5"))
    assert run_cli("explain", tmp_path / "out", "e:a0", "--json").code == 0
    again = run_cli("align", "--config", tmp_path / "out" / "run.toml", "--output", tmp_path / "again", "--json")
    assert again.code == 0, again.err
    assert (tmp_path / "again" / "links.tsv").read_text() == links
    assert run_cli(*command, "--verdicts", tmp_path / "nowhere").code == 2


def test_verdicts_are_for_two_graphs(reviewed, run_cli, tmp_path):
    graphs = [tmp_path / name for name in ("source.nt", "target.nt", "source.nt")]
    done = run_cli("align", *graphs, "--verdicts", tmp_path)
    assert done.code == 2
    assert "--verdicts is for two graphs" in " ".join(done.err.split())


def test_a_pair_without_verdicts_is_the_same_object_but_for_the_record(reviewed):
    put, read = reviewed
    pair = read(put("run", ("skip", "a1", "b1")))
    assert with_verdicts(pair, [put("run")]).fingerprint == pair.fingerprint


def test_a_benchmark_folder_takes_verdicts_beside_its_own_links(tmp_path):
    plain = rlea.read_demo()
    source, target = plain.test.source_ids[0], plain.test.target_ids[0]
    names = plain.source.entities[source], plain.target.entities[target]
    with VerdictStore.of_run(tmp_path) as store:
        store.answer(*names, "accept", reviewer="Ann", key="k")
    pair = rlea.read(demo_folder(), verdicts=tmp_path)
    assert len(pair.train) == len(plain.train) + 1
    assert len(pair.test) == len(plain.test) - 1  # what was learned from is not scored
    assert int(pair.train.target_ids[pair.train.source_ids == source][0]) == target
    assert dict(pair.inputs) == {"demo": "yes", "verdicts": f"{tmp_path}@1"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("source", b"\xff"),
        ("answer", "perhaps"),
        ("reviewer", b"Ann"),
        ("time", b""),
        ("undoes", "x"),
        ("confidence", "much"),
    ],
)
def test_a_row_of_another_hand_is_said_in_a_sentence(column, value, store):
    say(store, "ax")
    store.close()
    with sqlite3.connect(store.path) as other:
        other.executescript("PRAGMA ignore_check_constraints=1; DROP TRIGGER no_change")
        other.execute(f"UPDATE entries SET {column} = ?", (value,))
    other.close()
    with VerdictStore(store.path) as again, pytest.raises(InputError, match=r"cannot be read as verdicts.*no answer"):
        again.current()


def test_a_store_that_is_damaged_behind_its_first_page_is_said_in_a_sentence(store):
    for number in range(200):
        store.answer(f"s{number}", "t" * 100, "accept", reviewer="Ann", key=str(number))
    store.close()
    content = bytearray(store.path.read_bytes())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    store.path.write_bytes(content)
    with VerdictStore(store.path) as again:
        for call in (again.entries, lambda: again.answer("a", "b", "accept", reviewer="Ann", key="new")):
            with pytest.raises(InputError, match="cannot be read as verdicts, or written to"):
                call()
