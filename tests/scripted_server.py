"""A chat and embedding server that speaks the OpenAI protocol and answers from a script: real HTTP, standard library.

    with ScriptedServer({"manager": ['{"oops"', '{"entity_entity": {}, "entity_passage": {}}']}) as server:
        model = open_chat_model("any", 0.0, base_url=server.base_url, api_key="any", timeout_s=5)
        ...
    assert len(server.requests_of("manager")) == 2

A script is a list of replies, or a function from the request's body to a reply; one for all requests, or one a role.
The last reply of a list is repeated for ever. Roles are told by the first heading of the system prompt ("# Manager").
Embeddings need no script: equal texts give equal vectors, and texts that share words give near ones. A script for
the role "embeddings" may make them fail, too.

A reply of tokens tells log-probabilities to a request that asks for them; a server may refuse parameters altogether:

    Reply.spelt(("Yes", {"Yes": -0.1, "No": -2.4}), (" 0.9", {}))
    scripted(replies, refuses=["logprobs", "response_format"])

What it tells of itself is a body for each path (``server.tells["/v1/models"] = "..."``); who asked stands in
``looked_up``, and not among the requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
import re
import socket
import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\s*\S+|\s+")

Token = tuple[str, Mapping[str, float]]
"""A piece of a reply, and the log-probabilities of what might have stood there; its own counts 0 where left out."""


class Fault(Enum):
    """How a connection goes wrong."""

    HANG = auto()  # no byte before the server closes
    RESET = auto()  # the connection is reset before any byte
    TRUNCATED = auto()  # half of the body, then the connection closes
    GARBAGE = auto()  # bytes that are not HTTP


@dataclass(frozen=True)
class Reply:
    """One answer of the server.

    Attributes:
        text: what the model says; with an error status, the error's message.
        status: the HTTP status.
        headers: more headers, such as Retry-After.
        finish_reason: "stop", "length", "content_filter".
        fault: what to do in place of answering, or while answering.
        body: a raw body to send in place of a well-formed one.
        events: what is streamed in place of a well-formed stream, each piece as it is.
        usage: the tokens to tell; empty for a server that tells none, None for a count of the words.
        pieces: what is streamed in place of the text; may take its time over each piece.
        tokens: told to a request for log-probabilities; None for a server that tells none.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str = "stop"
    fault: Fault | None = None
    body: str | bytes | None = None
    events: Iterable[bytes] | None = None
    usage: Mapping[str, int] | None = None
    pieces: Iterable[str] | None = None
    tokens: Sequence[Token] | None = None

    @classmethod
    def spelt(cls, *tokens: Token) -> Reply:
        """Return a reply of these tokens."""
        return cls("".join(text for text, _ in tokens), tokens=tokens)


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it came; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def role(self) -> str:
        return "embeddings" if self.path.endswith("/embeddings") else role_of(self.body)

    def text_of(self, position: int) -> str:
        """Return the text of a chat message, counted from either end."""
        return _message_text(self.body["messages"][position])


ReplyLike = str | Reply
Script = Sequence[ReplyLike] | Callable[[Mapping[str, Any]], ReplyLike]


def role_of(body: Mapping[str, Any]) -> str:
    """Return the first heading of a chat request's system prompt, in lower case; empty where there is none."""
    for message in body.get("messages", []):
        if message.get("role") in ("system", "developer"):
            for line in _message_text(message).splitlines():
                if line.startswith("# "):
                    return line[2:].strip().lower()
    return ""


def hashed_vector(text: str, dimension: int) -> list[float]:
    """Return a unit vector that depends on the text's words alone: the sum of a pseudo-random vector for each."""
    total = [0.0] * dimension
    for word in _WORD.findall(text.lower()) or [text]:
        source = random.Random(hashlib.blake2b(word.encode("utf-8", "replace")).digest())
        for axis in range(dimension):
            total[axis] += source.gauss(0.0, 1.0)
    length = math.sqrt(sum(value * value for value in total))
    return [value / length for value in total]


