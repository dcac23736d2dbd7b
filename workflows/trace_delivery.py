"""Traces of a command: sent in the background, and waited for at its end for a moment only."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

DELIVERY_S = 3.0
"""For so long a command that is done waits until its traces are sent."""

_SWITCHES = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING")


@contextmanager
def traces_delivered(wait_s: float = DELIVERY_S) -> Iterator[None]:
    """Send what is traced within, where the environment asks for tracing; say on standard error what was not sent.

    A server that refuses connections costs no time; one that does not answer costs at most ``wait_s`` seconds after
    the work is done. Neither changes anything else.
    """
    if not any(os.environ.get(name, "").lower() == "true" for name in _SWITCHES):
        yield
        return
    # A thread that is no daemon would keep the process alive until the last retry.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    from langsmith import Client
    from langsmith.run_helpers import tracing_context

    logging.getLogger("langsmith").setLevel(logging.CRITICAL)
    faults: list[Exception] = []
    client = Client(tracing_error_callback=faults.append)
    try:
        with tracing_context(client=client):
            yield
    finally:
        if _is_reachable(client.api_url, wait_s):
            client.flush(timeout=wait_s)
        if faults or (client.tracing_queue is not None and client.tracing_queue.unfinished_tasks):
            reason = f": {type(faults[0]).__name__}" if faults else f" within {wait_s:g} s"
            print(  # noqa: T201
                f"Traces were not sent to {client.api_url}{reason}. Check LANGSMITH_ENDPOINT and LANGSMITH_API_KEY,"
                " or set LANGSMITH_TRACING=false.",
                file=sys.stderr,
            )


def _is_reachable(address: str, wait_s: float) -> bool:
    """Tell whether anything takes connections there."""
    place = urlsplit(address)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=wait_s).close()
    except OSError:
        return False
    return True
