"""The vectors of a generation: a set of its own, whole or of what changed since that of an older one, on which it lies.

Facts and passages are rows of the generation's snapshot, which are in the order of their ids; so two rows of an older
generation that both stay are in the same order in the newer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable, check_range
from graph.construction.knowledge_graph import KnowledgeGraph, load
from graph.errors import BadInput, MaraError, StoreUnavailable, WorkspaceDamaged
from graph.metadata_filter import Condition
from graph.publish.metadata_columns import MetadataColumns
from graph.publish.vector_store import (
    COLLECTIONS,
    EMBEDDED,
    VECTORS_VARIABLE,
    Hits,
    Numbers,
    OpenSet,
    Place,
    Vector,
    Vectors,
    damaged,
    installed_stores,
    named_store,
    store_named,
)
from graph.schema import Passage
from graph.storage.place import collections_prefix
from graph.storage.record import Record
from graph.storage.workspace import Layer, Workspace

_LARGE = 2_000
"""Facts and passages from which on a small change lies over an older set; so many are written in half a second."""

_MOST_GONE = 500
"""Rows of the older set that may be gone: a search asks it for so many more at worst."""

_SHARE_OF_NEW = 100
_BLOCK = 4096
_SPARE = 20


class GenerationVectors:
    """The vectors of a generation's facts and passages, and the passages' metadata, by row. Safe across threads."""

    def __init__(
        self, where: str, layer: Layer, own: OpenSet, base: OpenSet | None, folder: Path, passages: Sequence[Passage]
    ) -> None:
        """Take what is open.

        Args:
            where: what results say of where the vectors lie.
            layer: what the generation's folder says of them.
            own: the generation's own set.
            base: the one that it lies on; None where it lies on none.
            folder: of the generation whose set holds all rows but those of a layer.
            passages: of the generation.
        """
        self.where = where
        self._own = own
        self._base = base
        self._folder = folder
        self._passages = passages
        self._gone = {name: np.asarray(layer.gone.get(name, ()), dtype=np.intp) for name in COLLECTIONS}
        self._new = {name: np.asarray(layer.new.get(name, ()), dtype=np.intp) for name in COLLECTIONS}

    def count(self, name: str) -> int:
        """Return how many facts or passages there are."""
        older = 0 if self._base is None else self._base.count(name) - len(self._gone[name])
        return older + self._own.count(name)

    def search(self, name: str, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return the rows and cosines of the ``k`` facts or passages nearest to a unit vector, nearest first.

        With ``within``, ascending rows, of those alone.
        """
        if k < 1 or (within is not None and not len(within)):
            return []
        if self._base is None:
            return self._own.search(name, vector, k, within)
        older, newer = self._split(name, within)
        hits = self._search_base(self._base, name, vector, k, older)
        if newer is None or len(newer):
            hits += [(self._new[name].item(at), cosine) for at, cosine in self._own.search(name, vector, k, newer)]
        return sorted(hits, key=lambda hit: -hit[1])[:k]

    def vectors(self, name: str, rows: Sequence[int]) -> Vector:
        """Return some vectors as a search reads them."""
        if self._base is None:
            return self._own.vectors(name, rows)
        asked = np.asarray(rows, dtype=np.intp)
        is_new = np.isin(asked, self._new[name])
        older = _moved(asked[~is_new], self._new[name], self._gone[name])
        newer = np.searchsorted(self._new[name], asked[is_new])
        parts = [(is_new, self._own, newer), (~is_new, self._base, older)]
        read = [(places, part.vectors(name, numbers.tolist())) for places, part, numbers in parts if len(numbers)]
        gathered = np.zeros((len(asked), read[0][1].shape[1] if read else 0), dtype=np.float32)
        for places, vectors in read:
            gathered[places] = vectors
        return gathered

    def select(self, conditions: Sequence[Condition]) -> NDArray[np.bool_]:
        """Tell of each passage whether it meets all conditions."""
        met = self._columns.meeting(conditions)
        if self._base is None:
            return met
        gone, new = self._gone["passages"], self._new["passages"]
        met[gone] = False
        selected = np.zeros(len(self._passages), dtype=bool)
        selected[_moved(np.flatnonzero(met), gone, new)] = True
        selected[new] = self._new_columns.meeting(conditions)
        return selected

    def close(self) -> None:
        """Let go of the sets."""
        self._own.close()
        if self._base is not None:
            self._base.close()

    @cached_property
    def _columns(self) -> MetadataColumns:
        """The metadata that lie in files. Raises WorkspaceDamaged where they cannot be read."""
        with _as_damage():
            return MetadataColumns.load(self._folder, (self._base or self._own).count("passages"))

    @cached_property
    def _new_columns(self) -> MetadataColumns:
        return MetadataColumns.of(self._passages[row] for row in self._new["passages"].tolist())

    def _split(self, name: str, within: Numbers | None) -> tuple[Numbers | None, Numbers | None]:
        """Return which numbers of the base and of the own set some rows are; None for all."""
        if within is None:
            return None, None if self._own.count(name) else np.zeros(0, dtype=np.intp)
        is_new = np.isin(within, self._new[name])
        older = _moved(within[~is_new], self._new[name], self._gone[name])
        return older, np.searchsorted(self._new[name], within[is_new])

    def _search_base(self, base: OpenSet, name: str, vector: Vector, k: int, within: Numbers | None) -> Hits:
        """Search the base for what is not gone: for some more at first, and for all that may be in the way last."""
        gone, new = self._gone[name], self._new[name]
        if within is not None:
            hits = base.search(name, vector, k, within) if len(within) else []
        else:
            size = base.count(name)
            for wanted in sorted({min(k + _SPARE, k + len(gone)), k + len(gone)}):
                nearest = base.search(name, vector, wanted) if size else []
                hidden = np.isin([number for number, _ in nearest], gone)
                hits = [hit for hit, is_hidden in zip(nearest, hidden.tolist(), strict=True) if not is_hidden]
                if len(hits) >= k:
                    break
        rows = _moved(np.asarray([number for number, _ in hits], dtype=np.intp), gone, new)
        return [(row, cosine) for row, (_, cosine) in zip(rows.tolist(), hits, strict=True)]


