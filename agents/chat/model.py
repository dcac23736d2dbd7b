"""Asking a chat model over the OpenAI protocol: requests, and replies as they came.

LangChain's client asks; `agents.chat.replies` reads the replies on their way to it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from agents.answers.unlinked import Addresses, Unlinking
from agents.chat.material import configured_context_tokens, told_context_tokens
from agents.chat.replies import ReplyUnderWay, TokenLogprobs, counted_tokens, read_logprobs, read_reply, reading
from agents.chat.usage import QuestionBudget, Usage, budget_of_question, count_usage
from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import as_mara_error, endpoint_address
from graph.errors import BudgetSpent, MalformedReply, MaraError, ModelUnavailable, SlowReply, TransportFault

if TYPE_CHECKING:
    import httpx
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_openai import ChatOpenAI

    from graph.endpoints.http_client import Reader

_PLACEHOLDER_KEY = "no-key"
_MAX_DETAIL = 300

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
_LIMIT_WORDS = re.compile(r"max_(?:completion_)?tokens", re.IGNORECASE)
_TOO_LARGE_WORDS = re.compile(r"too large|context length|supports at most", re.IGNORECASE)
_REFUSALS = {
    "response_format": re.compile(r"response[_ ]format|json_schema", re.IGNORECASE),
    "logprobs": re.compile(r"logprobs|log[ -]prob", re.IGNORECASE),
    **dict.fromkeys(_LIMIT_NAMES, _LIMIT_WORDS),
    "temperature": re.compile(r"temperature\W+(?:does not support|is not supported)", re.IGNORECASE),
    "stream_options": re.compile(r"stream[_ ]options|include[_ ]usage", re.IGNORECASE),
}
"""Parameters that a request may have, each with the words by which a server refuses it."""

_UNHEARD = ("nostream", "langsmith:nostream")
"""Tags of a request whose reply no stream tells as chat: LangGraph's own, and the one that chat interfaces know."""
_NOT_IN_KEYS = re.compile(r"[^!-~]")


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
        """Return what the model wrote. Raises MalformedReply where it is empty or cut."""
        if self.cut:
            raise MalformedReply(CUT, self.raw)
        if not self.raw.strip():
            raise MalformedReply("The reply is empty", self.raw)
        return self.raw


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A request to a model. With addresses, streams are told its reply, which may name these alone."""

    messages: Sequence[BaseMessage]
    response_format: dict[str, Any] | None
    max_tokens: int
    top_logprobs: int
    addresses: Addresses | None


class ChatModel:
    """A chat model behind an OpenAI-compatible endpoint; its client is built at the first request.

    Every reply is streamed inside, whatever the caller sees, so that a time-out counts the seconds without a token.
    Every request has a limit of tokens and is charged to the budget of its question. Safe to use from several threads.
    Remembers what the server turns out not to take: ``response_format``, ``logprobs``, ``temperature``,
    ``stream_options``, and the name of the token limit; and whether the model thinks, which takes tokens of its own.

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
        self._refused: set[str] = set()
        # Most servers ignore the name that they do not know; OpenAI refuses the older one for its models that think.
        self._limit_names = _LIMIT_NAMES if address else _LIMIT_NAMES[1:]
        self._thinking_tokens = thinking_tokens or 0
        self._once_it_thinks = THINKING_TOKENS if thinking_tokens is None else thinking_tokens
        self._told_context_tokens: int | None = None
        self._asks_window = True

    @property
    def context_tokens(self) -> int | None:
        """The context window: ``MARA_CONTEXT_TOKENS``, else what the server tells, once asked; None where unknown.

        Raises BadInput.
        """
        configured = configured_context_tokens()
        if configured is not None:
            return configured
        with self._lock:
            if self._asks_window and self._address:
                with suppress(ConnectionError), self._http_client() as client:
                    self._told_context_tokens = told_context_tokens(client, self._address, self._api_key, self.name)
                    self._asks_window = False
            return self._told_context_tokens

    def ask(
        self,
        messages: Sequence[BaseMessage],
        response_format: dict[str, Any] | None = None,
        *,
        top_logprobs: int = 0,
        max_tokens: int = MAX_REPLY_TOKENS,
        addresses: Addresses | None = None,
    ) -> ChatReply:
        """Return the reply with its tokens.

        Options that a server refuses are left out: ``response_format``, the log-probabilities, the limit and the
        temperature.

        Args:
            messages: the prompt.
            response_format: what the reply has to be; None for text.
            top_logprobs: how many likely tokens to tell of at each place, from 1 to 20; 0 asks for none.
            max_tokens: what the reply itself may take; a model that thinks is given more.
            addresses: those that a reply may name which graphs that stream messages tell word by word, as chat, and
                `unlinked`; None for a reply that none of them tells.

        Raises:
            MalformedReply: the reply is too long, or broken Unicode.
            SlowReply: no token came for too long.
            BudgetSpent: nothing is left of what the question may take.
            TransportFault: the endpoint could not be reached, was busy or broke off.
            ModelUnavailable: the endpoint refused the key, the model or the request.
        """
        return self._reply(_Wanted(messages, response_format, max_tokens, top_logprobs, addresses))

    def _reply(self, wanted: _Wanted) -> ChatReply:
        """A reply; one that was cut while the model thought is asked for again, with tokens to think."""
        could_think = self._thinking_tokens
        reply = self._accepted(wanted)
        if could_think or not (reply.cut and reply.thought and self._once_it_thinks):
            return reply
        self._thinking_tokens = self._once_it_thinks
        again = self._accepted(wanted)
        return replace(again, usage=reply.usage + again.usage)

    def _accepted(self, wanted: _Wanted) -> ChatReply:
        """The reply to a request that the server does not refuse."""
        refusals = 0
        left_out: set[str] = set()
        while True:
            parameters = self._parameters(wanted, self._refused | left_out)
            try:
                with self._turn():
                    reply = self._charged(wanted, parameters)
                return replace(reply, usage=Usage(requests=refusals) + reply.usage)
            except MaraError:
                raise
            # Whatever a server sends, the client may raise anything over it.
            except Exception as fault:
                if not parameters.keys().isdisjoint(_LIMIT_NAMES) and _refuses(fault, _TOO_LARGE_WORDS):
                    left_out.update(_LIMIT_NAMES)
                elif refused := _refused_parameter(fault, parameters):
                    self._refused.add(refused)
                else:
                    raise as_mara_error(fault, "chat", self._detail(fault)) from None
                refusals += 1

    def _parameters(self, wanted: _Wanted, refused: Collection[str]) -> dict[str, Any]:
        """Return the parameters of a request, less those that its server or the caller of this leaves out."""
        limit = next((name for name in self._limit_names if name not in refused), "")
        wishes = {
            "response_format": wanted.response_format,
            "logprobs": wanted.top_logprobs > 0 or None,
            limit: wanted.max_tokens + self._thinking_tokens,
            "temperature": self.temperature,
            "stream_options": {"include_usage": True},
        }
        sent = {name: value for name, value in wishes.items() if name and value is not None and name not in refused}
        return sent | {"top_logprobs": wanted.top_logprobs} if "logprobs" in sent else sent

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait, before the time of a request runs, until its server takes it; most have queues of their own."""
        yield

    def _charged(self, wanted: _Wanted, parameters: Mapping[str, Any]) -> ChatReply:
        """Ask once, charged to the question's budget. Raises SlowReply, BudgetSpent, and faults of the client."""
        client = self._open()  # which may take seconds of its own, the first time
        budget = budget_of_question()
        budget.take_call()
        try:
            reply = self._asked(client, wanted, parameters, budget)
        except Exception as fault:
            late = self._too_late(fault, budget)
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

    def _asked(
        self, client: ChatOpenAI, wanted: _Wanted, parameters: Mapping[str, Any], budget: QuestionBudget
    ) -> ChatReply:
        under_way = ReplyUnderWay(
            silence_s=self._timeout_s,
            left_s=budget.left_s,
            most_characters=CHARACTERS_A_TOKEN * (wanted.max_tokens + self._thinking_tokens),
            unlinking=None if wanted.addresses is None else Unlinking(wanted.addresses),
        )
        tags = list(_UNHEARD) if wanted.addresses is None else []
        try:
            with reading(under_way):
                # In the body alone: LangChain's client renames parameters, drops some, and parses by others.
                message = client.invoke(
                    list(wanted.messages), {"tags": tags}, extra_body=parameters, timeout=under_way.wait_s
                )
        except Exception as caught:
            # The client tells some faults of the reading as a lost connection.
            fault = under_way.fault or caught
        else:
            reply = _read_message(message)
            passed = len(reply.raw) > under_way.most_characters
            return replace(reply, cut=reply.cut or passed, thought=reply.thought or under_way.thought)
        raise fault

    def _too_late(self, fault: Exception, budget: QuestionBudget) -> MaraError | None:
        """The error of a request that took too long; None for any other fault."""
        if isinstance(fault, MaraError):
            return None
        error = as_mara_error(fault, "chat")
        if not isinstance(error, TransportFault) or error.status:
            return None
        if budget.left_s() <= 0:
            return budget.fault() or BudgetSpent("The question's time is over")
        if error.cause != "timeout":
            return None
        return SlowReply(
            f"The chat endpoint sent no token for {self._timeout_s:g} s",
            "Raise MARA_TIMEOUT_S, or take a faster model or server",
        )

    def _open(self) -> ChatOpenAI:
        from graph.endpoints.http_client import making_client

        with self._lock, making_client():
            if self._client is None:
                from langchain_openai import ChatOpenAI

                self._client = ChatOpenAI(
                    model=self.name,
                    base_url=self._address.url if self._address else None,
                    openai_proxy=None,
                    http_client=self._http_client(read_reply),
                    api_key=self._api_key,
                    max_retries=0,
                    streaming=True,
                    stream_usage=False,
                    use_responses_api=False,
                )
            return self._client

    def _http_client(self, reader: Reader | None = None) -> httpx.Client:
        from graph.endpoints.http_client import http_client

        return http_client(self._address, reader)

    def _detail(self, fault: Exception) -> str:
        """The server's own words where it answered with a status, without the key; none where the key is refused."""
        if getattr(fault, "status_code", 0) in (401, 403) or not hasattr(fault, "status_code"):
            return ""
        body = getattr(fault, "body", None)
        said = body.get("message") if isinstance(body, dict) else None
        words = said if isinstance(said, str) and said else getattr(fault, "message", "")
        detail = " ".join(str(words).split())
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


