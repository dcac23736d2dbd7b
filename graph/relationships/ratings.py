"""Relevance of what users viewed: the marks that they gave to passages for their questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from graph.relationships.conversations import USER
from graph.relationships.record import RelationshipRecord
from graph.relationships.tables import along
from graph.storage.marks import Mark, MarkKind

_ASKERS = f"""
    SELECT DISTINCT created.source FROM {along("message <-created-")}
    WHERE role = :role AND (content = :question OR understood = :question)"""
_DOCUMENT_OF = f"SELECT chunk_of.target FROM {along('document_chunk -chunk_of->')} WHERE id = ?"
_RATE = "UPDATE viewed SET relevance_score = ?, revision = ? WHERE source = ? AND target = ?"


def rate_views(record: RelationshipRecord, marks: Iterable[Mark]) -> int:
    """Set the relevance of every view to the mean of its user's marks, and of one without a mark to null.

    A mark counts for the users who asked its question, and for the document of its passage: 1 where the passage
    served, -1 where it did not. Marks of gold standards and of citations say nothing of a user.

    Args:
        record: the relationship graph.
        marks: all marks of the workspace.

    Returns:
        The number of views whose relevance changed.
    """
    with record.transaction() as revision:
        given: dict[tuple[int, int], list[int]] = defaultdict(list)
        for mark in marks:
            if mark.kind is MarkKind.PERSON:
                document = record.execute(_DOCUMENT_OF, (mark.passage_id,)).fetchone()
                askers = record.execute(_ASKERS, {"role": USER, "question": mark.question}).fetchall()
                for (asker,) in askers if document else ():
                    given[asker, document[0]].append(1 if mark.served else -1)
        held = record.execute("SELECT source, target, relevance_score FROM viewed").fetchall()
        changed = [
            (score, revision, user, document)
            for user, document, before in held
            if (score := fmean(given[user, document]) if (user, document) in given else None) != before
        ]
        for row in changed:
            record.execute(_RATE, row)
    return len(changed)
