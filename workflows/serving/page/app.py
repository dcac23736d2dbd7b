"""The page as an application: its routes, each a few lines over the modules beside it.

``app`` is what `langgraph dev` serves under ``/page`` beside its API, by ``http.app`` in langgraph.json; `make_app`
is for `mara serve`.
"""

from __future__ import annotations

import json
import re
import threading
from asyncio import to_thread
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route

from graph.errors import BadInput, MaraError
from graph.retrieve.modes import Mode
from workflows.context import QUESTION_LIMIT, Context, check_question
from workflows.results import turn_of
from workflows.runtime.history import erase_own_conversation
from workflows.runtime.printable import visible
from workflows.serving.identity import Identity, authorization_of
from workflows.serving.key_file import OWN_WORKSPACE
from workflows.serving.operator_paths import OperatorPaths
from workflows.serving.page.answers import answer, event
from workflows.serving.page.conversations import Conversation, NoConversation
from workflows.serving.page.documents import FILE_BYTES, FILES_AT_ONCE, indexed
from workflows.serving.page.filters import known_values
from workflows.serving.page.guard import Guard
from workflows.serving.page.markdown import check_installed
from workflows.serving.page.reading import source_beside, view_source
from workflows.serving.page.site import Site
from workflows.serving.page.turns import details, shown
from workflows.settings.enums import Workflow

PREFIX = "/page"
BODY_BYTES = 2**20
"""The largest request, files aside."""

_ID = re.compile(r"[A-Za-z0-9-]{8,64}")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_EVENTS = {"x-accel-buffering": "no"}
_EXPLANATION = {"content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'"}


@dataclass(frozen=True)
class Asked:
    """A request, read.

    Attributes:
        site: what is served.
        identity: who asks.
        path: what its address names.
        query: what stands behind the address.
        body: its JSON; empty without any.
    """

    site: Site
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


def setup(asked: Asked) -> dict[str, Any]:
    """Return what the page needs to know before anything else."""
    from workflows.runtime.resources import chat_model_name

    check_installed()
    site, identity = asked.site, asked.identity
    return {
        "version": version("mara-rag"),
        "name": identity.name,
        "has_key": not site.keyring().is_open,
        "workspaces": [{"name": name, "title": title} for name, title in site.workspaces.open_to(identity).items()],
        "workflows": [each.value for each in Workflow],
        "modes": [each.value for each in Mode],
        "chat_model": chat_model_name(Context()),
        "question_limit": QUESTION_LIMIT,
        "history": site.keeps_history(),
        "uploads": {"file_bytes": FILE_BYTES, "files": FILES_AT_ONCE} if site.may_upload(identity) else None,
    }


def filters(asked: Asked) -> dict[str, Any]:
    """Return what may be filtered by in a workspace."""
    context = asked.site.context(asked.identity, {"workspace": asked.query.get("workspace", OWN_WORKSPACE)})
    return {"keys": known_values(context)}


def list_conversations(asked: Asked) -> dict[str, Any]:
    """Return the conversations of whoever asks."""
    found = asked.site.conversations.of(asked.identity.owner)
    return {"conversations": [_listed(each) for each in found]}


def read_conversation(asked: Asked) -> dict[str, Any]:
    """Return a conversation with its turns; alone its version, where the page has that already."""
    store, owner, key = asked.site.conversations, asked.identity.owner, asked.path["id"]
    if asked.query.get("version") == str(store.version(owner, key)) and not asked.query.get("running"):
        return {"unchanged": True}
    conversation, turns = store.read(owner, key)
    return {**_listed(conversation), "turns": [shown(turn) for turn in turns]}


def rename_conversation(asked: Asked) -> dict[str, Any]:
    """Give a conversation another title."""
    asked.site.conversations.rename(asked.identity.owner, asked.path["id"], asked.text("title"))
    return {}


def delete_conversation(asked: Asked) -> dict[str, Any]:
    """Remove a conversation, and what the history holds of it."""
    store, owner, key = asked.site.conversations, asked.identity.owner, asked.path["id"]
    _, turns = store.read(owner, key)
    for settings in {turn.settings.get("workspace", ""): turn.settings for turn in turns}.values():
        erase_own_conversation(asked.site.context(asked.identity, settings).in_history(key, asked.identity.name))
    store.delete(owner, key)
    return {}


