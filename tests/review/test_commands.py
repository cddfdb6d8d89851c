"""`rlea label`, `rlea verdicts` and `rlea review` as a person runs them."""

import io
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from review.conftest import S, T
from rlea.io.readers.link_files import read_link_rows
from rlea.verdicts import VERDICTS, VerdictStore
from sssom_tool import parse_sssom, quiet


@pytest.fixture
def label(run_cli, monkeypatch, folder):
    """`rlea label` with typed lines."""

    def run(typed, *options):
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        return run_cli("label", folder, "--quiet", "--reviewer", "Ann", *options)

    return run


def entries(folder):
    with VerdictStore.of_run(folder) as store:
        return store.entries()


# ---- label ----------------------------------------------------------------------------------------------------------


def test_questions_in_a_terminal(label, folder):
    done = label("y\nwhat?\nn\n1\ns\n", "--number", "4")
    assert done.code == 0, done.err
    said = entries(folder)
    assert [one.answer for one in said] == ["accept", "reject", "other", "skip"]
    assert {one.reviewer for one in said} == {"Ann"}
    assert said[2].instead.startswith(T)
    assert "y same, n not the same" in done.out  # twice more than asked: what? is no key
    assert "Question 4 of 4" in done.out
    assert "4 answers kept in" in done.out


def test_undo_asks_the_same_again(label, folder):
    done = label("y\nu\nn\nu\nu\n", "--number", "2")
    assert done.code == 0
    first, undone, second, again = entries(folder)
    assert (first.answer, undone.answer, second.answer, again.answer) == ("accept", "undo", "reject", "undo")
    assert (first.source, first.target) == (second.source, second.target)
    assert (undone.undoes, again.undoes) == (1, 3)
    assert "There is nothing to undo." in done.out


def test_the_end_of_input_ends_it_and_what_was_answered_stays(label, folder):
    assert label("y\n").code == 0
    assert label("y\nq\ny\n").code == 0
    assert [one.answer for one in entries(folder)] == ["accept", "accept"]
    assert len({one.source for one in entries(folder)}) == 2


def test_blind_questions_show_no_scores(label, folder):
    shown, hidden = label("q\n").out, label("y\n", "--blind", "--number", "1").out
    assert "The run links them" in shown
    assert "Channels" in shown
    assert "The run links them" not in hidden
    assert "Channels" not in hidden
    assert entries(folder)[0].is_blind


def test_label_for_machines(label, folder):
    done = label("y\n", "--json", "--number", "1")
    found = json.loads(done.out)
    assert (found["answers"], found["verdicts"]) == (1, str(folder / VERDICTS))


