"""The material of prompts: untrusted text as one line of JSON, and as much of it as a model's context window holds."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from agents.chat.usage import tell_omission
from graph.endpoints.address import Address
from graph.environment import environment
from graph.errors import BadInput
from graph.sentences import sentence_spans

if TYPE_CHECKING:
    import httpx


QUOTED_MATERIAL = "Quoted material"
"""The beginning of the label."""

# Characters that could end the quoted line, or read as markup of a chat template: written as JSON escapes.
_UNQUOTABLE = re.compile("[<\x7f-\x9f\u2028\u2029\ud800-\udfff]|```")


def quoted(label: str, value: object) -> str:
    """Return untrusted material as one line of JSON inside a labelled fence.

    ``value`` is anything JSON can hold. See `quoted_line`.
    """
    return f"{QUOTED_MATERIAL} ({label}):\n```json\n{quoted_line(value)}\n```"


def quoted_line(value: object) -> str:
    """Return a value as one line of JSON.

    Line ends, quotes, fences and the ``<`` of chat-template markup are written as JSON escapes, so no text within
    the value can end the line, the string or the fence that hold it.
    """
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNQUOTABLE.sub(lambda match: "".join(f"\\u{ord(character):04x}" for character in match[0]), line)


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

    vLLM tells it at ``/v1/models`` as ``max_model_len``, llama.cpp there as ``meta.n_ctx``. A request never fails over
    it.

    Args:
        client: of the server; it is left open.
        address: of the server, usually ending in ``/v1``; the key goes nowhere else.
        api_key: as chat requests send it.
        model: the model's name, as the server knows it.

    Raises:
        ConnectionError: the server cannot be reached; to be asked again.
    """
    import httpx

    headers = {} if address.credentials else {"Authorization": f"Bearer {api_key.get_secret_value()}"}
    try:
        models = client.get(f"{address.url}/models", headers=headers, timeout=_TIMEOUT_S, follow_redirects=False)
        entry = _model_entry(models.json(), model)
        window = entry.get("max_model_len") or entry["meta"]["n_ctx"]
        return window if type(window) is int and window >= LEAST_WINDOW else None
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


_TOKENS_OF_A_PIECE = 24
"""Of its number, and of the names and marks around its texts."""


@dataclass(frozen=True, slots=True)
class Room:
    """The room that a prompt has left.

    Attributes:
        role: whose prompt it is, as the user is told.
        characters: of the material's own text.
        window: the tokens of the model's context window; None where it is not known.
        tokens: what is left of them; unlimited where the window is not known.
    """

    role: str
    characters: float = float("inf")
    window: int | None = None
    tokens: float = float("inf")

    def holds(self, text: str) -> bool:
        """Tell whether a piece of the material fits."""
        return len(text) <= self.characters and _tokens_of_piece(text) <= self.tokens

    def without(self, text: str) -> Room:
        """Return what is left beside a piece of the material, at least nothing."""
        return replace(
            self, characters=max(0, self.characters - len(text)), tokens=max(0, self.tokens - _tokens_of_piece(text))
        )

    def share(self, parts: int) -> Room:
        """Return one of so many even parts."""
        return replace(self, characters=self.characters // parts, tokens=self.tokens // parts)

    def count(self, texts: Sequence[str]) -> int:
        """Return how many pieces fit together, from the first on."""
        left = self
        for fitting, text in enumerate(texts):
            if not left.holds(text):
                return fitting
            left = left.without(text)
        return len(texts)

    def cut(self, text: str) -> str:
        """Return the sentences of a text that fit, from its beginning on.

        The first is kept whatever its tokens, which are estimated: the server knows them better. It is cut to the
        characters.
        """
        if self.holds(text):
            return text
        ends = [end for _, end in sentence_spans(text)] or [len(text)]
        fitting = bisect_left(ends, True, key=lambda end: not self.holds(text[:end]))
        return text[: ends[fitting - 1]] if fitting else text[: int(min(ends[0], self.characters))]

    def tell(self, what: str) -> None:
        """Tell the user what was left out."""
        place = f"the context window of {self.window:,} tokens" if self.window else "its prompt"
        tell_omission(f"The {self.role} was not shown {what}: no more fits into {place}")


def _tokens_of_piece(text: str) -> int:
    return _TOKENS_OF_A_PIECE + most_tokens(quoted_line(text))
