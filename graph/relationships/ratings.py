"""Relevance of what users viewed: the marks that they gave to passages for their questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean

from graph.relationships.conversations import USER
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EdgeType, NodeType
from graph.relationships.tables import table_of_edges, table_of_nodes
from graph.storage.marks import Mark, MarkKind

_ASKERS = f"""
SELECT DISTINCT made.source FROM "{table_of_nodes(NodeType.MESSAGE)}" m
JOIN "{table_of_edges(EdgeType.CREATED, NodeType.USER, NodeType.MESSAGE)}" made ON made.target = m.key
WHERE m.role = :role AND (m.content = :question OR m.understood = :question)
"""
_DOCUMENT_OF = f"""
SELECT part.target FROM "{table_of_edges(EdgeType.CHUNK_OF, NodeType.CHUNK, NodeType.DOCUMENT)}" part
JOIN "{table_of_nodes(NodeType.CHUNK)}" c ON c.key = part.source WHERE c.id = ?
"""
_VIEWED = table_of_edges(EdgeType.VIEWED, NodeType.USER, NodeType.DOCUMENT)
_RATE = f'UPDATE "{_VIEWED}" SET relevance_score = ?, revision = ? WHERE source = ? AND target = ?'


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
        held = record.execute(f'SELECT source, target, relevance_score FROM "{_VIEWED}"').fetchall()
        changed = [
            (score, revision, user, document)
            for user, document, before in held
            if (score := fmean(given[user, document]) if (user, document) in given else None) != before
        ]
        for row in changed:
            record.execute(_RATE, row)
    return len(changed)