class ScriptedServer:
    """The server, on a free port of this machine, for the length of a ``with`` block.

    Args:
        replies: a script, or one for each role.
        dimension: of the embeddings.
        refuses: parameters, such as "logprobs": a request that has one is answered 400 and takes no reply.
    """

    def __init__(
        self,
        replies: Script | Mapping[str, Script] = (),
        *,
        dimension: int = 16,
        refuses: Collection[str] = (),
    ) -> None:
        self.dimension = dimension
        self.released = threading.Event()
        self._lock = threading.Lock()
        self.tells: Mapping[str, ReplyLike] = {}
        self.looked_up: list[tuple[str, Mapping[str, str]]] = []
        self.script(replies, refuses)
        self._http = _HttpServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    def script(self, replies: Script | Mapping[str, Script], refuses: Collection[str] = ()) -> None:
        """Start over with another script: forget the requests so far and let go of those that hang."""
        with self._lock:
            self._scripts: Mapping[str, Script] = replies if isinstance(replies, Mapping) else {}
            self._script_for_all = None if isinstance(replies, Mapping) else replies
            self._turns: dict[str, int] = {}
            self._refuses = tuple(refuses)
            self.tells, self.looked_up = {}, []
            self.requests: list[RecordedRequest] = []
            self.released.set()
            self.released = threading.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def requests_of(self, role: str) -> list[RecordedRequest]:
        with self._lock:
            return [request for request in self.requests if request.role == role]

    def __enter__(self) -> ScriptedServer:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def next_reply(self, request: RecordedRequest) -> Reply | None:
        """Record a request and return its reply; None where embeddings are to be computed."""
        role = request.role
        with self._lock:
            self.requests.append(request)
            refused = [name for name in self._refuses if request.body.get(name, False) is not False]
            if refused:
                return Reply(f"{refused[0]} is not supported by this server", status=400)
            script = self._scripts.get(role, self._script_for_all)
            if role == "embeddings" and role not in self._scripts:
                return None
            turn = self._turns.get(role, 0) if role in self._scripts else self._turns.get("", 0)
            self._turns[role if role in self._scripts else ""] = turn + 1
        if not script:
            return Reply(f"no reply is scripted for role {role!r}", status=400)
        reply = script(request.body) if callable(script) else script[min(turn, len(script) - 1)]
        return Reply(reply) if isinstance(reply, str) else reply


@contextmanager
def scripted(replies: Script | Mapping[str, Script], *, refuses: Collection[str] = ()) -> Iterator[ScriptedServer]:
    """Lend the process's one long-lived server with a new script; not for tests that run side by side.

    A client opens 60 ms sooner for an address it knows. The requests stay readable until the next loan.
    """
    server = _shared_server()
    server.script(replies, refuses)
    try:
        yield server
    finally:
        server.released.set()


@cache
def _shared_server() -> ScriptedServer:
    return ScriptedServer().__enter__()


