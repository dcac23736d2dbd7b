"""A request to the page: who asks, what its body holds, and how errors are told."""

from __future__ import annotations

import asyncio
import json
import re
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from graph.errors import BadInput, MaraError
from workflows.access.identity import Identity, authorization_of
from workflows.context import QUESTION_LIMIT
from workflows.serving.page.site import Site
from workflows.serving.places import Overloaded
from workflows.serving.service import Service

BODY_BYTES = 2**20
"""The largest request, files aside."""

BODY_S = 30.0
"""The time that a body may take, beside what its size allows."""

LEAST_BYTES_S = 10_000
"""The bytes that have to come in a second beyond that time."""

_ID = re.compile(r"[A-Za-z0-9-]{8,64}")


class Incomplete(MaraError):
    """A request did not come whole: it broke off, or took too long.

    Attributes:
        status: the HTTP status to answer with, where anybody is left to read it.
    """

    status = 408


@dataclass(frozen=True)
class Asked:
    """A request, read.

    Attributes:
        site: what is served.
        service: the process that serves it.
        identity: who asks.
        path: what its address names.
        query: what stands behind the address.
        body: its JSON; empty without any.
    """

    site: Site
    service: Service
    identity: Identity
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]

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


Endpoint = Callable[[Request], Awaitable[Response]]
Function = Callable[[Asked], "dict[str, Any] | Response"]


def plain(site: Site, service: Service, function: Function) -> Endpoint:
    """Return the endpoint of a function that may wait: it is called in a thread."""

    async def endpoint(request: Request) -> Response:
        read = await Read.of(request)
        return await to_thread(lambda: answered(function, read.asked(site, service)))

    return told(site, endpoint)


def answered(function: Function, asked: Asked) -> Response:
    """Return what a function answers, as a response."""
    given = function(asked)
    return given if isinstance(given, Response) else JSONResponse(given)


@dataclass(frozen=True)
class Read:
    """A request whose body was read, and who says to have sent it."""

    request: Request
    body: Mapping[str, Any]
    authorization: str | None

    @classmethod
    async def of(cls, request: Request) -> Read:
        """Read a request. Raises BadInput."""
        body = await _read_body(request)
        return cls(request, body, shown_key(request) or body.pop("authorization", None))

    def asked(self, site: Site, service: Service) -> Asked:
        """Return the request with who asks. Looks at files. Raises NoAccess."""
        identity = identity_of(site, self.authorization)
        return Asked(site, service, identity, self.request.path_params, self.request.query_params, self.body)


def told(site: Site, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that tells errors as JSON."""

    async def telling(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as fault:
            return error_response(site, fault)

    return telling


def error_response(site: Site, fault: Exception) -> Response:
    """Return what tells of an error."""
    if isinstance(fault, Overloaded):  # Quickly: a server that is full tells it hundreds of times a second.
        return _error(fault, str(fault), 429, {"retry-after": str(fault.retry_after_s)})
    status = getattr(fault, "status", 0) or (400 if isinstance(fault, BadInput) else 503)
    headers = {"connection": "close"} if isinstance(fault, Incomplete) else None
    return _error(fault, site.told(fault), status, headers)


def _error(fault: Exception, message: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"kind": type(fault).__name__, "message": message}}, status, headers)


def shown_key(request: Request) -> str | None:
    """Return what a request shows to say who asks."""
    return authorization_of(request.headers.get("authorization"), request.headers.get("x-api-key"))


def identity_of(site: Site, authorization: str | None) -> Identity:
    """Return who asks. Raises NoAccess."""
    return site.keyring().identity_of(authorization)


async def parts_of(request: Request) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes. Raises Incomplete."""
    parts, begun, size = request.stream(), asyncio.get_running_loop().time(), 0
    while True:
        try:
            async with asyncio.timeout_at(begun + BODY_S + size / LEAST_BYTES_S):
                part = await anext(parts, None)
        except ClientDisconnect:
            raise Incomplete("The request broke off", "Send it again") from None
        except TimeoutError:
            raise Incomplete("The request takes too long to come", "Send it again, faster") from None
        if part is None:
            return
        size += len(part)
        yield part


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the JSON of a request, or the key of the form that opens an explanation. Raises BadInput."""
    if request.method not in ("POST", "PATCH"):
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0]
    text = bytearray()
    async for part in parts_of(request):
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
    except RecursionError:
        raise BadInput("The request is nested too deeply", "Correct the request") from None
    except ValueError as fault:
        raise BadInput("The request is no JSON", "Correct the request") from fault
    if not isinstance(body, dict):
        raise BadInput("The request is no object of JSON", "Correct the request")
    return {name: value for name, value in body.items() if name != "authorization"}
