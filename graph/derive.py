"""Building what is derived from the record: the snapshot, the BM25 index and the vector search index."""

from __future__ import annotations

import gc
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.build import GraphBuilder
from graph.errors import WorkspaceDamaged
from graph.generations import ids_of_generations
from graph.knowledge_graph import KnowledgeGraph, load_header, save
from graph.record import Record
from graph.store import Vectors, VectorStore, passage_metadata
from graph.workspace import Workspace


def publish(workspace: Workspace, record: Record) -> KnowledgeGraph:
    """Derive the record's generation and make it current; the caller holds the writer's lock.

    The embedded search index starts as a copy of the last generation's, so that a small change writes little. A
    generation that was derived before, whole or in part, is derived again under the next number and without a copy:
    a reader may have its folder open, and Chroma keeps what it opened at a path for the length of the process.
    """
    server = bool(os.environ.get("MARA_CHROMA_URL"))
    again = workspace.current() == record.generation or workspace.index_folder(record.generation).exists()
    if again:
        record.advance_generation()
        forget_derivations()
    workspace.prune()
    try:
        with _derivation_of(record) as derivation:
            graph = derivation.derive(workspace, record, copy=not again and not server)
    except WorkspaceDamaged:
        # The copy may be damaged; what is derived can always be made from nothing.
        record.advance_generation()
        with _derivation_of(record) as derivation:
            graph = derivation.derive(workspace, record, copy=False)
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


class _Derivation:
    """What a writer keeps of a workspace between two publications, so that a small change costs little."""

    def __init__(self) -> None:
        self._builder = GraphBuilder()
        self._commit = ""
        self._vectors = ""
        self._store: VectorStore | None = None
        self._held: Mapping[str, Mapping[str, str]] = {"facts": {}, "passages": {}}

    def derive(self, workspace: Workspace, record: Record, *, copy: bool) -> KnowledgeGraph:
        """Write the files of the record's generation into its folder, and bring the search index up to it."""
        folder = workspace.index_folder(record.generation)
        folder.mkdir(parents=True)
        self.close()
        with ThreadPoolExecutor(1) as beside, _without_garbage_collection():
            copied = beside.submit(self._copy_last_index, workspace, record, folder) if copy else None
            graph = self._builder.build(record)
            save(graph, folder)
            self._builder.sparse().save(folder / "bm25")
            if copied is not None:
                copied.result()
        self._bring_up_to_date(workspace, record, graph)
        return graph

    def _bring_up_to_date(self, workspace: Workspace, record: Record, graph: KnowledgeGraph) -> None:
        """Write what changed into the search index; where that is not at the last commit, compare it as a whole."""
        wanted = {"facts": dict.fromkeys(graph.facts, ""), "passages": record.fingerprints()}
        read: dict[str, Callable[[Sequence[str]], Vectors]] = {
            "facts": lambda ids: Vectors(ids, _FactVectors(record, ids)),
            "passages": lambda ids: _passages_to_write(graph, wanted["passages"], ids),
        }
        model, commit = record.embedding_model, record.commit_id
        store = self._store or self._open_store(workspace, record)
        spared = ids_of_generations(workspace) if store.shared else {"facts": {}, "passages": {}}
        known = self._commit and self._vectors == record.vectors_id
        for name, held in self._held.items():
            changed = [key for key, content in wanted[name].items() if held.get(key) != content]
            gone = (held.keys() - wanted[name].keys()).difference(*spared[name].values())
            if not known or not store.apply(
                name, read[name](changed), sorted(gone), model, base=self._commit, commit=commit, spared=spared[name]
            ):
                store.synchronise(name, read[name]([*wanted[name]]), model, commit=commit, spared=spared[name])
        # What was spared goes when nobody reads it any more.
        surplus = {name: dict.fromkeys(chain.from_iterable(ids.values()), "") for name, ids in spared.items()}
        self._held = {name: surplus[name] | wanted[name] for name in wanted}
        self._commit, self._vectors = commit, record.vectors_id

    def _copy_last_index(self, workspace: Workspace, record: Record, folder: Path) -> None:
        """Start from the current generation's index, and load it, unless another model made it."""
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
            self._open_store(workspace, record).warm()

    def _open_store(self, workspace: Workspace, record: Record) -> VectorStore:
        """Open the generation's search index, which stays open: a reader in this process then finds it in memory."""
        self.close()
        self._store = open_store(workspace, record.workspace_id, record.generation)
        return self._store

    def close(self) -> None:
        """Let go of the search index."""
        if self._store is not None:
            self._store.close()
            self._store = None


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Make many objects that all stay: looking through them for garbage again and again takes half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_KEPT: OrderedDict[str, _Derivation] = OrderedDict()
_KEEPING = threading.Lock()
_WORKSPACES_KEPT = 1


def forget_derivations() -> None:
    """Let go of what is kept in memory of workspaces that this process wrote."""
    with _KEEPING:
        while _KEPT:
            _KEPT.popitem()[1].close()


@contextmanager
def _derivation_of(record: Record) -> Iterator[_Derivation]:
    """Lend what is kept of a workspace; nothing is kept of a derivation that failed."""
    with _KEEPING:
        derivation = _KEPT.pop(record.workspace_id, None) or _Derivation()
    try:
        yield derivation
    except BaseException:
        derivation.close()
        raise
    with _KEEPING:
        _KEPT[record.workspace_id] = derivation
        while len(_KEPT) > _WORKSPACES_KEPT:
            _KEPT.popitem(last=False)[1].close()


class _FactVectors:
    """Vectors of facts that are read from the record when they are asked for."""

    def __init__(self, record: Record, ids: Sequence[str]) -> None:
        self._record = record
        self._ids = ids

    def __getitem__(self, rows: list[int]) -> NDArray[np.float32]:
        return self._record.fact_vectors([self._ids[row] for row in rows])


def _passages_to_write(graph: KnowledgeGraph, fingerprints: Mapping[str, str], ids: Sequence[str]) -> Vectors:
    rows = [graph.passage_index[key] for key in ids]
    passages = [graph.passages[row] for row in rows]
    metadata = [passage_metadata(fingerprints[p.id], p.source, p.metadata) for p in passages]
    return Vectors(ids, np.asarray(graph.passage_vectors[rows]), metadata)
