"""Discovery (003): documents one or two concept steps away that were not viewed, on a graph worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.relationships import discovery
from graph.relationships.discovery import Because, Discovery, discover
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from tests.graph.relationships.small_graph import cite, concept, document, explains, related, small_record, viewed


@pytest.fixture
def record(tmp_path: Path) -> RelationshipRecord:
    return small_record(tmp_path)


def counted(discoveries: list[Discovery]) -> dict[str, int]:
    return {each.id: each.relevance for each in discoveries}


class TestForAUser:
    def test_documents_count_by_concepts_one_or_two_steps_from_questions(self, record: RelationshipRecord) -> None:
        record.link(viewed("mia", "d-renault", score=-1.0))
        best = counted(discover(record, user_id="mia", k=10))
        assert list(best.items()) == [("d-yokohama", 2), ("d-alliance", 1), ("d-nissan", 1), ("d-port", 1)]
        assert list(counted(discover(record, user_id="mia"))) == ["d-yokohama", "d-alliance", "d-nissan"]

    def test_concepts_of_what_was_read_count_unless_it_was_no_help(self, record: RelationshipRecord) -> None:
        assert counted(discover(record, user_id="mia")) == {"d-alliance": 2, "d-nissan": 2, "d-yokohama": 2}
        record.link(viewed("mia", "d-renault", score=-1.0))
        assert counted(discover(record, user_id="mia")) == {"d-yokohama": 2, "d-alliance": 1, "d-nissan": 1}

    def test_each_comes_with_the_paths_that_led_there(self, record: RelationshipRecord) -> None:
        record.link(viewed("mia", "d-renault", score=-1.0))
        best = discover(record, user_id="mia", k=1)[0]
        assert (best.path, best.title) == ("d-yokohama.md", "D-Yokohama")
        near, far = best.paths
        assert (near.because, near.name) == (Because.ASKED, "Nissan")
        assert [(step.relation, step.name) for step in near.steps] == [("SPATIAL", "Yokohama")]
        assert [(step.relation, step.name) for step in far.steps] == [("SPATIAL", "Yokohama"), ("HIERARCHICAL", "Port")]

    def test_a_year_that_two_documents_share_leads_from_none_to_the_other(self, record: RelationshipRecord) -> None:
        before = discover(record, user_id="mia", k=10)
        record.put_nodes([concept("1933"), document("d-of-that-year")])
        record.link_all([related("Nissan", "1933", "TEMPORAL"), explains("d-of-that-year", "1933")])
        assert discover(record, user_id="mia", k=10) == before

    def test_the_common_leads_to_nothing_before_the_rare(self, record: RelationshipRecord) -> None:
        record.put_nodes([concept("Europe"), concept("Keel"), *(document(f"d-{n}") for n in range(9))])
        record.link_all(related("Nissan", name) for name in ("Europe", "Keel"))
        record.link_all([*(explains(f"d-{n}", "Europe") for n in range(8)), explains("d-8", "Keel")])
        proposals = [each.id for each in discover(record, user_id="mia", k=20)]
        assert proposals.index("d-8") < proposals.index("d-0")


def test_a_conversation_is_proposed_neither_what_it_cites_nor_what_its_user_viewed(record: RelationshipRecord) -> None:
    def proposed(user_id: str = "") -> dict[str, int]:
        return counted(discover(record, conversation_id="thread", user_id=user_id, k=10))

    assert {"d-yokohama", "d-renault"} <= proposed().keys()
    assert "d-renault" not in proposed("mia")
    cite(record, "m2", "d-yokohama")
    assert "d-yokohama" not in proposed()


class TestForATopic:
    def test_a_seed_counts_only_where_another_seed_leads_to_it(self, record: RelationshipRecord) -> None:
        silk, port = entity_id("Silk"), entity_id("Port")
        assert counted(discover(record, concepts=[silk], k=10)) == {"d-yokohama": 2, "d-nissan": 1, "d-port": 1}
        assert counted(discover(record, concepts=[silk, port], k=10))["d-silk"] == 1
        assert discover(record, concepts=["entity-unknown"]) == []

    def test_a_document_leads_from_what_it_explains_and_not_to_itself(self, record: RelationshipRecord) -> None:
        proposals = discover(record, document_id="d-silk", k=10)
        assert counted(proposals) == {"d-yokohama": 2, "d-nissan": 1, "d-port": 1}
        assert {(path.because, path.document) for each in proposals for path in each.paths} == {
            (Because.DOCUMENT, "d-silk")
        }
        assert "d-nissan" not in counted(discover(record, document_id="d-nissan", k=10))
        assert discover(record, document_id="unknown") == []

    def test_something_leads_on(self, record: RelationshipRecord) -> None:
        with pytest.raises(BadInput, match="Nothing tells"):
            discover(record)
        with pytest.raises(BadInput, match="0 documents"):
            discover(record, concepts=[entity_id("Silk")], k=0)


def test_the_surest_best_and_nearest_are_followed(record: RelationshipRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    nissan = [entity_id("Nissan")]
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "DOCUMENT_LIMIT", 1)
        assert counted(discover(record, concepts=nissan)) == {"d-renault": 2, "d-port": 1, "d-yokohama": 1}
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "CONCEPT_LIMIT", 2)
        nearest = discover(record, concepts=nissan, k=10)
        assert {len(path.steps) for each in nearest for path in each.paths} == {1}
    monkeypatch.setattr(discovery, "NEIGHBOUR_LIMIT", 1)
    record.link_all([related("Nissan", "Renault", confidence=0.5), viewed("mia", "d-renault", score=-1.0)])
    assert counted(discover(record, user_id="mia")) == {"d-nissan": 1, "d-yokohama": 1}
