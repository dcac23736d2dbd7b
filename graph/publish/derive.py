"""Building what is derived from the record: the snapshot, the BM25 index and the vector search index."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.builder import GraphBuilder
from graph.construction.knowledge_graph import KnowledgeGraph, load, load_header, save
from graph.errors import WorkspaceDamaged
from graph.out_of_resources import shortage_behind
from graph.publish.layered_store import SearchIndex, open_layers
from graph.publish.vector_store import Vectors, VectorStore, passage_metadata, stored_fingerprint, wipe_unused
from graph.storage.generation import GenerationHold, Layer
from graph.storage.record import Record
from graph.storage.synonym_pairs import settle_synonyms
from graph.storage.workspace import Workspace

_COLLECTIONS = ("facts", "passages")
_LARGE_INDEX = 5_000
_MOST_IN_LAYER = 500


def publish(workspace: Workspace, record: Record) -> int:
    """Derive the record's generation, make it current and return its number; the caller holds the writer's lock.

    The embedded search index lies over the last whole one, or starts as a copy of it. A generation that was derived
    before, whole or in part, is derived again under the next number and from nothing but the record: a reader may have
    its folder open, and Chroma keeps what it opened at a path for the length of the process.
    """
    again = workspace.current() == record.generation or workspace.index_folder(record.generation).exists()
    if again:
        record.advance_generation()
        forget_derivations()
    settle_synonyms(record)
    workspace.prune()
    try:
        _derive(workspace, record, from_scratch=again)
    except WorkspaceDamaged:
        # The copy may be damaged; what is derived can always be made from nothing.
        record.advance_generation()
        _derive(workspace, record, from_scratch=True)
    workspace.publish(record)
    _give_memory_back()
    return record.generation


def is_published(workspace: Workspace, record: Record) -> bool:
    """Tell whether the current generation was derived from the record as it stands."""
    if workspace.current() != record.generation:
        return False
    try:
        header = load_header(workspace.index_folder(record.generation))
    except (OSError, ValueError) as fault:
        if shortage := shortage_behind(fault):
            raise shortage from fault
        return False
    return bool(header.get("commit_id") == record.commit_id)


def is_behind(workspace: Workspace, record: Record) -> bool:
    """Tell whether something was committed that readers do not see yet: a command was interrupted, or is at work."""
    published = workspace.current()
    return published != record.generation if record.count_passages() else published is not None


def publish_committed(workspace: Workspace) -> int | None:
    """Give readers what a command committed before it was interrupted.

    Returns:
        The record's generation; None where nothing was left to do.

    Raises:
        WorkspaceLocked: a writer is at work, who publishes by himself.
        WorkspaceDamaged: what was committed cannot be derived.
    """
    with workspace.writing() as lease, workspace.open_record(lease) as record:
        if not is_behind(workspace, record):
            return None
        if record.count_passages():
            publish(workspace, record)
        else:
            workspace.withdraw(record)
        return record.generation


def open_store(workspace: Workspace, workspace_id: str, generation: int) -> SearchIndex:
    """Open the search index: the server that ``MARA_CHROMA_URL`` names, or the generation's embedded one."""
    if url := _server_of(workspace):
        return VectorStore.server(url, workspace_id)
    folder = workspace.index_folder(generation)
    layer = Layer.load(folder)
    base = workspace.index_folder(layer.base) if layer is not None and layer.base != generation else None
    return open_layers(folder / "chroma", base and base / "chroma", layer)


def _server_of(workspace: Workspace) -> str:
    """Return the address of the server that holds a workspace's vectors; empty where it holds them itself.

    What is derived of the past lies beside its workspace alone: it comes and goes with the dates that are asked for.
    """
    return "" if workspace.is_past else os.environ.get("MARA_CHROMA_URL") or ""


def ids_of_generations(workspace: Workspace) -> dict[str, Mapping[str, Collection[str]]]:
    """Return {"facts" and "passages": {commit: ids}} of the current generation and of all that a reader holds.

    A writer is to spare them in a server's collections. The caller holds the writer's lock. A generation that cannot
    be read has no reader to spare it for.
    """
    facts: dict[str, Collection[str]] = {}
    passages: dict[str, Collection[str]] = {}
    for folder in (workspace.root / "index").iterdir():
        if folder.name != str(workspace.current()) and not GenerationHold.is_held(folder):
            continue
        try:
            graph = load(folder)
        except (OSError, ValueError):
            continue
        facts[graph.commit_id] = tuple(graph.facts)
        passages[graph.commit_id] = tuple(graph.passage_index)
    return {"facts": facts, "passages": passages}


