"""The record of relationships: what is put is read back, the same again changes nothing, a refusal undoes all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.errors import BadInput, MissingEndpoint, NotInSchema, WorkspaceDamaged, WorkspaceLocked
from graph.relationships import record as record_module
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.relationships.schema import EDGES, Edge, EdgeType, Node, NodeType
from graph.relationships.tables import table_of_edges, table_of_nodes
from graph.storage import database
from tests.relationship_graphs import STORED_NODES, STORED_PAIRS, sample_edge, sample_node

pytestmark = pytest.mark.usefixtures("database")

A_DOCUMENT = sample_node(NodeType.DOCUMENT, "report")
A_DOCUMENT_END = (NodeType.DOCUMENT, "a")


@pytest.fixture
def record(tmp_path: Path) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(tmp_path, create=True) as opened:
        yield opened


def revisions(record: RelationshipRecord) -> dict[str, list[int]]:
    """Return the revisions of the rows of every table that has some."""
    tables = [*map(table_of_nodes, STORED_NODES), *(table_of_edges(*each) for each in STORED_PAIRS)]
    written = {table: [of for (of,) in record.execute(f'SELECT revision FROM "{table}"')] for table in tables}
    return {table: rows for table, rows in written.items() if rows}


def every_node() -> list[Node]:
    return [sample_node(of, key) for of in STORED_NODES for key in ("a", "b")]


def every_edge() -> list[Edge]:
    return [sample_edge(*pair) for pair in STORED_PAIRS]


class TestNodes:
    def test_removing_takes_the_edges_along_and_no_other_node(
        self, record: RelationshipRecord, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_module, "_PAGE", 2)
        record.put_nodes(every_node())
        record.link_all(every_edge())
        assert record.remove_nodes(NodeType.DOCUMENT, ["a", "b", "unknown"]) == 2
        counts = record.counts()
        left = {of: 0 if of is NodeType.DOCUMENT else 2 for of in STORED_NODES}
        assert {of: counts[of] for of in STORED_NODES} == left
        for of in {of for of, _, _ in STORED_PAIRS}:
            pairs = [pair for pair in EDGES[of].pairs if NodeType.DOCUMENT not in pair]
            assert counts[of] == len(pairs)


class TestEdges:
    def test_every_type_is_made_read_back_and_removed(self, record: RelationshipRecord) -> None:
        for of, source, target in STORED_PAIRS:
            edge = sample_edge(of, source, target)
            record.put_nodes(every_node())
            record.link(edge)
            assert list(record.edges(of, source, target)) == [edge]
            assert record.counts()[of] == 1
            assert record.remove_nodes(source, ["a"]) == 1
            assert list(record.edges(of, source, target)) == []

    def test_one_whose_end_is_missing_is_refused_by_name(self, record: RelationshipRecord) -> None:
        record.put_nodes(every_node())
        for of, source, target in STORED_PAIRS:
            for end in ((source, "a"), (target, "b")):
                record.remove_nodes(end[0], [end[1]])
                with pytest.raises(MissingEndpoint, match=f"'{end[1]}' for {of} to link"):
                    record.link(sample_edge(of, source, target))
                assert record.counts()[of] == 0
                record.put_node(sample_node(*end))

    def test_a_symmetric_edge_is_one_in_both_directions(self, record: RelationshipRecord) -> None:
        record.put_nodes(every_node())
        there, back = (
            sample_edge(EdgeType.RELATED_TO, NodeType.CONCEPT, NodeType.CONCEPT, start=start, end=end)
            for start, end in ("ab", "ba")
        )
        record.link_all([back, there])
        assert record.counts()[EdgeType.RELATED_TO] == 1


class TestAgain:
    def test_the_same_again_changes_no_row_and_a_change_marks_its_row_alone(self, record: RelationshipRecord) -> None:
        for _ in range(2):
            record.put_nodes(every_node())
            record.link_all(every_edge())
        tables_of_nodes = set(map(table_of_nodes, STORED_NODES))
        before = revisions(record)
        assert all({*rows} == {1 if table in tables_of_nodes else 2} for table, rows in before.items())
        assert len(before) == len(tables_of_nodes) + len(STORED_PAIRS)
        assert record.revision == 2
        record.put_node(Node(NodeType.SOURCE, "b", {**sample_node(NodeType.SOURCE).properties, "name": "other"}))
        assert revisions(record) == {**before, "source": [1, 3]}
        for _ in range(2):
            with record.transaction():
                record.set_note("key", "value")
        record.remove_nodes(NodeType.USER, ["unknown"])
        assert (record.revision, record.note("key"), record.note("unknown")) == (4, "value", "")


class TestTransactions:
    def test_a_refused_node_or_edge_undoes_all(self, record: RelationshipRecord) -> None:
        with pytest.raises(NotInSchema):
            record.put_nodes([A_DOCUMENT, Node(NodeType.USER, "anna", {})])
        assert not any(record.counts().values())
        record.put_nodes(every_node())
        itself = Edge(EdgeType.FOLLOWS, A_DOCUMENT_END, A_DOCUMENT_END)
        for bad in (sample_edge(*STORED_PAIRS[0], start="gone"), itself):
            with pytest.raises((MissingEndpoint, NotInSchema)):
                record.link_all([*every_edge(), bad])
        assert {record.counts()[of] for of, _, _ in STORED_PAIRS} == {0}

    def test_sql_by_hand_is_held_to_the_schema_too(self, record: RelationshipRecord) -> None:
        record.put_nodes(every_node())
        record.link_all(every_edge())
        for statement in (
            "UPDATE document SET title = NULL",
            "UPDATE document SET version = 0",
            "UPDATE explains SET relevance_score = 2",
            "UPDATE follows SET target = source",
        ):
            with pytest.raises(NotInSchema):
                record.execute(statement)


class TestProcesses:
    def test_a_second_writer_waits_and_removed_bytes_that_stay_are_said(
        self, record: RelationshipRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secret = b"a sentence of one user"
        record.put_node(Node(NodeType.CONCEPT, "c", {"name": secret.decode()}))
        record.remove_nodes(NodeType.CONCEPT, ["c"])
        monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
        with RelationshipRecord.of(tmp_path) as impatient, RelationshipRecord.of(tmp_path) as reader:
            reader.execute("BEGIN")
            reader.counts()
            with pytest.raises(WorkspaceLocked, match="still in its log"):
                impatient.erase_free_pages()
            reader.execute("COMMIT")
            impatient.erase_free_pages()
            with record.transaction(), pytest.raises(WorkspaceLocked, match="being written by another process"):
                impatient.put_node(A_DOCUMENT)
        assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())


class TestFile:
    @pytest.mark.sqlite_file
    def test_a_missing_or_damaged_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(BadInput, match="no relationship graph"):
            RelationshipRecord.of(tmp_path)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / RELATIONSHIPS_FILE).write_bytes(b"SQLite format 3\x00" + b"\xff" * 5000)
        with pytest.raises(WorkspaceDamaged, match=RELATIONSHIPS_FILE):
            RelationshipRecord.of(tmp_path)

    @pytest.mark.sqlite_file
    def test_a_page_that_broke_is_named_when_it_is_read(self, tmp_path: Path) -> None:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            record.put_nodes(sample_node(NodeType.CONCEPT, f"c{n}" * 50) for n in range(2_000))
        path = tmp_path / RELATIONSHIPS_FILE
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] + b"\xff" * (len(whole) - len(whole) // 2))
        with RelationshipRecord.of(tmp_path) as damaged, pytest.raises(WorkspaceDamaged, match="cannot be read"):
            list(damaged.nodes(NodeType.CONCEPT))
