"""The context window of a chat model: how many tokens prompt and reply may take together, and how many a text takes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from graph.endpoints.address import Address
from graph.environment import environment
from graph.errors import BadInput

if TYPE_CHECKING:
    import httpx

LEAST_WINDOW = 256
"""Tokens; what is less is no window of a chat model."""

_TIMEOUT_S = 5.0
_MARGIN = 1.1
_LETTERS_A_TOKEN = 3
_PIECES = re.compile(r"(?P<word>[A-Z]?[a-z]+)|(?P<wide>[^\x00-\x7f]+)|(?P<gap> (?! ))|.", re.DOTALL)


def configured_context_tokens() -> int | None:
    """Return what ``MARA_CONTEXT_TOKENS`` says, None where it is not set.

    Raises:
        BadInput: it is no number of tokens.
    """
    text = environment().mara_context_tokens.strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < LEAST_WINDOW:
        raise BadInput(f"MARA_CONTEXT_TOKENS is {text!r}", f"Set it to a number of tokens, {LEAST_WINDOW} or more")
    return int(text)


def told_context_tokens(client: httpx.Client, address: Address, api_key: SecretStr, model: str) -> int | None:
    """Return the context window that a server tells of a model, in tokens for one request; None where it does not.

    vLLM tells it at ``/v1/models`` as ``max_model_len``, llama.cpp there as ``meta.n_ctx`` or, in older versions, at
    ``/props`` and ``/slots``. A request never fails over it.

    Args:
        client: of the server; it is left open.
        address: of the server, usually ending in ``/v1``; the key goes nowhere else.
        api_key: as chat requests send it.
        model: the model's name, as the server knows it.

    Raises:
        ConnectionError: nobody is there; to be asked again.
    """
    import httpx

    headers = {} if address.credentials else {"Authorization": f"Bearer {api_key.get_secret_value()}"}

    def read(url: str) -> Any:
        return client.get(url, headers=headers, timeout=_TIMEOUT_S, follow_redirects=False).json()

    try:
        told = _model_entry(read(f"{address.url}/models"), model)
        window = _window(told.get("max_model_len")) or _window(_part(told, "meta", "n_ctx"))
        if window or told.get("owned_by") != "llamacpp":
            return window
        root = address.url.removesuffix("/v1")
        window = _window(_part(read(f"{root}/props"), "default_generation_settings", "n_ctx"))
        window = window or _window(_part(read(f"{root}/slots"), 0, "n_ctx"))
        return window or _window(_part(told, "meta", "n_ctx_train"))
    except httpx.ConnectError as fault:
        raise ConnectionError from fault
    except Exception:
        return None


def most_tokens(text: str) -> int:
    """Return how many tokens a text takes at most, by an estimate that errs on the safe side.

    It counts a token for every three letters of a word in small letters, for every other ASCII character but single
    spaces, and for every byte of all other scripts, and a tenth on top. No byte-level tokenizer takes more for those;
    for words it is measured. English is overestimated by half to two thirds, German by a seventh.
    """
    count = 0
    for piece in _PIECES.finditer(text):
        if piece.lastgroup == "word":
            count += math.ceil(len(piece[0]) / _LETTERS_A_TOKEN)
        elif piece.lastgroup == "wide":
            count += len(piece[0].encode("utf-8", "replace"))
        elif piece.lastgroup is None:
            count += 1
    return math.ceil(count * _MARGIN)


def _model_entry(models: Any, name: str) -> Mapping[str, Any]:
    """The entry of a model in a server's list, or the only one there is; empty where there is neither."""
    entries = [entry for entry in models["data"] if isinstance(entry, dict)]
    named = [entry for entry in entries if entry.get("id") == name] or entries
    return named[0] if len(named) == 1 else {}


def _part(value: Any, *path: str | int) -> Any:
    """The part of a JSON value at a path; None where it has none."""
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _window(told: Any) -> int | None:
    is_number = isinstance(told, int) and not isinstance(told, bool)
    return told if is_number and told >= LEAST_WINDOW else None
