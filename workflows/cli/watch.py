"""``mara sync --watch``: folders are synced again whenever a file has changed that a sync would read.

Their files are looked at from time to time, so that nothing is missed while a sync is under way, while a folder is
gone, or on a network folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
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

_LOOK_S, _RESTS = 1.0, 9
"""Seconds between two looks at the files; at least so many times as long as a look takes."""

_QUIET_S, _MOST_WAITS = 0.3, 15
"""A burst of changes ends when none comes for so long; it is waited for so often at most."""


def check_folders(sources: Sequence[Path]) -> None:
    """Raise BadInput where a source is no folder."""
    other = next((source for source in sources if not source.is_dir()), None)
    if other is not None:
        raise BadInput(f"{other} cannot be watched: it is no folder", "Watch the folder that it lies in")


def follow(folders: Sequence[Path], sync: Callable[[], IndexReport], *, as_json: bool) -> None:
    """Sync, and again whenever a file has changed, until Ctrl-C; print what each sync did, and go on after errors.

    Args:
        folders: to follow.
        sync: brings the workspace in step.
        as_json: whether each line is a report, or an error, as JSON.

    Raises:
        BadInput: there are files, and the first sync cannot use them or the options.
    """
    synced, last_error, is_first = b"", "", True
    say(f"Watching {', '.join(map(str, folders))} (Ctrl-C to stop)")
    while True:
        begun = time.monotonic()
        state = _state_of(folders)
        pause = max(_LOOK_S, _RESTS * (time.monotonic() - begun))
        if state != synced:
            state = _settled(folders, state)
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
        time.sleep(pause)


def _settled(folders: Sequence[Path], state: bytes) -> bytes:
    """Return the state of folders once no change comes for a moment."""
    for _ in range(_MOST_WAITS):
        time.sleep(_QUIET_S)
        before, state = state, _state_of(folders)
        if state == before:
            break
    return state


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
