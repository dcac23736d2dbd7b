"""Arrays of numpy on disk that are written a block at a time: the files are those of ``numpy.save``."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graph.construction.columns import TextTable

Array = NDArray[Any]
T = TypeVar("T")

BLOCK = 4_096
"""Rows that are written or computed together."""


class ArrayWriter:
    """Writes one array, block after block; how long it is shows when it is closed."""

    def __init__(self, path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> None:
        """Open a file for an array whose rows have the shape ``row``."""
        self._dtype = np.dtype(dtype)
        self._row = row
        self._length = 0
        self._file = path.open("wb")
        self._write_header()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        # The header is as long whatever the length: numpy leaves room for it to grow.
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def append(self, block: Array) -> None:
        """Write some more rows."""
        self._length += len(block)
        self._file.write(np.ascontiguousarray(block, dtype=self._dtype).reshape(-1).view(np.uint8).data)

    def _write_header(self) -> None:
        shape = (self._length, *self._row)
        header = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


class TextWriter:
    """Writes the two files of a `TextTable`, string after string."""

    def __init__(self, folder: Path, name: str) -> None:
        self._text = ArrayWriter(folder / f"{name}.text.npy", np.uint8)
        self._bounds = ArrayWriter(folder / f"{name}.bounds.npy", np.int64)
        self._bounds.append(np.zeros(1, dtype=np.int64))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._text.__exit__(kind, error, at)
        self._bounds.__exit__(kind, error, at)

    def append(self, strings: Iterable[str]) -> None:
        """Write some more strings. Raises ValueError where one is no Unicode text."""
        self.append_table(TextTable.of_strings(strings))

    def append_table(self, table: TextTable) -> None:
        """Write the strings of a table."""
        before = len(self._text)
        self._text.append(np.asarray(table.text))
        self._bounds.append(np.asarray(table.bounds[1:]) + before)


class Columns:
    """A folder of arrays and tables of text that one stage writes, and others read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, **arrays: Array) -> None:
        """Write some arrays, each under its name."""
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)

    def save_texts(self, name: str, strings: Iterable[str]) -> None:
        """Write strings. Raises ValueError where one is no Unicode text."""
        TextTable.of_strings(strings).save(self.folder, name)

    def array(self, name: str) -> Array:
        """Return an array, read-only and memory-mapped."""
        return np.asarray(np.lib.format.open_memmap(self.folder / f"{name}.npy", mode="r"))

    def texts(self, name: str, width: int = 1) -> TextTable:
        """Return a table of text, memory-mapped."""
        return TextTable(self.array(f"{name}.text"), self.array(f"{name}.bounds"), width)

    def strings(self, name: str, start: int = 0, end: int | None = None) -> list[str]:
        """Return the strings of a table from one place to another."""
        bounds = self.array(f"{name}.bounds")[start : None if end is None else end + 1]
        if len(bounds) < 2:
            return []
        block = bytes(self.array(f"{name}.text")[bounds[0] : bounds[-1]])
        return [str(block[begin:stop], "utf-8") for begin, stop in pairwise((bounds - bounds[0]).tolist())]


def in_blocks(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield some rows, some thousand at a time."""
    rest = iter(rows)
    while block := list(islice(rest, BLOCK)):
        yield block


def joined(parts: Sequence[Array], dtype: DTypeLike) -> Array:
    """Return one array of the elements of all parts."""
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype=dtype)


def rows_of(keys: Array, start: int, end: int) -> slice:
    """Return which rows of a column of ascending numbers hold those from ``start`` to ``end``."""
    # Of the column's own type: another would have numpy convert the whole of it.
    low, high = np.searchsorted(keys, np.array([start, end], dtype=keys.dtype))
    return slice(int(low), int(high))


ID_TYPE = np.dtype("S12")
Ids = NDArray[np.bytes_]
"""Ids of one kind as the bytes of their hashes, which are in the order of the ids."""


def packed(ids: Iterable[str]) -> Ids:
    """Return the bytes of ids as `graph.schema.stable_id` makes them."""
    return np.array([bytes.fromhex(key[-2 * ID_TYPE.itemsize :]) for key in ids], dtype=ID_TYPE)


def unpacked(ids: Ids, kind: str) -> list[str]:
    """Return the ids of a kind as they are written."""
    # numpy leaves out the zeros at the end.
    return [f"{kind}-{key.ljust(ID_TYPE.itemsize, bytes(1)).hex()}" for key in ids.tolist()]


def find(ids: Ids, sought: Ids) -> NDArray[np.int64]:
    """Return where each of the sought ids stands among some that ascend; -1 where it does not."""
    at = np.searchsorted(ids, sought)
    return np.where(np.append(ids, ids[:1])[at] == sought, at, -1) if len(ids) else np.full(len(sought), -1)


def save_run(columns: Columns, name: str, pairs: set[tuple[str, int]]) -> None:
    """Write some texts with their entities, in order."""
    ordered = sorted(pairs)
    columns.save_texts(name, (text for text, _ in ordered))
    columns.save(**{f"{name}.entities": np.array([entity for _, entity in ordered], dtype=np.int32)})


def merged_runs(runs: Sequence[Columns], name: str) -> Iterator[tuple[str, int]]:
    """Yield the texts of all runs with their entities, in order."""
    return heapq.merge(*(_read_run(columns, name) for columns in runs))


def _read_run(columns: Columns, name: str) -> Iterator[tuple[str, int]]:
    entities = columns.array(f"{name}.entities")
    for start in range(0, len(entities), BLOCK):
        block = entities[start : start + BLOCK].tolist()
        yield from zip(columns.strings(name, start, start + len(block)), block, strict=True)
