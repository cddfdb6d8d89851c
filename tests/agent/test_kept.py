"""What a run keeps is read back as it was."""

import numpy as np

from rlea.agent.agent import Aligner
from rlea.agent.calibration import Calibration
from rlea.agent.kept import KEPT, Kept, Rating
from rlea.evidence import NAMES
from rlea.graph import Links
from rlea.io.synthetic import SyntheticSettings, generate


def ids_of(links):
    return links.source_ids.tolist(), links.target_ids.tolist()


def test_links_that_taught_are_kept_and_get_new_numbers(tmp_path):
    aligner = Aligner(channels=(NAMES,)).fit(generate(SyntheticSettings(60)))
    rating = Rating(Links.of([1], [2]), None, Calibration(), 0.5, Links.of([3, 4], [5, 6]))
    kept = Kept.of(aligner, rating)
    kept.put(tmp_path / KEPT)
    back = Kept.load(tmp_path / KEPT).rating
    assert ids_of(back.pseudo_seeds) == ([1], [2])
    assert ids_of(back.taught) == ([3, 4], [5, 6])
    moved = kept.placed(lambda links: Links.of(links.source_ids + np.int32(10), links.target_ids)).rating
    assert ids_of(moved.pseudo_seeds) == ([11], [2])
    assert ids_of(moved.taught) == ([13, 14], [5, 6])
