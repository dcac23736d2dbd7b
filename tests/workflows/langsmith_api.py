"""A server of this machine that replies as LangSmith's API does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

KEY = "lsv2_secret_of_ours"


class LangSmithApi(ThreadingHTTPServer):
    """The server; a subclass says what it replies.

    Attributes:
        down: status by path, to reply with instead.
        asked: the paths of all requests.
        keys: all keys that requests had.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.down: dict[str, int] = {}
        self.asked: list[str] = []
        self.keys: set[str | None] = set()

    def reply(self, method: str, path: str, query: dict[str, list[str]], sent: Any) -> Any:
        """Return what is replied as JSON."""
        raise NotImplementedError

    @contextmanager
    def running(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Serve, and let the environment name this server and a key."""
        thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://127.0.0.1:{self.server_port}")
        yield
        self.shutdown()
        self.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: LangSmithApi

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        where = urlsplit(self.path)
        self.server.asked.append(where.path)
        self.server.keys.add(self.headers.get("x-api-key"))
        status = self.server.down.get(where.path, 200)
        kind = self.headers.get("content-type", "")
        sent = _parts(kind, raw) if kind.startswith("multipart") else json.loads(raw) if raw else None
        reply = {"detail": "no"}
        if status == 200:
            reply = self.server.reply(self.command, where.path, parse_qs(where.query), sent)
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = _handle  # noqa: N815


def _parts(kind: str, raw: bytes) -> list[tuple[str, Any]]:
    message = message_from_bytes(f"content-type: {kind}\r\n\r\n".encode() + raw, policy=policy.HTTP)
    assert isinstance(message, EmailMessage)
    named = [(part.get_param("name", header="content-disposition"), part) for part in message.iter_parts()]
    return [(str(name), json.loads(part.get_payload(decode=True))) for name, part in named]  # type: ignore[arg-type]
