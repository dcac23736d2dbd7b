"""LangChain's client of a chat model, made safe: it follows requests on their way, and takes no half reply for all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from agents.answers.unlinked import Unlinking
from agents.chat.usage import Usage
from graph.endpoints.address import censored
from graph.endpoints.patience import Patience, waiting
from graph.errors import MalformedReply

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessage
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.outputs import ChatGenerationChunk, ChatResult
    from langchain_openai import ChatOpenAI

MAX_REPLY_CHARACTERS = 500_000
"""A longer reply is refused unread, its thinking included; one that is streamed is cut off there."""

_LEAST_PIECE = 4
_MOST_TOKENS = 10**9


@dataclass(slots=True)
class UnderWay:
    """A request on its way, as its client follows it.

    Attributes:
        unlinking: takes images and links from its reply, before anybody hears of them; None leaves them.
    """

    streams: bool
    patience: Patience
    most_characters: int
    characters: int = 0
    thought: bool = False
    body: bytes = b""
    came_whole: bool = False
    unlinking: Unlinking | None = None

    def hear(self, delta: object) -> None:
        """Take note of what a piece of a streamed reply says; one that says nothing is no sign of life."""
        if not isinstance(delta, dict):
            return
        thinking = str(delta.get("reasoning_content") or delta.get("reasoning") or "")
        self.thought = self.thought or bool(thinking)
        self.characters += len(thinking) + len(str(delta.get("content") or ""))
        if any(said for name, said in delta.items() if name != "role"):
            self.patience.renew()

    def unlink(self, choice: dict[str, Any]) -> None:
        """Take images and links from a piece of a reply; what may become one waits for the next piece."""
        delta, is_last = choice["delta"], bool(choice.get("finish_reason"))
        if self.unlinking is None or not isinstance(delta, dict):
            return
        said = delta.get("content")
        if isinstance(said, str) or is_last:
            settled = self.unlinking.feed(said) if isinstance(said, str) else ""
            delta["content"] = settled + (self.unlinking.end() if is_last else "")

    def unlinked(self, text: str) -> str:
        """Return a reply that came whole without its images and links."""
        return text if self.unlinking is None else self.unlinking.feed(text) + self.unlinking.end()


_UNDER_WAY: ContextVar[UnderWay] = ContextVar("under way")


@contextmanager
def on_its_way(request: UnderWay) -> Iterator[None]:
    """Let clients follow a request within the block, in this context; none of its reads outlasts its patience."""
    token = _UNDER_WAY.set(request)
    try:
        with waiting(request.patience):
            yield
    finally:
        _UNDER_WAY.reset(token)


class _TraceableFault(Exception):
    """A fault of the endpoint as a trace may show it: the fault itself has the reply, which may repeat the key."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(f"{type(fault).__name__}: {censored(str(fault))}")
        self.fault = fault


@cache
def client_class() -> type[ChatOpenAI]:
    """Return LangChain's client, made safe.

    It streams inside whatever the caller sees. Its faults may be traced, it takes no half of a reply for all of it, and
    it breaks off one that is too long.
    """
    import langchain_openai
    from langchain_core.language_models.chat_models import generate_from_stream
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGenerationChunk

    class ChatOpenAI(langchain_openai.ChatOpenAI):
        def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
            if _UNDER_WAY.get().streams:
                return generate_from_stream(self._stream(messages, stop, **kwargs))  # which tells no listener
            with _traceable_faults():
                return super()._generate(messages, stop, run_manager, **kwargs)

        def _create_chat_result(self, *args: Any, **kwargs: Any) -> ChatResult:
            result = super()._create_chat_result(*args, **kwargs)
            for generation in result.generations:
                message = generation.message
                if isinstance(message.content, str):
                    message.content = _UNDER_WAY.get().unlinked(message.content)
                    generation.text = message.content
            return result

        def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            under_way = _UNDER_WAY.get()
            ended = False
            pieces: list[str] = []
            length = 0
            whole: Any = super()._stream(*args, **kwargs)
            with _traceable_faults(), closing(whole) as chunks:
                for chunk in chunks:
                    ended = ended or bool((chunk.generation_info or {}).get("finish_reason"))
                    pieces.append(chunk.text)
                    # Pieces that say nothing come without end, too.
                    length += max(len(chunk.text), _LEAST_PIECE)
                    if length > MAX_REPLY_CHARACTERS:
                        raise too_long("".join(pieces))
                    yield chunk
                    if under_way.characters > under_way.most_characters and not ended:
                        cut = {"finish_reason": "length"}
                        yield ChatGenerationChunk(message=AIMessageChunk(content=""), generation_info=cut)
                        return
                if not ended:
                    yield self._whole_reply(under_way)

        def _whole_reply(self, under_way: UnderWay) -> ChatGenerationChunk:
            """The reply of a server that does not stream. Raises ValueError where it is none."""
            if not under_way.body:
                raise ValueError("the stream ends without saying that the reply does")
            (generation,) = self._create_chat_result(json.loads(under_way.body)).generations
            message = generation.message
            if not isinstance(message, AIMessage):
                raise ValueError(f"the reply's role is {message.type!r}")
            under_way.came_whole = True
            chunk = AIMessageChunk(content=message.content, usage_metadata=_told_usage(message))
            return ChatGenerationChunk(message=chunk, generation_info=generation.generation_info)

        def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any) -> ChatGenerationChunk | None:
            # Nobody offers tools, and LangChain's time over an unreadable call grows with the square of its length.
            for choice in chunk.get("choices") or ():
                _UNDER_WAY.get().hear(choice["delta"])
                if choice["delta"]:
                    choice["delta"].pop("tool_calls", None)
                _UNDER_WAY.get().unlink(choice)
            return super()._convert_chunk_to_generation_chunk(chunk, *args)

    return ChatOpenAI


@contextmanager
def _traceable_faults() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        raise _TraceableFault(fault) from None


def fault_of(caught: Exception) -> Exception:
    """Return the fault of the endpoint behind what a client raised."""
    return caught.fault if isinstance(caught, _TraceableFault) else caught


def keep_whole_reply(response: httpx.Response) -> None:
    """Keep what a server that does not stream answers to a request for a stream."""
    kind = response.headers.get("Content-Type", "")
    if _UNDER_WAY.get().streams and response.status_code == 200 and kind.startswith("application/json"):
        _UNDER_WAY.get().body = response.read()


def too_long(raw: str) -> MalformedReply:
    """Return the error of a reply of more than `MAX_REPLY_CHARACTERS`."""
    return MalformedReply(f"The reply is longer than {MAX_REPLY_CHARACTERS:,} characters", raw)


def usage_of(message: AIMessage) -> Usage:
    """Return the tokens that the server says it took; a server that says nothing, or 0, counts as unknown."""
    told = message.usage_metadata
    prompt, completion = (_tokens(told[key]) for key in ("input_tokens", "output_tokens")) if told else (0, 0)
    return Usage(1, prompt, completion, unknown=0 if prompt > 0 else 1)


def _told_usage(message: AIMessage) -> UsageMetadata:
    """What a server tells of usage, in the form that pieces of a reply take."""
    from langchain_core.messages.ai import UsageMetadata

    usage = usage_of(message)
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)


def _tokens(told: object) -> int:
    """A number of tokens within what one reply can take, so that sums of them can be stored; 0 for no number."""
    return min(max(0, told), _MOST_TOKENS) if isinstance(told, int) else 0
