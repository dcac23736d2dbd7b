"""A LangSmith that runs on this machine: it takes runs in by the multipart or the batch protocol, and keeps them.

with TraceServer() as server, server.tracing():
    ask("...", context)
root = server.tree()
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import langsmith
from langsmith.run_helpers import tracing_context

FLUSH_S = 20
_LIMITS = {
    "scale_up_qsize_trigger": 1000,
    "scale_up_nthreads_limit": 4,
    "scale_down_nempty_trigger": 4,
    "size_limit": 100,
    "size_limit_bytes": 20_971_520,
}


@dataclass
class TracedRun:
    """A run as it was taken in, and what it says of itself: name, type, inputs, outputs, error, metadata and tags.

    Attributes:
        children: the runs within it, in the order they started.
        payloads: bytes of everything that was sent of it.
    """

    fields: dict[str, Any]
    payloads: int
    children: list[TracedRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = str(self.fields.get("name"))
        self.run_type = str(self.fields.get("run_type"))
        self.inputs: Any = self.fields.get("inputs") or {}
        self.outputs: Any = self.fields.get("outputs") or {}
        self.error = str(self.fields.get("error") or "")
        self.metadata: dict[str, Any] = self.fields.get("extra", {}).get("metadata", {})
        self.tags = list[str](self.fields.get("tags") or ())

    def walk(self) -> Iterator[TracedRun]:
        """Yield it and all that is within it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, name: str) -> list[TracedRun]:
        """Return the runs of a name within it."""
        return [run for run in self.walk() if run.name == name]

    def one(self, name: str) -> TracedRun:
        """Return the one run of a name within it."""
        (found,) = self.all(name)
        return found


class TraceServer:
    """The server: a context manager that takes runs in until it is left."""

    def __init__(self, *, multipart: bool = True) -> None:
        self.info = {"batch_ingest_config": {"use_multipart_endpoint": multipart, **_LIMITS}}
        self._lock = threading.Condition()
        self._runs: dict[str, dict[str, Any]] = {}
        self._bytes: dict[str, int] = {}
        self.paths: set[str] = set()
        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.client = langsmith.Client(api_url=self.url, api_key="none")

    def __enter__(self) -> TraceServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.client.close(timeout=FLUSH_S)
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def tracing(self, **how: Any) -> Iterator[None]:
        """Trace what is run here to this server, whatever the environment says."""
        with tracing_context(enabled=True, client=self.client, project_name="tests", **how):
            yield

    def trees(self) -> list[TracedRun]:
        """Return the root runs, once all that was sent is here, in the order they started."""
        self.client.flush(timeout=FLUSH_S)
        with self._lock:
            runs = {key: TracedRun(fields, self._bytes[key]) for key, fields in self._runs.items()}
        roots: list[TracedRun] = []
        for run in sorted(runs.values(), key=lambda run: str(run.fields.get("dotted_order"))):
            parent = run.fields.get("parent_run_id")
            (runs[parent].children if parent else roots).append(run)
        return roots

    def tree(self) -> TracedRun:
        """Return the one root run."""
        (root,) = self.trees()
        return root

    def wait_for_root(self, outputs: Any, timeout_s: float = FLUSH_S) -> TracedRun:
        """Return the root run that ended with these outputs, once it is here; another process sends it."""

        def is_here() -> bool:
            return any(fields.get("outputs") == outputs for fields in self._runs.values())

        with self._lock:
            assert self._lock.wait_for(is_here, timeout_s), "no run ended with these outputs"
        (root,) = (root for root in self.trees() if root.outputs == outputs)
        return root

    def take(self, path: str, content_type: str, body: bytes) -> None:
        """Take a request in, all of it at once."""
        with self._lock:
            self.paths.add(path)
            self.bodies.append(body)
            if path.endswith("/multipart"):
                self._take_multipart(content_type, body)
            elif path.endswith("/batch"):
                sent = json.loads(body)
                for run in [*sent.get("post", ()), *sent.get("patch", ())]:
                    self._merge(run["id"], run, len(json.dumps(run)))
            self._lock.notify_all()

    def _take_multipart(self, content_type: str, body: bytes) -> None:
        message = message_from_bytes(f"content-type: {content_type}\r\n\r\n".encode() + body, policy=policy.HTTP)
        for part in message.iter_parts():
            _, key, *names = str(part.get_param("name", header="content-disposition")).split(".")
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            value = json.loads(payload)
            self._merge(key, {names[0]: value} if names else value, len(payload))

    def _merge(self, key: str, fields: dict[str, Any], size: int) -> None:
        """Take fields of a run over; what comes later counts."""
        self._runs.setdefault(key, {}).update({k: v for k, v in fields.items() if v is not None})
        self._bytes[key] = self._bytes.get(key, 0) + size


def _handler_of(server: TraceServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self._reply(server.info)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            server.take(self.path, self.headers["content-type"], body)
            self._reply({})

        def _reply(self, value: dict[str, Any]) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
