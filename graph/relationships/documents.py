"""Bringing sources, documents and chunks of the relationship graph in step with the record of passages.

What is there already and unchanged is not written again, so a call after which nothing changed costs one look-up, and
one that was killed is made good by the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput
from graph.moments import ALWAYS
from graph.relationships.provenance import Origin, origin_of, source_id, source_node
from graph.relationships.record import IN_STEP_WITH, RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue, time_text
from graph.relationships.tables import along
from graph.storage.entry import content_hash
from graph.storage.record import Record
from graph.storage.workspace import Workspace

_AMONG = "IN (SELECT value FROM json_each(?))"
_CHUNKS = f"""
    SELECT document_chunk.id, document.id, content_hash, document_chunk.created_at
    FROM {along("document_chunk -chunk_of-> document")} WHERE document_chunk.id {_AMONG}"""
_PARTS = f"""
    SELECT document.id, document_chunk.id FROM {along("document <-chunk_of- document_chunk")}
    WHERE document.id {_AMONG}"""
_COUNTS = f"SELECT id, count(*) FROM {along('document <-chunk_of-')} WHERE id {_AMONG} GROUP BY id"
_UNLINK = f"DELETE FROM chunk_of WHERE source IN (SELECT key FROM document_chunk WHERE id {_AMONG})"
_CHILDLESS = f"""
    SELECT id FROM document WHERE id {_AMONG} AND NOT EXISTS (SELECT 1 FROM chunk_of WHERE target = key)"""


@dataclass(frozen=True, slots=True)
class InStep:
    """The changes of bringing the relationship graph in step.

    Attributes:
        new: documents that are new.
        changed: documents whose content is another.
        gone: documents that went.
        chunks: chunks that were written, new and changed ones.
    """

    new: int = 0
    changed: int = 0
    gone: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk as it was: its document, the hash of its content, and when it came."""

    document: str
    content_hash: str
    created_at: str


@dataclass(frozen=True, slots=True)
class _Change:
    """A passage that is new or changed: where it comes from, the hash of its content, and its entry's fingerprint."""

    origin: Origin
    content_hash: str
    fingerprint: str


