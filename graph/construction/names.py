"""Finding known names in text, as whole names and in any script, without an embedding."""

from __future__ import annotations

from collections import Counter
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

    def __init__(self, indices: Mapping[str, Sequence[int]], lengths: Mapping[str, Sequence[int]]) -> None:
        self.indices = indices
        self.lengths = lengths

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


class IncrementalMatcher(NameMatcher):
    """A matcher whose names come and go: one that is learnt twice is known until it is forgotten twice."""

    def __init__(self, names: Iterable[tuple[str, int]] = ()) -> None:
        """Learn (name, index) pairs; several names may share an index (aliases), several indices a spelling."""
        self._uses: Counter[tuple[str, int]] = Counter()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._spelled: dict[str, list[int]] = {}
        self._by_first: dict[str, list[int]] = {}
        super().__init__(self._spelled, self._by_first)
        for name, index in names:
            self.learn(name, index)

    def learn(self, name: str, index: int) -> str:
        """Learn a name; return its tokens joined by spaces, empty where it cannot be found in text."""
        spelled = findable(name)
        if spelled:
            self._uses[spelled, index] += 1
            if self._uses[spelled, index] == 1:
                known = self._spelled.setdefault(spelled, [])
                known.append(index)
                if len(known) == 1:
                    self._count(spelled, 1)
        return spelled

    def forget(self, name: str, index: int) -> str:
        """Forget a name that was learnt; returns as `learn` does."""
        spelled = findable(name)
        if spelled:
            self._uses[spelled, index] -= 1
            if not self._uses[spelled, index]:
                del self._uses[spelled, index]
                self._spelled[spelled].remove(index)
                if not self._spelled[spelled]:
                    del self._spelled[spelled]
                    self._count(spelled, -1)
        return spelled

    def renumbered(self, index_of: NDArray[np.int32]) -> NameMatcher:
        """Return the matcher of the same names under other indices."""
        indices = {
            spelled: [int(index_of[one[0]])] if len(one) == 1 else sorted(int(index_of[i]) for i in one)
            for spelled, one in self._spelled.items()
        }
        return NameMatcher(indices, dict(self._by_first))

    def _count(self, spelled: str, change: int) -> None:
        words = spelled.split(" ")
        first, length = words[0], len(words)
        self._counts[first, length] += change
        known = set(self._by_first.pop(first, ())) - {length}
        if self._counts[first, length]:
            known.add(length)
        else:
            del self._counts[first, length]
        if known:
            self._by_first[first] = sorted(known, reverse=True)


def findable(name: str) -> str:
    """Return a name's tokens joined by spaces; nothing where it is too short to be found in running text."""
    return " ".join(tokens(name)) if name_length(name) >= _SHORTEST else ""


def find_name(text_tokens_joined: str, name: str) -> int:
    """Return the index of the first token of ``name`` in tokens joined by (and within) spaces, or -1."""
    spelled = " ".join(tokens(name))
    at = text_tokens_joined.find(f" {spelled} ") if spelled else -1
    return text_tokens_joined.count(" ", 0, at) if at >= 0 else -1
