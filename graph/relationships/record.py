"""The record of the relationship graph: a database beside the record of passages, a typed table for each type.

Nodes have integer keys inside and ids outside. Every row holds the revision that wrote it last, so that a copy in
another store can be brought up to date. Vectors are views of chunks. Concepts and the edges at them follow from the
published generation of the knowledge graph and are computed when asked for: their tables hold what was written besides,
which is laid over that, and the ids of concepts that messages mention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np

from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.embedding.embeddings import check_dimension
from graph.errors import BadInput, MissingEndpoint, NotInSchema, WorkspaceDamaged, WorkspaceLocked
from graph.relationships.concept_view import PRUNABLE, ConceptView, Stated
from graph.relationships.cypher.reading import NearChunk, check_search
from graph.relationships.explanations import Links
from graph.relationships.schema import (
    EDGES,
    NODES,
    Edge,
    EdgeType,
    Node,
    NodeType,
    PropertyValue,
    check_edge,
    check_node,
)
from graph.relationships.tables import (
    PAGE_TABLES,
    VERSION_TABLES,
    VIEWS,
    columns_of_edges,
    columns_of_nodes,
    create_statements,
    create_views,
    insert_edge,
    joined_tables,
    table_of_edges,
    table_of_nodes,
    upsert,
)
from graph.storage.database import AMONG, Cursor, Database, InDatabase, Kind, SqliteDatabase, Values
from graph.storage.opening import open_database
from graph.storage.place import RELATIONSHIPS_FILE as RELATIONSHIPS_FILE
from graph.storage.place import place_of
from graph.storage.workspace import Workspace

COMPUTED = frozenset((NodeType.CONCEPT, *PRUNABLE))
"""The types of nodes and edges that follow from the published generation."""

IN_STEP_WITH = "documents"
"""The note of what the documents were last brought in step with."""

_LAID_OVER = "pruned"
_FORMAT = 1
_NOTE_FORMAT = "INSERT INTO meta VALUES ('format', ?)"
_STATED = {
    EdgeType.EXPLAINS: """
        SELECT document.id, concept.id, explanation_type, relevance_score, confidence
        FROM explains JOIN document ON document.key = source JOIN concept ON concept.key = target""",
    EdgeType.RELATED_TO: """
        SELECT a.id, b.id, relation, documents, confidence
        FROM related_to JOIN concept a ON a.key = source JOIN concept b ON b.key = target""",
}
_PAGE = 5_000
_RESTORE = "Restore it from a backup, or delete it: conversations and views in it are then lost"


_VIEWS: dict[tuple[Path, str], ConceptView] = {}
_KEPT_VIEWS = 4


def has_relationships(root: Path) -> bool:
    """Tell whether a workspace has a relationship graph. Raises RecordUnavailable where its server does not tell."""
    place = place_of(root / RELATIONSHIPS_FILE)
    if place is None:
        return (root / RELATIONSHIPS_FILE).exists()
    from graph.storage.postgres import PostgresDatabase

    with PostgresDatabase(place, place.relationships_schema, _RESTORE) as opened, opened.faults_named():
        return opened.has_table("meta")


class Rows:
    """The rows that a statement gave. Names faults in the database: SQLite finds most of them when rows are read."""

    def __init__(self, cursor: Cursor, source: Database) -> None:
        self._cursor = cursor
        self._rows = iter(cursor)
        self._source = source

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        return self._cursor.rowcount

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._rows)
        except self._source.faults as fault:
            raise self._source.named(fault) from fault

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""
        return next(self, None)

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        return list(self)


class RelationshipRecord(InDatabase):
    """An open record of relationships; any number of readers and, in turn, writers, in any number of processes.

    A connection belongs to the thread that opened it. One that may not be written is opened for reading.
    """

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        """Open the record at ``path``; with ``read_only``, without writing anything, not even beside it.

        Raises:
            BadInput: there is none and ``create`` is false, or the disk refuses.
            WorkspaceDamaged: it is no SQLite file, or of another format.
            WorkspaceLocked: other processes write for longer than one waits.
        """
        self._revision = 0
        self._path = path
        self._db = open_database(path, _KIND, create=create, read_only=read_only)
        try:
            if not isinstance(self._db, SqliteDatabase) and self.note("format") != str(_FORMAT):
                raise WorkspaceDamaged(f"{self._db.told} is of another format than {_FORMAT}", _RESTORE)
        except BaseException:
            self.close()
            raise

    @classmethod
    def of(cls, root: Path, *, create: bool = False, read_only: bool = False) -> Self:
        """Open the record of the workspace at ``root``; raises as the constructor does."""
        return cls(root / RELATIONSHIPS_FILE, create=create, read_only=read_only)

    @property
    def database(self) -> Database:
        """The database, for tables of other kinds beside those of the relationship graph."""
        return self._db

    @property
    def revision(self) -> int:
        """Counts the transactions that changed something; rows hold the one that wrote them last."""
        return int(self.note("revision") or 0)

    def note(self, key: str) -> str:
        """Return what `set_note` kept under a key; empty where nothing was."""
        row = self.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(row[0]) if row else ""

    def set_note(self, key: str, value: str) -> None:
        """Keep a text under a key, within a transaction."""
        self.execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            " WHERE meta.value <> excluded.value",
            (key, value),
        )

    @contextmanager
    def transaction(self) -> Iterator[int]:
        """Write within the block, whole or not at all, and yield the revision; no other writer is at work meanwhile.

        Raises WorkspaceLocked where other processes write for longer than one waits.
        """
        if self._db.in_transaction:
            yield self._revision
            return
        with self._faults_named():
            self._db.begin()
            try:
                self._revision = self.revision + 1
                changes = self._db.total_changes
                yield self._revision
                if self._db.total_changes > changes:
                    self.set_note("revision", str(self._revision))
                self._db.commit()
            except BaseException:
                self._db.rollback()
                raise

    def execute(self, query: str, values: Values = ()) -> Rows:
        """Run one statement, in SQLite's SQL; what comes from outside is among ``values``, never in the statement.

        A list among the values is asked for with ``IN (SELECT value FROM json_each(?))``.

        Raises as the constructor does, also when the rows are read, and NotInSchema where the tables refuse a row.
        """
        with self._refusals_named():
            return Rows(self._db.execute(query, values), self._db)

    def put_node(self, node: Node) -> None:
        """Create a node, or give the one of that id these properties. Raises NotInSchema."""
        self.put_nodes([node])

    def put_nodes(self, nodes: Iterable[Node]) -> None:
        """Create or update nodes in one transaction, as `put_node` does.

        Those of views, and concepts of the published generation, follow from others and are not written.
        """
        known = self.graph.entity_index if self.graph is not None else {}
        rows: dict[NodeType, list[list[PropertyValue]]] = {}
        for node in nodes:
            check_node(node)
            if node.type in VIEWS or (node.type is NodeType.CONCEPT and node.id in known):
                continue
            rows.setdefault(node.type, []).append([node.id, *(node.properties.get(name) for name in NODES[node.type])])
        with self.transaction() as revision:
            for of, values in rows.items():
                statement = upsert(table_of_nodes(of), ["id"], list(NODES[of]))
                with self._refusals_named():
                    self._write(of, statement, ([*row, revision] for row in values))

    def link(self, edge: Edge) -> None:
        """Create an edge, or give the one between these nodes these properties.

        One that the published generation gives is laid over it, until one of its ends goes.

        Raises:
            NotInSchema: `check_edge` refuses it.
            MissingEndpoint: a node that it links is not there.
        """
        self.link_all([edge])

    def link_all(self, edges: Iterable[Edge]) -> None:
        """Create or update edges in one transaction, as `link` does; one that is refused undoes all."""
        rows: dict[tuple[EdgeType, NodeType, NodeType], list[list[PropertyValue]]] = {}
        concepts: set[str] = set()
        as_computed: list[Edge] = []
        for edge in edges:
            check_edge(edge)
            if edge.type in VIEWS:
                continue
            if self.computes(edge.type) and self.concepts.computed_edge(edge) == edge:
                as_computed.append(edge)
                continue
            (start, source), (end, target) = _ends(edge)
            concepts.update(key for of, key in (edge.source, edge.target) if of is NodeType.CONCEPT)
            values = [edge.properties.get(name) for name in EDGES[edge.type].properties]
            rows.setdefault((edge.type, start, end), []).append([source, target, *values])
        with self.transaction() as revision:
            for edge in as_computed:
                self.unlink(edge)
            self._hold_concepts(concepts, revision)
            for (of, start, end), values_of in rows.items():
                statement = insert_edge(of, start, end)
                try:
                    with self._db.attempt():
                        self._write(of, statement, ([*row, revision] for row in values_of))
                except self._db.conflicts as fault:
                    raise self._missing_endpoint(of, start, end, values_of) from fault

    def _write(self, of: NodeType | EdgeType, statement: str, rows: Iterable[Sequence[PropertyValue]]) -> None:
        if self.computes(of):
            self.take_over()
        changes = self._db.total_changes
        self._db.executemany(statement, rows)
        if of in COMPUTED and self._db.total_changes > changes:
            self.note_laid_over()

    def _hold_concepts(self, linked: Iterable[str], revision: int) -> None:
        """Hold the ids of concepts of the generation that edges link: their names are in that."""
        known = self.graph.entity_index if linked and self.graph is not None else {}
        statement = "INSERT INTO concept (id, name, revision) VALUES (?, '', ?) ON CONFLICT (id) DO NOTHING"
        self._db.executemany(statement, [(key, revision) for key in sorted(linked) if key in known])

    def node(self, of: NodeType, key: str) -> Node | None:
        """Return the node of that type and id; None where there is none."""
        if self.computes(of):
            return self.concepts.node(key)
        return next(self._read_nodes(of, "WHERE id = ?", (key,)), None)

    def nodes(self, of: NodeType, where: str = "", values: Values = ()) -> Iterator[Node]:
        """Yield the nodes of a type, by id; of one that is stored, those that a clause of SQL selects.

        Concepts that the generation does not know come last.
        """
        return self.concepts.nodes() if self.computes(of) else self._read_nodes(of, where or "ORDER BY id", values)

    def _read_nodes(self, of: NodeType, where: str, values: Values = ()) -> Iterator[Node]:
        for key, *cells in self.execute(f'SELECT {columns_of_nodes(of)} FROM "{table_of_nodes(of)}" {where}', values):
            yield Node(of, key, dict(zip(NODES[of], cells, strict=True)))

    def edges(
        self, of: EdgeType, source: NodeType, target: NodeType, where: str = "", values: Values = ()
    ) -> Iterator[Edge]:
        """Yield the edges of a type, by the ids of their ends.

        Of one that is stored, those ``e`` from nodes ``a`` to nodes ``b`` that a clause of SQL selects.
        """
        if self.computes(of):
            return self.concepts.edges(of)
        return self._read_edges(of, source, target, where or "ORDER BY a.id, b.id", values)

    def _read_edges(
        self, of: EdgeType, source: NodeType, target: NodeType, where: str, values: Values
    ) -> Iterator[Edge]:
        query = f"SELECT a.id, b.id{columns_of_edges(of)} FROM {joined_tables(of, source, target)} {where}"
        for start, end, *cells in self.execute(query, values):
            yield Edge(of, (source, start), (target, end), dict(zip(EDGES[of].properties, cells, strict=True)))

    def edge(self, of: EdgeType, source: tuple[NodeType, str], target: tuple[NodeType, str]) -> Edge | None:
        """Return the edge of that type between two nodes; None where there is none."""
        (start, start_id), (end, end_id) = _ends(Edge(of, source, target))
        if self.computes(of):
            return self.concepts.edge(of, start_id, end_id)
        return next(self.edges(of, start, end, "WHERE a.id = ? AND b.id = ?", (start_id, end_id)), None)

    @cached_property
    def graph(self) -> KnowledgeGraph | None:
        """The published generation of the workspace; None where there is none."""
        return _published(self._path.parent)

    def search_chunks(
        self, vector: Sequence[float], k: int = 5, *, documents: Iterable[str] | None = None
    ) -> list[NearChunk]:
        """Return the ``k`` chunks nearest to a vector, nearest first, ties by id; of some documents alone, where given.

        Raises:
            BadInput: the vector has no direction, ``k`` is out of range, or there is no published generation.
            EmbeddingMismatch: the vectors of the published generation have another dimension.
        """
        check_search(vector, k)
        graph = self.graph
        if graph is None:
            raise BadInput("The workspace holds no vectors", "Index documents into it: `mara index`")
        wanted = np.asarray(vector, dtype=np.float32)
        check_dimension(wanted, graph.passage_vectors.shape[1])
        where, values = ("", ()) if documents is None else (f"WHERE b.id {AMONG}", ([*documents],))
        chunks = self.edges(EdgeType.CHUNK_OF, NodeType.CHUNK, NodeType.DOCUMENT, where, values)
        keys = sorted(edge.source[1] for edge in chunks if edge.source[1] in graph.passage_index)
        rows = [graph.passage_index[key] for key in keys]
        cosines = np.vecdot(graph.passage_vectors, wanted / np.linalg.norm(wanted))[rows]
        nearest = np.argsort(-cosines, kind="stable")[:k].tolist()
        return [
            NearChunk(keys[at], graph.passages[rows[at]].text, 1 - cosines.item(at), cosines.item(at)) for at in nearest
        ]

    def computes(self, of: NodeType | EdgeType) -> bool:
        """Tell whether nodes or edges of a type follow from the published generation."""
        return of in COMPUTED and self.graph is not None

    @property
    def concepts(self) -> ConceptView:
        """The concepts, and the edges between them and documents, without those that were pruned."""
        state = self.computed_state or f"{self.revision} {self._db.total_changes}"
        if (self._path, state) not in _VIEWS:
            while len(_VIEWS) >= _KEPT_VIEWS:
                _VIEWS.pop(next(iter(_VIEWS)), None)
            _VIEWS[self._path, state] = self._view()
        return _VIEWS[self._path, state]

    @property
    def computed_state(self) -> str:
        """Another text whenever what is computed may be another; empty where nothing is."""
        if self.graph is None:
            return ""
        return f"{self.graph.commit_id} {self.note(IN_STEP_WITH)} {self.note(_LAID_OVER)}"

    def _view(self) -> ConceptView:
        pruned: dict[EdgeType, dict[tuple[str, str], str]] = {of: {} for of in PRUNABLE}
        if self.graph is not None:
            for of, source, target, evidence in self.execute("SELECT type, source, target, evidence FROM pruned"):
                pruned[EdgeType(of)][source, target] = evidence
        documents = self.execute("SELECT key, id FROM document ORDER BY key").fetchall()
        numbers = {key: number for number, (key, _) in enumerate(documents)}
        chunks = self.execute("SELECT id, target FROM document_chunk JOIN chunk_of ON source = key")
        document_of = {chunk: numbers[key] for chunk, key in chunks}
        known = self.graph.entity_index if self.graph is not None else {}
        written = [node for node in self._read_nodes(NodeType.CONCEPT, "ORDER BY id") if node.id not in known]
        stated: dict[EdgeType, list[Stated]] = {}
        if self.graph is None or not self._holds_copies:
            stated = {of: list(self.execute(statement)) for of, statement in _STATED.items()}
        computed: dict[EdgeType, Links] = {}
        if self.graph is not None:
            computed = _links_of(
                self._path, self.graph.commit_id, self.note(IN_STEP_WITH), tuple(key for key, _ in documents)
            )
        return ConceptView(self.graph, [key for _, key in documents], document_of, written, stated, pruned, computed)

    @property
    def _holds_copies(self) -> bool:
        """Whether this is a file of before, whose tables hold copies of what is computed."""
        return self._db.has_table("digests")

    def take_over(self) -> None:
        """Put views in the place of the copies that a file of before holds, within a transaction."""
        if self._holds_copies:
            self._db.define((*(f"DROP TABLE {of.lower()}" for of in reversed(VIEWS)), *create_views()))
            self._db.define(["DROP TABLE digests"])
            self.drop_stated()

    def drop_stated(self) -> None:
        """Drop the edges and the names that are laid over the generation, within a transaction."""
        for of in PRUNABLE:
            self.execute(f"DELETE FROM {of.lower()}")
        self.execute("UPDATE concept SET name = '', description = NULL, type = NULL WHERE name <> ''")
        self.note_laid_over()

    def note_laid_over(self) -> None:
        """Note within a transaction that what is laid over the generation is another now."""
        self.set_note(_LAID_OVER, uuid4().hex)

    def see(self, graph: KnowledgeGraph) -> None:
        """Let this be the published generation."""
        self.__dict__["graph"] = graph

    def remove_nodes(self, of: NodeType, keys: Sequence[str]) -> int:
        """Remove nodes with all edges at them, in one transaction; return how many there were."""
        removed = 0
        with self.transaction():
            for start in range(0, len(keys), _PAGE):
                page = keys[start : start + _PAGE]
                marks = ",".join("?" * len(page))
                removed += self.execute(f'DELETE FROM "{table_of_nodes(of)}" WHERE id IN ({marks})', page).rowcount
        return removed

    def unlink(self, edge: Edge) -> bool:
        """Remove an edge; tell whether it was there."""
        (start, source), (end, target) = _ends(edge)
        query = (
            f'DELETE FROM "{table_of_edges(edge.type, start, end)}" WHERE'
            f' source = (SELECT key FROM "{table_of_nodes(start)}" WHERE id = ?)'
            f' AND target = (SELECT key FROM "{table_of_nodes(end)}" WHERE id = ?)'
        )
        with self.transaction():
            removed = self.execute(query, (source, target)).rowcount > 0
            if removed and edge.type in PRUNABLE:
                self.note_laid_over()
            return removed

    def count(self, of: NodeType) -> int:
        """Return the number of stored nodes of a type."""
        return self._count(table_of_nodes(of))

    def counts(self) -> dict[str, int]:
        """Return the number of nodes and edges of each type."""
        counts = {of.value: self.count(of) for of in NODES}
        for of, schema in EDGES.items():
            counts[of.value] = sum(self._count(table_of_edges(of, *pair)) for pair in schema.pairs)
        if self.graph is not None:
            counts |= {of.value: len(self.concepts.links(of).sources) for of in PRUNABLE}
            counts[NodeType.CONCEPT.value] = len(self.concepts.ids)
        return counts

    def erase_free_pages(self) -> None:
        """Leave no bytes of removed rows in the file or its log.

        Raises WorkspaceLocked where another process keeps reading, and so keeps the log.
        """
        with self._faults_named():
            if self._db.erase_free_pages():
                return
        raise WorkspaceLocked(
            f"{self._db.told} is being read by another process, so what was removed is still in its log",
            "Do it again when no other process has the workspace open",
        )

    def faults_found(self) -> list[str]:
        """Return what the database says against the relationship graph."""
        with self._faults_named():
            said, tables = self._db.faults_found()
        return [*said, *(f"{table} links what is not there" for table in sorted(tables))]

    def copy_into(self, target: Database) -> None:
        """Copy it, as it stands at one moment, into an empty schema of Postgres, within a transaction of that."""
        nodes = [table_of_nodes(of) for of in NODES if of not in VIEWS]
        edges = [table_of_edges(of, *pair) for of, each in EDGES.items() for pair in each.pairs if of not in VIEWS]
        made = {"conversations": PAGE_TABLES, "turns": (), "turn_follows": VERSION_TABLES}
        page = [table for table in made if self._db.has_table(table)]
        target.define((*create_statements(), *(statement for table in page for statement in made[table])))
        with self.as_it_stands():
            for table in ("meta", "pruned", *nodes, *edges, *page):
                target.insert(table, self._db.scan(f'SELECT * FROM "{table}"'))
        target.execute(_NOTE_FORMAT, (str(_FORMAT),))
        target.continue_numbers()

    def _count(self, table: str) -> int:
        return int(self.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0])

    def _missing_endpoint(
        self, of: EdgeType, start: NodeType, end: NodeType, rows: Sequence[Sequence[PropertyValue]]
    ) -> MissingEndpoint:
        ends = ((node_type, str(key)) for row in rows for node_type, key in zip((start, end), row, strict=False))
        node_type, key = next((each for each in ends if self.node(*each) is None), (start, ""))
        return MissingEndpoint(
            f"There is no {node_type} {key[:60]!r} for {of} to link", f"Create the {node_type} first"
        )

    @contextmanager
    def _refusals_named(self) -> Iterator[None]:
        try:
            yield
        except self._db.conflicts as fault:
            raise NotInSchema(
                "The tables of the relationship graph refuse what is written", "Write what its schema declares"
            ) from fault
        except self._db.faults as fault:
            raise self._db.named(fault) from fault


def _published(root: Path) -> KnowledgeGraph | None:
    """Open the generation that readers of a workspace should, as often as it takes while others publish."""
    for _ in range(3):
        generation = Workspace(root).current()
        if generation is None:
            return None
        try:
            return _opened_graph(Workspace(root).index_folder(generation), (root / "CURRENT").stat().st_mtime_ns)
        except (OSError, ValueError) as error:
            fault = error
    raise WorkspaceDamaged(f"The snapshot of {root} cannot be read ({fault})", "Run `mara doctor --repair`")


@lru_cache(maxsize=2)
def _links_of(_path: Path, _commit_id: str, _in_step_with: str, _documents: tuple[int, ...]) -> dict[EdgeType, Links]:
    """Return what holds the links that views compute of a commit and documents."""
    return {}


@lru_cache(maxsize=2)
def _opened_graph(folder: Path, _written: int) -> KnowledgeGraph:
    return load(folder)


def _make(db: Database) -> None:
    db.define(create_statements())
    if not isinstance(db, SqliteDatabase):
        db.execute(_NOTE_FORMAT, (str(_FORMAT),))


def _missing(name: str) -> BadInput:
    return BadInput(f"There is no relationship graph: {name} is not there", "Index documents into it: `mara index`")


_KIND = Kind("meta", _make, _RESTORE, _missing, _FORMAT, lambda place: place.relationships_schema)


def _ends(edge: Edge) -> tuple[tuple[NodeType, str], tuple[NodeType, str]]:
    """Return the ends of an edge as they are kept: those of a symmetric one in the order of their ids."""
    swapped = EDGES[edge.type].symmetric and edge.source[1] > edge.target[1]
    return (edge.target, edge.source) if swapped else (edge.source, edge.target)
