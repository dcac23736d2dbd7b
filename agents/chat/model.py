"""Asking a chat model over the OpenAI protocol: requests, and replies as they came."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, SecretStr

from agents.chat.context_window import configured_context_tokens, told_context_tokens
from agents.chat.logprobs import TokenLogprobs, read_logprobs
from agents.chat.usage import Usage, count_call
from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import as_mara_error, endpoint_address
from graph.errors import MalformedReply, ModelUnavailable

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.outputs import ChatGenerationChunk, ChatResult
    from langchain_openai import ChatOpenAI

T = TypeVar("T", bound=BaseModel)

_PLACEHOLDER_KEY = "no-key"
_MAX_DETAIL = 300
_MOST_TOKENS = 10**9
_LEAST_PIECE = 4
_ASK_AGAIN_S = 30.0

MAX_REPLY_CHARACTERS = 500_000
"""A longer reply is refused unread, its thinking included; one that is streamed is cut off there."""


_FORMAT_WORDS = re.compile(r"response[_ ]format|json_schema", re.IGNORECASE)
_LOGPROBS_WORD = re.compile(r"logprobs|log[ -]prob", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_KEYS = re.compile(r"[^!-~]")


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply as it came, before anything is said about its worth.

    Attributes:
        raw: what the model wrote.
        cut: whether it ran into the token limit.
        usage: the tokens it took; paid for even where the reply is of no use.
        tokens: the reply token by token, where log-probabilities were asked for and the server tells them.
    """

    raw: str
    cut: bool
    usage: Usage
    tokens: tuple[TokenLogprobs, ...] = ()

    def text(self) -> str:
        """Return what the model wrote. Raises MalformedReply where it is empty, cut, too long or broken Unicode."""
        if self.cut:
            raise MalformedReply("The reply was cut at the token limit", self.raw)
        if not self.raw.strip():
            raise MalformedReply("The reply is empty", self.raw)
        if len(self.raw) > MAX_REPLY_CHARACTERS:
            raise _too_long(self.raw)
        if _SURROGATE.search(self.raw):
            raise MalformedReply("The reply holds broken Unicode", self.raw.encode("utf-8", "replace").decode())
        return self.raw


