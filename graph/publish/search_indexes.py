"""What fills and opens search indexes: a generation's own, in the layers that it lies in, or a server's."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import LazySequence
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.endpoints.chroma_server import server_address
from graph.endpoints.qdrant_server import qdrant_address
from graph.environment import environment
from graph.errors import BadInput
from graph.publish.chroma_files import wipe_unused
from graph.publish.mapped_store import MappedStore, changes_since, is_base, write_layer, write_whole
from graph.publish.vector_store import VectorStore
from graph.publish.vectors import Hits, LastAsked, Stamp, Vector, Vectors, passage_metadata, stored_fingerprint
from graph.storage.generation import GenerationHold, Layer, VectorStoreName
from graph.storage.place import collections_prefix
from graph.storage.record import Record
from graph.storage.workspace import Workspace

_COLLECTIONS = ("facts", "passages")
_LARGE_INDEX = 5_000
_MOST_IN_LAYER = 500
_SPARE = 20


SearchIndex: TypeAlias = "VectorStore | MappedStore | LayeredStore"
"""The vectors of a generation's facts and passages, and the passages' metadata, to be searched."""


class LayeredStore:
    """A layer over a base: what the base holds, less what is removed, and what the layer holds."""

    shared = False

    def __init__(self, base: SearchIndex, top: SearchIndex, layer: Layer) -> None:
        self.where: str = base.where
        self._base = base
        self._top = top
        self._layer = layer
        self._removed = {name: frozenset(ids) for name, ids in layer.removed.items()}
        self._asked = LastAsked[tuple[list[str], list[str]]]()
        self._own = cache(lambda name: frozenset(top.fingerprints(name)))

    def count(self, name: str) -> int:
        """Return how many records both hold."""
        return self._base.count(name) - len(self._removed_of(name)) + self._top.count(name)

    def stamp(self, name: str) -> Stamp | None:
        """Return the layer's stamp; None where the base is not the one that it was laid over."""
        base = self._base.stamp(name)
        return self._top.stamp(name) if base is not None and base.is_at(self._layer.commit) else None

    def fingerprints(self, name: str) -> dict[str, str | None]:
        """Return {id: fingerprint} of every record of both."""
        removed = self._removed_of(name)
        kept = {key: content for key, content in self._base.fingerprints(name).items() if key not in removed}
        return kept | self._top.fingerprints(name)

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return {id: vector} of those ids that either holds."""
        return self._base.vectors(name, self._below(name, ids)) | self._top.vectors(name, self._above(name, ids))

    def search(self, name: str, vector: Vector, k: int, within: Collection[str] | None = None) -> Hits:
        """Search both, and merge what they find; see `VectorStore.search`."""
        if k < 1:
            return []
        removed = self._removed_of(name)
        if within is None:
            found = self._search_base(name, vector, k, removed)
            found += self._top.search(name, vector, k)
        else:
            below, above = self._parts(name, within)
            found = self._base.search(name, vector, k, within=below)
            found += self._top.search(name, vector, k, within=above)
        return sorted(found, key=lambda hit: -hit[1])[:k]

    def _search_base(self, name: str, vector: Vector, k: int, removed: frozenset[str]) -> Hits:
        """Search the base for what is not removed: for some more at first, and for all that may be in the way last."""
        for wanted in sorted({min(k + _SPARE, k + len(removed)), k + len(removed)}):
            hits = self._base.search(name, vector, wanted)
            found = [hit for hit in hits if hit[0] not in removed]
            if len(found) >= k:
                break
        return found

    def select(self, where: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return the passages of both that meet a condition."""
        removed = self._removed_of("passages")
        kept = {key: known for key, known in self._base.select(where).items() if key not in removed}
        return kept | self._top.select(where)

    def close(self) -> None:
        """Let go of the files of both."""
        self._base.close()
        self._top.close()

    def _removed_of(self, name: str) -> frozenset[str]:
        return self._removed.get(name, frozenset())

    def _parts(self, name: str, within: Collection[str]) -> tuple[list[str], list[str]]:
        """Return which of some ids lie in the base and which in the layer; for the last few, the same lists again."""
        return self._asked.get(name, within, lambda: (self._below(name, within), self._above(name, within)))

    def _below(self, name: str, ids: Collection[str]) -> list[str]:
        hidden = self._removed_of(name) | self._own(name)
        return [key for key in ids if key not in hidden]

    def _above(self, name: str, ids: Collection[str]) -> list[str]:
        return [key for key in ids if key in self._own(name)]


