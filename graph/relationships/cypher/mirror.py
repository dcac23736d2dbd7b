"""Bringing a graph server up to date with the record: what changed is merged, what was removed goes.

The record is the truth: numbers such as views are set, never counted up. Everything can be repeated: nodes and edges
are merged by id, and the server's stamp moves on only when all is done. Nothing is kept of what was removed.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path

from graph.errors import BadInput
from graph.relationships.cypher.bolt import BoltServer, VectorIndex
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
"""Labels beside its type that a node has on a server: 003 calls a message an interaction as well."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """The nodes and edges that were sent to a server.

    Attributes:
        revision: of the record, as the server has it now.
        written: nodes and edges that were merged.
        removed: nodes and edges that went, beside the edges of nodes.
        whole: whether everything was compared.
    """

    revision: int
    written: int
    removed: int
    whole: bool


@dataclass(frozen=True, slots=True)
class _Stamp:
    """The state of a server's copy.

    Attributes:
        of: the record's identity.
        counts: how many nodes and edges there were, by table.
        vectors: whether it holds vectors.
        computed: the record's `computed_state` of what the server has of the published generation.
    """

    of: str
    format: int
    revision: int
    counts: dict[str, int]
    vectors: bool
    computed: str = ""


def mirror(
    root: Path,
    server: BoltServer,
    *,
    whole: bool = False,
    vectors: VectorIndex | None = None,
    stored_alone: bool = False,
) -> Mirrored:
    """Bring a server up to date with a workspace's relationship graph.

    Args:
        root: the workspace.
        server: whose database holds nothing, or an earlier state of this graph.
        whole: compare everything, also where nothing changed here: somebody else wrote to the server.
        vectors: also send the passages' vectors, from now on, and index them so where the server can.
        stored_alone: leave what follows from another generation than the server has for a later call.

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
            return _Run(record, server, identity).complete(whole=whole, vectors=vectors, stored_alone=stored_alone)


def was_mirrored(record: RelationshipRecord) -> bool:
    """Tell whether a relationship graph was ever sent to a server."""
    return bool(record.note(_IDENTITY))


