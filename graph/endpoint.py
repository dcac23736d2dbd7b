"""OpenAI-compatible endpoints: their settings, and their faults as errors that say what to do."""

from __future__ import annotations

import os

from graph.errors import BadInput, MaraError, ModelUnavailable, TransportFault

_DEFAULT_TIMEOUT_S = 60.0
_PASSING_STATUS = frozenset({408, 409, 429})


def timeout_s() -> float:
    """Return how long a request may take, in seconds: ``MARA_TIMEOUT_S``, 60 by default.

    Raises:
        BadInput: the variable does not hold a positive number.
    """
    text = os.environ.get("MARA_TIMEOUT_S") or str(_DEFAULT_TIMEOUT_S)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadInput(f"MARA_TIMEOUT_S is {text!r}", "Set it to a positive number of seconds")
    return seconds


def as_mara_error(fault: Exception, role: str) -> MaraError:
    """Translate what the openai client raised for a ``role`` ("chat" or "embedding") endpoint.

    Returns TransportFault for what may pass (no connection, a timeout, 408, 409, 429, 5xx, a reply that is not
    the protocol's), ModelUnavailable for what will not (a refused key, an unknown model, a refused request).
    """
    import openai

    if isinstance(fault, MaraError):
        return fault
    if isinstance(fault, openai.APITimeoutError):
        return TransportFault(
            f"The {role} endpoint did not answer within {timeout_s():g} s", "Raise MARA_TIMEOUT_S or check the server"
        )
    if isinstance(fault, openai.APIStatusError):
        return _status_error(fault, role)
    if isinstance(fault, openai.APIConnectionError):
        return TransportFault(f"The {role} endpoint cannot be reached", "Check OPENAI_BASE_URL and the server")
    return TransportFault(
        f"The {role} endpoint's reply broke off or is not of the OpenAI protocol ({type(fault).__name__})",
        "Check that OPENAI_BASE_URL points at an OpenAI-compatible server (it usually ends in /v1)",
    )


def _status_error(fault: Exception, role: str) -> MaraError:
    status = int(getattr(fault, "status_code", 0))
    if status in _PASSING_STATUS or status >= 500:
        return TransportFault(f"The {role} endpoint answered {status}", "It is busy or failing: try again later")
    if status in (401, 403):
        return ModelUnavailable(f"The {role} endpoint refused the key ({status})", "Set OPENAI_API_KEY")
    if status == 404:
        variable = "MARA_CHAT_MODEL" if role == "chat" else "MARA_EMBEDDING_MODEL"
        return ModelUnavailable(f"The {role} endpoint knows no such model or address (404)", f"Set {variable}")
    return ModelUnavailable(f"The {role} endpoint refused the request ({status})", "Check the model and its limits")
