"""The endpoints of the page and those for programs: each a few lines over the modules beside it.

A program's question is answered as `mara ask --json` writes it, or by the passages alone.
"""

from __future__ import annotations

import time
from asyncio import to_thread
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from typing import Any

from starlette.responses import Response, StreamingResponse

from agents.roles import Turn
from graph.errors import BadInput, needs
from graph.metadata_filter import askable_keys
from graph.relationships.conversations import view_of
from graph.relationships.history import record_view
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.schema import MetadataValue, Passage
from graph.sources.loaders.fields import PLACE_KEYS
from graph.storage.workspace import resolve_workspace
from workflows.access.key_file import OWN_WORKSPACE
from workflows.answering import ask
from workflows.context import QUESTION_LIMIT, Context, asking, check_question
from workflows.conversation.kept import Conversation, KeptTurn, NoConversation
from workflows.discovery import related_documents
from workflows.output.printable import visible
from workflows.results import TOTAL, turn_of
from workflows.runtime.history import erase_own_conversation
from workflows.runtime.own_run import Brake, braked
from workflows.runtime.resources import open_run, open_workspace_index
from workflows.serving.metrics import CONTENT_TYPE
from workflows.serving.page.documents import FILE_BYTES, FILES_AT_ONCE, indexed
from workflows.serving.page.reading import found_in_turn, seen_passage
from workflows.serving.page.requests import Asked
from workflows.serving.page.runs import Question
from workflows.serving.page.turns import RANKINGS, WORKFLOWS, as_markdown, details, event, shown
from workflows.serving.page.welcome import welcome

VALUES_SHOWN = 200
"""Values told of each key: the most frequent ones."""

KEYS_SHOWN = 100

_PLACES = PLACE_KEYS - {"section", "page", "file"}
"""Metadata by which no visitor filters: numbers of passages and characters."""

LONGEST_VIEW_S = 3_600
"""Seconds of one view that count at most: a document that is left open for a night is not read."""

RETRIEVAL_SETTINGS = ("workspace", "mode", "where", "as_of", "top_k")

ASK_SETTINGS = ("workflow", *RETRIEVAL_SETTINGS)
"""The settings that a program may send beside the question."""

_EVENTS = {"x-accel-buffering": "no"}
_EXPLANATION = {"content-security-policy": "sandbox allow-scripts; frame-ancestors 'self'"}


def setup(asked: Asked) -> dict[str, Any]:
    """Return what the page needs to know before anything else."""
    from workflows.runtime.resources import chat_model_name

    with needs("serve", "The page"):
        import nh3  # noqa: F401 - what an answer needs is missed at once
    site, identity = asked.site, asked.identity
    return {
        "version": version("mara-rag"),
        "name": identity.name,
        "has_key": not site.keyring().is_open,
        "workspaces": [{"name": name, "title": title} for name, title in site.open_to(identity).items()],
        "workflows": list(WORKFLOWS.items()),
        "modes": list(RANKINGS.items()),
        "chat_model": chat_model_name(Context()),
        "question_limit": QUESTION_LIMIT,
        "history": site.keeps_history(),
        "uploads": {"file_bytes": FILE_BYTES, "files": FILES_AT_ONCE} if site.may_upload(identity) else None,
    }


def first_screen(asked: Asked) -> dict[str, Any]:
    """Return what a workspace holds, and questions that it can answer."""
    context = asked.site.context(asked.identity, {"workspace": asked.query.get("workspace", OWN_WORKSPACE)})
    screen = welcome(context)
    return {**screen, "questions": [visible(each) for each in screen["questions"]]}


def filters(asked: Asked) -> dict[str, Any]:
    """Return what may be filtered by in a workspace."""
    context = asked.site.context(asked.identity, {"workspace": asked.query.get("workspace", OWN_WORKSPACE)})
    return {"keys": known_values(context)}


def list_conversations(asked: Asked) -> dict[str, Any]:
    """Return the conversations of the visitor; with words to search for, those that hold them all."""
    conversations = asked.site.conversations.of(asked.identity.owner, asked.query.get("words", "")[:QUESTION_LIMIT])
    return {"conversations": [_listed(each) for each in conversations]}


