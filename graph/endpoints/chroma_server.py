"""Reaching a Chroma server: its address without its secrets, a client that waits no longer than it is told, faults."""

from __future__ import annotations

import ssl
import threading
from functools import cache
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

from graph.endpoints.address import Address, censored
from graph.endpoints.openai_protocol import timeout_s
from graph.environment import environment
from graph.errors import MaraError, StoreUnavailable, faults_behind

_CONNECTING = threading.Lock()
_REPAIR = "If it stays so, `mara doctor --repair` makes the collections again from the record"


def server_address(text: str) -> Address:
    """Return the address in a text such as ``https://name:password@host:8000/path/``.

    Raises:
        BadInput: it is none; the message shows nothing secret of it.
    """
    return Address.parse(text, "MARA_CHROMA_URL", "http://localhost:8000")


def connect(address: Address) -> Any:
    """Return Chroma's client of a server, whose requests take ``MARA_TIMEOUT_S`` at most.

    It is the process's only one for that server, as closing one leaves sockets open. A token is taken from Chroma's
    own variables: ``CHROMA_CLIENT_AUTH_PROVIDER``, ``CHROMA_CLIENT_AUTH_CREDENTIALS``.

    Raises:
        StoreUnavailable: the server does not answer, or refuses.
    """
    token = environment().chroma_client_auth_provider, environment().chroma_client_auth_credentials
    try:
        with _CONNECTING:
            return _client(address, timeout_s(), token)
    except Exception as fault:
        raise unavailable(address.url, fault) from fault


@cache
def _client(address: Address, seconds: float, token: tuple[str, str]) -> Any:
    """Make a client; Chroma itself reads the token, which is here so that another one makes another client."""
    import chromadb
    from chromadb.config import Settings

    _check_heartbeat(address.url, seconds)
    client = chromadb.HttpClient(
        host=address.url,
        port=address.port,
        ssl=address.url.startswith("https:"),
        headers={"Authorization": address.authorization} if address.credentials else {},
        settings=Settings(
            anonymized_telemetry=False, chroma_server_host=address.url, chroma_server_http_port=address.port
        ),
    )
    # Chroma's client waits for ever, and has no setting for it.
    client._server._session.timeout = seconds  # type: ignore[attr-defined]
    return client


def unavailable(url: str, fault: Exception) -> MaraError:
    """Translate what Chroma's client raised into an error that says what the server did and what to do."""
    from chromadb.errors import ChromaError, NotFoundError

    if isinstance(fault, MaraError):
        return fault
    if _refuses(fault):
        return StoreUnavailable(
            f"The Chroma server at {url} refuses the credentials",
            "Put name and password into MARA_CHROMA_URL, or a token into CHROMA_CLIENT_AUTH_CREDENTIALS",
        )
    if isinstance(fault, NotFoundError):
        return StoreUnavailable(f"The Chroma server at {url} no longer holds what this index was opened with", _REPAIR)
    if isinstance(fault, ChromaError):
        return StoreUnavailable(f"The Chroma server at {url} answers with an error ({censored(str(fault))})", _REPAIR)
    return StoreUnavailable(
        f"The Chroma server at {url} does not answer as it should ({type(fault).__name__})",
        "Start it with `chroma run`, or unset MARA_CHROMA_URL to use the embedded one",
    )


def _check_heartbeat(url: str, seconds: float) -> None:
    """Ask for a sign of life, whatever it is: the client that is made next would wait for it without end.

    Nothing secret is sent, so no certificate is looked at; the client does.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        urlopen(f"{url}/api/v2/heartbeat", timeout=seconds, context=context).close()
    except HTTPError as answer:
        answer.close()


def _refuses(fault: BaseException) -> bool:
    """Tell whether any of the faults behind this one is that of credentials that are missing or wrong."""
    from chromadb.errors import AuthorizationError, ChromaAuthError

    return any(
        isinstance(each, AuthorizationError | ChromaAuthError)
        or getattr(getattr(each, "response", None), "status_code", 0) in (401, 403)
        for each in faults_behind(fault)
    )
