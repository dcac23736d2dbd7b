"""Searching documents: by similarity and by what a conversation is about, within the settings' filter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graph.errors import BadInput, NoAccess
from graph.relationships.cypher.copies import open_copy
from graph.relationships.cypher.queries import CONVERSATION_SEARCH
from graph.relationships.record import RelationshipRecord
from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world, talk
from tests.workflows.workspaces import use_embedder
from workflows.context import Context
from workflows.document_search import search_documents
from workflows.runtime.resources import close_indexes

TEXT = "Who founded the Amstel Office?"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    use_embedder(monkeypatch, HashEmbedder())
    world = reading_world(tmp_path)
    talk(world, "of mia", TEXT, "mia", ["of-a-two"])
    talk(world, "of nobody", "Who paid for Project Zember?", cited=["of-b-two"])
    yield world
    close_indexes()


def found(root: Path, k: int = 20, keep: str = "", **settings: Any) -> dict[str, dict[str, Any]]:
    documents = search_documents(Context(workspace=str(root), **settings), TEXT, k, keep)["documents"]
    return {each["id"]: each for each in documents}


def counts(root: Path) -> dict[str, int]:
    with RelationshipRecord.of(root) as record:
        return record.counts()


def test_without_a_conversation_documents_come_by_similarity(root: Path) -> None:
    similarities = [each["similarity"] for each in found(root).values()]
    assert similarities == sorted(similarities, reverse=True)
    assert counts(root)["Query"] == 0


def test_what_a_conversation_mentions_counts_by_three_tenths(root: Path) -> None:
    plain, aware = found(root), found(root, conversation_id="of nobody")
    assert any(each["concepts"] for each in aware.values())
    for key, each in aware.items():
        assert each["score"] == pytest.approx(0.7 * plain[key]["similarity"] + 0.3 * each["relevance"], abs=1e-5)


def test_what_a_filter_hides_is_not_found(root: Path) -> None:
    assert {key[:4] for key in found(root, where={"tenant": "a"})} == {"of-a"}


def test_a_conversation_of_somebody_else_is_refused(root: Path) -> None:
    with pytest.raises(NoAccess):
        found(root, conversation_id="of mia", user_id="tom")


def test_one_that_is_kept_can_be_asked_in_cypher(root: Path) -> None:
    kept = found(root, k=5, keep="founders", conversation_id="of nobody")
    assert counts(root)["SIMILARITY"] == len(kept) > 1
    with open_copy(root) as copy:
        rows = copy.query(CONVERSATION_SEARCH, {"query_id": "founders", "conversation_id": "of nobody"}).rows
    assert {row[0] for row in rows} == set(kept)


def test_one_of_a_user_is_not_kept_since_forgetting_would_not_find_it(root: Path) -> None:
    with pytest.raises(BadInput, match="belongs to nobody"):
        found(root, keep="mine", user_id="mia")
    assert counts(root)["Query"] == 0
