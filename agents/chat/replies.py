"""Reading replies: on their way, bounded in time and size; and whole, as one valid object or none.

Replies are parsed strictly: what is not exactly one valid object is refused with a reason that can be fed back, and
never repaired. The model's thinking is no part of a reply.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from agents.answers.unlinked import Unlinking
from graph.endpoints.address import censored
from graph.errors import MalformedReply

if TYPE_CHECKING:
    import httpx


_SURROGATE = re.compile("[\ud800-\udfff]")

_MOST_TOKENS = 10**9


@dataclass(slots=True)
class ReplyUnderWay:
    """A request on its way, whose reply is read here before its client reads it.

    LangChain's client keeps back what tells a slow model from a dead server: the thinking beside a reply, and what
    keeps a connection alive.

    Attributes:
        silence_s: the longest time without a token, in seconds, the first one included.
        left_s: tells after how many seconds it is broken off whatever comes; infinity for never.
        most_characters: of its reply, which is cut there.
        unlinking: takes images and links from its reply, before any listener is told of them; None leaves them.
    """

    silence_s: float
    left_s: Callable[[], float]
    most_characters: int
    unlinking: Unlinking | None
    silent_until: float = field(init=False)
    characters: int = field(default=0, init=False)
    thought: bool = field(default=False, init=False)
    ended: bool = field(default=False, init=False)
    fault: Exception | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self.silent_until = time.monotonic() + self.silence_s

    @property
    def wait_s(self) -> float:
        """The seconds that the next bytes are waited for."""
        return min(self.silent_until - time.monotonic(), self.left_s())

    def read(self, response: httpx.Response, data: Iterator[bytes]) -> Iterator[bytes]:
        """Yield what the client is told of a response: a stream of sound events that ends."""
        came = self._in_time(data)
        try:
            if response.status_code != 200:
                yield censored(b"".join(came).decode("utf-8", "replace")).encode()
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

    def _events(self, came: Iterator[bytes]) -> Iterator[bytes]:
        parts: list[bytes] = []
        for data in came:
            *ended, rest = data.split(b"\n")
            for part in ended:
                yield self._line(b"".join((*parts, part)))
                parts.clear()
                if self.characters > self.most_characters and not self.ended:
                    yield _event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
                    return
            parts.append(rest)
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
        event = json.loads(value)
        if event.get("error"):
            raise ValueError("the reply is an error")  # without its words, which may repeat the key
        for choice in event.get("choices") or ():
            is_last = bool(choice.get("finish_reason"))
            self._hear(choice["delta"], is_last)
            self.ended = self.ended or is_last
        return _event(event)

    def _hear(self, message: Any, is_last: bool) -> None:
        """Take note of what a reply, or a piece of one, says; one that says nothing is no sign of life."""
        if not isinstance(message, dict):
            return
        # No agent offers tools, and LangChain's time over an unreadable call grows with the square of its length.
        for unasked in ("tool_calls", "role"):
            message.pop(unasked, None)
        if any(message.values()):
            self._renew()
        thinking = str(message.get("reasoning_content") or message.get("reasoning") or "")
        content = message.get("content")
        text = content if isinstance(content, str) else ""
        self.thought = self.thought or bool(thinking)
        self.characters += len(thinking) + len(text)
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


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def counted_tokens(value: object) -> int:
    """Return a number of tokens within what one reply can take, so that sums of them can be stored; 0 for no number."""
    return min(max(0, value), _MOST_TOKENS) if isinstance(value, int) else 0


T = TypeVar("T", bound=BaseModel)

MAX_SPOKEN_CHARACTERS = 100_000
"""A reply that says more beside its thinking is refused."""

LEAST = -9999.0
"""The value that the protocol gives in place of minus infinity; no log-probability is lower."""

_MAX_REASONS = 3
_OPENS, _CLOSES = "<think>", "</think>"


def parse_object(text: str, schema: type[T]) -> T:
    """Return the one JSON object of a reply, validated strictly against a schema.

    The object may stand alone, in a code fence, or in prose without any other brace.

    Raises:
        MalformedReply: there is no object or more than one, it is cut or not JSON, or not valid against the schema.
    """
    body = without_thinking(text)
    start, end = body.find("{"), body.rfind("}") + 1
    if not body:
        raise MalformedReply("The reply is empty", text)
    if start < 0:
        raise MalformedReply("The reply holds no JSON object", text)
    if body.startswith("[") or body[:start].rstrip().endswith("["):
        raise MalformedReply("The reply is a list, not one JSON object", text)
    try:
        return schema.model_validate_json(body[start : end or None], strict=True)
    except ValidationError as error:
        raise MalformedReply(_reasons(error), text) from None


def _reasons(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    if errors[0]["type"] == "json_invalid":
        return "The reply is not valid JSON, or is cut: write one object"
    reasons = [f"{'.'.join(map(str, item['loc'])) or 'reply'}: {item['msg']}" for item in errors[:_MAX_REASONS]]
    return "The reply does not fit the schema: " + "; ".join(reasons)


def without_thinking(text: str) -> str:
    """Return a reply without its ``<think>`` blocks; one whose opening tag the server swallowed counts too.

    Raises:
        MalformedReply: the reply starts to think and never ends, or says more than `MAX_SPOKEN_CHARACTERS`.
    """
    body = _without_blocks(text).strip()
    if body.startswith(_OPENS):
        raise MalformedReply("The reply never ends its <think> block", text)
    thought, closed, rest = body.partition(_CLOSES)
    spoken = rest.strip() if closed and _OPENS not in thought else body
    if len(spoken) > MAX_SPOKEN_CHARACTERS:
        raise MalformedReply(f"The reply says more than {MAX_SPOKEN_CHARACTERS:,} characters", text)
    return spoken


def _without_blocks(text: str) -> str:
    """A text without what stands between opening and closing tags; a block that never ends stays."""
    spoken = []
    done = 0
    while (start := text.find(_OPENS, done)) >= 0 and (end := text.find(_CLOSES, start)) >= 0:
        spoken.append(text[done:start])
        done = end + len(_CLOSES)
    return "".join(spoken) + text[done:]


class ThinkFilter:
    """The spoken part of a reply that comes in pieces: the twin of `without_thinking`.

    The part shown of a whole reply is what `without_thinking` returns of it, wherever the pieces are cut; a ``<think>``
    that never ends is not shown. Where the server swallowed the opening tag, thinking looks like speech until its
    closing tag comes.

    Attributes:
        swallowed: whether a closing tag came without its opening one: all that was shown before it was thinking.
    """

    def __init__(self, *, thinks_first: bool = False) -> None:
        """With ``thinks_first``, show nothing before a closing tag: for servers known to swallow the opening one."""
        self.swallowed = False
        self._hidden = thinks_first
        self._thinking = False
        self._held = ""
        self._space: list[str] = []
        self._shown = False

    def feed(self, piece: str) -> str:
        """Take the next piece; return what is known to be spoken by now and was not returned before."""
        text, self._held = self._held + piece, ""
        spoken: list[str] = []
        done = 0
        while done < len(text):
            tags = (_CLOSES,) if self._thinking else (_OPENS,) if self.swallowed else (_OPENS, _CLOSES)
            at, tag = min(((at, tag) for tag in tags if (at := text.find(tag, done)) >= 0), default=(-1, ""))
            if at < 0:
                settled = len(text) - _begun(text[done:], tags)
                spoken += () if self._thinking else (text[done:settled],)
                self._held = text[settled:]
                break
            if tag == _OPENS:
                spoken.append(text[done:at])
            elif not self._thinking:
                self.swallowed, self._hidden, self._shown = True, False, False
                self._space.clear()
                spoken.clear()
            self._thinking = tag == _OPENS
            done = at + len(tag)
        return "" if self._hidden else self._stripped("".join(spoken))

    def _stripped(self, spoken: str) -> str:
        """Leave out the first white space, and hold back what may be the last."""
        end = len(spoken.rstrip())
        if not end:
            self._space += (spoken,) if self._shown else ()
            return ""
        words = "".join((*self._space, spoken[:end])) if self._shown else spoken[:end].lstrip()
        self._space = [spoken[end:]]
        self._shown = True
        return words


def _begun(text: str, tags: tuple[str, ...]) -> int:
    """How many characters at the text's end may be the beginning of a tag."""
    return max(length for tag in tags for length in range(len(tag)) if text.endswith(tag[:length]))


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """One token of a reply, and what might have stood in its place.

    Attributes:
        text: the token as it came, with its spaces.
        top: (text, natural log-probability) of the likeliest tokens at this place, the chosen one included; from
            `LEAST` to 0, or NaN where the server told no number.
    """

    text: str
    top: tuple[tuple[str, float], ...]


def read_logprobs(metadata: Mapping[str, Any]) -> tuple[TokenLogprobs, ...]:
    """Return the tokens of a reply in order, from its ``response_metadata``; none where the server tells none.

    Usage in another form than the protocol's counts as untold: the legacy form of completions, for one.
    """
    try:
        return tuple(map(_token, metadata["logprobs"]["content"]))
    except (AttributeError, KeyError, TypeError):
        return ()


def _token(place: Mapping[str, Any]) -> TokenLogprobs:
    top = dict(map(_text_and_logprob, place.get("top_logprobs") or ()))
    text, logprob = _text_and_logprob(place)
    return TokenLogprobs(text, tuple({**top, text: top.get(text, logprob)}.items()))


def _text_and_logprob(token: Mapping[str, Any]) -> tuple[str, float]:
    text, value = token["token"], token.get("logprob")
    if not isinstance(text, str):
        raise TypeError("a token is a text")
    if not isinstance(value, int | float) or value != value:
        return text, math.nan
    return text, float(max(LEAST, min(0.0, value)))
