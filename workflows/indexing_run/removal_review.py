"""The removals of a sync: shown to a person, who approves or rejects them before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from langgraph.types import interrupt

from graph.errors import BadInput
from workflows.indexing_run.run import IndexingRun
from workflows.runtime.human_review import can_wait, decision_in, review_of

REMOVE = "remove_passages"
"""The action that is to be approved."""

SHOWN_SOURCES = 50
"""Sources of removed passages that are shown; all are counted."""


def removals_of(run: IndexingRun) -> dict[str, Any] | None:
    """Return what a run is to remove, in a few words and with a digest of all of it; None where nothing."""
    ids = run.to_remove
    if not ids:
        return None
    held = run.record.sources()
    sources = sorted({held[key] for key in ids})
    return {
        "passages": len(ids),
        "sources": sources[:SHOWN_SOURCES],
        "source_count": len(sources),
        "digest": _digest_of(ids),
    }


def are_approved(removals: Mapping[str, Any]) -> bool:
    """Interrupt until a person has decided; tell whether they approved.

    Raises:
        BadInput: the run cannot wait for anybody, since no checkpointer keeps it.
    """
    if not can_wait():
        raise BadInput(
            f"The sync would remove {_told(removals)}, and a run without a thread cannot ask whether it may",
            "Run it on a thread, or set confirm_removals to false",
        )
    description = f"The sync would remove {_told(removals)}. Approve to remove them; reject to change nothing."
    shown = {"passages": removals["passages"], "sources": removals["sources"]}
    while True:
        decision = decision_in(interrupt(review_of(REMOVE, shown, description, "approve", "reject"))).get("type")
        if decision in ("approve", "reject"):
            return bool(decision == "approve")


def check_approved(run: IndexingRun, approved: str) -> None:
    """Raise BadInput where a run is about to remove something else than a person approved."""
    if run.to_remove and _digest_of(run.to_remove) != approved:
        raise BadInput(
            f"The {len(run.to_remove)} passages to remove are not those that were approved: something has changed",
            "Run the sync again",
        )


def rejection_of(removals: Mapping[str, Any]) -> str:
    """Return what the report of a run says whose removals were rejected."""
    return f"The removal of {_told(removals)} was rejected: nothing was changed"


def _told(removals: Mapping[str, Any]) -> str:
    shown = ", ".join(removals["sources"])
    more = removals["source_count"] - len(removals["sources"])
    return f"{removals['passages']} passages of {shown}{f' and {more} more sources' if more else ''}"


def _digest_of(ids: Iterable[str]) -> str:
    return sha256("\n".join(sorted(ids)).encode()).hexdigest()[:32]
