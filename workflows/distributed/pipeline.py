"""The stages on Ray Data: files are read by tasks; passages pass an actor that asks a model, and one that embeds.

The extractor without a model works on the core that embeds: then there is one stage. This module is used by the
coordinator's process alone, which is the only one that imports Ray beside Ray's own workers.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.chat.reply_cache import KeptReply, ReplyCache
from graph.errors import ClusterUnavailable, MaraError
from workflows.distributed.shard_files import to_parquet
from workflows.distributed.shards import ShardTask
from workflows.distributed.work import Work, Worker, as_error, read_task

if TYPE_CHECKING:
    import pyarrow

_OBJECT_STORE_BYTES = 200_000_000
_TASK_RETRIES = 32
"""Deaths that one shard survives: a machine that takes its worker with it each time ends the run at last."""

_START_HINT = "Run it again: finished shards are kept. `--engine local` needs no cluster"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Where the workers are.

    Attributes:
        address: of a running cluster; empty for one on this machine, for the length of the run.
        workers: how many cores are to work; 0 for all that there are.
        folder: for sockets and logs of a local one; its path is short.
    """

    address: str
    workers: int
    folder: str


@dataclass(frozen=True, slots=True)
class Made:
    """A finished shard: its key, the content of its file, and its numbers."""

    key: str
    content: bytes
    passages: int
    failed: int
    tokens: int


