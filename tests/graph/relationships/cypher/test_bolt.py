"""A graph server over Bolt: its address, its faults, what it may be asked, and that it holds what the record holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import BadInput, GraphUnavailable
from graph.relationships.cypher.bolt import BoltServer, ServerSettings
from graph.relationships.cypher.mirror import mirror
from graph.relationships.exchange import STAMP_LABEL, Table, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NODES, NodeType
from tests.cases import PASSWORD_PARTS, unreadable_addresses
from tests.chroma_server import free_port
from tests.graph.relationships.small_graph import document, user, viewed


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
        ("bolt://me:secret@localhost/", "bolt://localhost"),
        ("neo4j+s://x.databases.example", "neo4j+s://x.databases.example"),
        (" neo4j://[::1]:1 ", "neo4j://[::1]:1"),
    ]:
        assert ServerSettings.of(address).url == reached
    for address in [
        "localhost",
        "http://x",
        "bolt://x?dialect=memgraph",
        "bolt://x:port",
        "bolt://x/db/more",
        "bolt://x?user=me",
        *unreadable_addresses("bolt"),
    ]:
        with pytest.raises(BadInput, match="MARA_GRAPH_URL is no address") as refused:
            ServerSettings.of(address)
        assert not any(part in str(refused.value) for part in PASSWORD_PARTS)
    monkeypatch.delenv("MARA_GRAPH_URL", raising=False)
    assert ServerSettings.from_environment() is None
    monkeypatch.setenv("MARA_GRAPH_URL", "bolt://me:top%40secret@localhost/my%20db")
    settings = ServerSettings.from_environment()
    assert settings == ServerSettings("bolt://localhost", "me", "top@secret", "my db")
    assert "top@secret" not in repr(settings)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(GraphUnavailable, match="does not answer"):
        BoltServer(ServerSettings(ServerSettings.of(f"bolt://localhost:{free_port()}").url))


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
        record.execute("DELETE FROM explains WHERE source = (SELECT min(source) FROM explains)")
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


def nodes_alone() -> Iterator[Table]:
    yield from (table for table in tables() if not table.ends)
    raise GraphUnavailable("The server went away")