def _moved(rows: Numbers, left_out: Numbers, put_in: Numbers) -> Numbers:
    """Return where rows stand once others are left out, none of them among them, and then others are put in."""
    places = rows - np.searchsorted(left_out, rows)
    return np.asarray(places + np.searchsorted(put_in - np.arange(len(put_in)), places, side="right"), dtype=np.intp)


def open_vectors(
    workspace: Workspace, workspace_id: str, graph: KnowledgeGraph, *, untouched: bool = False
) -> GenerationVectors:
    """Open the vectors of a generation.

    Args:
        workspace: whose generation it is.
        workspace_id: the id of its record.
        graph: the generation's snapshot.
        untouched: let not a byte of the files change.

    Raises:
        WorkspaceDamaged: they cannot be read, or are not those of the snapshot.
        StoreUnavailable: a server does not answer.
        DependencyMissing: what keeps them is not installed.
    """
    folder = workspace.index_folder(graph.generation)
    layer = _layer_of(workspace, graph.generation)
    below = None if layer is None else _layer_of(workspace, layer.base)
    if layer is None or below is None or below.key != layer.base_key:
        raise WorkspaceDamaged("The search index is not there, or is of another version", "Run `mara index` again")
    store = store_named(layer.store)
    with ExitStack() as opened, _as_damage():
        place = _place(workspace, workspace_id, graph.generation, layer)
        own, base = store.open(place, untouched=untouched), None
        opened.callback(own.close)
        if layer.base != graph.generation:
            folder = workspace.index_folder(layer.base)
            base = store.open(_place(workspace, workspace_id, layer.base, below), untouched=untouched)
            opened.callback(base.close)
        vectors = GenerationVectors(store.address(place), layer, own, base, folder, graph.passages)
        for name, expected in (("facts", len(graph.facts)), ("passages", len(graph.passages))):
            stored = vectors.count(name)
            if stored != expected or (expected and not vectors.search(name, np.asarray(graph.passage_vectors[0]), 1)):
                raise WorkspaceDamaged(f"The search index holds {stored} {name} instead of {expected}")
            check_range(np.asarray(layer.new.get(name, ()), dtype=np.intp), expected)
        opened.pop_all()
    return vectors


@contextmanager
def _as_damage() -> Iterator[None]:
    """Take whatever damaged files make their reader raise for damage."""
    try:
        yield
    except MaraError:
        raise
    except Exception as fault:
        raise damaged(fault) from fault


