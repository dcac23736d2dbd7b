"""Statistics of a workspace: its published generation and its record in numbers, and the edges of one entity."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.edge_weights import PASSAGE_CLASSES
from graph.construction.edges import Edges
from graph.construction.knowledge_graph import SNAPSHOT_VERSION, KnowledgeGraph, load
from graph.embedding.embeddings import configured_embedder
from graph.errors import BadInput, MaraError, WorkspaceDamaged
from graph.explain.flows import edge_evidence, edges_between, find_entity, find_node, node_shown
from graph.publish.derive import publish
from graph.publish.generation_vectors import store_address
from graph.relations import PassageClasses, PassageLink
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord, has_relationships
from graph.relationships.upkeep import n_pruned
from graph.schema import PASSAGE_RELATIONS, entity_id
from graph.sources.skipped import skipped_by_source
from graph.storage.lock import GenerationHold
from graph.storage.place import place_name
from graph.storage.record import FORMAT_VERSION, Record
from graph.storage.workspace import REPLY_CACHE, Workspace
from workflows.indexing_run.report import UNTYPED

_LARGEST_SOURCES = 5

_FILES: Mapping[str, str] = {
    "record.sqlite": "record",
    REPLY_CACHE: "replies",
    RELATIONSHIPS_FILE: "relationships",
}


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
            "models": {
                "embedding": graph.embedding_model,
                "configured": _configured_model(),
                "store": store_address(Workspace(root), record.workspace_id, graph.generation),
            },
            "dimension": int(graph.passage_vectors.shape[1]),
            "formats": {"record": FORMAT_VERSION, "snapshot": SNAPSHOT_VERSION},
            "relationships": _relationship_counts(root),
            "bytes": _bytes_by_part(Workspace(root), graph.generation),
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
            return {**relationships.counts(), "pruned": n_pruned(relationships)}
    except MaraError as fault:
        return {"problem": f"{fault.message}. {fault.hint}"}


def _graph_counts(graph: KnowledgeGraph) -> dict[str, Any]:
    edges = graph.edges
    degree = np.bincount(np.concatenate([edges.source, edges.target]), minlength=graph.n_nodes)
    connected = degree > 0
    with_facts = np.unique(graph.facts.passages.values)
    return {
        "passages": len(graph.passages),
        "entities": graph.n_entities,
        "facts": len(graph.facts),
        "edges": len(edges),
        **_edge_counts(graph),
        "degree": _summary(degree[connected]),
        "isolated": {
            "entities": int((~connected[: graph.n_entities]).sum()),
            "passages": int((~connected[graph.n_entities :]).sum()),
        },
        "components": _components(edges, connected),
        **({"own_types": _own_counts(graph)} if graph.own else {}),
        "passages_without_facts": len(graph.passages) - len(with_facts),
    }


def _edge_counts(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return edges by type, passage edges by link, and the two crossed: the histogram of the passage classes."""
    counted = np.bincount(graph.edges.kind, minlength=len(graph.kinds)).tolist()
    counts = dict(zip(graph.kinds, counted, strict=True))
    by_type: Counter[str] = Counter()
    by_link: Counter[str] = Counter()
    classes = {relation.value: {link.value: 0 for link in PassageLink} for relation in PASSAGE_RELATIONS}
    for kind, count in counts.items():
        by_type[kind.relation.value] += count
        if kind.link is not None:
            by_link[kind.link.value] += count
            classes[kind.relation.value][kind.link.value] += count
    return {"edges_by_type": dict(by_type), "passage_edges_by_link": dict(by_link), "passage_classes": classes}


