"""Training steps of translational models with a mapping, written out for processors: gradients, Adagrad, Adam.

`mtranse` and `sea` have the same steps in the words of their papers, with automatic gradients; tests hold them
together. Here
- only rows that a batch touches are read and written;
- a gradient is kept as a few vectors and, for each row, which of them to add: rows are then summed and moved in
  parallel without races, in the same order for any number of threads;
- rows without gradient also move under Adam, by the momentum they have left. That path is known beforehand (see
  `Adam`), so they move when they are next needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rlea.embed.unit_rows import FAST, adagrad_row, add_scaled, dot, inverse_lengths
from rlea.graph import Ids

Matrix = NDArray[np.float32]

_CHUNKS = 64  # parts of the rows or triples that threads take

# Adam as its paper and every framework have it unless asked otherwise.
KEEP_FIRST, KEEP_SECOND, EPSILON = 0.9, 0.999, 1e-8
_LONGEST = 256  # steps after which nothing is left of a momentum: 0.9^256 is 2e-12
_SETTLED = 20_000  # steps after which Adam's correction for its start is below the precision of 32 bits


@dataclass(frozen=True, eq=False)
class Table:
    """A row per entity, then a row per relation; changed in place. What counts is each row scaled to unit length."""

    raw: Matrix  # (num_rows, dim)
    scales: NDArray[np.float32]  # (num_rows,) one over the length of the raw vector

    @staticmethod
    def of(raw: Matrix, scales: NDArray[np.float32] | None = None) -> Table:
        """Copies of the arrays; `scales` are those of an earlier run to the last bit, or else computed."""
        if scales is None:
            scales = inverse_lengths(raw)
        return Table(raw.copy(), scales.copy())

    def units(self, rows: slice | Ids) -> Matrix:
        """Unit vectors of some rows."""
        result: Matrix = self.raw[rows] * self.scales[rows, None]
        return result


@dataclass(frozen=True, eq=False)
class Gradient:
    """The gradient of a loss by unit vectors: that of row i is the sum over begins[i] <= j < begins[i + 1] of
    factors[j] * vectors[picks[j]]. Parts along a unit vector itself do not matter: normalising takes them out.
    """

    begins: NDArray[np.int64]  # (num_rows + 1,)
    picks: NDArray[np.int32]  # (num_terms,)
    factors: NDArray[np.float32]  # (num_terms,)
    vectors: Matrix  # (num_vectors, dim)

    def cuts(self) -> NDArray[np.int64]:
        """Where to cut the rows into chunks of about as many terms."""
        shares = np.arange(_CHUNKS + 1) * (self.begins[-1] / _CHUNKS)
        cuts: NDArray[np.int64] = np.searchsorted(self.begins, shares).astype(np.int64)
        cuts[0], cuts[-1] = 0, len(self.begins) - 1
        return cuts


def distance_gradient(table: Table, positives: Ids) -> tuple[float, Gradient]:
    """Sum over triples (batch, 3) of |h + r - t|^2, and its gradient."""
    batch = len(positives)
    vectors = np.empty((batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score_distance(table.raw, table.scales, positives, vectors, losses)
    begins, picks, factors = _index_distance(positives, len(table.raw))
    return float(losses.sum(dtype=np.float64)), Gradient(begins, picks, factors, vectors)


def margin_gradient(
    table: Table,
    positives: Ids,  # (batch, 3)
    negatives: Ids,  # (batch,) corrupting entities; a triple with -1 does not count
    corrupt_tail: NDArray[np.bool_],  # (batch,) whether they stand for the tail, else for the head
    margin: float,
) -> tuple[float, Gradient]:
    """Sum over triples of max(0, margin + |h + r - t|^2 - |h' + r - t'|^2), and its gradient."""
    batch = len(positives)
    vectors = np.empty((3 * batch, table.raw.shape[1]), dtype=np.float32)
    losses = np.empty(batch, dtype=np.float32)
    _score_margin(table.raw, table.scales, positives, negatives, corrupt_tail, np.float32(margin), vectors, losses)
    begins, picks, factors = _index_margin(positives, negatives, corrupt_tail, losses, len(table.raw))
    return float(losses.sum(dtype=np.float64)), Gradient(begins, picks, factors, vectors)


def row_gradient(table: Table, rows: Ids, vectors: Matrix) -> Gradient:
    """The gradient that has vectors[i] for rows[i], summed where a row comes more than once."""
    order = np.argsort(rows, kind="stable").astype(np.int32)
    begins = np.zeros(len(table.raw) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(table.raw)), out=begins[1:])
    return Gradient(begins, order, np.ones(len(rows), dtype=np.float32), vectors)


def adagrad_step(table: Table, squares: Matrix, gradient: Gradient, rate: float) -> None:
    """One step of Adagrad; `squares` (num_rows, dim) are its sums of squared gradients."""
    _adagrad_rows(
        table.raw,
        table.scales,
        squares,
        gradient.cuts(),
        gradient.begins,
        gradient.picks,
        gradient.factors,
        gradient.vectors,
        np.float32(rate),
    )


@dataclass(eq=False)
class Adam:
    """Adam over a table whose steps touch few rows, with the effect of moving every row at every step.

    A row without gradient moves by rate_t * m / sqrt(v) at step t, and m and v shrink by constant factors. After k
    such steps from step s its vector has moved by

        m / sqrt(v) * sum over j = 1..k of rate_(s + j) * (0.9 / sqrt(0.999))^j

    (but for epsilon, which is there for v = 0 alone), a number for the whole row times what the row remembers.
    """

    rate: float
    first: Matrix  # (num_rows, dim) m, as of step `last`
    second: Matrix  # (num_rows, dim) v, likewise
    last: NDArray[np.int64]  # (num_rows,) the step up to which a row has been moved
    steps: int  # taken so far

    @staticmethod
    def of(arrays: dict[str, NDArray[Any]], prefix: str, table: Table, rate: float) -> Adam:
        """As `arrays` have it, or before the first step where they do not."""
        if f"{prefix}.steps" not in arrays:
            raw = table.raw
            return Adam(rate, np.zeros_like(raw), np.zeros_like(raw), np.zeros(len(raw), dtype=np.int64), 0)
        state = {name: arrays[f"{prefix}.{name}"].copy() for name in ("first", "second", "last")}
        return Adam(rate, **state, steps=int(arrays[f"{prefix}.steps"][0]))

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {
            f"{prefix}.first": self.first,
            f"{prefix}.second": self.second,
            f"{prefix}.last": self.last,
            f"{prefix}.steps": np.array([self.steps], dtype=np.int64),
        }

    def catch_up(self, table: Table, rows: Ids) -> None:
        """Move rows (each named once) by what they have missed. To be done before they are read."""
        _catch_up(table.raw, table.scales, self.first, self.second, self.last, rows, np.int64(self.steps), self._rates)

    def step(self, table: Table, gradient: Gradient) -> None:
        """One step; the rows that have a gradient must be up to date."""
        self.steps += 1
        _adam_rows(
            table.raw,
            table.scales,
            self.first,
            self.second,
            self.last,
            gradient.cuts(),
            gradient.begins,
            gradient.picks,
            gradient.factors,
            gradient.vectors,
            np.int64(self.steps),
            np.float32(self._rates[min(self.steps, _SETTLED)]),
        )

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        return self.rate * _CORRECTIONS


def _corrections() -> NDArray[np.float64]:
    """What makes up for m and v starting at zero, by step; the entry of step 0 is not used."""
    step = np.maximum(np.arange(_SETTLED + 1, dtype=np.float64), 1)
    result: NDArray[np.float64] = np.sqrt(1 - KEEP_SECOND**step) / (1 - KEEP_FIRST**step)
    return result


_CORRECTIONS = _corrections()


@dataclass(eq=False)
class MatrixAdam:
    """Adam over one small matrix, all of which has a gradient at every step."""

    rate: float
    value: Matrix
    first: Matrix
    second: Matrix

    @staticmethod
    def of(arrays: dict[str, NDArray[Any]], prefix: str, rate: float) -> MatrixAdam:
        """The matrix of that name, with its past where `arrays` have one."""
        value = arrays[prefix].copy()
        past = (arrays.get(f"{prefix}.{name}", np.zeros_like(value)).copy() for name in ("first", "second"))
        return MatrixAdam(rate, value, *past)

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {prefix: self.value, f"{prefix}.first": self.first, f"{prefix}.second": self.second}

    def step(self, gradient: Matrix, steps: int) -> None:
        """The step with number `steps`, the first being 1."""
        self.first += np.float32(1 - KEEP_FIRST) * (gradient - self.first)
        self.second += np.float32(1 - KEEP_SECOND) * (gradient * gradient - self.second)
        rate = np.float32(self.rate * _CORRECTIONS[min(steps, _SETTLED)])
        self.value -= rate * self.first / (np.sqrt(self.second) + np.float32(EPSILON))


def batch_rows(num_rows: int, *ids: Ids) -> Ids:
    """The rows that occur in arrays of ids, each once and in order; -1 stands for none."""
    touched = np.zeros(num_rows + 1, dtype=np.bool_)  # the last is where -1 goes
    for part in ids:
        touched[part.ravel()] = True
    return np.flatnonzero(touched[:num_rows]).astype(np.int32)


def orthogonal(dim: int, *, seed: int, number: int) -> Matrix:
    """A random orthogonal matrix (dim, dim), another for every `number`."""
    random = np.random.default_rng([seed, 0, 2, 1 + number])
    q, r = np.linalg.qr(random.standard_normal((dim, dim)))
    return np.ascontiguousarray(q * np.sign(np.diag(r)), dtype=np.float32)  # signs: else not all are as likely


def parts(num_items: int, num_parts: int, *, seed: int, epoch: int, stream: int) -> tuple[Ids, list[int]]:
    """The numbers below `num_items` in a new order for every epoch, and the cuts between parts of about one size."""
    order = np.random.default_rng([seed, epoch, 2, 1 + stream]).permutation(num_items).astype(np.int32)
    return order, (np.arange(num_parts + 1) * num_items // num_parts).tolist()


def mapped(units: Matrix, mapping: Matrix) -> Matrix:
    """Unit vectors taken into the other space, and scaled to unit length again."""
    with one_thread():
        result: Matrix = units @ mapping
    result /= np.maximum(np.sqrt(np.einsum("nd,nd->n", result, result)), np.float32(1e-12))[:, None]
    return result


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products on one thread: with more, sums would hang on their number."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1, user_api="blas"):
        yield


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _difference(
    head: Any, relation: Any, tail: Any, head_scale: Any, relation_scale: Any, tail_scale: Any, gradient: Any
) -> Any:
    """|h + r - t|^2 over unit vectors; fills in 2 (h + r - t), its gradient by h and r."""
    total = np.float32(0.0)
    for k in range(head.shape[0]):
        d = head_scale * head[k] + relation_scale * relation[k] - tail_scale * tail[k]
        gradient[k] = d + d
        total += d * d
    return total


@numba.njit(parallel=True, cache=True)
def _score_distance(raw: Any, scales: Any, positives: Any, vectors: Any, losses: Any) -> None:
    batch = len(positives)
    for chunk in numba.prange(_CHUNKS):
        for i in range(chunk * batch // _CHUNKS, (chunk + 1) * batch // _CHUNKS):
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            losses[i] = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], vectors[i])


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _subtract(a: Any, b: Any, result: Any) -> None:
    for k in range(a.shape[0]):
        result[k] = a[k] - b[k]


@numba.njit(parallel=True, cache=True)
def _score_margin(
    raw: Any, scales: Any, positives: Any, negatives: Any, corrupt_tail: Any, margin: Any, vectors: Any, losses: Any
) -> None:
    """Losses, and where they are not zero: row i of `vectors` is 2 (h + r - t), row batch + i is 2 (h' + r - t'), row
    2 batch + i the first less the second."""
    batch = len(positives)
    for chunk in numba.prange(_CHUNKS):
        for i in range(chunk * batch // _CHUNKS, (chunk + 1) * batch // _CHUNKS):
            losses[i] = np.float32(0.0)
            if negatives[i] < 0:
                continue
            h, r, t = positives[i, 0], positives[i, 1], positives[i, 2]
            true, false = vectors[i], vectors[batch + i]
            near = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], true)
            if corrupt_tail[i]:
                t = negatives[i]
            else:
                h = negatives[i]
            far = _difference(raw[h], raw[r], raw[t], scales[h], scales[r], scales[t], false)
            loss = margin + near - far
            if loss > np.float32(0.0):
                losses[i] = loss
                _subtract(true, false, vectors[2 * batch + i])


@numba.njit(cache=True)
def _index_distance(positives: Any, num_rows: Any) -> Any:
    """begins, picks and factors of a `Gradient`."""
    batch = len(positives)
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for i in range(batch):
        for c in range(3):
            begins[positives[i, c] + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    picks = np.empty(begins[num_rows], dtype=np.int32)
    factors = np.empty(begins[num_rows], dtype=np.float32)
    for i in range(batch):
        for c in range(3):
            p = place[positives[i, c]]
            place[positives[i, c]] = p + 1
            picks[p] = i
            factors[p] = np.float32(-1.0) if c == 2 else np.float32(1.0)
    return begins, picks, factors


@numba.njit(cache=True)
def _index_margin(positives: Any, negatives: Any, corrupt_tail: Any, losses: Any, num_rows: Any) -> Any:
    """begins, picks and factors of a `Gradient` over the vectors of `_score_margin`."""
    batch = len(positives)
    begins = np.zeros(num_rows + 1, dtype=np.int64)
    for i in range(batch):
        if losses[i] > 0:
            for c in range(3):
                begins[positives[i, c] + 1] += 1
            begins[negatives[i] + 1] += 1
    for row in range(num_rows):
        begins[row + 1] += begins[row]
    place = begins.copy()
    picks = np.empty(begins[num_rows], dtype=np.int32)
    factors = np.empty(begins[num_rows], dtype=np.float32)
    for i in range(batch):
        if losses[i] > 0:
            for c in range(4):
                row = positives[i, c] if c < 3 else negatives[i]
                # The end that is replaced stands in the true triple alone, what replaces it in the false one alone;
                # the other end and the relation stand in both.
                replaced = c == (2 if corrupt_tail[i] else 0)
                p = place[row]
                place[row] = p + 1
                picks[p] = batch + i if c == 3 else i if replaced else 2 * batch + i
                falls = c == 2 or (c == 3 and not corrupt_tail[i])
                factors[p] = np.float32(-1.0) if falls else np.float32(1.0)
    return begins, picks, factors


@numba.njit(cache=True)
def _sum_terms(begins: Any, picks: Any, factors: Any, vectors: Any, row: Any, total: Any) -> None:
    total[:] = np.float32(0.0)
    for term in range(begins[row], begins[row + 1]):
        add_scaled(total, factors[term], vectors[picks[term]])


@numba.njit(parallel=True, cache=True)
def _adagrad_rows(
    raw: Any, scales: Any, squares: Any, cuts: Any, begins: Any, picks: Any, factors: Any, vectors: Any, rate: Any
) -> None:
    for chunk in numba.prange(len(cuts) - 1):
        total = np.empty(raw.shape[1], dtype=np.float32)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if begins[row] < begins[row + 1]:
                _sum_terms(begins, picks, factors, vectors, row, total)
                scales[row] = adagrad_row(raw[row], squares[row], scales[row], total, rate)


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _adam(raw: Any, first: Any, second: Any, scale: Any, gradient: Any, rate: Any) -> Any:
    """Chain rule through x / |x|, then Adam; one over the new length."""
    along = dot(gradient, raw) * scale * scale
    length_square = np.float32(0.0)
    for k in range(raw.shape[0]):
        g = (gradient[k] - along * raw[k]) * scale
        m = first[k] + np.float32(1 - KEEP_FIRST) * (g - first[k])
        v = second[k] + np.float32(1 - KEEP_SECOND) * (g * g - second[k])
        first[k] = m
        second[k] = v
        x = raw[k] - rate * m / (np.sqrt(v) + np.float32(EPSILON))
        raw[k] = x
        length_square += x * x
    return np.float32(1.0) / np.sqrt(max(length_square, np.float32(1e-12)))


@numba.njit(parallel=True, cache=True)
def _adam_rows(
    raw: Any,
    scales: Any,
    first: Any,
    second: Any,
    last: Any,
    cuts: Any,
    begins: Any,
    picks: Any,
    factors: Any,
    vectors: Any,
    step: Any,
    rate: Any,
) -> None:
    for chunk in numba.prange(len(cuts) - 1):
        total = np.empty(raw.shape[1], dtype=np.float32)
        for row in range(cuts[chunk], cuts[chunk + 1]):
            if begins[row] < begins[row + 1]:
                _sum_terms(begins, picks, factors, vectors, row, total)
                scales[row] = _adam(raw[row], first[row], second[row], scales[row], total, rate)
                last[row] = step


@numba.njit(cache=True, fastmath=FAST, error_model="numpy")
def _coast(raw: Any, first: Any, second: Any, distance: Any, keep_first: Any, keep_second: Any) -> Any:
    length_square = np.float32(0.0)
    for k in range(raw.shape[0]):
        x = raw[k] - distance * first[k] / (np.sqrt(second[k]) + np.float32(EPSILON))
        raw[k] = x
        length_square += x * x
        first[k] *= keep_first
        second[k] *= keep_second
    return np.float32(1.0) / np.sqrt(max(length_square, np.float32(1e-12)))


@numba.njit(parallel=True, cache=True)
def _catch_up(raw: Any, scales: Any, first: Any, second: Any, last: Any, rows: Any, steps: Any, rates: Any) -> None:
    shrink = KEEP_FIRST / np.sqrt(KEEP_SECOND)
    for chunk in numba.prange(_CHUNKS):
        for i in range(chunk * len(rows) // _CHUNKS, (chunk + 1) * len(rows) // _CHUNKS):
            row = rows[i]
            since = last[row]
            missed = steps - since
            last[row] = steps
            if missed == 0 or since == 0:  # nothing happened, or nothing has happened yet
                continue
            distance, weight = 0.0, 1.0
            for j in range(1, min(missed, _LONGEST) + 1):
                weight *= shrink
                distance += rates[min(since + j, _SETTLED)] * weight
            # Beyond the longest path the rest of the momentum is nothing, and numbers that small are slow.
            keep_first = KEEP_FIRST**missed if missed <= _LONGEST else 0.0
            scales[row] = _coast(
                raw[row],
                first[row],
                second[row],
                np.float32(distance),
                np.float32(keep_first),
                np.float32(KEEP_SECOND**missed),
            )
