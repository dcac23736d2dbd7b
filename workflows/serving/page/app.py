"""The page and the API as an application: their routes, each over a function of the modules beside it.

``app`` is what `langgraph dev` serves under ``/page`` beside its API, by ``http.app`` in langgraph.json; `make_app`
is for `mara serve`.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from graph.server_clients import serve_clients
from workflows.serving.guard import AllowedOrigins, Guard
from workflows.serving.page import endpoints, openai_api
from workflows.serving.page.reading import read_on
from workflows.serving.page.requests import Address, Function
from workflows.serving.page.site import Site
from workflows.serving.service import READY, Service

PREFIX = "/page"

_STATIC = Path(__file__).parent / "static"


def make_app(site: Site, service: Service | None = None, *, opens_first: bool = False) -> Starlette:
    """Return the page of a site as an application of its own.

    Args:
        site: what is served.
        service: the process that serves it; None: a new one.
        opens_first: whether the workspace is open before the first request is taken, rather than soon after.
    """
    serving = service or Service()
    programs = [
        Mount("/api", _guarded(site, _api(site, serving))),
        Mount("/v1", _guarded(site, _openai_api(site, serving))),
    ]
    home = Route("/", RedirectResponse(f"{PREFIX[1:]}/"), methods=["GET"])
    own = [home, *_operations(site, serving), *routes(site, serving), *programs]
    return Starlette(routes=own, lifespan=partial(_opening, site, serving, opens_first))


def _guarded(site: Site, inner: Sequence[BaseRoute]) -> Guard:
    return Guard(Starlette(routes=inner), lambda: site.keyring().is_open)


@asynccontextmanager
async def _opening(site: Site, service: Service, opens_first: bool, app: Starlette) -> AsyncIterator[None]:
    own = await to_thread(lambda: site.own.absolute())
    with service.kept_open(own):
        if opens_first:
            await to_thread(service.open_own)
        yield
        await site.runs.end(service.left_s)


def routes(site: Site, service: Service) -> list[BaseRoute]:
    """Return the routes of a site's page, all below its prefix and behind its guard."""
    at = partial(_at, site, service)
    inner = [
        Route("/", FileResponse(_STATIC / "index.html"), methods=["GET"]),
        Mount("/static", StaticFiles(directory=_STATIC)),
        at("/api/setup", endpoints.setup),
        at("/api/welcome", endpoints.first_screen),
        at("/api/filters", endpoints.filters),
        at("/api/conversations", endpoints.list_conversations),
        at("/api/conversations/{id}", endpoints.read_conversation),
        at("/api/conversations/{id}", endpoints.rename_conversation, "PATCH"),
        at("/api/conversations/{id}", endpoints.delete_conversation, "DELETE"),
        at("/api/conversations/{id}/text", endpoints.export_conversation),
        at("/api/turns", endpoints.ask_turn, "POST", takes_place=True, outlives=True),
        at("/api/turns/{id}", endpoints.read_turn),
        at("/api/turns/{id}/events", endpoints.follow_turn),
        at("/api/turns/{id}/stop", endpoints.stop_turn, "POST"),
        at("/api/turns/{id}/why", endpoints.read_why, takes_place=True),
        at("/api/turns/{id}/passages/{number}", read_on),
        at("/api/turns/{id}/sources/{number}", endpoints.read_source),
        at("/api/turns/{id}/sources/{number}/views", endpoints.count_view, "POST"),
        at("/api/documents", endpoints.index_documents, "POST"),
        at("/api/documents/{name:path}", endpoints.add_document, "PUT"),
        at("/explanation/{id}", endpoints.explanation, "POST", takes_place=True),
        Mount("/api", routes=_api(site, service)),
        Mount("/v1", routes=_openai_api(site, service)),
    ]
    own = [Route(PREFIX, RedirectResponse(f"{PREFIX[1:]}/"), methods=["GET"]), *_operations(site, service, PREFIX)]
    return [*own, Mount(PREFIX, _guarded(site, inner))]


def _at(site: Site, service: Service, path: str, function: Function, method: str = "GET", **how: Any) -> Route:
    return Route(path, Address(site, service, function, **how), methods=[method])


def _api(site: Site, service: Service) -> list[BaseRoute]:
    """Return the routes for programs."""
    at = partial(_at, site, service, method="POST", takes_place=True)
    return [at("/ask", endpoints.ask_once), at("/retrieve", endpoints.retrieve)]


def _openai_api(site: Site, service: Service) -> list[BaseRoute]:
    """Return the routes for clients of OpenAI's API."""
    at = partial(_at, site, service, wording=openai_api.wording)
    return [
        at("/models", openai_api.list_models),
        at("/models/{id:path}", openai_api.read_model),
        at("/chat/completions", openai_api.complete, "POST", takes_place=True),
    ]


def _operations(site: Site, service: Service, prefix: str = "") -> list[BaseRoute]:
    """Return the routes for the operator of the server: whether it lives, whether it is ready, and its figures."""

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        return JSONResponse(service.told(), 200 if service.state == READY else 503)

    figures = Guard(Address(site, service, endpoints.metrics), lambda: site.keyring().is_open)
    return [
        Route(f"{prefix}/health", health),
        Route(f"{prefix}/ready", ready),
        Route(f"{prefix}/metrics", figures, methods=["GET"]),
    ]


def _platform_app() -> Starlette:
    """Return the page for a LangGraph server, with what stands before all that the server answers with."""
    site, service = Site(), Service()

    def opening(app: Starlette) -> AbstractAsyncContextManager[None]:
        serve_clients()
        return _opening(site, service, False, app)

    return Starlette(routes=routes(site, service), middleware=[Middleware(AllowedOrigins)], lifespan=opening)


app = _platform_app()
