"""The stages on Ray Data: files are read by tasks; passages pass an actor that asks a model, and one that embeds.

The extractor without a model works on the core that embeds: then there is one stage. This module is used by the
coordinator's process alone, which is the only one that imports Ray beside Ray's own workers.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents.chat.reply_cache import ReplyCache
from graph.errors import ClusterUnavailable
from workflows.distributed import wire
from workflows.distributed.shards import to_parquet
from workflows.distributed.work import Worker, as_error, read_task

if TYPE_CHECKING:
    import pyarrow

_OBJECT_STORE_BYTES = 200_000_000
_CONNECT_S = 10.0
_TASK_RETRIES = 32
"""Deaths that one shard survives: a machine that takes its worker with it each time ends the run at last."""

_ADDRESS_HINT = (
    "Check the address; run the command on a machine of the cluster, with RAY_AUTH_MODE=token if it asks for a token"
)
_START_HINT = "Run it again: finished shards are kept. `--engine local` needs no cluster"


def connect(cluster: wire.Cluster) -> int:
    """Connect to a cluster, or start one; return how many workers there are to be.

    Raises:
        ClusterUnavailable: there is none at that address, or it cannot be started.
    """
    import ray
    from ray.data import DataContext

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if cluster.address:
            _check_listening(cluster.address)
            ray.init(address=cluster.address, **quiet)
        else:
            ray.init(
                address="local",
                num_cpus=cluster.workers,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=cluster.folder,
                **quiet,
            )
    except Exception as fault:
        if cluster.address:
            raise ClusterUnavailable(f"No Ray cluster answers at {cluster.address}", _ADDRESS_HINT) from None
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
        raise ClusterUnavailable(f"Ray cannot be started here ({reason})", _START_HINT) from None
    settings = DataContext.get_current()
    settings.enable_progress_bars = False
    settings.print_on_execution_start = False
    resources: dict[str, float] = ray.cluster_resources()
    cores = int(resources.get("CPU", 0))
    return max(1, min(cluster.workers or cores, cores))


def _check_listening(address: str) -> None:
    """Raise OSError where nobody listens at an address: Ray itself asks again for minutes before it says so."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


def read_files(tasks: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (number of a task, what its files hold), as they finish."""
    data = _dataset([{"number": [number], "task": [task]} for number, task in enumerate(tasks)])
    for row in _run(data.map_batches(_read, batch_size=1, batch_format="pyarrow", num_cpus=1)):
        _check(row)
        yield row["number"], row["files"]


def make_shards(job: wire.MakeJob, workers: int) -> Iterator[tuple[wire.ShardMade, bytes]]:
    """Yield the shards of a job, each with the content of its file, as they finish.

    Args:
        job: what to make.
        workers: how many actors embed, a core each.

    Raises:
        MaraError: what a worker raised.
        ClusterUnavailable: workers died again and again.
    """
    data = _dataset([{"key": [key], "task": [task]} for key, task in job.tasks.items()])
    if job.replies:
        arguments = {"work": job.work, "keeper": _reply_keeper(Path(job.replies))}
        data = _stage(data, Extracting, min(job.extractors, len(job.tasks)), 0, arguments)
    data = _stage(data, Embedding, min(workers, len(job.tasks)), 1, {"work": job.work})
    for row in _run(data):
        _check(row)
        yield wire.ShardMade(row["key"], row["passages"], row["failed"], row["tokens"]), row["content"]


class Extracting:
    """A stage's actor: asks a model about the passages of shards."""

    def __init__(self, work: str, keeper: Any) -> None:
        replies: Any = RemoteReplies(keeper)
        self._worker = Worker(wire.work_from_json(work), replies)

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """Add to a task what was found in its passages."""

        def extract(row: dict[str, Any]) -> dict[str, Any]:
            found = self._worker.extract(wire.task_from_json(row["task"]))
            return {"key": row["key"], "task": row["task"], "found": json.dumps(found)}

        return _told(batch, extract, ("key", "task", "found"))


class Embedding:
    """A stage's actor: embeds shards and, where no model was asked before, extracts them."""

    def __init__(self, work: str) -> None:
        self._worker = Worker(wire.work_from_json(work))

    def __call__(self, batch: pyarrow.Table) -> pyarrow.Table:
        """Turn a task into the content of a shard's file."""

        def make(row: dict[str, Any]) -> dict[str, Any]:
            _check(row)
            task = wire.task_from_json(row["task"])
            found = json.loads(row["found"]) if "found" in row else self._worker.extract(task)
            shard = self._worker.embed(task, found)
            numbers = {"passages": len(shard.found), "failed": shard.failed, "tokens": shard.tokens}
            return {"key": task.key, "content": to_parquet(shard), **numbers}

        return _told(batch, make, ("key", "content", "passages", "failed", "tokens"))


class RemoteReplies:
    """The replies that the machine of the run keeps, as a worker anywhere sees them: see `Replies` for its methods."""

    def __init__(self, keeper: Any) -> None:
        self._keeper = keeper

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import ray

        return lambda *arguments: ray.get(getattr(self._keeper, name).remote(*arguments))


def _reply_keeper(path: Path) -> Any:
    """Start the actor that has the file of kept replies open, on this machine: SQLite needs a local disk's locks."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    keeper: Any = ray.remote(ReplyCache)
    return keeper.options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=here).remote(path)


def _stage(data: Any, actor: type, size: int, cores: float, arguments: dict[str, Any]) -> Any:
    from ray.data import ActorPoolStrategy

    return data.map_batches(
        actor,
        fn_constructor_kwargs=arguments,
        batch_size=1,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
        num_cpus=cores,
        ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": _TASK_RETRIES},
    )


def _dataset(rows: Sequence[Mapping[str, Sequence[Any]]]) -> Any:
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
    def read(row: dict[str, Any]) -> dict[str, Any]:
        return {"number": row["number"], "files": wire.files_to_json(read_task(wire.reading_from_json(row["task"])))}

    return _told(batch, read, ("number", "files"))


_TYPES = {"content": "large_binary", "number": "int64", "passages": "int64", "failed": "int64", "tokens": "int64"}


def _told(
    batch: pyarrow.Table, work: Callable[[dict[str, Any]], dict[str, Any]], columns: Sequence[str]
) -> pyarrow.Table:
    """Return the table of what some work makes of a row, or of its error: see `_check`."""
    import pyarrow as pa

    row = batch.to_pylist()[0]
    values: dict[str, Any] = {}
    error = None
    try:
        values = work(row)
    except Exception as fault:
        error = json.dumps(asdict(wire.Failed.of(as_error(fault))))
    types = {name: pa.type_for_alias(_TYPES.get(name, "large_string")) for name in (*columns, "error")}
    told = {**dict.fromkeys(columns), **values, "error": error}
    return pa.table({name: pa.array([told[name]], kind) for name, kind in types.items()})


def _check(row: dict[str, Any]) -> None:
    """Raise the error that a row tells, if it does."""
    if row.get("error"):
        raise wire.Failed(**json.loads(row["error"])).remade()
