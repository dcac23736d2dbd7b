"""Files for a question that is not answered: those that could not be read when the workspace was indexed."""

from __future__ import annotations

from graph.sources.skipped import REFUSED, skipped_by_source
from graph.storage.workspace import Workspace, resolve_workspace
from graph.text import counted
from workflows.runtime.resources import OpenRun
from workflows.states.records import UNREAD_FILES, ErrorRecord


def unread_files(run: OpenRun) -> list[ErrorRecord]:
    """Return the note that tells how many files could not be read, for a run that may see all of the workspace."""
    if run.selection is not None:
        return []
    with Workspace(resolve_workspace(run.context.workspace)).open_record() as record:
        count = sum(one["reasons"].get(REFUSED, 0) for one in skipped_by_source(record).values())
    message = f"{counted(count, 'file')} could not be read when this was indexed: `mara show --skipped` names them"
    return [run.error(UNREAD_FILES, message)] if count else []
