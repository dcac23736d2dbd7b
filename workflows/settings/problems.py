"""Errors that pydantic finds in settings or a state, in words that name what the user typed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from graph.errors import BadInput
from workflows.settings.renamed import SettingsForm

Form = TypeVar("Form", bound=SettingsForm)

PROBLEMS_TOLD = 5
"""Of so many things that are wrong with settings or a state a message tells at most."""

SETTINGS_HINT = "docs/settings.md shows how to list every setting with its limits"
"""The hint for a setting that cannot be used."""

_WORDS = {"extra_forbidden": "is not known", "missing": "is missing"}
"""The message for a kind of error; other kinds have pydantic's, which repeats no value: a text may be of a passage that
its reader must not see."""


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
        raise BadInput(f"A setting cannot be used ({problems_of(fault, spelled)})", SETTINGS_HINT) from fault


def problems_of(fault: ValidationError, spelled: Callable[[str], str] = str) -> str:
    """Return what is wrong with settings or a state, each by name, on one line; of many the first few.

    Args:
        fault: what pydantic found.
        spelled: how the name of a setting is written where the user gave it.
    """
    problems = [_problem(error, spelled) for error in fault.errors()]
    more = [f"and {len(problems) - PROBLEMS_TOLD} more"] if len(problems) > PROBLEMS_TOLD else []
    return "; ".join([*problems[:PROBLEMS_TOLD], *more])


def _problem(error: Mapping[str, Any], spelled: Callable[[str], str]) -> str:
    name = ".".join([*(spelled(str(part)) for part in error["loc"][:1]), *map(str, error["loc"][1:])])
    if error["type"] in _WORDS:
        return f"{name} {_WORDS[error['type']]}"
    return ": ".join(filter(None, (name, error["msg"].removeprefix("Value error, "))))
