"""Conversation-aware search: documents by their similarity to a question and by what the conversation is about.

A conversation is about the concepts that its messages mention; a document takes part in it by those that it explains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph.embedding.embeddings import check_dimension
from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.sight import Sight, named_document
from graph.relationships.tables import along
from graph.retrieve.seeds import min_max

SIMILARITY_SHARE = 0.7
"""The share of the similarity in a document's score; the rest is that of its concepts."""


EDGE_LIMIT = 20_000
"""EXPLAINS edges that count in one search, at most: a thread's concepts that most documents explain are left out."""

MESSAGES_A_TURN = 2

_THREAD = f"{along('conversation <-part_of- message -mentions-> concept')} WHERE conversation.id = ?"
_OF_THREAD = f"SELECT DISTINCT concept.id FROM {_THREAD}"
_MENTIONS = f"SELECT concept.id, mentions.confidence, max(position) OVER () - position FROM {_THREAD}"


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


@dataclass(frozen=True, slots=True)
class NearChunk:
    """A chunk that a search by vector found.

    Attributes:
        distance: 1 - similarity.
        similarity: the cosine, in [-1, 1].
    """

    id: str
    content: str
    distance: float
    similarity: float


def search_chunks(record: RelationshipRecord, vector: Sequence[float], k: int = 5) -> list[NearChunk]:
    """Return the ``k`` chunks nearest to a vector, nearest first, ties by id.

    Raises:
        BadInput: the vector has no direction, or there is no published generation.
        EmbeddingMismatch: the vectors of the published generation have another dimension.
    """
    graph, wanted = record.graph, np.asarray(vector, dtype=np.float32)
    if graph is None:
        raise BadInput("The workspace holds no vectors", "Index documents into it: `mara index`")
    check_dimension(wanted, graph.passage_vectors.shape[1])
    length = np.linalg.norm(wanted)
    if not 0 < length < np.inf:
        raise BadInput("The vector has no direction", "Give finite numbers that are not all 0")
    cosines = graph.passage_vectors @ (wanted / length)
    nearest = sorted(range(len(cosines)), key=lambda row: (-cosines[row], graph.passage_ids[row]))[:k]
    return [
        NearChunk(graph.passage_ids[row], graph.passages[row].text, 1 - cosines.item(row), cosines.item(row))
        for row in nearest
    ]


def documents_of_thread(record: RelationshipRecord, conversation_id: str, sight: Sight | None = None) -> dict[str, int]:
    """Return {document: how many concepts of the conversation it explains}; documents with none are left out.

    Where its concepts have more than `EDGE_LIMIT` edges together, those that most documents explain do not count.
    """
    concepts = (str(concept) for (concept,) in record.execute(_OF_THREAD, (conversation_id,)))
    seen = [concept for concept in concepts if sight is None or sight.sees_concept(concept)]
    thread = _within_limit({concept: record.concepts.documents_of(concept) for concept in seen})
    if sight is not None:
        explaining = sight.explaining(thread)
        thread = {key: [each for each in thread[key] if each in explaining[key]] for key in explaining}
    return dict(Counter(document for documents in thread.values() for document in documents))


def _within_limit(thread: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the concepts that the fewest documents explain: as many as `EDGE_LIMIT` has room for."""
    kept: dict[str, Sequence[str]] = {}
    left = EDGE_LIMIT
    for concept in sorted(thread, key=lambda each: (len(thread[each]), each)):
        left -= len(thread[concept])
        if left < 0:
            break
        kept[concept] = thread[concept]
    return kept


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
    """Return the best ``k`` documents by 0.7 x similarity + 0.3 x concept relevance, ties by id.

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
    if sight is not None:
        similarities = {key: similarity for key, similarity in similarities.items() if sight.sees_document(key)}
    counts = documents_of_thread(record, conversation_id, sight)
    share = relevances(counts)
    best = _best(similarities, share, k)
    return [
        RelevantDocument(
            key, *named_document(record, key, sight), similarities[key], counts.get(key, 0), share.get(key, 0.0), score
        )
        for key, score in best
    ]


def _best(similarities: Mapping[str, float], share: Mapping[str, float], k: int) -> list[tuple[str, float]]:
    """Return the ``k`` documents with the best mixed scores. Raises BadInput where a similarity is no finite number."""
    keys = list(similarities)
    scores = SIMILARITY_SHARE * np.fromiter(similarities.values(), dtype=np.float64, count=len(keys))
    if not np.isfinite(scores).all():
        raise BadInput("A similarity is no finite number", "Give the cosine of each document")
    scores += (1 - SIMILARITY_SHARE) * np.fromiter((share.get(key, 0.0) for key in keys), np.float64, len(keys))
    least = np.partition(scores, -k)[-k] if k < len(keys) else -np.inf
    near = ((keys[place], float(scores[place])) for place in np.flatnonzero(scores >= least).tolist())
    return sorted(near, key=lambda item: (-item[1], item[0]))[:k]


def thread_concepts(record: RelationshipRecord, conversation_id: str, sight: Sight | None = None) -> dict[str, float]:
    """Return {concept: weight} of what a conversation mentions, as seeds of a walk; the weights sum to 1.

    A mention weighs its confidence, halved for each turn after it, so that the thread's last words count most.
    """
    weights: dict[str, float] = {}
    for concept, confidence, age in record.execute(_MENTIONS, (conversation_id,)):
        if sight is None or sight.sees_concept(concept):
            weights[concept] = weights.get(concept, 0.0) + confidence * 0.5 ** (age / MESSAGES_A_TURN)
    total = sum(weights.values())
    return {concept: weight / total for concept, weight in weights.items()} if total else {}


def with_thread_seeds(seeds: Mapping[int, float], thread: Mapping[int, float], share: float) -> dict[int, float]:
    """Return entity seeds of which ``share`` is given to the concepts of a thread; together they weigh as before.

    Args:
        seeds: {entity: weight} from the question; without any, the thread's weigh ``share``.
        thread: {entity: weight}; scaled to what they are given.
        share: in [0, 1].
    """
    total, thread_total = sum(seeds.values()), sum(thread.values())
    if not share or not thread_total:
        return dict(seeds)
    mixed = {entity: weight * (1 - share) for entity, weight in seeds.items()}
    for entity, weight in thread.items():
        mixed[entity] = mixed.get(entity, 0.0) + weight / thread_total * share * (total or 1.0)
    return mixed


def with_thread_relevance(
    ranking: Sequence[tuple[str, float]], relevance: Mapping[str, float], share: float
) -> list[tuple[int, float]]:
    """Return a ranking by (1 - share) x score + share x relevance, over the scores of any mode.

    Args:
        ranking: (document, score) of each passage, best first; scores are scaled to [0, 1].
        relevance: {document: concept relevance in [0, 1]}; of documents that are not there, 0.
        share: in [0, 1].

    Returns:
        (place in the ranking before, mixed score), best first, ties as before.
    """
    scaled = min_max(np.array([score for _, score in ranking], dtype=np.float64)).tolist()
    mixed = [
        (place, (1 - share) * scaled[place] + share * relevance.get(document, 0.0))
        for place, (document, _) in enumerate(ranking)
    ]
    return sorted(mixed, key=lambda item: (-item[1], item[0]))
