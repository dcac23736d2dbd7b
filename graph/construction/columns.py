"""Columns that are read an element at a time: text and lists of whole numbers, in memory or memory-mapped from disk.

A snapshot of many names and texts is open at once this way: nothing of it becomes a Python object before it is asked
for, and what is not asked for is not even read. Arrays are written a block at a time: the files are those of
``numpy.save``.
"""

from __future__ import annotations

import heapq
import mmap
import tokenize
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, chain, islice, pairwise
from operator import eq
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
T = TypeVar("T")

_KEPT_KEYS = 1 << 15
"""Keys of a mapping that are kept: of so few all, else those that were read last."""

CHECKED_TO = 1 << 22
"""Numbers of an array up to which all of them are looked at when it is opened: a few milliseconds."""

_MAPPED_FROM = 1 << 20
"""Files of fewer bytes are read whole: a map costs a file descriptor for as long as it lives."""


class LazySequence(Sequence[T]):
    """A sequence whose elements are made when they are asked for; equal to a tuple of equal elements.

    Attributes:
        at: returns the element at an index from 0 to len - 1, which is not checked.
    """

    def __init__(self, length: int, at: Callable[[int], T]) -> None:
        self._indices = range(length)
        self.at = at

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...

    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(map(self.at, self._indices[index]))
        return self.at(self._indices[index])

    def __iter__(self) -> Iterator[T]:
        return map(self.at, self._indices)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | LazySequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))


class TextTable:
    """Rows of strings: all strings' UTF-8 in one block, row by row, and where each string starts and ends.

    Attributes:
        text: the block.
        bounds: shape (rows x width + 1,): string i is text[bounds[i]:bounds[i + 1]].
        width: how many strings a row has.
    """

    def __init__(self, text: NDArray[np.uint8], bounds: NDArray[np.int64], width: int) -> None:
        """Take a block and its bounds. Raises ValueError where they are not those of whole rows in that block."""
        if width < 1 or (len(bounds) - 1) % width:
            raise ValueError(f"{len(bounds)} bounds are not those of rows of {width} strings")
        check_bounds(bounds, len(text))
        self.text = text.data
        self.bounds = bounds
        self.width = width

    @staticmethod
    def of(rows: Iterable[Iterable[str]], width: int) -> TextTable:
        """Return the table of some rows. Raises ValueError where they do not make whole rows or one is no Unicode."""
        return TextTable.of_strings(chain.from_iterable(rows), width)

    @staticmethod
    def of_strings(strings: Iterable[str], width: int = 1) -> TextTable:
        """Return the table of strings that stand row by row; raises as `of` does."""
        encoded = [*map(str.encode, strings)]
        text = np.frombuffer(b"".join(encoded), dtype=np.uint8)
        return TextTable(text, np.fromiter(accumulate(map(len, encoded), initial=0), dtype=np.int64), width)

    def __len__(self) -> int:
        return (len(self.bounds) - 1) // self.width

    def row(self, row: int) -> list[str]:
        """Return a row's strings. Raises UnicodeDecodeError, a ValueError, where the block is no UTF-8."""
        start = row * self.width
        bounds = self.bounds[start : start + self.width + 1].tolist()
        return [str(self.text[begin:end], "utf-8") for begin, end in pairwise(bounds)]

    def column(self, column: int) -> TextColumn:
        """Return one column as a sequence."""
        return TextColumn(self, column)

    def save(self, folder: Path, name: str) -> None:
        """Write the table into an existing folder, as two files."""
        np.save(folder / f"{name}.text.npy", np.asarray(self.text))
        np.save(folder / f"{name}.bounds.npy", self.bounds)

    @staticmethod
    def load(folder: Path, name: str, width: int, rows: int | None = None) -> TextTable:
        """Read a table, of so many rows where that is known. Raises OSError or ValueError when it is damaged."""
        n_bounds = None if rows is None else rows * width + 1
        bounds = load_array(folder / f"{name}.bounds.npy", np.int64, (n_bounds,))
        return TextTable(load_array(folder / f"{name}.text.npy", np.uint8, (None,)), bounds, width)


class TextColumn(LazySequence[str]):
    """One column of a table of text."""

    def __init__(self, table: TextTable, column: int) -> None:
        super().__init__(len(table), self._string)
        self._text = table.text
        self._bounds = table.bounds
        self._width = table.width
        self._column = column

    def __iter__(self) -> Iterator[str]:
        starts = self._bounds[self._column : -1 : self._width].tolist()
        ends = self._bounds[self._column + 1 :: self._width].tolist()
        return (str(self._text[start:end], "utf-8") for start, end in zip(starts, ends, strict=True))

    def places_of(self, text: str) -> Iterator[int]:
        """Yield where a text stands, ascending: strings of another length are not read."""
        wanted = text.encode()
        starts, ends = self._bounds[self._column : -1 : self._width], self._bounds[self._column + 1 :: self._width]
        for place in np.flatnonzero(ends - starts == len(wanted)).tolist():
            if self._text[starts.item(place) : ends.item(place)] == wanted:
                yield place

    def _string(self, index: int) -> str:
        """Return one string. Raises UnicodeDecodeError, a ValueError, where the block is no UTF-8."""
        start = index * self._width + self._column
        return str(self._text[self._bounds.item(start) : self._bounds.item(start + 1)], "utf-8")


