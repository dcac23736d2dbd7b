"""The process that drives Ray Data for a run: it takes jobs on standard input, and tells on its output what is done.

It is a process of its own so that Ray's threads, signals and logs stay out of the one that indexes, which is often a
command or a server; and so that Ray can end, for whatever reason, and be started again. It ends with its parent, and
leaves a guard behind, which ends Ray and removes its folder.

Files are read by tasks. Passages pass one stage of actors that extract and embed: one a core, or, where a model is
asked, as many as may ask it. Beside the stages stand the worker that they hold, which knows nothing of Ray, and how
tasks, settings and errors are sent.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, zip_longest
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from agents.chat.reply_cache import Replies, ReplyCache
from agents.extraction import ExtractionRun
from graph import errors
from graph.embedding.embeddings import Embedder, check_embedder, configured_embedder
from graph.endpoints.address import censored
from graph.environment import environment, set_variables
from graph.errors import BadInput, ClusterUnavailable, MaraError, ModelUnavailable
from graph.own_types import OwnTypes
from graph.sources.child import from_json, to_json
from graph.sources.documents import ToRead, read_each
from graph.sources.loaders.document import Loaded
from workflows.distributed.shards import Shard, ShardFolder, ShardTask, Totals, embedded, to_parquet
from workflows.runtime.extraction import extraction_run, extractor_for
from workflows.settings.indexing import IndexingContext
from workflows.states.indexing import FoundInPassage, found_in

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
_START_HINT = "Run it again: finished shards are kept. `--set engine=local` needs no cluster"


def main(address: str, workers: int, folder: Path) -> None:
    """Connect to Ray, and do jobs until standard input ends.

    Args:
        address: of a running cluster; empty for one on this machine, for the length of the run.
        workers: how many cores are to work; 0 for all that there are.
        folder: for sockets and logs of a local one; its path is short.
    """
    _leave_a_guard(folder.parent)
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print goes to the log
    jobs: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_receive, args=(jobs,), daemon=True).start()
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


def _leave_a_guard(folder: Path) -> None:
    """Start a process that ends Ray once this one is gone, and removes the folder once the parent needs it no more."""
    group = os.getpgrp()
    ended, alive = os.pipe()
    if os.fork():
        os.close(ended)
        return
    os.setsid()
    for descriptor in (1, 2, alive):
        os.close(descriptor)
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

    def __init__(self, work: Work, cache: Replies | None = None) -> None:
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


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Files that one worker reads, one after another.

    Attributes:
        files: by absolute paths.
        digests: of their content, as the machine of the run sees it; none where the worker is on that machine.
        context: the settings of the run, which say how they are read.
    """

    files: tuple[ToRead, ...]
    digests: tuple[str, ...]
    context: IndexingContext

    @staticmethod
    def of(files: Sequence[ToRead], context: IndexingContext) -> ReadTask:
        """Return the task of some files."""
        digests = tuple(_digest(file.path) for file in files) if context.engine.address else ()
        return ReadTask(tuple(ToRead(file.path.absolute(), file.source) for file in files), digests, context)


def read_task(task: ReadTask) -> list[Loaded | None]:
    """Return what each file holds; None for those that cannot be read, or that this machine has otherwise, or not.

    The machine of the run reads these itself, and says what is wrong with them.
    """
    there = [not digest or digest == _digest(file.path) for file, digest in zip_longest(task.files, task.digests)]
    outcomes = read_each([*compress(task.files, there)], task.context.read_options())
    loaded = (outcome if isinstance(outcome, Loaded) else None for outcome in outcomes)
    return [next(loaded) if here else None for here in there]


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; "unreadable" where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "unreadable"


def error_to_json(fault: Exception) -> str:
    """Return what a worker tells of a fault: our own errors as they are, any other in a line."""
    if not isinstance(fault, MaraError):
        fault = ClusterUnavailable(
            f"A worker failed: {type(fault).__name__}: {censored(str(fault))[:_LONGEST_FAULT]}",
            "Run it with the engine `local` to see the whole error",
        )
    status = fault.status if isinstance(fault, ModelUnavailable) else 0
    return json.dumps([fault.kind, fault.message, fault.hint, status])


def error_from_json(text: str) -> MaraError:
    """Return the error that `error_to_json` told."""
    name, message, hint, status = json.loads(text)
    kind = getattr(errors, name, MaraError)
    if issubclass(kind, ModelUnavailable):
        return ModelUnavailable(message, hint, status=status)
    remade: MaraError = (kind if kind.__init__ is MaraError.__init__ else MaraError)(message, hint)
    return remade


if __name__ == "__main__":
    # Ray's workers find the functions and classes of the stages in the module, which `__main__` is not for them.
    from workflows.distributed import coordinator

    coordinator.main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
