"""Fitting material into a prompt: whole pieces, the best first, and nothing left out in silence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agents.chat.context_window import most_tokens
from agents.chat.quoting import quoted_line
from agents.chat.usage import tell_omission
from graph.sentences import sentence_spans

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