class _HttpServer(ThreadingHTTPServer):
    # A connection beyond the queue is tried again by the kernel after a second.
    request_queue_size = 128

    def __init__(self, scripted: ScriptedServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.scripted = scripted
        self.to_reset: set[object] = set()

    def shutdown_request(self, request: Any) -> None:
        if request in self.to_reset:
            self.to_reset.discard(request)
            self.close_request(request)  # without the orderly end, so that the peer sees a reset
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _HttpServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        scripted = self.server.scripted
        scripted.looked_up.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        told = scripted.tells.get(self.path, Reply(f"no such path: {self.path}", status=404))
        reply = Reply(body=told) if isinstance(told, str) else told
        if reply.fault is Fault.HANG:
            scripted.released.wait()
        else:
            self._send(reply)

    def do_POST(self) -> None:
        self.close_connection = True
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = RecordedRequest(self.path, headers, body)
        if self.path not in ("/v1/chat/completions", "/v1/embeddings"):
            self._send(Reply(f"no such path: {self.path}", status=404))
            return
        reply = self.server.scripted.next_reply(request)
        if reply is None:
            self._send(Reply(body=json.dumps(_embeddings(body, self.server.scripted.dimension))))
        elif reply.fault is Fault.HANG:
            self.server.scripted.released.wait()
        elif reply.fault is Fault.RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.server.to_reset.add(self.connection)
        elif reply.fault is Fault.GARBAGE:
            self.wfile.write(b"these bytes are not HTTP\r\n\r\n")
        elif body.get("stream") and reply.status == 200 and reply.body is None:
            self._stream(reply, body)
        else:
            self._send(reply, body)

    def _send(self, reply: Reply, body: Mapping[str, Any] | None = None) -> None:
        """Answer at once; a truncated reply promises more bytes than it sends."""
        whole = reply.body if reply.body is not None else _whole_body(reply, body or {})
        data = whole.encode() if isinstance(whole, str) else whole
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(data)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if reply.fault is Fault.TRUNCATED:
            data = data[: len(data) // 2]
        self.wfile.write(data)

    def _stream(self, reply: Reply, body: Mapping[str, Any]) -> None:
        """Answer piece by piece, as server-sent events; a truncated reply stops half-way."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        wellformed = (f"data: {event}\n\n".encode() for event in _stream_events(reply, body))
        events: Iterable[bytes] = wellformed if reply.events is None else filter(None, reply.events)
        if reply.fault is Fault.TRUNCATED:
            whole = list(events)
            events = whole[: len(whole) // 2]
        for data in events:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        if reply.fault is not Fault.TRUNCATED:
            self.wfile.write(b"0\r\n\r\n")


def _message_text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def _whole_body(reply: Reply, body: Mapping[str, Any]) -> str:
    if reply.status >= 400:
        return json.dumps({"error": {"message": reply.text, "type": "scripted", "code": None, "param": None}})
    message = {"role": "assistant", "content": reply.text}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    choice["logprobs"] = _logprobs(reply.tokens, int(body.get("top_logprobs") or 0)) if body.get("logprobs") else None
    envelope = _envelope("chat.completion", str(body.get("model")))
    return json.dumps(envelope | {"choices": [choice], "usage": _usage(reply)})


def _logprobs(tokens: Sequence[Token] | None, n_top: int) -> dict[str, Any] | None:
    if tokens is None:
        return None

    def told(text: str, logprob: float) -> dict[str, Any]:
        return {"token": text, "bytes": list(text.encode()), "logprob": logprob}

    content = []
    for text, top in tokens:
        likeliest = sorted(top.items(), key=lambda entry: -entry[1])[:n_top]
        content.append(told(text, top.get(text, 0.0)) | {"top_logprobs": [told(*entry) for entry in likeliest]})
    return {"content": content, "refusal": None}


def _stream_events(reply: Reply, body: Mapping[str, Any]) -> Iterator[str]:
    envelope = _envelope("chat.completion.chunk", str(body.get("model")))

    def choice(delta: Mapping[str, str], finish_reason: str | None = None, logprobs: object = None) -> str:
        told = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": logprobs}
        return json.dumps(envelope | {"choices": [told]})

    yield choice({"role": "assistant", "content": ""})
    if reply.tokens is not None and body.get("logprobs"):
        spelt = "".join(text for text, _ in reply.tokens) == reply.text
        for text, tokens in [(token[0], [token]) for token in reply.tokens] if spelt else [(reply.text, reply.tokens)]:
            yield choice({"content": text}, logprobs=_logprobs(tokens, int(body.get("top_logprobs") or 0)))
    else:
        for piece in _PIECE.findall(reply.text) if reply.pieces is None else reply.pieces:
            yield choice({"content": piece})
    yield choice({}, reply.finish_reason)
    if (body.get("stream_options") or {}).get("include_usage"):
        yield json.dumps(envelope | {"choices": [], "usage": _usage(reply)})
    yield "[DONE]"


def _envelope(kind: str, model: str) -> dict[str, Any]:
    return {"id": "chatcmpl-scripted", "object": kind, "created": 0, "model": model}


def _usage(reply: Reply) -> Mapping[str, int]:
    if reply.usage is not None:
        return reply.usage
    words = len(_WORD.findall(reply.text))
    return {"prompt_tokens": 1, "completion_tokens": words, "total_tokens": words + 1}


def _embeddings(body: Mapping[str, Any], dimension: int) -> dict[str, Any]:
    """One vector a text (or list of token ids), as floats or, as openai's client asks, base64 of 32-bit floats."""
    given = body["input"]
    single = isinstance(given, str) or (bool(given) and isinstance(given[0], int))
    data = []
    for index, item in enumerate([given] if single else given):
        vector = hashed_vector(item if isinstance(item, str) else " ".join(map(str, item)), dimension)
        packed = struct.pack(f"<{dimension}f", *vector)
        encoded = base64.b64encode(packed).decode() if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": encoded})
    usage = {"prompt_tokens": len(data), "total_tokens": len(data)}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}
