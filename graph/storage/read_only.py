"""Reading a workspace that cannot be written: a read-only mount, an image, somebody else's folder."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from graph.errors import BadInput


def may_write(place: Path) -> bool:
    """Tell whether a folder or a file may be written; so may a file that is not there in a folder that may."""
    return os.access(place if place.exists() else place.parent, os.W_OK)


def scratch_folder() -> TemporaryDirectory[str]:
    """Return a folder for copies, which goes with the object. Raises BadInput where there is no room for one."""
    try:
        return TemporaryDirectory(prefix="mara-")
    except OSError as fault:
        raise BadInput(
            f"A workspace that cannot be written is read through copies, and there is no folder for them ({fault})",
            "Set TMPDIR to a folder that may be written",
        ) from fault


def writable_copy(folder: Path) -> TemporaryDirectory[str]:
    """Return a copy of a folder whose files may be written, whatever those of the folder may be.

    Raises BadInput as `scratch_folder` does.
    """
    copy = scratch_folder()
    for path in sorted(folder.rglob("*")):
        place = Path(copy.name) / path.relative_to(folder)
        place.mkdir() if path.is_dir() else shutil.copyfile(path, place)
    return copy


def open_read_only(path: Path, scratch: Path) -> sqlite3.Connection:
    """Open a SQLite file for reading.

    Where there is no log, no process has the file open: it is read as one that does not change, for else SQLite would
    make a log. A log with its index is read along with it. A log alone was copied or left so; reading it makes an
    index, which is made beside a copy in the folder ``scratch``; an empty log needs none.
    """
    log, index = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm"))
    if not log.exists() or (not log.stat().st_size and not index.exists()):
        return _begin(path, "mode=ro&immutable=1")
    if index.exists():
        try:
            return _begin(path, "mode=ro&readonly_shm=1")
        except sqlite3.OperationalError:
            # Readers are noted in the index, and no note that is there can be shared.
            return _begin(path, "mode=ro")
    for file in (path, log):
        shutil.copy(file, scratch / file.name)
    return _begin(scratch / path.name, "mode=rw")


def _begin(path: Path, how: str) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?{how}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        db.close()
        raise
    return db
