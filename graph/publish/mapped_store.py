"""A search index that is files of its generation: vectors and graphs of neighbours, mapped rather than loaded.

Its records are rows of the generation's snapshot: the ids and the metadata are read there, and so are the passages'
vectors. It is written from the snapshot and the record, a block at a time; a small change as a layer of the rows that
are new, see `search_indexes`. Metadata lie by column: a condition is held against each value once, rather than each
passage.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import TextTable, check_range, load_array
from graph.construction.knowledge_graph import SnapshotRows, load_rows
from graph.errors import WorkspaceDamaged
from graph.metadata_filter import EXCLUDING, askable_metadata, compares
from graph.publish.near_vectors import NearVectors, exact_dtype, graphs_to_write
from graph.publish.vectors import Hits, LastAsked, Stamp, Vector, damaged
from graph.schema import MetadataValue, Passage
from graph.storage.generation import Layer
from graph.storage.record import Record

_NAME = "metadata"


@dataclass(frozen=True)
class MetadataColumns:
    """What conditions may ask of some passages: the values that each key has, and the passages that have each.

    Attributes:
        count: how many passages there are.
        values: (key, value) for each that stands anywhere, by key.
        starts: shape (len(values) + 1,): value i stands in rows[starts[i]:starts[i + 1]].
        rows: the places of passages, ascending for each value.
    """

    count: int
    values: TextTable
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    @staticmethod
    def of(passages: Iterable[Passage]) -> MetadataColumns:
        """Return the columns of some passages, in their order."""
        codes: dict[tuple[str, str], int] = {}
        held, holders, count = array("i"), array("i"), 0
        for row, passage in enumerate(passages):
            for key, value in askable_metadata({**passage.metadata, "source": passage.source}).items():
                held.append(codes.setdefault((key, json.dumps(value)), len(codes)))
                holders.append(row)
            count = row + 1
        ordered = sorted(codes)
        place = np.zeros(len(codes), dtype=np.int32)
        place[[codes[value] for value in ordered]] = np.arange(len(codes), dtype=np.int32)
        column = place[np.asarray(held, dtype=np.int32)] if held else np.zeros(0, dtype=np.int32)
        order = np.argsort(column, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=len(codes)))]).astype(np.int64)
        return MetadataColumns(count, TextTable.of(ordered, 2), starts, np.asarray(holders, dtype=np.int32)[order])

    def save(self, folder: Path) -> None:
        """Write the columns into an existing folder."""
        self.values.save(folder, _NAME)
        np.save(folder / f"{_NAME}.starts.npy", self.starts)
        np.save(folder / f"{_NAME}.rows.npy", self.rows)

    @staticmethod
    def load(folder: Path, count: int) -> MetadataColumns:
        """Map the columns of so many passages. Raises OSError or ValueError where they are damaged."""
        values = TextTable.load(folder, _NAME, 2)
        starts = load_array(folder / f"{_NAME}.starts.npy", np.int64, (len(values) + 1,))
        rows = load_array(folder / f"{_NAME}.rows.npy", np.int32, (None,))
        if starts[0] != 0 or starts[-1] != len(rows) or (np.diff(starts) < 0).any():
            raise ValueError("the values of metadata do not cover the passages that have them")
        return MetadataColumns(count, values, starts, check_range(rows, count))

    def meeting(self, where: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Tell of each passage whether it meets conditions in Chroma's terms; see `metadata_filter.to_chroma`."""
        ((key, wanted),) = where.items()
        if key == "$and":
            return reduce(np.logical_and, map(self.meeting, wanted))
        if key == "$or":
            return reduce(np.logical_or, map(self.meeting, wanted))
        ((operator, operand),) = wanted.items()
        if operator in EXCLUDING:
            return ~self._holding(key, EXCLUDING[operator], operand)
        return self._holding(key, operator, operand)

    def _holding(self, key: str, operator: str, operand: Any) -> NDArray[np.bool_]:
        """Tell of each passage whether its value of a key is to another as an operator that excludes nothing says."""
        if operator in ("$eq", "$in"):
            values = operand if operator == "$in" else [operand]
            texts = {text for value in values for text in _texts_equal_to(value)}
            places = [place for text in texts if (place := self._place_of(key, text)) is not None]
        else:
            of_key = self._places_of(key)
            places = [place for place in of_key if compares(operator, json.loads(self.values.row(place)[1]), operand)]
        found = np.zeros(self.count, dtype=bool)
        for place in places:
            found[self.rows[self.starts[place] : self.starts[place + 1]]] = True
        return found

    def _places_of(self, key: str) -> range:
        """Return where the values of a key stand, by bisection."""
        keys = self.values.column(0)
        return range(bisect_left(keys, key), bisect_right(keys, key))

    def _place_of(self, key: str, text: str) -> int | None:
        """Return where one value of a key stands, by bisection; None where it does not."""
        at = bisect_left(range(len(self.values)), [key, text], key=self.values.row)
        return at if at < len(self.values) and self.values.row(at) == [key, text] else None


