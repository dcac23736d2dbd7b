"""Vectors in files of the generation, mapped rather than loaded: found by 4-bit codes, scored exactly.

Few are compared one by one. Of more, a graph of neighbours over 4-bit codes (HNSW: Malkov and Yashunin, 2018,
arXiv:1603.09320) names candidates, which are then scored by the vectors themselves. Graph and codes are files that are
mapped, so that processes on one machine share the memory. The passages' vectors of a whole set are the snapshot's.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import expect_scattered_reads, load_array
from graph.errors import needs
from graph.publish.vector_store import COLLECTIONS, Hits, Numbers, OpenCost, Place, Vector, Vectors, damaged, size_of

COMPARED_ONE_BY_ONE = 10_000
"""Up to so many vectors, all are compared with the question: 2 ms for the most of them."""

_SHARD = 2**20
"""Vectors a graph, at most: building one keeps it in memory, 340 bytes a vector of 384 dimensions."""

_LINKS = 16
_LOOKED_AT_IN_BUILDING = 64
_LOOKED_AT = 640
"""Vectors that a search looks at, at least. Measured by 400 questions on 69,448 facts and names of the development
sets: of the best 10, 99.7 % are found in 1.2 ms, of the best 200, 98.5 % in 1.6 ms."""

_SAMPLE = 100_000
_BLOCK = 2**16
_SPARE = 20
_GATHERED = 2_000
"""Up to so many vectors that a filter leaves are read and compared; of more, first all their codes."""

_THREADS = 2
_PATH = ".path"
"""Ends the name of a file with the name of the generation's in which the vectors lie."""


class MappedStore:
    """Sets in files of their generation."""

    remote = False

    def address(self, place: Place) -> str:
        """Return ``mapped``."""
        return "mapped"

    def write(self, place: Place, vectors: Mapping[str, Vectors]) -> None:
        """Write a set. Raises DependencyMissing where there are so many vectors that faiss is needed, but missing."""
        place.files.mkdir(parents=True)
        jobs: list[tuple[NDArray[np.floating[Any]], Path]] = []
        for name, content in vectors.items():
            if content.file is None:
                written = _write_vectors(place.files / f"{name}.npy", content)
            else:
                written = load_array(content.file, np.float32, (content.count, None))
                (place.files / f"{name}{_PATH}").write_text(content.file.name, encoding="utf-8")
            if len(written) > COMPARED_ONE_BY_ONE:
                load_faiss()
                shards = enumerate(_shards(len(written)))
                jobs += [(written[first:end], place.files / _file(name, shard)) for shard, (first, end) in shards]
        with ThreadPoolExecutor(max_workers=_THREADS) as pool:
            for job in [pool.submit(_write_graph, *each) for each in jobs]:
                job.result()

    def open(self, place: Place, *, untouched: bool = False) -> MappedSet:
        """Map a set.

        Raises:
            WorkspaceDamaged: it cannot be read.
            DependencyMissing: faiss is not installed, and the set is so large that it needs it.
        """
        try:
            return MappedSet({name: _open_vectors(place, name) for name in COLLECTIONS})
        except (OSError, ValueError) as fault:
            raise damaged(fault) from fault

    def cost(self, place: Place) -> OpenCost:
        """Return what questions touch of the files at most."""
        return OpenCost(size_of(place.files), len(list(place.files.glob("*"))))

    def forget(self, prefix: str, kept: Collection[str]) -> None:
        """Do nothing: files go with their generation."""


