"""Searches that are kept on request: a Query with its similarities, for queries in Cypher and other programs (003)."""

from __future__ import annotations

from collections.abc import Mapping

from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType


def keep_search(record: RelationshipRecord, name: str, text: str, similarities: Mapping[str, float], at: str) -> None:
    """Keep a text under a name, in one transaction, in place of what was kept under it before.

    Args:
        record: the relationship graph.
        name: id of the Query.
        text: what was searched for.
        similarities: score of the SIMILARITY edge by id of document.
        at: when, see `graph.relationships.schema.time_text`.

    Raises:
        NotInSchema: the name or a score is none.
        MissingEndpoint: a document is not in the graph; then nothing is kept.
    """
    query = Node(NodeType.QUERY, name, {"text": text, "created_at": at})
    with record.transaction():
        record.remove_nodes(NodeType.QUERY, [name])
        record.put_node(query)
        record.link_all(
            Edge(EdgeType.SIMILARITY, (NodeType.QUERY, name), (NodeType.DOCUMENT, document), {"score": score})
            for document, score in similarities.items()
        )
