"""Arrays of numpy on disk that are written a block at a time: the files are those of ``numpy.save``."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graph.construction.columns import TextTable

Array = NDArray[Any]


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

    def append(self, strings: Sequence[str]) -> None:
        """Write some more strings. Raises ValueError where one is no Unicode text."""
        encoded = [string.encode() for string in strings]
        ends = np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)))
        self._append(np.frombuffer(b"".join(encoded), dtype=np.uint8), ends)

    def append_table(self, table: TextTable) -> None:
        """Write the strings of a table."""
        self._append(np.asarray(table.text), np.asarray(table.bounds[1:]))

    def _append(self, text: Array, ends: Array) -> None:
        before = len(self._text)
        self._text.append(text)
        self._bounds.append(ends + before)


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
        TextTable.of(((string,) for string in strings), 1).save(self.folder, name)

    def array(self, name: str) -> Array:
        """Return an array, see `read_array`."""
        return read_array(f"{self.folder}/{name}.npy")

    def texts(self, name: str, width: int = 1) -> TextTable:
        """Return a table of text; a large one is memory-mapped."""
        bounds, text = (read_array(f"{self.folder}/{name}.{part}.npy") for part in ("bounds", "text"))
        return TextTable(text, bounds, width)

    def strings(self, name: str) -> list[str]:
        """Return all strings of a table."""
        return strings_of(self.texts(name))


_MAPPED_FROM = 1 << 18
_HEADER = 128
"""Bytes before the elements: numpy's header of an array with few dimensions."""


def read_array(path: str | Path) -> Array:
    """Read an array that a stage wrote, read-only; a large one is memory-mapped.

    Stages open some hundred thousand files: `numpy.load` would parse each header as a program.
    """
    with open(path, "rb") as file:
        dtype, shape = _layout(file.read(_HEADER))
        count = math.prod(shape)
        if count * dtype.itemsize < _MAPPED_FROM:
            array = np.frombuffer(file.read(), dtype=dtype, count=count).reshape(shape)
        else:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            array = np.frombuffer(mapped, dtype=dtype, count=count, offset=_HEADER).reshape(shape)
    return array


@lru_cache(maxsize=65_536)
def _layout(header: bytes) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return what a file of ``numpy.save`` says of its elements. Raises ValueError where it is none of a stage."""
    file = BytesIO(header)
    version = np.lib.format.read_magic(file)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if version != (1, 0) or file.tell() != _HEADER or fortran:
        raise ValueError(f"no array that a stage wrote: {header!r}")
    return dtype, shape


def strings_of(table: TextTable, start: int = 0, end: int | None = None) -> list[str]:
    """Return the strings of a table from one place to another, whatever its rows."""
    bounds = np.asarray(table.bounds[start : None if end is None else end + 1])
    if len(bounds) < 2:
        return []
    block = bytes(table.text[bounds[0] : bounds[-1]])
    return [str(block[begin:stop], "utf-8") for begin, stop in pairwise((bounds - bounds[0]).tolist())]


def joined(parts: Sequence[Array], dtype: DTypeLike) -> Array:
    """Return one array of the elements of all parts."""
    return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype=dtype)


def join_arrays(parts: Iterable[Path], path: Path, dtype: DTypeLike, row: tuple[int, ...] = ()) -> int:
    """Write the arrays of some files as one; return how long it is."""
    with ArrayWriter(path, dtype, row) as whole:
        for part in parts:
            whole.append(read_array(part))
    return len(whole)


def places(keys: Mapping[str, int], strings: Iterable[str]) -> Array:
    """Return the number of each string; -1 of those that have none."""
    return np.array([keys.get(string, -1) for string in strings], dtype=np.int32)


ID_TYPE = np.dtype("S12")
Ids = NDArray[np.bytes_]
"""Ids of one kind as the bytes of their hashes, which are in the order of the ids."""


def packed(ids: Sequence[str]) -> Ids:
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


def cuts(ids: Ids, parts: int) -> list[int]:
    """Return where ascending ids are cut into so many ranges of equal width, ends included."""
    size = ID_TYPE.itemsize
    bounds = [(part * 2 ** (8 * size) // parts).to_bytes(size, "big") for part in range(1, parts)]
    return [0, *np.searchsorted(ids, np.array(bounds, dtype=ID_TYPE)).tolist(), len(ids)]
