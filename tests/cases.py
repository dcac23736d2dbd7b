"""Cases for parametrize, most of them slow; and what counts as a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

EITHER_CHROMA = pytest.mark.parametrize("where", ["embedded", "server"], indirect=True)
"""Both are always tried: the server answers to this otherwise than the embedded Chroma, or is most likely to."""

PASSWORD_PARTS = ("qzx", "wvk")
"""The parts of the password of `unreadable_addresses`, either of which is a secret."""


def unreadable_addresses(scheme: str) -> list[str]:
    """Return addresses of whose password clients read different parts as such."""
    first, rest = PASSWORD_PARTS
    raw = [f"{first}{mark}{rest}" for mark in ("@", "/", "?", "#", "\\", " ", "\t", "[")]
    # The number before the mark may be taken for a port.
    return [f"{scheme}://me:{password}@host/x" for password in (*raw, f"1/{rest}", f"1?{rest}", f"1#{rest}")]


def mostly_slow(cases: Mapping[str, Any] | Iterable[Any], quick: int) -> list[Any]:
    """Return cases of which all but the first few are slow: `make test-slow` runs those.

    Args:
        cases: the cases, or {their id: case}; a tuple is one case of several arguments.
        quick: how many always run.
    """
    named = cases.items() if isinstance(cases, Mapping) else ((None, case) for case in cases)
    params = []
    for number, (name, case) in enumerate(named):
        arguments = case if isinstance(case, tuple) else (case,)
        params.append(pytest.param(*arguments, id=name, marks=[pytest.mark.slow] if number >= quick else []))
    return params


def refuse_warnings() -> None:
    """Make every warning of a test an error, but for sockets that earlier tests left to the garbage collector."""
    warnings.simplefilter("error")
    for harmless in (ResourceWarning, pytest.PytestUnraisableExceptionWarning):
        warnings.simplefilter("ignore", harmless)
