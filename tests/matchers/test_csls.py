from __future__ import annotations

import numpy as np
import pytest

from rlea.matchers.csls import CslsSettings, match


@pytest.mark.parametrize("neighbours", [1, 3, 10])
def test_equals_the_dense_form(neighbours, make_task):
    rng = np.random.default_rng(neighbours)
    scores = rng.random((20, 30)).astype(np.float32) + 0.4 * rng.random(30).astype(np.float32)
    row_means = np.sort(scores, axis=1)[:, -neighbours:].mean(axis=1)
    column_means = np.sort(scores, axis=0)[-neighbours:].mean(axis=0)
    expected = (2 * scores - row_means[:, None] - column_means).argmax(axis=1)
    matching = match(make_task(scores), CslsSettings(neighbours))
    assert matching.target_ids.tolist() == expected.tolist()
    assert expected.tolist() != scores.argmax(axis=1).tolist()


def test_no_neighbours_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        CslsSettings(0)
