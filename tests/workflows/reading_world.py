"""The passages of two tenants in one workspace, with its relationship graph, and what people did there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from graph.relationships.concepts import SpelledConcepts
from graph.relationships.conversations import Cited
from graph.relationships.history import NewTurn, now, record_turn, track_user_viewed_document
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import Node, NodeType
from tests.builders import HashEmbedder
from tests.workflows.tenants import CORPORA
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.indexing import index_sources
from workflows.runtime.resources import open_workspace_index


def reading_world(folder: Path) -> Path:
    """Index the tenants' passages; a question to them must use the same embedder."""
    rows = [{**row, "tenant": tenant} for tenant, own in CORPORA.items() for row in own]
    corpus = folder / "corpus.jsonl"
    corpus.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        use_embedder(patch, HashEmbedder())
        index_sources([corpus], folder / "workspace")
    return folder / "workspace"


def read(root: Path, user: str, *documents: str) -> None:
    """Let a user view documents."""
    with RelationshipRecord.of(root) as record:
        record.put_node(Node(NodeType.USER, user, {"created_at": now()}))
        for document in documents:
            track_user_viewed_document(record, user, document)


def talk(root: Path, conversation: str, question: str, user: str = "", cited: Sequence[str] = ()) -> None:
    """Write a turn of a conversation, whose answer cites passages."""
    concepts = SpelledConcepts(open_workspace_index(Context(workspace=str(root))).graph)
    marks = [Cited(number, key) for number, key in enumerate(cited, start=1)]
    at = now()
    turn = NewTurn(question, question, "-", at, at, conversation, user, cited=marks)
    with RelationshipRecord.of(root) as record:
        record_turn(record, turn, concepts)