class IntLists(LazySequence[tuple[int, ...]]):
    """Lists of whole numbers, one after the other.

    Attributes:
        starts: shape (n + 1,): list i is values[starts[i]:starts[i + 1]].
        values: all lists' elements.
    """

    def __init__(self, starts: NDArray[np.int32], values: NDArray[np.int32]) -> None:
        """Take starts and values. Raises ValueError where the lists do not cover the values one after the other."""
        check_bounds(starts, len(values))
        super().__init__(len(starts) - 1, self._list)
        self.starts = starts
        self.values = values

    def _list(self, index: int) -> tuple[int, ...]:
        return tuple(self.values[self.starts.item(index) : self.starts.item(index + 1)].tolist())

    def holding(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell of each list whether it holds a number n with marked[n]."""
        owners = np.repeat(np.arange(len(self)), np.diff(self.starts))
        has_marked = np.zeros(len(self), dtype=bool)
        has_marked[owners[marked[self.values]]] = True
        return has_marked

    @staticmethod
    def load(folder: Path, name: str, lists: int, limit: int) -> IntLists:
        """Read so many lists of numbers from 0 to limit - 1. Raises OSError or ValueError when they are damaged."""
        starts = load_array(folder / f"{name}.starts.npy", np.int32, (lists + 1,))
        values = load_array(folder / f"{name}.values.npy", np.int32, (None,))
        return IntLists(starts, check_range(values, limit))


class SortedMapping(Mapping[str, T], Generic[T]):
    """A mapping over two sequences: keys in ascending order, of which many are found by bisection, and their values."""

    def __init__(self, keys: LazySequence[str], values: Sequence[T]) -> None:
        """Take as many values as keys; that the keys ascend is for the caller to see to."""
        if len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys have {len(values)} values")
        self._keys = keys
        self._values = values
        self._value_at: Callable[[int], T] = values.at if isinstance(values, LazySequence) else values.__getitem__
        self._indices = range(len(keys))
        self._key_at = lru_cache(maxsize=_KEPT_KEYS)(keys.at)

    def __getitem__(self, key: str) -> T:
        place = self.place(key)
        if place is None:
            raise KeyError(key)
        return self._value_at(place)

    def __contains__(self, key: object) -> bool:
        return self.place(key) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def place(self, key: object) -> int | None:
        """Return where a key stands among all; None where it does not."""
        if not isinstance(key, str):
            return None
        if len(self._indices) <= _KEPT_KEYS:
            return self._places.get(key)
        place = bisect_left(self._indices, key, key=self._key_at)
        return place if place < len(self._indices) and self._key_at(place) == key else None

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return dict(zip(self._keys, self._indices, strict=True))


def load_array(path: Path, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Read an array from a file, read-only; a large one is memory-mapped.

    Args:
        path: a file of ``numpy.save``.
        dtype: of its elements.
        shape: what it has to be; None where any length will do.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds anything else.
    """
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except (EOFError, SyntaxError, TypeError, tokenize.TokenError) as error:
        raise ValueError(f"{path.name} is damaged ({error})") from error
    size = path.stat().st_size
    fits = len(mapped.shape) == len(shape) and all(n in (None, m) for m, n in zip(mapped.shape, shape, strict=True))
    if mapped.dtype != dtype or not fits or not mapped.flags.c_contiguous or mapped.offset + mapped.nbytes != size:
        raise ValueError(f"{path.name} holds {mapped.dtype} {mapped.shape} in {size} bytes, not {dtype} {shape}")
    array = np.asarray(mapped) if size >= _MAPPED_FROM else np.array(mapped)
    array.flags.writeable = False
    return array


def expect_scattered_reads(array: NDArray[Any]) -> None:
    """Let the system read the pages of a mapped array that are asked for, and none around them.

    Otherwise rows here and there bring a large file into memory whole. Does nothing where the array is not mapped.
    """
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_RANDOM"):
        base.madvise(mmap.MADV_RANDOM)


def check_range(values: NDArray[Any], limit: int) -> NDArray[Any]:
    """Return the values. Raises ValueError where one of them is negative or not below ``limit``.

    More of them than a process should read when it opens them are not looked at.
    """
    if 0 < values.size <= CHECKED_TO and not 0 <= values.min() <= values.max() < limit:
        raise ValueError(f"values from {values.min()} to {values.max()} should be within 0 and {limit - 1}")
    return values


def check_bounds(bounds: NDArray[Any], end: int) -> None:
    """Raise ValueError where the bounds do not ascend from 0 to ``end``; of many, the ends are looked at."""
    seen = bounds if len(bounds) <= CHECKED_TO else bounds[[0, -1]]
    if not len(seen) or seen[0] != 0 or seen[-1] != end or (seen[1:] < seen[:-1]).any():
        raise ValueError(f"the bounds of the parts do not ascend from 0 to {end}")


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

    def __exit__(self, *_: object) -> None:
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

    def __exit__(self, *_: object) -> None:
        self._text.__exit__()
        self._bounds.__exit__()

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
