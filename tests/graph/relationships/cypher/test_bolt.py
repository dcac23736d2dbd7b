"""A graph server over Bolt: its address, its faults, what it may be asked, and that it holds what the record holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import BadInput, GraphUnavailable
from graph.relationships.cypher.bolt import BoltServer, ServerSettings, VectorIndex
from graph.relationships.cypher.mirror import mirror
from graph.relationships.documents import relate
from graph.relationships.exchange import STAMP_LABEL, Table, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NODES, EdgeType, Node, NodeType
from graph.storage.workspace import Workspace
from tests.builders import passage_of, publish_workspace
from tests.cases import PASSWORD_PARTS, unreadable_addresses
from tests.chroma_server import free_port
from tests.graph.relationships.small_graph import NOON, document, user, viewed


def contents(server: BoltServer) -> dict[str, set[object]]:
    """Everything that a server holds, but its stamp."""
    stored: dict[str, set[object]] = {
        of: {tuple(sorted(node.items())) for (node,) in server.rows(f"MATCH (n:`{of}`) RETURN properties(n)")}
        for of in NODES
    }
    for link in (table for table in tables() if table.ends):
        start, end = link.ends
        query = f"MATCH (a:`{start}`)-[e:`{link.name}`]->(b:`{end}`) RETURN a.id, b.id, properties(e)"
        stored[f"{link.name} {start} {end}"] = {
            (source, target, tuple(sorted(properties.items()))) for source, target, properties in server.rows(query)
        }
    return stored


def contents_of(record: RelationshipRecord) -> dict[str, set[object]]:
    """What a server is to hold of a record."""
    stored: dict[str, set[object]] = {}
    for table in tables():
        rows = (zip(table.columns, row, strict=True) for row in table.rows(record))
        if not table.ends:
            stored[table.name] = {tuple(sorted((k, v) for k, v in row if v is not None)) for row in rows}
            continue
        stored[" ".join((table.name, *table.ends))] = {
            (source, target, tuple(sorted((k, v) for k, v in values if v is not None)))
            for (_, source), (_, target), *values in rows
        }
    return stored


def test_an_address_is_read_or_refused_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, reached in [
        ("localhost", "bolt://127.0.0.1:7687"),
        ("graph.example:9999", "bolt://graph.example:9999"),
        ("neo4j+s://x.databases.example", "neo4j+s://x.databases.example:7687"),
        (" neo4j://[::1]:1 ", "neo4j://[::1]:1"),
    ]:
        assert ServerSettings.of(address).url == reached
    for address in ["http://x", "bolt://x:port", "bolt://x/db/more", "bolt://x?user=me", *unreadable_addresses("bolt")]:
        with pytest.raises(BadInput, match="MARA_GRAPH_URL is no address") as refused:
            ServerSettings.of(address)
        assert not any(part in str(refused.value) for part in PASSWORD_PARTS)
    monkeypatch.delenv("MARA_GRAPH_URL", raising=False)
    assert ServerSettings.from_environment() is None
    monkeypatch.setenv("MARA_GRAPH_URL", "bolt://me:top%40secret@localhost/my%20db?dialect=memgraph")
    settings = ServerSettings.from_environment()
    assert settings == ServerSettings("bolt://127.0.0.1:7687", "me", "top@secret", "my db", "memgraph")
    assert "top@secret" not in repr(settings)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(GraphUnavailable, match="does not answer"):
        BoltServer(ServerSettings(ServerSettings.of(f"localhost:{free_port()}").url))


@pytest.mark.slow
class TestFaults:
    def test_credentials_that_are_refused(self, settings: ServerSettings) -> None:
        with pytest.raises(GraphUnavailable, match="refuses the credentials") as refused:
            BoltServer(dataclasses.replace(settings, password="topsecret"))
        assert "topsecret" not in str(refused.value)


@pytest.mark.slow
class TestReading:
    def test_nothing_is_committed_past_the_check(self, server: BoltServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("graph.relationships.cypher.reading.check_reads_only", lambda query: query)
        server.query("CREATE (n:Concept {id: 'x'}) RETURN n.id")
        assert server.rows("MATCH (n:Concept) RETURN n.id") == []


@pytest.mark.slow
class TestMirroring:
    def test_it_holds_what_the_record_holds(
        self, server: BoltServer, record: RelationshipRecord, tmp_path: Path
    ) -> None:
        done = mirror(tmp_path, server)
        assert done.removed == 0
        assert contents(server) == contents_of(record)
        again = mirror(tmp_path, server)
        assert (again.written, again.removed) == (0, 0)
        assert contents(server) == contents_of(record)

    def test_only_what_changed_is_sent_and_what_was_removed_goes(
        self, server: BoltServer, record: RelationshipRecord, tmp_path: Path
    ) -> None:
        mirror(tmp_path, server)
        record.put_nodes([document("new"), document("d-silk"), user("ann")])
        record.link(viewed("mia", "d-renault", count=5))
        done = mirror(tmp_path, server)
        assert (done.written, done.removed) == (3, 0)
        assert contents(server) == contents_of(record)
        record.remove_nodes(NodeType.USER, ["mia"])
        record.remove_nodes(NodeType.MESSAGE, ["m1"])
        record.unlink(next(record.edges(EdgeType.EXPLAINS, NodeType.DOCUMENT, NodeType.CONCEPT)))
        record.put_nodes([user("bob"), user("eve")])  # more users than before
        assert mirror(tmp_path, server).removed >= 3
        assert contents(server) == contents_of(record)

    def test_what_a_run_that_broke_off_has_sent_goes_too(
        self, server: BoltServer, record: RelationshipRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mirror(tmp_path, server)
        record.put_node(user("gone"))
        with monkeypatch.context() as patch:
            patch.setattr("graph.relationships.cypher.mirror.tables", nodes_alone)
            with pytest.raises(GraphUnavailable):
                mirror(tmp_path, server)
        assert server.rows("MATCH (u:User {id: 'gone'}) RETURN u.id") == [("gone",)]
        record.remove_nodes(NodeType.USER, ["gone"])
        mirror(tmp_path, server)
        assert contents(server) == contents_of(record)

    def test_what_others_wrote_and_a_record_that_was_put_back_are_put_right(
        self, server: BoltServer, record: RelationshipRecord, tmp_path: Path
    ) -> None:
        mirror(tmp_path, server)
        server.write("MERGE (:Concept {id: 'foreign', name: 'x'})")
        server.write("MATCH (d:Document {id: 'd-port'}) DETACH DELETE d")
        mirror(tmp_path, server)
        assert contents(server) == contents_of(record)
        server.write("MATCH (d:Document {id: 'd-port'}) SET d.title = 'theirs'")
        server.write(f"MATCH (s:`{STAMP_LABEL}`) SET s.revision = 10000")
        mirror(tmp_path, server)
        assert contents(server) == contents_of(record)
        assert server.rows("MATCH (n:Interaction) RETURN n.id ORDER BY n.id") == [("m1",), ("m2",), ("m3",)]

    def test_a_database_holds_one_workspace(
        self, server: BoltServer, record: RelationshipRecord, tmp_path: Path
    ) -> None:
        server.write("CREATE (:User {id: 'theirs'})")
        with pytest.raises(BadInput, match="did not write"):
            mirror(tmp_path, server)
        assert server.rows("MATCH (n) RETURN count(n)") == [(1,)]
        server.write("MATCH (n) DETACH DELETE n")
        mirror(tmp_path, server)
        (tmp_path / "other").mkdir()
        RelationshipRecord.of(tmp_path / "other", create=True).close()
        with pytest.raises(BadInput, match="another workspace"):
            mirror(tmp_path / "other", server)
        assert contents(server) == contents_of(record)


@pytest.mark.slow
class TestPassages:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        passages = [passage_of(f"p{number}", f"T{number}", f"Passage {number}") for number in range(3)]
        publish_workspace(tmp_path, passages)
        chunk = {"path": "f.txt", "fingerprint": "x", "created_at": NOON}
        with RelationshipRecord.of(tmp_path, create=True) as record:
            for number in range(3):
                record.put_node(Node(NodeType.CHUNK, f"p{number}", {**chunk, "chunk_index": number}))
        return tmp_path

    def test_the_chunks_nearest_to_a_vector_are_those_of_the_record(self, server: BoltServer, root: Path) -> None:
        with Workspace(root).open_record() as passages:
            (entry,) = passages.entries(["p1"])
            wanted, dimension = entry.vector.astype(float).tolist(), passages.dimension
        mirror(root, server)
        assert server.search_chunks(wanted) == []
        mirror(root, server, vectors=VectorIndex(dimension))
        chunks = server.search_chunks(wanted)
        with Workspace(root).open_record() as passages:
            relate(Workspace(root), passages)
        with RelationshipRecord.of(root) as record:
            expected = record.search_chunks(wanted)
        assert [(each.id, each.content) for each in chunks] == [(each.id, each.content) for each in expected]
        assert [each.similarity for each in chunks] == pytest.approx([each.similarity for each in expected], abs=1e-5)
        assert (chunks[0].id, chunks[0].content) == ("p1", "Passage 1")
        assert chunks[0].distance == pytest.approx(0, abs=1e-5)


def nodes_alone(*, with_vectors: bool) -> Iterator[Table]:
    yield from (table for table in tables(with_vectors=with_vectors) if not table.ends)
    raise GraphUnavailable("The server went away")
