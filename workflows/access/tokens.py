"""JSON Web Tokens: checked by PyJWT, and what their claims say in a filter or a list of workspaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph.errors import DependencyMissing, NoAccess
from graph.storage.workspace import is_workspace_name

CLAIMS = "$claims."
"""Begins a text that stands for a claim of the token."""

_REFUSED = {
    "ExpiredSignatureError": "The token has expired",
    "InvalidAudienceError": "The token is for another audience",
    "InvalidIssuerError": "The token is of another issuer",
}
_NO_TOKEN = "The key is not known, and is no token that can be trusted"
_NAME_LENGTH = 200
_ASK = "Ask for a new token"


@dataclass(frozen=True, slots=True)
class Verifier:
    """How tokens are checked.

    Attributes:
        key: the public key in PEM, or the shared secret.
        algorithms: those that a token may be signed with.
        issuer: who has to have issued it.
        audience: whom it has to be for.
        name: the claim that names its holder.
        leeway_s: seconds by which clocks may differ.
    """

    key: str
    algorithms: tuple[str, ...]
    issuer: str
    audience: str
    name: str
    leeway_s: float

    def check_key(self) -> None:
        """Check that the key fits the algorithms.

        Raises:
            DependencyMissing: PyJWT is not installed.
            ValueError: it does not.
        """
        jwt = _pyjwt()
        for algorithm in self.algorithms:
            try:
                jwt.get_algorithm_by_name(algorithm).prepare_key(self.key)
            except (jwt.PyJWTError, NotImplementedError, TypeError, ValueError) as fault:
                raise ValueError(f"is no key for {algorithm}") from fault

    def claims_of(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token. Raises NoAccess where it cannot be trusted, or names nobody."""
        jwt = _pyjwt()
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self.key,
                algorithms=list(self.algorithms),
                issuer=self.issuer,
                audience=self.audience,
                leeway=self.leeway_s,
                options={"require": ["exp", "iss", "aud", self.name]},
            )
        except jwt.ImmatureSignatureError as fault:
            raise NoAccess("The token is not valid yet", "Check the clocks of both machines", status=401) from fault
        except jwt.MissingRequiredClaimError as fault:
            raise NoAccess(f"The token has no claim {fault.claim}", _ASK, status=401) from fault
        except jwt.PyJWTError as fault:
            raise NoAccess(_REFUSED.get(type(fault).__name__, _NO_TOKEN), _ASK, status=401) from fault
        name = claims[self.name]
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > _NAME_LENGTH:
            raise NoAccess(f"The token's claim {self.name} is no name", _ASK)
        return claims


def filled_in(where: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter with the values of claims in place of their names. Raises NoAccess where one cannot stand."""
    return _filled(where, lambda name, many: _values(claims, name) if many else _value(claims, name))


def with_samples(where: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter with some value in place of each claim, so that it can be checked before any token comes."""
    return _filled(where, lambda _, many: [1] if many else 1)


def filled_in_names(names: Sequence[str], claims: Mapping[str, Any]) -> tuple[str, ...]:
    """Return names of workspaces with those of claims. Raises NoAccess where a claim names none."""
    found: list[str] = []
    for name in names:
        held = _claim(claims, name.removeprefix(CLAIMS)) if name.startswith(CLAIMS) else name
        found.extend(held if isinstance(held, list) else [held])
    if not found or not all(isinstance(name, str) and (not name or is_workspace_name(name)) for name in found):
        raise NoAccess("The token's claims name no workspace", _ASK)
    return tuple(dict.fromkeys(found))


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


def _value(claims: Mapping[str, Any], name: str) -> Any:
    value = _claim(claims, name)
    if not isinstance(value, str | int | float):
        raise NoAccess(f"The token's claim {name} is no text, number or truth value", _ASK)
    return value


def _values(claims: Mapping[str, Any], name: str) -> list[Any]:
    values = _claim(claims, name)
    if not isinstance(values, list) or not values or not all(isinstance(each, str | int | float) for each in values):
        raise NoAccess(f"The token's claim {name} is no list of values", _ASK)
    return values


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    held = _held(claims, name)
    if held is None:
        raise NoAccess(f"The token has no claim {name}, on which it depends what its holder may see", _ASK)
    return held


def _held(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim by its name, which may hold dots, or by its path within others; None where there is none."""
    if name in claims:
        return claims[name]
    held: Any = claims
    for part in name.split("."):
        held = held.get(part) if isinstance(held, Mapping) else None
    return held


def _pyjwt() -> Any:
    try:
        import jwt
    except ImportError as fault:
        raise DependencyMissing(
            f"Tokens need the package PyJWT ({fault})", "Install it with: pip install 'mara-rag[auth]'"
        ) from fault
    return jwt
