"""An example's application on a real port."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tests.dictation import PATIENCE_S


@contextmanager
def on_a_port(app: FastAPI) -> Iterator[tuple[str, int]]:
    """Serve an application on a port of this machine; give its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)
        listening.close()


def read_until(text: bytes, address: tuple[str, int], request: str) -> None:
    """Send a request, read its response up to a text, and go away."""
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(request.encode())
        received = b""
        while text not in received:
            more = connection.recv(65536)
            assert more, received
            received += more
