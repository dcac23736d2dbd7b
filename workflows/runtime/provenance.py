"""The filter of a run by provenance: which passages the relationship graph lets through."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from graph.relationships.conversations import check_open_to
from graph.relationships.provenance_filter import ProvenanceFilter, passages_of
from graph.relationships.record import RelationshipRecord
from graph.storage.workspace import resolve_workspace
from workflows.settings.mara import Context


def passages_by_provenance(context: Context) -> frozenset[str] | None:
    """Return the ids of the passages that meet a run's conditions on provenance; None where there is none.

    Raises:
        BadInput: there is no relationship graph, or nothing tells whose citations count.
        NoAccess: the conversation is not open to who asks.
    """
    wanted = context.provenance_filter
    if not wanted:
        return None
    root = resolve_workspace(context.workspace).absolute()
    with RelationshipRecord.of(root) as record:
        if wanted.cited_before:
            check_open_to(record, wanted.conversation_id, wanted.user_id, own_only=context.own_only)
            cited = passages_of(record, wanted.of_citations)
            return cited & _passages(root, record.revision, rest) if (rest := wanted.of_documents) else cited
        return _passages(root, record.revision, wanted)


@lru_cache(maxsize=8)
def _passages(root: Path, revision: int, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages at a revision, which the nodes of a run all ask for; nothing of a person is kept here."""
    with RelationshipRecord.of(root) as record:
        return passages_of(record, wanted)
