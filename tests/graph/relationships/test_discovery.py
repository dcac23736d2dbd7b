"""Discovery (003): documents one or two concept steps away that were not viewed, on a graph worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import BadInput
from graph.relationships import discovery
from graph.relationships.discovery import Because, Discovery, discover
from graph.relationships.record import RelationshipRecord
from graph.schema import entity_id
from tests.graph.relationships.small_graph import (
    cite,
    concept,
    document,
    explains,
    related,
    small_record,
    user,
    viewed,
)


@pytest.fixture
def record(tmp_path: Path) -> RelationshipRecord:
    return small_record(tmp_path)


def counted(discoveries: list[Discovery]) -> dict[str, int]:
    return {each.id: each.relevance for each in discoveries}


class TestForAUser:
    def test_documents_count_by_concepts_one_or_two_steps_from_questions(self, record: RelationshipRecord) -> None:
        best = counted(discover(record, user_id="mia", as_published=True, k=10))
        assert list(best.items()) == [("d-yokohama", 2), ("d-alliance", 1), ("d-nissan", 1), ("d-port", 1)]
        three = counted(discover(record, user_id="mia", as_published=True))
        assert list(three) == ["d-yokohama", "d-alliance", "d-nissan"]
        assert discover(record, user_id="' OR ''='") == []

    def test_concepts_of_what_was_read_count_unless_it_was_no_help(self, record: RelationshipRecord) -> None:
        assert counted(discover(record, user_id="mia")) == {"d-alliance": 2, "d-nissan": 2, "d-yokohama": 2}
        record.link(viewed("mia", "d-renault", score=-1.0))
        assert counted(discover(record, user_id="mia")) == {"d-yokohama": 2, "d-alliance": 1, "d-nissan": 1}

    def test_each_comes_with_the_paths_that_led_there(self, record: RelationshipRecord) -> None:
        best = discover(record, user_id="mia", as_published=True, k=1)[0]
        assert (best.path, best.title) == ("d-yokohama.md", "D-Yokohama")
        near, far = best.paths
        assert (near.seed.because, near.name) == (Because.ASKED, "Nissan")
        assert [(step.relation, step.name) for step in near.steps] == [("SPATIAL", "Yokohama")]
        assert [(step.relation, step.name) for step in far.steps] == [("SPATIAL", "Yokohama"), ("HIERARCHICAL", "Port")]

    def test_a_path_from_what_was_read_names_the_document(self, record: RelationshipRecord) -> None:
        record.put_node(user("tom"))
        record.link(viewed("tom", "d-silk"))
        proposals = discover(record, user_id="tom")
        assert counted(proposals) == {"d-yokohama": 2, "d-nissan": 1, "d-port": 1}
        assert {path.seed.document for each in proposals for path in each.paths} == {"d-silk"}

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
        as_published = [each.id for each in discover(record, user_id="mia", k=20, as_published=True)]
        assert as_published.index("d-8") > as_published.index("d-0")


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
        assert discover(record, concepts=["entity-unknown", 'x"]; DROP TABLE concept; --']) == []

    def test_a_document_leads_from_what_it_explains_and_not_to_itself(self, record: RelationshipRecord) -> None:
        proposals = discover(record, document_id="d-silk", k=10)
        assert counted(proposals) == {"d-yokohama": 2, "d-nissan": 1, "d-port": 1}
        assert {(path.seed.because, path.seed.document) for each in proposals for path in each.paths} == {
            (Because.DOCUMENT, "d-silk")
        }
        assert "d-nissan" not in counted(discover(record, document_id="d-nissan", k=10))
        assert discover(record, document_id="unknown") == []

    def test_something_is_to_be_given(self, record: RelationshipRecord) -> None:
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
    record.link(related("Nissan", "Renault", confidence=0.5))
    assert counted(discover(record, user_id="mia", as_published=True)) == {"d-nissan": 1, "d-yokohama": 1}


NAMES = [f"C{number}" for number in range(6)]
DOCUMENTS = [f"d{number}" for number in range(5)]
PAIRS = st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda pair: pair[0] != pair[1])


@given(
    edges=st.sets(PAIRS, max_size=10),
    explained=st.sets(st.tuples(st.sampled_from(DOCUMENTS), st.sampled_from(NAMES)), max_size=12),
    read=st.sets(st.sampled_from(DOCUMENTS)),
    topic=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
)
def test_it_finds_what_the_search_of_003_finds(
    tmp_path_factory: pytest.TempPathFactory,
    edges: set[tuple[str, str]],
    explained: set[tuple[str, str]],
    read: set[str],
    topic: list[str],
) -> None:
    with RelationshipRecord.of(tmp_path_factory.mktemp("random"), create=True) as record:
        record.put_nodes([*map(concept, NAMES), *map(document, DOCUMENTS), user("u")])
        record.link_all(related(*pair) for pair in edges)
        record.link_all(explains(*pair) for pair in explained)
        record.link_all(viewed("u", key) for key in read)
        proposals = counted(
            discover(record, user_id="u", concepts=list(map(entity_id, topic)), as_published=True, k=10)
        )
    near = {name: {other for pair in edges for other in pair if name in pair and other != name} for name in NAMES}
    reached: set[str] = set()
    for seed in topic:
        reached |= near[seed] | {far for step in near[seed] for far in near[step] if far != seed}
    expected = {key: sum((key, name) in explained for name in reached) for key in DOCUMENTS if key not in read}
    assert proposals == {key: number for key, number in expected.items() if number}