def read_conversation(asked: Asked) -> dict[str, Any]:
    """Return a conversation with the turns that are shown of it; nothing where the page has that version already."""
    store, owner, key = asked.site.conversations, asked.identity.owner, asked.path["id"]
    if asked.query.get("version") == str(store.version(owner, key)):
        return {"unchanged": True}
    conversation, turns = store.read(owner, key, asked.query.get("at", ""))
    return {**_listed(conversation), "turns": [shown(turn) for turn in turns]}


def export_conversation(asked: Asked) -> dict[str, Any]:
    """Return a conversation as Markdown, as it is shown."""
    entry, turns = asked.site.conversations.read(asked.identity.owner, asked.path["id"], asked.query.get("at", ""))
    return {"text": as_markdown(entry.title, [shown(turn) for turn in turns])}


def rename_conversation(asked: Asked) -> dict[str, Any]:
    """Give a conversation another title."""
    asked.site.conversations.rename(asked.identity.owner, asked.path["id"], asked.text("title"))
    return {}


def delete_conversation(asked: Asked) -> dict[str, Any]:
    """Remove a conversation, and what the history holds of it."""
    store, owner, key = asked.site.conversations, asked.identity.owner, asked.path["id"]
    store.version(owner, key)  # or else it is none of theirs
    for settings in {turn.settings.get("workspace", ""): turn.settings for turn in store.turns(key)}.values():
        erase_own_conversation(asked.site.context(asked.identity, settings).in_history(key, asked.identity.name))
    store.delete(owner, key)
    return {}


def read_turn(asked: Asked) -> dict[str, Any]:
    """Return all that is behind an answer."""
    return details(asked.site.conversations.turn(asked.identity.owner, asked.path["id"]))


async def ask_turn(asked: Asked) -> Response:
    """Begin to answer a question, and tell what happens; it goes on without the window that asked it."""
    question = await to_thread(_question, asked)
    turn = await asked.site.runs.begin(question, asked.service)
    return _stream(asked.site.runs.follow(asked.identity.owner, turn))


def _question(asked: Asked) -> Question:
    """Return the question of a turn, within what its asker may see. Raises BadInput."""
    settings = asked.body.get("settings", {})
    if not isinstance(settings, dict):
        raise BadInput("settings is to be an object", "Correct the request")
    question = check_question(asked.text("question", 10 * QUESTION_LIMIT)).strip()
    conversation, key = asked.key("conversation"), asked.key("turn")
    replaces, follows = asked.text("replaces", 64), asked.text("follows", 64)
    alone, store, owner = asked.body.get("alone") is True, asked.site.conversations, asked.identity.owner
    context = asked.site.in_history(asked.site.context(asked.identity, settings), asked.identity, conversation)
    # The history holds one version of a turn: the one that was answered last.
    in_history = store.answered_version(owner, replaces) if replaces else ""
    context = context.as_turn(key, in_history, turns_are_all=True)

    def keep() -> tuple[KeptTurn, list[Turn]]:
        turn, results = store.begin(
            owner, conversation, key, question, settings, alone=alone, replaces=replaces, follows=follows
        )
        return turn, [] if alone else [turn_of(result) for result in results]

    return Question(keep, context, asked.site.told)


async def follow_turn(asked: Asked) -> Response:
    """Tell what happens to a turn from an event on, whichever window of its owner asked it."""
    first = asked.query.get("from", "0")
    if not (first.isascii() and first.isdecimal() and len(first) < 10):
        raise BadInput("from is to be the position of an event", "Correct the request")
    turn = await to_thread(asked.site.conversations.turn, asked.identity.owner, asked.path["id"])
    return _stream(asked.site.runs.follow(asked.identity.owner, turn, int(first)))


def stop_turn(asked: Asked) -> dict[str, Any]:
    """Let a turn end with the words that it has."""
    asked.site.conversations.stop(asked.identity.owner, asked.path["id"])
    return {}


