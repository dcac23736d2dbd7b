"""Checks of a state that a person may have edited: its shape, before a node reads it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from workflows.settings.problems import problems_of
from workflows.states.records import Refusal

_HINT = "Correct the edit, or ask again from the start"


def check_shape(state: Mapping[str, Any], shape: Any) -> None:
    """Raise BadInput where a state is not of the shape that a node reads: what is wrong, by name.

    Args:
        state: what the node is given.
        shape: the node's own `TypedDict`.
    """
    try:
        _adapter(shape).validate_python(dict(state), strict=True)
    except ValidationError as fault:
        raise BadInput(f"The state cannot be gone on from ({problems_of(fault)})", _HINT) from fault


def mode_of(state: Mapping[str, Any]) -> Mode:
    """Return the mode that a run began with. Raises BadInput where the state names none."""
    try:
        return Mode(state["mode"])
    except (KeyError, ValueError) as fault:
        known = ", ".join(Mode)
        raise BadInput(f"The state's mode is {state.get('mode')!r}", f"Give one of {known}") from fault


def is_final(refusal: Refusal) -> bool:
    """Tell whether no attempt is left. Raises BadInput where what the state holds is no refusal."""
    check_shape({"refusal": refusal}, dict[str, Refusal])
    return refusal["final"]


def check_same_kind(state: Mapping[str, Any], mode: Mode) -> None:
    """Raise BadInput where a run goes on in a mode that walks, having begun in one that does not, or the reverse."""
    begun = mode_of(state)
    if begun.walks != mode.walks:
        message = f"This run began in mode {begun} and cannot go on in mode {mode}: only one of them walks"
        raise BadInput(message, "Ask again from the start in the other mode")


@cache
def _adapter(shape: Any) -> TypeAdapter[Any]:
    return TypeAdapter(shape)
