"""The first screen of a workspace: how much of it the visitor sees, and questions that it can answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph.errors import WorkspaceMissing
from graph.sources.skipped import REFUSED, skipped_by_source
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.context import Context
from workflows.runtime.resources import OpenRun, open_run
from workflows.serving.page.suggestions import suggested


def welcome(context: Context) -> dict[str, Any]:
    """Return how many passages and documents the settings' filter leaves, files that were not read, and questions.

    Raises MaraError where the workspace cannot be opened; one that does not exist holds nothing.
    """
    try:
        run = open_run(context)
    except WorkspaceMissing:
        return {"passages": 0, "documents": 0, "unread": 0, "questions": []}
    return {**_found(run), "unread": 0 if run.selection else _unread(context)}


def _found(run: OpenRun) -> Mapping[str, Any]:
    graph, selection = run.index.graph, run.selection
    documents = selection.documents if selection else {passage.document for passage in graph.passages}
    return {
        "passages": len(selection.rows) if selection else len(graph.passages),
        "documents": len(documents),
        "questions": suggested(graph, selection),
    }


def _unread(context: Context) -> int:
    with Workspace(resolve_workspace(context.workspace)).open_record() as record:
        return sum(one["reasons"].get(REFUSED, 0) for one in skipped_by_source(record).values())
