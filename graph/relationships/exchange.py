"""Nodes and edges as rows of copies, and as lines of JSON that are read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import (
    EDGES,
    NODES,
    Edge,
    EdgeType,
    Node,
    NodeType,
    Property,
)
from graph.relationships.tables import table_of_edges, table_of_nodes

Part = Node | Edge
Row = tuple[Any, ...]

STAMP_LABEL = "MaraCopy"
"""The label of the one node of a copy that says what it is a copy of."""

CONTAINS = "CONTAINS"
"""PART_OF from the other end, from a conversation to a message: copies hold both, so that either may be asked for."""

MAX_LINE = 10_000_000
"""Characters of a line, at most."""

_PAGE = 5_000


@dataclass(frozen=True, slots=True)
class Table:
    """The nodes of a type, or its edges between two types of nodes, as rows for a file or a copy in another store.

    Attributes:
        name: the label of the nodes, or the name of the edges, outside.
        type: of the nodes or edges in the record.
        ends: the types of what the edges leave and reach, outside; none of nodes.
        backwards: whether the record holds the edges from the target to the source.
    """

    name: str
    type: NodeType | EdgeType
    ends: tuple[NodeType, ...] = ()
    backwards: bool = False

    @property
    def declared(self) -> Mapping[str, Property]:
        """The properties of the nodes or edges."""
        return NODES[self.type] if isinstance(self.type, NodeType) else EDGES[self.type].properties

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the values of a row: ids, properties, and of a chunk the text of its passage."""
        ids = ("source", "target") if self.ends else ("id",)
        return (*ids, *self.declared, *(["content"] if self.type is NodeType.CHUNK else []))

    @property
    def stored(self) -> str:
        """The name of the record's table."""
        return table_of_nodes(self.type) if isinstance(self.type, NodeType) else table_of_edges(self.type, *self._kept)

    @property
    def _kept(self) -> tuple[NodeType, NodeType]:
        source, target = self.ends
        return (target, source) if self.backwards else (source, target)

    def parts(self, record: RelationshipRecord, since: int | None = None) -> Iterator[Part]:
        """Yield the nodes or edges, by id; of stored ones, in any order, what a later revision than ``since`` wrote."""
        if isinstance(self.type, NodeType):
            changed = () if since is None or record.computes(self.type) else ("WHERE revision > ?", (since,))
            return record.nodes(self.type, *changed)
        changed = () if since is None or record.computes(self.type) else ("WHERE e.revision > ?", (since,))
        return record.edges(self.type, *self._kept, *changed)

    def rows(self, record: RelationshipRecord, since: int = -1) -> Iterator[Row]:
        """Yield what `parts` does as rows: a value for each of the columns."""
        for part in self.parts(record, since):
            values = map(part.properties.get, self.declared)
            if isinstance(part, Edge):
                ends = part.source[1], part.target[1]
                yield (*(reversed(ends) if self.backwards else ends), *values)
            elif part.type is NodeType.CHUNK:
                place = record.graph.passage_index.get(part.id) if record.graph is not None else None
                text = None if record.graph is None or place is None else record.graph.passages[place].text
                yield (part.id, *values, text)
            else:
                yield (part.id, *values)


def tables() -> Iterator[Table]:
    """Yield all that copies hold: nodes first, as edges are matched by them."""
    yield from (Table(of, of) for of in NODES)
    for edge_type, schema in EDGES.items():
        for source, target in schema.pairs:
            yield Table(edge_type, edge_type, (source, target))
            if edge_type is EdgeType.PART_OF:
                yield Table(CONTAINS, edge_type, (target, source), backwards=True)


def parts_of(record: RelationshipRecord) -> Iterator[Part]:
    """Yield all nodes of a record, then all its edges."""
    for table in tables():
        if not table.backwards:
            yield from table.parts(record)


def to_json_line(part: Part) -> str:
    """Return a node or an edge as one line of JSON."""
    properties = {name: value for name, value in part.properties.items() if value is not None}
    if isinstance(part, Node):
        line: dict[str, Any] = {"node": part.type, "id": part.id, "properties": properties}
    else:
        line = {"edge": part.type, "from": part.source, "to": part.target, "properties": properties}
    return json.dumps(line, ensure_ascii=False, allow_nan=False)


def from_json_line(line: str) -> Part:
    """Return what `to_json_line` wrote. Raises ValueError for anything else."""
    part = json.loads(line)
    if not isinstance(part, dict) or not isinstance(part.get("properties", {}), dict):
        raise ValueError("it is no object with properties")
    properties = part.pop("properties", {})
    if part.keys() == {"node", "id"} and isinstance(part["id"], str):
        return Node(NodeType(part["node"]), part["id"], properties)
    if part.keys() == {"edge", "from", "to"}:
        return Edge(EdgeType(part["edge"]), _end(part["from"]), _end(part["to"]), properties)
    raise ValueError("it is neither a node nor an edge")


def import_lines(record: RelationshipRecord, lines: Iterable[str]) -> tuple[int, int]:
    """Write the nodes and edges of lines of JSON into a record, all or none; return how many of each.

    Args:
        record: of relationships.
        lines: nodes before the edges that link them.

    Raises:
        BadInput: a line cannot be read, which is named by its number.
        NotInSchema: the schema does not know what a line holds.
        MissingEndpoint: an edge links a node that is not there.
    """
    parts = (_read(line, number) for number, line in enumerate(lines, start=1))
    nodes = edges = 0
    with record.transaction():
        while page := list(islice(parts, _PAGE)):
            nodes_of = [part for part in page if isinstance(part, Node)]
            record.put_nodes(nodes_of)
            record.link_all(part for part in page if isinstance(part, Edge))
            nodes += len(nodes_of)
            edges += len(page) - len(nodes_of)
    return nodes, edges


def _read(line: str, number: int) -> Part:
    if len(line) > MAX_LINE:
        raise BadInput(f"Line {number} has {len(line):,} characters", f"Give {MAX_LINE:,} at most")
    try:
        return from_json_line(line)
    except (ValueError, RecursionError) as fault:
        reason = "it is no JSON" if isinstance(fault, json.JSONDecodeError) else str(fault)[:100]
        raise BadInput(
            f"Line {number} cannot be read: {reason}", "Import what `mara graph export` wrote as JSONL"
        ) from fault


def _end(end: object) -> tuple[NodeType, str]:
    if not isinstance(end, list) or len(end) != 2 or not all(isinstance(each, str) for each in end):
        raise ValueError("an end of an edge is a list of a type and an id")
    return NodeType(end[0]), end[1]
