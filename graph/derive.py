"""Building what is derived from the record: the snapshot, the BM25 index and the vector search index."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from graph.build import build_graph
from graph.errors import WorkspaceDamaged
from graph.knowledge_graph import KnowledgeGraph, load_header, save
from graph.record import Record
from graph.sparse import SparseIndex
from graph.store import Vectors, VectorStore, passage_metadata
from graph.workspace import Workspace


def publish(workspace: Workspace, record: Record) -> KnowledgeGraph:
    """Derive the record's generation and make it current; the caller holds the writer's lock.

    The embedded search index starts as a copy of the last generation's, so that a small change writes little. A
    generation that was derived before, whole or in part, is derived again under the next number and without a copy:
    a reader may have its folder open, and Chroma keeps what it opened at a path for the length of the process.
    """
    again = workspace.current() == record.generation or workspace.index_folder(record.generation).exists()
    if again:
        record.advance_generation()
    try:
        graph = _derive(workspace, record, copy=not again)
    except WorkspaceDamaged:
        # The copy may be damaged; what is derived can always be made from nothing.
        record.advance_generation()
        graph = _derive(workspace, record, copy=False)
    workspace.publish(record)
    return graph


def is_published(workspace: Workspace, record: Record) -> bool:
    """Tell whether the current generation was derived from the record as it stands."""
    if workspace.current() != record.generation:
        return False
    try:
        header = load_header(workspace.index_folder(record.generation))
    except (OSError, ValueError):
        return False
    return bool(header.get("commit_id") == record.commit_id)


def open_store(workspace: Workspace, workspace_id: str, generation: int) -> VectorStore:
    """Open the search index: the server that ``MARA_CHROMA_URL`` names, or the generation's embedded one."""
    url = os.environ.get("MARA_CHROMA_URL")
    if url:
        return VectorStore.server(url, workspace_id)
    return VectorStore.embedded(workspace.index_folder(generation) / "chroma")


def _derive(workspace: Workspace, record: Record, *, copy: bool) -> KnowledgeGraph:
    folder = workspace.index_folder(record.generation)
    folder.mkdir(parents=True)
    graph = build_graph(record)
    save(graph, folder)
    SparseIndex.build([passage.content for passage in graph.passages]).save(folder / "bm25")
    if copy and not os.environ.get("MARA_CHROMA_URL"):
        _copy_last_index(workspace, record, folder)
    _synchronise(workspace, record, graph)
    return graph


def _copy_last_index(workspace: Workspace, record: Record, folder: Path) -> None:
    """Start from the current generation's index, unless another model made it."""
    current = workspace.current()
    if current is None:
        return
    last = workspace.index_folder(current)
    try:
        same_model = load_header(last)["embedding_model"] == record.embedding_model
    except (OSError, ValueError, KeyError):
        return
    if same_model and (last / "chroma").is_dir():
        shutil.copytree(last / "chroma", folder / "chroma")


def _synchronise(workspace: Workspace, record: Record, graph: KnowledgeGraph) -> None:
    store = open_store(workspace, record.workspace_id, record.generation)
    try:
        if store.embedding_model() not in ("", record.embedding_model):
            store.drop()
        ids, _, vectors = record.facts()
        store.synchronise("facts", Vectors(ids, vectors), record.embedding_model)
        fingerprints = record.fingerprints()
        metadata = [passage_metadata(fingerprints[p.id], p.source, p.metadata) for p in graph.passages]
        passages = Vectors([p.id for p in graph.passages], np.asarray(graph.passage_vectors), metadata)
        store.synchronise("passages", passages, record.embedding_model)
    finally:
        store.close()