def store_to_write(workspace: Workspace) -> str:
    """Return what the next generation's vectors go to: what `VECTORS_VARIABLE` says, else what holds the current one's.

    An index of the past lies beside its workspace alone: it comes and goes with the dates that are asked for.

    Raises:
        BadInput: the variable names no store that is installed.
    """
    name, _ = named_store()
    if name and name not in installed_stores():
        raise BadInput(
            f"{VECTORS_VARIABLE} is {name!r}", f"Set it to one of {', '.join(sorted(installed_stores()))}, or unset it"
        )
    layer = _layer_of(workspace, workspace.current())
    name = name or (EMBEDDED if layer is None else layer.store)
    return EMBEDDED if workspace.is_past and store_named(name).remote else name


def is_to_move(workspace: Workspace) -> bool:
    """Tell whether the current generation's vectors have to be written again: to another store, or in this format."""
    layer = _layer_of(workspace, workspace.current())
    return layer is None or store_to_write(workspace) != layer.store


def lies_on_older(workspace: Workspace) -> bool:
    """Tell whether the current generation lies on an older one."""
    layer = _layer_of(workspace, workspace.current())
    return layer is not None and layer.base != workspace.current()


def is_on_server(workspace: Workspace, generation: int) -> bool:
    """Tell whether the vectors of a generation are on a server."""
    layer = _layer_of(workspace, generation)
    return layer is not None and not workspace.is_past and store_named(layer.store).remote


def store_address(workspace: Workspace, workspace_id: str, generation: int) -> str:
    """Return what results say of where a generation's vectors lie.

    Raises:
        BadInput: the address of the server is not one, or is not set.
    """
    layer = _layer_of(workspace, generation) or Layer(generation, "")
    return store_named(layer.store).address(_place(workspace, workspace_id, generation, layer))


def write_vectors(workspace: Workspace, record: Record, folder: Path, *, from_scratch: bool) -> None:
    """Write the vectors of the snapshot in the folder of the record's generation: what changed, or all.

    With ``from_scratch``, nothing is taken over from an older generation.

    Raises:
        WorkspaceDamaged: the record lacks the vector of a fact.
    """
    store, key = store_to_write(workspace), uuid4().hex[:12]
    layer = Layer(record.generation, key, key, record.vectors_id, store)
    if not from_scratch:
        layer = _over_older(workspace, folder, layer)
    with _as_damage():
        snapshot = load(folder)
        if layer.base == record.generation:
            vectors = _all_vectors(record, snapshot, folder)
            MetadataColumns.of(snapshot.passages).save(folder)
        else:
            vectors = _some_vectors(record, snapshot, layer.new)
    store_named(store).write(_place(workspace, record.workspace_id, record.generation, layer), vectors)
    layer.save(folder)


def forget_unused(workspace: Workspace, workspace_id: str) -> None:
    """Let a server delete what no generation that is there lies on; where it does not answer, the next publication."""
    store = store_named(store_to_write(workspace))
    if store.remote and not workspace.is_past:
        layers = [Layer.load(folder) for folder in (workspace.root / "index").iterdir()]
        with suppress(StoreUnavailable):
            store.forget(collections_prefix(workspace.root, workspace_id), {layer.key for layer in layers if layer})


def _layer_of(workspace: Workspace, generation: int | None) -> Layer | None:
    return None if generation is None else Layer.load(workspace.index_folder(generation))


def _place(workspace: Workspace, workspace_id: str, generation: int, layer: Layer) -> Place:
    prefix = "" if workspace.is_past else collections_prefix(workspace.root, workspace_id)
    return Place(workspace.index_folder(generation), layer.store, layer.key, prefix)