def read_turn(asked: Asked) -> dict[str, Any]:
    """Return all that is behind an answer."""
    return details(asked.site.conversations.turn(asked.identity.owner, asked.path["id"]))


def read_source(asked: Asked) -> dict[str, Any]:
    """Return what the history tells of a source that is open."""
    return source_beside(asked.site, asked.identity, asked.path["id"], int(asked.path["number"]))


def count_view(asked: Asked) -> dict[str, Any]:
    """Count a view of a source that was open."""
    seconds = asked.body.get("seconds")
    return view_source(asked.site, asked.identity, asked.path["id"], int(asked.path["number"]), seconds)


def ask(asked: Asked) -> Response:
    """Keep a question and begin to answer it."""
    settings = asked.body.get("settings", {})
    if not isinstance(settings, dict):
        raise BadInput("settings is to be an object", "Correct the request")
    question = check_question(asked.text("question", 10 * QUESTION_LIMIT)).strip()
    conversation, key, replaces = asked.key("conversation"), asked.key("turn"), asked.text("replaces", 64)
    context = asked.site.context(asked.identity, settings)
    context = asked.site.in_history(context, asked.identity, conversation).as_turn(key, replaces)
    alone, store = asked.body.get("alone") is True, asked.site.conversations
    turn, results = store.begin(
        asked.identity.owner,
        conversation,
        key,
        question,
        settings,
        alone=alone,
        replaces=replaces,
    )
    turns = [] if alone else [turn_of(result) for result in results]
    return _stream(answer(store, asked.identity.owner, turn, context, turns, asked.site.told))


def explanation(asked: Asked) -> Response:
    """Return the page that explains an answer."""
    from workflows.explain import explain
    from workflows.explanation.page import render_page

    turn = asked.site.conversations.turn(asked.identity.owner, asked.path["id"])
    if turn.result is None:
        raise NoConversation("This turn has no answer", "Ask it again")
    context = asked.site.context(asked.identity, turn.settings)
    return Response(render_page(explain(turn.result, context).to_json()), 200, _EXPLANATION, _TYPES[".html"])


def index_documents(asked: Asked) -> Response:
    """Begin to index the documents that were added."""
    uploads = asked.site.uploads_of(asked.identity, asked.text("workspace", 255))
    names, replaced = asked.body.get("names", []), asked.body.get("replaced", [])
    for given in (names, replaced):
        if not isinstance(given, list) or len(given) > FILES_AT_ONCE or not all(isinstance(one, str) for one in given):
            raise BadInput(f"Add at most {FILES_AT_ONCE} files at once", "Correct the request")
    uploads.check_waiting([*names, *replaced])
    return _stream(_indexing(asked.site, partial(uploads.index, names, replaced)))


async def add_document(site: Site, request: Request) -> Response:
    """Take a file in as it comes."""
    identity = await to_thread(_identity, site, _shown(request))
    uploads = await to_thread(site.uploads_of, identity, request.query_params.get("workspace", OWN_WORKSPACE))
    is_replacing = request.query_params.get("replace") == "yes"
    await uploads.take(request.path_params["name"], request.stream(), replace=is_replacing)
    return JSONResponse({})


async def _indexing(site: Site, work: Callable[..., Any]) -> AsyncIterator[str]:
    try:
        async for kind, value in indexed(work):
            if kind == "progress":
                stage, done, total = value
                yield event("progress", stage=stage, done=done, total=total)
            else:
                yield event("ended", report=value)
    except Exception as fault:
        yield event("failed", message=site.told(fault))


def _stream(events: AsyncIterator[str]) -> Response:
    return StreamingResponse(events, 200, _EVENTS, "text/event-stream")


def _listed(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": visible(conversation.title),
        "version": conversation.version,
        "changed": conversation.changed,
    }


