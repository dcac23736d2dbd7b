"""The versions of a conversation's turns: a tree, of which the page shows one way from the first turn to a last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Versions:
    """The turns of a conversation by what they follow; those that follow the same one are versions of each other.

    Attributes:
        follows: of each turn the one that it follows, empty for none; in the order in which they were asked.
    """

    follows: Mapping[str, str]

    @property
    def last(self) -> tuple[str, ...]:
        """The turns that none follows, in the order in which they were asked."""
        followed = set(self.follows.values())
        return tuple(key for key in self.follows if key not in followed)

    def shown(self, at: str = "") -> list[str]:
        """Return the way to the turn asked last, the first turn first; to the last one after ``at``, if that is one."""
        ways = [self.way_to(key) for key in self.last]
        return next((way for way in reversed(ways) if at in way), ways[-1] if ways else [])

    def way_to(self, turn: str) -> list[str]:
        """Return the turns that lead to one, the first first, and it itself."""
        way = []
        while turn:
            way.append(turn)
            turn = self.follows.get(turn, "")
        return way[::-1]

    def beside(self, turn: str) -> tuple[str, ...]:
        """Return the versions of a turn, it itself among them, in the order in which they were asked."""
        return tuple(key for key, before in self.follows.items() if before == self.follows[turn])