def _texts_equal_to(value: MetadataValue) -> set[str]:
    """Return the texts of all values that equal one: of an integer, also of what Chroma cuts to it."""
    if isinstance(value, str | bool):
        return {json.dumps(value)}
    zeros = {json.dumps(-0.0)} if value == 0 else set()
    return {json.dumps(int(value)), json.dumps(float(value))} | zeros


FOLDER = "vectors"
_STAMP = "stamp.json"
FACT_VECTORS = "fact_vectors.npy"
ROWS = ".rows.npy"
COLLECTIONS = ("facts", "passages")


@dataclass(frozen=True, slots=True)
class Contents:
    """What is told of a mapped index beside its files.

    Attributes:
        embedding_model: whose vectors it holds.
        commit: the record's commit that it was derived from.
        whole: whether it holds all rows of its snapshot, rather than some.
    """

    embedding_model: str
    commit: str
    whole: bool

    def save(self, folder: Path) -> None:
        """Write it into the folder of an index, last of all: without it, there is none."""
        (folder / _STAMP).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> Contents:
        """Read what is told of the index in a folder. Raises OSError or ValueError where that cannot be read."""
        held: Any = json.loads((folder / _STAMP).read_text(encoding="utf-8"))
        try:
            contents = Contents(**held)
        except TypeError as fault:
            raise ValueError(f"{_STAMP} is damaged ({fault})") from fault
        if [type(value) for value in asdict(contents).values()] != [str, str, bool]:
            raise ValueError(f"{_STAMP} is damaged: {held}")
        return contents


