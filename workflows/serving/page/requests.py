"""An address of the page: the caller, the body of a request, its place among the questions, and its errors."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from anyio import CancelScope
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from graph.errors import BadInput, ServiceUnavailable
from workflows.access.identity import Identity, authorization_of
from workflows.context import QUESTION_LIMIT
from workflows.serving.page.site import Site
from workflows.serving.service import RETRY_AFTER_S, Overloaded, Service

BODY_BYTES = 2**20
"""The largest request, files aside."""

_ID = re.compile(r"[A-Za-z0-9-]{8,64}")


@dataclass(frozen=True)
class Asked:
    """A request, read.

    Attributes:
        site: what is served.
        service: the process that serves it.
        identity: of the caller.
        request: as it came; its body is read, but for a file.
        body: its JSON; empty without any.
    """

    site: Site
    service: Service
    identity: Identity
    request: Request
    body: Mapping[str, Any]

    @property
    def path(self) -> Mapping[str, str]:
        """The names in its address."""
        return self.request.path_params

    @property
    def query(self) -> Mapping[str, str]:
        """The values behind its address."""
        return self.request.query_params

    def text(self, name: str, limit: int = QUESTION_LIMIT) -> str:
        """Return a text of the body, empty where it has none. Raises BadInput for anything else."""
        value = self.body.get(name, "")
        if not isinstance(value, str) or len(value) > limit:
            raise BadInput(f"{name} is to be a text of at most {limit:,} characters", "Correct the request")
        return value

    def key(self, name: str) -> str:
        """Return an id that the page chose. Raises BadInput for anything else."""
        value = self.text(name, 64)
        if not _ID.fullmatch(value):
            raise BadInput(f"{name} is to be 8 to 64 letters, digits and '-'", "Correct the request")
        return value


Reply: TypeAlias = dict[str, Any] | Response
Function: TypeAlias = Callable[[Asked], Reply | Awaitable[Reply]]
Wording: TypeAlias = Callable[[Exception, int, str], dict[str, Any]]
"""Returns what is told of an error, from it, its HTTP status and its message."""


def own_wording(fault: Exception, status: int, message: str) -> dict[str, Any]:
    """Return what is told of an error, as the page and programs of our own read it."""
    return {"kind": type(fault).__name__, "message": message}


def status_of(fault: Exception) -> int:
    """Return the HTTP status that an error is answered with; that of a server behind this one is not its own."""
    if isinstance(fault, ServiceUnavailable):
        return 503
    return getattr(fault, "status", 0) or (400 if isinstance(fault, BadInput) else 503)


class Address:
    """An address as an application: a function answers a request, and errors are told as JSON.

    Args:
        site: what is served.
        service: the process that serves it.
        function: answers; one that is no coroutine may wait, and is called in a thread.
        takes_place: whether it works in a place of the server's, which a client who goes away frees. A request takes a
            place once it was read whole, and the refusal of a server that is full costs no more than the request.
        outlives: whether it takes that place itself, and keeps it when the caller goes away.
        wording: of errors.
    """

    def __init__(
        self,
        site: Site,
        service: Service,
        function: Function,
        *,
        takes_place: bool = False,
        outlives: bool = False,
        wording: Wording = own_wording,
    ) -> None:
        self._site = site
        self._service = service
        self._function = function
        self._takes_place = takes_place
        self._outlives = outlives
        self._wording = wording

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._answer(Request(scope, receive), noting)
        except ClientDisconnect:
            return
        except Exception as fault:
            if has_begun:
                raise
            if self._takes_place:
                self._count(fault)
            await self._error(fault)(scope, receive, send)

    async def _answer(self, request: Request, send: Send) -> None:
        if self._takes_place and self._service.places.is_full:
            raise Overloaded
        body = await _read_body(request)
        if not self._takes_place or self._outlives:
            response = await self._response(request, body)
            await response(request.scope, request.receive, send)
            return
        async with _while_there(request.receive), self._service.places.place():
            response = await self._response(request, body)
            await response(request.scope, request.receive, send)

    async def _response(self, request: Request, body: dict[str, Any]) -> Response:
        shown = authorization_of(request.headers.get("authorization"), request.headers.get("x-api-key"))
        # The keyring looks at files.
        identity = await to_thread(lambda: self._site.keyring().identity_of(shown or body.pop("authorization", None)))
        asked = Asked(self._site, self._service, identity, request, body)
        work: Any = self._function
        result = await (work(asked) if iscoroutinefunction(work) else to_thread(work, asked))
        return result if isinstance(result, Response) else JSONResponse(result)

    def _count(self, fault: Exception) -> None:
        if isinstance(fault, Overloaded):
            self._service.metrics.refused()
        else:
            self._service.metrics.failed(fault)

    def _error(self, fault: Exception) -> Response:
        status = status_of(fault)
        headers = {}
        if isinstance(fault, Overloaded):  # Quickly: a server that is full tells it hundreds of times a second.
            headers, message = {"retry-after": str(RETRY_AFTER_S)}, str(fault)
        else:
            message = self._site.told(fault)
        return JSONResponse({"error": self._wording(fault, status, message)}, status, headers)


@asynccontextmanager
async def _while_there(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block once the client has gone."""
    with CancelScope() as scope:

        async def listen() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            scope.cancel()

        listening = asyncio.create_task(listen())
        try:
            yield
        finally:
            listening.cancel()


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the JSON of a request, or the key of the form that opens an explanation. Raises BadInput."""
    if request.method not in ("POST", "PATCH"):
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0]
    text = bytearray()
    async for part in request.stream():
        text += part
        if len(text) > BODY_BYTES:
            raise BadInput("The request is too large", f"Send at most {BODY_BYTES:,} bytes")
    if kind == "application/x-www-form-urlencoded" and request.url.path.rpartition("/")[0].endswith("/explanation"):
        key = parse_qs(text.decode("ascii", "replace")).get("key", [""])[0]
        return {"authorization": f"Bearer {key}" if key else None}
    if kind != "application/json":
        raise BadInput("The request is no JSON", "Send Content-Type: application/json")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise BadInput("The request is no object of JSON, or nested too deeply", "Correct the request")
    return {name: value for name, value in body.items() if name != "authorization"}
