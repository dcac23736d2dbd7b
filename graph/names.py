"""Finding known names in text, as whole names and in any script, without an embedding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.text import name_length, tokens

_SHORTEST = 3
"""Names of fewer letters and digits are too ambiguous to be found in running text."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A run of tokens that spells a known name: tokens[start:end] is the name with that index."""

    start: int
    end: int
    name: int


class NameMatcher:
    """Finds the longest known names in a sequence of tokens, from left to right, without overlap.

    Attributes:
        indices: of each spelling, its tokens joined by spaces: the indices of the names that are spelled so.
        lengths: of each first token of a spelling: how many tokens the spellings have, longest first.
    """

    def __init__(self, names: Iterable[tuple[str, int]]) -> None:
        """Learn (name, index) pairs; several names may share an index (aliases), several indices a spelling."""
        indices: dict[str, list[int]] = {}
        lengths: dict[str, set[int]] = {}
        for name, index in names:
            spelled = tokens(name)
            if not spelled or name_length(name) < _SHORTEST:
                continue
            known = indices.setdefault(" ".join(spelled), [])
            if index not in known:
                known.append(index)
            lengths.setdefault(spelled[0], set()).add(len(spelled))
        self.indices: Mapping[str, Sequence[int]] = indices
        self.lengths: Mapping[str, Sequence[int]] = {
            first: sorted(found, reverse=True) for first, found in lengths.items()
        }

    @classmethod
    def over(cls, indices: Mapping[str, Sequence[int]], lengths: Mapping[str, Sequence[int]]) -> NameMatcher:
        """Return the matcher that has learnt these names before."""
        matcher = cls(())
        matcher.indices, matcher.lengths = indices, lengths
        return matcher

    def find(self, text_tokens: Sequence[str], among: NDArray[np.bool_] | None = None) -> list[Mention]:
        """Return the longest whole-name mentions; one for each index where a spelling has several.

        With ``among``, one element an index, the names of all others are unknown.
        """
        mentions: list[Mention] = []
        start = 0
        while start < len(text_tokens):
            end = start + 1
            for length in self.lengths.get(text_tokens[start], ()):
                found = self.indices.get(" ".join(text_tokens[start : start + length]))
                if found and among is not None:
                    found = [index for index in found if among[index]]
                if found and start + length <= len(text_tokens):
                    end = start + length
                    mentions.extend(Mention(start, end, index) for index in found)
                    break
            start = end
        return mentions


def find_name(text_tokens_joined: str, name: str) -> int:
    """Return the index of the first token of ``name`` in tokens joined by (and within) spaces, or -1."""
    spelled = " ".join(tokens(name))
    at = text_tokens_joined.find(f" {spelled} ") if spelled else -1
    return text_tokens_joined.count(" ", 0, at) if at >= 0 else -1
