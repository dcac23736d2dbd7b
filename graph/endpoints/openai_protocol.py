"""OpenAI-compatible endpoints: their settings, and their faults as errors that say what to do."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from graph.endpoints.address import Address
from graph.environment import environment
from graph.errors import BadInput, MaraError, ModelUnavailable, TransportCause, TransportFault, faults_behind

if TYPE_CHECKING:
    import openai

_DEFAULT_TIMEOUT_S = 60.0
_DEFAULT_QUESTION_S = 300.0
_PASSING_STATUS = frozenset({408, 409, 429})
_TOO_LONG = re.compile(r"(context|prompt) (size|length|window)|maximum context|exceed_context_size", re.IGNORECASE)
_ADDRESSES_OF: Mapping[str, tuple[str, ...]] = {
    "chat": ("MARA_EXTRACTION_URLS",),
    "embedding": ("MARA_EMBEDDING_BASE_URL",),
}
_CAUSES: Mapping[int, TransportCause] = {408: "timeout", 429: "rate limit"}


def timeout_s() -> float:
    """Return how long a chat model may send no token, and any other request take: ``MARA_TIMEOUT_S``, 60 s by default.

    Raises:
        BadInput: the variable does not hold a positive number.
    """
    return _number_of("MARA_TIMEOUT_S", _DEFAULT_TIMEOUT_S, "a positive number of seconds", lambda seconds: seconds > 0)


def question_s() -> float:
    """Return the seconds that one question may take by default: ``MARA_QUESTION_S``, 300 without it; 0 is no limit.

    Raises:
        BadInput: the variable does not hold a number from 0.
    """
    return _number_of("MARA_QUESTION_S", _DEFAULT_QUESTION_S, "a number of seconds, or 0 for no limit")


def thinking_tokens() -> int | None:
    """Return the tokens that a model may think before each reply: ``MARA_THINKING_TOKENS``; None where it is not set.

    Raises:
        BadInput: the variable does not hold a whole number from 0.
    """
    if not environment().mara_thinking_tokens:
        return None
    return int(_number_of("MARA_THINKING_TOKENS", 0.0, "a whole number of tokens", float.is_integer))


def _number_of(variable: str, default: float, wanted: str, allows: Callable[[float], bool] = lambda _: True) -> float:
    """The number in a variable of the environment, from 0. Raises BadInput with what is wanted."""
    text = environment().value(variable) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not (0 <= number < float("inf") and allows(number)):
        raise BadInput(f"{variable} is {text!r}", f"Set it to {wanted}")
    return number


def endpoint_address(text: str | None, variable: str = "OPENAI_BASE_URL") -> Address | None:
    """Return the address of an endpoint; None for OpenAI's own. Raises BadInput where a variable holds no address.

    LangChain's ``OPENAI_API_BASE`` counts where no address is given.
    """
    if not text:
        text, variable = environment().openai_api_base, "OPENAI_API_BASE"
    return Address.parse(text, variable, "http://localhost:8000/v1") if text else None


def as_mara_error(fault: Exception, role: str, detail: str = "") -> MaraError:
    """Translate what the openai client raised for a ``role`` ("chat" or "embedding") endpoint.

    Returns TransportFault for what may pass (no connection, a timeout, 408, 409, 429, 5xx, a reply that is not the
    protocol's), ModelUnavailable for what will not (a refused key, an unknown model, a refused request).

    Args:
        fault: what the client raised.
        role: whose endpoint it is.
        detail: the server's own words, told where the fault has a status.
    """
    import httpx
    import openai

    from graph.endpoints.http_client import ReplyTooLarge

    if isinstance(fault, MaraError):
        return fault
    if too_large := next((cause for cause in faults_behind(fault) if isinstance(cause, ReplyTooLarge)), None):
        return TransportFault(f"The {role} endpoint's reply is refused unread: {too_large}", _place_to_check(role))
    behind = tuple(faults_behind(fault))
    timed_out = any(isinstance(each, openai.APITimeoutError | httpx.TimeoutException) for each in behind)
    if timed_out and not any(isinstance(each, httpx.ConnectTimeout) for each in behind):
        return TransportFault(
            f"The {role} endpoint did not answer within {timeout_s():g} s",
            "Raise MARA_TIMEOUT_S or check the server",
            cause="timeout",
        )
    if isinstance(fault, openai.APIStatusError):
        return _status_error(fault, role, f": {detail}" if detail else "")
    if isinstance(fault, openai.APIConnectionError):
        return TransportFault(f"The {role} endpoint cannot be reached", _place_to_check(role), cause="connection")
    return TransportFault(
        f"The {role} endpoint's reply broke off or is not of the OpenAI protocol ({type(fault).__name__})",
        f"{_place_to_check(role)}: it has to be OpenAI-compatible, and its address usually ends in /v1",
    )


def _place_to_check(role: str) -> str:
    """Return the hint that names the settings of an endpoint's address that are set."""
    names = (*_ADDRESSES_OF.get(role, ()), "OPENAI_BASE_URL", "OPENAI_API_BASE")
    named = [*filter(environment().value, names)]
    return f"Check {' or '.join(named)} and the server" if named else "Check the network and the model's server"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long a reply's headers ask to wait, in seconds from 0; None where they do not say, or not readably.

    ``retry-after-ms`` is OpenAI's and wins over ``Retry-After``, which counts as a number of seconds alone.

    Args:
        headers: names in lower case, or a mapping that ignores case.
    """
    milliseconds = _wait(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    return _wait(headers.get("retry-after", ""))


def _wait(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _status_error(fault: openai.APIStatusError, role: str, detail: str) -> MaraError:
    status = fault.status_code
    if status in _PASSING_STATUS or status >= 500:
        return TransportFault(
            f"The {role} endpoint answered {status}{detail}",
            "It is busy or failing: try again later",
            status=status,
            cause=_CAUSES.get(status, "server error"),
            retry_after_s=retry_after_s(fault.response.headers),
        )
    if status in (401, 403):
        refusal, hint = f"refused the key ({status})", "Set OPENAI_API_KEY"
    elif status == 404:
        variable = "MARA_CHAT_MODEL" if role == "chat" else "MARA_EMBEDDING_MODEL"
        refusal, hint = "knows no such model or address (404)", f"Set {variable}"
    elif role == "chat" and _TOO_LONG.search(detail):
        return ModelUnavailable(
            f"The chat endpoint's context window is too small for the request ({status}){detail}",
            "Start the server with a larger context, or set MARA_CONTEXT_TOKENS to its size: passages are fitted to it",
            status=status,
        )
    else:
        refusal, hint = f"refused the request ({status})", "Check the model and its limits"
    return ModelUnavailable(f"The {role} endpoint {refusal}{detail}", hint, status=status)
