"""Bringing sources, documents and chunks of the relationship graph in step with the record of passages.

Rows that stand there unchanged are not written again, so a call after which nothing changed costs one look-up, and
one that was killed is made good by the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from graph.construction.build import derive_graph
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput
from graph.moments import ALWAYS
from graph.relationships.concept_view import CONCEPT_EDGES
from graph.relationships.provenance import Origin, origin_of, source_id, source_node
from graph.relationships.record import IN_STEP_WITH, RelationshipRecord
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue, time_text
from graph.relationships.tables import along
from graph.schema import Passage
from graph.storage.database import AMONG
from graph.storage.entry import content_hash
from graph.storage.record import Record
from graph.storage.workspace import Workspace

METRIC = "cosine"
"""How the vectors of a store are compared."""

_DOCUMENTS = f"""
    SELECT DISTINCT document.id FROM {along("document_chunk -chunk_of-> document")} WHERE document_chunk.id {AMONG}"""
_CHUNKS = f"""
    SELECT document.id, document_chunk.id, content_hash, document_chunk.created_at
    FROM {along("document <-chunk_of- document_chunk")} WHERE document.id {AMONG}"""
_UNLINK = f"DELETE FROM chunk_of WHERE source IN (SELECT key FROM document_chunk WHERE id {AMONG})"
_UNSOURCE = f"DELETE FROM {{table}} WHERE source IN (SELECT key FROM document WHERE id {AMONG})"
_UNNAMED = """
    DELETE FROM source WHERE NOT EXISTS (SELECT 1 FROM sourced_from WHERE target = key)
    AND NOT EXISTS (SELECT 1 FROM references_document_source WHERE target = key)"""
_MENTIONED = "SELECT id, EXISTS (SELECT 1 FROM mentions WHERE target = key) FROM concept"

Hashes = dict[str, dict[str, str]]
"""{document: {passage: the hash of its content}}."""


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
        self._changed = {key: made for key, made in fingerprints.items() if known.get(key) != made}
        touched = [*self._gone, *self._changed]
        self._origins = {key: origin_of(self._passage(key)) for key in self._changed}
        documents = {key for (key,) in relationships.execute(_DOCUMENTS, (touched,))}
        documents.update(origin.document for origin in self._origins.values())
        self._before: Hashes = defaultdict(dict)
        self._after: Hashes = defaultdict(dict)
        self._came: dict[str, str] = {}
        for document, key, content, came in relationships.execute(_CHUNKS, (sorted(documents),)):
            self._before[document][key], self._came[key] = content, came
            if key in fingerprints and key not in self._changed:
                self._after[document][key] = content
        for key, origin in self._origins.items():
            self._after[origin.document][key] = content_hash(self._passage(key))
        self._known = record.versions.times(touched)

    def take(self) -> InStep:
        """Write the step, within a transaction of the caller's."""
        written = {
            document: [self._origins.get(key) or origin_of(self._passage(key)) for key in passages]
            for document, passages in self._after.items()
            if passages != self._before.get(document)
        }
        firsts = {document: min(origins, key=lambda origin: origin.number) for document, origins in written.items()}
        nodes = {key: node for key in firsts if (node := self._to.node(NodeType.DOCUMENT, key)) is not None}
        gone = {
            key: node
            for key in self._before
            if key not in self._after and (node := self._to.node(NodeType.DOCUMENT, key)) is not None
        }
        nodes |= self._take_places([origin for key, origin in firsts.items() if key not in nodes], gone)
        times = self._times_of_documents()
        self._to.put_nodes(self._document(origin, nodes.get(key), times) for key, origin in firsts.items())
        self._write_chunks()
        self._to.remove_nodes(NodeType.DOCUMENT, list(gone))
        self._write_sources(written)
        self._write_store()
        n_new = len(firsts.keys() - nodes.keys())
        return InStep(n_new, len(firsts) - n_new, len(gone), len(self._changed))

    def _passage(self, key: str) -> Passage:
        return self._graph.passages[self._graph.passage_index[key]]

    def _take_places(self, new: Sequence[Origin], gone: dict[str, Node]) -> dict[str, Node]:
        """Give new documents the nodes of those that they replace: of the same path and title, else of the same path.

        One replaces another where each is the only one of that path (and title), before and after. The replaced one is
        no longer among those that are gone.
        """
        taken: dict[str, Node] = {}
        for columns in (("path", "title"), ("path",)):
            left = [origin for origin in new if origin.document not in taken]
            coming = _alone((tuple(getattr(origin, name) for name in columns), origin.document) for origin in left)
            leaving = _alone((tuple(str(node.properties[name]) for name in columns), key) for key, node in gone.items())
            for place in coming.keys() & leaving.keys() & self._places_of_one(columns, coming):
                node = taken[coming[place]] = gone.pop(leaving[place])
                with self._to.transaction() as revision:
                    rename = "UPDATE document SET id = ?, revision = ? WHERE id = ?"
                    self._to.execute(rename, (coming[place], revision, node.id))
        return taken

    def _places_of_one(self, columns: Sequence[str], places: Iterable[tuple[str, ...]]) -> set[tuple[str, ...]]:
        """Return those of some places that one document alone has now; columns are of the table, in its order."""
        names = ", ".join(columns)
        query = f"SELECT {names} FROM document WHERE path {AMONG} GROUP BY {names} HAVING count(*) = 1"
        return set(self._to.execute(query, (sorted({path for path, *_ in places}),)))

    def _times_of_documents(self) -> dict[str, tuple[str, str]]:
        """Return {document: since when a passage of it stood, when one last changed or ended}, by known versions."""
        times: dict[str, tuple[str, str]] = {}
        for document, key in ((of, key) for each in (self._before, self._after) for of in each for key in each[of]):
            first, last = self._known.get(key, (ALWAYS, ALWAYS))
            if last != ALWAYS:
                earliest, latest = times.get(document, (first or last, last))
                times[document] = (min(first or last, earliest), max(last, latest))
        return {key: (_property_of(first), _property_of(last)) for key, (first, last) in times.items()}

    def _document(self, origin: Origin, before: Node | None, times: Mapping[str, tuple[str, str]]) -> Node:
        created_at, updated_at = times.get(origin.document, (self._now, self._now))
        properties: dict[str, PropertyValue] = {
            "path": origin.path,
            "title": origin.title,
            "content_type": origin.content_type,
            "created_at": before.properties["created_at"] if before else created_at,
            "updated_at": updated_at,
            "version": int(before.properties["version"] or 0) + 1 if before else 1,
        }
        return Node(NodeType.DOCUMENT, origin.document, properties)

    def _write_chunks(self) -> None:
        """Write the chunks that are new or changed, each with its one document, and drop those that are gone."""
        self._to.put_nodes(
            Node(
                NodeType.CHUNK,
                key,
                {
                    "chunk_index": origin.number,
                    "path": origin.path,
                    "fingerprint": self._changed[key],
                    "content_hash": self._after[origin.document][key],
                    "created_at": self._came.get(key) or self._first(key),
                },
            )
            for key, origin in self._origins.items()
        )
        self._to.execute(_UNLINK, (list(self._origins),))
        self._to.link_all(
            Edge(EdgeType.CHUNK_OF, (NodeType.CHUNK, key), (NodeType.DOCUMENT, origin.document))
            for key, origin in self._origins.items()
        )
        self._to.remove_nodes(NodeType.CHUNK, self._gone)

    def _first(self, passage: str) -> str:
        first, last = self._known.get(passage, (ALWAYS, ALWAYS))
        return _property_of(first or last) if last != ALWAYS else self._now

    def _write_sources(self, documents: Mapping[str, Sequence[Origin]]) -> None:
        """Write where documents come from and which pages they link to; sources that nothing names any more go."""
        for table in ("sourced_from", "references_document_source"):
            self._to.execute(_UNSOURCE.format(table=table), (list(documents),))
        named = []
        for key, origins in documents.items():
            paths = {origin.path for origin in origins}
            urls = {url for origin in origins for url in origin.references}
            named += [(EdgeType.SOURCED_FROM, key, uri) for uri in sorted(paths - {key})]
            named += [(EdgeType.REFERENCES, key, uri) for uri in sorted(urls - paths)]
        self._to.put_nodes(source_node(uri) for uri in sorted({uri for _, _, uri in named}))
        self._to.link_all(
            Edge(of, (NodeType.DOCUMENT, key), (NodeType.SOURCE, source_id(uri))) for of, key, uri in named
        )
        self._to.execute(_UNNAMED)

    def _write_store(self) -> None:
        """Write the store that all vectors are in: that of the embedding model."""
        model, dimension = self._graph.embedding_model, self._graph.passage_vectors.shape[1]
        stores = (node.id for node in self._to.nodes(NodeType.VECTOR_STORE))
        self._to.remove_nodes(NodeType.VECTOR_STORE, [key for key in stores if key != model])
        if model:
            about = {"model": model, "dimension": dimension, "metric": METRIC}
            self._to.put_node(Node(NodeType.VECTOR_STORE, model, about))


