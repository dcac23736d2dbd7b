"""The claims of tokens: what they say in a filter or a list of workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph.errors import NoAccess
from graph.storage.workspace import is_workspace_name

CLAIMS = "$claims."
"""Begins a text that stands for a claim of the token."""

ASK = "Ask for a new token"


def filled_in(where: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter with the values of claims in place of their names. Raises NoAccess where one cannot stand."""
    return _filled(where, lambda name, many: _value(claims, name, many))


def with_samples(where: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter with some value in place of each claim, so that it can be checked before any token comes."""
    return _filled(where, lambda _, many: [1] if many else 1)


def filled_in_names(names: Sequence[str], claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of workspaces with those of claims. Raises NoAccess where a claim names none."""
    values: list[str] = []
    for name in names:
        claim = _claim(claims, name.removeprefix(CLAIMS)) if name.startswith(CLAIMS) else name
        values.extend(claim if isinstance(claim, list) else [claim])
    if not values or not all(isinstance(name, str) and (not name or is_workspace_name(name)) for name in values):
        raise NoAccess("The token's claims name no workspace", ASK)
    return tuple(dict.fromkeys(values))


def is_granted(granted: bool | str, claims: Mapping[str, Any]) -> bool:
    """Tell whether something is granted, by itself or by a claim that is true."""
    return granted if isinstance(granted, bool) else _held(claims, granted.removeprefix(CLAIMS)) is True


def is_claim(value: object) -> bool:
    """Tell whether a value of the file stands for a claim."""
    return isinstance(value, str) and value.startswith(CLAIMS)


def names_claims(where: Mapping[str, Any]) -> bool:
    """Tell whether a filter stands on claims."""
    operands = (
        each for wanted in where.values() for each in (wanted.values() if isinstance(wanted, dict) else [wanted])
    )
    return any(map(is_claim, operands))


def _filled(where: Mapping[str, Any], claim: Callable[[str, bool], Any]) -> dict[str, Any]:
    def fill(operand: Any, many: bool = False) -> Any:
        return claim(operand.removeprefix(CLAIMS), many) if is_claim(operand) else operand

    return {
        key: {sign: fill(operand, sign in ("$in", "$nin")) for sign, operand in wanted.items()}
        if isinstance(wanted, Mapping)
        else fill(wanted)
        for key, wanted in where.items()
    }


def _value(claims: Mapping[str, Any], name: str, many: bool) -> Any:
    """Return a claim that stands in a filter. Raises NoAccess where it is a condition of its own, or no list."""
    claim = _claim(claims, name)
    values = claim if many else [claim]
    if not isinstance(values, list) or not values or not all(isinstance(each, str | int | float) for each in values):
        raise NoAccess(f"The token's claim {name} cannot stand in a filter", ASK)
    return claim


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    claim = _held(claims, name)
    if claim is None:
        raise NoAccess(f"The token has no claim {name}, on which it depends what its holder may see", ASK)
    return claim


def _held(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, which may hold dots, or by its path within others; None where there is none."""
    if name in claims:
        return claims[name]
    claim: Any = claims
    for part in name.split("."):
        claim = claim.get(part) if isinstance(claim, Mapping) else None
    return claim
