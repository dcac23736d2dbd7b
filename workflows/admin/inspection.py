"""Statistics of a workspace: its published generation and its record in numbers, and the edges of one entity."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from graph.construction.edges import PASSAGE_CLASSES
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput, MaraError, WorkspaceDamaged
from graph.explain.flows import edge_evidence, edges_between, find_entity, find_node, node_shown
from graph.publish.derive import publish
from graph.publish.generation_vectors import store_address
from graph.relations import PassageClasses
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.sources.skipped import skipped_by_source
from graph.storage.lock import GenerationHold
from graph.storage.place import place_name
from graph.storage.record import Record
from graph.storage.workspace import Workspace


def workspace_stats(root: Path) -> dict[str, Any]:
    """Return what a workspace contains. No model is asked, so that any may be configured, or none.

    The graph is that of the last published generation, also while another process writes; sources and extraction are
    counted in the record.

    Raises:
        WorkspaceMissing: there is none, or it is empty.
        WorkspaceDamaged: it cannot be read.
        WorkspaceLocked: no generation can be read, and another process is writing.
    """
    with published_graph(root) as (record, graph):
        return {
            "workspace": str(root),
            "workspace_id": record.workspace_id,
            "record_in_postgres": place_name(root),
            "generation": graph.generation,
            "record_generation": record.generation,
            "complete": record.complete,
            "class_cuts": record.note(PASSAGE_CLASSES) or PassageClasses.THIRDS.value,
            **_graph_counts(graph),
            **_record_counts(record),
            "embedding": graph.embedding_model,
            "store": store_address(Workspace(root), record.workspace_id, graph.generation),
            "relationships": _relationship_counts(root),
        }


def skipped_files(root: Path) -> dict[str, Any]:
    """Return the files that the last run over each source did not read, as ``--json`` prints them.

    Raises:
        WorkspaceMissing: there is no workspace.
        WorkspaceDamaged: it cannot be read.
    """
    with Workspace(root).open_record() as record:
        noted = skipped_by_source(record)
    sources = [
        {
            "source": source,
            "at": one["at"],
            "count": sum(one["reasons"].values()),
            "reasons": one["reasons"],
            "files": [{"source": name, "reason": f"{name}{rest}"} for name, rest in one["files"]],
        }
        for source, one in noted.items()
    ]
    return {"workspace": str(root), "sources": sources}


def entity_edges(root: Path, entity: str, to: str | None = None, limit: int = 20) -> dict[str, Any]:
    """Return the heaviest edges of an entity and what each stands for, as ``--json`` prints them.

    Raises:
        BadInput: the workspace knows no such entity or passage, or both are the same.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
    """
    with published_graph(root) as (record, graph):
        node = find_entity(graph, entity)
        other = None if to is None else find_node(graph, to)
        if other == node:
            label = node_shown(graph, node)["label"]
            raise BadInput(f"Both ends are the entity {label}", "Name another entity, or a passage by its id")
        rows = edges_between(graph, node, other)
        return {
            "workspace": str(root),
            "generation": graph.generation,
            "entity": node_shown(graph, node),
            "to": None if other is None else node_shown(graph, other),
            "of_edges": len(rows),
            "edges": edge_evidence(graph, record, node, rows[:limit].tolist()),
        }


@contextmanager
def published_graph(root: Path) -> Iterator[tuple[Record, KnowledgeGraph]]:
    """Open a workspace's record and its published generation; one that cannot be read is derived again.

    Raises:
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
        WorkspaceLocked: no generation can be read, and another process is writing.
    """
    workspace = Workspace(root)
    with workspace.open_record() as record:
        workspace.check_passages(record)
        opened = _open_published(workspace) or _open_published(workspace)
        if opened is None:
            with workspace.writing() as lock, workspace.open_record(lock) as writer:
                publish(workspace, writer)
            opened = _open_published(workspace)
        if opened is None:
            raise WorkspaceDamaged(f"The snapshot of {root} cannot be read", "Run `mara doctor --repair`")
        graph, hold = opened
        try:
            yield record, graph
        finally:
            hold.release()


def _open_published(workspace: Workspace) -> tuple[KnowledgeGraph, GenerationHold] | None:
    generation = workspace.current()
    if generation is None:
        return None
    try:
        hold = workspace.hold(generation)
    except (OSError, ValueError, sqlite3.DatabaseError):
        return None
    try:
        return load(workspace.index_folder(generation)), hold
    except (OSError, ValueError):
        hold.release()
        return None


def _relationship_counts(root: Path) -> dict[str, int | str]:
    """Return the number of nodes and edges of each type in the relationship graph; nothing where there is none.

    Where it cannot be read, ``problem`` says why: the index can be asked all the same.
    """
    if not has_relationships(root):
        return {}
    try:
        with RelationshipRecord.of(root, read_only=True) as relationships:
            return {**relationships.counts()}
    except MaraError as fault:
        return {"problem": f"{fault.message}. {fault.hint}"}


def _graph_counts(graph: KnowledgeGraph) -> dict[str, Any]:
    by_type: Counter[str] = Counter()
    counts = np.bincount(graph.edges.kind, minlength=len(graph.kinds)).tolist()
    for kind, count in zip(graph.kinds, counts, strict=True):
        by_type[kind.relation.value] += count
    return {
        "passages": len(graph.passages),
        "entities": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(graph.edges),
        "edges_by_type": dict(by_type),
        "own_types": graph.own.names,
        "passages_without_facts": len(graph.passages) - len(np.unique(graph.facts.passages.values)),
    }


def _record_counts(record: Record) -> dict[str, Any]:
    """Return what the passages came from, who read them, and what of them was dropped, defaulted or given up."""
    sources: set[str] = set()
    documents: set[str] = set()
    extractors: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    for entry in record.entries():
        sources.add(entry.passage.source)
        documents.add(str(entry.passage.metadata.get("document", entry.passage.id)))
        extractors[entry.extraction.extractor] += 1
        notes.update(entry.extraction.notes)
    failures = Counter(record.failures().values())
    return {
        "documents": len(documents),
        "sources": len(sources),
        "extractors": dict(sorted(extractors.items())),
        "notes": dict(sorted(notes.items())),
        "failures": dict(failures.most_common()),
        "skipped_files": sum(sum(one["reasons"].values()) for one in skipped_by_source(record).values()),
        "past_versions": record.versions.count(),
    }
