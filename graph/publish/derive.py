"""Building what is derived from the record: the snapshot, the BM25 index and the vectors."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graph.construction.knowledge_graph import load_header
from graph.errors import WorkspaceDamaged, shortage_behind
from graph.publish.generation_vectors import forget_unused, is_to_move, write_vectors
from graph.storage.record import Record
from graph.storage.workspace import Workspace, keeps_replaced


def publish(workspace: Workspace, record: Record, *, whole: bool = False) -> int:
    """Derive the record's generation, make it current and return its number; the caller holds the writer's lock.

    Where little changed, the vectors lie over those of an older generation. A generation that was derived before, whole
    or in part, is derived again under the next number and from nothing but the record: a reader may have its folder
    open. With ``whole``, nothing lies over an older generation either, which holds texts that are gone since.
    """
    keeps_replaced()  # is refused, where it is none, before anything is done
    again = workspace.current() == record.generation or workspace.index_folder(record.generation).exists()
    # First of all, for what was left half made may have taken the room that anything further needs.
    workspace.prune(replaced=True)
    if again:
        record.advance_generation()
    try:
        _derive(workspace, record, from_scratch=again or whole)
    except WorkspaceDamaged:
        # The copy may be damaged; what is derived can always be made from nothing.
        record.advance_generation()
        _derive(workspace, record, from_scratch=True)
    workspace.publish(record)
    forget_unused(workspace, record.workspace_id)
    return record.generation


def is_published(workspace: Workspace, record: Record) -> bool:
    """Tell whether the current generation was derived from the record as it stands, for the store that is set."""
    if workspace.current() != record.generation or is_to_move(workspace):
        return False
    try:
        header = load_header(workspace.index_folder(record.generation))
    except (OSError, ValueError) as fault:
        if shortage := shortage_behind(fault):
            raise shortage from fault
        return False
    return bool(header.get("commit_id") == record.commit_id)


def is_behind(workspace: Workspace, record: Record) -> bool:
    """Tell whether something was committed that readers do not see yet: a command was interrupted, or is at work."""
    published = workspace.current()
    return published != record.generation if record.count_passages() else published is not None


def publish_committed(workspace: Workspace) -> int | None:
    """Give readers what a command committed before it was interrupted.

    Returns:
        The record's generation; None where nothing was left to do.

    Raises:
        WorkspaceLocked: a writer is at work, who publishes by himself.
        WorkspaceDamaged: what was committed cannot be derived.
    """
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        if not is_behind(workspace, record):
            return None
        if record.count_passages():
            publish(workspace, record)
        else:
            workspace.withdraw(record)
        return record.generation


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Make many objects that all stay: looking through them for garbage again and again takes half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _derive(workspace: Workspace, record: Record, *, from_scratch: bool) -> None:
    """Write the files of the record's generation into its folder, and its vectors.

    With ``from_scratch``, nothing is taken over from an older generation.
    """
    from graph.construction.build import SCRATCH, build_generation

    folder = workspace.index_folder(record.generation)
    try:
        folder.mkdir(parents=True)
        with _without_garbage_collection():
            # An index of the past is derived once.
            cache = folder / SCRATCH / "read" if workspace.is_past else workspace.build_cache
            build_generation(record, folder, cache)
        write_vectors(workspace, record, folder, from_scratch=from_scratch)
    except BaseException:
        _empty(folder)
        raise


def _empty(folder: Path) -> None:
    """Give back the room of a generation that was left half made; its name stays taken, as `publish` needs it."""
    with suppress(OSError):
        for each in folder.iterdir():
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink()
