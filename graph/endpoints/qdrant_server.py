"""Reaching a Qdrant server: its address without its secrets, a client that waits no longer than it is told, faults."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import timeout_s
from graph.environment import environment
from graph.errors import BadInput, DependencyMissing, MaraError, StoreUnavailable, faults_behind

URL_VARIABLE = "MARA_QDRANT_URL"
KEY_VARIABLE = "MARA_QDRANT_KEY"
_REPAIR = "If it stays so, `mara doctor --repair` makes the collections again from the record"


def qdrant_address() -> Address:
    """Return the address of the server that ``MARA_QDRANT_URL`` names.

    Raises:
        BadInput: it names none; the message shows nothing secret of it.
    """
    text = environment().mara_qdrant_url or ""
    if not text:
        raise BadInput(
            f"The vectors of this workspace are on a Qdrant server, and {URL_VARIABLE} is not set",
            "Set it to the server's address, such as http://localhost:6333, or MARA_VECTORS to another store",
        )
    return Address.parse(text, URL_VARIABLE, "http://localhost:6333")


def connect(address: Address) -> Any:
    """Return the client of a Qdrant server, the process's only one, whose requests take ``MARA_TIMEOUT_S`` at most.

    Without a port in the address, it is Qdrant's own, 6333. The key of ``MARA_QDRANT_KEY`` is sent along, and so are
    name and password of the address.

    Raises:
        DependencyMissing: qdrant-client is not installed.
    """
    return _client(address, timeout_s(), environment().mara_qdrant_key or "")


@cache
def _client(address: Address, seconds: float, key: str) -> Any:
    try:
        from qdrant_client import QdrantClient
    except ImportError as fault:
        raise DependencyMissing(
            f"A Qdrant server needs qdrant-client, which cannot be loaded ({fault})",
            "Install it: pip install 'mara-rag[qdrant]'",
        ) from fault
    headers = {"Authorization": address.authorization} if address.credentials else {}
    return QdrantClient(
        url=address.url,
        api_key=key or None,
        timeout=math.ceil(seconds),
        metadata=headers,
        check_compatibility=False,
    )


def unavailable(url: str, fault: Exception) -> MaraError:
    """Translate what Qdrant's client raised into an error that says what the server did and what to do."""
    if isinstance(fault, MaraError):
        return fault
    status = next((each.status_code for each in faults_behind(fault) if hasattr(each, "status_code")), None)
    if status in (401, 403):
        return StoreUnavailable(
            f"The Qdrant server at {url} refuses the credentials", f"Put its key into {KEY_VARIABLE}"
        )
    if status is not None:
        said = censored(str(fault)).splitlines()[0]
        return StoreUnavailable(f"The Qdrant server at {url} answers with an error ({said})", _REPAIR)
    return StoreUnavailable(
        f"The Qdrant server at {url} does not answer as it should ({type(fault).__name__})",
        f"Start it, or check {URL_VARIABLE}",
    )
