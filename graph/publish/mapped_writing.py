"""Writing the mapped search index of a generation: from its snapshot and the record, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable
from graph.construction.knowledge_graph import SnapshotRows, load_rows
from graph.errors import WorkspaceDamaged
from graph.publish.mapped_store import COLLECTIONS, FACT_VECTORS, FOLDER, ROWS, Contents, damaged, ids_of
from graph.publish.metadata_columns import MetadataColumns
from graph.publish.near_vectors import exact_dtype, graphs_to_write
from graph.storage.generation import Layer
from graph.storage.record import Record

_BLOCK = 4096
_THREADS = 2
_MOST_GONE = 500
"""Ids that a layer may hide: a search asks the index below for so many more at worst."""
_SHARE_OF_NEW = 100


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed between two snapshots.

    Attributes:
        new: by collection, the rows of the newer one that the older lacks, or has otherwise.
        gone: by collection, the ids of the older one that the newer lacks, or has otherwise.
    """

    new: dict[str, list[int]]
    gone: dict[str, list[str]]

    def __len__(self) -> int:
        return sum(map(len, self.new.values())) + sum(map(len, self.gone.values()))


def changes_since(older: Path, newer: Path) -> tuple[Changes | None, int]:
    """Compare the snapshots in two generations' folders, and say how many facts and passages the older one has.

    A fact is told by its id; a passage by all of it. The changes are None where they are too many for a layer: more
    than 500 are gone or, of a large index, a hundredth is new.

    Raises:
        WorkspaceDamaged: one of them cannot be read.
    """
    try:
        old, new = load_rows(older), load_rows(newer)
        size = len(old.facts) + len(old.passages)
        return _changes(old, new, max(_MOST_GONE, size // _SHARE_OF_NEW)), size
    except (OSError, ValueError) as fault:
        raise damaged(fault) from fault


def _changes(older: SnapshotRows, newer: SnapshotRows, most_new: int) -> Changes | None:
    changes = Changes({name: [] for name in COLLECTIONS}, {name: [] for name in COLLECTIONS})
    for name, old_table, new_table, is_same in (
        ("facts", older.facts, newer.facts, _has_same_id),
        ("passages", older.passages, newer.passages, _is_same_row),
    ):
        for old, new in _differences(old_table, new_table, is_same):
            if old is not None:
                changes.gone[name].append(old_table.row(old)[0])
            if new is not None:
                changes.new[name].append(new)
            if sum(map(len, changes.gone.values())) > _MOST_GONE or sum(map(len, changes.new.values())) > most_new:
                return None
    return changes


def write_whole(generation: Path, record: Record) -> None:
    """Write the search index of all rows of the snapshot in a generation's folder.

    Raises:
        WorkspaceDamaged: the record lacks the vector of a fact.
        DependencyMissing: faiss is not installed, and there are so many vectors that it is needed.
    """
    folder, snapshot = generation / FOLDER, load_rows(generation)
    folder.mkdir()
    facts = _write_fact_vectors(folder / FACT_VECTORS, snapshot.facts, record)
    graphs = [
        *graphs_to_write(facts, folder, "facts"),
        *graphs_to_write(snapshot.passage_vectors, folder, "passages"),
    ]
    with ThreadPoolExecutor(max_workers=_THREADS) as pool:
        for job in [pool.submit(write) for write in graphs]:
            job.result()
    MetadataColumns.of(map(snapshot.passage, range(len(snapshot.passages)))).save(folder)
    Contents(record.embedding_model, record.commit_id, whole=True).save(folder)


def write_layer(generation: Path, record: Record, new: Mapping[str, list[int]]) -> None:
    """Write the search index of some rows of the snapshot in a generation's folder."""
    folder, snapshot = generation / FOLDER, load_rows(generation)
    folder.mkdir()
    for name in COLLECTIONS:
        np.save(folder / f"{name}{ROWS}", np.array(new[name], dtype=np.int32))
    ids = ids_of(snapshot, "facts")
    vectors = record.fact_vectors([ids[row] for row in new["facts"]])
    np.save(folder / FACT_VECTORS, vectors.astype(exact_dtype(len(vectors))))
    Contents(record.embedding_model, record.commit_id, whole=False).save(folder)


def is_base(generation: Path, layer: Layer, record: Record) -> bool:
    """Tell whether a layer can lie on the whole mapped index in an older generation's folder."""
    if layer.store != "mapped" or layer.vectors != record.vectors_id:
        return False
    try:
        contents = Contents.load(generation / FOLDER)
    except (OSError, ValueError):
        return False
    return contents == Contents(record.embedding_model, layer.commit, whole=True)


def _write_fact_vectors(path: Path, facts: TextTable, record: Record) -> NDArray[np.floating]:
    """Write the vectors of all facts of a snapshot in its order, and return them as they are mapped."""
    shape = len(facts), record.dimension
    written = np.lib.format.open_memmap(path, mode="w+", dtype=exact_dtype(len(facts)), shape=shape)
    row, ids = 0, facts.column(0)
    for keys, vectors in record.all_fact_vectors():
        # The record may hold facts that the graph leaves out.
        wanted = ids[row : row + len(keys)]
        mine = np.arange(len(keys)) if keys == list(wanted) else np.flatnonzero(np.isin(keys, wanted))
        written[row : row + len(mine)] = vectors[mine]
        row += len(mine)
    written.flush()
    if row < len(facts):
        raise WorkspaceDamaged(
            f"The record lacks the vectors of {len(facts) - row} facts", "Restore it from a backup or index again"
        )
    return written


def _differences(
    older: TextTable, newer: TextTable, is_same: Callable[[TextTable, int, TextTable, int], bool]
) -> Iterator[tuple[int | None, int | None]]:
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
                if not is_same(older, old, newer, new):
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


def _has_same_id(older: TextTable, old: int, newer: TextTable, new: int) -> bool:
    return True


def _is_same_row(older: TextTable, old: int, newer: TextTable, new: int) -> bool:
    return _bytes_of(older, old, 1) == _bytes_of(newer, new, 1)
