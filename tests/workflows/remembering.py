"""A small world whose relationship graph is in step, and its history read back."""

from __future__ import annotations

import shutil
from pathlib import Path

from graph.relationships import conversations
from graph.relationships.conversations import Message, View
from graph.relationships.documents import relate
from graph.relationships.record import RELATIONSHIPS_FILE, RelationshipRecord
from graph.storage.workspace import Workspace
from tests.workflows.hashed_world import hashed_world


def related_world(folder: Path) -> Path:
    """Index the small world into a workspace, and bring its relationship graph in step."""
    root = hashed_world(folder)
    bring_in_step(root)
    return root


def bring_in_step(root: Path) -> None:
    """Bring the relationship graph of a workspace in step with its passages."""
    workspace = Workspace(root)
    with workspace.writing(), workspace.open_record() as record:
        relate(workspace, record)


def copy_of(world: Path, folder: Path) -> Path:
    """Copy a workspace, for a test that writes to it."""
    return Path(shutil.copytree(world, folder / "workspace"))


def messages(root: Path, conversation: str) -> list[Message]:
    """Return the messages of a conversation in the history; none where there is no history."""
    if not (root / RELATIONSHIPS_FILE).exists():
        return []
    with RelationshipRecord.of(root) as record:
        return conversations.messages(record, conversation)


def views(root: Path, user: str) -> list[View]:
    """Return what a user viewed, by document."""
    with RelationshipRecord.of(root) as record:
        return sorted(conversations.views(record, user), key=lambda view: view.document)


def counts(root: Path) -> dict[str, int]:
    """Return how many nodes and edges of people a workspace holds, by type."""
    with RelationshipRecord.of(root) as record:
        found = record.counts()
    return {of: found[of] for of in ("User", "Message", "Conversation", "CREATED", "VIEWED", "FOLLOWS", "PART_OF")}
