from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from langsmith.utils import get_env_var

TracingTo = Callable[..., None]


@pytest.fixture
def trace_variables(monkeypatch: pytest.MonkeyPatch) -> Iterator[TracingTo]:
    """Set variables of tracing, and forget all others; langsmith reads them once and remembers."""

    def forget() -> None:
        cast(Any, get_env_var).cache_clear()

    def set_variables(**variables: str) -> None:
        for name in ("LANGSMITH_API_KEY", "LANGSMITH_HIDE_INPUTS", "LANGSMITH_HIDE_OUTPUTS", "OTEL_SERVICE_NAME"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"LANGSMITH_TRACING": "true", **variables}.items():
            monkeypatch.setenv(name, value)
        forget()

    yield set_variables
    monkeypatch.undo()
    forget()
    logging.getLogger("opentelemetry").setLevel(logging.NOTSET)


@pytest.fixture
def closed_address() -> str:
    """An address that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"


@pytest.fixture
def silent_address() -> Iterator[str]:
    """An address that takes connections and never replies."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"