def connect(cluster: Cluster) -> int:
    """Connect to a cluster, or start one; return how many workers there are to be.

    Raises:
        ClusterUnavailable: there is none at that address, or it cannot be started.
    """
    import ray
    from ray.data import DataContext

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if cluster.address:
            ray.init(address=cluster.address, **quiet)
        else:
            ray.init(
                num_cpus=cluster.workers,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=cluster.folder,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
    except Exception as fault:
        place = f"No Ray cluster answers at {cluster.address}" if cluster.address else "Ray cannot be started here"
        raise ClusterUnavailable(f"{place} ({str(fault).splitlines()[0][:200]})", _START_HINT) from None
    settings = DataContext.get_current()
    settings.enable_progress_bars = False
    settings.print_on_execution_start = False
    cores = int(ray.cluster_resources().get("CPU", 0))
    return max(1, min(cluster.workers or cores, cores))


def read_files(tasks: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (number of a task, pickled outcomes of its files), as they finish."""
    rows = [{"number": [number], "task": [task]} for number, task in enumerate(tasks)]
    for row in _run(_dataset(rows).map_batches(_read, batch_size=1, batch_format="pyarrow", num_cpus=1)):
        yield row["number"], _outcome(row["outcome"])


def make_shards(work: bytes, tasks: Sequence[tuple[str, bytes]], workers: int, path: Path | None) -> Iterator[Made]:
    """Yield the shards of tasks, as they finish.

    Args:
        work: a pickled `Work`.
        tasks: keys, and pickled tasks.
        workers: how many actors embed, a core each.
        path: the file of kept replies, where a model extracts.

    Raises:
        MaraError: what a worker raised.
        ClusterUnavailable: workers died again and again.
    """
    data = _dataset([{"key": [key], "task": [task]} for key, task in tasks])
    known: Work = pickle.loads(work)
    if path is not None:
        replies = _reply_keeper(path)
        data = _stage(data, Extracting, min(known.extractors, len(tasks)), 0, {"work": work, "replies": replies})
    data = _stage(data, Embedding, min(workers, len(tasks)), 1, {"work": work})
    for row in _run(data):
        yield Made(row["key"], _outcome(row["outcome"]), row["passages"], row["failed"], row["tokens"])


class Extracting:
    """A stage's actor: asks a model about the passages of shards."""

    def __init__(self, work: bytes, replies: Any) -> None:
        self._worker = Worker(pickle.loads(work), RemoteReplies(replies))

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """Add to a task what was found in its passages."""
        import pyarrow as pa

        task = batch["task"][0].as_py()
        found = _pickled(lambda: self._worker.extract(pickle.loads(task)))
        return pa.table({"key": batch["key"], "task": pa.array([task], pa.binary()), "found": [found]})


class Embedding:
    """A stage's actor: embeds shards and, where no model was asked before, extracts them."""

    def __init__(self, work: bytes) -> None:
        self._worker = Worker(pickle.loads(work))

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """Turn a task into the content of a shard's file."""
        import pyarrow as pa

        row = batch.to_pylist()[0]
        numbers = {"passages": 0, "failed": 0, "tokens": 0}

        def make() -> bytes:
            task: ShardTask = pickle.loads(row["task"])
            found = _outcome(row["found"]) if "found" in row else self._worker.extract(task)
            shard = self._worker.embed(task, found)
            numbers.update(passages=len(shard.found), failed=shard.failed, tokens=shard.tokens)
            return to_parquet(shard)

        outcome = _pickled(make)
        columns = {name: [number] for name, number in numbers.items()}
        return pa.table({"key": [row["key"]], "outcome": pa.array([outcome], pa.binary()), **columns})


class RemoteReplies:
    """The replies that the machine of the run keeps, as a worker anywhere sees them."""

    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper

    def get(self, key: bytes) -> KeptReply | None:
        """Return the reply of a key, None where there is none."""
        kept: KeptReply | None = self._call("get", key)
        return kept

    def put(self, key: bytes, extractor: str, reply: KeptReply) -> None:
        """Keep a reply; it is on the disk when this returns."""
        self._call("put", key, extractor, reply)

    def reject(self, key: bytes) -> None:
        """Drop a reply that turned out not to be valid."""
        self._call("reject", key)

    def known(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return those of the keys that have a reply."""
        found: set[bytes] = self._call("known", list(keys))
        return found

    def knows(self, extractor: str) -> bool:
        """Tell whether any reply to this extractor was ever kept."""
        return bool(self._call("knows", extractor))

    def _call(self, name: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self._keeper, name).remote(*arguments))


def _reply_keeper(path: Path) -> Any:
    """Start the actor that has the file of kept replies open, on this machine: SQLite needs a local disk's locks."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here)(ReplyCache)
    return keeper.remote(path)


def _stage(data: Any, actor: type, size: int, cores: float, arguments: dict[str, Any]) -> Any:
    from ray.data import ActorPoolStrategy

    return data.map_batches(
        actor,
        fn_constructor_kwargs=arguments,
        batch_size=1,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
        num_cpus=cores,
        max_restarts=-1,
        max_task_retries=_TASK_RETRIES,
    )


def _dataset(rows: Sequence[dict[str, list[Any]]]) -> Any:
    """Return a dataset of one block a row, so that a shard is what is scheduled, and retried."""
    import pyarrow as pa
    import ray

    return ray.data.from_arrow([pa.table(row) for row in rows])


def _run(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a dataset as they finish. Raises ClusterUnavailable."""
    import ray

    try:
        for batch in data.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from batch.to_pylist()
    except (ray.exceptions.RayError, SystemError) as fault:
        reason = str(fault).strip().splitlines() or [type(fault).__name__]
        raise ClusterUnavailable(f"Ray's workers ended ({reason[-1][:200]})", _START_HINT) from None


def _read(batch: pyarrow.Table) -> pyarrow.Table:
    import pyarrow as pa

    outcome = _pickled(lambda: read_task(pickle.loads(batch["task"][0].as_py())))
    return pa.table({"number": batch["number"], "outcome": pa.array([outcome], pa.binary())})


def _pickled(work: Any) -> bytes:
    """Return what some work gives, or its error, to be taken out by `_outcome`."""
    try:
        return pickle.dumps(work())
    except Exception as fault:
        return pickle.dumps(as_error(fault))


def _outcome(pickled: bytes) -> Any:
    """Return what some work gave. Raises its error."""
    outcome = pickle.loads(pickled)
    if isinstance(outcome, MaraError):
        raise outcome
    return outcome
