"""The page and the API as an application: their routes, each over a function of the modules beside it.

``app`` is what `langgraph dev` serves under ``/page`` beside its API, by ``http.app`` in langgraph.json; `make_app`
is for `mara serve`.
"""

from __future__ import annotations

from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, request_response

from graph.server_clients import serve_clients
from workflows.serving.allowed_origins import AllowedOrigins, OperatorPaths
from workflows.serving.guard import Guard
from workflows.serving.page.api import Admitted, ask_once, health, in_a_thread, metrics, ready, retrieve
from workflows.serving.page.endpoints import (
    add_document,
    ask,
    delete_conversation,
    explanation,
    filters,
    index_documents,
    list_conversations,
    read_conversation,
    read_turn,
    rename_conversation,
    setup,
)
from workflows.serving.page.reading import count_view, read_source
from workflows.serving.page.requests import Endpoint, plain, told
from workflows.serving.page.site import Site
from workflows.serving.service import Service

PREFIX = "/page"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def make_app(site: Site, service: Service | None = None, *, opens_first: bool = False) -> Starlette:
    """Return the page of a site as an application of its own.

    Args:
        site: what is served.
        service: the process that serves it; None: a new one.
        opens_first: whether the workspace is open before the first request is taken, rather than soon after.
    """
    serving = service or Service()
    home = Route("/", _redirect(f"{PREFIX[1:]}/"))
    guarded = Guard(Starlette(routes=_api(site, serving)), lambda: site.keyring().is_open)
    own = [home, *_operations(site, serving), *routes(site, serving), Mount("/api", guarded)]
    return Starlette(routes=own, lifespan=partial(_opening, site, serving, opens_first))


@asynccontextmanager
async def _opening(site: Site, service: Service, opens_first: bool, app: Starlette) -> AsyncIterator[None]:
    own = await to_thread(lambda: site.workspaces.own.absolute())
    with service.kept_open(own):
        if opens_first:
            await to_thread(service.open_own)
        yield


def routes(site: Site, service: Service) -> list[BaseRoute]:
    """Return the routes of a site's page, all below its prefix and behind its guard."""
    plainly = partial(plain, site, service)
    admitted = partial(Admitted, site, service)
    inner = Starlette(
        routes=[
            Route("/", _static("index.html")),
            Route("/static/{name}", _static()),
            Route("/api/setup", plainly(setup)),
            Route("/api/filters", plainly(filters)),
            Route("/api/conversations", plainly(list_conversations)),
            Route("/api/conversations/{id}", plainly(read_conversation), methods=["GET"]),
            Route("/api/conversations/{id}", plainly(rename_conversation), methods=["PATCH"]),
            Route("/api/conversations/{id}", plainly(delete_conversation), methods=["DELETE"]),
            Route("/api/turns", admitted(in_a_thread(ask)), methods=["POST"]),
            Route("/api/turns/{id}", plainly(read_turn)),
            Route("/api/turns/{id}/sources/{number}", plainly(read_source)),
            Route("/api/turns/{id}/sources/{number}/views", plainly(count_view), methods=["POST"]),
            Route("/api/documents", plainly(index_documents), methods=["POST"]),
            Route("/api/documents/{name:path}", told(site, partial(add_document, site)), methods=["PUT"]),
            Route("/explanation/{id}", admitted(in_a_thread(explanation)), methods=["POST"]),
            Mount("/api", routes=_api(site, service)),
        ]
    )
    guarded = Guard(inner, lambda: site.keyring().is_open)
    own = [Route(PREFIX, _redirect(f"{PREFIX[1:]}/")), *_operations(site, service, PREFIX)]
    return [*own, Mount(PREFIX, guarded)]


def _api(site: Site, service: Service) -> list[BaseRoute]:
    """Return the routes for programs."""
    admitted = partial(Admitted, site, service)
    return [
        Route("/ask", admitted(ask_once), methods=["POST"]),
        Route("/retrieve", admitted(retrieve), methods=["POST"]),
    ]


def _operations(site: Site, service: Service, prefix: str = "") -> list[BaseRoute]:
    """Return the routes for whoever operates the server."""
    figures = request_response(told(site, partial(metrics, site, service)))
    watched = Guard(figures, lambda: site.keyring().is_open)
    return [
        Route(f"{prefix}/health", partial(health, service)),
        Route(f"{prefix}/ready", partial(ready, service)),
        Route(f"{prefix}/metrics", watched),
    ]


def _redirect(place: str) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return RedirectResponse(place)

    return endpoint


def _static(name: str = "") -> Endpoint:
    async def endpoint(request: Request) -> Response:
        wanted = name or request.path_params["name"]
        content = (await to_thread(_files)).get(wanted)
        if content is None:
            return Response("There is no such file", 404)
        return Response(content, media_type=_TYPES[Path(wanted).suffix])

    return endpoint


@cache
def _files() -> dict[str, bytes]:
    """Return the files of the page, by name."""
    folder = files("workflows.serving.page").joinpath("static")
    return {file.name: file.read_bytes() for file in folder.iterdir() if Path(file.name).suffix in _TYPES}


def _platform_app() -> Starlette:
    """Return the page for a LangGraph server, with what stands before all that the server answers with."""
    site, service = Site(), Service()

    def opening(app: Starlette) -> AbstractAsyncContextManager[None]:
        serve_clients()
        return _opening(site, service, False, app)

    before = [Middleware(AllowedOrigins), Middleware(OperatorPaths)]
    return Starlette(routes=routes(site, service), middleware=before, lifespan=opening)


app = _platform_app()
