"""What whoever operates a server asks it: whether it lives, whether it answers, and its figures."""

from __future__ import annotations

from asyncio import to_thread

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from workflows.serving.metrics import CONTENT_TYPE
from workflows.serving.page.requests import identity_of, shown_key
from workflows.serving.page.site import Site
from workflows.serving.service import READY, Service


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
