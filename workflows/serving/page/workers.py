"""The processes of `mara serve`: uvicorn's server of a site, or several of them at one address."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import parent_process
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from graph.errors import MaraError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from workflows.serving.page.site import Site
    from workflows.serving.service import Service

STOPPING_S = 2
"""The time that answers under way have after Ctrl-C."""

DRAINING_S = 20
"""The time that answers under way have after SIGTERM, which tells a server that another one takes its place."""

HUNG_AFTER_S = 60.0
"""The silence after which a worker is taken to hang."""

_WAITING_CONNECTIONS = 1024
_ACCEPTED_AT_ONCE = 1
_LEEWAY_S = 1
_KILLED_AFTER_S = DRAINING_S + 5.0


class WorkerFailed(MaraError):
    """The worker processes of a server end before they serve."""


@dataclass(frozen=True)
class Served:
    """A site and its settings; called, the application, in whatever process that is.

    The modules of the application are imported by then: a worker that is started answers its supervisor first.

    Attributes:
        workspace: the server's own.
        conversations: the folder that keeps them; None: the workspace.
        uploads: the folder for documents that visitors add; None where they may not.
        history: whether conversations go into the history.
        at_once: questions that a worker has at work; None: by cores or by the model.
        workers: how many processes serve it.
    """

    workspace: Path
    conversations: Path | None = None
    uploads: Path | None = None
    history: bool = False
    at_once: int | None = None
    workers: int = 1

    @property
    def site(self) -> Site:
        """The site."""
        from workflows.serving.page.site import Site

        return Site(self.workspace, self.conversations, self.uploads, keeps_history=lambda: self.history)

    @cached_property
    def service(self) -> Service:
        """The service of this process: its places, and the counts of its questions."""
        from workflows.serving.service import Service

        return Service(self.at_once, self.workers)

    def __call__(self) -> Starlette:
        """Return the application. With several workers, one takes connections once its workspace is open."""
        from workflows.serving.page.app import make_app

        return make_app(self.site, self.service, opens_first=self.workers > 1)

    @property
    def config(self) -> uvicorn.Config:
        """The settings of uvicorn."""
        return uvicorn.Config(
            self,
            factory=True,
            workers=self.workers,
            log_level="warning",
            access_log=False,
            server_header=False,
            # One connection is taken at a time, so that workers share them; asyncio alone can be told so.
            loop="asyncio",
            backlog=_ACCEPTED_AT_ONCE,
            timeout_graceful_shutdown=STOPPING_S + _LEEWAY_S,
        )


def serve(served: Served, listening: socket.socket, say: Callable[[str], None], on_start: Callable[[], None]) -> None:
    """Serve until SIGTERM, or until Ctrl-C, which raises KeyboardInterrupt.

    Args:
        served: the site.
        listening: the socket from which all processes take connections.
        say: tells the operator something.
        on_start: called once connections are taken.

    Raises:
        WorkerFailed: the workers cannot start.
    """
    from workflows.runtime.resources import close_indexes
    from workflows.serving.metrics import shared_folder

    if served.workers > 1:
        with shared_folder() as folder:
            workers = Workers(served.config, listening, folder, say, on_start)
            workers.run()
        was_interrupted = workers.was_interrupted
    else:
        server = Server(served.config, on_start)
        try:
            server.run(sockets=[listening])
        finally:
            close_indexes()
        was_interrupted = server.was_interrupted
    if was_interrupted:
        raise KeyboardInterrupt


class Server(uvicorn.Server):
    """A server that ends in time.

    Args:
        config: the settings of uvicorn, with what is served.
        on_start: called once connections are taken.

    Attributes:
        was_interrupted: whether Ctrl-C ended it.
    """

    def __init__(self, config: uvicorn.Config, on_start: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self.was_interrupted = False
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, and say so."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_WAITING_CONNECTIONS)
        self._on_start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, at SIGTERM with more time for answers under way. Uvicorn would be killed by the signal in the end."""
        if sig == signal.SIGINT and self.should_exit:
            asyncio.get_running_loop().call_soon_threadsafe(self._hang_up)
        self.was_interrupted = self.was_interrupted or sig == signal.SIGINT
        self.end(STOPPING_S if self.was_interrupted else DRAINING_S)

    def end(self, seconds: int) -> None:
        """End as soon as answers under way have, at most some seconds later. Any thread may say so."""
        assert isinstance(self.config.app, Served)
        self.config.app.service.drain(seconds)
        self.config.timeout_graceful_shutdown = seconds + _LEEWAY_S
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, and hang up in time on who is still there: uvicorn would cancel each answer and log it as a failure."""
        seconds = (self.config.timeout_graceful_shutdown or _LEEWAY_S) - _LEEWAY_S
        asyncio.get_running_loop().call_later(seconds, self._hang_up)
        await super().shutdown(sockets)

    def _hang_up(self) -> None:
        for connection in self.server_state.connections:
            connection.transport.abort()


class _Worker(Process):
    """One of several processes that serve; it ends where its supervisor is gone."""

    @property
    def server(self) -> Server:
        if self._server is None:
            self._server = Server(self.config)
        assert isinstance(self._server, Server)
        return self._server

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        from workflows.runtime.resources import close_indexes
        from workflows.runtime.trace_delivery import traces_delivered

        threading.Thread(target=self._end_with_supervisor, daemon=True).start()
        try:
            with traces_delivered():
                super().target(sockets)
        finally:
            close_indexes()

    def _end_with_supervisor(self) -> None:
        if supervisor := parent_process():
            supervisor.join()
        self.server.end(STOPPING_S)


class Workers(Multiprocess):
    """Uvicorn's supervisor of workers, which replaces one that dies or hangs, and says so.

    Args:
        config: the settings of uvicorn, with what is served.
        listening: the socket from which all of them take connections.
        figures: the folder in which they count together.
        say: tells the operator something.
        on_start: called once the first worker takes connections.

    Attributes:
        was_interrupted: whether Ctrl-C ended it.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        listening: socket.socket,
        figures: Path,
        say: Callable[[str], None],
        on_start: Callable[[], None],
    ) -> None:
        super().__init__(config, [listening])
        self.was_interrupted = False
        self._figures = figures
        self._say = say
        self._on_start: Callable[[], None] | None = on_start

    def init_processes(self) -> None:
        """Start the workers."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace workers that died or hang. Raises WorkerFailed where one cannot serve."""
        from prometheus_client.multiprocess import mark_process_dead

        for place, worker in enumerate(self.processes):
            if self.should_exit.is_set():
                return
            if worker.is_alive(HUNG_AFTER_S):
                if self._on_start and worker.is_ready(HUNG_AFTER_S):
                    self._on_start()
                    self._on_start = None
                continue
            worker.kill()
            worker.join()
            # It counts no longer among those that answer; the questions that it counted stay.
            mark_process_dead(worker.pid or 0, str(self._figures))  # type: ignore[no-untyped-call]
            if worker.exitcode == STARTUP_FAILURE:
                self.terminate_all()
                raise WorkerFailed("The workers cannot start", "What they printed above says why")
            self._say(f"Worker {worker.pid} ended (exit code {worker.exitcode}): another takes its place")
            self.processes[place] = self._started()

    def handle_int(self) -> None:
        """End at Ctrl-C."""
        self.was_interrupted = True
        super().handle_int()

    def handle_hup(self) -> None:
        """End with the terminal."""
        super().handle_term()

    def join_all(self) -> None:
        """Wait for the workers to end, and kill those that do not."""
        last = time.monotonic() + _KILLED_AFTER_S
        for worker in self.processes:
            worker.process.join(max(0.0, last - time.monotonic()))
            worker.process.kill()
            worker.process.join()

    def _started(self) -> Process:
        worker = _Worker(self.config, self.sockets)
        # Ctrl-C reaches the whole group of processes: one that cannot heed it yet leaves that to its supervisor.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        worker.start()
        signal.signal(signal.SIGINT, before)
        return worker