def _read_message(message: AIMessage) -> ChatReply:
    """Return the reply that the client's message holds; a server that tells no tokens, or 0, leaves them unknown."""
    metadata, raw, told = message.response_metadata, str(message.text), message.usage_metadata
    prompt, completion = (counted_tokens(told[key]) for key in ("input_tokens", "output_tokens")) if told else (0, 0)
    cut = str(metadata.get("finish_reason")).startswith("length")
    hidden = bool(told and told.get("output_token_details", {}).get("reasoning"))
    thought = hidden or "<think>" in raw or "</think>" in raw or (cut and not raw.strip())
    return ChatReply(raw, cut, Usage(1, prompt, completion, unknown=int(not prompt)), read_logprobs(metadata), thought)


def _estimated_tokens(messages: Sequence[BaseMessage], reply: str = "") -> int:
    """The tokens of a request whose server tells none, by bytes."""
    texts = (*(str(message.text) for message in messages), reply)
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // _BYTES_A_TOKEN


def _refused_parameter(fault: Exception, parameters: Mapping[str, Any]) -> str | None:
    """The parameter of a request that its server refused; None where it refused the request itself."""
    for name, words in _REFUSALS.items():
        # OpenAI forbids (403) log-probabilities for its models that think.
        statuses = (400, 403, 422) if name == "logprobs" else (400, 422)
        if name in parameters and _refuses(fault, words, statuses):
            return name
    return None


def _refuses(fault: Exception, words: re.Pattern[str], statuses: tuple[int, ...] = (400, 422)) -> bool:
    return getattr(fault, "status_code", 0) in statuses and words.search(str(fault)) is not None
