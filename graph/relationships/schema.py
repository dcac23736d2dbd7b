"""The schema of the relationship graph: its nodes, its edges, their properties, and the pairs that an edge may link.

Tables of the record, files of an export and statements of a graph server all follow from it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from types import MappingProxyType

from graph.errors import NotInSchema
from graph.schema import MAX_ID
from graph.text import has_controls, is_unicode

PropertyValue = str | int | float | None


class NodeType(StrEnum):
    """The type of a node: its label."""

    SOURCE = "Source"
    """A file, a folder of a corpus or a website that documents came from."""
    DOCUMENT = "Document"
    CHUNK = "DocumentChunk"
    """A passage."""
    VECTOR = "Vector"
    """The embedding of a passage; the numbers themselves are in the record of passages."""
    VECTOR_STORE = "VectorStore"
    """The search index that vectors are stored in: one for each embedding model."""
    MESSAGE = "Message"
    """A question or an answer, also called an interaction.

    ``understood`` is a question as it was completed, ``kind`` what an answer is, ``cited`` the numbers and ids of the
    passages that it cites, as JSON: REFERENCES go with the passages that are removed, and this does not.
    """
    CONVERSATION = "Conversation"
    USER = "User"
    QUERY = "Query"
    """A search text whose similarities were kept on request."""
    CONCEPT = "Concept"
    """An entity of the knowledge graph, as documents explain it and messages mention it."""


class EdgeType(StrEnum):
    """The type of an edge."""

    CHUNK_OF = "CHUNK_OF"
    SOURCED_FROM = "SOURCED_FROM"
    STORED_IN = "STORED_IN"
    EMBEDDING_OF = "EMBEDDING_OF"
    FOLLOWS = "FOLLOWS"
    REFERENCES = "REFERENCES"
    PART_OF = "PART_OF"
    """From a message to its conversation; CONTAINS is the same edge, read backwards."""
    MENTIONS = "MENTIONS"
    EXPLAINS = "EXPLAINS"
    RELATED_TO = "RELATED_TO"
    VIEWED = "VIEWED"
    CREATED = "CREATED"
    SIMILARITY = "SIMILARITY"


class PropertyKind(StrEnum):
    """The kind of a property's values."""

    TEXT = "TEXT"
    INTEGER = "INTEGER"
    REAL = "REAL"
    TIME = "TIME"
    """A time in UTC as `time_text` writes it: texts sort as times do."""


