"""A run on several workers: parts of the agent's work on a Ray cluster, or one after another in this process.

Which parts there are depends on the graphs alone. A worker gets a part, writes what comes out into a folder that all of
them see, and the program takes the results in the order in which it handed the parts over. So the links are the same
bytes whatever the number of workers, Ray gives a part to another worker when one is lost, and a run that was stopped
goes on with the parts that are not there yet.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlea import peak_memory
from rlea.agent.passes import playing_by
from rlea.errors import InputError
from rlea.graph import Ids
from rlea.record import PACKAGES, commit, package_version
from rlea.scale.files import read_object, write_object
from rlea.scale.supersteps import SHARDS, WIDTH, LocalShards, News, Offers, Pass, Shard, play_in_supersteps
from rlea.tasks import executed_by

HERE = "here"  # in this process, for comparison
LOCAL = "local:"  # a cluster of so many workers on this machine, for this run
# Pairs from which on a pass is spread over the workers: telling them of each round takes a few milliseconds.
MOST_ALONE = 5_000_000
KEPT = 8  # objects that a worker keeps open
ABOUT = "run.json"  # in the folder: which run it belongs to


@dataclass
class Stage:
    """What the parts of one kind took."""

    parts: int = 0
    seconds: float = 0.0  # of the processors of all workers
    bytes: int = 0  # that they wrote
    peak_memory_mb: float = 0.0  # the most of a worker


@dataclass
class Facts:
    """What there is to tell about a run on workers."""

    address: str
    workers: int
    stages: dict[str, Stage] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)  # of every process that worked, in MB
    bytes_shared: int = 0
    found_done: int = 0  # parts that an earlier run of the same folder had done
    rounds: int = 0  # of passes that were spread over workers
    shards_made_again: int = 0  # groups of shards whose worker was lost

    def note(self, stage: str, seconds: float, size: int, worker: str, peak: float) -> None:
        """A part is done."""
        own = self.stages.setdefault(stage, Stage())
        own.parts += 1
        own.seconds += seconds
        own.bytes += size
        own.peak_memory_mb = max(own.peak_memory_mb, peak)
        self.peaks[worker] = max(peak, self.peaks.get(worker, 0.0))

    def as_dict(self) -> dict[str, Any]:
        """For the record."""
        stages = {
            name: {
                "parts": one.parts,
                "seconds": round(one.seconds, 2),
                "bytes": one.bytes,
                "peak_memory_mb": round(one.peak_memory_mb),
            }
            for name, one in self.stages.items()
        }
        counts = ("bytes_shared", "found_done", "rounds", "shards_made_again")
        return {
            "address": self.address,
            "workers": self.workers,
            "stages": stages,
            "peak_memory_mb_by_worker": {name: round(peak) for name, peak in sorted(self.peaks.items())},
            **{name: getattr(self, name) for name in counts},
        }


@contextmanager
def on_cluster(
    address: str, folder: Path | None, about: dict[str, Any], most_alone: int = MOST_ALONE
) -> Iterator[Facts]:
    """Within the block, the agent's work is divided. `about` says which run this is; `folder` is kept if it is stopped.

    Passes are played in supersteps, here and on the workers.
    """
    if address == HERE:
        facts = Facts(address, 1)
        with executed_by(Here(facts)), playing_by(_alone):
            yield facts
        return
    own = Path(tempfile.mkdtemp(prefix="rlea-work-")) if folder is None else folder
    claim_folder(own, about)
    try:
        with connected(address) as workers:
            facts = Facts(address, workers)
            cluster = Cluster(own, facts)
            check_machines(folder)
            try:
                with executed_by(cluster), playing_by(partial(cluster.play, most_alone)):
                    yield facts
            finally:
                cluster.close()
        # Files that are still mapped somewhere may stay on a network drive: no reason to lose what was found.
        shutil.rmtree(own, ignore_errors=True)
    finally:
        if folder is None:
            shutil.rmtree(own, ignore_errors=True)


def check_address(address: str) -> None:
    """Refuse what is no address, and addresses for which Ray is missing."""
    if address == HERE:
        return
    number = address.removeprefix(LOCAL)
    if address.startswith(LOCAL) and not (number.isdecimal() and 0 < int(number) <= 1024):
        raise InputError(f"{address!r} names no number of workers", remedy="give local:4, for four of them")
    try:
        import ray  # noqa: F401
    except ImportError as problem:
        raise InputError("--cluster needs Ray", remedy="pip install 'rlea[cluster]'") from problem


def check_machines(folder: Path | None) -> None:
    """Refuse a cluster without processors, and a folder of this machine alone for a cluster of several."""
    import ray

    able = [one for one in ray.nodes() if one["Alive"] and one["Resources"].get("CPU", 0) >= 1]
    if not able:
        raise InputError("the cluster has no processors", remedy="start workers: ray start --address=...")
    if folder is None and len({one["NodeManagerHostname"] for one in able}) > 1:
        raise InputError("the cluster has several machines", remedy="add --work, a folder that all of them see")


def claim_folder(folder: Path, about: dict[str, Any]) -> None:
    """Make the folder of a run; one that another run has begun is refused."""
    mine = json.loads(json.dumps({**about, "versions": versions(), "commit": commit()}, default=str, sort_keys=True))
    place = folder / ABOUT
    if place.exists():
        try:
            is_mine = json.loads(place.read_text(encoding="utf-8")) == mine
        except ValueError:
            is_mine = False
        if not is_mine:
            raise InputError("holds parts of another run", path=folder, remedy="name another folder, or remove it")
        return
    if folder.exists() and any(folder.iterdir()):
        raise InputError("is not empty, and holds no run", path=folder, remedy="name another folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.write_text(json.dumps(mine, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def digest_of(arrays: Iterable[NDArray[Any]], files: Iterable[str]) -> str:
    """A digest of arrays, and of the content of files and folders; names that are none of these are left out."""
    found = hashlib.sha256()
    for part in arrays:
        found.update(part.tobytes() + b"|")
    for name in files:
        place = Path(name)
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()


def versions() -> dict[str, str]:
    """What has to be the same wherever parts of a run are done."""
    return {"python": platform.python_version(), **{name: package_version(name) for name in PACKAGES}}


@contextmanager
def connected(address: str) -> Iterator[int]:
    """Join a cluster, or start one on this machine; the number of its workers.

    A cluster that this process has joined before is used and left as it is.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray

    if ray.is_initialized():
        yield int(ray.cluster_resources().get("CPU", 1))
        return
    quiet: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    if address.startswith(LOCAL):
        # Ray lets its workers stand back behind all other programs, and here nothing goes on without them.
        os.environ.setdefault("RAY_worker_niceness", "0")
        # Parts travel in files, so there is next to nothing in Ray's own memory.
        own = {"num_cpus": int(address.removeprefix(LOCAL)), "object_store_memory": 200 * 2**20}
        ray.init("local", **quiet, **own, _node_ip_address="127.0.0.1")  # and not one that runs here already
    else:
        try:
            ray.init(address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as problem:
            raise InputError(f"no cluster answers at {address!r}", remedy="start one: ray start --head") from problem
    try:
        yield int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()


class Here:
    """Parts one after another in this process: what a cluster is compared with."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def begin(self, stage: str, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Do it now."""
        start = time.process_time()
        with executed_by(None):  # on a worker a part is not divided further
            result = work(*arguments)
        self.facts.note(stage, time.process_time() - start, 0, "here", peak_memory.peak_mb())
        return lambda: result

    def shared(self, value: Any) -> Any:
        """The value itself."""
        return value


@dataclass(frozen=True)
class Place:
    """Where a shared object lies."""

    path: str


class Cluster:
    """Parts on the workers of a Ray cluster."""

    def __init__(self, folder: Path, facts: Facts) -> None:
        self.folder, self.facts = folder, facts
        self.number = 0  # of the part that comes next: a run hands over the same parts in the same order each time
        self.places: dict[int, tuple[Any, Place]] = {}  # with the objects, whose ids would else be used again
        self.hosts: list[Any] = []
        self.work: Any = None
        self.folder.joinpath("shared").mkdir(exist_ok=True)

    def shared(self, value: Any) -> Place:
        """Written once; workers map it."""
        known = self.places.get(id(value))
        if known is None:
            path = self.folder / "shared" / f"{len(self.places):05d}"
            self.facts.bytes_shared += write_object(path, value)
            known = self.places[id(value)] = value, Place(str(path))
        return known[1]

    def begin(self, stage: str, work: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Give a part to a worker, unless it is there."""
        path = self.folder / f"{self.number:06d}-{stage.replace(' ', '-')}"
        self.number += 1
        if path.exists():
            self.facts.found_done += 1
            return partial(read_object, path)
        import ray
        from ray import cloudpickle

        if self.work is None:
            self.work = ray.remote(num_cpus=1, max_retries=-1)(do_part)
        begun = self.work.remote(cloudpickle.dumps((work, arguments), protocol=5), str(path), versions())

        def end() -> Any:
            self.facts.note(stage, *self._wait(begun))
            return read_object(path)

        return end

    def play(self, most_alone: int, game: Any, *rest: Any) -> Any:
        """A pass in supersteps: a small one here, a large one on the workers."""
        if len(game.pair_source) < most_alone:
            return _alone(game, *rest)
        return play_in_supersteps(partial(SpreadShards, self), WIDTH, SHARDS, game, *rest)

    def hosts_of_shards(self) -> list[Any]:
        """A process for each worker, in which shards live."""
        if not self.hosts:
            import ray

            # They wait while parts are done, so they take no processor of those that Ray hands out; but they are where
            # some are. Where a machine is gone, another one will do.
            host = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(ShardHost)
            nodes = sorted((one for one in ray.nodes() if one["Alive"]), key=lambda one: str(one["NodeID"]))
            ids = [one["NodeID"] for one in nodes for _ in range(int(one["Resources"].get("CPU", 0)))]
            affinity = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
            every = [host.options(scheduling_strategy=affinity(one, soft=True)).remote() for one in ids[:SHARDS]]
            self.hosts = every
        return self.hosts

    def _wait(self, begun: Any) -> Any:
        import ray

        try:
            return ray.get(begun)
        except ray.exceptions.RayTaskError as problem:
            if isinstance(problem.cause, InputError):
                raise problem.cause from None
            if isinstance(problem.cause, ModuleNotFoundError):
                what, remedy = f"a worker has no {problem.cause.name}", "install rlea and its packages on all machines"
                raise InputError(what, remedy=remedy) from problem
            raise

    def close(self) -> None:
        """End what was started on the workers."""
        import ray

        for host in self.hosts:
            ray.kill(host)
        self.hosts = []


def do_part(content: bytes, path: str, wanted: dict[str, str]) -> tuple[float, int, str, float]:
    """Do a part on a worker and write what comes out: processor seconds, bytes, which worker, its peak memory in MB."""
    import numba
    from ray import cloudpickle
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    if versions() != wanted:
        other = [name for name, own in versions().items() if own != wanted.get(name)]
        raise InputError(f"a worker has another version of {', '.join(other)}", remedy="install the same everywhere")
    numba.set_num_threads(1)  # a worker has one core
    start = time.process_time()
    work, arguments = cloudpickle.loads(content)
    with threadpool_limits(1), executed_by(None), playing_by(_alone):
        result = work(*(_open(one.path) if isinstance(one, Place) else one for one in arguments))
    size = write_object(Path(path), result)
    return time.process_time() - start, size, _worker(), peak_memory.peak_mb()


@lru_cache(maxsize=KEPT)
def _open(path: str) -> Any:
    return read_object(Path(path))


def _worker() -> str:
    return f"{platform.node()}:{os.getpid()}"


def _alone(*arguments: Any) -> Any:
    """A pass in supersteps in this process."""
    return play_in_supersteps(LocalShards, WIDTH, SHARDS, *arguments)


class ShardHost:
    """Some shards of a pass, in a process of their own. After a restart it has none."""

    def __init__(self) -> None:
        self.key, self.heard = "", -1
        self.shards: list[Shard] = []

    def make(self, key: str, numbers: Sequence[int], log: Sequence[News], lowest: float) -> None:
        """Make shards, and tell them what has happened."""
        given: Pass = read_object(Path(key))
        self.shards = [Shard(given, number) for number in numbers]
        for shard in self.shards:
            for news in log:
                shard.hear(news)
            if lowest < np.inf:
                shard.offer(lowest)
        self.key, self.heard = key, len(log)

    def call(
        self, key: str, heard: int, name: str, arguments: Sequence[Any]
    ) -> tuple[list[Any] | None, str, float, float]:
        """Call a method of every shard; None where the shards are not there, or not as they should be.

        Also which worker this is, its peak memory in MB, and processor seconds.

        A call that is repeated because its answer was lost finds one round more than it should: the shards are made
        again then, too.
        """
        if (key, heard) != (self.key, self.heard):
            return None, _worker(), peak_memory.peak_mb(), 0.0
        start = time.process_time()
        self.heard += name == "hear"
        answers = [getattr(shard, name)(*arguments) for shard in self.shards]
        if name == "finish":
            self.key, self.shards = "", []
        return answers, _worker(), peak_memory.peak_mb(), time.process_time() - start


class SpreadShards:
    """The shards of a pass on the workers of a cluster, and the log from which they can be made again."""

    def __init__(self, cluster: Cluster, given: Pass) -> None:
        self.cluster, self.log, self.lowest = cluster, list[News](), np.inf
        self.hosts = cluster.hosts_of_shards()
        self.path = cluster.folder / f"{cluster.number:06d}-pass"
        cluster.number += 1
        cluster.facts.bytes_shared += write_object(self.path, given)
        count = len(given.bounds) - 1
        self.numbers = [list(range(first, count, len(self.hosts))) for first in range(len(self.hosts))]
        self._get([host.make.remote(str(self.path), own, [], np.inf) for host, own in self._all()])

    def count(self, accepted: Ids, round_: int) -> list[Any]:
        return self._call("count", accepted)

    def hear(self, news: News, round_: int) -> list[Offers]:
        answers = self._call("hear", news)
        self.log.append(news)
        self.cluster.facts.rounds += 1
        return answers

    def highest(self, round_: int) -> list[float]:
        return self._call("highest")

    def offer(self, lowest: float, round_: int) -> list[Offers]:
        answers = self._call("offer", lowest)
        self.lowest = lowest
        return answers

    def finish(self) -> list[Any]:
        answers = self._call("finish")
        self.path.unlink()
        return answers

    def _all(self) -> list[tuple[Any, list[int]]]:
        return list(zip(self.hosts, self.numbers, strict=True))

    def _call(self, name: str, *arguments: Any) -> list[Any]:
        """The answers of all shards in their order; hosts that lost theirs make them again."""
        import ray

        # Handed to Ray once, not once for every host.
        given = ray.put(arguments) if arguments else arguments
        ask = (str(self.path), len(self.log), name, given)
        found: list[Any] = [None] * sum(map(len, self.numbers))
        for host, own, asked in [(*one, one[0].call.remote(*ask)) for one in self._all()]:
            answers, worker, peak, seconds = self._get(asked)
            while answers is None:
                self.cluster.facts.shards_made_again += 1
                self._get(host.make.remote(str(self.path), own, self.log, self.lowest))
                answers, worker, peak, seconds = self._get(host.call.remote(*ask))
            self.cluster.facts.note("supersteps", seconds, 0, worker, peak)
            for number, answer in zip(own, answers, strict=True):
                found[number] = answer
        return found

    def _get(self, asked: Any) -> Any:
        import ray

        return ray.get(asked)
