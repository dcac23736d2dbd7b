"""A source that is open on the page: how often its visitor read the document, what is related, and one more view.

All of it is of the history, and of the visitor's own turns: nobody names a document or a user here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graph.errors import BadInput
from graph.relationships.conversations import view_of
from graph.relationships.history import record_view
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.storage.workspace import resolve_workspace
from workflows.context import Context
from workflows.conversation.kept import NoConversation
from workflows.discovery import related_documents
from workflows.output.printable import visible
from workflows.runtime.resources import open_run
from workflows.runtime.visibility import sees

if TYPE_CHECKING:
    from workflows.serving.page.requests import Asked

LONGEST_VIEW_S = 3_600
"""Seconds of one view that count at most: who leaves a document open for a night does not read it."""


def read_source(asked: Asked) -> dict[str, Any]:
    """Return what the history tells of a source that is open.

    Raises:
        NoConversation: the turn is not theirs, or has no such source.
        BadInput: no history is kept, or the workspace does not hold the passage any more.
    """
    context, passage = _opened(asked)
    told = read_beside(context, passage)
    related = [{key: visible(each[key]) for key in ("title", "path", "told")} for each in told["related"]]
    return {"views": told["views"], "related": related}


def count_view(asked: Asked) -> dict[str, Any]:
    """Count a view of a source that was open; tell whether it counts. Raises as `read_source` does."""
    seconds = asked.body.get("seconds")
    if type(seconds) is not int:
        raise BadInput("seconds is to be a whole number", "Correct the request")
    context, passage = _opened(asked)
    return {"counted": view_passage(context, passage, seconds)}


def _opened(asked: Asked) -> tuple[Context, str]:
    """Return the settings of a turn in the history of its visitor, and the id of the passage that is open."""
    site, identity = asked.site, asked.identity
    site.check_keeps_history()
    kept = site.conversations.turn(identity.owner, asked.path["id"])
    passages = kept.result["passages"] if kept.result else []
    found = next((hit["id"] for hit in passages if str(hit["number"]) == asked.path["number"]), None)
    if found is None:
        raise NoConversation("There is no such source in this turn", "Load the conversation again")
    return site.in_history(site.context(identity, kept.settings), identity, ""), found


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
        raise BadInput("Nobody is known to read", "Name a user: `user_id`")
    run = open_run(context)
    if not sees(passage_id, run):
        raise BadInput("The workspace does not hold this passage any more", "Ask again")
    graph = run.index.graph
    return graph.passages[graph.passage_index[passage_id]].document
