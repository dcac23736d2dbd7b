"""Examining the relationship graph of a workspace: whether it can be read, is whole, and in step with the record."""

from __future__ import annotations

from graph.checks.findings import Finding, judged, leftover, lost, sound
from graph.errors import MaraError
from graph.relationships.documents import is_in_step
from graph.relationships.record import RelationshipRecord, has_relationships
from graph.relationships.schema import NodeType
from graph.storage.place import RELATIONSHIPS_FILE
from graph.storage.record import Record
from graph.storage.workspace import Workspace

RELATIONSHIPS = "relationship graph"
"""The name of the check."""

_RESTORE = f"Restore {RELATIONSHIPS_FILE} from a backup, or delete it: conversations and views in it are then lost"


def check_relationships(workspace: Workspace, record: Record) -> Finding:
    """Look at the relationship graph, if there is one; nothing is written.

    What indexing derived can be put right; what conversations wrote cannot.
    """
    if not has_relationships(workspace.root):
        return sound(RELATIONSHIPS, "The workspace has none")
    try:
        with RelationshipRecord.of(workspace.root, read_only=True) as relationships:
            if faults := relationships.faults_found():
                return lost(RELATIONSHIPS, f"SQLite finds faults in {RELATIONSHIPS_FILE}", _RESTORE, faults)
            return _compare(relationships, record)
    except MaraError as fault:
        return lost(RELATIONSHIPS, fault.message, fault.hint or _RESTORE)


def _compare(relationships: RelationshipRecord, record: Record) -> Finding:
    if not is_in_step(relationships, record):
        return leftover(RELATIONSHIPS, "It is not in step with the passages", [])
    chunks = dict(relationships.execute("SELECT id, fingerprint FROM document_chunk"))
    passages = record.fingerprints()
    wrong = {key for key in chunks.keys() | passages.keys() if chunks.get(key) != passages.get(key)}
    wrong |= {key for (key,) in relationships.execute(_ORPHANS)}
    counts = relationships.counts()
    told = ", ".join(f"{counts[of]:,} {name}" for of, name in _TOLD.items())
    problem = f"It does not hold the passages and their documents as they are, in {len(wrong)} places"
    return judged(RELATIONSHIPS, wrong, problem, f"In step with the passages: {told}")


_ORPHANS = (
    "SELECT id FROM document_chunk WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE source = key)"
    " UNION SELECT id FROM document WHERE NOT EXISTS (SELECT 1 FROM chunk_of WHERE target = key)"
)
_TOLD = {NodeType.DOCUMENT: "documents", NodeType.CONCEPT: "concepts", NodeType.MESSAGE: "messages"}