def _over_older(workspace: Workspace, folder: Path, whole: Layer) -> Layer:
    """Return the layer over the set that the current generation lies on; ``whole`` where none is worth its while."""
    current = _layer_of(workspace, workspace.current())
    below = None if current is None else _layer_of(workspace, current.base)
    if current is None or below is None or current.base_key != below.key:
        return whole
    if (below.vectors, below.store) != (whole.vectors, whole.store):
        return whole
    try:
        older, newer = load(workspace.index_folder(current.base)), load(folder)
        size = len(older.facts) + len(older.passages)
        changes = _changes(older, newer, max(_MOST_GONE, size // _SHARE_OF_NEW)) if size >= _LARGE else None
    except (OSError, ValueError):
        return whole
    if changes is None or max(sum(map(len, part.values())) for part in changes) > size // 2:
        return whole
    return replace(whole, base=current.base, base_key=below.key, gone=changes[0], new=changes[1])


def _changes(
    older: KnowledgeGraph, newer: KnowledgeGraph, most_new: int
) -> tuple[dict[str, list[int]], dict[str, list[int]]] | None:
    """Return the rows that are gone and those that are new; None where they are too many.

    A fact is told by its id, a passage by all of it.
    """
    gone: dict[str, list[int]] = {name: [] for name in COLLECTIONS}
    new: dict[str, list[int]] = {name: [] for name in COLLECTIONS}
    tables = {"facts": (older.facts.table, newer.facts.table), "passages": (older.passages.table, newer.passages.table)}
    for name, (old_table, new_table) in tables.items():
        for old, now in _differences(old_table, new_table, by_id=name == "facts"):
            if old is not None:
                gone[name].append(old)
            if now is not None:
                new[name].append(now)
            if sum(map(len, gone.values())) > _MOST_GONE or sum(map(len, new.values())) > most_new:
                return None
    return gone, new


def _differences(older: TextTable, newer: TextTable, *, by_id: bool) -> Iterator[tuple[int | None, int | None]]:
    """Yield (row of the older table, row of the newer one) of what differs, by id; None for what one of them lacks."""
    old, new = 0, 0
    old_ids, new_ids = older.column(0), newer.column(0)
    while old < len(older) or new < len(newer):
        if length := _same_block(older, old, newer, new):
            old, new = old + length, new + length
            continue
        for _ in range(_BLOCK):
            if old == len(older) and new == len(newer):
                return
            a = old_ids[old] if old < len(older) else None
            b = new_ids[new] if new < len(newer) else None
            if a == b:
                if not by_id and _bytes_of(older, old, 1) != _bytes_of(newer, new, 1):
                    yield old, new
                old, new = old + 1, new + 1
            elif b is None or (a is not None and a < b):
                yield old, None
                old += 1
            else:
                yield None, new
                new += 1


def _same_block(older: TextTable, old: int, newer: TextTable, new: int) -> int:
    """Return how many rows from here on are the same to the last byte: a block of them, or none."""
    length = min(_BLOCK, len(older) - old, len(newer) - new)
    return length if length and _bytes_of(older, old, length) == _bytes_of(newer, new, length) else 0


def _bytes_of(table: TextTable, row: int, length: int) -> tuple[bytes, bytes]:
    bounds = table.bounds[row * table.width : (row + length) * table.width + 1]
    return bytes(table.text[bounds[0] : bounds[-1]]), np.diff(bounds).tobytes()


def _all_vectors(record: Record, snapshot: KnowledgeGraph, folder: Path) -> dict[str, Vectors]:
    facts, passages = snapshot.facts, snapshot.passage_vectors
    return {
        "facts": Vectors(len(facts), record.dimension, lambda: _fact_blocks(record, facts.ids)),
        "passages": Vectors(
            len(passages), record.dimension, lambda: _blocks_of(passages), folder / "passage_vectors.npy"
        ),
    }


def _some_vectors(record: Record, snapshot: KnowledgeGraph, rows: Mapping[str, Sequence[int]]) -> dict[str, Vectors]:
    ids = snapshot.facts.ids
    facts = record.fact_vectors([ids[row] for row in rows["facts"]])
    passages = snapshot.passage_vectors[np.asarray(rows["passages"], dtype=np.intp)]
    return {
        "facts": Vectors(len(facts), record.dimension, lambda: _blocks_of(facts)),
        "passages": Vectors(len(passages), record.dimension, lambda: _blocks_of(passages)),
    }


def _blocks_of(vectors: Vector) -> Iterator[Vector]:
    return (vectors[start : start + _BLOCK] for start in range(0, len(vectors), _BLOCK))


def _fact_blocks(record: Record, ids: Sequence[str]) -> Iterator[Vector]:
    """Yield the vectors of facts in the order of their ids; the record may hold facts that the graph leaves out."""
    row = 0
    for keys, vectors in record.all_fact_vectors():
        wanted = ids[row : row + len(keys)]
        mine = np.arange(len(keys)) if keys == list(wanted) else np.flatnonzero(np.isin(keys, wanted))
        yield vectors[mine]
        row += len(mine)
    if row < len(ids):
        raise WorkspaceDamaged(
            f"The record lacks the vectors of {len(ids) - row} facts", "Restore it from a backup or index again"
        )
