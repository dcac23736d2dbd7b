"""The files that runs did not read: named in the record with the reasons, by the source that they lie in."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from graph.errors import WorkspaceDamaged
from graph.moments import now
from graph.sources.loaders.document import Refused
from graph.sources.loaders.files import readable_path
from graph.storage.record import Record

NAMED_FILES = 1_000
"""Refused files, and skipped files, that are named with their reasons; all are counted."""

SKIPPED = "skipped"
"""The note of the record that holds them."""

REFUSED = "could not be read"
"""The reason by which refused files are counted, each of which has one of its own."""


def by_reason(skipped: Iterable[Refused]) -> dict[str, int]:
    """Return how many files were skipped for each reason, the most frequent first."""
    return dict(Counter(_rest(one).strip() for one in skipped).most_common())


def keep_skipped(
    record: Record, sources: Sequence[Path], refused: Sequence[Refused], skipped: Sequence[Refused], *, alone: bool
) -> None:
    """Note the files that a run did not read, in place of what was noted of the same sources, and of any within them.

    Args:
        record: of the workspace.
        sources: files and folders of the run.
        refused: files that could not be read.
        skipped: files that were left out.
        alone: whether the workspace holds these sources alone, so that what was noted of others goes.
    """
    places = [os.path.abspath(readable_path(source)) for source in sources]
    known = {} if alone else skipped_by_source(record)
    kept = {place: one for place, one in known.items() if not any(_lies_in(place, each) for each in places)}
    for place in places:
        could_not, left_out = ([one for one in files if _lies_in(_path(one), place)] for files in (refused, skipped))
        reasons = {REFUSED: len(could_not)} if could_not else {}
        named = [*could_not[:NAMED_FILES], *left_out[:NAMED_FILES]]
        kept[place] = {
            "at": now(),
            "reasons": {**reasons, **by_reason(left_out)},
            "files": [[_name(one, place), _rest(one)] for one in named],
        }
    with record.transaction():
        record.set_note(SKIPPED, json.dumps(kept))


def forget_skipped(record: Record, names: Collection[str]) -> None:
    """Take files out of what is noted, by their names within their sources; called within a transaction."""
    known = skipped_by_source(record)
    for one in known.values():
        for name, rest in one["files"]:
            if name in names:
                one["reasons"][rest.strip() if rest.strip() in one["reasons"] else REFUSED] -= 1
        one["files"] = [[name, rest] for name, rest in one["files"] if name not in names]
        one["reasons"] = {reason: count for reason, count in one["reasons"].items() if count}
    if known:
        record.set_note(SKIPPED, json.dumps(known))


def skipped_by_source(record: Record) -> dict[str, dict[str, Any]]:
    """Return {source: when a run read it, how many files it did not read by reason, and (name, reason) of the first}.

    Raises WorkspaceDamaged where the record holds something else.
    """
    try:
        return dict(json.loads(record.note(SKIPPED) or "{}"))
    except (ValueError, TypeError) as fault:
        raise WorkspaceDamaged(
            f"The skipped files in the record cannot be read ({fault})", "Run `mara sync` on its folders"
        ) from fault


def _path(one: Refused) -> str:
    return os.path.abspath(one.source)


def _name(one: Refused, place: str) -> str:
    """Return a file's name within its source, as passages name it."""
    path = _path(one)
    return Path(path).name if path == place else Path(path).relative_to(place).as_posix()


def _rest(one: Refused) -> str:
    """Return a reason without the file that it begins with."""
    return one.reason.removeprefix(one.source)


def _lies_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place.rstrip(os.sep)}{os.sep}")
