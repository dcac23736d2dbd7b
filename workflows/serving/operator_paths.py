"""The paths by which ``langgraph dev`` empties, shows and deploys itself, which its authentication does not cover."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from graph.environment import environment

OPERATORS = frozenset({"internal", "deploy", "profile"})
"""The parts of paths that nothing else has."""


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
