"""Which sites may use a LangGraph server through a browser, by which names it may be called, and on which paths.

The platform answers the pages of every site, under every name that points at it. Without keys that is a way into this
machine for any page that its user opens. And it answers whoever asks on the paths by which ``langgraph dev`` empties,
shows and deploys itself, which its authentication does not cover.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from graph.environment import environment
from graph.errors import BadInput, NoAccess
from workflows.access.identity import AUTH_VARIABLE
from workflows.serving.guard import host_of, is_local, is_of_another_site

ORIGINS_VARIABLE = "MARA_ORIGINS"
"""Names further origins, with commas between; ``*``: all of them."""

_WITHIN_THE_PROCESS = "/noauth"
"""The root path of the platform's requests to itself. No request from outside has one."""

OPERATORS = frozenset({"internal", "deploy", "profile"})
"""The parts of paths that nothing else has."""


class AllowedOrigins:
    """Answers the browsers of the sites that langgraph.json and ``MARA_ORIGINS`` name, and of the server's own pages.

    Where the server has no keys, requests of other sites are refused, and so are those that call it by another name
    than this machine's own or that of an allowed site. Where it has keys, a request needs one, and a browser lets no
    other site send it.

    Args:
        app: all that the server answers with.

    Raises:
        BadInput: ``MARA_ORIGINS`` names what is no origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        cors: dict[str, Any] = json.loads(environment().langgraph_http or "{}").get("cors") or {}
        origins = [*cors.get("allow_origins", ()), *_further_origins()]
        self._cors = CORSMiddleware(app, **{**cors, "allow_origins": origins, "allow_private_network": True})
        self._names = {urlsplit(origin).hostname for origin in origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        try:
            if scope["type"] != "lifespan" and not _is_inner(scope):
                self._check(scope.get("method", "GET"), Headers(scope=scope))
        except NoAccess as refusal:
            if scope["type"] == "websocket":
                await WebSocketClose(1008, str(refusal))(scope, receive, send)
            else:
                await JSONResponse({"detail": str(refusal)}, 403)(scope, receive, send)
        else:
            await self._cors(scope, receive, send)

    def _check(self, method: str, headers: Headers) -> None:
        """Raise NoAccess where a request is refused."""
        if environment().mara_auth or self._cors.allow_all_origins:
            return
        host = host_of(headers)
        if not is_local(host) and host not in self._names:
            raise NoAccess(
                "Without keys the server answers to this machine's own names alone",
                f"Set {AUTH_VARIABLE}, or {ORIGINS_VARIABLE} to the address that it is called by",
            )
        if not self._cors.is_allowed_origin(headers.get("origin", "")) and is_of_another_site(method, headers):
            raise NoAccess("Another site asked for this", f"Its operator can allow a site by {ORIGINS_VARIABLE}")


def _is_inner(scope: Scope) -> bool:
    path: str = scope.get("root_path", "")
    return path == _WITHIN_THE_PROCESS or path.startswith(f"{_WITHIN_THE_PROCESS}/")


def _further_origins() -> list[str]:
    named = [origin.strip().rstrip("/") for origin in environment().mara_origins.split(",")]
    origins = [origin.lower() for origin in named if origin]
    for origin in origins:
        if origin != "*" and not _is_origin(origin):
            raise BadInput(
                f"{ORIGINS_VARIABLE} names {origin[:100]!a}, which is no origin",
                "Write origins as https://chat.example.org or http://localhost:3000, with commas between",
            )
    return origins


def _is_origin(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return bool(parts.scheme and parts.hostname) and text == f"{parts.scheme}://{parts.netloc}"
    except ValueError:
        return False


class OperatorPaths:
    """Refuses the operator's paths where a server has keys: the platform would answer whoever asks.

    Args:
        app: all that the server answers with.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if environment().mara_auth and OPERATORS.intersection(scope.get("path", "").split("/")):
            refusal = "This path is for the operator of the server. Use it on a server without MARA_AUTH"
            await JSONResponse({"detail": refusal}, 403)(scope, receive, send)
        else:
            await self._app(scope, receive, send)
