"""Looking after the workers of `mara serve`: they are started, replaced where one ends or hangs, and ended together."""

from __future__ import annotations

import multiprocessing
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

from graph.errors import MaraError
from workflows.serving.metrics import forget_worker, shared_folder
from workflows.serving.processes.workers import DRAIN, DRAINING_S, STOP, STOPPING_S, Served, work

HUNG_AFTER_S = 60.0
"""The silence after which a worker is taken to hang."""

STARTED_AFTER_S = 600.0
"""The time that one may take to say its first word: on a busy machine imports alone take minutes."""

_LOOK_EVERY_S = 0.25
_SOON_S = 10.0
_LONGEST_PAUSE_S = 30.0
_LEEWAY_S = 5.0


class WorkerFailed(MaraError):
    """The worker processes of a server end before they serve."""


@dataclass(slots=True)
class _Worker:
    """A process that serves.

    Attributes:
        heard: when it last said that it lives; None where it has not yet.
        serves: whether it takes connections.
    """

    process: BaseProcess
    line: Connection
    began: float
    heard: float | None = None
    serves: bool = False

    def listen(self) -> None:
        """Hear what it said."""
        try:
            while self.line.poll():
                self.serves = self.line.recv_bytes() == b"serving" or self.serves
                self.heard = time.monotonic()
        except (EOFError, OSError):
            return

    def overdue_s(self) -> float:
        """Return by how much it has been silent for too long; negative where it has not."""
        now = time.monotonic()
        return now - self.began - STARTED_AFTER_S if self.heard is None else now - self.heard - HUNG_AFTER_S


@dataclass(slots=True)
class Supervisor:
    """Keeps the workers of a server running until it is told to end.

    Attributes:
        served: what they serve.
        listening: the socket from which all of them take connections.
        say: tells the operator something.
        on_start: called once the first worker serves.
    """

    served: Served
    listening: socket.socket
    say: Callable[[str], None]
    on_start: Callable[[], None]
    _workers: list[_Worker] = field(default_factory=list)
    _told: list[int] = field(default_factory=list)
    _pause_s: float = 0.0
    _not_before: float = 0.0
    _has_served: bool = False

    def run(self) -> None:
        """Serve until SIGTERM, or until Ctrl-C, which raises KeyboardInterrupt.

        Raises:
            WorkerFailed: no worker comes to serve.
        """
        with shared_folder() as folder, self._heeding_signals():
            try:
                while not self._told:
                    self._look_after(folder)
                    wait([worker.process.sentinel for worker in self._workers], _LOOK_EVERY_S)
            finally:
                self._end()
        if signal.SIGINT in self._told:
            raise KeyboardInterrupt

    def _look_after(self, folder: Path) -> None:
        for worker in [*self._workers]:
            worker.listen()
            if worker.process.is_alive() and worker.overdue_s() > 0:
                self.say(f"Worker {worker.process.pid} says nothing any more: it is ended")
                worker.process.kill()
                worker.process.join()
            if not worker.process.is_alive():
                self._bury(worker, folder)
        if not self._has_served and any(worker.serves for worker in self._workers):
            self._has_served = True
            self.on_start()
        while len(self._workers) < self.served.workers and time.monotonic() >= self._not_before:
            self._workers.append(self._started())

    def _started(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=work, args=(self.served, self.listening, theirs), name="mara-worker")
        # Ctrl-C reaches the whole group of processes: a worker heeds the supervisor instead, from its first moment on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        process.start()
        signal.signal(signal.SIGINT, before)
        theirs.close()
        return _Worker(process, ours, time.monotonic())

    def _bury(self, worker: _Worker, folder: Path) -> None:
        """Let another take a worker's place; one that ended soon after its start is waited for a little."""
        self._workers.remove(worker)
        worker.line.close()
        if worker.process.pid is not None:
            forget_worker(folder, worker.process.pid)
        if not self._has_served and not worker.serves:
            raise WorkerFailed(
                f"A worker ended before it served ({_exit(worker.process)})", "What it printed above says why"
            )
        lived_s = time.monotonic() - worker.began
        self._pause_s = min(_LONGEST_PAUSE_S, max(1.0, 2 * self._pause_s)) if lived_s < _SOON_S else 0.0
        self._not_before = time.monotonic() + self._pause_s
        self.say(f"Worker {worker.process.pid} ended ({_exit(worker.process)}): another takes its place")

    def _end(self) -> None:
        """End all workers; after SIGTERM answers under way have time."""
        drains = signal.SIGTERM in self._told
        for worker in self._workers:
            try:
                worker.line.send_bytes(DRAIN if drains else STOP)
            except OSError:
                continue
        last = time.monotonic() + (DRAINING_S if drains else STOPPING_S) + _LEEWAY_S
        for worker in self._workers:
            while worker.process.is_alive() and time.monotonic() < last and self._told.count(signal.SIGINT) < 2:
                worker.process.join(_LOOK_EVERY_S)
                worker.listen()
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    @contextmanager
    def _heeding_signals(self) -> Iterator[None]:
        def heed(number: int, frame: FrameType | None) -> None:
            self._told.append(number)

        before = {number: signal.signal(number, heed) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _exit(process: BaseProcess) -> str:
    code = process.exitcode or 0
    return f"signal {-code}" if code < 0 else f"code {code}"
