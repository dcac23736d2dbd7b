"""A search index that is files of its generation: vectors and graphs of neighbours, mapped rather than loaded.

Its records are rows of the generation's snapshot: the ids and the metadata are read there, and so are the passages'
vectors. A small change is written as a layer of the rows that are new; see `layered_store`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import check_range, load_array
from graph.construction.knowledge_graph import SnapshotRows, load_rows
from graph.errors import WorkspaceDamaged
from graph.publish.last_asked import LastAsked
from graph.publish.metadata_columns import MetadataColumns
from graph.publish.near_vectors import NearVectors, exact_dtype
from graph.publish.vectors import Stamp

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

    def vectors(self, name: str, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Return {id: vector} of those ids that it holds: of many facts, in half precision."""
        near = self._near[name]
        held = [(key, row) for key in ids if (row := near.find(key)) is not None]
        found = near.vectors.vectors[[row for _, row in held]].astype(np.float32)
        return {key: vector for (key, _), vector in zip(held, found, strict=True)}

    def search(
        self, name: str, vector: NDArray[np.float32], k: int, within: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
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


def damaged(fault: Exception) -> WorkspaceDamaged:
    """Return the error of files that cannot be read."""
    return WorkspaceDamaged(
        f"The search index cannot be used ({type(fault).__name__}: {fault})",
        "Run `mara index` again: it is rebuilt from the record",
    )


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
