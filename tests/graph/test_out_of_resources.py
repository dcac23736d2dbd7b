"""A machine that gives no more memory or files is named as the cause, not the workspace."""

from __future__ import annotations

import errno
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph.errors import DiskFull, OutOfResources, shortage_behind
from graph.retrieve.open_index import open_index
from graph.storage.record import Record
from tests.builders import HashEmbedder, publish_workspace
from tests.fleet import BUILT, CARS, seen, whole


@contextmanager
def files_left(count: int) -> Iterator[None]:
    """Let this process open no more than some files, whatever it has open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest)]  # fills the gaps below the highest
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(taken) + 1 + count, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)


def test_without_files_left_a_workspace_is_not_called_damaged_and_opens_once_there_are_some(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CARS, BUILT)
    open_index(workspace.root, HashEmbedder()).close()
    for count in (0, 2, 5, 13):
        with files_left(count), pytest.raises(OutOfResources, match="no more files"):
            open_index(workspace.root, HashEmbedder())
        index = open_index(workspace.root, HashEmbedder())
        assert seen(index) == whole(CARS)
        assert workspace.current() == 1
        index.close()
    with files_left(0), pytest.raises(OutOfResources):
        Record(workspace.record_path)


def test_a_shortage_is_told_from_other_faults() -> None:
    assert shortage_behind(OSError(2, "No such file")) is None
    assert isinstance(shortage_behind(MemoryError()), OutOfResources)
    for fault in (
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        OSError("4096 requested and 12 written"),
        sqlite3.OperationalError("database or disk is full"),
    ):
        shortage = shortage_behind(fault)
        assert isinstance(shortage, DiskFull), fault
        assert shortage.exit_code == 6
