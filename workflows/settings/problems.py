"""Errors that pydantic finds in settings or a state, in words that name what the user typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from graph.errors import BadInput
from workflows.settings.renamed import SettingsForm

Form = TypeVar("Form", bound=SettingsForm)

PROBLEMS_TOLD = 5
"""Of so many things that are wrong with settings or a state a message tells at most."""

SETTINGS_HINT = "docs/settings.md shows how to list every setting with its limits"
"""The hint for a setting that cannot be used."""

_WORDS: Mapping[str, str] = {
    "greater_than_equal": "has to be {ge} or more",
    "greater_than": "has to be more than {gt}",
    "less_than_equal": "has to be {le} or less",
    "less_than": "has to be less than {lt}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "has to be a whole number"),
    "int_parsing_size": "has to be a whole number of fewer digits",
    **dict.fromkeys(("float_type", "float_parsing"), "has to be a number"),
    "finite_number": "has to be a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "has to be true or false"),
    "string_type": "has to be a text",
    "string_too_long": "has to have {max_length} characters at most",
    "string_too_short": "has to have {min_length} characters at least",
    **dict.fromkeys(("enum", "literal_error"), "has to be {expected}"),
    **dict.fromkeys(("dict_type", "mapping_type"), "has to be an object of keys and values"),
    **dict.fromkeys(("list_type", "tuple_type"), "has to be a list"),
    "too_long": "has to have {max_length} entries at most",
    "too_short": "has to have {min_length} entries at least",
    "none_required": "has to be empty",
    "extra_forbidden": "is not known",
    "missing": "is missing",
}
"""The message for each kind of error; other kinds keep pydantic's words."""

_ABSENT = ("missing", "extra_forbidden")
"""Kinds whose input is no value that was given for the name."""


def filled_in(form: type[Form], settings: Mapping[str, Any], spelled: Callable[[str], str] = str) -> Form:
    """Return a form with settings that a person gave; None means not given.

    Args:
        form: the settings that there are.
        settings: by name.
        spelled: how the name of a setting is written where the user gave it.

    Raises:
        BadInput: a setting is unknown or out of its range, named in the message.
    """
    try:
        return form(**{name: value for name, value in settings.items() if value is not None})
    except ValidationError as fault:
        problems = problems_of(fault, spelled, form.known_names())
        raise BadInput(f"A setting cannot be used ({problems})", SETTINGS_HINT) from fault


def closest(name: str, known: Mapping[str, str]) -> str:
    """Return the known name that is closest to one that was typed, as it is written today; empty without a close one.

    Args:
        name: what was typed.
        known: how each name that there is or was is written today.
    """
    return "".join(known[each] for each in get_close_matches(name, known, 1))


def problems_of(
    fault: ValidationError, spelled: Callable[[str], str] = str, known: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return what is wrong with settings or a state, each by name, on one line; of many the first few.

    Args:
        fault: what pydantic found.
        spelled: how the name of a setting is written where the user gave it.
        known: the names that there are, see `closest`.
    """
    problems = [_problem(error, spelled, known) for error in fault.errors()]
    more = [f"and {len(problems) - PROBLEMS_TOLD} more"] if len(problems) > PROBLEMS_TOLD else []
    return "; ".join([*problems[:PROBLEMS_TOLD], *more])


def _problem(error: Mapping[str, Any], spelled: Callable[[str], str], known: Mapping[str, str]) -> str:
    name = ".".join([*(spelled(str(part)) for part in error["loc"][:1]), *map(str, error["loc"][1:])])
    words = _WORDS.get(error["type"])
    if words is None:
        return ": ".join(filter(None, (name, error["msg"].removeprefix("Value error, "))))
    suffix = "" if error["type"] in _ABSENT else _given(error["input"])
    limits = {
        key: f"{limit:.15g}" if isinstance(limit, float) else limit for key, limit in error.get("ctx", {}).items()
    }
    meant = closest(".".join(map(str, error["loc"])), known) if error["type"] == "extra_forbidden" else ""
    return f"{name} {words.format_map(limits)}{suffix}{meant and f': did you mean {meant}?'}".lstrip()


def _given(value: object) -> str:
    """Return what was given, where it is a number: a text may be of a passage that its reader must not see."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f", not {value:.15g}" if is_number else ""