def _alone(places: Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], str]:
    """Return {place: document} of the places that one document alone has."""
    documents_at: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for place, document in places:
        documents_at[place].append(document)
    return {place: documents[0] for place, documents in documents_at.items() if len(documents) == 1}


def _property_of(moment: str) -> str:
    """Return a moment of the record as properties of the graph hold times."""
    return time_text(datetime.fromisoformat(moment))


_ANEW = "anew"
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
        relationships.take_over()
        changes = DocumentStep(relationships, record, graph, time_text(now or datetime.now(UTC))).take()
        _drop_computed(relationships, graph)
        relationships.set_note(IN_STEP_WITH, _stamp(record))
    return changes


def _drop_computed(relationships: RelationshipRecord, graph: KnowledgeGraph) -> None:
    """Drop what the generation tells; the ids of its concepts that messages mention stay."""
    for of in CONCEPT_EDGES:
        relationships.execute(f"DELETE FROM {of.lower()}")
    concepts = relationships.execute(_MENTIONED)
    gone = [key for key, is_mentioned in concepts if not is_mentioned or key not in graph.entity_index]
    relationships.remove_nodes(NodeType.CONCEPT, gone)
    relationships.execute("UPDATE concept SET name = '', description = NULL, type = NULL WHERE name <> ''")


def forget_step(relationships: RelationshipRecord) -> None:
    """Let the next step compare everything, rather than what changed since the last one."""
    with relationships.transaction():
        relationships.set_note(IN_STEP_WITH, _ANEW)
        relationships.execute("UPDATE document_chunk SET fingerprint = ''")


def _stamp(record: Record) -> str:
    return f"{_RULES} {record.workspace_id} {record.commit_id}"


def _graph_of(workspace: Workspace, record: Record) -> KnowledgeGraph:
    """Return the published generation; of an empty record, which has none, the empty graph."""
    if not record.count_passages():
        return derive_graph(record)
    return load(workspace.index_folder(record.generation))
