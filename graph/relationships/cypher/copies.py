"""The copies for Cypher in a workspace: made where they are behind, removed when nobody reads them.

The store lets nobody read while one writes. So each copy is made in a folder of its own, is put in place by a rename,
and is never written again.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from graph.errors import BadInput, WorkspaceDamaged, WorkspaceLocked
from graph.relationships.cypher.embedded import STAMP_FILE, EmbeddedCopy, package, read_stamp
from graph.relationships.cypher.filling import fill, stamp_of
from graph.relationships.cypher.tables import passages_of
from graph.relationships.record import RelationshipRecord
from graph.storage.generation import GenerationHold
from graph.storage.read_only import may_write
from graph.storage.workspace import write_atomically

COPIES = "cypher"
"""The folder of a workspace that holds its copies for Cypher."""

_CURRENT = "CURRENT"
_UNFINISHED = "new-"
_LOCK = "lock"
_LOCK_S = 600.0

Say = Callable[[str], None]
"""Tells people what is done for them beside what they asked for."""


def open_copy(root: Path, *, with_vectors: bool = False, say: Say | None = None) -> EmbeddedCopy:
    """Open the copy of a workspace's relationship graph; where there is none, or it is behind, it is made first.

    Args:
        root: the workspace.
        with_vectors: whether the copy has to hold the passages' vectors.
        say: is told when a copy is made.

    Raises:
        DependencyMissing: `ladybug` is not installed.
        BadInput: the workspace has no relationship graph, or may not be written and its copy is behind.
        WorkspaceLocked: another process has been making a copy for ten minutes.
    """
    package()
    for _ in range(3):
        folder = _current(root)
        if folder is None or not _is_good(root, folder, with_vectors=with_vectors):
            folder = _renew(root, with_vectors=with_vectors, say=say)
        try:
            return EmbeddedCopy(folder)
        except FileNotFoundError:
            continue  # a newer one took its place meanwhile
        except WorkspaceDamaged:
            (folder / STAMP_FILE).unlink(missing_ok=True)
    raise WorkspaceDamaged(f"No copy below {root / COPIES} can be read", f"Delete {root / COPIES}: it is made anew")


def remove_copies(root: Path) -> None:
    """Remove all copies of a workspace, also those that somebody reads; raises as `open_copy` does."""
    if not (root / COPIES).exists():
        return
    with _making(root):
        (root / COPIES / _CURRENT).unlink(missing_ok=True)
        for folder in _folders(root):
            shutil.rmtree(folder)


def _renew(root: Path, *, with_vectors: bool, say: Say | None) -> Path:
    """Make a copy and put it in place, unless another process did so meanwhile; return its folder."""
    if not may_write(root):
        raise BadInput(
            f"{root} may not be written, and holds no copy for Cypher that is up to date", "Make it writable"
        )
    with RelationshipRecord.of(root) as record, _making(root):
        folder = _current(root)
        if folder is not None and _is_good(root, folder, with_vectors=with_vectors):
            return folder
        started = time.monotonic()
        unfinished = root / COPIES / f"{_UNFINISHED}{uuid4().hex}"
        unfinished.mkdir()
        try:
            fill(record, root, unfinished, with_vectors=with_vectors)
            finished = unfinished.rename(unfinished.with_name(unfinished.name.removeprefix(_UNFINISHED)))
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        write_atomically(root / COPIES / _CURRENT, f"{finished.name}\n")
        _prune(root)
        if say is not None:
            say(f"The copy for Cypher was behind and is made anew ({time.monotonic() - started:.1f} s)")
        return finished


def _is_good(root: Path, folder: Path, *, with_vectors: bool) -> bool:
    """Tell whether a copy holds what the records hold now, and vectors if they are wanted."""
    found = read_stamp(folder)
    if found is None:
        return False
    with RelationshipRecord.of(root) as record, passages_of(root) as passages:
        wanted = stamp_of(record, passages, with_vectors=with_vectors)
    if not with_vectors:
        found["dimension"] = 0
    return found == wanted


def _current(root: Path) -> Path | None:
    with suppress(OSError, UnicodeDecodeError):
        name = (root / COPIES / _CURRENT).read_text(encoding="ascii").strip()
        return root / COPIES / name if name.isalnum() else None
    return None


def _prune(root: Path) -> None:
    """Remove the copies that are not current and that nobody reads."""
    current = _current(root)
    for folder in _folders(root):
        if folder != current and not GenerationHold.is_held(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _folders(root: Path) -> list[Path]:
    return [path for path in (root / COPIES).iterdir() if path.is_dir()]


@contextmanager
def _making(root: Path) -> Iterator[None]:
    """Let no other process make or remove copies meanwhile."""
    from filelock import FileLock, Timeout

    (root / COPIES).mkdir(exist_ok=True)
    try:
        with FileLock(root / COPIES / _LOCK, timeout=_LOCK_S):
            yield
    except Timeout as fault:
        raise WorkspaceLocked(f"Another process makes a copy in {root / COPIES}", "Wait until it is done") from fault
