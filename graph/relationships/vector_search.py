"""Search by vector: the chunks of the relationship graph that are nearest to a vector."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graph.embedding.embeddings import check_dimension
from graph.errors import BadInput, MissingEndpoint
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType
from graph.retrieve.open_index import Index
from graph.retrieve.search import best
from graph.retrieve.selection import Selection


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that is near to a vector.

    Attributes:
        chunk: its node; the id is that of the passage.
        similarity: cosine of its vector and the one searched with, in [-1, 1].
        distance: 1 - similarity, in [0, 2].
    """

    chunk: Node
    similarity: float
    distance: float


def search_chunks(
    record: RelationshipRecord,
    index: Index,
    vector: NDArray[np.floating],
    k: int = 5,
    selection: Selection | None = None,
) -> list[FoundChunk]:
    """Return the ``k`` chunks nearest to a vector, nearest first, ties in the order of the passages (003).

    Args:
        record: the relationship graph of the index's workspace.
        index: an open index; its vectors are compared one by one, and so exactly.
        vector: of any length but 0, shape (dimension,).
        k: how many chunks are returned at most.
        selection: the passages that may be found; all without one.

    Raises:
        BadInput: the vector is 0 or holds what is no finite number, or ``k`` is less than 1.
        EmbeddingMismatch: it is of another dimension than the passages' vectors.
        MissingEndpoint: the relationship graph lacks a passage that the index has.
    """
    unit = _unit(vector)
    if k < 1:
        raise BadInput(f"{k} chunks are asked for", "Ask for at least one")
    vectors = index.graph.passage_vectors
    check_dimension(unit, vectors.shape[1])
    cosines = np.clip(np.asarray(np.vecdot(vectors, unit), dtype=np.float64), -1.0, 1.0)
    ranking = best(cosines, k, selection)
    return [FoundChunk(_chunk(record, index.graph.passage_ids[place]), cosine, 1 - cosine) for place, cosine in ranking]


def _unit(vector: NDArray[np.floating]) -> NDArray[np.float32]:
    length = float(np.linalg.norm(vector))
    if not 0 < length < np.inf:
        raise BadInput("The vector has no direction", "Give finite numbers that are not all 0")
    return np.asarray(vector / length, dtype=np.float32)


def _chunk(record: RelationshipRecord, passage_id: str) -> Node:
    node = record.node(NodeType.CHUNK, passage_id)
    if node is None:
        raise MissingEndpoint(
            f"The relationship graph has no DocumentChunk {passage_id[:60]!r}", "Index or sync the documents again"
        )
    return node