def open_layers(
    folder: Path,
    base_folder: Path | None,
    layer: Layer | None,
    opening: Callable[[Path], SearchIndex] = VectorStore.embedded,
) -> SearchIndex:
    """Open the index in a folder, and the one that it lies on, if it lies on one.

    Raises:
        WorkspaceDamaged: one of them cannot be read.
    """
    if base_folder is None or layer is None:
        return opening(folder)
    base = opening(base_folder)
    try:
        return LayeredStore(base, opening(folder), layer)
    except BaseException:
        base.close()
        raise


def open_store(workspace: Workspace, workspace_id: str, generation: int) -> SearchIndex:
    """Open the search index that a generation was published with.

    Where that is Chroma: the server that ``MARA_CHROMA_URL`` names, or the generation's embedded one.
    """
    folder = workspace.index_folder(generation)
    layer = Layer.load(folder)
    base = workspace.index_folder(layer.base) if layer is not None and layer.base != generation else None
    if layer is not None and layer.store == "mapped":
        return open_layers(folder, base, layer, MappedStore.open)
    if server := _server_store(workspace, workspace_id, "chroma" if layer is None else layer.store):
        return server
    return open_layers(folder / "chroma", base and base / "chroma", layer)


def store_to_write(workspace: Workspace) -> VectorStoreName:
    """Return what the next generation's vectors go to: what ``MARA_VECTORS`` says, else what holds the current one's.

    What is derived of the past lies beside its workspace alone: it comes and goes with the dates that are asked for.

    Raises:
        BadInput: the variable names no store.
    """
    store = _wanted_store() or _store_of(workspace, workspace.current())
    return "chroma" if workspace.is_past and store == "qdrant" else store


def is_to_move(workspace: Workspace) -> bool:
    """Tell whether ``MARA_VECTORS`` says otherwise than what holds the current generation's vectors."""
    return store_to_write(workspace) != _store_of(workspace, workspace.current())


def _wanted_store() -> VectorStoreName | None:
    name = environment().mara_vectors or None
    if name is not None and name not in get_args(VectorStoreName):
        raise BadInput(
            f"MARA_VECTORS is {name!r}", f"Set it to one of {', '.join(get_args(VectorStoreName))}, or unset it"
        )
    return cast(VectorStoreName | None, name)


def _store_of(workspace: Workspace, generation: int | None) -> VectorStoreName:
    layer = _layer_of(workspace, generation)
    return "chroma" if layer is None else layer.store


def _layer_of(workspace: Workspace, generation: int | None) -> Layer | None:
    return None if generation is None else Layer.load(workspace.index_folder(generation))


def _server_of(workspace: Workspace) -> str:
    """Return the address of the Chroma server that holds a workspace's vectors; empty where it holds them itself.

    What is derived of the past lies beside its workspace alone: it comes and goes with the dates that are asked for.
    """
    return "" if workspace.is_past else environment().mara_chroma_url or ""


def is_on_server(workspace: Workspace, generation: int) -> bool:
    """Tell whether the vectors of a generation are on a server, in collections that all generations share."""
    store = _store_of(workspace, generation)
    return store == "qdrant" or (store == "chroma" and bool(_server_of(workspace)))


def store_name(workspace: Workspace, generation: int) -> str:
    """Return what holds a generation's vectors: ``embedded``, ``mapped``, or a server's address without its secrets.

    Raises:
        BadInput: the address of the server is not one, or is not set.
    """
    store = _store_of(workspace, generation)
    if store == "mapped":
        return "mapped"
    if store == "qdrant":
        return qdrant_address().url
    url = _server_of(workspace)
    return server_address(url).url if url else "embedded"


def drop_shared(workspace: Workspace, workspace_id: str) -> None:
    """Delete a workspace's collections on the server that the next generation's vectors go to, if they go to one."""
    if server := _server_store(workspace, workspace_id, store_to_write(workspace)):
        with closing(server):
            server.drop()


def _server_store(workspace: Workspace, workspace_id: str, store: VectorStoreName) -> VectorStore | None:
    """Connect to the server that holds, or is to hold, a workspace's vectors; None where it holds them itself."""
    if store == "qdrant":
        return VectorStore.qdrant(collections_prefix(workspace.root, workspace_id))
    if store == "chroma" and (url := _server_of(workspace)):
        return VectorStore.server(url, collections_prefix(workspace.root, workspace_id))
    return None


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


