"""Runs on a Ray cluster of this machine: the same links as in this process, and runs that were stopped."""

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from rlea.errors import InputError
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.io.writers.graphs import write_graph
from rlea.scale import cluster
from rlea.scale.cluster import HERE, check_address, claim_folder, digest_of
from rlea.tasks import begin, blocks, shared

from . import clusters
from .clusters import links_here, links_on, seedless, use_small_parts, with_original

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'rlea[cluster]'")

for module in (sys.modules[__name__], clusters):  # workers cannot import tests
    ray.cloudpickle.register_pickle_by_value(module)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    use_small_parts(monkeypatch)


@pytest.fixture(scope="module")
def expected():
    return links_here()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_same_bytes_on_any_number_of_workers(expected, count):
    found, told = links_on(f"local:{count}")
    assert found == expected
    assert told.workers == count
    assert told.rounds > 0
    assert {"evidence", "describe pairs", "matches taken out", "halves", "supersteps"} == set(told.stages)
    record = json.loads(json.dumps(told.as_dict()))
    assert all(peak > 0 for peak in record["peak_memory_mb_by_worker"].values())
    assert not ray.is_initialized()


def do_or_fail(original, content, path, wanted):
    if Path(path).name.startswith("000005-"):
        raise OSError("the machine is switched off")
    return original(content, path, wanted)


def test_a_stopped_run_goes_on_from_its_parts(expected, tmp_path, monkeypatch):
    folder = tmp_path / "work"
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "do_part", with_original(do_or_fail))
        with pytest.raises(OSError, match="switched off"):
            links_on("local:2", folder)
    done = {path.name for path in folder.glob("0*-*")}
    assert done
    assert not any(name.startswith("000005-") for name in done)
    other = generate(SyntheticSettings(num_entities=60, seeds=0.0, valid=0.0))
    with pytest.raises(InputError, match="another run"):
        links_on("local:2", folder, other)
    found, told = links_on("local:2", folder)
    assert found == expected
    assert told.found_done >= 1
    assert not folder.exists()


def test_a_worker_of_another_version_is_refused(monkeypatch):
    known = cluster.versions()
    monkeypatch.setattr(cluster, "versions", lambda: {**known, "numpy": "0.9"})
    with pytest.raises(InputError, match="another version of numpy"):
        links_on("local:1")


def test_the_command_line(tmp_path, run_cli):
    pair = seedless()
    graphs = tmp_path / "a.nt", tmp_path / "b.nt"
    write_graph(graphs[0], pair.source)
    write_graph(graphs[1], pair.target)
    for how in (HERE, "local:2"):
        done = run_cli("align", *graphs, "--cluster", how, "--output", tmp_path / how.replace(":", ""), "--quiet")
        assert done.code == 0, done.err
    one, other = (tmp_path / name / "links.tsv" for name in ("here", "local2"))
    assert one.read_bytes() == other.read_bytes()
    record = json.loads((tmp_path / "local2" / "run.json").read_text())
    assert json.dumps(record).count('"workers": 2') == 1
    done = run_cli("align", *graphs, "--cluster", "local:2", "--matcher", "best-first")
    assert done.code == 2
    assert "one process" in done.err
    done = run_cli("align", *graphs, "--work", tmp_path / "work")
    assert done.code == 2


def test_what_is_no_address_is_refused(monkeypatch):
    for wrong in ("local:", "local:0", "local:x", "local:-1"):
        with pytest.raises(InputError, match="number of workers"):
            check_address(wrong)
    check_address(HERE)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="needs Ray"):
        check_address("local:2")


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(InputError, match="not empty"):
        claim_folder(tmp_path, {})


def test_blocks_cover_every_row_once():
    for count in (0, 1, 9, 10, 99, 1000):
        rows = np.concatenate([np.arange(count)[part] for part in blocks(count, 10, 7)])
        assert rows.tolist() == list(range(count))
        assert 1 <= len(blocks(count, 10, 7)) <= 7


def test_without_an_executor_parts_are_done_where_they_stand():
    value = np.arange(3)
    assert shared(value) is value
    done = []
    end = begin("adding", partial(done.append), 1)
    assert done == [1]
    assert end() is None


def test_a_digest_tells_what_decides_beside_graphs_and_settings(tmp_path):
    file = tmp_path / "agent.safetensors"
    file.write_bytes(b"one")
    some, others = ([np.array([1, 2])], [np.array([1, 3])])
    before = digest_of(some, [str(file), "aligne"])
    assert before == digest_of(some, [str(file), "aligne"]) != digest_of(others, [str(file), "aligne"])
    file.write_bytes(b"two")
    assert digest_of(some, [str(file), "aligne"]) != before


def test_a_folder_whose_record_is_damaged_is_of_another_run(tmp_path):
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match="holds parts of another run"):
        claim_folder(tmp_path, {})
