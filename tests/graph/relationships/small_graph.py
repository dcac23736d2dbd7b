"""A relationship graph small enough to work every search out by hand.

    paris ─ renault ─ nissan ─ yokohama ─ port ─ silk

Mia asked about Nissan twice, was told of Renault, and viewed the document on Renault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graph.construction.build import derive_graph
from graph.relationships.documents import InStep, bring_in_step
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.schema import Passage, entity_id
from graph.storage.record import Record
from tests.builders import HashEmbedder, TripleParts, write_passages

Properties = dict[str, PropertyValue]

NOON = "2026-01-01T12:00:00.000000+00:00"

EXPLAINED = {
    "d-nissan": {"Nissan": 1.0, "Yokohama": 0.5},
    "d-yokohama": {"Yokohama": 1.0, "Port": 0.6},
    "d-port": {"Port": 0.9},
    "d-silk": {"Silk": 1.0},
    "d-renault": {"Renault": 1.0, "Paris": 0.5},
    "d-alliance": {"Nissan": 0.8, "Renault": 0.8},
    "d-plain": {},
}
RELATED = {
    ("Nissan", "Yokohama"): "SPATIAL",
    ("Yokohama", "Port"): "HIERARCHICAL",
    ("Port", "Silk"): "CAUSALITY",
    ("Nissan", "Renault"): "ATTRIBUTION",
    ("Renault", "Paris"): "SPATIAL",
}
CONCEPTS = sorted({name for pair in RELATED for name in pair})


def small_record(root: Path) -> RelationshipRecord:
    """Return a new record of the graph above."""
    record = RelationshipRecord.of(root, create=True)
    record.put_nodes([*map(concept, CONCEPTS), *map(document, EXPLAINED)])
    record.link_all(explains(key, name, score) for key, names in EXPLAINED.items() for name, score in names.items())
    record.link_all(related(*pair, relation) for pair, relation in RELATED.items())
    record.put_nodes([user("mia"), conversation("thread")])
    say(record, "thread", "m1", "Nissan", by="mia")
    say(record, "thread", "m2", "Renault", at=1)
    say(record, "thread", "m3", "Nissan", by="mia", at=2)
    record.link(viewed("mia", "d-renault"))
    return record


def concept(name: str) -> Node:
    return Node(NodeType.CONCEPT, entity_id(name), {"name": name})


def document(key: str) -> Node:
    properties: Properties = {
        "path": f"{key}.md",
        "title": key.title(),
        "created_at": NOON,
        "updated_at": NOON,
        "version": 1,
    }
    return Node(NodeType.DOCUMENT, key, properties)


def user(key: str) -> Node:
    return Node(NodeType.USER, key, {"created_at": NOON})


def conversation(key: str) -> Node:
    return Node(NodeType.CONVERSATION, key, {"created_at": NOON, "updated_at": NOON})


def explains(key: str, name: str, score: float = 1.0) -> Edge:
    properties: Properties = {"relevance_score": score, "explanation_type": "mention", "confidence": 1.0}
    return Edge(EdgeType.EXPLAINS, (NodeType.DOCUMENT, key), (NodeType.CONCEPT, entity_id(name)), properties)


def related(one: str, other: str, relation: str = "ATTRIBUTION", confidence: float = 1.0) -> Edge:
    source, target = ((NodeType.CONCEPT, entity_id(name)) for name in (one, other))
    properties: Properties = {"relation": relation, "documents": 1, "confidence": confidence}
    return Edge(EdgeType.RELATED_TO, source, target, properties)


def viewed(
    key: str,
    document_id: str,
    count: int = 1,
    at: str = NOON,
    score: float | None = None,
    seconds: int | None = None,
) -> Edge:
    properties: Properties = {
        "view_count": count,
        "first_viewed_at": NOON,
        "last_viewed_at": at,
        "duration": seconds,
        "relevance_score": score,
    }
    return Edge(EdgeType.VIEWED, (NodeType.USER, key), (NodeType.DOCUMENT, document_id), properties)


def say(
    record: RelationshipRecord, thread: str, key: str, *names: str, by: str = "", at: int = 0, when: str = NOON
) -> None:
    """Write a message of a conversation that mentions concepts; a user's where ``by`` names one."""
    message = (NodeType.MESSAGE, key)
    role = "user" if by else "assistant"
    record.put_node(Node(*message, {"role": role, "content": " and ".join(names) or "What?", "created_at": when}))
    record.link(Edge(EdgeType.PART_OF, message, (NodeType.CONVERSATION, thread), {"position": at}))
    record.link_all(
        Edge(EdgeType.MENTIONS, message, (NodeType.CONCEPT, entity_id(name)), {"confidence": 1.0}) for name in names
    )
    if by:
        record.link(Edge(EdgeType.CREATED, (NodeType.USER, by), message))


def cite(record: RelationshipRecord, message_id: str, document_id: str) -> None:
    """Let a message refer to a document."""
    ends = (NodeType.MESSAGE, message_id), (NodeType.DOCUMENT, document_id)
    record.link(Edge(EdgeType.REFERENCES, *ends, {"number": 1}))


FIRST = datetime(2026, 1, 1, tzinfo=UTC)
LATER = FIRST + timedelta(days=30)

Facts = Mapping[str, Sequence[TripleParts]]


class Step:
    """A record of passages and the relationship graph beside it."""

    def __init__(self, root: Path) -> None:
        root.mkdir(exist_ok=True)
        self.root = root
        self.record = Record(root / "record.sqlite", create=True)
        self.to = RelationshipRecord.of(root, create=True)

    def write(self, passages: Sequence[Passage], facts: Facts | None = None, removed: Sequence[str] = ()) -> None:
        write_passages(self.record, passages, facts or {}, HashEmbedder(), removed)

    def take(self, now: datetime = FIRST) -> InStep:
        return bring_in_step(self.to, self.record, derive_graph(self.record), now)

    def counts(self, now: datetime = LATER) -> tuple[int, int, int]:
        """Take a step; return how many documents are new, changed and gone."""
        changes = self.take(now)
        return changes.new, changes.changed, changes.gone

    def properties(self, of: NodeType, key: str) -> Mapping[str, PropertyValue]:
        node = self.to.node(of, key)
        assert node is not None
        return node.properties

    def versions(self) -> dict[str, PropertyValue]:
        return {node.id: node.properties["version"] for node in self.to.nodes(NodeType.DOCUMENT)}
