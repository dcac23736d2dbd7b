"""What a filter lets be seen of the relationship graph, and what searches under it find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graph.relationships.conversation_search import conversation_search, documents_of_thread, thread_concepts
from graph.relationships.discovery import discover
from graph.relationships.documents import relate
from graph.relationships.profile import profile_of
from graph.relationships.record import RelationshipRecord
from graph.relationships.sight import Sight
from graph.retrieve.open_index import Index, open_index
from graph.retrieve.selection import Selection
from graph.schema import RelationType, entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace
from tests.graph.relationships.small_graph import conversation, say, user, viewed

PASSAGES = [
    passage_of("open", "Marn", "Marn lies by lake sund."),
    passage_of("hidden", "LAKE SUND", "LAKE SUND is salty. MARN FEEDS LAKE SUND."),
    passage_of("secret", "Project Orlo", "Project Orlo drained lake sund."),
]
TRIPLES: dict[str, list[TripleParts]] = {
    "open": [("Marn", "lies by", "lake sund", RelationType.SPATIAL)],
    "hidden": [
        ("MARN", "feeds", "LAKE SUND", RelationType.CAUSALITY),
        ("LAKE SUND", "is", "salty", RelationType.ATTRIBUTION),
    ],
    "secret": [("Project Orlo", "drained", "lake sund", RelationType.CAUSALITY)],
}
LAKE, MARN, ORLO = (entity_id(name) for name in ("Lake Sund", "Marn", "Project Orlo"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workspace = publish_workspace(tmp_path_factory.mktemp("sight"), PASSAGES, TRIPLES)
    with workspace.writing() as lock, workspace.open_record(lock) as record:
        relate(workspace, record)
    return workspace.root


@pytest.fixture(scope="module")
def index(workspace: Path) -> Iterator[Index]:
    index = open_index(workspace, HashEmbedder())
    yield index
    index.close()


@pytest.fixture(scope="module")
def record(workspace: Path) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(workspace) as record:
        record.put_nodes([user("mia"), conversation("thread")])
        say(record, "thread", "q", "Lake Sund", "Project Orlo", by="mia")
        record.link(viewed("mia", "secret"))
        yield record


@pytest.fixture(scope="module")
def sight(index: Index) -> Sight:
    return Sight(Selection.of(index.graph, index.graph.passages_of(["open"])))


def test_it_sees_what_selected_passages_say(sight: Sight) -> None:
    assert [sight.sees_document(key) for key in ("open", "hidden", "secret", "none")] == [True, False, False, False]
    assert [sight.sees_concept(key) for key in (LAKE, MARN, ORLO, "none")] == [True, True, False, False]
    assert sight.explaining([LAKE, ORLO]) == {LAKE: {"open"}}
    assert sight.label(LAKE) == "lake sund"
    assert sight.named("open") == ("open.txt", "Marn")


def test_a_relation_is_seen_with_the_types_of_facts_that_are_seen(sight: Sight, index: Index) -> None:
    everything = Sight(Selection.of(index.graph, index.graph.passages_of(["open", "hidden", "secret"])))
    assert everything.relations(MARN, LAKE) == {RelationType.SPATIAL, RelationType.CAUSALITY}
    assert sight.relations(MARN, LAKE) == sight.relations(LAKE, MARN) == {RelationType.SPATIAL}
    assert sight.relations(ORLO, LAKE) == sight.relations("none", LAKE) == frozenset()


def test_hidden_concepts_of_a_thread_do_not_count(record: RelationshipRecord, sight: Sight) -> None:
    assert sorted(thread_concepts(record, "thread")) == sorted([LAKE, ORLO])
    assert list(thread_concepts(record, "thread", sight)) == [LAKE]
    assert documents_of_thread(record, "thread", sight) == {"open": 1}
    (only,) = conversation_search(record, "thread", {"open": 0.1, "hidden": 0.9, "secret": 0.9}, sight=sight)
    assert (only.id, only.relevance) == ("open", 1.0)


def test_discovery_goes_no_way_that_is_hidden(record: RelationshipRecord, sight: Sight) -> None:
    assert {each.id for each in discover(record, concepts=[ORLO])} == {"open", "hidden", "secret"}
    assert discover(record, concepts=[ORLO], sight=sight) == []
    (only,) = discover(record, user_id="mia", sight=sight)
    assert only.id == "open"
    assert [(path.name, [step.name for step in path.steps]) for path in only.paths] == [("lake sund", ["marn"])]


def test_discovery_starts_from_nothing_read_in_hiding(record: RelationshipRecord, index: Index, sight: Sight) -> None:
    """The secret names Lake Sund, and so does an open passage; that the user read the secret stays untold."""
    record.put_node(user("tom"))
    record.link(viewed("tom", "secret"))
    assert any(path.document == "secret" for each in discover(record, user_id="tom") for path in each.paths)
    assert discover(record, user_id="tom", sight=sight) == []


def test_a_profile_holds_nothing_that_is_hidden(record: RelationshipRecord, sight: Sight) -> None:
    record.link(viewed("mia", "secret", score=1.0))
    whole, seen = profile_of(record, "mia"), profile_of(record, "mia", sight)
    assert {ORLO, LAKE} <= whole.interests.keys()
    assert whole.marks.keys() == {"secret"}
    assert seen.interests.keys() == {LAKE}
    assert seen.marks == {}
