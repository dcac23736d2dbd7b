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
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

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
        reply = _parsed(body)
        if not reply["choices"]:
            raise ValueError("the reply holds no choice")
        for choice in reply["choices"]:
            self._hear(choice["message"], is_last=True)
            if self.streams:
                choice["delta"] = choice.pop("message")
        if isinstance(usage := reply.get("usage"), dict):
            reply["usage"] = usage | {name: counted_tokens(usage.get(name)) for name in _COUNTS}
        self.came_whole = True
        return _event(reply) if self.streams else json.dumps(reply).encode()

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
        event = _parsed(value)
        self.length += _LEAST_PIECE
        for choice in event.get("choices") or ():
            is_last = bool(choice.get("finish_reason"))
            self._hear(choice["delta"], is_last)
            self.ended = self.ended or is_last
        return _event(event)

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


def _parsed(text: bytes) -> Any:
    """Parse a reply or an event of a stream. An error raises without its words, which may repeat the key."""
    value = json.loads(text)
    if value.get("error"):
        raise ValueError("the reply is an error")
    return value


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
_FENCE = re.compile(r"^```([\w-]*)[ \t]*$", re.MULTILINE)
_OPENS, _CLOSES = "<think>", "</think>"


def parse_object(text: str, schema: type[T]) -> T:
    """Return the one JSON object of a reply, validated strictly against a schema.

    The object may stand alone, in the reply's one code fence, or in prose without any other brace.

    Raises:
        MalformedReply: there is no object or more than one, it is cut or not JSON (repeated keys, NaN and Infinity
            included), or not valid against the schema.
    """
    body = without_thinking(text)
    fenced = _fenced(body)
    try:
        value = _only_object(fenced[0].strip() if len(fenced) == 1 else body)
        return schema.model_validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise MalformedReply(_reasons(error), text) from None
    except json.JSONDecodeError as error:
        raise MalformedReply(f"The reply is not valid JSON, or is cut: {error.msg}", text) from None
    except RecursionError:
        raise MalformedReply("The reply is nested too deeply", text) from None
    except ValueError as error:
        raise MalformedReply(str(error), text) from None


def _only_object(body: str) -> dict[str, Any]:
    """The one top-level JSON object of a text. Raises ValueError with the reason where there is not exactly one."""
    if not body:
        raise ValueError("The reply is empty")
    start = body.find("{")
    if start < 0:
        raise ValueError("The reply holds no JSON object")
    if body.startswith("[") or body[:start].rstrip().endswith("["):
        raise ValueError("The reply is a list, not one JSON object")
    decoder = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite)
    value, end = decoder.raw_decode(body, start)
    if "}" in body[:start] or any(brace in body[end:] for brace in "{}"):
        raise ValueError("The reply holds more than one JSON object, or a stray brace")
    assert isinstance(value, dict)
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("The reply repeats a key within one object")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"The reply holds {name}, which is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("The reply holds a number that is out of range")
    return number


def _reasons(error: ValidationError) -> str:
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    reasons = [f"{'.'.join(map(str, item['loc'])) or 'reply'}: {item['msg']}" for item in errors[:_MAX_REASONS]]
    return "The reply does not fit the schema: " + "; ".join(reasons)


def _fenced(body: str) -> list[str]:
    """The contents of the code fences of a text: between a line that opens one and the next that closes it."""
    contents = []
    opened: int | None = None
    for line in _FENCE.finditer(body):
        if opened is None and line.end() < len(body):
            opened = line.end() + 1
        elif opened is not None and not line[1]:
            contents.append(body[opened : line.start()])
            opened = None
    return contents


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


def _logprob(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return math.nan
    return float(max(LEAST, min(0.0, value)))


class _Chosen(BaseModel):
    """A token as servers tell it."""

    model_config = ConfigDict(strict=True)

    token: str
    logprob: Annotated[float, BeforeValidator(_logprob)] = math.nan


class _Place(_Chosen):
    top_logprobs: Annotated[list[_Chosen], BeforeValidator(lambda value: value if isinstance(value, list) else [])] = []


class _Logprobs(BaseModel):
    content: list[_Place]


def read_logprobs(metadata: Mapping[str, Any]) -> tuple[TokenLogprobs, ...]:
    """Return the tokens of a reply in order, from its ``response_metadata``; none where the server tells none.

    Usage in another form than the protocol's counts as untold: the legacy form of completions, for one.
    """
    try:
        logprobs = _Logprobs.model_validate(metadata.get("logprobs"))
    except ValidationError:
        return ()
    return tuple(map(_token, logprobs.content))


def _token(place: _Place) -> TokenLogprobs:
    top = tuple((each.token, each.logprob) for each in place.top_logprobs)
    is_listed = any(text == place.token for text, _ in top)
    return TokenLogprobs(place.token, top if is_listed else (*top, (place.token, place.logprob)))
