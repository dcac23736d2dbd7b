"""Attempts to change what a query does by what it is given: ids, names, values, keys, search texts and files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from graph.errors import BadInput, MaraError
from graph.relationships.conversation_search import conversation_search
from graph.relationships.cypher import queries
from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.mirror import mirror
from graph.relationships.discovery import discover
from graph.relationships.exchange import Part, from_json_line, from_statement, import_lines, parts_of
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.bolt_server import PASSWORD, USER, BoltEndpoint
from tests.graph.relationships.cypher.conftest import fill
from tests.graph.relationships.small_graph import NOON, viewed

TEXTS = [
    # SQL
    "' OR '1'='1",
    '"; DROP TABLE user; --',
    "x'); DELETE FROM viewed; --",
    "x' UNION SELECT content FROM message --",
    'x"]; DROP TABLE document; --',
    ":user",
    # Cypher in texts of either quotes, and what closes a map, a pattern or a list
    "' OR 1=1 //",
    "'}) DETACH DELETE n //",
    '"}) DETACH DELETE n //',
    "x' RETURN n UNION MATCH (u:User) RETURN u //",
    "'}) SET n.role = 'assistant' //",
    "x'] | CREATE (:Concept {id: 'new'})",
    "${user_id}",
    "*1..100",
    # Escapes that some servers resolve before they read a text
    "\\' OR 1=1 //",
    "\\u0027}) DETACH DELETE n //",
    "\\x27 OR 1=1",
    "x\\",
    # Backticks, for labels and property names
    "`) DETACH DELETE n //",
    "Document` {id: 'd-port'}) DETACH DELETE n //",
    "``",
    "name` = 'x', n.`id",
    # Comments and statements
    "/* */ DETACH DELETE n /* */",
    "x */ CALL db.labels() /*",
    "--",
    # Procedures, files, extensions
    "CALL apoc.cypher.runMany('MATCH (n) DETACH DELETE n', {})",
    "LOAD CSV FROM 'file:///etc/passwd' AS line",
    "INSTALL httpfs; LOAD EXTENSION httpfs",
    # What CSV, the way into the embedded copy, knows
    'x",","y',
    '""',
    "=cmd|' /C calc'!A0",
    "\u2028DETACH DELETE n",
    "\u037e DETACH DELETE n",
    "\u02bc OR 1=1",
    "\u202e' OR 1=1",
    "\u017fET n.role",
    "NULL",
]
"""None holds a control character, which the schema refuses in ids."""


def said_by(part: Part) -> str:
    """All that a node or an edge says, as a text."""
    said = {name: value for name, value in sorted(part.properties.items()) if value is not None}
    ends = [part.id] if isinstance(part, Node) else [*part.source, *part.target]
    return repr((part.type, *ends, said))


class World:
    """The small graph, with a text in place of an id and of every value that is a text."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.record = fill(root)
        self.before = self.parts()

    def put(self, text: str) -> list[Part]:
        """Write nodes and edges that have the text wherever a text may be."""
        times = {"created_at": NOON, "updated_at": NOON}
        nodes = [
            Node(NodeType.USER, text, {"created_at": NOON}),
            Node(NodeType.DOCUMENT, text, {**times, "path": text, "title": text, "version": 1, "content_type": text}),
            Node(NodeType.CONCEPT, text, {"name": text, "description": text, "type": text}),
            Node(NodeType.CONVERSATION, text, {**times, "title": text}),
            Node(NodeType.MESSAGE, text, {"role": "user", "content": text, "created_at": NOON}),
            Node(NodeType.QUERY, text, {"text": text, "created_at": NOON}),
        ]
        message, share = (NodeType.MESSAGE, text), {"relevance_score": 1.0, "confidence": 1.0}
        edges = [
            Edge(EdgeType.PART_OF, message, (NodeType.CONVERSATION, text), {"position": 0}),
            Edge(EdgeType.CREATED, (NodeType.USER, text), message),
            Edge(EdgeType.MENTIONS, message, (NodeType.CONCEPT, text), {"confidence": 1.0}),
            Edge(EdgeType.SIMILARITY, (NodeType.QUERY, text), (NodeType.DOCUMENT, text), {"score": 0.5}),
            Edge(
                EdgeType.EXPLAINS,
                (NodeType.DOCUMENT, text),
                (NodeType.CONCEPT, text),
                {**share, "explanation_type": "mention"},
            ),
            viewed(text, text),
        ]
        self.record.put_nodes(nodes)
        self.record.link_all(edges)
        return [*nodes, *edges]

    def remove(self, text: str) -> None:
        """Remove it again."""
        for of in ("User", "Document", "Concept", "Conversation", "Message", "Query"):
            assert self.record.remove_nodes(NodeType(of), [text]) == 1

    def parts(self) -> set[str]:
        """Everything that the record holds."""
        return set(map(said_by, parts_of(self.record)))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def connected(endpoint: BoltEndpoint) -> Iterator[BoltServer]:
    reached = ServerSettings(ServerSettings.of(endpoint.address).url, USER, PASSWORD, endpoint.new_database())
    with BoltServer(reached) as server:
        yield server


