"""Attempts to change what a query does by its values: ids, names, texts, keys and files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.relationships.conversation_search import conversation_search
from graph.relationships.cypher.copies import open_copy
from graph.relationships.discovery import discover
from graph.relationships.exchange import parts_of, to_json_line
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType

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


def content(record: RelationshipRecord) -> set[str]:
    return set(map(to_json_line, parts_of(record)))


@pytest.fixture
def before(record: RelationshipRecord) -> set[str]:
    return content(record)


def test_through_sql_a_text_is_a_text(record: RelationshipRecord, before: set[str]) -> None:
    for text in TEXTS:
        assert conversation_search(record, text, {"d-nissan": 0.5})[0].concepts == 0
        assert discover(record, user_id=text, concepts=[text]) == []
        node = Node(NodeType.CONCEPT, text, {"name": text, "description": text, "type": text})
        record.put_node(node)
        assert record.node(NodeType.CONCEPT, text) == node
        assert record.remove_nodes(NodeType.CONCEPT, [text]) == 1
        assert content(record) == before


def test_a_text_in_a_query_of_a_caller_changes_nothing(
    record: RelationshipRecord, before: set[str], tmp_path: Path
) -> None:
    with open_copy(tmp_path) as copy:
        documents = copy.query("MATCH (d:Document) RETURN count(d)").rows
        for text in TEXTS:
            rows = copy.query("MATCH (d:Document {id: $key}) RETURN d.id", {"key": "d-port", text: "x"}).rows
            assert rows == (("d-port",),)
            quoted = f"MATCH (d:Document) WHERE d.title = '{text}' RETURN d.id"
            for query in (quoted, f"MATCH (d:`{text}`) RETURN d", text):
                with suppress(BadInput):
                    copy.query(query, timeout_s=2)
        assert copy.query("MATCH (d:Document) RETURN count(d)").rows == documents
    assert content(record) == before
