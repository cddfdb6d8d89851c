import weakref
from typing import Any

import numpy as np
import pytest

from rlea.graph import GraphPair
from rlea.models import aligne
from rlea.models.aligne import AlignE, AlignESettings

from .conftest import started

SHORT = AlignESettings(dim=16, batch_size=300, refresh_every=3)


def test_the_old_table_of_neighbours_is_gone_before_a_new_one_is_made(pair: GraphPair, monkeypatch: pytest.MonkeyPatch):
    search = aligne.nearest_neighbours
    tables: list[Any] = []
    still_there = []

    def watch(*given: Any, **options: Any) -> np.ndarray:
        still_there.append(sum(table() is not None for table in tables))
        found = search(*given, **options)
        tables.append(weakref.ref(found))
        return found

    monkeypatch.setattr(aligne, "nearest_neighbours", watch)
    model = started(AlignE, pair, SHORT)
    for epoch in range(1, 11):
        model.run_epoch(epoch)
    assert still_there == [0, 0, 0]  # before epochs 4, 7 and 10
    assert tables[-1]() is model.neighbours
