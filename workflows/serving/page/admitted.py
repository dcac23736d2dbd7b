"""Endpoints that work on a question: each takes a place of the server's, or is refused."""

from __future__ import annotations

import asyncio
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from workflows.serving.admission import Gone, Overloaded
from workflows.serving.page.requests import Asked, Function, Incomplete, Read, answered, error_response
from workflows.serving.page.site import Site
from workflows.serving.service import Service

T = TypeVar("T")

Work = Callable[[Asked], Awaitable["dict[str, Any] | Response"]]


class Admitted:
    """An endpoint whose work is done in a place of the server's; who goes away frees it.

    Nobody takes a place before their request was read whole. The refusal of a server that is full costs no more than
    the request itself.

    Args:
        site: what is served.
        service: the process that serves it.
        work: what answers.
    """

    def __init__(self, site: Site, service: Service, work: Work) -> None:
        self._site = site
        self._service = service
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._answer(scope, receive, noting)
        except Gone:
            return
        except Exception as fault:
            if has_begun:
                raise
            self._count(fault)
            await error_response(self._site, fault)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        admission = self._service.admission
        if admission.is_full:
            raise admission.refusal()
        read = await Read.of(Request(scope, receive))
        async with _left(receive) as gone, admission.place(gone):
            asked = await to_thread(read.asked, self._site, self._service)
            given = await _unless_gone(self._work(asked), gone)
            response = given if isinstance(given, Response) else JSONResponse(given)
            await response(scope, receive, send)

    def _count(self, fault: Exception) -> None:
        if isinstance(fault, Overloaded):
            self._service.metrics.refused()
        elif not isinstance(fault, Incomplete):
            self._service.metrics.failed(fault)


def in_a_thread(function: Function) -> Work:
    """Return the work of a function that may wait."""

    async def work(asked: Asked) -> Response:
        return await to_thread(answered, function, asked)

    return work


@asynccontextmanager
async def _left(receive: Receive) -> AsyncIterator[asyncio.Future[None]]:
    """Yield what is done once whoever asked has gone."""

    async def listen() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    gone = asyncio.ensure_future(listen())
    try:
        yield gone
    finally:
        gone.cancel()


async def _unless_gone(work: Awaitable[T], gone: asyncio.Future[None]) -> T:
    """Return what comes of some work; whoever has gone has it cancelled. Raises Gone."""
    task = asyncio.ensure_future(work)
    first: set[asyncio.Future[Any]] = {task, gone}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task})
    raise Gone