def read_why(asked: Asked) -> dict[str, Any]:
    """Return why an answer is what it is, in sentences; ``problem`` tells why the path in it cannot be told."""
    from workflows.explaining import explain
    from workflows.explanation.why import why

    result, context = _answered(asked)
    try:
        sentences, problem = explain(result, context).why, ""
    except BadInput as fault:
        sentences, problem = why(result), asked.site.told(fault)
    return {"why": [[asdict(piece) for piece in sentence] for sentence in sentences], "problem": problem}


def explanation(asked: Asked) -> Response:
    """Return the page that explains an answer."""
    from workflows.explaining import explain
    from workflows.explanation.page import render_page

    page = render_page(explain(*_answered(asked)).to_json())
    return Response(page, 200, _EXPLANATION, "text/html; charset=utf-8")


def _answered(asked: Asked) -> tuple[Mapping[str, Any], Context]:
    """Return the result of a turn, and the settings that it was asked with. Raises NoConversation without a result."""
    turn = asked.site.conversations.turn(asked.identity.owner, asked.path["id"])
    if turn.result is None:
        raise NoConversation("This turn has no answer", "Ask it again")
    return turn.result, asked.site.context(asked.identity, turn.settings)


def index_documents(asked: Asked) -> Response:
    """Begin to index the documents that were added."""
    uploads = asked.site.uploads_of(asked.identity, asked.text("workspace", 255))
    names, replaced = asked.body.get("names", []), asked.body.get("replaced", [])
    for files in (names, replaced):
        if not isinstance(files, list) or len(files) > FILES_AT_ONCE or not all(isinstance(one, str) for one in files):
            raise BadInput(f"Add at most {FILES_AT_ONCE} files at once", "Correct the request")
    uploads.check_waiting([*names, *replaced])
    events = indexed(partial(uploads.index, names, replaced), asked.site.told)
    return _stream(event(kind, **values) async for kind, values in events)


async def add_document(asked: Asked) -> dict[str, Any]:
    """Take a file in as it comes."""
    uploads = await to_thread(asked.site.uploads_of, asked.identity, asked.query.get("workspace", OWN_WORKSPACE))
    is_replacing = asked.query.get("replace") == "yes"
    await uploads.take(asked.path["name"], asked.request.stream(), replace=is_replacing)
    return {}


def metrics(asked: Asked) -> Response:
    """Return the figures for Prometheus, to callers who may watch the server."""
    asked.identity.check_may_watch()
    return Response(asked.service.metrics.text(), media_type=CONTENT_TYPE)


async def ask_once(asked: Asked) -> dict[str, Any]:
    """Return the whole result of a question."""
    question, context = _read(asked, ASK_SETTINGS)
    return await _counted(asked, lambda brake: dict(ask(question, context, callbacks=[brake])))


async def retrieve(asked: Asked) -> dict[str, Any]:
    """Return the passages for a question, and how they were found."""
    question, context = _read(asked, RETRIEVAL_SETTINGS)
    return await _counted(asked, lambda brake: _retrieved(question, context, brake))


async def _counted(asked: Asked, work: Callable[[Brake], dict[str, Any]]) -> dict[str, Any]:
    result = await braked(work)
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
    settings = {name: value for name, value in asked.body.items() if name != "question"}
    return question, asked.site.context(asked.identity, settings, allowed)


def read_source(asked: Asked) -> dict[str, Any]:
    """Return what the history tells of a source that is open.

    ``views`` is null where the document was never open before: answers that cite it alone are no reading. Else the
    view of this very answer does not count.

    Raises:
        NoConversation: the turn is not theirs, or has no such source.
        BadInput: no history is kept, or the workspace does not hold the passage any more.
    """
    context, passage, turn = _opened(asked)
    history = read_beside(context, passage)
    views, recorded = history["views"], (turn.result or {}).get("recorded") or {}
    just_now = history["document"] in recorded.get("viewed", [])
    was_open = views is not None and views["seconds"] is not None
    related = [
        {"document": each["document"], **{key: visible(each[key]) for key in ("title", "path", "told")}}
        for each in history["related"]
    ]
    return {"views": {**views, "count": views["count"] - just_now} if was_open else None, "related": related}


