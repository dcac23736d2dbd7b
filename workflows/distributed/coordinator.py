"""The process that drives Ray Data for a run: it takes jobs on standard input, and tells on its output what is done.

It is a process of its own so that Ray's threads, signals and logs stay out of the one that indexes, which is often a
command or a server. It ends with its parent, and then leaves a shell that ends Ray and removes its folder.

Passages pass one stage of actors that extract and embed: one a core, or, where a model is asked, as many as may ask it.
Beside the stage stand the worker that it holds, which knows nothing of Ray, and how settings and errors are sent.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from agents.chat.reply_cache import ReplyCache
from agents.extraction import ExtractionRun
from graph import errors
from graph.embedding.embeddings import Embedder, check_embedder, configured_embedder
from graph.endpoints.address import censored
from graph.environment import environment, set_variables
from graph.errors import BadInput, ClusterUnavailable, MaraError
from graph.own_types import OwnTypes
from graph.sources.child import from_json, to_json
from workflows.distributed.shards import Shard, ShardFolder, ShardTask, Totals, embedded, to_parquet
from workflows.runtime.extraction import extraction_run, extractor_for
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage, found_in

Row = dict[str, Any]

_END = 'kill -9 "-$0"; sleep 1; rm -rf "$1"'
"""Ends a group of processes, and removes a folder once none of them writes any more."""

_OBJECT_STORE_BYTES = 200_000_000
_CONNECT_S = 10.0
_TASK_RETRIES = 32
"""Deaths that one shard survives: a machine that takes its worker with it each time ends the run at last."""

_ADDRESS_HINT = (
    "Check the address; run the command on a machine of the cluster, with RAY_AUTH_MODE=token if it asks for a token"
)
_START_HINT = "Run it again: finished shards are kept. `--set engine=local` needs no cluster"


def main(address: str, workers: int, folder: Path) -> None:
    """Connect to Ray, and do jobs until standard input ends.

    Args:
        address: of a running cluster; empty for one on this machine, for the length of the run.
        workers: how many cores are to work; 0 for all that there are.
        folder: for sockets and logs of a local one; its path is short.
    """
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print goes to the log
    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs, folder.parent), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def tell(**event: object) -> None:
        stream.write(f"{json.dumps(event)}\n")
        stream.flush()

    try:
        cores = _connect(address, workers, folder)
        tell(workers=cores)
        while True:
            for done in _done(jobs.get(), cores):
                tell(**done)
            tell(over=True)
    except Exception as fault:
        tell(error=error_to_json(fault))


def _receive(jobs: SimpleQueue[dict[str, Any]], folder: Path) -> None:
    """Take in jobs; when the parent has closed its end, or is gone, end Ray and this process, whatever it is doing."""
    for line in sys.stdin.buffer:
        if line.endswith(b"\n"):
            jobs.put(json.loads(line))
    subprocess.Popen(["/bin/sh", "-c", _END, str(os.getpgrp()), str(folder)], start_new_session=True)


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
    rows = rows.map(
        Making,
        fn_constructor_args=(job["work"], _reply_keeper(Path(job["replies"])) if job["replies"] else None),
        compute=ActorPoolStrategy(size=min(job["extractors"] or cores, len(tasks)), max_tasks_in_flight_per_actor=2),
        num_cpus=0 if job["extractors"] else 1,
        ray_remote_args_fn=lambda: {"max_restarts": -1, "max_task_retries": _TASK_RETRIES},
    )
    try:
        for row in rows.iter_rows():
            if row["error"]:
                raise error_from_json(row["error"])
            ShardFolder(Path(job["root"])).put(row["key"], row["shard"])
            yield {"key": row["key"], "totals": row["totals"]}
    except (ray.exceptions.RayError, SystemError) as fault:
        reason = str(fault).strip().splitlines() or [type(fault).__name__]
        raise ClusterUnavailable(f"Ray's workers ended ({reason[-1][:200]})", _START_HINT) from None


class Making:
    """The actor of a stage: extracts and embeds the passages of shards."""

    def __init__(self, work: str, keeper: Any) -> None:
        replies: Any = RemoteReplies(keeper) if keeper is not None else None
        self._worker = Worker(from_json(Work, work), replies)

    def __call__(self, row: Row) -> Row:
        """Turn a task into the content of a shard's file, or into the error of its worker."""
        made = {"key": row["key"], "shard": b"", "totals": "", "error": ""}
        try:
            shard = self._worker.make(from_json(ShardTask, row["task"]))
            return {**made, "shard": to_parquet(shard), "totals": to_json(Totals, shard.totals)}
        except Exception as fault:
            return {**made, "error": error_to_json(fault)}


