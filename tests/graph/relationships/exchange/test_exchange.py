"""The relationship graph as files: lines of JSON are read back whole and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput, MissingEndpoint, NotInSchema
from graph.relationships import exchange
from graph.relationships.exchange import import_lines, parts_of, to_json_line
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType
from tests.graph.relationships.small_graph import concept, document, explains, small_record


def test_a_record_is_read_back_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_PAGE", 4)
    (tmp_path / "copy").mkdir()
    with small_record(tmp_path) as record, RelationshipRecord.of(tmp_path / "copy", create=True) as copy:
        record.put_node(Node(NodeType.CONCEPT, "odd", {"name": '\u2028 é木 "quoted"\\', "description": "two\nlines"}))
        parts = list(parts_of(record))
        lines = [to_json_line(part) + "\n" for part in parts]
        nodes = sum(isinstance(part, Node) for part in parts)
        assert import_lines(copy, lines) == (nodes, len(parts) - nodes)
        assert list(parts_of(copy)) == parts
        revision = copy.revision
        import_lines(copy, lines)
        assert (copy.revision, list(parts_of(copy))) == (revision, parts)


def test_a_line_that_is_no_part_of_a_graph_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    ends = (NodeType.CONCEPT, "x"), (NodeType.DOCUMENT, "y")
    wrong = {
        "": BadInput,
        "[]": BadInput,
        '{"node": "Nothing", "id": "x"}': BadInput,
        '{"node": "Concept", "id": 1}': BadInput,
        '{"node": "Concept", "id": "x", "sql": "DROP TABLE concept"}': BadInput,
        '{"edge": "VIEWED", "from": ["User"], "to": ["Document", "d"]}': BadInput,
        '{"node": "Concept", "id": "\\ud800", "properties": {"name": "x"}}': NotInSchema,
        '{"node": "Document", "id": "x", "properties": {"version": 9223372036854775808}}': NotInSchema,
        '{"node": "Document", "id": "x", "properties": {"version": NaN}}': NotInSchema,
        "[" * 100_000: BadInput,
        to_json_line(concept("Nissan")) + " " * exchange.MAX_LINE: BadInput,
        to_json_line(Node(NodeType.CONCEPT, "x", {"name": "x", "hobby": "y"})): NotInSchema,
        to_json_line(Edge(EdgeType.EXPLAINS, *ends)): NotInSchema,
        to_json_line(explains("nowhere", "Nissan")): MissingEndpoint,
    }
    with RelationshipRecord.of(tmp_path, create=True) as record:
        for line, error in wrong.items():
            with pytest.raises(error, match="Line 2" if error is BadInput else None):
                import_lines(record, [to_json_line(document("d")), line])
            assert list(parts_of(record)) == []
