"""What stands before the page: no other site may use it, and it may load nothing from elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import MaraError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_SAME_SITE = ("same-origin", "none")
_OTHER_SITE = "Another site asked for this: open the page itself"

_LOG = logging.getLogger(__name__)


class Guard:
    """Answers the browsers of the page's own visitors alone.

    A browser that follows another site's request says so (``Sec-Fetch-Site``, ``Origin``). Where nobody has to show a
    key, the address asked for must be this machine's own, not somebody else's name that was made to point here.

    Args:
        app: what is guarded.
        is_open: tells whether nobody has to show a key. Where it raises MaraError, nobody is answered.
    """

    def __init__(self, app: ASGIApp, is_open: Callable[[], bool]) -> None:
        self._app = app
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        reason = self._refusal(scope["method"], Headers(scope=scope))
        if reason:
            await JSONResponse({"error": {"message": reason}}, 403, _HEADERS)(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if host and not host_of(headers):
            return f"{host[:100]} is no name of a server"
        if is_of_another_site(method, headers):
            return _OTHER_SITE
        try:
            is_open = self._is_open()
        except MaraError as fault:
            _LOG.critical("Nobody is let in: %s", fault)
            return "The server cannot read its keys: tell whoever runs it"
        if is_open and not is_local(host_of(headers)):
            return (
                f"Nobody has to show a key here, so only this machine is served, and {host[:100]} is not its own name"
            )
        return ""


def is_of_another_site(method: str, headers: Headers) -> bool:
    """Tell whether a browser sends a request for another site's page than the server's own. Links do not count."""
    is_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in _SAME_SITE and not is_link:
        return True
    if "origin" not in headers:
        return False
    origin = _split(headers["origin"])
    return origin is None or origin.netloc.lower() != headers.get("host", "").lower()


def host_of(headers: Headers) -> str:
    """Return the name or address that a request calls the server by, without its port; empty for what is none."""
    host = headers.get("host", "")
    address = _split(f"//{host}")
    if address is None or address.netloc != host or "@" in host:
        return ""
    return address.hostname or ""


def _split(address: str) -> SplitResult | None:
    """Return the parts of an address; None for what is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def is_local(host: str) -> bool:
    """Tell whether a host is this machine by a name or address that nobody else can have."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