class MappedStore:
    """The mapped search index of a generation, or a layer of some of its rows. Safe across threads."""

    where = "mapped"
    shared = False

    def __init__(self, snapshot: SnapshotRows, contents: Contents, near: Mapping[str, _Collection]) -> None:
        self._snapshot = snapshot
        self._contents = contents
        self._near = near
        self._asked = LastAsked[NDArray[np.intp]]()
        self._folder_of_columns: Path | None = None

    @staticmethod
    def open(generation: Path) -> MappedStore:
        """Map the search index in a generation's folder.

        Raises:
            WorkspaceDamaged: it cannot be read.
            DependencyMissing: faiss is not installed, and the index is so large that it needs it.
        """
        folder = generation / FOLDER
        try:
            contents, snapshot = Contents.load(folder), load_rows(generation)
            near = {name: _open_collection(folder, name, snapshot, contents) for name in COLLECTIONS}
        except (OSError, ValueError) as fault:
            raise damaged(fault) from fault
        store = MappedStore(snapshot, contents, near)
        store._folder_of_columns = folder if contents.whole else None
        return store

    def close(self) -> None:
        """Let go of the files."""
        self._near = {}

    def count(self, name: str) -> int:
        """Return how many records there are."""
        return len(self._near[name])

    def stamp(self, name: str) -> Stamp | None:
        """Return what it says of itself."""
        commit = self._contents.commit
        return Stamp(self._contents.embedding_model, commit, frozenset([commit]))

    def fingerprints(self, name: str) -> dict[str, str | None]:
        """Return {id: None} of every record: what else is told of one is what its snapshot says."""
        return dict.fromkeys(self._near[name].ids)

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        """Return {id: vector} of those ids that it holds: of many facts, in half precision."""
        near = self._near[name]
        held = [(key, row) for key in ids if (row := near.find(key)) is not None]
        found = near.vectors.vectors[[row for _, row in held]].astype(np.float32)
        return {key: vector for (key, _), vector in zip(held, found, strict=True)}

    def search(self, name: str, vector: Vector, k: int, within: Collection[str] | None = None) -> Hits:
        """Return the ids and cosines of the ``k`` records nearest to a unit vector, nearest first.

        With ``within``, of those records alone; the rows of the last few collections are kept.
        """
        near = self._near[name]
        rows = None if within is None else self._asked.get(name, within, lambda: near.rows_of(within))
        if k < 1 or not len(near) or (rows is not None and not len(rows)):
            return []
        found, cosines = near.vectors.search(vector, k, rows)
        return [(near.ids[row], cosine) for row, cosine in zip(found.tolist(), cosines.tolist(), strict=True)]

    def select(self, where: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Return {id: {}} of the passages that meet conditions in Chroma's terms."""
        ids = self._near["passages"].ids
        return {ids[row]: {} for row in np.flatnonzero(self._columns.meeting(where)).tolist()}

    @cached_property
    def _columns(self) -> MetadataColumns:
        """The metadata of its passages.

        Raises:
            WorkspaceDamaged: they cannot be read.
        """
        near = self._near["passages"]
        try:
            if self._folder_of_columns is not None:
                return MetadataColumns.load(self._folder_of_columns, len(near))
            places = range(len(near)) if near.rows is None else near.rows.tolist()
            return MetadataColumns.of(self._snapshot.passage(place) for place in places)
        except (OSError, ValueError) as fault:
            raise damaged(fault) from fault


class _Collection:
    """Some rows of a snapshot, in their order, with their vectors."""

    def __init__(self, ids: Sequence[str], rows: NDArray[np.int32] | None, vectors: NearVectors) -> None:
        """Take the ids of all rows of the snapshot, and which of them it holds: None for all."""
        self.ids = ids if rows is None else [ids[row] for row in rows.tolist()]
        self.rows = rows
        self.vectors = vectors

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, key: str) -> int | None:
        """Return where an id stands; None where it does not."""
        at = bisect_left(self.ids, key)
        return at if at < len(self.ids) and self.ids[at] == key else None

    def rows_of(self, within: Collection[str]) -> NDArray[np.intp]:
        """Return where some ids stand, ascending."""
        found = (row for key in within if (row := self.find(key)) is not None)
        return np.unique(np.fromiter(found, dtype=np.intp))


def ids_of(snapshot: SnapshotRows, name: str) -> Sequence[str]:
    """Return the ids of the facts or the passages of a snapshot, in their order."""
    return (snapshot.facts if name == "facts" else snapshot.passages).column(0)


def _open_collection(folder: Path, name: str, snapshot: SnapshotRows, contents: Contents) -> _Collection:
    """Map the facts or the passages. Raises OSError or ValueError where they are damaged."""
    ids = ids_of(snapshot, name)
    rows: NDArray[np.int32] | None = None
    if not contents.whole:
        rows = check_range(load_array(folder / f"{name}{ROWS}", np.int32, (None,)), len(ids))
        if (np.diff(rows) <= 0).any():
            raise ValueError(f"the rows of {name} do not ascend")
    count = len(ids) if rows is None else len(rows)
    if name == "facts":
        vectors = load_array(folder / FACT_VECTORS, exact_dtype(count), (count, None))
    else:
        vectors = snapshot.passage_vectors if rows is None else snapshot.passage_vectors[rows]
    return _Collection(ids, rows, NearVectors.open(vectors, folder, name))


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
    for name, old_table, new_table in (
        ("facts", older.facts, newer.facts),
        ("passages", older.passages, newer.passages),
    ):
        for old, new in _differences(old_table, new_table, by_id=name == "facts"):
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
