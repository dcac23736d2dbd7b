"""Bringing the relationship graph in step with the record of passages: sources, documents, chunks, vectors, concepts.

What is there already and unchanged is not written again, so a call after which nothing changed costs one look-up, and
one that was killed is made good by the next.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from graph.construction.builder import GraphBuilder
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput
from graph.relationships.concept_edges import bring_concepts_in_step
from graph.relationships.document_step import DocumentStep, InStep
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import time_text
from graph.storage.record import Record
from graph.storage.workspace import Workspace

_RULES = "1"
"""The version of what is derived: a record that an older one derived is brought in step anew."""

_IN_STEP_WITH = "documents"


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
    return relationships.note(_IN_STEP_WITH) == _stamp(record)


def bring_in_step(
    relationships: RelationshipRecord, record: Record, graph: KnowledgeGraph, now: datetime | None = None
) -> InStep:
    """Write what the record's documents are, where they come from and which concepts they explain; drop what is gone.

    Documents come first, in one transaction; concepts and their edges follow in transactions of a few thousand. A
    document that takes the place of another of the same path keeps its node, and so what was viewed and cited of it:
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
    if is_in_step(relationships, record):
        return InStep()
    with relationships.transaction():
        changes = DocumentStep(relationships, record, graph, time_text(now or datetime.now(UTC))).take()
    concepts, edges = bring_concepts_in_step(relationships, graph)
    with relationships.transaction():
        relationships.set_note(_IN_STEP_WITH, _stamp(record))
    return replace(changes, concepts=concepts, edges=edges)


def forget_step(relationships: RelationshipRecord) -> None:
    """Let the next step compare everything, rather than what changed since the last one."""
    with relationships.transaction():
        relationships.set_note(_IN_STEP_WITH, "")
        relationships.execute("DELETE FROM digests")
        relationships.execute("UPDATE document_chunk SET fingerprint = ''")


def _stamp(record: Record) -> str:
    return f"{_RULES} {record.workspace_id} {record.commit_id}"


def _graph_of(workspace: Workspace, record: Record) -> KnowledgeGraph:
    """Return the published generation; of an empty record, which has none, the empty graph."""
    if not record.count_passages():
        return GraphBuilder().build(record)
    return load(workspace.index_folder(record.generation))