class RemoteReplies:
    """The `ReplyCache` that the machine of the run keeps, as a worker anywhere sees it."""

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


_LONGEST_FAULT = 300
_PASSED_ON = (
    *("OPENAI_", "LANGSMITH_", "LANGCHAIN_"),
    *(f"MARA_{of}" for of in ("CHAT_", "CONTEXT_", "EMBEDDING_", "EXTRACTION_", "PRICES", "QUESTION_")),
    *(f"MARA_{of}" for of in ("THINKING_", "TIMEOUT_")),
)
"""The beginnings of variables that choose models and bound their requests."""


@dataclass(frozen=True, slots=True)
class Work:
    """The settings that all workers of a run have.

    Attributes:
        context: the settings of the run.
        own: the user's own types.
        extractor: the extractor's name.
        embedding_model: the embedding model's id.
        extractors: how many workers ask the model, which share the limits of the run.
        environment: variables that choose models and their servers.
    """

    context: IndexingContext
    own: OwnTypes
    extractor: str
    embedding_model: str
    extractors: int
    environment: Mapping[str, str]


def environment_of_workers() -> dict[str, str]:
    """Return the variables that workers on other machines need to use the same models: none of a store or a server."""
    variables = environment().variables.items()
    return {name: value for name, value in variables if name.startswith(_PASSED_ON)}


class Worker:
    """Extracts and embeds, on one core: models are loaded with the first shard, and kept."""

    def __init__(self, work: Work, cache: ReplyCache | None = None) -> None:
        """Take on the settings of the run.

        Args:
            work: what all workers are told.
            cache: kept replies of the model.
        """
        set_variables({**work.environment, "OMP_NUM_THREADS": "1"})
        self._work = work
        self._cache = cache
        self._fault: MaraError | None = None

    def extract(self, task: ShardTask) -> list[FoundInPassage]:
        """Return what is found in the passages of a task, in their order; failed ones have their reason.

        Raises:
            ModelUnavailable: the model's endpoint refuses the key or the model, or fails every passage.
            BadInput: this machine's extractor is another one than the run's.
        """
        asked = [passage for passage in task.passages if passage.id not in task.given]
        try:
            results = {one.passage_id: one for one in self._run.extract_all(asked)} if asked else {}
        except MaraError as fault:
            self._fault = self._fault or fault  # which stops the run: all that follows is told as stopped
            raise self._fault from None
        return [
            task.given[each.id] if each.id in task.given else found_in(each, results[each.id], self._work.extractor)
            for each in task.passages
        ]

    def make(self, task: ShardTask) -> Shard:
        """Return the shard of a task.

        Raises:
            EmbeddingMismatch: this machine's embedding model is another one than the run's.
            ModelUnavailable: a model cannot be used.
            BadInput: this machine's extractor is another one than the run's.
        """
        return embedded(task, self.extract(task), self._embedder)

    @cached_property
    def _run(self) -> ExtractionRun:
        extractor = extractor_for(self._work.context, self._work.own)
        if extractor.name != self._work.extractor:
            raise BadInput(
                f"A worker has the extractor {extractor.name!r}, the run {self._work.extractor!r}",
                "Install the same version of mara and its models on all machines",
            )
        return extraction_run(extractor, self._work.context, self._cache, self._work.extractors)

    @cached_property
    def _embedder(self) -> Embedder:
        embedder = configured_embedder()
        check_embedder(embedder, self._work.embedding_model)
        return embedder


def error_to_json(fault: Exception) -> str:
    """Return the form of a worker's fault as it is sent: our own errors as they are, any other in a line."""
    if not isinstance(fault, MaraError):
        fault = ClusterUnavailable(
            f"A worker failed: {type(fault).__name__}: {censored(str(fault))[:_LONGEST_FAULT]}",
            "Run it with the engine `local` to see the whole error",
        )
    return json.dumps([fault.kind, fault.message, fault.hint])


def error_from_json(text: str) -> MaraError:
    """Return the error that `error_to_json` sent."""
    name, message, hint = json.loads(text)
    remade: MaraError = getattr(errors, name, MaraError)(message, hint)
    return remade


if __name__ == "__main__":
    # Ray's workers find the functions and classes of the stages in the module, which `__main__` is not for them.
    from workflows.distributed import coordinator

    coordinator.main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
