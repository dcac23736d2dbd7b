"""The addresses for programs and operators: questions as JSON, each in a place of the server's, and its figures.

A question is answered as `mara ask --json` writes it, or by the passages alone.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from anyio import CancelScope
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from workflows.ask import ask
from workflows.context import QUESTION_LIMIT, Context, asking, check_question
from workflows.results import TOTAL
from workflows.runtime.own_run import Brake, braked
from workflows.serving.metrics import CONTENT_TYPE
from workflows.serving.page.requests import (
    Asked,
    Function,
    Incomplete,
    Read,
    answered,
    error_response,
    identity_of,
    shown_key,
)
from workflows.serving.page.site import Site
from workflows.serving.places import Overloaded
from workflows.serving.service import READY, Service

Work = Callable[[Asked], Awaitable["dict[str, Any] | Response"]]

RETRIEVAL_SETTINGS = ("workspace", "mode", "where", "as_of", "top_k")

ASK_SETTINGS = ("workflow", *RETRIEVAL_SETTINGS)
"""What a program may set beside the question."""


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
        except Exception as fault:
            if has_begun:
                raise
            self._count(fault)
            await error_response(self._site, fault)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        places = self._service.places
        if places.is_full:
            raise places.refusal()
        read = await Read.of(Request(scope, receive))
        async with _while_there(receive), places.place():
            asked = await to_thread(read.asked, self._site, self._service)
            given = await self._work(asked)
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


async def ask_once(asked: Asked) -> dict[str, Any]:
    """Return the whole result of a question."""
    question, context = _read(asked, ASK_SETTINGS)
    return await _counted(asked, lambda brake: dict(ask(question, context, callbacks=[brake])))


async def retrieve(asked: Asked) -> dict[str, Any]:
    """Return the passages for a question, and how they were found."""
    question, context = _read(asked, RETRIEVAL_SETTINGS)
    return await _counted(asked, lambda brake: _retrieved(question, context, brake))


async def _counted(asked: Asked, work: Any) -> dict[str, Any]:
    result: dict[str, Any] = await braked(work)
    asked.service.metrics.answered(result)
    return result


def _retrieved(question: str, context: Context, brake: Brake) -> dict[str, Any]:
    from workflows.retrieval import graph

    start = time.perf_counter()
    result: dict[str, Any] = graph.invoke(asking(question), {"callbacks": [brake]}, context=context)
    total_ms = round((time.perf_counter() - start) * 1000, 3)
    return {**result, "timings_ms": {**result["timings_ms"], TOTAL: total_ms}}


def _read(asked: Asked, allowed: tuple[str, ...]) -> tuple[str, Context]:
    """Return the question of a request, and its settings within what its asker may see. Raises BadInput."""
    question = check_question(asked.text("question", 10 * QUESTION_LIMIT))
    settings: Mapping[str, Any] = {name: value for name, value in asked.body.items() if name != "question"}
    return question, asked.site.context(asked.identity, settings, allowed)


async def health(service: Service, request: Request) -> Response:
    """Say that the process lives; nothing is looked at."""
    return JSONResponse({"status": "ok"})


async def ready(service: Service, request: Request) -> Response:
    """Say whether questions should come here: 503 while it starts or drains."""
    return JSONResponse(service.told(), 200 if service.state == READY else 503)


async def metrics(site: Site, service: Service, request: Request) -> Response:
    """Return the figures for Prometheus, to whoever may watch the server."""
    (await to_thread(identity_of, site, shown_key(request))).check_may_watch()
    return Response(await to_thread(service.metrics.text), media_type=CONTENT_TYPE)