def test_through_sql_a_text_is_a_text(world: World) -> None:
    for text in TEXTS:
        assert conversation_search(world.record, text, {"d-nissan": 0.5})[0].concepts == 0
        assert discover(world.record, user_id=text, concepts=[text]) == []
        assert world.record.node(NodeType.USER, text) is None
        written = set(map(said_by, world.put(text)))
        assert len(written) == 12
        assert world.parts() == world.before | written
        (match,) = conversation_search(world.record, text, {text: 0.5})
        assert (match.id, match.path, match.concepts) == (text, text, 1)
        world.remove(text)
        assert world.parts() == world.before


def asked_everywhere(store: object, text: str) -> dict[str, object]:
    """What the searches find where each is given the text."""
    assert hasattr(store, "query")
    similarities = [{"id": text, "score": 0.5}]
    return {
        "search": store.query(queries.CONVERSATION_SEARCH, {"conversation_id": text, "query_id": text}).rows,
        "scores": store.query(
            queries.CONVERSATION_SEARCH_OF_SCORES, {"conversation_id": text, "similarities": similarities}
        ).rows,
        "discovery": store.query(queries.DISCOVERY, {"user_id": text}).rows,
        "thread": store.query(queries.THREAD, {"conversation_id": text}).rows,
        "views": store.query(queries.VIEWS, {"user_id": text}).rows,
        "citations": store.query(queries.CITATIONS, {"message_id": text}).rows,
        "title": store.query("MATCH (d:Document) WHERE d.title = $text RETURN d.id", {"text": text}).rows,
    }


def expected_for(text: str) -> dict[str, object]:
    match = ((text, text, 0.5, 1, 1.0, pytest.approx(0.65)),)
    return {
        "search": match,
        "scores": match,
        "discovery": (),
        "thread": ((text, "user", text, None),),
        "views": ((text, 1, NOON, NOON),),
        "citations": (),
        "title": ((text,),),
    }


@contextmanager
def all_put(world: World) -> Iterator[None]:
    """Have every text in the world within the block."""
    for text in TEXTS:
        world.put(text)
    try:
        yield
    finally:
        for text in TEXTS:
            world.remove(text)


def test_through_the_embedded_copy_a_text_is_a_text(world: World) -> None:
    with open_copy(world.root) as copy:
        for text in TEXTS:
            assert not any(asked_everywhere(copy, text).values()), text
    with all_put(world), open_copy(world.root) as copy:
        for text in TEXTS:
            assert asked_everywhere(copy, text) == expected_for(text), text
        assert copy.query("MATCH (n) RETURN count(n)").rows == ((6 * len(TEXTS) + 19 + 1,),)


@pytest.mark.slow
def test_through_bolt_a_text_is_a_text(world: World, connected: BoltServer) -> None:
    mirror(world.root, connected)
    for text in TEXTS:
        assert not any(asked_everywhere(connected, text).values()), text
    with all_put(world):
        mirror(world.root, connected)
        for text in TEXTS:
            assert asked_everywhere(connected, text) == expected_for(text), text
        assert connected.rows("MATCH (n) RETURN count(n)") == [(6 * len(TEXTS) + 19 + 1,)]
    mirror(world.root, connected)
    assert connected.rows("MATCH (n) RETURN count(n)") == [(19 + 1,)]


def test_a_text_is_no_name_of_a_type_a_property_or_a_parameter_and_no_line_of_a_script(world: World) -> None:
    for text in TEXTS:
        for attempt in (
            {"node": "Concept", "id": "x", "properties": {"name": "x", text: "x"}},
            {"node": text, "id": "x", "properties": {"name": "x"}},
            {"edge": text, "from": ["User", "mia"], "to": ["Document", "d-port"]},
            {"edge": "VIEWED", "from": [text, "mia"], "to": ["Document", "d-port"]},
        ):
            with pytest.raises(MaraError):
                import_lines(world.record, [json.dumps(attempt)], from_json_line)
        times = {"created_at": NOON, "updated_at": NOON}
        for key in ({text: "x"}, {"title": "x", text: "x"}):
            with pytest.raises(BadInput):
                world.record.put_node(Node(NodeType.CONVERSATION, "x", {**times, **key}))
        whole = f'MERGE (n:`Concept` {{id: "x"}}) SET n += {{`name`: "x"}}; {text}'
        for line in (whole, f'MERGE (n:`Concept` {{id: "{text}" }}) SET n += {{}}', f"x {text}"):
            with pytest.raises(BadInput):
                import_lines(world.record, [line], from_statement)
    assert world.parts() == world.before


def test_a_text_in_a_query_of_a_caller_changes_nothing(world: World) -> None:
    with open_copy(world.root) as copy:
        documents = copy.query("MATCH (d:Document) RETURN count(d)").rows
        for text in TEXTS:
            with pytest.raises(BadInput):
                copy.query("MATCH (d:Document {id: $key}) RETURN d.id", {"key": "d-port", text: "x"})
            quoted = f"MATCH (d:Document) WHERE d.title = '{text}' RETURN d.id"
            for query in (quoted, f"MATCH (d:`{text}`) RETURN d", text):
                with suppress(BadInput):
                    copy.query(query, timeout_s=2)
        assert copy.query("MATCH (d:Document) RETURN count(d)").rows == documents
    assert world.parts() == world.before
    allowed = {f"relationships.sqlite{suffix}" for suffix in ("", "-wal", "-shm")} | {"cypher", "graph-server.lock"}
    assert {path.name for path in world.root.iterdir()} <= allowed
