"""Bringing a graph server up to date with the record: what changed is merged, what was removed goes.

The record is the truth: numbers such as views are set, never counted up. Everything can be repeated: nodes and edges
are merged by id, and the server's stamp moves on only when all is done. Nothing is kept of what was removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from graph.errors import BadInput
from graph.relationships.cypher.bolt import BoltServer
from graph.relationships.exchange import STAMP_LABEL, Row, Table, tables
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NODES, NodeType
from graph.storage.lock import alone

_FORMAT = 1
_PAGE = 1_000
_LOCK = "graph-server.lock"
_LOCK_S = 30.0
_IDENTITY = "copied_as"
_EXTRA_LABELS = {NodeType.MESSAGE: ":`Interaction`"}
"""Labels beside its type that a node has on a server: a message is an interaction as well."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """The nodes and edges that were sent to a server.

    Attributes:
        revision: of the record, as the server has it now.
        written: nodes and edges that were merged.
        removed: nodes and edges that went, beside the edges of nodes.
    """

    revision: int
    written: int
    removed: int


@dataclass(frozen=True, slots=True)
class _Stamp:
    """The state of a server's copy.

    Attributes:
        of: the record's identity.
        revision: of the record; -1 before anything was sent.
        computed: the record's `computed_state` of what the server has of the published generation.
    """

    of: str
    format: int = _FORMAT
    revision: int = -1
    computed: str = ""


def mirror(root: Path, server: BoltServer, *, stored_alone: bool = False) -> Mirrored:
    """Bring a server up to date with a workspace's relationship graph.

    What changed since the last call is sent. Where the server then holds more or less of a table than the record, that
    table is sent and compared whole.

    Args:
        root: the workspace.
        server: whose database holds nothing, or an earlier state of this graph.
        stored_alone: leave what follows from a generation to a later call, which begins where this one did.

    Raises:
        BadInput: there is no relationship graph, or the database holds something else.
        GraphUnavailable: the server does not answer; what was sent stays, and the next call goes on.
        WorkspaceLocked: another process is sending.
    """
    # Of two processes that send, what is older could come later.
    message = "Another process is sending to the graph server"
    with RelationshipRecord.of(root) as record, alone(root / _LOCK, _LOCK_S, message, "Try again when it is done"):
        identity = _identity(record)
        with record.as_it_stands():
            before = _stamp_of(server, identity)
            if before.revision > record.revision:
                before = _Stamp(identity)
            computed, written, removed = record.computed_state, 0, 0
            for table in tables():
                if not (record.computes(table.type) and (stored_alone or before.computed == computed)):
                    sent, gone = _bring_up_to_date(table, record, server, before.revision)
                    written, removed = written + sent, removed + gone
            if not stored_alone:
                _set_stamp(server, _Stamp(identity, _FORMAT, record.revision, computed))
            return Mirrored(record.revision, written, removed)


def was_mirrored(record: RelationshipRecord) -> bool:
    """Tell whether a relationship graph was ever sent to a server."""
    return bool(record.note(_IDENTITY))


def _stamp_of(server: BoltServer, identity: str) -> _Stamp:
    """Return what a server holds, which is made ready to hold it. Raises BadInput where that is something else."""
    columns = "s.of, s.format, s.revision, s.computed"
    stamps = server.rows(f"MATCH (s:`{STAMP_LABEL}` {{id: 'stamp'}}) RETURN {columns}")
    of, written, *state = stamps[0] if stamps else (identity, 0)
    foreign = [label for label in NODES if not stamps and server.rows(f"MATCH (n:`{label}`) RETURN 1 LIMIT 1")]
    if of != identity or foreign:
        raise BadInput(
            "The database of the graph server holds another workspace, or nodes that mara did not write",
            "Name an empty database in MARA_GRAPH_URL: bolt://host/database",
        )
    if written == _FORMAT:
        return _Stamp(identity, _FORMAT, *state)
    for label in (STAMP_LABEL, *NODES):
        server.make_unique(label)
    _set_stamp(server, _Stamp(identity))  # so that what a call which breaks off has sent is known as ours
    return _Stamp(identity)


def _set_stamp(server: BoltServer, stamp: _Stamp) -> None:
    server.write(f"MERGE (s:`{STAMP_LABEL}` {{id: 'stamp'}}) SET s += $values", values=asdict(stamp))


def _bring_up_to_date(table: Table, record: RelationshipRecord, server: BoltServer, since: int) -> tuple[int, int]:
    """Send what a later revision than ``since`` wrote, and put the rest right; return how much was sent and removed."""
    sent = count = _send(table, table.rows(record, since), server)
    if not record.computes(table.type):
        count = int(record.execute(f'SELECT count(*) FROM "{table.stored}"').fetchone()[0])
    pattern, ids = f"(n:`{table.name}`)", "n.id"
    remove = f"MATCH (n:`{table.name}` {{id: row[0]}}) DETACH DELETE n"
    if table.ends:
        source, target = table.ends
        pattern, ids = f"(a:`{source}`)-[e:`{table.name}`]->(b:`{target}`)", "a.id, b.id"
        remove = f"MATCH (a:`{source}` {{id: row[0]}})-[e:`{table.name}`]->(b:`{target}` {{id: row[1]}}) DELETE e"
    if server.rows(f"MATCH {pattern} RETURN count(*)") == [(count,)]:
        return sent, 0
    rows = list(table.rows(record))
    if sent < len(rows):
        sent += _send(table, rows, server)
    recorded = {row[: len(table.ends) or 1] for row in rows}
    gone = [key for key in server.rows(f"MATCH {pattern} RETURN {ids}") if key not in recorded]
    for start in range(0, len(gone), _PAGE):
        server.write(f"UNWIND $rows AS row {remove}", rows=[list(key) for key in gone[start : start + _PAGE]])
    return sent, len(gone)


def _send(table: Table, rows: Iterable[Row], server: BoltServer) -> int:
    """Merge nodes or edges into those of a server; return how many."""
    if table.ends:
        source, target = table.ends
        ends = f"MATCH (a:`{source}` {{id: row.source}}) MATCH (b:`{target}` {{id: row.target}})"
        merge = f"{ends} MERGE (a)-[e:`{table.name}`]->(b) SET e += row.properties"
    else:
        more = _EXTRA_LABELS.get(NodeType(table.type), "")
        merge = f"MERGE (n:`{table.name}`{more} {{id: row.id}}) SET n += row.properties"
    sent, left = 0, iter(rows)
    while page := [_row(table, row) for row in islice(left, _PAGE)]:
        server.write(f"UNWIND $rows AS row {merge}", rows=page)
        sent += len(page)
    return sent


def _row(table: Table, row: Row) -> dict[str, object]:
    """Return a row as the statements take it: its ids by name, and its properties."""
    cells = dict(zip(table.columns, row, strict=True))
    ids = {name: cells.pop(name) for name in table.columns[: len(table.ends) or 1]}
    return {**ids, "properties": cells}


def _identity(record: RelationshipRecord) -> str:
    """Return what tells this record from others on a server; it is given when the record is first sent."""
    if not record.note(_IDENTITY):
        with record.transaction():
            if not record.note(_IDENTITY):
                record.set_note(_IDENTITY, uuid.uuid4().hex)
    return record.note(_IDENTITY)
