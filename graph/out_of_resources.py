"""Shortages of memory, of a disk and of open files, reported as such and not as damage of what could not be read."""

from __future__ import annotations

import errno
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from graph.errors import DiskFull, OutOfResources, faults_behind

_OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SAID_FULL = re.compile(r"database or disk is full|[0-9]+ requested and [0-9]+ written")
"""The words of SQLite and numpy for a full disk; neither gives the system's number."""

_FILES_TRIED = 32


def shortage_behind(fault: BaseException) -> OutOfResources | None:
    """Return the shortage that a fault comes from; None where it comes from something else.

    SQLite and Chroma do not tell why they cannot open a file: whether a few more can be opened is tried.
    """
    behind = list(faults_behind(fault))
    if any(isinstance(each, MemoryError) or getattr(each, "errno", None) == errno.ENOMEM for each in behind):
        return out_of_memory()
    if any(_is_of_a_full_disk(each) for each in behind):
        return disk_full()
    if any(getattr(each, "errno", None) in _OUT_OF_FILES for each in behind) or not _can_open_files():
        return _out_of_files()
    return None


def check_files() -> None:
    """Raise OutOfResources where hardly any files can be opened: Chroma panics then."""
    if not _can_open_files():
        raise _out_of_files()


def _out_of_files() -> OutOfResources:
    return OutOfResources("This process may open no more files", "Raise the limit (`ulimit -n`), or run less at once")


def _is_of_a_full_disk(fault: BaseException) -> bool:
    """Tell whether a disk takes no more: by number, by words, or as SQLite finds no room for the index of its log."""
    is_index = getattr(fault, "sqlite_errorname", "") == "SQLITE_IOERR_SHMSIZE"
    return is_index or getattr(fault, "errno", None) in _FULL or _SAID_FULL.search(str(fault)) is not None


def out_of_memory() -> OutOfResources:
    """Return the error of a process that gets no more memory."""
    return OutOfResources("There is not enough memory", "Raise the limit (`ulimit -v`), or run it on a larger machine")


def disk_full(place: str = "the disk") -> DiskFull:
    """Return the error of a place that takes no more."""
    return DiskFull(f"There is no room left on {place}", "Make some, and run it again: what was committed is kept")


def check_memory(needed: int) -> None:
    """Refuse to load a library that would end the process, rather than raise, where it gets no memory.

    Args:
        needed: bytes of address space that it takes, and what is done with it.

    Raises:
        OutOfResources: the process's limit leaves less.
    """
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit - _address_space_taken() < needed:
        raise out_of_memory()


def _address_space_taken() -> int:
    """Return bytes; 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def _can_open_files() -> bool:
    opened: list[int] = []
    try:
        for _ in range(_FILES_TRIED):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as fault:
        return fault.errno not in _OUT_OF_FILES
    finally:
        for each in opened:
            with suppress(OSError):
                os.close(each)
    return True
