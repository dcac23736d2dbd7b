"""The process that drives Ray Data for a run: it takes jobs on standard input, and tells on its output what is done.

It is a process of its own so that Ray's threads, signals and logs stay out of the one that indexes, which is often a
command or a server; and so that Ray can end, for whatever reason, and be started again. It ends with its parent, and
leaves a guard behind, which ends Ray and removes its folder.

Files are read by tasks. Passages pass one stage of actors that extract and embed: one a core, or, where a model is
asked, as many as may ask it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from agents.chat.reply_cache import ReplyCache
from graph.errors import ClusterUnavailable
from graph.sources.loaders.document import Loaded
from workflows.distributed.shards import ShardFolder, ShardTask, Totals, to_parquet
from workflows.distributed.work import (
    ReadTask,
    Work,
    Worker,
    error_from_json,
    error_to_json,
    from_json,
    read_task,
    to_json,
)

Row = dict[str, Any]

_TIDYINGS = 10
_TIDYING_S = 0.1
_OBJECT_STORE_BYTES = 200_000_000
_CONNECT_S = 10.0
_TASK_RETRIES = 32
"""Deaths that one shard survives: a machine that takes its worker with it each time ends the run at last."""

_ADDRESS_HINT = (
    "Check the address; run the command on a machine of the cluster, with RAY_AUTH_MODE=token if it asks for a token"
)
_START_HINT = "Run it again: finished shards are kept. `--engine local` needs no cluster"


def main(address: str, workers: int, folder: Path) -> None:
    """Connect to Ray, and do jobs until standard input ends.

    Args:
        address: of a running cluster; empty for one on this machine, for the length of the run.
        workers: how many cores are to work; 0 for all that there are.
        folder: for sockets and logs of a local one; its path is short.
    """
    _leave_a_guard(folder.parent)
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print goes to the log
    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def tell(**event: object) -> None:
        told.write(f"{json.dumps(event)}\n")
        told.flush()

    try:
        cores = _connect(address, workers, folder)
        tell(workers=cores)
        while True:
            for done in _done(jobs.get(), cores):
                tell(**done)
            tell(over=True)
    except Exception as fault:
        tell(error=error_to_json(fault))


def _leave_a_guard(folder: Path) -> None:
    """Start a process that ends Ray once this one is gone, and removes the folder once the parent needs it no more."""
    group = os.getpgrp()
    ended, alive = os.pipe()
    if os.fork():
        os.close(ended)
        return
    os.setsid()
    for held in (1, 2, alive):
        os.close(held)
    os.read(ended, 1)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
    while os.read(0, 2**16):
        pass
    for _ in range(_TIDYINGS):  # what is killed may write a little longer
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_TIDYING_S)
    os._exit(0)


def _receive(jobs: SimpleQueue[dict[str, Any]]) -> None:
    """Take in jobs; when the parent has closed its end, or is gone, end this process, whatever it is doing."""
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):
            jobs.put(json.loads(line))
    os._exit(0)


def _connect(address: str, workers: int, folder: Path) -> int:
    """Connect to a cluster, or start one; return how many workers there are to be. Raises ClusterUnavailable."""
    import ray
    from ray.data import DataContext

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
    try:
        if address:
            _check_listening(address)
            ray.init(address=address, **quiet)
        else:
            ray.init(
                address="local",
                num_cpus=workers,
                num_gpus=0,
                include_dashboard=False,
                object_store_memory=_OBJECT_STORE_BYTES,
                _temp_dir=str(folder),
                **quiet,
            )
    except Exception as fault:
        if address:
            raise ClusterUnavailable(f"No Ray cluster answers at {address}", _ADDRESS_HINT) from None
        reason = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:200]
        raise ClusterUnavailable(f"Ray cannot be started here ({reason})", _START_HINT) from None
    settings = DataContext.get_current()
    settings.enable_progress_bars = False
    settings.print_on_execution_start = False
    cores = int(ray.cluster_resources().get("CPU", 0))
    return max(1, min(workers or cores, cores))


def _check_listening(address: str) -> None:
    """Raise OSError where no process listens at an address: Ray itself asks again for minutes before it says so."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


def _done(job: dict[str, Any], cores: int) -> Iterator[dict[str, Any]]:
    """Yield what is told of the tasks of a job, as they finish; shards are in their files by then.

    Raises:
        MaraError: what a worker raised.
        ClusterUnavailable: workers died again and again.
    """
    import pyarrow as pa
    import ray
    from ray.data import ActorPoolStrategy

    tasks = job["tasks"]
    # One block a row, so that a task is what is scheduled, and retried.
    rows: Any = ray.data.from_arrow([pa.table({"key": [key], "task": [task]}) for key, task in tasks.items()])
    if not job["work"]:
        rows = rows.map(_read, num_cpus=1)
    else:
        size = job["extractors"] or cores
        rows = rows.map(
            Making,
            fn_constructor_args=(job["work"], _reply_keeper(Path(job["replies"])) if job["replies"] else None),
            compute=ActorPoolStrategy(size=min(size, len(tasks)), max_tasks_in_flight_per_actor=2),
            num_cpus=0 if job["extractors"] else 1,
            ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": _TASK_RETRIES},
        )
    try:
        for row in rows.iter_rows():
            if row["error"]:
                raise error_from_json(row["error"])
            if row["shard"]:
                ShardFolder(Path(job["root"])).put(row["key"], row["shard"])
            yield {"key": row["key"], "told": row["told"]}
    except (ray.exceptions.RayError, SystemError) as fault:
        reason = str(fault).strip().splitlines() or [type(fault).__name__]
        raise ClusterUnavailable(f"Ray's workers ended ({reason[-1][:200]})", _START_HINT) from None


class Making:
    """The actor of a stage: extracts and embeds the passages of shards."""

    def __init__(self, work: str, keeper: Any) -> None:
        replies: Any = RemoteReplies(keeper) if keeper is not None else None
        self._worker = Worker(from_json(Work, work), replies)

    def __call__(self, row: Row) -> Row:
        """Turn a task into the content of a shard's file."""

        def make() -> Row:
            shard = self._worker.make(from_json(ShardTask, row["task"]))
            return {"shard": to_parquet(shard), "told": to_json(Totals, shard.totals)}

        return _answered(row, make)


def _read(row: Row) -> Row:
    return _answered(row, lambda: {"told": to_json(list[Loaded | None], read_task(from_json(ReadTask, row["task"])))})


def _answered(row: Row, work: Callable[[], Row]) -> Row:
    """Return a row with what some work makes of it, or with its error."""
    answered = {"key": row["key"], "shard": b"", "told": "", "error": ""}
    try:
        return {**answered, **work()}
    except Exception as fault:
        return {**answered, "error": error_to_json(fault)}


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


if __name__ == "__main__":
    # Ray's workers find the functions and classes of the stages in the module, which `__main__` is not for them.
    from workflows.distributed import coordinator

    coordinator.main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