class SearchIndexWriter:
    """What a writer knows of the search index between two publications, so that a small change costs little."""

    def __init__(self) -> None:
        self._known: _Known | None = None

    def write(self, workspace: Workspace, wanted: Wanted, folder: Path, *, from_scratch: bool) -> None:
        """Bring the search index of a generation's folder, or the server's, up to what is wanted.

        With ``from_scratch``, nothing is taken over from an older generation.
        """
        record = wanted.record
        store = store_to_write(workspace)
        if store == "mapped":
            self._known = None
            _write_mapped(workspace, record, folder, from_scratch=from_scratch)
            return
        if server := _server_store(workspace, record.workspace_id, store):
            self._write_to_server(server, workspace, wanted)
            if store == "qdrant":
                Layer(record.generation, record.commit_id, record.vectors_id, store=store).save(folder)
            return
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

    def _write_embedded(self, workspace: Workspace, wanted: Wanted, folder: Path) -> None:
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

    def _write_to_server(self, store: VectorStore, workspace: Workspace, wanted: Wanted) -> None:
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


def _write_mapped(workspace: Workspace, record: Record, folder: Path, *, from_scratch: bool) -> None:
    """Write a layer of what changed since the last whole index, or a whole one; only the snapshot is read for it."""
    layer = None if from_scratch else _layer_of(workspace, workspace.current())
    if layer is not None and is_base(base := workspace.index_folder(layer.base), layer, record):
        changes, size = changes_since(base, folder)
        if changes is not None and size >= _LARGE_INDEX and len(changes) <= size // 2:
            write_layer(folder, record, changes.new)
            replace(layer, removed=changes.gone).save(folder)
            return
    write_whole(folder, record)
    Layer(record.generation, record.commit_id, record.vectors_id, store="mapped").save(folder)


def _fill(folder: Path, record: Record, wanted: Mapping[str, Vectors]) -> None:
    """Make the embedded collections of a generation's folder hold what they should."""
    with closing(VectorStore.embedded(folder / "chroma", to_write=True)) as store:
        for name, vectors in wanted.items():
            store.synchronise(name, vectors, record.embedding_model, commit=record.commit_id)
    wipe_unused(folder / "chroma")


class Wanted:
    """What the search index of a generation is to hold; read from its graph and record when it is asked for."""

    def __init__(self, record: Record, graph: KnowledgeGraph) -> None:
        self.record = record
        self._graph = graph

    @cached_property
    def contents(self) -> Contents:
        """By collection, {id: what tells whether it changed}."""
        passages = {key: stored_fingerprint(content) for key, content in self._fingerprints.items()}
        return {"facts": dict.fromkeys(self._graph.facts, ""), "passages": passages}

    def changes(self, name: str, held: Mapping[str, str]) -> tuple[list[str], set[str]]:
        """Return the ids that are to be written, and those that are to go, where so much is held already."""
        wanted = self.contents[name]
        return [key for key, content in wanted.items() if held.get(key) != content], held.keys() - wanted.keys()

    def read(self, name: str, ids: Sequence[str]) -> Vectors:
        """Return what is to be written under some ids."""
        if name == "facts":
            return Vectors(ids, _Rows(lambda asked: self.record.fact_vectors([ids[row] for row in asked])))
        rows = np.array([self._graph.passage_index[key] for key in ids], dtype=np.int64)
        metadata = LazySequence(len(ids), lambda place: self._metadata(rows.item(place)))
        return Vectors(ids, _Rows(lambda asked: np.asarray(self._graph.passage_vectors[rows[asked]])), metadata)

    def _metadata(self, row: int) -> Mapping[str, Any]:
        passage = self._graph.passages[row]
        return passage_metadata(self._fingerprints[passage.id], passage.source, passage.metadata)

    @cached_property
    def _fingerprints(self) -> Mapping[str, str]:
        return dict(self.record.stated_in_order())


class _Rows:
    """Rows of vectors that are read when they are asked for: from the record, or from a file that is mapped."""

    def __init__(self, read: Callable[[list[int]], NDArray[np.float32]]) -> None:
        self._read = read

    def __getitem__(self, rows: list[int]) -> NDArray[np.float32]:
        return self._read(rows)


def _read_last(workspace: Workspace, record: Record) -> _Known | None:
    """Return what the index that the current generation lies on holds, unless it is of no use any more."""
    layer = _layer_of(workspace, workspace.current())
    if layer is None or layer.vectors != record.vectors_id:
        return None
    folder = workspace.index_folder(layer.base) / "chroma"
    if not folder.is_dir():
        return None
    with closing(VectorStore.embedded(folder, to_write=True)) as store:
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
