"""The relationship graph as files: what is written is read back whole, and nothing else is read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import igraph
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput, MissingEndpoint, NotInSchema
from graph.relationships.exchange import (
    from_json_line,
    from_statement,
    import_lines,
    parts_of,
    to_graphml,
    to_json_line,
    to_statement,
)
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.graph.relationships.small_graph import concept, document, explains, small_record

WRITERS = {"jsonl": (to_json_line, from_json_line), "cypher": (to_statement, from_statement)}
FORMS = pytest.mark.parametrize("form", WRITERS)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@FORMS
def test_a_record_is_read_back_whole(tmp_path: Path, form: str) -> None:
    write, read = WRITERS[form]
    (tmp_path / "copy").mkdir()
    with small_record(tmp_path) as record, RelationshipRecord.of(tmp_path / "copy", create=True) as copy:
        parts = list(parts_of(record))
        lines = [write(part) + "\n" for part in parts]
        nodes = sum(isinstance(part, Node) for part in parts)
        assert import_lines(copy, lines, read) == (nodes, len(parts) - nodes)
        assert list(parts_of(copy)) == parts
        revision = copy.revision
        import_lines(copy, lines, read)
        assert (copy.revision, list(parts_of(copy))) == (revision, parts)


@FORMS
@given(key=TEXTS, name=TEXTS, score=st.floats(allow_nan=False, allow_infinity=False), number=st.integers())
def test_any_text_and_number_survives_a_line(form: str, key: str, name: str, score: float, number: int) -> None:
    write, read = WRITERS[form]
    node = Node(NodeType.CONCEPT, key, {"name": name, "description": name[::-1]})
    ends = (NodeType.USER, key), (NodeType.DOCUMENT, name)
    edge = Edge(EdgeType.VIEWED, *ends, {"view_count": number, "relevance_score": score})
    for part in (node, edge):
        line = write(part)
        assert read(line) == part
        assert io.StringIO(line + "\n").readlines() == [line + "\n"]


def test_a_line_that_is_no_statement_of_ours_is_refused(tmp_path: Path) -> None:
    for line in [
        "MATCH (n) DETACH DELETE n;",
        'MERGE (n:`Concept` {id: "x"}) SET n += {`name`: "x"}; MATCH (n) DETACH DELETE n;',
        'MERGE (n:`Concept` {id: "x"}) SET n += {`name`: "x"} DELETE n;',
        "MERGE (n:`Concept` {id: 'x'}) SET n += {`name`: \"x\"};",
        'MERGE (n:`Concept` {id: "x"}) SET n += {`name`: $name};',
        'MERGE (n:`Concept` {id: "x"}) SET n += {`name`: "x", `name`: "y"};',
        'MERGE (n:`Con``cept` {id: "x"}) SET n += {};',
        'MERGE (n:`Nothing` {id: "x"}) SET n += {};',
        'MERGE (n:`Concept` {id: "\\ud800"}) SET n += {`name`: "x"};',
        "LOAD CSV FROM 'file:///etc/passwd' AS line CREATE (:Concept {id: line});",
    ]:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            with pytest.raises(BadInput, match="Line 2 cannot be read"):
                import_lines(record, [to_statement(concept("Nissan")), line], from_statement)
            assert list(parts_of(record)) == []


def test_a_line_of_json_that_is_no_part_of_a_graph_is_refused(tmp_path: Path) -> None:
    for line in [
        "",
        "[]",
        "not JSON",
        "{}",
        '{"node": "Nothing", "id": "x"}',
        '{"node": "Concept", "id": 1}',
        '{"node": "Concept", "id": "x", "sql": "DROP TABLE concept"}',
        '{"edge": "VIEWED", "from": ["User"], "to": ["Document", "d"]}',
        '{"edge": "VIEWED", "from": "User", "to": ["Document", "d"]}',
        '{"node": "Concept", "id": "\\ud800", "properties": {"name": "x"}}',
        '{"node": "Document", "id": "x", "properties": {"version": 99999999999999999999}}',
        '{"edge": "SIMILARITY", "from": ["Query", "q"], "to": ["Document", "d"], "properties": {"score": NaN}}',
        '{"edge": "SIMILARITY", "from": ["Query", "q"], "to": ["Document", "d"], "properties": {"score": 1e999}}',
        "[" * 100_000,
    ]:
        with RelationshipRecord.of(tmp_path, create=True) as record:
            with pytest.raises(BadInput, match="Line 2 cannot be read"):
                import_lines(record, [to_json_line(concept("Nissan")), line], from_json_line)
            assert list(parts_of(record)) == []


def test_what_the_schema_does_not_know_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    ends = (NodeType.CONCEPT, "x"), (NodeType.DOCUMENT, "y")
    odd = {
        to_json_line(Node(NodeType.CONCEPT, "x", {"name": "x", "hobby": "y"})): NotInSchema,
        to_json_line(Node(NodeType.CONCEPT, "x", {})): NotInSchema,
        to_json_line(Node(NodeType.CONCEPT, "", {"name": "x"})): NotInSchema,
        to_json_line(Edge(EdgeType.EXPLAINS, *ends)): NotInSchema,
        to_json_line(explains("nowhere", "Nissan")): MissingEndpoint,
    }
    with RelationshipRecord.of(tmp_path, create=True) as record:
        for line, error in odd.items():
            with pytest.raises(error):
                import_lines(record, [to_json_line(document("d")), line], from_json_line)
            assert list(parts_of(record)) == []


def test_comments_and_empty_lines_of_a_script_are_skipped(tmp_path: Path) -> None:
    lines = ["// A comment; MATCH (n) DETACH DELETE n;\n", "\n", to_statement(concept("Nissan")) + "\r\n"]
    with RelationshipRecord.of(tmp_path, create=True) as record:
        assert import_lines(record, lines, from_statement) == (1, 0)


def test_igraph_reads_the_graphml(tmp_path: Path) -> None:
    with small_record(tmp_path) as record:
        record.put_node(Node(NodeType.CONCEPT, "odd", {"name": "<&\"'>\x01\u2028 é木"}))
        path = tmp_path / "graph.graphml"
        path.write_text("".join(to_graphml(parts_of(record))), encoding="utf-8")
        read = igraph.Graph.Read_GraphML(str(path))
        parts = list(parts_of(record))
        edges = [part for part in parts if isinstance(part, Edge)]
    assert read.is_directed()
    assert (read.vcount(), read.ecount()) == (len(parts) - len(edges), len(edges))
    (odd,) = read.vs.select(ref="odd")
    assert (odd["kind"], odd["name"]) == ("Concept", "<&\"'>\ufffd\u2028 é木")
    explained = {
        (read.vs[edge.source]["ref"], edge["kind"], read.vs[edge.target]["ref"], edge["relevance_score"])
        for edge in read.es.select(kind="EXPLAINS")
    }
    assert explained == {
        (edge.source[1], "EXPLAINS", edge.target[1], edge.properties["relevance_score"])
        for edge in edges
        if edge.type is EdgeType.EXPLAINS
    }


def test_graphml_leaves_out_edges_to_what_is_not_shown() -> None:
    shown = "".join(to_graphml([concept("Nissan"), document("d"), explains("d", "Nissan"), explains("d", "Silk")]))
    assert shown.count("<edge") == 1


def test_json_lines_are_plain_json() -> None:
    assert json.loads(to_json_line(concept("Nissan"))) == {
        "node": "Concept",
        "id": concept("Nissan").id,
        "properties": {"name": "Nissan"},
    }
