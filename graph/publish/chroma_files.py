"""The files of an embedded Chroma: opening them, and leaving none of this process's memory in them."""

from __future__ import annotations

import os
import struct
import sys
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from graph.errors import check_files, check_memory

_OPENING = threading.Lock()
"""Chroma counts the clients of a folder without a lock of its own."""

_CHROMA_BYTES = 3 * 2**29
"""Of address space: what Chroma, the embedded model and a walk take of a small workspace, measured at 1.4 GiB."""

_OPENED: dict[Path, tuple[tuple[int, int] | None, str]] = {}
"""By folder: which database was opened there last, and how its path was spelled."""

_HNSW_HEADER = struct.Struct("<i4Q")
"""Version, offset, places, places taken, bytes a place: what the header of an index begins with."""

_LENGTH_BYTES = 4


def open_client(folder: Path) -> Any:
    """Return Chroma's client of the database in a folder, which no other process may be writing.

    Raises:
        OutOfResources: the machine gives no more memory or open files.
        Exception: whatever a damaged database makes Chroma raise.
    """
    if "chromadb" not in sys.modules:
        check_memory(_CHROMA_BYTES)
    check_files()
    import chromadb

    with _OPENING:
        spelled = _spelling(folder)
        client = chromadb.PersistentClient(spelled, settings=_settings().model_copy())
        _OPENED[folder.absolute()] = _database_of(folder), spelled
    return client


def close_client(client: Any) -> None:
    """Let go of a client; the files are free after that."""
    with _OPENING:
        client.close()


def _spelling(folder: Path) -> str:
    """Return a path to a folder that Chroma does not know, where another database lay there when it was opened last.

    Chroma takes what it has open at a path for what is there, also after that was deleted and built again.
    """
    known, spelled = _OPENED.get(folder.absolute(), (None, str(folder)))
    return spelled if known in (None, _database_of(folder)) else f"{spelled}{os.sep}{os.curdir}"


def _database_of(folder: Path) -> tuple[int, int] | None:
    """Return what tells the database in a folder from another; None where there is none."""
    try:
        found = (folder / "chroma.sqlite3").stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def wipe_unused(folder: Path) -> None:
    """Empty the places that Chroma's index files keep for records to come.

    It writes them as they happen to lie in memory, with whatever this process had there before: keys, too.
    """
    for header in folder.glob("*/header.bin"):
        begins = header.read_bytes()[: _HNSW_HEADER.size]
        if len(begins) < _HNSW_HEADER.size:
            continue  # being written, in another thread, which wipes as well
        _, _, places, taken, width = _HNSW_HEADER.unpack(begins)
        for name, bytes_each in (("data_level0.bin", width), ("length.bin", _LENGTH_BYTES)):
            with suppress(PermissionError), header.with_name(name).open("r+b") as file:
                if file.seek(0, os.SEEK_END) == places * bytes_each:
                    file.seek(taken * bytes_each)
                    file.write(bytes((places - taken) * bytes_each))


@lru_cache(maxsize=1)
def _settings() -> Any:
    """Return Chroma's settings, which it looks for in the environment for milliseconds."""
    from chromadb.config import Settings

    return Settings(anonymized_telemetry=False)
