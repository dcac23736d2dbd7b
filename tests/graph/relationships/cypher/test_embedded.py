"""The embedded copy: made from the records as they stand, put in place at once, read by many and never written."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph.errors import BadInput, DependencyMissing, WorkspaceDamaged
from graph.relationships.cypher import copies
from graph.relationships.cypher.copies import COPIES, open_copy, remove_copies
from graph.relationships.cypher.reading import MAX_ROWS
from graph.relationships.documents import relate
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import EDGES, NODES, Node, NodeType
from graph.storage.workspace import Workspace
from tests.builders import passage_of, publish_workspace
from tests.graph.relationships.small_graph import NOON, document
from tests.relationship_graphs import sample_edge, sample_node

ODD = (*("", "two\nlines", 'say "so"', "a,b", "NULL", "\\N", " spaces ", "{a: 1}", "back\\slash", "\t#|", "é\u2028木"),)


def count(root: Path, label: str = "Document") -> object:
    with open_copy(root) as copy:
        return copy.query(f"MATCH (n:{label}) RETURN count(n)").rows[0][0]


def one_of_each(record: RelationshipRecord) -> None:
    """Write a node of each type and, for each pair of types, an edge of each type that may link them."""
    for of in NODES:
        record.put_nodes(sample_node(of, f"{of}-{number}") for number in (1, 2))
    for edge_type, schema in EDGES.items():
        record.link_all(sample_edge(edge_type, *pair, f"{pair[0]}-1", f"{pair[1]}-2") for pair in schema.pairs)


def folders(root: Path) -> int:
    return sum(path.is_dir() for path in (root / COPIES).iterdir())


class TestContents:
    def test_every_type_of_node_and_edge_is_there_with_its_properties(self, tmp_path: Path) -> None:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            one_of_each(record)
            with open_copy(tmp_path) as copy:
                for of, declared in NODES.items():
                    node = next(record.nodes(of))
                    (row,) = copy.query(f"MATCH (n:{of} {{id: $key}}) RETURN n", {"key": node.id}).rows
                    assert row[0] == {"_label": of, "id": node.id, **node.properties}
                    assert node.properties.keys() == declared.keys()
                for edge_type, schema in EDGES.items():
                    for source, target in schema.pairs:
                        query = (
                            f"MATCH (a:{source})-[e:{edge_type}]->(b:{target}) RETURN a.id, e, b.id ORDER BY a.id, b.id"
                        )
                        edges = record.edges(edge_type, source, target)
                        expected = [
                            (edge.source[1], {"_type": edge_type, **edge.properties}, edge.target[1]) for edge in edges
                        ]
                        assert expected
                        assert list(copy.query(query).rows) == expected

    def test_texts_are_there_character_by_character_in_a_folder_of_any_name(self, tmp_path: Path) -> None:
        root = tmp_path / "it's [a] * 'name' ?"
        root.mkdir()
        with pytest.raises(BadInput, match="no relationship graph"):
            open_copy(root)
        assert list(root.iterdir()) == []
        with RelationshipRecord.of(root, create=True) as record:
            record.put_nodes(
                Node(NodeType.CONCEPT, f"c{number:02}", {"name": text, "description": None if number % 2 else text})
                for number, text in enumerate(ODD)
            )
        with open_copy(root) as copy:
            rows = copy.query("MATCH (c:Concept) RETURN c.name, c.description ORDER BY c.id").rows
        assert list(rows) == [(text, None if number % 2 else text) for number, text in enumerate(ODD)]


class TestPassages:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        passages = [passage_of(f"p{number}", f"T{number}", f"Passage {number} of 'all'") for number in range(3)]
        publish_workspace(tmp_path, passages)
        chunk = {"path": "f.txt", "fingerprint": "x", "created_at": NOON}
        with RelationshipRecord.of(tmp_path, create=True) as record:
            for number in range(3):
                record.put_node(Node(NodeType.CHUNK, f"p{number}", {**chunk, "chunk_index": number}))
        return tmp_path

    def test_a_copy_has_their_texts(self, root: Path) -> None:
        with Workspace(root).open_record() as passages:
            relate(Workspace(root), passages)
        with open_copy(root) as copy:
            assert copy.query("MATCH (c:DocumentChunk) WHERE c.content CONTAINS '2 of' RETURN c.id").rows == (("p2",),)


class TestMakingIt:
    def test_it_is_made_where_it_is_behind_and_that_is_said(self, record: RelationshipRecord, tmp_path: Path) -> None:
        messages: list[str] = []
        with open_copy(tmp_path, say=messages.append) as first:
            assert len(messages) == 1
            open_copy(tmp_path, say=messages.append).close()
            assert len(messages) == 1
            record.put_node(document("new"))
            with open_copy(tmp_path, say=messages.append) as second:
                assert len(messages) == 2
                assert second.query("MATCH (d:Document {id: 'new'}) RETURN d.id").rows == (("new",),)
            record.remove_nodes(NodeType.DOCUMENT, ["d-plain"])
            assert count(tmp_path) == 7
            assert first.query("MATCH (d:Document {id: 'new'}) RETURN d.id").rows == ()
        assert folders(tmp_path) == 1

    def test_threads_that_want_it_at_once_make_it_once(self, record: RelationshipRecord, tmp_path: Path) -> None:
        messages: list[str] = []
        with ThreadPoolExecutor(8) as pool:
            for copy in pool.map(lambda _: open_copy(tmp_path, say=messages.append), range(8)):
                copy.close()
        assert (len(messages), folders(tmp_path)) == (1, 1)

    def test_a_damaged_one_is_named(self, record: RelationshipRecord, tmp_path: Path) -> None:
        open_copy(tmp_path).close()
        (file,) = (tmp_path / COPIES).glob("*/graph.lbug")
        file.write_bytes(b"\0" * file.stat().st_size)
        with pytest.raises(WorkspaceDamaged, match="cannot be read"):
            open_copy(tmp_path)

    def test_all_of_them_can_be_removed(
        self, record: RelationshipRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        remove_copies(tmp_path)
        with open_copy(tmp_path):
            remove_copies(tmp_path)
            assert folders(tmp_path) == 0
        assert count(tmp_path) == 7
        monkeypatch.setattr(copies, "may_write", lambda place: False)
        assert count(tmp_path) == 7, "one that is up to date is read without write access"

    def test_a_failure_leaves_nothing(
        self, record: RelationshipRecord, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "ladybug", None)
            with pytest.raises(DependencyMissing, match=r"pip install 'mara-rag\[graph\]'"):
                open_copy(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(copies, "may_write", lambda place: False)
            with pytest.raises(BadInput, match="may not be written"):
                open_copy(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(copies, "_cell", lambda value: "'")
            with pytest.raises(BadInput, match="cannot be made"):
                open_copy(tmp_path)
        assert folders(tmp_path) == 0
        assert count(tmp_path) == 7


def test_queries_have_limits_and_never_write(record: RelationshipRecord, tmp_path: Path) -> None:
    slow = "UNWIND range(1, 1000000) AS a UNWIND range(1, 1000000) AS b WITH a, b WHERE a * b < 0 RETURN count(*)"
    with open_copy(tmp_path) as copy:
        query = "MATCH (d:Document) RETURN d.id AS key ORDER BY key"
        cut, whole = copy.query(query, limit=2), copy.query(query, limit=7)
        assert (cut.columns, cut.rows, cut.cut) == (("key",), (("d-alliance",), ("d-nissan",)), True)
        assert (len(whole.rows), whole.cut) == (7, False)
        ((path,),) = copy.query("MATCH p = (:User {id: 'mia'})-[:VIEWED*1..1]->(:Document) RETURN p").rows
        assert (str(path).count("'id'"), str(path).count("'_type': 'VIEWED'")) == (2, 1)
        for limit in (0, MAX_ROWS + 1):
            with pytest.raises(BadInput, match="rows are asked for"):
                copy.query(query, limit=limit)
        with pytest.raises(BadInput, match=r"longer than 0\.2 s"):
            copy.query(slow, timeout_s=0.2)
        with pytest.raises(BadInput, match="cannot be run"):
            copy.query("MATCH (n:Nothing) RETURN n")
        with pytest.raises(RuntimeError, match="read-only"):
            copy._connection.execute("CREATE (:Concept {id: 'x', name: 'x'})")
