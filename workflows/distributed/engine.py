"""The engine `ray` as a run sees it: files that are read and shards that are made by other processes, in order."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from agents.chat.throttle import Cancelled
from graph.endpoints.address import censored
from graph.environment import environment
from graph.errors import BadInput, ClusterUnavailable
from graph.sources.documents import ReadOptions, ToRead, read_each
from graph.sources.loaders.document import Loaded
from workflows.distributed import wire
from workflows.distributed.shards import ShardTask, check_arrow
from workflows.distributed.work import ReadTask, Work, read_tasks
from workflows.settings.indexing import IndexingContext

READ_FILES = 32
READ_BYTES = 8 * 2**20
"""Files, and bytes of files, that one task reads."""

READS_A_WAVE = 128
"""Such tasks that are given to Ray at once: what they read is in memory until all of them are done."""

WAVE_SHARDS = 256
"""Shards that are given to Ray at once, at least."""

SHARDS_A_WORKER = 64
_GLANCE_S = 1.0
_END_S = 15.0
_LOST_IN_VAIN = 3
"""Times in a row that Ray may end without a shard made, before the run does."""

_LOG = "coordinator.log"
_LONGEST_FOLDER = 48
"""Characters: Ray puts sockets into it, whose paths are limited to 107."""


@dataclass(frozen=True, slots=True)
class Totals:
    """What all shards made so far hold together."""

    passages: int = 0
    failed: int = 0
    tokens: int = 0

    def plus(self, more: Totals | wire.ShardMade) -> Totals:
        """Return the sums."""
        return Totals(self.passages + more.passages, self.failed + more.failed, self.tokens + more.tokens)


class Coordinator:
    """A running coordinator's process, and the folder of its Ray."""

    def __init__(self, address: str, workers: int) -> None:
        """Start it; Ray is there once `ask` tells the first event. Raises DependencyMissing without the packages."""
        check_arrow()
        place = gettempdir()
        self.folder = Path(mkdtemp(prefix="mara-", dir=place if len(place) <= _LONGEST_FOLDER else "/tmp"))
        self.workers = workers
        self.is_ready = False
        self._lock = threading.Lock()
        with (self.folder / _LOG).open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workflows.distributed.coordinator"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(address),
                start_new_session=True,
            )
        self._send(wire.Cluster(address, workers, str(self.folder / "r")))

    def ask(self, job: wire.Job) -> Iterator[wire.FilesRead | wire.ShardMade]:
        """Have a job done; yield what is told of it. Raises MaraError as told, EOFError where the process ended."""
        self._send(job)
        assert self._process.stdout is not None
        while True:
            event = wire.receive(self._process.stdout)
            if isinstance(event, wire.Failed):
                raise event.remade()
            if isinstance(event, wire.Ready):
                self.workers, self.is_ready = event.workers, True
            elif isinstance(event, wire.JobDone):
                return
            elif isinstance(event, wire.FilesRead | wire.ShardMade):
                yield event

    def last_words(self) -> str:
        """Return the last line of its log."""
        with suppress(OSError):
            lines = (self.folder / _LOG).read_text(encoding="utf-8", errors="replace").split("\n")
            return censored(next((line.strip() for line in reversed(lines) if line.strip()), ""))[-300:]
        return ""

    def close(self) -> None:
        """End it and its Ray; what does not end soon is killed."""
        with self._lock:
            with suppress(OSError):
                assert self._process.stdin is not None
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _send(self, message: wire.Message) -> None:
        """Send a message; a process that is gone is noticed when it is listened to."""
        assert self._process.stdin is not None
        with suppress(OSError, ValueError):
            wire.send(self._process.stdin, message)


def _environment(address: str) -> dict[str, str]:
    """Return the variables of a coordinator: where our modules are, and what keeps others out of a Ray of its own."""
    own = {} if address else {**_OWN_RAY_SETTINGS, "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    modules = os.pathsep.join(map(os.path.abspath, sys.path))
    return {**environment().variables, **_RAY_SETTINGS, **own, "PYTHONPATH": modules}


_OWN_RAY_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # on Linux, too, the node has the loopback address, and binds no other
    "RAY_AUTH_MODE": "token",
    "RAY_process_group_cleanup_enabled": "0",  # workers stay in the coordinator's group, and are killed with it
}

