"""Texts as bags of terms (words or pieces of words): counts and TF-IDF weights."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.search.rows import unit_rows


def count_terms(bags: Iterable[Iterable[str]], least: int = 1) -> Any:
    """How often each bag has each term: a csr matrix (num_bags, num_terms) of whole numbers in single precision.

    Columns are in alphabetical order. Terms in fewer than `least` bags are left out; without any terms there is one
    empty column.
    """
    from scipy.sparse import csr_matrix

    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    found: list[int] = []
    starts = [0]
    for bag in bags:
        found.extend([numbers[term] for term in bag])
        starts.append(len(found))
    counts = csr_matrix(
        (np.ones(len(found), np.float32), np.array(found, np.int64), np.array(starts, np.int64)),
        shape=(len(starts) - 1, max(len(numbers), 1)),
    )
    counts.sum_duplicates()
    terms = list(numbers)
    kept = [number for number in np.flatnonzero(having(counts) >= least).tolist() if number < len(terms)]
    kept.sort(key=terms.__getitem__)
    if not kept:
        return csr_matrix(np.zeros((len(starts) - 1, 1), np.float32))
    result = counts[:, np.array(kept)]
    result.sort_indices()
    return result


def having(counts: Any) -> NDArray[np.int64]:
    """How many bags have each term, (num_terms,)."""
    return np.bincount(counts.indices, minlength=counts.shape[1])


def weigh_terms(counts: Any, bags_having: NDArray[Any]) -> Any:
    """TF-IDF: unit rows in which a term weighs 1 + log(its number) times how rare it is among all bags."""
    from scipy.sparse import csr_matrix

    counts = counts.sorted_indices()
    rarity = log((1 + counts.shape[0]) / (1 + bags_having)) + 1
    weights = (1 + log(counts.data)) * rarity[counts.indices]
    rows = csr_matrix((weights, counts.indices, counts.indptr), shape=counts.shape)
    return unit_rows(rows).astype(np.float32)
