"""Asking a chat model over the OpenAI protocol: requests, and replies as they came.

LangChain's client is made safe: it follows requests on their way, and takes no half reply for all.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from agents.answers.unlinked import NO_ADDRESSES, Addresses, Unlinking
from agents.chat.context_window import configured_context_tokens, told_context_tokens
from agents.chat.replies import TokenLogprobs, read_logprobs
from agents.chat.usage import Usage, budget_of_question, count_usage
from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import as_mara_error, endpoint_address
from graph.endpoints.patience import Patience, waiting
from graph.errors import BudgetSpent, MalformedReply, MaraError, ModelUnavailable, SlowReply, TransportFault

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.messages.ai import UsageMetadata
    from langchain_core.outputs import ChatGenerationChunk, ChatResult
    from langchain_openai import ChatOpenAI

_PLACEHOLDER_KEY = "no-key"
_MAX_DETAIL = 300
_ASK_AGAIN_S = 30.0

CUT = "The reply was cut at the token limit: write less"
"""Why a reply is refused that ran into its limit."""

MAX_REPLY_TOKENS = 4_096
"""The tokens of a reply to a request that states no limit of its own."""

THINKING_TOKENS = 8_192
"""The tokens beside a reply's own that a model has once it was seen to think, unless MARA_THINKING_TOKENS is set."""

CHARACTERS_A_TOKEN = 8
"""A reply of more characters a token than this passed its limit, whatever its server makes of that: it is cut here."""

