"""``mara sync --watch``: folders are synced again whenever a file has changed that a sync would read.

A change only wakes it up: whether there is anything to do, the files tell. So nothing is missed while a sync is under
way, while a folder is gone, or while the system cannot watch it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from graph.errors import BadInput, MaraError
from graph.sources.documents import files_below
from workflows.cli import render
from workflows.cli.command import error_body, named, say
from workflows.output.printable import VisibleConsole, visible_json

if TYPE_CHECKING:
    from workflows.indexing_run.report import IndexReport

_QUIET_MS, _BURST_MS = 300, 5_000
"""A burst of changes ends when none comes for so long; it is not waited for longer than this."""

_LOOK_S = 3
"""Seconds after which a sync that failed is tried again, and a folder is looked for that was gone."""


def check_folders(sources: Sequence[Path]) -> None:
    """Raise BadInput where a source is no folder."""
    other = next((source for source in sources if not source.is_dir()), None)
    if other is not None:
        raise BadInput(f"{other} cannot be watched: it is no folder", "Watch the folder that it lies in")


def follow(folders: Sequence[Path], root: Path, sync: Callable[[], IndexReport], *, as_json: bool) -> None:
    """Sync, and again whenever a file has changed, until Ctrl-C; print what each sync did, and go on after errors.

    Args:
        folders: to follow.
        root: the workspace, whose own files may lie in them.
        sync: brings the workspace in step.
        as_json: whether each line is a report, or an error, as JSON.

    Raises:
        BadInput: there are files, and the first sync cannot use them or the options.
    """
    synced, last_error, is_first = b"", "", True
    say(f"Watching {', '.join(map(str, folders))} (Ctrl-C to stop)")
    for may_differ in _moments(folders, root):
        if synced and not may_differ:
            continue
        state = _state_of(folders)
        if state == synced:
            continue
        try:
            report = sync()
        except (MaraError, MemoryError, OSError) as fault:
            error = named(fault)
            if is_first and isinstance(error, BadInput) and any(any(files_below(folder)) for folder in folders):
                raise
            # A fault of the files changes with them; a fault of a server or a lock, by itself.
            synced = state if isinstance(error, BadInput) else b""
            if str(error) != last_error:
                last_error = str(error)
                _print_error(error, as_json=as_json)
        else:
            synced, last_error = state, ""
            _print_report(report, as_json=as_json)
        is_first = False


def _moments(folders: Sequence[Path], root: Path) -> Iterator[bool]:
    """Yield at once, after each burst of changes, and from time to time: whether there may be a change.

    A folder that was removed, moved or replaced is watched anew.
    """
    from watchfiles import Change, DefaultFilter, watch

    is_told = False
    while True:
        places = [*map(_place, folders)]
        yield True
        watched = [folder.resolve() for folder, place in zip(folders, places, strict=True) if place]
        own = [] if any(folder.is_relative_to(root.resolve()) for folder in watched) else [f"{root.resolve()}{os.sep}"]
        gone, is_new = {(Change.deleted, str(folder)) for folder in watched}, True
        try:
            for changes in watch(
                *watched,
                watch_filter=DefaultFilter(ignore_dirs=[], ignore_entity_patterns=[], ignore_paths=own),
                debounce=_BURST_MS,
                step=_QUIET_MS,
                rust_timeout=_LOOK_S * 1000,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                if places != [*map(_place, folders)] or not gone.isdisjoint(changes):
                    break
                yield bool(changes) or is_new
                is_new = False
        except (OSError, RuntimeError) as fault:  # No more watches, or a name that is no UTF-8.
            if not is_told:
                say(f"Changes are looked for every {_LOOK_S} s: the system does not tell of them ({fault})")
                is_told = True
            time.sleep(_LOOK_S)


def _place(folder: Path) -> tuple[int, int] | None:
    """Return which folder stands at a path; None where there is none."""
    with suppress(OSError):
        status = folder.stat()
        return status.st_dev, status.st_ino
    return None


def _state_of(folders: Sequence[Path]) -> bytes:
    """Return a digest of the files that a sync reads, by name, place, size and times; none is opened."""
    digest = blake2b()
    for folder in folders:
        digest.update(f"{folder.is_dir()}".encode())
        for path in files_below(folder):
            with suppress(OSError):
                status = path.stat()
                digest.update(os.fsencode(path))
                digest.update(repr((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)).encode())
    return digest.digest()


def _print_report(report: IndexReport, *, as_json: bool) -> None:
    if as_json:
        print(visible_json(report.to_json()), flush=True)  # noqa: T201
        return
    console = VisibleConsole(soft_wrap=True, emoji=False, highlight=False)
    render.synced(console, report)
    console.file.flush()


def _print_error(error: MaraError, *, as_json: bool) -> None:
    if as_json:
        print(visible_json(error_body(error)), flush=True)  # noqa: T201
    else:
        say(str(error))
