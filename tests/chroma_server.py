"""A real Chroma server in a process of its own, for tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

_DEADLINE_S = 30.0
_BETWEEN_TRIES_S = 0.02


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class ChromaServer:
    """``chroma run`` over a folder, answering from when it is made until it is killed.

    Attributes:
        url: its address.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self._folder = folder
        self._port = port or free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        command = [str(Path(sys.executable).with_name("chroma")), "run", "--path", str(folder)]
        self._process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(self._port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.kill()
            raise

    def again(self) -> ChromaServer:
        """Start a server over the same folder at the same address, after this one was killed."""
        return ChromaServer(self._folder, self._port)

    def kill(self) -> None:
        """End the server without giving it a chance to tidy up."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Let the server accept connections and answer none, until it is killed."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED | os.WNOWAIT)

    def __enter__(self) -> ChromaServer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.kill()

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=_DEADLINE_S).close()
                return
            except OSError:
                try:
                    code = self._process.wait(timeout=_BETWEEN_TRIES_S)
                except subprocess.TimeoutExpired:
                    continue
                raise RuntimeError(f"chroma run ended ({code})") from None
        raise RuntimeError(f"chroma run does not answer within {_DEADLINE_S:g} s")


class Gate:
    """A reverse proxy before a Chroma server, under a path: it refuses requests without the header that it wants.

    Attributes:
        url: its address, with the path and without credentials.
        failing: while this is a status, it is the answer to every request.
    """

    def __init__(self, server_url: str, path: str, header: tuple[str, str]) -> None:
        self.failing: int | None = None
        gate, place = self, server_url.removeprefix("http://")

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # an answer in one piece is not held back

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                refused = 404 if not self.path.startswith(f"{path}/api/") else None
                if self.headers.get(header[0]) != header[1] and not self.path.endswith("/heartbeat"):
                    refused = 401
                status = gate.failing or refused
                self.answer(status, b"<p>no</p>") if status else self.answer(*self.ask(body))

            def ask(self, body: bytes) -> tuple[int, bytes]:
                chroma = HTTPConnection(place)
                chroma.request(self.command, self.path.removeprefix(path), body, {"Content-Type": "application/json"})
                answer = chroma.getresponse()
                content = answer.read()
                chroma.close()
                return answer.status, content

            def answer(self, status: int, content: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_DELETE = forward  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