class ChatModel:
    """A chat model behind an OpenAI-compatible endpoint; its client is built at the first request.

    Safe to use from several threads. Remembers when the server turns out not to take ``response_format``
    or ``logprobs``.

    Attributes:
        name: the model's name, as the server knows it.
        temperature: from 0 to 2.
    """

    def __init__(
        self, name: str, temperature: float, *, address: Address | None, api_key: SecretStr, timeout_s: float
    ) -> None:
        self.name = name
        self.temperature = temperature
        self._address = address
        self._api_key = api_key
        self._timeout_s = timeout_s
        self._client: ChatOpenAI | None = None
        self._lock = threading.Lock()
        self._takes_response_format = True
        self._tells_logprobs = True
        self._told_context_tokens: int | None = None
        self._asks_window_from = 0.0

    @property
    def context_tokens(self) -> int | None:
        """The context window: ``MARA_CONTEXT_TOKENS``, else what the server tells, once asked; None where unknown.

        Raises BadInput.
        """
        configured = configured_context_tokens()
        if configured is not None:
            return configured
        with self._lock:
            if time.monotonic() >= self._asks_window_from:
                self._asks_window_from = time.monotonic() + _ASK_AGAIN_S
                with suppress(ConnectionError):
                    self._told_context_tokens = told_context_tokens(self._address, self._api_key, self.name)
                    self._asks_window_from = float("inf")
            return self._told_context_tokens

    def complete(self, messages: Sequence[BaseMessage], response_format: dict[str, Any] | None = None) -> str:
        """Return the text of the reply, streamed within a graph that streams; otherwise as `ask` does.

        Raises:
            MalformedReply: the reply is empty, or was cut at the token limit.
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        return self._reply(messages, response_format, {}).text()

    def ask(
        self, messages: Sequence[BaseMessage], response_format: dict[str, Any] | None = None, *, top_logprobs: int = 0
    ) -> ChatReply:
        """Return the reply with its tokens, in one piece: never streamed, not even within a graph that streams.

        ``response_format`` and the log-probabilities are left out for servers that refuse them.

        Args:
            messages: the prompt.
            response_format: what the reply has to be; None for text.
            top_logprobs: how many likely tokens to tell of at each place, from 1 to 20; 0 asks for none.

        Raises:
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        how = {"stream": False, "config": {"tags": ["nostream"]}}
        return self._reply(messages, response_format, how, top_logprobs)

    def _reply(
        self,
        messages: Sequence[BaseMessage],
        response_format: dict[str, Any] | None,
        how: dict[str, Any],
        top_logprobs: int = 0,
    ) -> ChatReply:
        response_format = response_format if self._takes_response_format else None
        top_logprobs = top_logprobs if self._tells_logprobs else 0
        # Not the `response_format` parameter: with it, langchain and openai parse replies by rules of their own.
        extra: dict[str, Any] = {"extra_body": {"response_format": response_format}} if response_format else {}
        if top_logprobs:
            extra |= {"logprobs": True, "top_logprobs": top_logprobs}
        client = self._open()
        try:
            message = client.invoke(list(messages), **extra, **how)
            reply = _read_message(message, with_logprobs=bool(top_logprobs))
        # Whatever a server sends, the client may raise anything over it.
        except Exception as caught:
            fault = caught.fault if isinstance(caught, _TraceableFault) else caught
            if not self._gives_up(fault, bool(response_format), bool(top_logprobs)):
                raise as_mara_error(fault, "chat", self._detail(fault)) from None
            reply = self._reply(messages, response_format, how, top_logprobs)
            return replace(reply, usage=Usage(requests=1) + reply.usage)
        count_call()
        return reply

    def _gives_up(self, fault: Exception, with_format: bool, with_logprobs: bool) -> bool:
        """Whether the server refused an extra of the request, which it is not asked for from now on."""
        if with_format and _refuses(fault, (400, 422), _FORMAT_WORDS):
            self._takes_response_format = False
            return True
        # OpenAI forbids (403) them for its models that think.
        if with_logprobs and _refuses(fault, (400, 403, 422), _LOGPROBS_WORD):
            self._tells_logprobs = False
            return True
        return False

    def _open(self) -> ChatOpenAI:
        from graph.endpoints.http_client import http_client, making_client

        with self._lock, making_client():
            if self._client is None:
                self._client = _client_class()(
                    model=self.name,
                    temperature=self.temperature,
                    base_url=self._address.url if self._address else None,
                    openai_proxy=None,
                    http_client=http_client(self._address),
                    api_key=self._api_key,
                    timeout=self._timeout_s,
                    max_retries=0,
                    use_responses_api=False,
                )
            return self._client

    def _detail(self, fault: Exception) -> str:
        """The server's own words where it answered with a status, without the key; none where the key is refused."""
        if getattr(fault, "status_code", 0) in (401, 403) or not hasattr(fault, "status_code"):
            return ""
        body = getattr(fault, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        told = said if isinstance(said, str) and said else getattr(fault, "message", "")
        detail = " ".join(str(told).split())
        return censored(detail.replace(self._api_key.get_secret_value(), "***"))[:_MAX_DETAIL]


class _TraceableFault(Exception):
    """A fault of the endpoint as a trace may show it: the fault itself has the reply, which may repeat the key."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(f"{type(fault).__name__}: {censored(str(fault))}")
        self.fault = fault


@cache
def _client_class() -> type[ChatOpenAI]:
    """Return LangChain's client, made safe.

    Its faults may be traced, it takes no half of a reply for all of it, and it breaks off one that is too long.
    """
    import langchain_openai

    class ChatOpenAI(langchain_openai.ChatOpenAI):
        def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
            with _traceable_faults():
                return super()._generate(*args, **kwargs)

        def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            ended = False
            pieces: list[str] = []
            length = 0
            with _traceable_faults():
                for chunk in super()._stream(*args, **kwargs):
                    ended = ended or bool((chunk.generation_info or {}).get("finish_reason"))
                    pieces.append(chunk.text)
                    # Pieces that say nothing come without end, too.
                    length += max(len(chunk.text), _LEAST_PIECE)
                    if length > MAX_REPLY_CHARACTERS:
                        raise _too_long("".join(pieces))
                    yield chunk
                if not ended:
                    raise ValueError("the stream ends without saying that the reply does")

        def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any) -> ChatGenerationChunk | None:
            # Nobody offers tools, and LangChain's time over an unreadable call grows with the square of its length.
            for choice in chunk.get("choices") or ():
                if choice["delta"]:
                    choice["delta"].pop("tool_calls", None)
            return super()._convert_chunk_to_generation_chunk(chunk, *args)

    return ChatOpenAI


@contextmanager
def _traceable_faults() -> Iterator[None]:
    try:
        yield
    except Exception as fault:
        raise _TraceableFault(fault) from None


def open_chat_model(
    model: str, temperature: float, *, base_url: str | None, api_key: str | None, timeout_s: float
) -> ChatModel:
    """Return a chat model; no request is made and nothing heavy is imported before the first question.

    Args:
        model: its name, as the server knows it.
        temperature: from 0 (always the likeliest words) to 2.
        base_url: the server, usually ending in ``/v1``; None is OpenAI.
        api_key: may be missing where ``base_url`` is given (vLLM and Ollama ask for none).
        timeout_s: seconds without a sign of life after which a request is given up.

    Raises:
        BadInput: the server's address is none.
        ModelUnavailable: there is neither a key nor a server, or the key cannot be one.
    """
    key = (api_key or "").strip()
    if not key and not base_url:
        raise ModelUnavailable(
            "No chat model is configured", "Set OPENAI_API_KEY, or OPENAI_BASE_URL for another server"
        )
    if _NOT_IN_KEYS.search(key):
        raise ModelUnavailable("OPENAI_API_KEY holds characters that no key has", "Set OPENAI_API_KEY again")
    return ChatModel(
        model,
        temperature,
        address=endpoint_address(base_url),
        api_key=SecretStr(key or _PLACEHOLDER_KEY),
        timeout_s=timeout_s,
    )


def _too_long(raw: str) -> MalformedReply:
    return MalformedReply(f"The reply is longer than {MAX_REPLY_CHARACTERS:,} characters", raw)


def _read_message(message: BaseMessage, *, with_logprobs: bool) -> ChatReply:
    """What the client made of a reply's envelope. Raises ValueError for a message that no assistant wrote."""
    from langchain_core.messages import AIMessage

    if not isinstance(message, AIMessage):
        raise ValueError(f"the reply's role is {message.type!r}")
    metadata = message.response_metadata
    cut = str(metadata.get("finish_reason")).startswith("length")
    return ChatReply(str(message.text), cut, _usage_of(message), read_logprobs(metadata) if with_logprobs else ())


def _usage_of(message: AIMessage) -> Usage:
    """The tokens that the server says it took; a server that says nothing, or 0, counts as unknown."""
    told = message.usage_metadata
    prompt, completion = (_tokens(told[key]) for key in ("input_tokens", "output_tokens")) if told else (0, 0)
    return Usage(1, prompt, completion, unknown=0 if prompt > 0 else 1)


def _tokens(told: object) -> int:
    """A number of tokens within what one reply can take, so that sums of them can be stored; 0 for no number."""
    return min(max(0, told), _MOST_TOKENS) if isinstance(told, int) else 0


def _refuses(fault: Exception, statuses: tuple[int, ...], words: re.Pattern[str]) -> bool:
    return getattr(fault, "status_code", 0) in statuses and words.search(str(fault)) is not None
