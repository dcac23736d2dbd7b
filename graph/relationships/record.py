"""The record of the relationship graph: a database beside the record of passages, a typed table for each type.

Nodes have integer keys inside and ids outside. Every row holds the revision that wrote it last, so that a copy in
another store can be brought up to date. Vectors are views of chunks. Concepts and the edges at them follow from the
published generation of the knowledge graph and are computed when asked for: beside one, their tables hold the ids of
concepts that messages mention and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput, MissingEndpoint, NotInSchema, WorkspaceDamaged, WorkspaceLocked
from graph.relationships.concept_view import CONCEPT_EDGES, ConceptView
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
from graph.storage.database import Database, InDatabase, Kind, SqliteDatabase, Values
from graph.storage.opening import open_database
from graph.storage.place import RELATIONSHIPS_FILE as RELATIONSHIPS_FILE
from graph.storage.place import place_of
from graph.storage.workspace import Workspace

COMPUTED = frozenset((NodeType.CONCEPT, *CONCEPT_EDGES))
"""The types of nodes and edges that follow from the published generation."""

IN_STEP_WITH = "documents"
"""The note of what the documents were last brought in step with."""

_BAR = "pruned below"
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
_HOLD = "INSERT INTO concept (id, name, revision) VALUES (?, '', ?) ON CONFLICT (id) DO NOTHING"
"""Holds the id of a concept of the generation, which has its name."""

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


class Rows(list[Any]):
    """The rows that a statement gave.

    Attributes:
        rowcount: the number of rows that the statement changed.
    """

    def __init__(self, rows: Iterable[Any], rowcount: int) -> None:
        super().__init__(rows)
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        """Return the first row; None where there is none."""
        return self[0] if self else None


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

        Raises as the constructor does, and NotInSchema where the tables refuse a row.
        """
        with self._refusals_named():
            cursor = self._db.execute(query, values)
            return Rows(cursor if cursor.description else (), cursor.rowcount)

    def put_node(self, node: Node) -> None:
        """Create a node, or give the one of that id these properties. Raises NotInSchema."""
        self.put_nodes([node])

    def put_nodes(self, nodes: Iterable[Node]) -> None:
        """Create or update nodes in one transaction, as `put_node` does.

        Those of views, and concepts where there is a published generation, follow from others and are not written.
        """
        rows: dict[NodeType, list[list[PropertyValue]]] = {}
        for node in nodes:
            check_node(node)
            if node.type in VIEWS or self.computes(node.type):
                continue
            rows.setdefault(node.type, []).append([node.id, *(node.properties.get(name) for name in NODES[node.type])])
        with self.transaction() as revision:
            for of, values in rows.items():
                statement = upsert(table_of_nodes(of), ["id"], list(NODES[of]))
                with self._refusals_named():
                    self._db.executemany(statement, ([*row, revision] for row in values))

    def link(self, edge: Edge) -> None:
        """Create an edge, or give the one between these nodes these properties.

        Beside a published generation, edges that follow from it are not written, nor those to concepts that it lacks.

        Raises:
            NotInSchema: `check_edge` refuses it.
            MissingEndpoint: a node that it links is not there.
        """
        self.link_all([edge])

    def link_all(self, edges: Iterable[Edge]) -> None:
        """Create or update edges in one transaction, as `link` does; one that is refused undoes all."""
        rows: dict[tuple[EdgeType, NodeType, NodeType], list[list[PropertyValue]]] = {}
        concepts: set[str] = set()
        for edge in edges:
            check_edge(edge)
            linked = {key for of, key in (edge.source, edge.target) if of is NodeType.CONCEPT}
            if edge.type in VIEWS or self.computes(edge.type) or any(map(self._lacks, linked)):
                continue
            concepts |= linked
            (start, source), (end, target) = _ends(edge)
            values = [edge.properties.get(name) for name in EDGES[edge.type].properties]
            rows.setdefault((edge.type, start, end), []).append([source, target, *values])
        with self.transaction() as revision:
            if concepts and self.graph is not None:
                self._db.executemany(_HOLD, [(key, revision) for key in sorted(concepts)])
            for (of, start, end), values_of in rows.items():
                statement = insert_edge(of, start, end)
                try:
                    with self._db.attempt():
                        self._db.executemany(statement, ([*row, revision] for row in values_of))
                except self._db.conflicts as fault:
                    raise self._missing_endpoint(of, start, end, values_of) from fault

    def _lacks(self, concept: str) -> bool:
        """Tell whether there is a published generation, and the concept is not in it."""
        return self.graph is not None and concept not in self.graph.entity_index

    def node(self, of: NodeType, key: str) -> Node | None:
        """Return the node of that type and id; None where there is none."""
        if self.computes(of):
            return self.concepts.node(key)
        return next(self._read_nodes(of, "WHERE id = ?", (key,)), None)

    def nodes(self, of: NodeType, where: str = "", values: Values = ()) -> Iterator[Node]:
        """Yield the nodes of a type, by id; of one that is stored, those that a clause of SQL selects."""
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

    @cached_property
    def graph(self) -> KnowledgeGraph | None:
        """The published generation of the workspace; None where there is none."""
        return _published(self._path.parent)

    def computes(self, of: NodeType | EdgeType) -> bool:
        """Tell whether nodes or edges of a type follow from the published generation."""
        return of in COMPUTED and self.graph is not None

    @property
    def concepts(self) -> ConceptView:
        """The concepts, and the edges between them and documents."""
        state = self._path, self.computed_state or f"{self.revision} {self._db.total_changes}"
        if state not in _VIEWS:
            while len(_VIEWS) >= _KEPT_VIEWS:
                _VIEWS.pop(next(iter(_VIEWS)), None)
            _VIEWS[state] = self._view()
        return _VIEWS[state]

    @property
    def computed_state(self) -> str:
        """Another text whenever what is computed may be another; empty where nothing is."""
        return "" if self.graph is None else f"{self.graph.commit_id} {self.note(IN_STEP_WITH)} {self.bar}"

    @property
    def bar(self) -> float:
        """The value below which edges of concepts are pruned, in [0, 1]; 0 prunes none."""
        return float(self.note(_BAR) or 0)

    def prune(self, below: float) -> None:
        """Hide the edges of concepts that are worth less, now and of every later generation; 0 brings all back."""
        with self.transaction():
            self.set_note(_BAR, str(below))

    def _view(self) -> ConceptView:
        documents = self.execute("SELECT key, id FROM document ORDER BY key")
        ids = [key for _, key in documents]
        numbers = {key: number for number, (key, _) in enumerate(documents)}
        chunks = self.execute("SELECT id, target FROM document_chunk JOIN chunk_of ON source = key")
        document_of = {chunk: numbers[key] for chunk, key in chunks}
        if self.graph is not None:
            return ConceptView(self.graph, ids, document_of, bar=self.bar)
        stated = {of: self.execute(statement) for of, statement in _STATED.items()}
        return ConceptView(None, ids, document_of, [*self.nodes(NodeType.CONCEPT)], stated)

    def take_over(self) -> None:
        """Put views in the place of the copies that a file of before holds, within a transaction."""
        if self._db.has_table("digests"):
            copies = [f"DROP TABLE {each}" for each in (*(of.lower() for of in reversed(VIEWS)), "digests")]
            self._db.define([*copies, *create_views()])

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

    def count(self, of: NodeType) -> int:
        """Return the number of stored nodes of a type."""
        return self._count(table_of_nodes(of))

    def counts(self) -> dict[str, int]:
        """Return the number of nodes and edges of each type."""
        counts = {of.value: self.count(of) for of in NODES}
        for of, schema in EDGES.items():
            counts[of.value] = sum(self._count(table_of_edges(of, *pair)) for pair in schema.pairs)
        if self.graph is not None:
            counts |= {of.value: len(self.concepts.links(of).sources) for of in CONCEPT_EDGES}
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
            for table in ("meta", *nodes, *edges, *page):
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
