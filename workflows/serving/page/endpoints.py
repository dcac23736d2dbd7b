"""What the page's addresses answer: each a few lines over the modules beside it."""

from __future__ import annotations

from asyncio import to_thread
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict
from functools import lru_cache, partial
from importlib.metadata import version
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from graph.errors import BadInput
from graph.metadata_filter import askable_keys
from graph.retrieve.modes import Mode
from graph.retrieve.open_index import Index
from graph.schema import MetadataValue, Passage
from workflows.access.key_file import OWN_WORKSPACE
from workflows.context import QUESTION_LIMIT, Context, check_question
from workflows.conversation.kept import Conversation, NoConversation
from workflows.output.printable import visible
from workflows.results import turn_of
from workflows.runtime.history import erase_own_conversation
from workflows.runtime.resources import open_workspace_index
from workflows.serving.page.answers import answer, event
from workflows.serving.page.documents import FILE_BYTES, FILES_AT_ONCE, indexed
from workflows.serving.page.markdown import check_installed
from workflows.serving.page.requests import Asked, identity_of, parts_of, shown_key
from workflows.serving.page.site import Site
from workflows.serving.page.turns import details, shown
from workflows.settings.enums import Workflow

_EVENTS = {"x-accel-buffering": "no"}
_EXPLANATION = {"content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'"}

VALUES_SHOWN = 200
"""Values told of each key: the most frequent ones."""

KEYS_SHOWN = 100


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
        asked.identity.owner, conversation, key, question, settings, alone=alone, replaces=replaces
    )
    turns = [] if alone else [turn_of(result) for result in results]
    return _stream(answer(store, asked.identity.owner, turn, context, turns, asked.site.told, asked.service.metrics))


def explanation(asked: Asked) -> Response:
    """Return the page that explains an answer."""
    from workflows.explain import explain
    from workflows.explanation.page import render_page

    turn = asked.site.conversations.turn(asked.identity.owner, asked.path["id"])
    if turn.result is None:
        raise NoConversation("This turn has no answer", "Ask it again")
    context = asked.site.context(asked.identity, turn.settings)
    return Response(render_page(explain(turn.result, context).to_json()), 200, _EXPLANATION, "text/html; charset=utf-8")


def index_documents(asked: Asked) -> Response:
    """Begin to index the documents that were added."""
    uploads = asked.site.uploads_of(asked.identity, asked.text("workspace", 255))
    names, replaced = asked.body.get("names", []), asked.body.get("replaced", [])
    for given in (names, replaced):
        if not isinstance(given, list) or len(given) > FILES_AT_ONCE or not all(isinstance(one, str) for one in given):
            raise BadInput(f"Add at most {FILES_AT_ONCE} files at once", "Correct the request")
    uploads.check_waiting([*names, *replaced])
    told = indexed(partial(uploads.index, names, replaced), asked.site.told)
    return _stream(event(kind, **values) async for kind, values in told)


async def add_document(site: Site, request: Request) -> Response:
    """Take a file in as it comes."""
    identity = await to_thread(identity_of, site, shown_key(request))
    uploads = await to_thread(site.uploads_of, identity, request.query_params.get("workspace", OWN_WORKSPACE))
    is_replacing = request.query_params.get("replace") == "yes"
    await uploads.take(request.path_params["name"], parts_of(request), replace=is_replacing)
    return JSONResponse({})


def _stream(events: AsyncIterator[str]) -> Response:
    return StreamingResponse(events, 200, _EVENTS, "text/event-stream")


def _listed(conversation: Conversation) -> dict[str, Any]:
    return {**asdict(conversation), "title": visible(conversation.title)}


def known_values(context: Context) -> list[dict[str, Any]]:
    """Return the keys that passages have, with their most frequent values, how many there are, and whether numbers.

    Args:
        context: of whoever asks; passages that its ``where`` hides count for nothing.

    Raises:
        MaraError: the workspace cannot be opened.
    """
    index = open_workspace_index(context)
    if context.where:
        selection = index.select(context.where)
        rows = [] if selection is None else selection.rows.tolist()
        return _values_of(index.graph.passages[row] for row in rows)
    return _all_values(index)


@lru_cache(maxsize=4)
def _all_values(index: Index) -> list[dict[str, Any]]:
    return _values_of(index.graph.passages)


def _values_of(passages: Iterable[Passage]) -> list[dict[str, Any]]:
    found: dict[str, Counter[MetadataValue]] = {}
    for passage in passages:
        for key in askable_keys(passage):
            value = passage.source if key == "source" else passage.metadata[key]
            found.setdefault(key, Counter())[value] += 1
    keys = sorted(found, key=lambda key: (key != "source", key))[:KEYS_SHOWN]
    return [
        {
            "key": key,
            "values": [value for value, _ in found[key].most_common(VALUES_SHOWN)],
            "n_values": len(found[key]),
            "numbers": all(isinstance(value, int | float) and not isinstance(value, bool) for value in found[key]),
        }
        for key in keys
    ]
