"""Building what is derived from the record: the snapshot, the BM25 index and the vector search index."""

from __future__ import annotations

import ctypes
import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from graph.construction.build import SCRATCH, build_generation
from graph.construction.knowledge_graph import load, load_header
from graph.errors import WorkspaceDamaged, shortage_behind
from graph.publish.search_indexes import SearchIndexWriter, Wanted, is_to_move
from graph.storage.record import Record
from graph.storage.synonym_pairs import settle_synonyms
from graph.storage.workspace import Workspace, keeps_replaced


def publish(workspace: Workspace, record: Record) -> int:
    """Derive the record's generation, make it current and return its number; the caller holds the writer's lock.

    The embedded search index lies over the last whole one, or starts as a copy of it. A generation that was derived
    before, whole or in part, is derived again under the next number and from nothing but the record: a reader may have
    its folder open, and Chroma keeps what it opened at a path for the length of the process.
    """
    keeps_replaced()  # is refused, where it is none, before anything is done
    again = workspace.current() == record.generation or workspace.index_folder(record.generation).exists()
    # First of all, for what was left half made may have taken the room that anything further needs.
    workspace.prune(replaced=True)
    if again:
        record.advance_generation()
        forget_derivations()
    settle_synonyms(record)
    try:
        _derive(workspace, record, from_scratch=again)
    except WorkspaceDamaged:
        # The copy may be damaged; what is derived can always be made from nothing.
        record.advance_generation()
        _derive(workspace, record, from_scratch=True)
    workspace.publish(record)
    _give_memory_back()
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
    with workspace.writing() as lease, workspace.open_record(lease) as record:
        if not is_behind(workspace, record):
            return None
        if record.count_passages():
            publish(workspace, record)
        else:
            workspace.withdraw(record)
        return record.generation


def _give_memory_back() -> None:
    """Let the allocator return what was freed: each run has threads of its own, and glibc keeps what they leave."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


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


_KEPT: dict[tuple[str, Path], SearchIndexWriter] = {}
"""What a writer keeps of the search index between two publications, so that a small change costs little.

It is of the workspace that this process published last, by its id and its folder."""


def forget_derivations() -> None:
    """Let go of what is kept in memory of workspaces that this process wrote."""
    _KEPT.clear()


def _derive(workspace: Workspace, record: Record, *, from_scratch: bool) -> None:
    """Write the files of the record's generation into its folder, and bring the search index up to it.

    With ``from_scratch``, nothing is taken over from an older generation. Nothing is kept of a derivation that failed,
    or of the past.
    """
    key, folder = (record.workspace_id, workspace.root.absolute()), workspace.index_folder(record.generation)
    kept = None if workspace.is_past else _KEPT.pop(key, None)
    search = kept or SearchIndexWriter()
    try:
        folder.mkdir(parents=True)
        with _without_garbage_collection():
            # What is derived of the past is derived once.
            cache = folder / SCRATCH / "read" if workspace.is_past else workspace.build_cache
            build_generation(record, folder, cache, root=workspace.root)
        search.write(workspace, Wanted(record, load(folder)), folder, from_scratch=from_scratch)
    except BaseException:
        _empty(folder)
        raise
    if not workspace.is_past:
        _KEPT.clear()
        _KEPT[key] = search


def _empty(folder: Path) -> None:
    """Give back the room of a generation that was left half made; its name stays taken, as `publish` needs it."""
    with suppress(OSError):
        for each in folder.iterdir():
            shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink()
