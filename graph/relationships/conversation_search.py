"""Conversation-aware search: documents by their similarity to a question and by what the conversation is about.

A conversation is about the concepts that its messages mention; a document takes part in it by those that it explains.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.relationships.sight import Sight

SIMILARITY_SHARE = 0.7
"""The share of the similarity in a document's score; the rest is that of its concepts."""

_OF_THREAD = """
    SELECT DISTINCT mentioned.target FROM part_of placed
    JOIN conversation ON conversation.key = placed.target
    JOIN mentions mentioned ON mentioned.source = placed.source
    WHERE conversation.id = ?"""
_CONCEPTS = f"SELECT id FROM concept WHERE key IN ({_OF_THREAD}) ORDER BY id"
_COUNTS = f"""
    SELECT document.id, found.number FROM (
        SELECT source, count(*) AS number FROM explains WHERE target IN ({_OF_THREAD}) GROUP BY source
    ) found JOIN document ON document.key = found.source"""
_PAIRS = f"""
    SELECT document.id, concept.id FROM explains
    JOIN document ON document.key = explains.source JOIN concept ON concept.key = explains.target
    WHERE explains.target IN ({_OF_THREAD})"""


@dataclass(frozen=True, slots=True)
class RelevantDocument:
    """A document that a conversation-aware search found.

    Attributes:
        similarity: as it was given.
        concepts: how many concepts of the conversation it explains.
        relevance: that number, relative to the largest of any document; in [0, 1].
        score: the mix of similarity and relevance.
    """

    id: str
    path: str
    title: str
    similarity: float
    concepts: int
    relevance: float
    score: float


def concepts_of_thread(record: RelationshipRecord, conversation_id: str, sight: Sight | None = None) -> list[str]:
    """Return the ids of the concepts that the messages of a conversation mention, ascending."""
    found = [str(key) for (key,) in record.execute(_CONCEPTS, (conversation_id,))]
    return found if sight is None else [key for key in found if sight.sees_concept(key)]


def documents_of_thread(record: RelationshipRecord, conversation_id: str, sight: Sight | None = None) -> dict[str, int]:
    """Return {document: how many concepts of the conversation it explains}; documents with none are left out."""
    if sight is None:
        return {str(key): int(number) for key, number in record.execute(_COUNTS, (conversation_id,))}
    pairs = sight.explanations((str(key), str(concept)) for key, concept in record.execute(_PAIRS, (conversation_id,)))
    return dict(Counter(document for document, _ in pairs))


def relevances(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the counts of `documents_of_thread` relative to the largest of them."""
    most = max(counts.values(), default=1)
    return {key: number / most for key, number in counts.items()}


def conversation_search(
    record: RelationshipRecord,
    conversation_id: str,
    similarities: Mapping[str, float],
    k: int = 5,
    sight: Sight | None = None,
) -> list[RelevantDocument]:
    """Return the best ``k`` documents by 0.7 x similarity + 0.3 x concept relevance (003), ties by id.

    A document without a concept of the conversation counts by its similarity alone, and a conversation that is not
    there, or mentions nothing, changes no order.

    Args:
        record: the relationship graph.
        conversation_id: whose concepts count.
        similarities: similarity to the question by id of document, of all documents that may be found.
        k: how many are returned at most.
        sight: what a filter lets be seen; without one, everything.

    Raises:
        BadInput: a similarity is no finite number, or ``k`` is less than 1.
    """
    if k < 1:
        raise BadInput(f"{k} documents are asked for", "Ask for at least one")
    if not all(map(math.isfinite, similarities.values())):
        raise BadInput("A similarity is no finite number", "Give the cosine of each document")
    counts = documents_of_thread(record, conversation_id, sight)
    share = relevances(counts)
    scores = {key: SIMILARITY_SHARE * similarity for key, similarity in similarities.items()}
    for key in scores.keys() & share.keys():
        scores[key] += (1 - SIMILARITY_SHARE) * share[key]
    if sight is not None:
        scores = {key: score for key, score in scores.items() if sight.sees_document(key)}
    best = heapq.nsmallest(k, scores.items(), key=lambda item: (-item[1], item[0]))
    return [
        RelevantDocument(key, *_named(record, key), similarities[key], counts.get(key, 0), share.get(key, 0.0), score)
        for key, score in best
    ]


def _named(record: RelationshipRecord, document_id: str) -> tuple[str, str]:
    """Return path and title of a document; its id stands for both where the record does not hold it."""
    node = record.node(NodeType.DOCUMENT, document_id)
    return (str(node.properties["path"]), str(node.properties["title"])) if node else (document_id, document_id)
