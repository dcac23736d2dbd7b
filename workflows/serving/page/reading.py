"""A source that is open on the page: how often its visitor read the document, what is related, and one more view.

All of it is of the history, and of the visitor's own turns: nobody names a document or a user here.
"""

from __future__ import annotations

from typing import Any

from graph.errors import BadInput
from workflows.access.identity import Identity
from workflows.conversation.kept import NoConversation
from workflows.output.printable import visible
from workflows.reading import read_beside, view_passage
from workflows.serving.page.site import Site
from workflows.settings.mara import Context


def source_beside(site: Site, identity: Identity, turn: str, number: str) -> dict[str, Any]:
    """Return what the history tells of a source of a turn.

    Raises:
        NoConversation: the turn is not theirs, or has no such source.
        BadInput: no history is kept, or the workspace does not hold the passage any more.
    """
    context, passage = _opened(site, identity, turn, number)
    told = read_beside(context, passage)
    related = [{key: visible(each[key]) for key in ("title", "path", "told")} for each in told["related"]]
    return {"views": told["views"], "related": related}


def view_source(site: Site, identity: Identity, turn: str, number: str, seconds: object) -> dict[str, Any]:
    """Count a view of a source of a turn; tell whether it counts. Raises as `source_beside` does."""
    if type(seconds) is not int:
        raise BadInput("seconds is to be a whole number", "Correct the request")
    context, passage = _opened(site, identity, turn, number)
    return {"counted": view_passage(context, passage, seconds)}


def _opened(site: Site, identity: Identity, turn: str, number: str) -> tuple[Context, str]:
    """Return the settings of a turn in the history of its visitor, and the id of the passage of that number."""
    site.check_keeps_history()
    kept = site.conversations.turn(identity.owner, turn)
    passages = kept.result["passages"] if kept.result else []
    found = next((hit["id"] for hit in passages if str(hit["number"]) == number), None)
    if found is None:
        raise NoConversation("There is no such source in this turn", "Load the conversation again")
    return site.in_history(site.context(identity, kept.settings), identity, ""), found
