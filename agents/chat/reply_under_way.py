"""Reading a reply on its way from a chat model's server to LangChain's client, bounded in time and size."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agents.answers.unlinked import Unlinking
from graph.endpoints.address import censored
from graph.errors import MalformedReply

if TYPE_CHECKING:
    import httpx

_ROLES = (None, "", "assistant")
_COUNTS = ("prompt_tokens", "completion_tokens", "total_tokens")
_SURROGATE = re.compile("[\ud800-\udfff]")

MAX_REPLY_CHARACTERS = 500_000
"""A longer reply is refused unread, its thinking included; one that is streamed is cut off there."""

_LEAST_PIECE = 4
_MOST_TOKENS = 10**9


@dataclass(slots=True)
class ReplyUnderWay:
    """A request on its way, whose reply is read here before its client reads it.

    LangChain's client keeps back what tells a slow model from a dead server: the thinking beside a reply, and what
    keeps a connection alive.

    Attributes:
        streams: whether it asks for a stream.
        silence_s: the longest time without a token, in seconds, the first one included.
        left_s: tells after how many seconds it is broken off whatever comes; infinity for never.
        most_characters: of its reply, which is cut there.
        unlinking: takes images and links from its reply, before any listener is told of them; None leaves them.
    """

    streams: bool
    silence_s: float
    left_s: Callable[[], float]
    most_characters: int
    unlinking: Unlinking | None
    silent_until: float = field(init=False)
    characters: int = field(default=0, init=False)
    thought: bool = field(default=False, init=False)
    ended: bool = field(default=False, init=False)
    came_whole: bool = field(default=False, init=False)
    fault: Exception | None = field(default=None, init=False)
    said: list[str] = field(default_factory=list, init=False)
    length: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self.silent_until = time.monotonic() + self.silence_s

    @property
    def wait_s(self) -> float:
        """The seconds that the next bytes are waited for."""
        return min(self.silent_until - time.monotonic(), self.left_s())

    def read(self, response: httpx.Response, data: Iterator[bytes]) -> Iterator[bytes]:
        """Yield what the client is told of a response: a stream of sound events that ends, or one sound reply."""
        came = self._in_time(data)
        try:
            if response.status_code != 200:
                yield censored(b"".join(came).decode("utf-8", "replace")).encode()
            elif response.headers.get("Content-Type", "").startswith("application/json"):
                yield self._whole(b"".join(came))
            else:
                yield from self._events(came)
        except Exception as fault:
            self.fault = fault
            raise

    def _in_time(self, data: Iterator[bytes]) -> Iterator[bytes]:
        """Break off what sends no token, however it keeps the connection alive."""
        import httpx

        for each in data:
            if self.wait_s <= 0:
                raise httpx.ReadTimeout("the time of the request is over")
            yield each

    def _whole(self, body: bytes) -> bytes:
        """A reply in one piece; the only event of a stream where one was asked for."""
        told = _told(body)
        if not told["choices"]:
            raise ValueError("the reply holds no choice")
        for choice in told["choices"]:
            self._hear(choice["message"], is_last=True)
            if self.streams:
                choice["delta"] = choice.pop("message")
        if isinstance(usage := told.get("usage"), dict):
            told["usage"] = usage | {name: counted_tokens(usage.get(name)) for name in _COUNTS}
        self.came_whole = True
        return _event(told) if self.streams else json.dumps(told).encode()

    def _events(self, came: Iterator[bytes]) -> Iterator[bytes]:
        held: list[bytes] = []
        for data in came:
            *ended, rest = data.split(b"\n")
            for part in ended:
                yield self._line(b"".join((*held, part)))
                held.clear()
                if self.characters > self.most_characters and not self.ended:
                    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
                    return
            held.append(rest)
        if not self.ended:
            raise ValueError("the stream ends without saying that the reply does")

    def _line(self, line: bytes) -> bytes:
        name, _, value = line.partition(b":")
        if name != b"data":
            return b"\n"
        if value.strip() == b"[DONE]":
            if not self.ended:
                raise ValueError("the stream ends without saying that the reply does")
            return line + b"\n\n"
        told = _told(value)
        self.length += _LEAST_PIECE
        for choice in told.get("choices") or ():
            is_last = bool(choice.get("finish_reason"))
            self._hear(choice["delta"], is_last)
            self.ended = self.ended or is_last
        return _event(told)

    def _hear(self, message: Any, is_last: bool) -> None:
        """Take note of what a reply, or a piece of one, says; one that says nothing is no sign of life."""
        if not isinstance(message, dict):
            return
        if message.get("role") not in _ROLES:
            raise ValueError("the reply's role is another one")
        # No agent offers tools, and LangChain's time over an unreadable call grows with the square of its length.
        message.pop("tool_calls", None)
        if any(value for name, value in message.items() if name != "role"):
            self._renew()
        thinking = str(message.get("reasoning_content") or message.get("reasoning") or "")
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        self.thought = self.thought or bool(thinking)
        self.characters += len(thinking) + len(text)
        self.said.append(text)
        self.length += max(0, len(text) - _LEAST_PIECE)
        if self.length > MAX_REPLY_CHARACTERS:
            raise MalformedReply(f"The reply is longer than {MAX_REPLY_CHARACTERS:,} characters", "".join(self.said))
        if _SURROGATE.search(text):
            raise MalformedReply("The reply holds broken Unicode", text.encode("utf-8", "replace").decode())
        if self.unlinking is not None and isinstance(content or "", str) and (text or is_last):
            message["content"] = self.unlinking.feed(text) + (self.unlinking.end() if is_last else "")


_UNDER_WAY: ContextVar[ReplyUnderWay] = ContextVar("under way")


@contextmanager
def reading(reply: ReplyUnderWay) -> Iterator[None]:
    """Read the reply to the request that the block makes."""
    token = _UNDER_WAY.set(reply)
    try:
        yield
    finally:
        _UNDER_WAY.reset(token)


def read_reply(response: httpx.Response, data: Iterator[bytes]) -> Iterator[bytes]:
    """Yield what the client is told of the reply to the request under way; see `reading`."""
    return _UNDER_WAY.get().read(response, data)


def _told(text: bytes) -> Any:
    """Parse a reply or an event of a stream. An error raises without its words, which may repeat the key."""
    told = json.loads(text)
    if told.get("error"):
        raise ValueError("the reply is an error")
    return told


def _event(told: object) -> bytes:
    return b"data: " + json.dumps(told).encode() + b"\n\n"


def counted_tokens(told: object) -> int:
    """Return a number of tokens within what one reply can take, so that sums of them can be stored; 0 for no number."""
    return min(max(0, told), _MOST_TOKENS) if isinstance(told, int) else 0