def test_the_script_in_a_label_is_no_markup(label):
    done = label("s\n" * 40, "--number", "40")
    assert "<script>document.title" in done.out


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("label", "nowhere"), "there is no such folder"),
        (("review", "nowhere"), "there is no such folder"),
        (("verdicts", "nowhere"), "there is no such folder"),
        (("label", "RUN", "--order", "x"), "unknown order"),
        (("label", "RUN", "--reviewer", "A" * 300), "name of a reviewer"),
        (("verdicts", "RUN"), "there are no verdicts"),
        (("verdicts", "RUN", "--rejected"), "--rejected says what to write"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(run_cli, monkeypatch, folder, command, words):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    done = run_cli(*(folder if word == "RUN" else word for word in command))
    assert done.code == 2
    assert words in " ".join(done.err.split())


# ---- verdicts -------------------------------------------------------------------------------------------------------


@pytest.fixture
def answered(folder):
    """Two accepted (one by two people, one with an ORCID), one rejected, one disputed, one skipped."""
    said = [
        ("02", "accept", "Ann"), ("02", "accept", "Bob | Co"), ("03", "accept", "0000-0002-1825-0097"),
        ("04", "reject", "Ann"), ("05", "accept", "Ann"), ("05", "reject", "Bob | Co"), ("06", "skip", "Ann"),
    ]  # fmt: skip
    with VerdictStore.of_run(folder) as store:
        for number, (town, answer, who) in enumerate(said):
            store.answer(f"{S}t{town}", f"{T}t{town}", answer, reviewer=who, key=str(number))
    return folder


def test_what_was_answered_is_listed(run_cli, answered):
    done = run_cli("verdicts", answered)
    assert done.code == 0
    assert "2 accepted, 1 rejected, 1 skipped, 1 disputed" in done.out
    assert f"Disputed: {S}t05 - {T}t05 (Ann: accept, Bob | Co: reject)" in done.out
    found = json.loads(run_cli("verdicts", answered, "--json").out)
    assert found["reviewers"] == {"Ann": 4, "Bob | Co": 2, "0000-0002-1825-0097": 1}


@quiet
def test_verdicts_as_sssom(run_cli, answered, tmp_path):
    path = tmp_path / "curated.sssom.tsv"
    done = run_cli("verdicts", answered, "--output", path)
    assert "1 pair is disputed and left out" in " ".join(done.err.split())
    frame = parse_sssom(path).df.set_index("subject_id").fillna("")
    assert set(frame["mapping_justification"]) == {"semapv:ManualMappingCuration"}
    assert dict(frame["predicate_modifier"]) == {"ns1:t02": "", "ns1:t03": "", "ns1:t04": "Not"}
    assert dict(frame["reviewer_label"]) == {"ns1:t02": "Ann|Bob Co", "ns1:t03": "", "ns1:t04": "Ann"}
    assert dict(frame["reviewer_id"]) == {"ns1:t02": "", "ns1:t03": "orcid:0000-0002-1825-0097", "ns1:t04": ""}
    days = {one.time[:10] for one in entries(answered)}
    assert set(frame["mapping_date"].astype(str)) <= days
    back = read_link_rows(path)  # `Not` is no link
    assert set(back.sources) == {f"{S}t02", f"{S}t03"}


def test_verdicts_as_seeds_and_as_pairs_to_keep_apart(run_cli, answered, tmp_path):
    seeds, apart = tmp_path / "seeds.tsv", tmp_path / "apart.tsv"
    assert run_cli("verdicts", answered, "--output", seeds).code == 0
    assert run_cli("verdicts", answered, "--output", apart, "--rejected").code == 0
    assert sorted(read_link_rows(seeds).sources) == [f"{S}t02", f"{S}t03"]
    assert read_link_rows(apart).targets == (f"{T}t04",)
    assert run_cli("verdicts", answered, "--output", tmp_path / "x.sssom.tsv", "--rejected").code == 2


# ---- review ---------------------------------------------------------------------------------------------------------


def start(folder, *options):
    command = [sys.executable, "-u", "-m", "rlea", "review", str(folder), "--no-browser", "--quiet", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    line = process.stdout.readline()
    assert line.startswith("40 pairs to review at http://127.0.0.1:"), process.stderr.read()
    return process, line.split(" at ")[1].split(" ")[0]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal")
def test_review_serves_until_ctrl_c(folder):
    process, address = start(folder, "--port", "0")
    try:
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.split("?")[0], timeout=30)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (0, "Ended.\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_server_has_lost_no_answer(folder):
    """After every answer that it has acknowledged, the server is killed; the last request is sent again to the next."""
    last = None
    for number in range(3):
        process, address = start(folder, "--port", "0")
        try:
            base, token = address.split("/?token=")
            for body in [last, answer_of(number)] if last else [answer_of(number)]:
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
                request = urllib.request.Request(f"{base}/api/verdict", json.dumps(body).encode(), headers)
                with urllib.request.urlopen(request, timeout=30) as reply:
                    assert reply.status == 200
            last = answer_of(number)
        finally:
            process.kill()
            process.communicate()
        assert [one.key for one in entries(folder)] == [f"key {k}" for k in range(number + 1)]


def answer_of(number):
    ends = {"source": f"{S}t{number + 10}", "target": f"{T}t{number + 10}"}
    return ends | {"answer": "accept", "reviewer": "Ann", "key": f"key {number}"}


def test_other_addresses_than_loopback_are_warned_of(run_cli, folder):
    done = run_cli("review", folder, "--host", "192.0.2.1", "--no-browser")  # for documentation: nobody has it
    assert done.code == 2
    assert "192.0.2.1 is no loopback address" in " ".join(done.err.split())
