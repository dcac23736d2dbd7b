"""Connections on which no request comes whole: the server closes them, and no other."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dictation import PATIENCE_S
from workflows.serving.page import workers
from workflows.serving.page.workers import Served, Server


class Ticked(Server):
    """A server on which time passes as a test says."""

    def __init__(self, served: Served) -> None:
        self.is_up = threading.Event()
        self.ended = asyncio.Event()
        super().__init__(served.config)

    async def main_loop(self) -> None:
        """Serve until told to end, and look at nothing."""
        self.loop = asyncio.get_running_loop()
        self.is_up.set()
        await self.ended.wait()

    def tick(self) -> None:
        """Let it look at its connections."""
        asyncio.run_coroutine_threadsafe(self.on_tick(0), self.loop).result(PATIENCE_S)


@pytest.fixture(params=["httptools", "h11"])
def ticked(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Ticked, tuple[str, int]]]:
    """A server that waits for a request's head no longer than from one look to the next, and its address."""
    monkeypatch.setattr(workers, "HEAD_S", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Ticked(Served(tmp_path / "none"))
        server.config.http = request.param
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert server.is_up.wait(PATIENCE_S)
        yield server, listening.getsockname()
        server.loop.call_soon_threadsafe(server.ended.set)
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def connected(address: tuple[str, int]) -> socket.socket:
    return socket.create_connection(address, PATIENCE_S)


def get(connection: socket.socket) -> None:
    """Ask for something small over a connection."""
    connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = b""
    while not received.endswith(b'{"status":"ok"}'):
        more = connection.recv(65536)
        assert more, received
        received += more


def test_a_request_whose_head_is_not_finished_ends_with_its_connection(ticked: tuple[Ticked, tuple[str, int]]) -> None:
    for sent in [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: "]:
        for before in [0, 1]:
            server, address = ticked
            with connected(address) as other, connected(address) as connection:
                get(other)
                for _ in range(before):
                    get(connection)
                connection.sendall(sent)
                server.tick()
                get(other)
                server.tick()
                assert connection.recv(1) == b"", before
                get(other)


def test_a_head_that_comes_drop_by_drop_is_not_finished_either(ticked: tuple[Ticked, tuple[str, int]]) -> None:
    server, address = ticked
    with connected(address) as other, connected(address) as connection:
        get(other)
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        server.tick()
        connection.sendall(b"X: ")
        get(other)
        server.tick()
        assert connection.recv(1) == b""
