"""Attempts to change what a query does by its values: ids, names, texts, keys and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from graph.errors import BadInput, MaraError
from graph.relationships.conversation_search import conversation_search
from graph.relationships.cypher.copies import open_copy
from graph.relationships.discovery import discover
from graph.relationships.exchange import import_lines, parts_of, to_json_line
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.graph.relationships.small_graph import NOON, Properties, concept, conversation, document

TEXTS = [
    '"; DROP TABLE user; --',
    "x' UNION SELECT content FROM message --",
    "' OR 1=1 //",
    "'}) DETACH DELETE n //",
    "x'] | CREATE (:Concept {id: 'new'})",
    "${user_id}",
    "\\' OR 1=1 //",
    "\\u0027}) DETACH DELETE n //",
    "Document` {id: 'd-port'}) DETACH DELETE n //",
    "``",
    "/* */ DETACH DELETE n /* */",
    "CALL apoc.cypher.runMany('MATCH (n) DETACH DELETE n', {})",
    "LOAD CSV FROM 'file:///etc/passwd' AS line",
    'x",","y',
    "\u2028DETACH DELETE n",
    "NULL",
]
"""None holds a control character, which the schema refuses in ids."""
KINDS = (NodeType.DOCUMENT, NodeType.CONCEPT, NodeType.CONVERSATION, NodeType.MESSAGE)


@contextmanager
def written(record: RelationshipRecord, text: str) -> Iterator[None]:
    """Have nodes and edges within the block that hold a text as their id and in every value that is a text."""
    message, end = (NodeType.MESSAGE, text), (NodeType.CONCEPT, text)
    share: Properties = {"relevance_score": 1.0, "confidence": 1.0, "explanation_type": "mention"}
    record.put_nodes(
        [
            Node(NodeType.DOCUMENT, text, {**document(text).properties, "path": text, "title": text}),
            Node(NodeType.CONCEPT, text, {"name": text, "description": text, "type": text}),
            Node(NodeType.CONVERSATION, text, {**conversation(text).properties, "title": text}),
            Node(NodeType.MESSAGE, text, {"role": "user", "content": text, "created_at": NOON}),
        ]
    )
    record.link_all(
        [
            Edge(EdgeType.PART_OF, message, (NodeType.CONVERSATION, text), {"position": 0}),
            Edge(EdgeType.MENTIONS, message, end, {"confidence": 1.0}),
            Edge(EdgeType.EXPLAINS, (NodeType.DOCUMENT, text), end, share),
        ]
    )
    yield
    for of in KINDS:
        assert record.remove_nodes(of, [text]) == 1


def content(record: RelationshipRecord) -> set[str]:
    return set(map(to_json_line, parts_of(record)))


@pytest.fixture
def before(record: RelationshipRecord) -> set[str]:
    return content(record)


def test_through_sql_a_text_is_a_text(record: RelationshipRecord, before: set[str]) -> None:
    for text in TEXTS:
        assert conversation_search(record, text, {"d-nissan": 0.5})[0].concepts == 0
        assert discover(record, user_id=text, concepts=[text]) == []
        with written(record, text):
            assert len(content(record) - before) == 7
            (match,) = conversation_search(record, text, {text: 0.5})
            assert (match.id, match.path, match.concepts) == (text, text, 1)
        assert content(record) == before


def test_a_text_is_no_name_of_a_type_or_a_property(record: RelationshipRecord, before: set[str]) -> None:
    for text in TEXTS:
        for attempt in (
            {"node": "Concept", "id": "x", "properties": {"name": "x", text: "x"}},
            {"node": text, "id": "x", "properties": {"name": "x"}},
            {"edge": text, "from": ["User", "mia"], "to": ["Document", "d-port"]},
            {"edge": "VIEWED", "from": [text, "mia"], "to": ["Document", "d-port"]},
        ):
            with pytest.raises(MaraError):
                import_lines(record, [json.dumps(attempt)])
        with pytest.raises(BadInput):
            record.put_node(Node(NodeType.CONCEPT, "x", {**concept("x").properties, text: "x"}))
    assert content(record) == before


def test_a_text_in_a_query_of_a_caller_changes_nothing(
    record: RelationshipRecord, before: set[str], tmp_path: Path
) -> None:
    with open_copy(tmp_path) as copy:
        documents = copy.query("MATCH (d:Document) RETURN count(d)").rows
        for text in TEXTS:
            with pytest.raises(BadInput):
                copy.query("MATCH (d:Document {id: $key}) RETURN d.id", {"key": "d-port", text: "x"})
            quoted = f"MATCH (d:Document) WHERE d.title = '{text}' RETURN d.id"
            for query in (quoted, f"MATCH (d:`{text}`) RETURN d", text):
                with suppress(BadInput):
                    copy.query(query, timeout_s=2)
        assert copy.query("MATCH (d:Document) RETURN count(d)").rows == documents
    assert content(record) == before