class DocumentStep:
    """The passages that changed since the last step, and what follows for their documents."""

    def __init__(self, relationships: RelationshipRecord, record: Record, graph: KnowledgeGraph, now: str) -> None:
        """Compare the record with the chunks; ``graph`` is the record's generation, ``now`` the time to note."""
        self._to = relationships
        self._graph = graph
        self._now = now
        fingerprints = record.fingerprints()
        known = dict(relationships.execute("SELECT id, fingerprint FROM document_chunk"))
        self._gone = [key for key in known if key not in fingerprints]
        changed = [key for key, made in fingerprints.items() if known.get(key) != made]
        self._changes = {key: self._change(key, fingerprints[key]) for key in changed}
        there = [*self._gone, *(key for key in changed if key in known)]
        self._before = {key: _Chunk(*row) for key, *row in relationships.execute(_CHUNKS, (there,))}
        self._known = record.versions.times([*self._gone, *changed])
        self._times = self._times_of_documents()

    def _times_of_documents(self) -> dict[str, tuple[str, str]]:
        """Return {document: since when a passage of it stood, when one last changed or ended}, by known versions."""
        found: dict[str, tuple[str, str]] = {}
        for key, (first, last) in self._known.items():
            change, was = self._changes.get(key), self._before.get(key)
            document = change.origin.document if change else was.document if was else None
            if document is None or last == ALWAYS:
                continue
            earliest, latest = found.get(document, (first or last, last))
            found[document] = (min(first or last, earliest), max(last, latest))
        return {key: (_property_of(first), _property_of(last)) for key, (first, last) in found.items()}

    def take(self) -> InStep:
        """Write the step, within a transaction of the caller's."""
        first = self._first_origins()
        there = {key: node for key in first if (node := self._to.node(NodeType.DOCUMENT, key)) is not None}
        there |= self._take_places([origin for key, origin in first.items() if key not in there])
        altered = self._altered()
        written = [key for key in first if key in altered or key not in there]
        self._to.put_nodes(self._document(first[key], there.get(key)) for key in written)
        self._to.put_nodes(self._chunk(key, change) for key, change in self._changes.items())
        self._link_chunks()
        self._to.remove_nodes(NodeType.CHUNK, self._gone)
        n_gone, shrunk = self._remove_childless(), self._count_up_shrunk(set(first))
        self._write_sources([*written, *shrunk])
        n_new = sum(key not in there for key in written)
        return InStep(n_new, len(written) - n_new + len(shrunk), n_gone, len(self._changes))

    def _change(self, key: str, fingerprint: str) -> _Change:
        passage = self._graph.passages[self._graph.passage_index[key]]
        return _Change(origin_of(passage), content_hash(passage), fingerprint)

    def _first_origins(self) -> dict[str, Origin]:
        """Return {document: the origin of its first passage that is new or changed}."""
        first: dict[str, Origin] = {}
        for change in self._changes.values():
            origin = change.origin
            if origin.number <= first.setdefault(origin.document, origin).number:
                first[origin.document] = origin
        return first

    def _altered(self) -> set[str]:
        """Return the documents that gained a passage, or one of whose passages has another content than before."""
        return {
            change.origin.document
            for key, change in self._changes.items()
            if (was := self._before.get(key)) is None
            or (was.content_hash, was.document) != (change.content_hash, change.origin.document)
        }

    def _take_places(self, new: Sequence[Origin]) -> dict[str, Node]:
        """Give new documents the nodes of those that they replace: of the same path and title, else of the same path.

        One replaces another where each is the only one of that path (and title), before and after.
        """
        going = self._emptied()
        taken: dict[str, Node] = {}
        for columns in (("path", "title"), ("path",)):
            left = [origin for origin in new if origin.document not in taken]
            coming = _alone((tuple(getattr(origin, name) for name in columns), origin.document) for origin in left)
            leaving = _alone(
                (tuple(str(node.properties[name]) for name in columns), key) for key, node in going.items()
            )
            for place in coming.keys() & leaving.keys() & self._places_of_one(columns, coming):
                node = going.pop(leaving[place])
                with self._to.transaction() as revision:
                    rename = "UPDATE document SET id = ?, revision = ? WHERE id = ?"
                    self._to.execute(rename, (coming[place], revision, node.id))
                taken[coming[place]] = node
        return taken

    def _places_of_one(self, columns: Sequence[str], places: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Return those of some places that one document alone has now; columns are of the table, in its order."""
        names = ", ".join(columns)
        query = (
            f"SELECT {names} FROM document WHERE path IN (SELECT value FROM json_each(?))"
            f" GROUP BY {names} HAVING count(*) = 1"
        )
        paths = sorted({path for path, *_ in places})
        return set(self._to.execute(query, (paths,)))

    def _emptied(self) -> dict[str, Node]:
        """Return the documents that keep none of their passages."""
        left = Counter(was.document for was in self._before.values())
        for key, change in self._changes.items():
            if (was := self._before.get(key)) is not None and was.document == change.origin.document:
                left[was.document] -= 1
        counts = self._to.execute(_COUNTS, (list(left),)).fetchall()
        empty = [key for key, count in counts if count == left[key]]
        return {key: node for key in empty if (node := self._to.node(NodeType.DOCUMENT, key)) is not None}

    def _document(self, origin: Origin, before: Node | None) -> Node:
        created_at, updated_at = self._times.get(origin.document, (self._now, self._now))
        properties: dict[str, PropertyValue] = {
            "path": origin.path,
            "title": origin.title,
            "content_type": origin.content_type,
            "created_at": created_at,
            "updated_at": updated_at,
            "version": 1,
        }
        if before is not None:
            properties["created_at"] = before.properties["created_at"]
            properties["version"] = _next(before)
        return Node(NodeType.DOCUMENT, origin.document, properties)

    def _chunk(self, key: str, change: _Change) -> Node:
        was = self._before.get(key)
        properties: dict[str, PropertyValue] = {
            "chunk_index": change.origin.number,
            "path": change.origin.path,
            "fingerprint": change.fingerprint,
            "content_hash": change.content_hash,
            "created_at": was.created_at if was else self._first(key),
        }
        return Node(NodeType.CHUNK, key, properties)

    def _link_chunks(self) -> None:
        """Give each new or changed chunk its one document."""
        moved = [
            key
            for key, change in self._changes.items()
            if (was := self._before.get(key)) is not None and was.document != change.origin.document
        ]
        self._to.execute(_UNLINK, (moved,))
        self._to.link_all(
            Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, key), (NodeType.DOCUMENT, change.origin.document))
            for key, change in self._changes.items()
        )

    def _remove_childless(self) -> int:
        """Remove documents whose last passage went; return how many."""
        touched = {was.document for was in self._before.values()}
        empty = [key for (key,) in self._to.execute(_CHILDLESS, (list(touched),))]
        return self._to.remove_nodes(NodeType.DOCUMENT, empty)

    def _count_up_shrunk(self, written: Collection[str]) -> list[str]:
        """Count the version up of documents that only lost passages; return them."""
        lost = {self._before[key].document for key in self._gone if key in self._before} - set(written)
        nodes = [node for key in sorted(lost) if (node := self._to.node(NodeType.DOCUMENT, key)) is not None]
        for node in nodes:
            _, updated_at = self._times.get(node.id, ("", self._now))
            self._to.put_node(
                Node(node.type, node.id, {**node.properties, "updated_at": updated_at, "version": _next(node)})
            )
        return [node.id for node in nodes]

    def _first(self, passage: str) -> str:
        first, last = self._known.get(passage, (ALWAYS, ALWAYS))
        return _property_of(first or last) if last != ALWAYS else self._now

    def _write_sources(self, documents: Sequence[str]) -> None:
        """Write where documents come from and which pages they link to; sources that nothing names any more go."""
        origins = self._origins_of(documents)
        wanted: dict[EdgeType, dict[str, set[str]]] = {
            EdgeType.SOURCED_FROM: {key: {at.path for at in each if at.path != key} for key, each in origins.items()},
            EdgeType.REFERENCES: {
                key: {url for at in each for url in at.references} - {at.path for at in each}
                for key, each in origins.items()
            },
        }
        uris = {uri for of in wanted.values() for each in of.values() for uri in each}
        self._to.put_nodes(source_node(uri) for uri in sorted(uris))
        for of, by_document in wanted.items():
            self._link_sources(of, by_document)
        self._to.execute(
            "DELETE FROM source WHERE NOT EXISTS (SELECT 1 FROM sourced_from WHERE target = key)"
            " AND NOT EXISTS (SELECT 1 FROM references_document_source WHERE target = key)"
        )

    def _origins_of(self, documents: Sequence[str]) -> dict[str, list[Origin]]:
        """Return {document: where each of its passages comes from}."""
        found: dict[str, list[Origin]] = defaultdict(list)
        for document, chunk in self._to.execute(_PARTS, (list(documents),)):
            change = self._changes.get(chunk)
            passages = self._graph.passages
            found[document].append(change.origin if change else origin_of(passages[self._graph.passage_index[chunk]]))
        return found

    def _link_sources(self, of: EdgeType, wanted: Mapping[str, set[str]]) -> None:
        table = "sourced_from" if of is EdgeType.SOURCED_FROM else "references_document_source"
        query = f"SELECT document.id, uri FROM {along(f'document -{table}-> source')} WHERE document.id {_AMONG}"
        for document, uri in self._to.execute(query, (list(wanted),)).fetchall():
            if uri not in wanted[document]:
                self._to.unlink(_source_edge(of, document, uri))
        self._to.link_all(_source_edge(of, key, uri) for key, uris in wanted.items() for uri in sorted(uris))


def _alone(places: Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], str]:
    """Return {place: document} of the places that one document alone has."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for place, document in places:
        found[place].append(document)
    return {place: documents[0] for place, documents in found.items() if len(documents) == 1}


def _property_of(moment: str) -> str:
    """Return a moment of the record as properties of the graph hold times."""
    return time_text(datetime.fromisoformat(moment))


def _next(node: Node) -> int:
    version = node.properties["version"]
    assert isinstance(version, int)
    return version + 1


def _source_edge(of: EdgeType, document: str, uri: str) -> Edge:
    return Edge(of, (NodeType.DOCUMENT, document), (NodeType.SOURCE, source_id(uri)))


_RULES = "2"
"""The version of what is derived: a record that an older one derived is brought in step anew."""


def relate(workspace: Workspace, record: Record) -> InStep:
    """Bring the relationship graph of a workspace in step with its published generation; made where there is none.

    The caller holds the writer's lock, and has published.

    Raises:
        BadInput: the generation is not that of the record; the disk refuses.
        WorkspaceDamaged: the relationship graph or the generation cannot be read.
        WorkspaceLocked: another process writes relationships for longer than one waits.
    """
    with RelationshipRecord.of(workspace.root, create=True) as relationships:
        if is_in_step(relationships, record):
            return InStep()
        changes = bring_in_step(relationships, record, _graph_of(workspace, record))
        if changes.gone or changes.changed:
            relationships.shorten_log()
        return changes


def is_in_step(relationships: RelationshipRecord, record: Record) -> bool:
    """Tell whether the relationship graph was brought in step with the record as it stands."""
    return relationships.note(IN_STEP_WITH) == _stamp(record)


def bring_in_step(
    relationships: RelationshipRecord, record: Record, graph: KnowledgeGraph, now: datetime | None = None
) -> InStep:
    """Write what the record's documents are and where they come from; drop what is gone. All or nothing.

    A document that takes the place of another of the same path keeps its node, and so what was viewed and cited of it:
    its version counts up. Documents have the times of their versions; where the record keeps none, that of the change.

    Args:
        relationships: written to.
        record: the passages.
        graph: the generation of the record as it stands.
        now: the time of the change; by default that of the call.

    Raises:
        BadInput: the graph is of another commit than the record.
    """
    if graph.commit_id != record.commit_id:
        raise BadInput("The knowledge graph is of another commit than the record", "Publish the record first")
    relationships.see(graph)
    if is_in_step(relationships, record):
        return InStep()
    with relationships.transaction():
        changes = DocumentStep(relationships, record, graph, time_text(now or datetime.now(UTC))).take()
        _drop_computed(relationships, graph)
        relationships.set_note(IN_STEP_WITH, _stamp(record))
        _forget_pruned(relationships)
    return changes


def _drop_computed(relationships: RelationshipRecord, graph: KnowledgeGraph) -> None:
    """Drop what the generation tells: all of it but the ids of concepts that it holds and messages mention."""
    for table in ("explains", "related_to", "embedding_of", "stored_in", "vector", "vector_store"):
        relationships.execute(f"DELETE FROM {table}")
    held = relationships.execute("SELECT id, EXISTS (SELECT 1 FROM mentions WHERE target = key) FROM concept")
    unheld = [key for key, is_mentioned in held if not is_mentioned or key not in graph.entity_index]
    relationships.remove_nodes(NodeType.CONCEPT, unheld)
    relationships.execute("UPDATE concept SET name = '', description = NULL, type = NULL WHERE name <> ''")


def _forget_pruned(relationships: RelationshipRecord) -> None:
    """Forget the pruned edges that rest on other evidence now, or whose ends are gone."""
    if relationships.execute("SELECT 1 FROM pruned LIMIT 1").fetchone():
        for of in (EdgeType.EXPLAINS, EdgeType.RELATED_TO):
            for ends in relationships.concepts.no_longer_pruned(of):
                forget = "DELETE FROM pruned WHERE type = ? AND source = ? AND target = ?"
                relationships.execute(forget, (of.value, *ends))


def forget_step(relationships: RelationshipRecord) -> None:
    """Let the next step compare everything, rather than what changed since the last one."""
    with relationships.transaction():
        relationships.set_note(IN_STEP_WITH, "")
        relationships.execute("UPDATE document_chunk SET fingerprint = ''")


def _stamp(record: Record) -> str:
    return f"{_RULES} {record.workspace_id} {record.commit_id}"


def _graph_of(workspace: Workspace, record: Record) -> KnowledgeGraph:
    """Return the published generation; of an empty record, which has none, the empty graph."""
    if not record.count_passages():
        return derive_graph(record)
    return load(workspace.index_folder(record.generation))
