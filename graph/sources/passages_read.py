"""The passages that a run reads, in a temporary file: memory holds their ids, and where each of them lies."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile, gettempdir
from threading import Lock
from typing import Any

from graph.errors import DiskFull
from graph.schema import Passage

_IN_MEMORY = 64 * 2**20
"""Bytes up to which they stay in memory all the same."""


class PassagesRead(Mapping[str, Passage]):
    """Passages by id, in the order in which they came; any thread may read them.

    The file has no name, lies in the folder of temporary files, and goes with the last reference to this.
    """

    def __init__(self) -> None:
        self._file = _temporary_file()
        self._places: dict[str, int] = {}
        self._end = 0
        self._lock = Lock()
        weakref.finalize(self, _close, self._file)

    def add(self, passage: Passage) -> None:
        """Take in a passage whose id is not there yet.

        Raises:
            DiskFull: there is no room for it.
        """
        line = json.dumps(passage_to_json(passage), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        with self._at(self._end) as file:
            file.write(line)
            self._places[passage.id] = self._end
            self._end += len(line)

    def __getitem__(self, key: str) -> Passage:
        """Return a passage. Raises KeyError where it is not there, DiskFull where there was no room for it."""
        with self._at(self._places[key]) as file:
            line = file.readline()
        return passage_from_json(json.loads(line.decode("utf-8", "surrogatepass")))

    def __contains__(self, key: object) -> bool:
        """Tell whether a passage is there, without reading it."""
        return key in self._places

    def __iter__(self) -> Iterator[str]:
        """Yield the ids."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)

    @contextmanager
    def _at(self, place: int) -> Iterator[SpooledTemporaryFile[bytes]]:
        """Yield the file, to read or write at a place; what was written before may need room only now."""
        with self._lock:
            try:
                self._file.seek(place)
                yield self._file
            except OSError as fault:
                raise DiskFull(
                    f"There is no room in {gettempdir()} for the passages that are read ({fault.strerror})",
                    "Make some, or set TMPDIR to a folder that has more",
                ) from fault


def passage_to_json(passage: Passage) -> list[Any]:
    """Return a passage as values that JSON has."""
    return [passage.id, passage.title, passage.text, passage.source, dict(passage.metadata)]


def passage_from_json(told: Sequence[Any]) -> Passage:
    """Return what `passage_to_json` gave."""
    return Passage(*told)


def _temporary_file() -> SpooledTemporaryFile[bytes]:
    return SpooledTemporaryFile(max_size=_IN_MEMORY)


def _close(file: SpooledTemporaryFile[bytes]) -> None:
    with suppress(OSError):
        file.close()
