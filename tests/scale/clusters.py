"""What tests of clusters share: a small pair, a run of the agent on a cluster, and parts that go wrong."""

import pytest

from rlea.agent import null_model
from rlea.agent.agent import Aligner
from rlea.evidence import channel
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.scale import cluster
from rlea.scale.cluster import HERE, on_cluster

QUIET = {"log_to_driver": False, "logging_level": "ERROR"}


def use_small_parts(patch):
    """Small pairs are divided as large ones are, and null models are played once."""
    patch.setattr(channel, "FEWEST_APART", 50)
    patch.setattr(null_model, "MOST_DRAWS", 1)
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    patch.setenv("RAY_worker_niceness", "0")  # on a busy machine they would else hardly get anywhere


def seedless():
    return generate(SyntheticSettings(num_entities=100, name_noise=0.4, nameless=0.2, seeds=0.0, valid=0.0))


def links_on(address, folder=None, pair=None, most_alone=0):
    """The bytes of the links, and what there is to tell about the run."""
    pair = pair or seedless()
    with on_cluster(address, folder, {"pair": pair.fingerprint}, most_alone) as told:
        found = Aligner(channels=("structure", "names")).fit(pair).match(pair)
    assert len(found)
    return [part.tobytes() for part in (found.source_ids, found.target_ids, found.confidences)], told


def links_here():
    """The same in this process."""
    with pytest.MonkeyPatch.context() as patch:
        use_small_parts(patch)
        return links_on(HERE)[0]


def with_original(function):
    """A function of how parts are done, and of one, as something that Ray takes for a function of a part."""
    original = cluster.do_part

    def work(content, path, wanted):
        return function(original, content, path, wanted)

    return work
