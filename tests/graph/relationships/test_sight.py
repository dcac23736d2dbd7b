"""What a filter lets be seen of the relationship graph, and what searches under it find."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graph.errors import BadInput, EmbeddingMismatch, MissingEndpoint
from graph.relationships.conversation_search import conversation_search, documents_of_thread, thread_concepts
from graph.relationships.discovery import discover
from graph.relationships.documents import relate
from graph.relationships.profile import profile_of
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.relationships.sight import Sight
from graph.relationships.vector_search import search_chunks
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
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    index = open_index(_workspace(tmp_path_factory.mktemp("sight")), HashEmbedder())
    yield index
    index.close()


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RelationshipRecord]:
    with RelationshipRecord.of(_workspace(tmp_path_factory.mktemp("sight-record"))) as record:
        record.put_nodes([user("mia"), conversation("thread")])
        say(record, "thread", "q", "Lake Sund", "Project Orlo", by="mia")
        record.link(viewed("mia", "secret"))
        yield record


@pytest.fixture(scope="module")
def sight(index: Index) -> Sight:
    return Sight(Selection.of(index.graph, index.graph.passages_of(["open"])))


def _workspace(root: Path) -> Path:
    workspace = publish_workspace(root, PASSAGES, TRIPLES)
    with workspace.writing() as lease, workspace.open_record(lease) as record:
        relate(workspace, record)
    return root


def test_it_sees_what_selected_passages_say(sight: Sight) -> None:
    assert [sight.sees_document(key) for key in ("open", "hidden", "secret", "none")] == [True, False, False, False]
    assert [sight.sees_concept(key) for key in (LAKE, MARN, ORLO, "none")] == [True, True, False, False]
    assert sight.explaining([LAKE, ORLO]) == {LAKE: {"open"}}
    assert sight.label(LAKE) == "lake sund"


def test_a_relation_is_seen_with_the_types_of_facts_that_are_seen(sight: Sight, index: Index) -> None:
    everything = Sight(Selection.of(index.graph, index.graph.passages_of(["open", "hidden", "secret"])))
    assert everything.relations(MARN, LAKE) == {RelationType.SPATIAL, RelationType.CAUSALITY}
    assert sight.relations(MARN, LAKE) == sight.relations(LAKE, MARN) == {RelationType.SPATIAL}
    assert sight.relations(ORLO, LAKE) == sight.relations("none", LAKE) == frozenset()


def test_hidden_concepts_of_a_thread_do_not_count(record: RelationshipRecord, sight: Sight) -> None:
    assert sorted(thread_concepts(record, "thread")) == sorted([LAKE, ORLO])
    assert list(thread_concepts(record, "thread", sight)) == [LAKE]
    assert documents_of_thread(record, "thread", sight) == {"open": 1}
    found = conversation_search(record, "thread", {"open": 0.1, "hidden": 0.9, "secret": 0.9}, sight=sight)
    assert [(each.id, each.relevance) for each in found] == [("open", 1.0)]


def test_discovery_goes_no_way_that_is_hidden(record: RelationshipRecord, sight: Sight) -> None:
    assert {each.id for each in discover(record, concepts=[ORLO])} == {"open", "hidden", "secret"}
    assert discover(record, concepts=[ORLO], sight=sight) == []
    (found,) = discover(record, user_id="mia", sight=sight)
    assert found.id == "open"
    assert [(path.name, [step.name for step in path.steps]) for path in found.paths] == [("lake sund", ["marn"])]


def test_discovery_starts_from_nothing_that_was_read_in_hiding(
    record: RelationshipRecord, index: Index, sight: Sight
) -> None:
    """Who read the secret knows of Lake Sund, which an open passage names as well; that they read it stays untold."""
    record.put_node(user("tom"))
    record.link(viewed("tom", "secret"))
    assert any(path.seed.document == "secret" for each in discover(record, user_id="tom") for path in each.paths)
    assert discover(record, user_id="tom", sight=sight) == []


def test_documents_are_called_as_their_seen_passages_are(sight: Sight) -> None:
    assert sight.named("open") == ("open.txt", "Marn")


def test_a_profile_holds_nothing_that_is_hidden(record: RelationshipRecord, sight: Sight) -> None:
    whole, seen = profile_of(record, "mia"), profile_of(record, "mia", sight)
    assert {ORLO, LAKE} <= whole.concepts.keys()
    assert seen.concepts.keys() == {LAKE}
    assert seen.documents == {}


class TestSearchingByVector:
    def test_the_nearest_chunks_come_with_similarity_and_distance(
        self, record: RelationshipRecord, index: Index
    ) -> None:
        vector = index.graph.passage_vectors[index.graph.passage_index["open"]]
        found = search_chunks(record, index, 3 * vector)
        assert len(found) == 3
        assert (found[0].chunk.type, found[0].chunk.id) == (NodeType.CHUNK, "open")
        assert (found[0].similarity, found[0].distance) == (1.0, 0.0)
        assert all(each.distance == 1 - each.similarity for each in found)
        assert [each.similarity for each in found] == sorted((each.similarity for each in found), reverse=True)

    def test_k_and_a_selection_bound_what_is_found(self, record: RelationshipRecord, index: Index) -> None:
        vector = index.graph.passage_vectors[0]
        assert len(search_chunks(record, index, vector, 1)) == 1
        selection = Selection.of(index.graph, index.graph.passages_of(["open"]))
        assert [each.chunk.id for each in search_chunks(record, index, vector, selection=selection)] == ["open"]

    def test_a_vector_has_a_direction_and_the_length_of_the_others(
        self, record: RelationshipRecord, index: Index
    ) -> None:
        for bad in (np.zeros(64), np.full(64, np.nan), np.full(64, np.inf)):
            with pytest.raises(BadInput, match="no direction"):
                search_chunks(record, index, bad)
        with pytest.raises(EmbeddingMismatch):
            search_chunks(record, index, np.ones(3))
        with pytest.raises(BadInput, match="0 chunks"):
            search_chunks(record, index, np.ones(64), 0)

    def test_a_chunk_that_the_graph_lacks_is_told(self, index: Index, tmp_path: Path) -> None:
        with (
            RelationshipRecord.of(tmp_path, create=True) as empty,
            pytest.raises(MissingEndpoint, match="no DocumentChunk"),
        ):
            search_chunks(empty, index, np.ones(64))