_RAY_SETTINGS = {
    "RAY_ENABLE_AUTO_CONNECT": "0",  # else whatever still asks a Ray that was ended starts another one
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayEngine:
    """The workers of one run: started when they are first needed, and again where Ray ends before its time."""

    def __init__(self, context: IndexingContext) -> None:
        """Take the cluster and the workers of a run's settings. Raises DependencyMissing without the packages."""
        check_arrow()
        self._context = context
        self._address = context.address
        self._workers = context.workers if context.address else context.workers or os.cpu_count() or 1
        self._coordinator: Coordinator | None = None
        self._changed = threading.Condition()
        self._made: set[str] = set()
        self._totals = Totals()
        self._fault: BaseException | None = None
        self._closed = False
        self._thread: threading.Thread | None = None
        self.restarts = 0

    @property
    def workers(self) -> int:
        """How many workers there are, as far as it is known."""
        return self._coordinator.workers if self._coordinator else self._workers

    @property
    def _shards_a_wave(self) -> int:
        return max(WAVE_SHARDS, SHARDS_A_WORKER * self.workers)

    def read(self, files: Sequence[ToRead], options: ReadOptions) -> Iterator[Loaded | BadInput]:
        """Yield what each file holds, in order; what workers cannot read is read here.

        Args:
            files: to read.
            options: how, as the settings of the run say.
        """
        tasks = [*read_tasks(files, self._context, READ_FILES, READ_BYTES)]
        waves = (tasks[start : start + READS_A_WAVE] for start in range(0, len(tasks), READS_A_WAVE))
        outcomes = chain.from_iterable(map(self._read_wave, waves))
        for file, outcome in zip(files, outcomes, strict=True):
            yield outcome if outcome is not None else next(read_each([file], options))

    def _read_wave(self, tasks: Sequence[ReadTask]) -> Iterator[Loaded | None]:
        """Yield what the files of some tasks hold, in order; None for those that workers cannot read."""
        found: dict[int, list[Loaded | None]] = {}

        def next_job() -> wire.Job | None:
            if len(found) == len(tasks):
                return None
            found.clear()
            return wire.ReadJob([*map(wire.reading_to_json, tasks)])

        def take(event: wire.FilesRead | wire.ShardMade) -> None:
            if isinstance(event, wire.FilesRead):
                found[event.number] = wire.files_from_json(event.files)

        self._persist(next_job, take)
        for number in range(len(tasks)):
            yield from found.pop(number)

    def make(self, work: Work, tasks: Iterable[ShardTask], root: Path, replies: Path | None) -> None:
        """Begin to make shards, wave by wave, whose tasks are then asked for; `wait` tells when one is there."""
        told = wire.work_to_json(work)
        left = iter(tasks)
        wave: dict[str, ShardTask] = {}

        def next_job() -> wire.Job | None:
            wave.update((task.key, task) for task in islice(left, max(0, self._shards_a_wave - len(wave))))
            tasks_told = {key: wire.task_to_json(task) for key, task in wave.items()}
            return wire.MakeJob(told, work.extractors, tasks_told, str(root), str(replies or "")) if wave else None

        def take(event: wire.FilesRead | wire.ShardMade) -> None:
            if isinstance(event, wire.ShardMade):
                wave.pop(event.key, None)
                with self._changed:
                    self._made.add(event.key)
                    self._totals = self._totals.plus(event)
                    self._changed.notify_all()

        def drive() -> None:
            try:
                self._persist(next_job, take)
            except BaseException as fault:
                with self._changed:
                    self._fault = fault
                    self._changed.notify_all()

        self._thread = threading.Thread(target=drive, name="ray-engine", daemon=True)
        self._thread.start()

    def wait(self, key: str, glance: Callable[[Totals], None]) -> None:
        """Return when a shard is there; ``glance`` is called with what is made so far, each second at least.

        Raises:
            MaraError: what a worker raised; ClusterUnavailable where Ray ends again and again.
            Cancelled: the run was stopped.
        """
        while True:
            with self._changed:
                if key not in self._made and self._fault is None and not self._closed:
                    self._changed.wait(_GLANCE_S)
                totals, is_made = self._totals, key in self._made
            glance(totals)
            if is_made:
                return
            if self._closed:
                raise Cancelled("The run was stopped", "Run it again: finished shards are kept")
            if self._fault is not None:
                raise self._fault

    def close(self) -> None:
        """End all workers, from any thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            coordinator, self._coordinator = self._coordinator, None
        if coordinator is not None:
            coordinator.close()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_END_S)

    def _persist(
        self, next_job: Callable[[], wire.Job | None], take: Callable[[wire.FilesRead | wire.ShardMade], None]
    ) -> None:
        """Have jobs done until there is none; start Ray again where it ended, unless it does so in vain."""
        in_vain = 0
        while not self._closed and (job := next_job()) is not None:
            if in_vain == _LOST_IN_VAIN:
                raise ClusterUnavailable("Ray says that all is done, and nothing is", "Run it again")
            coordinator = self._running()
            in_vain += 1
            try:
                for event in coordinator.ask(job):
                    take(event)
                    in_vain = 0
            except (EOFError, ClusterUnavailable) as fault:
                refused = isinstance(fault, ClusterUnavailable) and not coordinator.is_ready
                self._lose(coordinator, fault, last=refused or in_vain == _LOST_IN_VAIN)

    def _lose(self, coordinator: Coordinator, fault: Exception, *, last: bool) -> None:
        """Let go of a coordinator whose Ray ended. Raises ClusterUnavailable the last time."""
        if self._closed:
            return
        words = coordinator.last_words()
        coordinator.close()
        with self._changed:
            self._coordinator = None
            self.restarts += 1
        if last and isinstance(fault, ClusterUnavailable):
            raise fault
        if last:
            raise ClusterUnavailable(f"Ray ended {_LOST_IN_VAIN} times in a row: {words}", "Check its memory and disk")

    def _running(self) -> Coordinator:
        with self._changed:
            if self._closed:
                raise Cancelled("The run was stopped", "Run it again: finished shards are kept")
            if self._coordinator is None:
                self._coordinator = Coordinator(self._address, self._workers)
            return self._coordinator
