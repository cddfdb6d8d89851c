"""The trace of a pass: the order of its links, and the best pairs of every source."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from rlea.agent.passes import Decisions
from rlea.agent.trace import FORMAT, RIVALS, Trace
from rlea.errors import InputError
from rlea.search.pairs import Pairs

ARRAYS = ("source_ids", "target_ids", "priorities", "confidences",
          "pair_source_ids", "pair_target_ids", "logits", "features")  # fmt: skip


def decisions_of(pairs, logits, links=()):
    source, target = (np.array([link[side] for link in links], np.int32) for side in (0, 1))
    place = np.arange(len(links), dtype=np.float32)
    return Decisions(source, target, 9 - place, 1 / (2 + place), pairs, logits)


def own_ids(pairs):
    """Features from which the pair can be read."""
    return np.column_stack([pairs.source_ids, 10 * pairs.target_ids])


@pytest.fixture
def trace():
    pairs = Pairs.of(np.array([3, 3, 5, 5, 9]), np.array([0, 1, 0, 1, 1]))
    logits = np.array([1, 2, 4, 3, 0], np.float32)
    return Trace.of(decisions_of(pairs, logits, [(5, 0), (3, 1)]), own_ids, ("own", "other"))


def test_lookups(trace):
    assert len(trace) == 2
    assert [trace.step(source) for source in (5, 3, 9, 0)] == [1, 2, None, None]
    targets, logits = trace.pairs(3)
    assert (targets.tolist(), logits.tolist()) == ([1, 0], [2.0, 1.0])
    assert [len(trace.pairs(source)[0]) for source in (0, 4, 5, 9, 10)] == [0, 0, 2, 1, 0]
    assert trace.features_of(3, 1).tolist() == [3.0, 10.0]
    assert (trace.features_of(9, 0), trace.features_of(4, 0)) == (None, None)
    assert (trace.logit_of(5, 1), trace.logit_of(9, 0)) == (3.0, None)
    assert [trace.source_of(target) for target in (0, 1, 7)] == [5, 3, None]
    assert [trace.best_source(target) for target in (0, 1, 7)] == [5, 5, None]


def test_a_link_is_kept_that_is_not_among_the_best():
    logits = np.arange(8, 0, -1).astype(np.float32)
    trace = Trace.of(decisions_of(Pairs.of(np.zeros(8), np.arange(8)), logits, [(0, 7)]), own_ids, ("own", "other"))
    assert trace.pairs(0)[0].tolist() == [*range(RIVALS), 7]
    assert trace.features_of(0, 7).tolist() == [0.0, 70.0]


@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(-3, 3)), max_size=60, unique_by=lambda row: row[:2]
    )
)
def test_the_best_pairs_of_every_source_are_kept(rows):
    rows = sorted(rows)
    source, target, logits = (np.array([row[column] for row in rows], np.int32) for column in range(3))
    trace = Trace.of(decisions_of(Pairs(source, target), logits.astype(np.float32)))
    for number in range(7):
        best = sorted((-w, t) for s, t, w in rows if s == number)[:RIVALS]
        targets, values = trace.pairs(number)
        assert [(-w, t) for w, t in zip(values.tolist(), targets.tolist(), strict=True)] == best


def test_saved_and_loaded_it_is_the_same(trace, tmp_path):
    path = tmp_path / "new" / "decisions.safetensors"
    empty = Trace.of(decisions_of(Pairs.of(np.zeros(0), np.zeros(0)), np.zeros(0, np.float32)))
    for one in (empty, trace):
        one.save(path)
        again = Trace.load(path)
        for name in ARRAYS:
            assert getattr(again, name).dtype == getattr(one, name).dtype
            assert getattr(again, name).tolist() == getattr(one, name).tolist()
        assert again.columns == one.columns
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("features", lambda array: array[1:], "do not fit together"),
        ("features", lambda array: array[:, :1].copy(), "do not fit together"),
        ("target_ids", lambda array: np.append(array, array), "do not fit together"),
        ("source_ids", lambda array: array[None], "do not fit together"),
        ("pair_source_ids", lambda array: array[::-1].copy(), "do not fit together"),
        ("priorities", lambda array: array.astype(np.float64), "in the format of this version"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(trace, tmp_path, name, change, words):
    path = tmp_path / "decisions.safetensors"
    arrays = {key: getattr(trace, key) for key in ARRAYS}
    about = f'{{"format": "{FORMAT}", "columns": ["own", "other"]}}'
    save_file({**arrays, name: change(arrays[name])}, path, metadata={"rlea": about})
    with pytest.raises(InputError, match=words):
        Trace.load(path)


@pytest.mark.parametrize("about", [None, {"rlea": "[]"}, {"rlea": '{"format": "rlea decisions 2"}'}])
def test_files_of_another_format_are_refused(trace, tmp_path, about):
    path = tmp_path / "decisions.safetensors"
    save_file({key: getattr(trace, key) for key in ARRAYS}, path, metadata=about)
    with pytest.raises(InputError, match=r"in the format of this version; align again"):
        Trace.load(path)
    path.write_bytes(b"nonsense that is no file of tensors")
    for place in (path, tmp_path / "missing"):
        with pytest.raises(InputError, match="cannot be read"):
            Trace.load(place)