Contents = Mapping[str, Mapping[str, str]]
"""By collection: {id: what tells whether it changed}."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The known content of a search index: an embedded one that a layer can lie on, or a server's."""

    layer: Layer
    held: Contents


class _Derivation:
    """The state that a writer keeps between two publications, so that a small change costs little."""

    def __init__(self) -> None:
        self._builder = GraphBuilder()
        self._known: _Known | None = None

    def derive(self, workspace: Workspace, record: Record, *, from_scratch: bool) -> None:
        """Write the files of the record's generation into its folder, and bring the search index up to it.

        With ``from_scratch``, nothing is taken over from an older generation.
        """
        folder = workspace.index_folder(record.generation)
        folder.mkdir(parents=True)
        with _without_garbage_collection():
            self._builder.update(record)
            self._builder.sparse().save(folder / "bm25")
            graph = self._builder.graph(record)
            save(graph, folder)
        wanted = _Wanted(record, graph, self._builder.fingerprints())
        if url := _server_of(workspace):
            self._write_to_server(VectorStore.server(url, record.workspace_id), workspace, wanted)
        else:
            if from_scratch or not self._is_usable(workspace, record):
                self._known = None if from_scratch else _read_last(workspace, record)
            self._write_embedded(workspace, wanted, folder)

    def _is_usable(self, workspace: Workspace, record: Record) -> bool:
        """Tell whether what is known is of the index that lies there: the workspace may have been put back since."""
        known = self._known
        if known is None or known.layer.vectors != record.vectors_id:
            return False
        folder = workspace.index_folder(known.layer.base)
        there = Layer.load(folder)
        return there is not None and there.commit == known.layer.commit and (folder / "chroma").is_dir()

    def _write_embedded(self, workspace: Workspace, wanted: _Wanted, folder: Path) -> None:
        """Lay what changed over the index that is known, or make a whole one, from a copy of that if there is one."""
        record, known = wanted.record, self._known
        changes = {name: wanted.changes(name, known.held[name]) for name in _COLLECTIONS} if known else {}
        if known and _is_small(changes, known.held):
            _fill(folder, record, {name: wanted.read(name, changed) for name, (changed, _) in changes.items()})
            hidden = {
                name: sorted({*changed, *gone} & known.held[name].keys()) for name, (changed, gone) in changes.items()
            }
            replace(known.layer, removed=hidden).save(folder)
            return
        if known:
            shutil.copytree(workspace.index_folder(known.layer.base) / "chroma", folder / "chroma")
        _fill(folder, record, {name: wanted.read(name, [*wanted.contents[name]]) for name in _COLLECTIONS})
        layer = Layer(record.generation, record.commit_id, record.vectors_id)
        layer.save(folder)
        self._known = _Known(layer, wanted.contents)

    def _write_to_server(self, store: VectorStore, workspace: Workspace, wanted: _Wanted) -> None:
        """Write what changed; where the server is not at the last commit, compare it as a whole."""
        record, known = wanted.record, self._known
        spared = ids_of_generations(workspace)
        self._known = None
        model, commit = record.embedding_model, record.commit_id
        for name in _COLLECTIONS:
            if known is not None and known.layer.vectors == record.vectors_id:
                changed, gone = wanted.changes(name, known.held[name])
                left = gone.difference(*spared[name].values())
                base = known.layer.commit
                new = wanted.read(name, changed)
                if store.apply(name, new, sorted(left), model, base=base, commit=commit, spared=spared[name]):
                    continue
            everything = wanted.read(name, [*wanted.contents[name]])
            store.synchronise(name, everything, model, commit=commit, spared=spared[name])
        store.close()
        # What was spared goes when nobody reads it any more.
        surplus = {name: dict.fromkeys(chain.from_iterable(ids.values()), "") for name, ids in spared.items()}
        held = {name: {**surplus[name], **wanted.contents[name]} for name in _COLLECTIONS}
        self._known = _Known(Layer(record.generation, commit, record.vectors_id), held)


