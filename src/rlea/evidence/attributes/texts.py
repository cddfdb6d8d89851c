"""Texts as sets of words and of trigrams (three letters in a row)."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rlea.arithmetic import log
from rlea.evidence.paris.facts import group_starts
from rlea.graph import Ids

Starts = NDArray[np.int64]


class Texts(NamedTuple):
    """The distinct texts of both graphs: the words and trigrams of each, sorted and without repetition."""

    word_starts: Starts  # (num_texts + 1,)
    words: Ids
    word_weight: NDArray[np.float64]  # (num_distinct_words,) -log of the share of entities that have the word
    gram_starts: Starts  # (num_texts + 1,)
    grams: NDArray[np.uint64]


def write_texts(texts: list[str], having: pl.DataFrame, num_entities: int) -> Texts:
    """Words and trigrams of distinct texts; `having` has a row (side, entity, text) for every text of an entity."""
    numbers = np.arange(len(texts), dtype=np.int32)
    exploded = (
        pl.DataFrame({"text": numbers, "word": pl.Series(texts, dtype=pl.String)})
        .with_columns(pl.col("word").str.split(" "))
        .explode("word")
        .filter(pl.col("word") != "")
        .unique()
    )
    known = exploded.select(pl.col("word").unique().sort()).with_row_index("number")
    exploded = exploded.join(known, on="word").with_columns(pl.col("number").cast(pl.Int32)).sort("text", "number")
    owners = having.join(exploded.select("text", "number"), on="text").select("side", "entity", "number").unique()
    counts = np.bincount(owners["number"].to_numpy(), minlength=len(known)).clip(min=1)
    whole = "".join(f"{text}\n" for text in texts).encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(whole, dtype="<u4").astype(np.uint64)
    starts = np.zeros(len(texts) + 1, dtype=np.int64)
    grams = np.empty(len(points) + len(texts), dtype=np.uint64)
    size = _write_grams(points, starts, grams)
    return Texts(
        group_starts(exploded["text"].to_numpy(), len(texts)),
        exploded["number"].to_numpy().astype(np.int32),
        log(max(num_entities, 1) / counts).clip(min=0.0),
        starts,
        grams[:size].copy(),
    )


@numba.njit(cache=True)
def _write_grams(points, starts, grams):  # type: ignore[no-untyped-def]
    """The trigrams of every text (each ends with a line feed), each once and sorted; returns their number."""
    size, text = 0, 0
    first = 0
    for end in range(len(points)):
        if points[end] != 10:
            continue
        begin = size
        # With a blank before and after: how a text begins and ends counts too.
        before, last = np.uint64(32), np.uint64(32)
        for place in range(first, end + 1):
            point = points[place] if place < end else np.uint64(32)
            if place > first or end == first:
                grams[size] = (before << np.uint64(42)) | (last << np.uint64(21)) | point
                size += 1
            before, last = last, point
        found = np.sort(grams[begin:size])
        size = begin
        for k in range(len(found)):
            if k == 0 or found[k] != found[k - 1]:
                grams[size] = found[k]
                size += 1
        text += 1
        starts[text] = size
        first = end + 1
    return size
