"""Conversation-aware search: the mix of similarity and concepts, on a graph worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from graph.errors import BadInput, EmbeddingMismatch
from graph.relationships.conversation_search import (
    conversation_search,
    documents_of_thread,
    search_chunks,
    thread_concepts,
)
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from graph.storage.workspace import Workspace
from tests.builders import passage_of, publish_workspace
from tests.graph.relationships.small_graph import conversation, small_record

SIMILARITIES = {"d-plain": 0.9, "d-nissan": 0.8, "d-alliance": 0.5, "d-renault": 0.6, "d-port": 0.1, "d-silk": 0.05}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RelationshipRecord:
    return small_record(tmp_path_factory.mktemp("small"))


def ranked(record: RelationshipRecord, thread: str, similarities: dict[str, float]) -> list[str]:
    return [each.id for each in conversation_search(record, thread, similarities)]


class TestSearching:
    def test_scores_are_seven_parts_similarity_and_three_parts_concepts(self, record: RelationshipRecord) -> None:
        assert sorted(thread_concepts(record, "thread")) == sorted([entity_id("Nissan"), entity_id("Renault")])
        assert documents_of_thread(record, "thread") == {"d-nissan": 1, "d-renault": 1, "d-alliance": 2}
        ranking = conversation_search(record, "thread", SIMILARITIES)
        assert [(each.id, each.concepts, round(each.score, 12)) for each in ranking] == [
            ("d-nissan", 1, 0.71),
            ("d-alliance", 2, 0.65),
            ("d-plain", 0, 0.63),
            ("d-renault", 1, 0.57),
            ("d-port", 0, 0.07),
        ]
        assert (ranking[0].path, ranking[0].title, ranking[0].relevance) == ("d-nissan.md", "D-Nissan", 0.5)

    def test_documents_with_a_similarity_are_found_ties_in_the_order_of_ids(self, record: RelationshipRecord) -> None:
        assert ranked(record, "thread", {"d-plain": 0.1}) == ["d-plain"]
        alike = dict.fromkeys(("d-silk", "d-port", "d-plain"), 0.5)
        assert ranked(record, "thread", alike) == ["d-plain", "d-port", "d-silk"]

    def test_a_thread_that_mentions_nothing_ranks_by_similarity(self, record: RelationshipRecord) -> None:
        record.put_node(conversation("empty"))
        for thread in ("new", "empty"):
            assert ranked(record, thread, SIMILARITIES) == ["d-plain", "d-nissan", "d-renault", "d-alliance", "d-port"]

    def test_what_is_no_number_is_refused(self, record: RelationshipRecord) -> None:
        for similarity in (math.nan, math.inf):
            with pytest.raises(BadInput, match="no finite number"):
                conversation_search(record, "thread", {"d-plain": similarity})
        with pytest.raises(BadInput, match="0 documents"):
            conversation_search(record, "thread", SIMILARITIES, k=0)


def test_the_chunks_nearest_to_a_vector_are_found(tmp_path: Path, record: RelationshipRecord) -> None:
    workspace: Workspace = publish_workspace(tmp_path, [passage_of(f"p{n}", f"T{n}", f"Text {n}.") for n in range(3)])
    with workspace.open_record() as passages:
        vectors = {entry.passage.id: entry.vector.astype(float) for entry in passages.entries()}
    wanted = vectors["p1"]
    best = sorted(vectors, key=lambda key: (-(vectors[key] @ wanted), key))[:2]
    with RelationshipRecord.of(tmp_path, create=True) as published:
        found = search_chunks(published, [3 * number for number in wanted], k=2)
        assert [each.id for each in found] == best
        assert found[0].content == "Text 1."
        assert found[0].similarity == pytest.approx(1)
        assert found[1].distance == pytest.approx(1 - vectors[best[1]] @ wanted)
        with pytest.raises(EmbeddingMismatch):
            search_chunks(published, [1.0, 0.0])
        with pytest.raises(BadInput, match="no direction"):
            search_chunks(published, [0.0] * len(wanted))
    with pytest.raises(BadInput, match="no vectors"):
        search_chunks(record, [1.0])
