"""Whether a passage meets conditions on its metadata, told without a search index: as Chroma would tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt
from typing import Any

from graph.metadata_filter import Condition, askable_metadata, to_chroma
from graph.schema import MetadataValue

_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"$eq": eq, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
EXCLUDING = {"$ne": "$eq", "$nin": "$in"}
"""Operators that hold where another one does not, also of a passage without the key."""


def meets(conditions: Sequence[Condition], source: str, metadata: Mapping[str, MetadataValue]) -> bool:
    """Tell whether a passage of that source and metadata meets all conditions."""
    if not conditions:
        return True
    return _holds(to_chroma(conditions), askable_metadata({**metadata, "source": source}))


def _holds(clause: Mapping[str, Any], held: Mapping[str, MetadataValue]) -> bool:
    ((key, wanted),) = clause.items()
    if key == "$and":
        return all(_holds(each, held) for each in wanted)
    if key == "$or":
        return any(_holds(each, held) for each in wanted)
    ((operator, operand),) = wanted.items()
    if operator in EXCLUDING:
        return not compares(EXCLUDING[operator], held.get(key), operand)
    return compares(operator, held.get(key), operand)


def compares(operator: str, value: MetadataValue | None, operand: Any) -> bool:
    """Tell whether a value, or none, is to another as an operator that excludes nothing says."""
    if operator == "$in":
        return any(compares("$eq", value, each) for each in operand)
    if value is None or _kind(value) is not _kind(operand):
        return False
    # Chroma cuts what it compares an integer with.
    return _COMPARED[operator](value, int(operand) if type(value) is int else operand)


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)