def make_app(site: Site) -> Starlette:
    """Return the page of a site as an application of its own, which opens the workspace as it starts."""

    @asynccontextmanager
    async def opening(app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=_warm_up, args=(site,), name="page-opening", daemon=True).start()
        yield

    home = Route("/", _redirect(f"{PREFIX[1:]}/"))
    return Starlette(routes=[home, *routes(site)], lifespan=opening)


def routes(site: Site) -> list[BaseRoute]:
    """Return the routes of a site's page, all below its prefix and behind its guard."""
    plain = partial(_plain, site)
    inner = Starlette(
        routes=[
            Route("/", _static("index.html")),
            Route("/static/{name}", _static()),
            Route("/api/setup", plain(setup)),
            Route("/api/filters", plain(filters)),
            Route("/api/conversations", plain(list_conversations)),
            Route("/api/conversations/{id}", plain(read_conversation), methods=["GET"]),
            Route("/api/conversations/{id}", plain(rename_conversation), methods=["PATCH"]),
            Route("/api/conversations/{id}", plain(delete_conversation), methods=["DELETE"]),
            Route("/api/turns", plain(ask), methods=["POST"]),
            Route("/api/turns/{id}", plain(read_turn)),
            Route("/api/turns/{id}/sources/{number:int}", plain(read_source)),
            Route("/api/turns/{id}/sources/{number:int}/views", plain(count_view), methods=["POST"]),
            Route("/api/documents", plain(index_documents), methods=["POST"]),
            Route("/api/documents/{name:path}", _told(site, partial(add_document, site)), methods=["PUT"]),
            Route("/explanation/{id}", plain(explanation), methods=["POST"]),
        ]
    )
    guarded = Guard(inner, lambda: site.keyring().is_open)
    return [Route(PREFIX, _redirect(f"{PREFIX[1:]}/")), Mount(PREFIX, guarded)]


Endpoint = Callable[[Request], Awaitable[Response]]


def _plain(site: Site, function: Callable[[Asked], dict[str, Any] | Response]) -> Endpoint:
    """Return the endpoint of a function that may wait: it is called in a thread."""

    def answered(request: Request, body: Mapping[str, Any], authorization: str | None) -> Response:
        identity = _identity(site, authorization)
        given = function(Asked(site, identity, request.path_params, request.query_params, body))
        return given if isinstance(given, Response) else JSONResponse(given)

    async def endpoint(request: Request) -> Response:
        body = await _body(request)
        authorization = _shown(request) or body.pop("authorization", None)
        return await to_thread(answered, request, body, authorization)

    return _told(site, endpoint)


def _told(site: Site, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that tells errors as JSON."""

    async def telling(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Exception as fault:
            status = getattr(fault, "status", 0) or (400 if isinstance(fault, BadInput) else 503)
            return JSONResponse({"error": {"kind": type(fault).__name__, "message": site.told(fault)}}, status)

    return telling


def _shown(request: Request) -> str | None:
    return authorization_of(request.headers.get("authorization"), request.headers.get("x-api-key"))


def _identity(site: Site, authorization: str | None) -> Identity:
    return site.keyring().identity_of(authorization)


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON of a request, or the key of the form that opens an explanation. Raises BadInput."""
    if request.method not in ("POST", "PATCH"):
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0]
    text = b""
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
    except ValueError as fault:
        raise BadInput("The request is no JSON", "Correct the request") from fault
    if not isinstance(body, dict):
        raise BadInput("The request is no object of JSON", "Correct the request")
    return {name: value for name, value in body.items() if name != "authorization"}


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


def _warm_up(site: Site) -> None:
    """Ask once, without a model and unseen, so that the first question finds everything open and compiled."""
    from langsmith import tracing_context

    from workflows.ask import ask as ask_once
    from workflows.runtime.resources import OFFLINE

    with tracing_context(enabled=False), suppress(MaraError, OSError):
        ask_once("Which?", Context(workspace=str(site.workspaces.own), model=OFFLINE))


app = Starlette(routes=routes(Site()), middleware=[Middleware(OperatorPaths)])
"""The page for a LangGraph server, which answers nobody at the operator's paths."""
