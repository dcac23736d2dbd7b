"""The guard before the page and before a LangGraph server: no other site may use them through a browser.

The page may load nothing from elsewhere. The platform of a LangGraph server answers the pages of every site, under
every name that points at it: without keys, that is a way into this machine for any page that its user opens. And it
answers any caller on the paths by which ``langgraph dev`` empties, shows and deploys itself, which its authentication
does not cover.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graph.environment import environment
from graph.errors import MaraError, NoAccess
from workflows.access.identity import AUTH_VARIABLE

ORIGINS_VARIABLE = "MARA_ORIGINS"
"""Names further origins, with commas between; ``*``: all of them."""

_WITHIN_THE_PROCESS = "/noauth"
"""The root path of the platform's requests to itself. No request from outside has one."""

_OPERATORS = frozenset({"internal", "deploy", "profile"})
"""The parts of paths that are the operator's alone."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
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

    A browser that follows another site's request says so (``Sec-Fetch-Site``, ``Origin``). Where no caller has to show
    a key, the address asked for must be this machine's own, not another name that was made to point here.

    Args:
        app: what is guarded.
        is_open: tells whether no key is needed. Where it raises MaraError, no caller is answered.
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
            _LOG.critical("No client is let in: %s", fault)
            return "The server cannot read its keys: tell its operator"
        if is_open and not is_local(host_of(headers)):
            return f"Keys are not asked for here, so only this machine is served, and {host[:100]} is not its own name"
        return ""


class AllowedOrigins:
    """Answers the browsers of the sites that langgraph.json and ``MARA_ORIGINS`` name, and of the server's own pages.

    Where the server has no keys, requests of other sites are refused, and so are those that call it by another name
    than this machine's own or that of an allowed site. Where it has keys, a request needs one, a browser lets no other
    site send it, and the operator's paths are refused.

    Args:
        app: all that the server answers with.
    """

    def __init__(self, app: ASGIApp) -> None:
        cors: dict[str, Any] = json.loads(environment().langgraph_http or "{}").get("cors") or {}
        named = environment().mara_origins.lower().split(",")
        further = (origin.strip().rstrip("/") for origin in named if origin.strip())
        origins = [*cors.get("allow_origins", ()), *further]
        self._cors = CORSMiddleware(app, **{**cors, "allow_origins": origins, "allow_private_network": True})
        self._names = {parts.hostname for origin in origins if (parts := _split(origin))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        try:
            if scope["type"] != "lifespan":
                self._check(scope)
        except NoAccess as refusal:
            if scope["type"] == "websocket":
                await WebSocketClose(1008, str(refusal))(scope, receive, send)
            else:
                await JSONResponse({"detail": str(refusal)}, 403)(scope, receive, send)
        else:
            await self._cors(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        """Raise NoAccess where a request is refused."""
        if environment().mara_auth:
            if _OPERATORS.intersection(scope["path"].split("/")):
                raise NoAccess(
                    "This path is for the operator of the server", f"Use it on a server without {AUTH_VARIABLE}"
                )
            return
        is_inner = f"{scope.get('root_path', '')}/".startswith(f"{_WITHIN_THE_PROCESS}/")
        if is_inner or self._cors.allow_all_origins:
            return
        headers = Headers(scope=scope)
        host = host_of(headers)
        if not is_local(host) and host not in self._names:
            raise NoAccess(
                "Without keys the server answers to this machine's own names alone",
                f"Set {AUTH_VARIABLE}, or {ORIGINS_VARIABLE} to the address that it is called by",
            )
        is_allowed = self._cors.is_allowed_origin(headers.get("origin", ""))
        if not is_allowed and is_of_another_site(scope.get("method", "GET"), headers):
            raise NoAccess("Another site asked for this", f"Its operator can allow a site by {ORIGINS_VARIABLE}")


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
    """Tell whether a host is this machine by a name or address that no other machine can have."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