_BYTES_A_TOKEN = 4
_LIMIT_NAMES = ("max_tokens", "max_completion_tokens")
_FORMAT_WORDS = re.compile(r"response[_ ]format|json_schema", re.IGNORECASE)
_STREAM_WORDS = re.compile(r"\bstream(?:ing)?\b", re.IGNORECASE)
_USAGE_WORDS = re.compile(r"stream[_ ]options|include[_ ]usage", re.IGNORECASE)
_LIMIT_WORDS = re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)
_TOO_LARGE_WORDS = re.compile(r"too large|context length|supports at most", re.IGNORECASE)
_LOGPROBS_WORD = re.compile(r"logprobs|log[ -]prob", re.IGNORECASE)
_UNHEARD = ("nostream", "langsmith:nostream")
"""Tags of a request whose reply no stream tells as chat: LangGraph's own, and the one that chat interfaces know."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_KEYS = re.compile(r"[^!-~]")


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
            # No agent offers tools, and LangChain's time over an unreadable call grows with the square of its length.
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
    """The usage that a server tells, in the form that pieces of a reply take."""
    from langchain_core.messages.ai import UsageMetadata

    usage = usage_of(message)
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    return UsageMetadata(input_tokens=prompt, output_tokens=completion, total_tokens=prompt + completion)


def _tokens(told: object) -> int:
    """A number of tokens within what one reply can take, so that sums of them can be stored; 0 for no number."""
    return min(max(0, told), _MOST_TOKENS) if isinstance(told, int) else 0


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply as it came, before anything is said about its worth.

    Attributes:
        raw: what the model wrote.
        cut: whether it ran into the token limit.
        usage: the tokens it took; paid for even where the reply is of no use.
        tokens: the reply token by token, where log-probabilities were asked for and the server tells them.
        thought: whether the model thinks before it replies, as far as that can be seen.
    """

    raw: str
    cut: bool
    usage: Usage
    tokens: tuple[TokenLogprobs, ...] = ()
    thought: bool = False

    def text(self) -> str:
        """Return what the model wrote. Raises MalformedReply where it is empty, cut, too long or broken Unicode."""
        if self.cut:
            raise MalformedReply(CUT, self.raw)
        if not self.raw.strip():
            raise MalformedReply("The reply is empty", self.raw)
        if len(self.raw) > MAX_REPLY_CHARACTERS:
            raise too_long(self.raw)
        if _SURROGATE.search(self.raw):
            raise MalformedReply("The reply holds broken Unicode", self.raw.encode("utf-8", "replace").decode())
        return self.raw


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked of a model."""

    messages: Sequence[BaseMessage]
    response_format: dict[str, Any] | None
    max_tokens: int
    top_logprobs: int = 0
    in_pieces: bool = True
    aloud: bool = True
    addresses: Addresses = NO_ADDRESSES


@dataclass(frozen=True, slots=True)
class _Extras:
    """What a request has beside its messages, as far as its server takes it."""

    response_format: dict[str, Any] | None
    top_logprobs: int
    streams: bool
    counts_stream: bool
    limit_name: str | None
    max_tokens: int

    def parameters(self) -> dict[str, Any]:
        # Not the `response_format` parameter: with it, langchain and openai parse replies by rules of their own. Nor
        # `max_tokens`, which they rename.
        body: dict[str, Any] = {"response_format": self.response_format} if self.response_format else {}
        body |= {self.limit_name: self.max_tokens} if self.limit_name else {}
        found: dict[str, Any] = {"extra_body": body} if body else {}
        if self.top_logprobs:
            found |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        if self.streams and not self.counts_stream:
            found["stream_usage"] = False
        return found


class ChatModel:
    """A chat model behind an OpenAI-compatible endpoint; its client is built at the first request.

    Every reply is streamed inside, whatever the caller sees, so that a time-out counts the seconds without a token; of
    a server that does not stream, it counts the whole reply. Every request has a limit of tokens and is charged to the
    budget of its question. Safe to use from several threads. Remembers what the server turns out not to take:
    ``response_format``, ``logprobs``, ``stream``, ``stream_options``, and the name of the token limit; and whether the
    model thinks, which takes tokens of its own.

    Attributes:
        name: the model's name, as the server knows it.
        temperature: from 0 to 2.
    """

    def __init__(
        self,
        name: str,
        temperature: float,
        *,
        address: Address | None,
        api_key: SecretStr,
        timeout_s: float,
        thinking_tokens: int | None = None,
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
        self._streams = True
        self._counts_streams = True
        # Most servers ignore the name that they do not know; OpenAI refuses the older one for its models that think.
        self._limit_names: tuple[str, ...] = _LIMIT_NAMES if address else _LIMIT_NAMES[1:]
        self._thinking_tokens = thinking_tokens or 0
        self._once_it_thinks = THINKING_TOKENS if thinking_tokens is None else thinking_tokens
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
                    self._told_context_tokens = self._ask_window()
                    self._asks_window_from = float("inf")
            return self._told_context_tokens

    def _ask_window(self) -> int | None:
        """The window that the server tells; OpenAI's own tells none. Raises ConnectionError where nobody is there."""
        if self._address is None:
            return None
        with self._http_client() as client:
            return told_context_tokens(client, self._address, self._api_key, self.name)

    def complete(
        self,
        messages: Sequence[BaseMessage],
        response_format: dict[str, Any] | None = None,
        *,
        max_tokens: int = MAX_REPLY_TOKENS,
        aloud: bool = True,
        addresses: Addresses = NO_ADDRESSES,
    ) -> str:
        """Return the text of the reply.

        Args:
            messages: the prompt.
            response_format: what the reply has to be; None for text.
            max_tokens: what the reply itself may take; a model that thinks is given more.
            aloud: whether a graph that streams messages tells it word by word, as chat, then `unlinked`; `ask` never
                does.
            addresses: those that a reply which is told aloud may name.

        Raises:
            MalformedReply: the reply is empty, or was cut at the token limit.
            SlowReply: no token came for too long.
            BudgetSpent: nothing is left of what the question may take.
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        return self._reply(_Wanted(messages, response_format, max_tokens, aloud=aloud, addresses=addresses)).text()

    def ask(
        self,
        messages: Sequence[BaseMessage],
        response_format: dict[str, Any] | None = None,
        *,
        top_logprobs: int = 0,
        max_tokens: int = MAX_REPLY_TOKENS,
    ) -> ChatReply:
        """Return the reply with its tokens, in one piece: no caller sees it come, not even a graph that streams.

        What a server refuses is left out: ``response_format``, the log-probabilities, the limit, the stream.

        Args:
            messages: the prompt.
            response_format: what the reply has to be; None for text.
            top_logprobs: how many likely tokens to tell of at each place, from 1 to 20; 0 asks for none.
            max_tokens: what the reply itself may take; a model that thinks is given more.

        Raises:
            SlowReply: no token came for too long.
            BudgetSpent: nothing is left of what the question may take.
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        return self._reply(_Wanted(messages, response_format, max_tokens, top_logprobs, in_pieces=False, aloud=False))

    def _reply(self, wanted: _Wanted) -> ChatReply:
        """A reply; one that was cut while the model thought is asked for again, with tokens to think."""
        could_think = self._thinking_tokens
        reply = self._accepted(wanted)
        if not reply.thought or could_think or not self._once_it_thinks:
            return reply
        self._thinking_tokens = self._once_it_thinks
        if not reply.cut:
            return reply
        again = self._accepted(wanted)
        return replace(again, usage=reply.usage + again.usage)

    def _accepted(self, wanted: _Wanted) -> ChatReply:
        """The reply to a request that the server does not refuse."""
        refused = 0
        limits = True
        while True:
            extras = self._extras(wanted, limits=limits)
            try:
                with self._turn():
                    reply = self._charged(wanted, extras)
            except MaraError:
                raise
            # Whatever a server sends, the client may raise anything over it.
            except Exception as caught:
                fault = fault_of(caught)
                if extras.limit_name and _refuses(fault, (400, 422), _TOO_LARGE_WORDS):
                    limits = False
                elif not self._gives_up(fault, extras):
                    raise as_mara_error(fault, "chat", self._detail(fault)) from None
                refused += 1
            else:
                return replace(reply, usage=Usage(requests=refused) + reply.usage)

    def _extras(self, wanted: _Wanted, *, limits: bool) -> _Extras:
        return _Extras(
            wanted.response_format if self._takes_response_format else None,
            wanted.top_logprobs if self._tells_logprobs else 0,
            self._streams,
            self._counts_streams,
            next(iter(self._limit_names), None) if limits else None,
            wanted.max_tokens + self._thinking_tokens,
        )

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait, before the time of a request runs, until its server takes it; most have queues of their own."""
        yield

    def _charged(self, wanted: _Wanted, extras: _Extras) -> ChatReply:
        """Ask once, charged to the question's budget. Raises SlowReply, BudgetSpent, and faults of the client."""
        self._open()  # which may take seconds of its own, the first time
        budget = budget_of_question()
        budget.take_call()
        patience = Patience(self._timeout_s, budget.left_s)
        try:
            reply = self._asked(wanted, extras, patience)
        except Exception as caught:
            fault = fault_of(caught)
            late = self._too_late(fault, extras, patience)
            if late is None and not isinstance(fault, MalformedReply):
                budget.give_back_call()
                raise
            count_usage(Usage(requests=1, unknown=1))
            budget.charge(_estimated_tokens(wanted.messages))
            raise (late or fault) from None
        usage = reply.usage
        count_usage(usage)
        unknown = _estimated_tokens(wanted.messages, reply.raw) if usage.unknown else 0
        budget.charge(unknown or usage.prompt_tokens + usage.completion_tokens)
        return reply

    def _asked(self, wanted: _Wanted, extras: _Extras, patience: Patience) -> ChatReply:
        how: dict[str, Any] = {} if wanted.aloud else {"config": {"tags": list(_UNHEARD)}}
        if not (wanted.in_pieces and extras.streams):
            how["stream"] = False
        client = self._open()
        most_characters = CHARACTERS_A_TOKEN * extras.max_tokens
        unlinking = Unlinking(wanted.addresses) if wanted.aloud else None
        under_way = UnderWay(extras.streams, patience, most_characters, unlinking=unlinking)
        with on_its_way(under_way):
            message = client.invoke(list(wanted.messages), **extras.parameters(), **how)
        reply = _read_message(message, with_logprobs=bool(extras.top_logprobs))
        self._streams = self._streams and not under_way.came_whole
        passed = len(reply.raw) > under_way.most_characters
        return replace(reply, cut=reply.cut or passed, thought=reply.thought or under_way.thought)

    def _too_late(self, fault: Exception, extras: _Extras, patience: Patience) -> MaraError | None:
        """What a request that took too long comes to; None for any other fault."""
        if isinstance(fault, MaraError):
            return None
        found = as_mara_error(fault, "chat")
        if not isinstance(found, TransportFault) or found.status:
            return None
        if patience.is_late:
            return budget_of_question().fault() or BudgetSpent("The question's time is over")
        if found.cause != "timeout":
            return None
        what = "sent no token for" if extras.streams else "did not answer within"
        return SlowReply(
            f"The chat endpoint {what} {self._timeout_s:g} s", "Raise MARA_TIMEOUT_S, or take a faster model or server"
        )

    def _gives_up(self, fault: Exception, extras: _Extras) -> bool:
        """Whether the server refused an extra of the request, which it is not asked for from now on."""
        if extras.response_format and _refuses(fault, (400, 422), _FORMAT_WORDS):
            self._takes_response_format = False
            return True
        # OpenAI forbids (403) them for its models that think.
        if extras.top_logprobs and _refuses(fault, (400, 403, 422), _LOGPROBS_WORD):
            self._tells_logprobs = False
            return True
        if extras.limit_name and _refuses(fault, (400, 422), _LIMIT_WORDS):
            self._limit_names = tuple(name for name in self._limit_names if name != extras.limit_name)
            return True
        if extras.streams and extras.counts_stream and _refuses(fault, (400, 422), _USAGE_WORDS):
            self._counts_streams = False
            return True
        if extras.streams and _refuses(fault, (400, 422), _STREAM_WORDS):
            self._streams = False
            return True
        return False

    def _open(self) -> ChatOpenAI:
        from graph.endpoints.http_client import making_client

        with self._lock, making_client():
            if self._client is None:
                self._client = client_class()(
                    model=self.name,
                    temperature=self.temperature,
                    base_url=self._address.url if self._address else None,
                    openai_proxy=None,
                    http_client=self._http_client(keep_whole_reply),
                    api_key=self._api_key,
                    timeout=self._timeout_s,
                    max_retries=0,
                    stream_usage=True,
                    use_responses_api=False,
                )
            return self._client

    def _http_client(self, *on_response: Callable[[httpx.Response], None]) -> httpx.Client:
        from graph.endpoints.http_client import http_client

        return http_client(self._address, *on_response)

    def _detail(self, fault: Exception) -> str:
        """The server's own words where it answered with a status, without the key; none where the key is refused."""
        if getattr(fault, "status_code", 0) in (401, 403) or not hasattr(fault, "status_code"):
            return ""
        body = getattr(fault, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        told = said if isinstance(said, str) and said else getattr(fault, "message", "")
        detail = " ".join(str(told).split())
        return censored(detail.replace(self._api_key.get_secret_value(), "***"))[:_MAX_DETAIL]


def open_chat_model(
    model: str,
    temperature: float,
    *,
    base_url: str | None,
    api_key: str | None,
    timeout_s: float,
    thinking_tokens: int | None = None,
) -> ChatModel:
    """Return a chat model; no request is made and nothing heavy is imported before the first question.

    Args:
        model: its name, as the server knows it.
        temperature: from 0 (always the likeliest words) to 2.
        base_url: the server, usually ending in ``/v1``; None is OpenAI.
        api_key: may be missing where ``base_url`` is given (vLLM and Ollama ask for none).
        timeout_s: seconds without a token after which a request is given up.
        thinking_tokens: tokens that the model may think before each reply; None gives them once it is seen to think.

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
        thinking_tokens=thinking_tokens,
    )


def _read_message(message: BaseMessage, *, with_logprobs: bool) -> ChatReply:
    """What the client made of a reply's envelope. Raises ValueError for a message that no assistant wrote."""
    from langchain_core.messages import AIMessage

    if not isinstance(message, AIMessage):
        raise ValueError(f"the reply's role is {message.type!r}")
    metadata, raw = message.response_metadata, str(message.text)
    cut = str(metadata.get("finish_reason")).startswith("length")
    tokens = read_logprobs(metadata) if with_logprobs else ()
    told = message.usage_metadata
    hidden = bool(told and told.get("output_token_details", {}).get("reasoning"))
    thought = hidden or "<think>" in raw or "</think>" in raw or (cut and not raw.strip())
    return ChatReply(raw, cut, usage_of(message), tokens, thought)


def _estimated_tokens(messages: Sequence[BaseMessage], reply: str = "") -> int:
    """The tokens of a request whose server tells none, by bytes."""
    texts = (*(str(message.text) for message in messages), reply)
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_A_TOKEN


def _refuses(fault: Exception, statuses: tuple[int, ...], words: re.Pattern[str]) -> bool:
    return getattr(fault, "status_code", 0) in statuses and words.search(str(fault)) is not None