def _own_counts(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return the facts of each own relation type, and the entities of each own entity type."""
    own, built_in = graph.own, len(graph.facts.types) - len(graph.own.relations)
    facts = np.bincount(graph.facts.relations, minlength=len(graph.facts.types))[built_in:].tolist()
    entities = np.bincount(graph.entity_types, minlength=len(own.entities) + 1)[1:].tolist()
    return {
        "relations": {str(name): count for name, count in zip(own.relation_types, facts, strict=True)},
        "entities": dict(zip(own.entity_types, entities, strict=True)),
    }


def entity_types(root: Path) -> dict[str, str]:
    """Return {entity id: its own type} of the entities of a workspace that have one. Raises as `workspace_stats`."""
    with published_graph(root) as (_, graph):
        typed = np.flatnonzero(graph.entity_types).tolist()
        types = {entity_id(graph.entity_names[node]): graph.entity_type(node) for node in typed}
        return {key: entity_type for key, entity_type in types.items() if entity_type is not None}


def entity_type(root: Path, name: str) -> str | None:
    """Return the own type of the entity of that name or id, in any spelling; None where it has none.

    Raises:
        BadInput: the workspace knows no such entity.
        WorkspaceMissing: there is no workspace, or it is empty.
        WorkspaceDamaged: it cannot be read.
    """
    with published_graph(root) as (_, graph):
        return graph.entity_type(find_entity(graph, name))


def _summary(degree: NDArray[np.intp]) -> dict[str, float]:
    """Return how many edges the nodes have that have any."""
    degree = degree if len(degree) else np.zeros(1, dtype=np.intp)
    return {
        "min": int(degree.min()),
        "median": float(np.median(degree)),
        "mean": round(float(degree.mean()), 2),
        "p95": round(float(np.quantile(degree, 0.95)), 2),
        "max": int(degree.max()),
    }


def _components(edges: Edges, connected: NDArray[np.bool_]) -> dict[str, float]:
    """Return how many connected components of two nodes or more there are, and the largest one's share of all nodes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(edges), dtype=np.int8)
    shape = (len(connected), len(connected))
    _, labels = connected_components(coo_array((ones, (edges.source, edges.target)), shape=shape), directed=False)
    sizes = np.bincount(labels[connected])
    return {
        "count": int((sizes > 0).sum()),
        "largest_share": round(float(sizes.max(initial=0)) / max(1, len(connected)), 4),
    }


def _record_counts(record: Record) -> dict[str, Any]:
    """Return what the passages came from, who read them, and what of them was dropped, defaulted or given up."""
    passages_of: Counter[str] = Counter()
    extractors: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    documents: set[str] = set()
    long_passages = 0
    for entry in record.entries():
        passages_of[entry.passage.source] += 1
        documents.add(str(entry.passage.metadata.get("document", entry.passage.id)))
        extractors[entry.extraction.extractor] += 1
        notes.update(entry.extraction.notes)
        long_passages += entry.windows > 1
    failures = Counter(record.failures().values())
    return {
        "documents": len(documents),
        "sources": len(passages_of),
        "largest_sources": dict(passages_of.most_common(_LARGEST_SOURCES)),
        "extractors": dict(sorted(extractors.items())),
        "untyped_facts": sum(notes[name] for name in UNTYPED),
        "notes": dict(sorted(notes.items())),
        "failed_passages": failures.total(),
        "failures": dict(failures.most_common()),
        "long_passages": long_passages,
        "skipped_files": sum(sum(one["reasons"].values()) for one in skipped_by_source(record).values()),
        "past_versions": record.versions.count(),
    }


def _configured_model() -> str:
    """Return the id of the embedding model that the environment names; why there is none, where it names none."""
    try:
        return configured_embedder().model_id
    except MaraError as fault:
        return f"none ({fault.message})"


def _bytes_by_part(workspace: Workspace, generation: int) -> dict[str, int]:
    """Return what takes up the disk, but for what SQLite keeps there while a file is open.

    A file that goes while it is counted counts as nothing.
    """
    current = workspace.index_folder(generation)
    sizes: Counter[str] = Counter(
        dict.fromkeys(("record", "snapshot", "words", "vectors", "older generations", "past", "replies", "other"), 0)
    )
    for path in workspace.root.rglob("*"):
        with suppress(OSError):
            if path.is_file() and not path.name.endswith("-shm"):
                sizes[_part(path, workspace.root, current)] += path.stat().st_size
    return {"all": sizes.total(), **sizes}


def _part(path: Path, root: Path, current: Path) -> str:
    """Return which part of a workspace a file belongs to."""
    if path.is_relative_to(current):
        return {"bm25": "words", "chroma": "vectors", "vectors": "vectors"}.get(
            path.relative_to(current).parts[0], "snapshot"
        )
    if path.is_relative_to(root / "index"):
        return "older generations"
    if path.is_relative_to(Workspace(root).past):
        return "past"
    return _FILES.get(path.name.removesuffix("-wal"), "other")