def count_view(asked: Asked) -> dict[str, Any]:
    """Count a view of a source that was open; tell whether it counts. Raises as `read_source` does."""
    seconds = asked.body.get("seconds")
    if type(seconds) is not int:
        raise BadInput("seconds is to be a whole number", "Correct the request")
    context, passage, _ = _opened(asked)
    return {"counted": view_passage(context, passage, seconds)}


def _opened(asked: Asked) -> tuple[Context, str, KeptTurn]:
    """Return the settings of a turn in the history of its visitor, the id of the passage that is open, and the turn."""
    site, identity = asked.site, asked.identity
    site.check_keeps_history()
    kept, passage_id = found_in_turn(asked)
    return site.in_history(site.context(identity, kept.settings), identity, ""), passage_id, kept


def read_beside(context: Context, passage_id: str) -> dict[str, Any]:
    """Return the views of a passage's document by the settings' user, and the documents related to it, as JSON.

    ``views`` is null where the user never viewed it.

    Raises:
        BadInput: no user is named; the workspace holds no such passage, or the settings' filter hides it; there is no
            relationship graph.
        WorkspaceMissing: there is no workspace.
    """
    document = _document_of(context, passage_id)
    with RelationshipRecord.of(resolve_workspace(context.workspace)) as record:
        view = view_of(record, context.user_id, document)
    return {
        "document": document,
        "views": view
        and {
            "count": view.view_count,
            "first": view.first_viewed_at,
            "last": view.last_viewed_at,
            "seconds": view.duration,
        },
        "related": related_documents(context, document),
    }


def view_passage(context: Context, passage_id: str, seconds: int) -> bool:
    """Count a view of a passage's document by the settings' user, of at most `LONGEST_VIEW_S` seconds.

    Returns:
        False where the relationship graph does not hold the document: the passage stood in the past alone.

    Raises:
        BadInput: as `read_beside` does; or the seconds are less than 0.
        WorkspaceLocked: other processes write for longer than one waits.
        WorkspaceMissing: there is no workspace.
    """
    if seconds < 0:
        raise BadInput(f"A view cannot take {seconds} seconds", "Give 0 or more")
    document = _document_of(context, passage_id)
    with RelationshipRecord.of(resolve_workspace(context.workspace)) as record:
        if record.node(NodeType.DOCUMENT, document) is None:
            return False
        record_view(record, context.user_id, document, min(seconds, LONGEST_VIEW_S))
    return True


def _document_of(context: Context, passage_id: str) -> str:
    if not context.user_id:
        raise BadInput("The reader is not known", "Name a user: `user_id`")
    return seen_passage(passage_id, open_run(context)).document


def _stream(events: AsyncIterator[str]) -> Response:
    return StreamingResponse(events, 200, _EVENTS, "text/event-stream")


def _listed(conversation: Conversation) -> dict[str, Any]:
    return {**asdict(conversation), "title": visible(conversation.title)}


def known_values(context: Context) -> list[dict[str, Any]]:
    """Return the keys that passages have, with their most frequent values, how many there are, and whether numbers.

    Args:
        context: of the caller; passages that its ``where`` hides count for nothing.

    Raises:
        MaraError: the workspace cannot be opened.
    """
    index = open_workspace_index(context)
    if context.where:
        selection = index.select(context.where)
        rows = [] if selection is None else selection.rows.tolist()
        return _values_of(index.graph.passages[row] for row in rows)
    return _values_of(index.graph.passages)


def _values_of(passages: Iterable[Passage]) -> list[dict[str, Any]]:
    counts: dict[str, Counter[MetadataValue]] = {}
    for passage in passages:
        for key in askable_keys(passage) - _PLACES:
            value = passage.source if key == "source" else passage.metadata[key]
            counts.setdefault(key, Counter())[value] += 1
    keys = sorted(counts, key=lambda key: (key != "source", key))[:KEYS_SHOWN]
    return [
        {
            "key": key,
            "values": [value for value, _ in counts[key].most_common(VALUES_SHOWN)],
            "n_values": len(counts[key]),
            "numbers": all(isinstance(value, int | float) and not isinstance(value, bool) for value in counts[key]),
        }
        for key in keys
    ]
