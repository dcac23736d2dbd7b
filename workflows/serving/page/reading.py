"""Reading on in the documents of a turn's sources, passage by passage, and in those that are related to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graph.errors import BadInput
from graph.schema import Passage
from workflows.conversation.kept import KeptTurn, NoConversation
from workflows.discovery import related_documents
from workflows.output.printable import visible
from workflows.runtime.resources import OpenRun, open_run
from workflows.runtime.visibility import sees, with_superseded
from workflows.serving.page.passages import AFTER, BEFORE, passage_html, passage_told

if TYPE_CHECKING:
    from workflows.serving.page.requests import Asked

MOST_READ = 10_000
"""Passages of a source among which those of a document are looked for; a larger one is not read on in."""

_SKIPPED = "Not all that stands between is shown."


def read_on(asked: Asked) -> dict[str, Any]:
    """Return the passage before or after another one in the document of a turn's source, or in a related document.

    The query names the one that it stands ``before`` or ``after``; without it, a document's first passage is returned.
    ``related`` is the id of a related document.

    Raises:
        NoConversation: the turn is not theirs, or has no such source.
        BadInput: the workspace does not hold the passage any more, or nothing that they may see stands there.
    """
    turn, passage_id = found_in_turn(asked)
    context, related = asked.site.context(asked.identity, turn.settings), asked.query.get("related", "")
    run = open_run(context)
    source = seen_passage(passage_id, run)
    if related:
        path = next(
            (each["path"] for each in related_documents(context, source.document) if each["document"] == related), None
        )
        if path is None:
            raise BadInput("That document is not related to this source", "Open the source again")
        parts = seen_parts(related, path, run)
    else:
        parts = seen_parts(source.document, source.source, run)
    way = BEFORE if BEFORE in asked.query else AFTER
    return _told(parts, way, asked.query.get(way, ""), run)


def found_in_turn(asked: Asked) -> tuple[KeptTurn, str]:
    """Return a turn of the visitor, and the id of the passage that an address names by its number.

    Raises NoConversation where it is not theirs, or has no such source.
    """
    turn = asked.site.conversations.turn(asked.identity.owner, asked.path["id"])
    passages = turn.result["passages"] if turn.result else []
    passage_id = next((hit["id"] for hit in passages if str(hit["number"]) == asked.path["number"]), None)
    if passage_id is None:
        raise NoConversation("There is no such source in this turn", "Load the conversation again")
    return turn, passage_id


def seen_passage(passage_id: str, run: OpenRun) -> Passage:
    """Return a passage. Raises BadInput where the workspace does not hold it, or the run's filter hides it."""
    if not sees(passage_id, run):
        raise BadInput("The workspace does not hold this passage any more", "Ask again")
    graph = run.index.graph
    return graph.passages[graph.passage_index[passage_id]]


def seen_parts(document: str, source: str, run: OpenRun) -> list[Passage]:
    """Return the passages of a document that a run sees, in their order."""
    graph, selection = run.index.graph, run.selection
    places = graph.parts_of(document, source, MOST_READ)
    return [graph.passages[place] for place in places if selection is None or selection.passages[place]]


def _told(parts: list[Passage], way: str, beside: str, run: OpenRun) -> dict[str, Any]:
    at = next((place for place, part in enumerate(parts) if part.id == beside), None) if beside else -1
    wanted = None if at is None else at + (1 if way == AFTER else -1)
    if at is None or wanted is None or not 0 <= wanted < len(parts):
        raise BadInput(f"Nothing that you may see stands {way} it", "Read on at the other end")
    part = parts[wanted]
    (hit,) = with_superseded({"passages": [_hit(part)]}, run)["passages"] if run.context.as_of else [_hit(part)]
    skips = beside and abs(part.number - parts[at].number) > 1
    return {
        "id": part.id,
        "title": visible(part.title) or part.id,
        **passage_told(hit, []),
        "notes": [_SKIPPED] if skips else [],
        "html": passage_html(_unshared(part, parts[at] if beside else None)),
        BEFORE: wanted > 0 and bool(beside),
        AFTER: wanted + 1 < len(parts),
    }


def _hit(part: Passage) -> dict[str, Any]:
    return {
        "id": part.id,
        "number": 0,
        "title": part.title,
        "source": part.source,
        "metadata": part.metadata,
        "text": part.text,
    }


def _unshared(part: Passage, neighbour: Passage | None) -> str:
    """Return the text of a passage without what its neighbour shows of it."""
    if neighbour is None:
        return part.text
    (start, end), (first, last) = (_span(each.metadata) for each in (part, neighbour))
    if start < first:
        return part.text[: max(0, len(part.text) - max(0, end - first))]
    return part.text[max(0, last - start) :]


def _span(metadata: Mapping[str, Any]) -> tuple[int, int]:
    """Return where a passage begins and ends in its document; both 0 where that is not known."""
    start, end = metadata.get("start"), metadata.get("end")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else (0, 0)
