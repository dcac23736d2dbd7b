"""What of a run's findings a newer version superseded: told of runs that are asked as of a date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph.moments import last_moment
from graph.retrieve.past import superseded_facts, superseded_passages
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.runtime.resources import OpenRun
from workflows.states.records import Update

_TOLD = {"passages": superseded_passages, "facts": superseded_facts}


def with_superseded(update: Update, run: OpenRun) -> Update:
    """Return a node's update with ``superseded_at`` in its passages and facts: when they ended, None if they did not.

    Where a run is not asked as of a date, what it finds stands, and nothing is added.
    """
    found = {key: update[key] for key in _TOLD if update.get(key)}
    context = run.context
    if not context.as_of or not found:
        return update
    moment = last_moment(context.as_of)
    with Workspace(resolve_workspace(context.workspace)).open_record() as record:
        ends: Mapping[str, Mapping[str, str | None]] = {
            key: _TOLD[key](record.versions, [hit["id"] for hit in hits], moment, context.where)
            for key, hits in found.items()
        }
    marked: dict[str, Any] = {
        key: [{**hit, "superseded_at": ends[key][hit["id"]]} for hit in hits] for key, hits in found.items()
    }
    return {**update, **marked}
