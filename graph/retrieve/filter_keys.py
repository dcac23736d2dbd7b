"""The keys of a filter that no passage has: told with the keys that there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from graph.metadata_filter import EXCLUDING, askable_keys, read_conditions
from graph.retrieve.open_index import Index
from graph.retrieve.selection import Selection

_KEYS_TOLD = 20


@dataclass(frozen=True, slots=True)
class UnknownKeys:
    """Keys that a filter asks for and no passage has.

    Attributes:
        asked: these keys.
        held: the keys of the passages that the filter's other conditions select, ascending.
    """

    asked: tuple[str, ...]
    held: tuple[str, ...]

    @property
    def message(self) -> str:
        """The fault, in words."""
        return f"No passage has metadata called {_listed(self.asked)}, which `where` asks for"

    @property
    def hint(self) -> str:
        """The keys that there are."""
        return f"The keys there are: {_listed(self.held)}" if self.held else "Check the other conditions, too"

    @property
    def note(self) -> str:
        """The note that a run's state may hold, where no condition stands: the keys there are, not those asked for."""
        return f"`where` asks for metadata that no passage has; the keys there are: {_listed(self.held)}"


def unknown_keys(index: Index, where: Mapping[str, Any], fixed: Mapping[str, Any] | None = None) -> UnknownKeys | None:
    """Return the keys of a filter that no passage has; None where each is known.

    A key that a selected passage has to have is known: all passages are looked through only for the others.

    Args:
        index: of the workspace.
        where: the whole filter.
        fixed: a part of it that somebody else set. Only passages that meet it are looked at, so that nothing is told
            of others; where none does, nothing is told at all.

    Raises:
        BadInput: a condition cannot be used.
    """
    if not where:
        return None
    within = index.select(fixed or {})
    if within is not None and within.is_empty:
        return None
    selection = index.select(where)
    needed = {each.key for each in read_conditions(where) if each.operator not in EXCLUDING}
    if selection is not None and not selection.is_empty and needed >= where.keys():
        return None
    seen = _keys_within(index, within)
    unknown = tuple(key for key in where if key not in seen)
    if not unknown:
        return None
    others = {**(fixed or {}), **{key: wanted for key, wanted in where.items() if key in seen}}
    return UnknownKeys(unknown, tuple(sorted(_keys_within(index, index.select(others)))))


def _keys_within(index: Index, selection: Selection | None) -> Set[str]:
    """Return the keys of the passages that are selected, or of all."""
    if selection is None:
        return index.graph.metadata_keys
    return {key for row in selection.rows.tolist() for key in askable_keys(index.graph.passages[row])}


def _listed(keys: Sequence[str]) -> str:
    more = " …" if len(keys) > _KEYS_TOLD else ""
    return ", ".join(f"`{key}`" for key in keys[:_KEYS_TOLD]) + more