class MappedSet:
    """A set that is mapped. Safe across threads."""

    def __init__(self, near: Mapping[str, NearVectors]) -> None:
        self._near = near

    def count(self, name: str) -> int:
        """Return how many facts or passages it has."""
        return len(self._near[name].vectors)

    def search(self, name: str, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return the ``k`` nearest to a unit vector."""
        return self._near[name].search(vector, k, within)

    def vectors(self, name: str, numbers: Sequence[int]) -> Vector:
        """Return some vectors; those of many facts have half precision."""
        return self._near[name].vectors[[*numbers]].astype(np.float32)

    def close(self) -> None:
        """Let go of the files."""
        self._near = {}


def _write_vectors(path: Path, vectors: Vectors) -> NDArray[np.floating[Any]]:
    """Write vectors into a file, and return them as they are mapped.

    Where codes choose what is scored, half precision will do: it changes a cosine by less than 0.0001.
    """
    dtype = np.float32 if vectors.count <= COMPARED_ONE_BY_ONE else np.float16
    shape = vectors.count, vectors.dimension
    written = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
    for start, page in vectors.pages(_BLOCK):
        written[start : start + len(page)] = page
    written.flush()
    return written


def _open_vectors(place: Place, name: str) -> NearVectors:
    """Map the facts or the passages of a set. Raises OSError or ValueError where they are damaged."""
    path, elsewhere = place.files / f"{name}.npy", place.files / f"{name}{_PATH}"
    if not path.exists():
        path = place.folder / Path(elsewhere.read_text(encoding="utf-8")).name
    try:
        vectors = load_array(path, np.float32, (None, None))
    except ValueError:
        vectors = load_array(path, np.float16, (None, None))
    return NearVectors(vectors, place.files, name)


class NearVectors:
    """Unit vectors, and the graphs over them. Safe across threads."""

    def __init__(self, vectors: NDArray[np.floating[Any]], folder: Path, name: str) -> None:
        """Map the graphs over vectors, where these are many.

        Raises:
            OSError, ValueError: one is missing, or is not of so many vectors.
            DependencyMissing: faiss is not installed.
        """
        self.vectors = vectors
        self._graphs: list[Any] = []
        if len(vectors) > COMPARED_ONE_BY_ONE:
            expect_scattered_reads(vectors)
            self._graphs = [
                _open_graph(folder / _file(name, shard), stop - start, vectors.shape[1])
                for shard, (start, stop) in enumerate(_shards(len(vectors)))
            ]

    def search(self, vector: Vector, k: int, within: Numbers | None = None) -> Hits:
        """Return rows and cosines of the ``k`` vectors nearest to a unit vector, nearest first.

        With ``within``, ascending rows, of those alone.
        """
        rows = self._candidates(vector, k, within)
        cosines = self._cosines(vector, rows)
        nearest = np.argsort(-cosines, kind="stable")[:k]
        return list(zip((nearest if rows is None else rows[nearest]).tolist(), cosines[nearest].tolist(), strict=True))

    def _cosines(self, vector: Vector, rows: Numbers | None) -> Vector:
        """Return the cosines of some rows, or of all, with a unit vector."""
        count = len(self.vectors) if rows is None else len(rows)
        cosines = np.empty(count, dtype=np.float32)
        for start in range(0, count, _BLOCK):
            block = slice(start, start + _BLOCK)
            vectors = self.vectors[block if rows is None else rows[block]]
            cosines[block] = np.vecdot(vectors.astype(np.float32, copy=False), vector)
        return cosines

    def _candidates(self, vector: Vector, k: int, within: Numbers | None) -> Numbers | None:
        """Return rows among which the nearest are; None for all."""
        if not self._graphs or (within is not None and len(within) <= _GATHERED):
            return within
        wanted = k + k // 2 + _SPARE
        parts = [
            start + self._search_graph(graph, vector, wanted, within, start, stop)
            for graph, (start, stop) in zip(self._graphs, _shards(len(self.vectors)), strict=True)
        ]
        return np.sort(np.concatenate(parts))

    def _search_graph(
        self, graph: Any, vector: Vector, wanted: int, within: Numbers | None, start: int, stop: int
    ) -> Numbers:
        """Return rows of one graph, counted from its first; within some rows, the codes of these are all compared."""
        faiss = load_faiss()
        question = np.ascontiguousarray(vector, dtype=np.float32)[None]
        if within is None:
            # Of several graphs, each is to find a part of them.
            share = min(2, len(self._graphs))
            looked_at = max(_LOOKED_AT // share, 2 * wanted // share)
            _, (nearest,) = graph.search(question, wanted, params=faiss.SearchParametersHNSW(efSearch=looked_at))
        else:
            mine = within[np.searchsorted(within, start) : np.searchsorted(within, stop)] - start
            is_within = np.zeros(stop - start, dtype=bool)
            is_within[mine] = True
            bits = np.packbits(is_within, bitorder="little")
            parameters = faiss.SearchParameters(sel=faiss.IDSelectorBitmap(bits))
            _, (nearest,) = faiss.downcast_index(graph.storage).search(question, wanted, params=parameters)
        return np.asarray(nearest[nearest >= 0], dtype=np.intp)


def load_faiss() -> Any:
    """Return faiss, which searches on the thread that calls it and starts no others.

    Raises:
        DependencyMissing: it is not installed.
    """
    with needs("large", "A large set of vectors in mapped files"):
        import faiss
    # The number is kept for each thread that calls.
    faiss.omp_set_num_threads(1)
    return faiss


def _write_graph(vectors: NDArray[np.floating[Any]], path: Path) -> None:
    """Build the graph over some vectors on this thread, and write it."""
    faiss = load_faiss()
    graph = faiss.IndexHNSWSQ(vectors.shape[1], faiss.ScalarQuantizer.QT_4bit, _LINKS, faiss.METRIC_L2)
    graph.hnsw.efConstruction = _LOOKED_AT_IN_BUILDING
    chosen = np.random.default_rng(0).choice(len(vectors), min(_SAMPLE, len(vectors)), replace=False)
    graph.train(np.asarray(vectors[np.sort(chosen)], dtype=np.float32))
    for start in range(0, len(vectors), _BLOCK):
        graph.add(np.asarray(vectors[start : start + _BLOCK], dtype=np.float32))
    faiss.write_index(graph, str(path))


def _open_graph(path: Path, count: int, dimension: int) -> Any:
    """Map one graph. Raises OSError or ValueError where it is not one of so many vectors."""
    faiss = load_faiss()
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        graph = faiss.read_index(os.fspath(path), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY)
    except RuntimeError as fault:
        raise ValueError(f"{path.name} cannot be read ({str(fault).splitlines()[0]})") from fault
    if not isinstance(graph, faiss.IndexHNSWSQ) or (graph.ntotal, graph.d) != (count, dimension):
        raise ValueError(f"{path.name} is not of {count} vectors of {dimension} numbers")
    return graph


def _file(name: str, shard: int) -> str:
    return f"{name}.{shard}.hnsw"


def _shards(count: int) -> Iterator[tuple[int, int]]:
    """Yield the first row of each graph and the one after its last; all but the last have as many."""
    n_shards = -(-count // _SHARD)
    size = -(-count // n_shards) if n_shards else 0
    return ((start, min(start + size, count)) for start in range(0, count, size)) if size else iter(())