class _Run:
    """One call of `mirror`, over a record that stands still."""

    def __init__(self, record: RelationshipRecord, server: BoltServer, identity: str) -> None:
        self._record = record
        self._server = server
        self._identity = identity
        self._written = 0
        self._removed = 0

    def complete(self, *, whole: bool, vectors: VectorIndex | None, stored_alone: bool) -> Mirrored:
        """Send what the server lacks, remove what it has too much of, and move its stamp on."""
        stamp = self._stamp()
        again = whole or stamp is None or stamp.revision > self._record.revision
        with_vectors = vectors is not None or (stamp is not None and stamp.vectors)
        if stamp is None or stamp.format != _FORMAT:
            self._prepare(stamp)
            again = True
        if vectors is not None and (statement := self._server.dialect.vector_index(vectors)):
            self._server.define(statement)
        if stamp is not None and with_vectors and not stamp.vectors:
            again = True
        since = -1 if stamp is None or again else stamp.revision
        before = {} if stamp is None or again else stamp.counts
        revision, computed = self._record.revision, self._record.computed_state
        mirrored = "" if stamp is None or again else stamp.computed
        if stamp is not None:
            # Rows that a run sent before it broke off may be removed here before the next one, which then compares all.
            self._set_stamp(replace(stamp, counts={}))
        if not again and stored_alone and mirrored != computed:
            # Edges to nodes that the server lacks are sent again with these.
            revision, computed = since, mirrored
        counts = {}
        for table in tables(with_vectors=with_vectors):
            key = " ".join((table.name, *table.ends))
            is_held = mirrored == computed and self._record.computes(table.type) and key in before
            counts[key] = before[key] if is_held else self._send(table, since, before.get(key))
        self._set_stamp(_Stamp(self._identity, _FORMAT, revision, counts, with_vectors, computed))
        return Mirrored(revision, self._written, self._removed, again)

    def _stamp(self) -> _Stamp | None:
        """Return what the server holds; None where it holds nothing. Raises BadInput where that is something else."""
        columns = "s.of, s.format, s.revision, s.counts, s.vectors, s.computed"
        rows = self._server.rows(f"MATCH (s:`{STAMP_LABEL}` {{id: 'stamp'}}) RETURN {columns}")
        if not rows:
            self._refuse_foreign_nodes()
            return None
        of, written, revision, counts, vectors, computed = rows[0]
        if of not in (None, self._identity):
            raise BadInput(
                "The database of the graph server holds the relationship graph of another workspace",
                "Name another database in MARA_GRAPH_URL: bolt://host/database",
            )
        return _Stamp(
            self._identity, written or 0, revision or 0, json.loads(counts or "{}"), bool(vectors), computed or ""
        )

    def _refuse_foreign_nodes(self) -> None:
        for of in NODES:
            if self._server.rows(f"MATCH (n:`{of}`) RETURN 1 LIMIT 1"):
                raise BadInput(
                    f"The database of the graph server holds {of} nodes that mara did not write",
                    "Name an empty database in MARA_GRAPH_URL: bolt://host/database",
                )

    def _prepare(self, stamp: _Stamp | None) -> None:
        """Make the constraints by which ids are found; a stamp first, so that all that follows is known as ours."""
        for label in (STAMP_LABEL, *NODES):
            self._server.define(self._server.dialect.constraint(label))
        if stamp is None:
            self._set_stamp(_Stamp(self._identity, 0, 0, {}, vectors=False))

    def _set_stamp(self, stamp: _Stamp) -> None:
        values = {**asdict(stamp), "counts": json.dumps(stamp.counts)}
        self._server.write(f"MERGE (s:`{STAMP_LABEL}` {{id: 'stamp'}}) SET s += $values", values=values)

    def _send(self, table: Table, since: int, before: int | None) -> int:
        """Bring the nodes or edges of a table up to date; return how many there are."""
        sent = 0
        rows = (_row(table, row) for row in table.rows(self._record, since))
        while page := list(islice(rows, _PAGE)):
            self._server.write(f"UNWIND $rows AS row {_merge(table)}", rows=page)
            sent += len(page)
        self._written += sent
        count = sent
        if not self._record.computes(table.type):
            count = int(self._record.execute(f'SELECT count(*) FROM "{table.stored}"').fetchone()[0])
        if before is None or sent != count - before:
            self._remove(table, count)
        return count

    def _remove(self, table: Table, count: int) -> None:
        """Remove what the record does not hold any more, if the server has more of a table than it."""
        pattern, ids = f"(n:`{table.name}`)", {"id": "n.id"}
        remove = f"MATCH (n:`{table.name}` {{id: row.id}}) DETACH DELETE n"
        if table.ends:
            source, target = table.ends
            pattern, ids = f"(a:`{source}`)-[e:`{table.name}`]->(b:`{target}`)", {"source": "a.id", "target": "b.id"}
            remove = f"MATCH {_end(table, 'a')}-[e:`{table.name}`]->{_end(table, 'b')} DELETE e"
        if self._server.rows(f"MATCH {pattern} RETURN count(*)")[0][0] <= count:
            return
        recorded = {row[: len(ids)] for row in replace(table, of_passage="").rows(self._record)}
        there = self._server.rows(f"MATCH {pattern} RETURN {', '.join(ids.values())}")
        gone = [dict(zip(ids, key, strict=True)) for key in there if key not in recorded]
        for start in range(0, len(gone), _PAGE):
            self._server.write(f"UNWIND $rows AS row {remove}", rows=gone[start : start + _PAGE])
        self._removed += len(gone)


def _merge(table: Table) -> str:
    """Return the end of the statement that writes rows."""
    if table.ends:
        ends = f"MATCH {_end(table, 'a')} MATCH {_end(table, 'b')}"
        return f"{ends} MERGE (a)-[e:`{table.name}`]->(b) SET e += row.properties"
    more = _EXTRA_LABELS.get(NodeType(table.type), "")
    return f"MERGE (n:`{table.name}`{more} {{id: row.id}}) SET n += row"


def _end(table: Table, name: str) -> str:
    place = "ab".index(name)
    return f"({name}:`{table.ends[place]}` {{id: row.{table.columns[place]}}})"


def _row(table: Table, row: Row) -> dict[str, object]:
    """Return a row as the statements take it."""
    cells = dict(zip(table.columns, row, strict=True))
    if not table.ends:
        return cells
    return {"source": cells.pop("source"), "target": cells.pop("target"), "properties": cells}


def _identity(record: RelationshipRecord) -> str:
    """Return what tells this record from others on a server; it is given when the record is first sent."""
    if not record.note(_IDENTITY):
        with record.transaction():
            if not record.note(_IDENTITY):
                record.set_note(_IDENTITY, uuid.uuid4().hex)
    return record.note(_IDENTITY)