def time_text(when: datetime) -> str:
    """Return a time as properties hold it: in UTC, as ISO 8601 text with microseconds and ``+00:00``.

    One without a time zone is local time.
    """
    return when.astimezone(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a node or an edge.

    Attributes:
        kind: the kind of its values.
        required: whether it may not be null.
        least: the least number it may be.
        most: the largest number it may be.
        choices: the texts it may be; empty for any.
    """

    kind: PropertyKind = PropertyKind.TEXT
    required: bool = False
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EdgeSchema:
    """The schema of an edge type.

    Attributes:
        pairs: the types of nodes that it links, from and to.
        properties: by name.
        symmetric: whether it means the same in both directions; then it is kept once, from the smaller id.
    """

    pairs: tuple[tuple[NodeType, NodeType], ...]
    properties: Mapping[str, Property] = field(default_factory=dict)
    symmetric: bool = False


_MOST_INTEGER = 2**63 - 1
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00")
_TEXT = Property()
_NAME = Property(required=True)
_WHEN = Property(PropertyKind.TIME, required=True)
_COUNT = Property(PropertyKind.INTEGER, required=True, least=0)
_SHARE = Property(PropertyKind.REAL, required=True, least=0, most=1)

NODES: Mapping[NodeType, Mapping[str, Property]] = MappingProxyType(
    {
        NodeType.SOURCE: {"name": _NAME, "type": _NAME, "uri": _NAME},
        NodeType.DOCUMENT: {
            "path": _NAME,
            "title": _NAME,
            "content_type": _TEXT,
            "created_at": _WHEN,
            "updated_at": _WHEN,
            "version": Property(PropertyKind.INTEGER, required=True, least=1),
        },
        NodeType.CHUNK: {
            "chunk_index": _COUNT,
            "path": _NAME,
            "fingerprint": _NAME,
            "content_hash": _TEXT,
            "created_at": _WHEN,
        },
        NodeType.VECTOR: {"chunk_id": _NAME},
        NodeType.VECTOR_STORE: {"model": _NAME, "dimension": _COUNT, "metric": _NAME},
        NodeType.MESSAGE: {
            "role": Property(required=True, choices=("user", "assistant")),
            "content": _NAME,
            "created_at": _WHEN,
            "understood": _TEXT,
            "kind": _TEXT,
            "cited": _TEXT,
        },
        NodeType.CONVERSATION: {"title": _TEXT, "created_at": _WHEN, "updated_at": _WHEN},
        NodeType.USER: {"created_at": _WHEN},
        NodeType.QUERY: {"text": _NAME, "created_at": _WHEN},
        NodeType.CONCEPT: {"name": _NAME, "description": _TEXT, "type": _TEXT},
    }
)
"""The properties of each type of node, beside its ``id``."""

EDGES: Mapping[EdgeType, EdgeSchema] = MappingProxyType(
    {
        EdgeType.CHUNK_OF: EdgeSchema(((NodeType.CHUNK, NodeType.DOCUMENT),)),
        EdgeType.SOURCED_FROM: EdgeSchema(((NodeType.DOCUMENT, NodeType.SOURCE),)),
        EdgeType.STORED_IN: EdgeSchema(((NodeType.VECTOR, NodeType.VECTOR_STORE),)),
        EdgeType.EMBEDDING_OF: EdgeSchema(((NodeType.VECTOR, NodeType.CHUNK),)),
        EdgeType.FOLLOWS: EdgeSchema(((NodeType.MESSAGE, NodeType.MESSAGE),)),
        EdgeType.REFERENCES: EdgeSchema(
            (
                (NodeType.DOCUMENT, NodeType.SOURCE),
                (NodeType.MESSAGE, NodeType.DOCUMENT),
                (NodeType.MESSAGE, NodeType.CHUNK),
            ),
            {"number": Property(PropertyKind.INTEGER, least=1)},
        ),
        EdgeType.PART_OF: EdgeSchema(((NodeType.MESSAGE, NodeType.CONVERSATION),), {"position": _COUNT}),
        EdgeType.MENTIONS: EdgeSchema(((NodeType.MESSAGE, NodeType.CONCEPT),), {"confidence": _SHARE}),
        EdgeType.EXPLAINS: EdgeSchema(
            ((NodeType.DOCUMENT, NodeType.CONCEPT),),
            {"relevance_score": _SHARE, "explanation_type": _NAME, "confidence": _SHARE},
        ),
        EdgeType.RELATED_TO: EdgeSchema(
            ((NodeType.CONCEPT, NodeType.CONCEPT),),
            {"relation": _NAME, "documents": _COUNT, "confidence": _SHARE},
            symmetric=True,
        ),
        EdgeType.VIEWED: EdgeSchema(
            ((NodeType.USER, NodeType.DOCUMENT),),
            {
                "view_count": Property(PropertyKind.INTEGER, required=True, least=1),
                "first_viewed_at": _WHEN,
                "last_viewed_at": _WHEN,
                "duration": Property(PropertyKind.INTEGER, least=0),
                "relevance_score": Property(PropertyKind.REAL, least=-1, most=1),
            },
        ),
        EdgeType.CREATED: EdgeSchema(((NodeType.USER, NodeType.MESSAGE),)),
        EdgeType.SIMILARITY: EdgeSchema(
            ((NodeType.QUERY, NodeType.DOCUMENT),), {"score": Property(PropertyKind.REAL, required=True)}
        ),
    }
)
"""The schema of each type of edge."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node.

    Attributes:
        id: unique among the nodes of its type.
        properties: by name, as `NODES` declares them; one that is left out is null.
    """

    type: NodeType
    id: str
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from one node to another.

    Attributes:
        source: type and id of the node that it leaves.
        target: type and id of the node that it reaches.
        properties: by name, as `EDGES` declares them; one that is left out is null.
    """

    type: EdgeType
    source: tuple[NodeType, str]
    target: tuple[NodeType, str]
    properties: Mapping[str, PropertyValue] = field(default_factory=dict)


def check_node(node: Node) -> None:
    """Raise NotInSchema where a node's id or properties are not as `NODES` declares them."""
    _check_id(node.type, node.id)
    _check_properties(node.type, NODES[node.type], node.properties)


def check_edge(edge: Edge) -> None:
    """Raise NotInSchema where an edge links what it may not, or has properties that `EDGES` does not declare."""
    schema = EDGES[edge.type]
    for label, key in (edge.source, edge.target):
        _check_id(label, key)
    pair = (edge.source[0], edge.target[0])
    if pair not in schema.pairs:
        allowed = ", ".join(f"{start} to {end}" for start, end in schema.pairs)
        raise NotInSchema(f"{edge.type} does not go from {pair[0]} to {pair[1]}", f"It goes from {allowed}")
    if edge.source == edge.target:
        raise NotInSchema(f"{edge.type} would link {pair[0]} {edge.source[1][:60]!r} with itself", "Link two nodes")
    _check_properties(edge.type, schema.properties, edge.properties)


def _check_id(label: str, key: str) -> None:
    if not key.strip() or has_controls(key) or len(key) > MAX_ID or not is_unicode(key):
        raise NotInSchema(
            f"{key[:60]!r} is no id of a {label}",
            f"Give 1 to {MAX_ID:,} characters of Unicode without control characters",
        )


def _check_properties(label: str, declared: Mapping[str, Property], properties: Mapping[str, PropertyValue]) -> None:
    if unknown := properties.keys() - declared.keys():
        raise NotInSchema(f"{label} has no property {min(unknown)[:60]!r}", f"It has {', '.join(declared) or 'none'}")
    for name, expected in declared.items():
        value = properties.get(name)
        if not (_is_as_declared(value, expected) if value is not None else not expected.required):
            limits = [f"at least {expected.least:g}"] if expected.least is not None else []
            limits += [f"at most {expected.most:g}"] if expected.most is not None else []
            raise NotInSchema(
                f"{label}.{name} is not as declared: {str(value)[:60]!r}",
                f"Give {', '.join([f'a value of kind {expected.kind}', *limits, *expected.choices])}",
            )


def _is_as_declared(value: PropertyValue, expected: Property) -> bool:
    """Tell whether a value is of its kind, one of its choices, and within its limits and those of SQLite."""
    is_text = expected.kind in (PropertyKind.TEXT, PropertyKind.TIME)
    if isinstance(value, str):
        is_time = expected.kind is not PropertyKind.TIME or _TIME_TEXT.fullmatch(value) is not None
        return is_text and is_unicode(value) and is_time and (not expected.choices or value in expected.choices)
    numbers = int if expected.kind is PropertyKind.INTEGER else int | float
    if is_text or isinstance(value, bool) or not isinstance(value, numbers):
        return False
    widest = _MOST_INTEGER if isinstance(value, int) else sys.float_info.max
    least = -widest if expected.least is None else expected.least
    return least <= value <= (widest if expected.most is None else expected.most)


class HistoryPart(StrEnum):
    """A part of a turn that may be written."""

    MESSAGES = "messages"
    """The question and its answer, their conversation, and the user."""
    REFERENCES = "references"
    """The documents and passages that the answer cites."""
    CONCEPTS = "concepts"
    """The concepts that question and answer mention."""
    VIEWS = "views"
    """The documents that the answer showed to the user."""


EVERY_PART = tuple(HistoryPart)
