"""The filter of a run by provenance: which passages the relationship graph lets through."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from graph.moments import last_moment
from graph.relationships.conversations import check_open_to
from graph.relationships.provenance import ProvenanceFilter, passages_of, passages_that_stood
from graph.relationships.record import RelationshipRecord
from graph.storage.workspace import Workspace, resolve_workspace
from workflows.settings.mara import Context


def passages_by_provenance(context: Context) -> frozenset[str] | None:
    """Return the ids of the passages that meet a run's conditions on provenance; None where there is none.

    As of a date, documents are what they were then, and citations those that were given since, too.

    Raises:
        BadInput: there is no relationship graph, or nothing tells whose citations count.
        NoAccess: the conversation is not open to who asks.
    """
    wanted = context.provenance_filter
    if not wanted:
        return None
    root = resolve_workspace(context.workspace).absolute()
    documents = _of_documents(root, context.as_of, wanted.of_documents) if wanted.of_documents else None
    if not wanted.cited_before:
        return documents
    with RelationshipRecord.of(root) as record:
        check_open_to(record, wanted.conversation_id, wanted.user_id, own_only=context.own_only)
        cited = passages_of(record, wanted.of_citations)
    return cited if documents is None else cited & documents


def _of_documents(root: Path, as_of: str, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages that meet conditions on documents: by the relationship graph, or by what stood at a date."""
    if as_of:
        with Workspace(root).open_record() as record:
            return _passages_then(root, record.commit_id, record.versions.state, last_moment(as_of), wanted)
    with RelationshipRecord.of(root) as relationships:
        return _passages(root, relationships.revision, wanted)


@lru_cache(maxsize=8)
def _passages(root: Path, revision: int, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages at a revision, which the nodes of a run all ask for; nothing of a person is kept here."""
    with RelationshipRecord.of(root) as record:
        return passages_of(record, wanted)


@lru_cache(maxsize=8)
def _passages_then(root: Path, commit_id: str, state: str, moment: str, wanted: ProvenanceFilter) -> frozenset[str]:
    """Return the passages that stood at a moment, of a commit and a state of the versions kept, as `_passages` does."""
    with Workspace(root).open_record() as record:
        return passages_that_stood(record.versions.stood(moment), wanted)