def _fill(folder: Path, record: Record, wanted: Mapping[str, Vectors]) -> None:
    """Make the embedded collections of a generation's folder hold what they should."""
    with closing(VectorStore.embedded(folder / "chroma")) as store:
        for name, vectors in wanted.items():
            store.synchronise(name, vectors, record.embedding_model, commit=record.commit_id)
    wipe_unused(folder / "chroma")


class _Wanted:
    """What the search index of a generation is to hold."""

    def __init__(self, record: Record, graph: KnowledgeGraph, fingerprints: Mapping[str, str]) -> None:
        self.record = record
        self._graph = graph
        self._fingerprints = fingerprints
        passages = {key: stored_fingerprint(content) for key, content in fingerprints.items()}
        self.contents: Contents = {"facts": dict.fromkeys(graph.facts, ""), "passages": passages}

    def changes(self, name: str, held: Mapping[str, str]) -> tuple[list[str], set[str]]:
        """Return the ids that are to be written, and those that are to go, where so much is held already."""
        wanted = self.contents[name]
        return [key for key, content in wanted.items() if held.get(key) != content], held.keys() - wanted.keys()

    def read(self, name: str, ids: Sequence[str]) -> Vectors:
        """Return what is to be written under some ids."""
        if name == "facts":
            return Vectors(ids, _FactVectors(self.record, ids))
        rows = [self._graph.passage_index[key] for key in ids]
        passages = [self._graph.passages[row] for row in rows]
        metadata = [passage_metadata(self._fingerprints[p.id], p.source, p.metadata) for p in passages]
        return Vectors(ids, np.asarray(self._graph.passage_vectors[rows]), metadata)


def _read_last(workspace: Workspace, record: Record) -> _Known | None:
    """Return what the index that the current generation lies on holds, unless it is of no use any more."""
    current = workspace.current()
    layer = Layer.load(workspace.index_folder(current)) if current is not None else None
    if layer is None or layer.vectors != record.vectors_id:
        return None
    folder = workspace.index_folder(layer.base) / "chroma"
    if not folder.is_dir():
        return None
    with closing(VectorStore.embedded(folder)) as store:
        stamps = [store.stamp(name) for name in _COLLECTIONS]
        if not all(s and s.is_at(layer.commit) and s.embedding_model == record.embedding_model for s in stamps):
            return None
        held = {name: {key: text or "" for key, text in store.fingerprints(name).items()} for name in _COLLECTIONS}
        return _Known(replace(layer, removed={}), held)


def _is_small(changes: Mapping[str, tuple[Sequence[str], Collection[str]]], held: Contents) -> bool:
    """Tell whether a layer is worth its while: the index is large, and little of it changed."""
    size = sum(map(len, held.values()))
    changed = sum(len(new) + len(gone) for new, gone in changes.values())
    return size >= _LARGE_INDEX and changed <= min(_MOST_IN_LAYER, size // 2)


def _give_memory_back() -> None:
    """Let the allocator return what was freed: each run has threads of its own, and glibc keeps what they leave."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


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


_KEPT: dict[str, _Derivation] = {}
"""What is kept of the workspace that this process published last, by its id."""


def forget_derivations() -> None:
    """Let go of what is kept in memory of workspaces that this process wrote."""
    _KEPT.clear()


def _derive(workspace: Workspace, record: Record, *, from_scratch: bool) -> None:
    """Derive with what is kept of a workspace; nothing is kept of a derivation that failed, or of the past."""
    if workspace.is_past:
        _Derivation().derive(workspace, record, from_scratch=from_scratch)
        return
    derivation = _KEPT.pop(record.workspace_id, None) or _Derivation()
    derivation.derive(workspace, record, from_scratch=from_scratch)
    _KEPT.clear()
    _KEPT[record.workspace_id] = derivation


class _FactVectors:
    """Vectors of facts that are read from the record when they are asked for."""

    def __init__(self, record: Record, ids: Sequence[str]) -> None:
        self._record = record
        self._ids = ids

    def __getitem__(self, rows: list[int]) -> NDArray[np.float32]:
        return self._record.fact_vectors([self._ids[row] for row in rows])
