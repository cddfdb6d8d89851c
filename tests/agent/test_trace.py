"""What is kept of a pass: the order, and the best pairs of every source."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from rlea.agent.passes import Decisions
from rlea.agent.trace import RIVALS, Trace
from rlea.errors import InputError
from rlea.search.pairs import Pairs

ARRAYS = ("source_ids", "target_ids", "keys", "confidences", "pair_source_ids", "pair_target_ids", "worth", "says")


def decisions_of(pairs, worth, links=()):
    source, target = (np.array([link[side] for link in links], np.int32) for side in (0, 1))
    place = np.arange(len(links), dtype=np.float32)
    return Decisions(source, target, 9 - place, 1 / (2 + place), pairs, worth)


@pytest.fixture
def trace():
    pairs = Pairs.of(np.array([3, 3, 5, 5, 9]), np.array([0, 1, 0, 1, 1]))
    worth = np.array([1, 2, 4, 3, 0], np.float32)
    return Trace.of(decisions_of(pairs, worth, [(5, 0), (3, 1)]), say, ("own", "other"))


def say(pairs):
    """A row that tells which pair it is of."""
    return np.column_stack([pairs.source_ids, 10 * pairs.target_ids])


def test_what_is_said_of_a_pair_is_kept_with_it(trace):
    assert trace.said(3, 1).tolist() == [3.0, 10.0]
    assert trace.said(9, 1).tolist() == [9.0, 10.0]
    assert trace.said(9, 0) is None
    assert trace.said(4, 0) is None


def test_who_is_given_a_target_and_who_is_nearest(trace):
    assert [trace.given_to(target) for target in (0, 1, 7)] == [5, 3, None]
    assert [trace.best_source(target) for target in (0, 1, 7)] == [5, 5, None]
    alone = Trace.of(decisions_of(Pairs.of(np.array([2, 4]), np.array([1, 1])), np.array([-2, -1], np.float32)))
    assert (alone.given_to(1), alone.best_source(1)) == (None, 4)


def test_a_link_is_kept_that_is_not_among_the_best():
    pairs = Pairs.of(np.zeros(8), np.arange(8))
    worth = np.arange(8, 0, -1).astype(np.float32)
    trace = Trace.of(decisions_of(pairs, worth, [(0, 7)]), say, ("own", "other"))
    assert trace.pairs(0)[0].tolist() == [*range(RIVALS), 7]
    assert trace.said(0, 7).tolist() == [0.0, 70.0]


def test_steps_count_from_one_and_pairs_stand_best_first(trace):
    assert [trace.step(source) for source in (5, 3, 9, 0)] == [1, 2, None, None]
    assert len(trace) == 2
    targets, worth = trace.pairs(3)
    assert (targets.tolist(), worth.tolist()) == ([1, 0], [2.0, 1.0])
    assert [len(trace.pairs(source)[0]) for source in (0, 4, 5, 9, 10)] == [0, 0, 2, 1, 0]


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(-3, 3)), max_size=60, unique_by=lambda row: row[:2]
    )
)
def test_the_best_pairs_of_every_source_are_kept(rows):
    rows = sorted(rows)
    source, target, worth = (np.array([row[column] for row in rows], np.int32) for column in range(3))
    trace = Trace.of(decisions_of(Pairs(source, target), worth.astype(np.float32)))
    for number in range(7):
        best = sorted((-w, t) for s, t, w in rows if s == number)[:RIVALS]
        targets, values = trace.pairs(number)
        assert [(-w, t) for w, t in zip(values.tolist(), targets.tolist(), strict=True)] == best
    assert len(trace.worth) <= len(rows)


def test_a_pass_without_worth_keeps_its_order_alone():
    pairs = Pairs.of(np.array([0, 1]), np.array([1, 0]))
    trace = Trace.of(decisions_of(pairs, None, [(1, 0)]))
    assert trace.step(1) == 1
    assert len(trace.pairs(1)[0]) == len(trace.worth) == 0


def test_saved_and_loaded_it_is_the_same(trace, tmp_path):
    path = tmp_path / "new" / "decisions.safetensors"
    trace.save(path)
    again = Trace.load(path)
    for name in ARRAYS:
        assert getattr(again, name).dtype == getattr(trace, name).dtype
        assert getattr(again, name).tolist() == getattr(trace, name).tolist()
    assert again.columns == trace.columns == ("own", "other")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_empty_pass_can_be_kept(tmp_path):
    Trace.of(decisions_of(Pairs.of(np.zeros(0), np.zeros(0)), np.zeros(0, np.float32))).save(tmp_path / "none")
    assert len(Trace.load(tmp_path / "none")) == 0


def test_a_failed_save_leaves_the_old_file(trace, tmp_path, monkeypatch):
    path = tmp_path / "decisions.safetensors"
    path.write_bytes(b"old")

    def fail(*_, **__):
        raise OSError("full")

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    with pytest.raises(OSError, match="full"):
        trace.save(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def broken(trace, name, change):
    arrays = {key: getattr(trace, key) for key in ARRAYS}
    return {**arrays, name: change(arrays[name])} if name else change(arrays)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("says", lambda array: array[1:], "do not fit together"),
        ("says", lambda array: array[:, 0].copy(), "do not fit together"),
        ("says", lambda array: array[:, :1].copy(), "do not fit together"),
        ("worth", lambda array: array[1:], "do not fit together"),
        ("target_ids", lambda array: np.append(array, array), "do not fit together"),
        ("source_ids", lambda array: array[None], "do not fit together"),
        ("pair_source_ids", lambda array: array[::-1].copy(), "do not fit together"),
        ("keys", lambda array: array.astype(np.float64), "of this version"),
        ("", lambda arrays: {"worth": arrays["worth"]}, "of this version"),
    ],
)
def test_files_that_are_no_trace_are_refused(trace, tmp_path, name, change, words):
    path = tmp_path / "decisions.safetensors"
    about = '{"format": "rlea decisions 2", "columns": ["own", "other"]}'
    save_file(broken(trace, name, change), path, metadata={"rlea": about})
    with pytest.raises(InputError, match=words):
        Trace.load(path)


@pytest.mark.parametrize("about", [None, {"rlea": "[]"}, {"rlea": '{"format": "rlea decisions 1"}'}])
def test_other_safetensors_are_refused(trace, tmp_path, about):
    path = tmp_path / "decisions.safetensors"
    save_file({key: getattr(trace, key) for key in ARRAYS}, path, metadata=about)
    with pytest.raises(InputError, match="of this version"):
        Trace.load(path)


@pytest.mark.parametrize("content", [b"", b"nonsense that is no file of tensors"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "decisions.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        Trace.load(path)
    with pytest.raises(InputError, match="cannot be read"):
        Trace.load(tmp_path / "missing")
