"""The date of an indexing run: from when on what it writes stands, and whether what it replaces is kept."""

from __future__ import annotations

from collections.abc import Iterable

from graph.errors import BadInput
from graph.moments import first_moment, now
from graph.storage.record import Record
from graph.storage.workspace import Workspace
from workflows.settings.indexing import IndexingContext

_CHOICE = "versions"
_NONE = "none"


def keep_versions(workspace: Workspace, record: Record, context: IndexingContext) -> None:
    """Let what a run commits stand from its date, and keep what it replaces, unless the workspace keeps no versions.

    A choice of the run holds for the workspace from then on; to keep none erases those that there are.
    """
    versions = record.versions
    wanted = context.keep_versions
    if wanted is None:
        wanted = record.note(_CHOICE) != _NONE
    with record.transaction():
        record.set_note(_CHOICE, "" if wanted else _NONE)
        if wanted:
            versions.begin(now())
        elif versions.are_kept:
            versions.end()
    if not wanted:
        workspace.forget_past()
        record.shorten_log()
    record.stand_from(_moment(record, context) if wanted else "")


def check_date(record: Record, context: IndexingContext, passage_ids: Iterable[str]) -> None:
    """Check that a run may date what it writes so.

    Args:
        record: what there is.
        context: the run's settings.
        passage_ids: what it writes, finds unchanged or removes.

    Raises:
        BadInput: the date is none or lies in the future, the workspace keeps no versions, or one of the passages
            stands, or ended, later.
    """
    if not context.dated:
        return
    moment = first_moment(context.dated)
    if moment > now():
        raise BadInput("The date of an indexing run lies in the future", "Index what does not stand yet when it does")
    kept = record.note(_CHOICE) != _NONE if context.keep_versions is None else context.keep_versions
    if not kept:
        raise BadInput("A workspace that keeps no versions has no dates", "Leave the date out, or keep versions")
    record.versions.check(passage_ids, moment, now())


def _moment(record: Record, context: IndexingContext) -> str:
    """Return the moment from which on what a run writes stands; a clock that went back changes no order."""
    return first_moment(context.dated) if context.dated else max(now(), record.versions.latest())
