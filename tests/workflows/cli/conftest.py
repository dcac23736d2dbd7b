from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import pytest


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Mapping[str, str]]:
    """The shell of a person: no colours, no word of a CI."""
    for name in ("CI", "GITHUB_ACTIONS", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda: dict(os.environ)
