"""Workers that are killed and nodes that are removed while a run goes on: the same links."""

import os
import signal
import sys
from pathlib import Path

import pytest

from rlea.scale import cluster

from . import clusters
from .clusters import QUIET, links_here, links_on, use_small_parts, with_original

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlea[cluster]'")

pytestmark = pytest.mark.slow  # several machines on one: minutes where that is busy
for module in (sys.modules[__name__], clusters):  # workers cannot import tests
    ray.cloudpickle.register_pickle_by_value(module)
STORE = 80 * 2**20


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    use_small_parts(monkeypatch)


@pytest.fixture(scope="module")
def expected():
    return links_here()


@pytest.fixture(scope="module")
def two_nodes():
    """A head without workers and two nodes with two each, all on this machine, so that nothing leaves it."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    with pytest.MonkeyPatch.context() as patch:
        use_small_parts(patch)
        nodes = Cluster(initialize_head=True, head_node_args=head)
        added = [nodes.add_node(num_cpus=2, object_store_memory=STORE) for _ in range(2)]
        ray.init(address=nodes.address, **QUIET)
    try:
        yield nodes, added
    finally:
        ray.shutdown()
        nodes.shutdown()


def once(path, name):
    """Whether nothing of this name was done before beside the file."""
    try:
        os.close(os.open(Path(path).parent / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def do_or_die(original, content, path, wanted):
    """A worker that is killed in the middle of its third part, and does that part when it is given it again."""
    if Path(path).name.startswith("000002-") and once(path, "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(content, path, wanted)


def test_a_worker_that_is_killed_costs_its_part(expected, two_nodes, monkeypatch):
    monkeypatch.setattr(cluster, "do_part", with_original(do_or_die))
    hear = cluster.SpreadShards.hear

    def kill_in_the_middle(self, news, round_):
        if round_ == 4:
            ray.kill(self.hosts[1], no_restart=False)
        return hear(self, news, round_)

    monkeypatch.setattr(cluster.SpreadShards, "hear", kill_in_the_middle)
    found, told = links_on("auto")
    assert found == expected
    assert told.workers == 4
    assert told.shards_made_again > 0


def test_a_node_that_is_removed_costs_its_parts(expected, two_nodes, monkeypatch):
    nodes, added = two_nodes
    hear, count = cluster.SpreadShards.hear, []

    def remove_in_the_middle(self, news, round_):
        if round_ == 4 and not count:
            count.append(round_)
            workers = [ray.get(host.call.remote("", 0, "", ()))[1] for host in self.hosts]
            parents = {int(Path(f"/proc/{one.split(':')[1]}/stat").read_text().split()[3]) for one in workers}
            nodes.remove_node(next(one for one in added if one.all_processes["raylet"][0].process.pid in parents))
        return hear(self, news, round_)

    monkeypatch.setattr(cluster.SpreadShards, "hear", remove_in_the_middle)
    found, told = links_on("auto")
    assert found == expected
    assert count == [4]
    assert told.shards_made_again > 0
