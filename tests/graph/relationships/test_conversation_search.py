"""Conversation-aware search (003): the mix of similarity and concepts, on a graph worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput
from graph.relationships.conversation_search import (
    conversation_search,
    documents_of_thread,
    relevances,
    thread_concepts,
)
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from tests.graph.relationships.small_graph import EXPLAINED, conversation, small_record

SIMILARITIES = {"d-plain": 0.9, "d-nissan": 0.8, "d-alliance": 0.5, "d-renault": 0.6, "d-port": 0.1, "d-silk": 0.05}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RelationshipRecord:
    return small_record(tmp_path_factory.mktemp("small"))


def ranked(record: RelationshipRecord, thread: str, similarities: dict[str, float]) -> list[str]:
    return [each.id for each in conversation_search(record, thread, similarities)]


def test_documents_count_by_how_many_concepts_of_the_thread_they_explain() -> None:
    assert relevances({"a": 1, "b": 4}) == {"a": 0.25, "b": 1.0}
    assert relevances({}) == {}


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
        for thread in ("new", "empty", "' OR 1=1 --", "thread' UNION SELECT id, 9 FROM user --"):
            assert ranked(record, thread, SIMILARITIES) == ["d-plain", "d-nissan", "d-renault", "d-alliance", "d-port"]

    def test_what_is_no_number_is_refused(self, record: RelationshipRecord) -> None:
        for similarity in (math.nan, math.inf):
            with pytest.raises(BadInput, match="no finite number"):
                conversation_search(record, "thread", {"d-plain": similarity})
        with pytest.raises(BadInput, match="0 documents"):
            conversation_search(record, "thread", SIMILARITIES, k=0)

    @given(st.dictionaries(st.sampled_from(sorted(EXPLAINED)), st.floats(-1, 1)))
    def test_concepts_never_lower_a_score(self, record: RelationshipRecord, similarities: dict[str, float]) -> None:
        plain, mixed = (
            {each.id: each.score for each in conversation_search(record, thread, similarities, len(EXPLAINED))}
            for thread in ("new", "thread")
        )
        assert plain.keys() == mixed.keys() == similarities.keys()
        assert all(plain[key] <= mixed[key] <= plain[key] + 0.3 + 1e-12 for key in plain)


def test_a_record_that_is_open_elsewhere_is_read_as_it_was_written_last(tmp_path: Path) -> None:
    with small_record(tmp_path), RelationshipRecord.of(tmp_path) as other:
        assert documents_of_thread(other, "thread")["d-alliance"] == 2
