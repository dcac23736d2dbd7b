"""`mara serve`: one process that serves a site, or several that share a listening socket, and who looks after them."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from workflows.runtime.resources import close_indexes
from workflows.runtime.trace_delivery import traces_delivered
from workflows.serving.page.app import make_app
from workflows.serving.page.site import Site
from workflows.serving.service import Service

STOPPING_S = 2
"""The time that answers under way have after Ctrl-C."""

DRAINING_S = 20
"""The time that answers under way have after SIGTERM, which tells a server that another one takes its place."""

BEAT_S = 2.0
"""How often a worker says that it lives."""

DRAIN, STOP = b"drain", b"stop"
"""What a worker is told; it stops, too, where nobody is left to tell it anything."""

HEAD_S = 20.0
"""The time that a client has to send what comes before a request's body."""

_WAITING_CONNECTIONS = 1024
_ACCEPTED_AT_ONCE = 1
_TICKS_A_SECOND = 10
_LEEWAY_S = 1


@dataclass(frozen=True, slots=True)
class Served:
    """What is served, as a process of its own can be given it.

    Attributes:
        workspace: the server's own.
        conversations: the file that keeps them; None: one in the workspace.
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
        return Site(self.workspace, self.conversations, self.uploads, keeps_history=lambda: self.history)


class Server(uvicorn.Server):
    """Serves a site from one process.

    Args:
        served: what is served.
        opens_first: whether the workspace is open before the first connection is taken.
        on_start: called once it takes connections.
        heeds_interrupt: whether Ctrl-C ends it; a worker leaves that to who looks after it.

    Attributes:
        was_interrupted: whether Ctrl-C ended it.
    """

    def __init__(
        self,
        served: Served,
        *,
        opens_first: bool = False,
        on_start: Callable[[], None] = lambda: None,
        heeds_interrupt: bool = True,
    ) -> None:
        self._service = Service(served.at_once, served.workers)
        self._on_start = on_start
        self._heeds_interrupt = heeds_interrupt
        self.was_interrupted = False
        self._waiting: dict[tuple[Any, Any], float] = {}
        super().__init__(
            uvicorn.Config(
                make_app(served.site, self._service, opens_first=opens_first),
                log_level="warning",
                access_log=False,
                server_header=False,
                # One connection is taken at a time, so that workers share them; asyncio alone can be told so.
                loop="asyncio",
                backlog=_ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=STOPPING_S + _LEEWAY_S,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections, and say so."""
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_WAITING_CONNECTIONS)
        if self.started:
            self._on_start()

    async def on_tick(self, counter: int) -> bool:
        """Close connections on which no request comes to its body in time: uvicorn waits for it without end."""
        if counter % _TICKS_A_SECOND == 0:
            before, now = self._waiting, time.monotonic()
            self._waiting = {each: before.get(each, now) for each in self._without_request()}
            for (connection, _), since in self._waiting.items():
                if now - since > HEAD_S:
                    connection.shutdown()
        return await super().on_tick(counter)

    def _without_request(self) -> Iterator[tuple[Any, Any]]:
        """Yield connections whose last request is answered, with what uvicorn keeps of it: another one for each."""
        for connection in self.server_state.connections:
            last = getattr(connection, "cycle", None)
            if last is None or last.response_complete:
                yield connection, last

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, at SIGTERM with more time for answers under way. Uvicorn would be killed by the signal in the end."""
        if sig == signal.SIGTERM:
            self.end(DRAINING_S)
        elif self._heeds_interrupt:
            self.was_interrupted = True
            if self.should_exit:
                asyncio.get_running_loop().call_soon_threadsafe(self._hang_up)
            self.end(STOPPING_S)

    def end(self, seconds: int) -> None:
        """End as soon as answers under way have, at most some seconds later. Any thread may say so."""
        self._service.drain()
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


def serve_alone(served: Served, listening: socket.socket, on_start: Callable[[], None]) -> None:
    """Serve from this process until SIGTERM, or until Ctrl-C, which raises KeyboardInterrupt."""
    server = Server(served, on_start=on_start)
    try:
        server.run(sockets=[listening])
    finally:
        close_indexes()
    if server.was_interrupted:
        raise KeyboardInterrupt


def work(served: Served, listening: socket.socket, supervisor: Connection) -> None:
    """Serve as one of several workers, until the supervisor says so or is gone.

    Connections are left to the others until it is warm.

    Args:
        served: what is served.
        listening: the socket that all workers take connections from.
        supervisor: is told that this one lives, and tells it to end.
    """
    server = Server(served, opens_first=True, heeds_interrupt=False)

    def heed() -> None:
        told = STOP
        with suppress(EOFError, OSError):
            told = supervisor.recv_bytes()
        server.end(DRAINING_S if told == DRAIN else STOPPING_S)

    async def serve() -> None:
        beating = asyncio.create_task(_beat(server, supervisor))
        try:
            await server.serve(sockets=[listening])
        finally:
            beating.cancel()

    threading.Thread(target=heed, name="supervisor", daemon=True).start()
    try:
        with traces_delivered():
            asyncio.run(serve())
    finally:
        close_indexes()


async def _beat(server: uvicorn.Server, supervisor: Connection) -> None:
    """Say again and again that the event loop goes on, and whether connections are taken."""
    while True:
        try:
            supervisor.send_bytes(b"serving" if server.started else b"starting")
        except OSError:
            return
        await asyncio.sleep(BEAT_S if server.started else BEAT_S / 20)
