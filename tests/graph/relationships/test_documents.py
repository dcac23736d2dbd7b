"""The relationship graph stays in step with the record of passages, whatever comes, changes, goes or is interrupted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.construction.build import derive_graph
from graph.errors import BadInput
from graph.moments import first_moment
from graph.relationships import documents
from graph.relationships.documents import METRIC, InStep, bring_in_step, forget_step, is_in_step, relate
from graph.relationships.provenance import source_id
from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NODES, Edge, EdgeType, Node, NodeType, PropertyValue, time_text
from graph.schema import Passage, RelationType, entity_id
from graph.storage.writer import Writer
from tests.builders import HashEmbedder, extraction_of, passage_of, publish_workspace, write_passages
from tests.graph.relationships.small_graph import FIRST, LATER, Facts, Step
from tests.relationship_graphs import NOON, PAIRS, sample_node


def content_of(record: RelationshipRecord) -> dict[str, Any]:
    """Return all nodes and edges, without times and versions, which tell how it came to be so."""
    of_times = {"created_at", "updated_at", "version"}
    nodes = {
        (of.value, node.id): {name: value for name, value in node.properties.items() if name not in of_times}
        for of in NODES
        for node in record.nodes(of)
    }
    edges = {
        (edge.type.value, edge.source, edge.target): edge.properties for pair in PAIRS for edge in record.edges(*pair)
    }
    return {**nodes, **edges}  # type: ignore[dict-item]


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path / "workspace")


NISSAN = Passage("nissan", "Nissan", "Nissan was founded in Yokohama.", "cars.jsonl")
DATSUN = Passage("datsun", "Datsun", "Datsun was a brand of Nissan.", "cars.jsonl")
CARS: Facts = {
    "nissan": [("Nissan", "founded in", "Yokohama", RelationType.SPATIAL, 0.9)],
    "datsun": [("Datsun", "brand of", "Nissan", RelationType.HIERARCHICAL, 0.8)],
}
PAGE = Passage(
    "page", "Velm", "The Velm is a river.", "https://ex.org/velm", {"references": "https://ex.org/marn https://b.org/"}
)


class TestWhatIsWritten:
    def test_documents_come_with_their_source_chunks_and_vectors(self, step: Step) -> None:
        step.write([NISSAN, DATSUN, PAGE], CARS)
        assert step.take() == InStep(new=3, chunks=3)
        assert step.properties(NodeType.DOCUMENT, "nissan") == {
            "path": "cars.jsonl",
            "title": "Nissan",
            "content_type": "application/jsonl",
            "created_at": time_text(FIRST),
            "updated_at": time_text(FIRST),
            "version": 1,
        }
        file, site = source_id("cars.jsonl"), source_id("https://ex.org/velm")
        for of, source, target in (
            (EdgeType.CHUNK_OF, (NodeType.CHUNK, "nissan"), (NodeType.DOCUMENT, "nissan")),
            (EdgeType.SOURCED_FROM, (NodeType.DOCUMENT, "nissan"), (NodeType.SOURCE, file)),
            (EdgeType.SOURCED_FROM, (NodeType.DOCUMENT, "page"), (NodeType.SOURCE, site)),
            (EdgeType.EMBEDDING_OF, (NodeType.VECTOR, "datsun"), (NodeType.CHUNK, "datsun")),
            (EdgeType.STORED_IN, (NodeType.VECTOR, "datsun"), (NodeType.VECTOR_STORE, "hash")),
        ):
            assert (source, target) in [(edge.source, edge.target) for edge in step.to.edges(of, source[0], target[0])]
        store = {"model": "hash", "dimension": HashEmbedder.dimension, "metric": METRIC}
        assert step.properties(NodeType.VECTOR_STORE, "hash") == store
        references = step.to.edges(EdgeType.REFERENCES, NodeType.DOCUMENT, NodeType.SOURCE)
        linked = {source_id("https://ex.org/marn"), source_id("https://b.org/")}
        assert {edge.target[1] for edge in references} == linked
        assert step.properties(NodeType.CONCEPT, entity_id("Nissan"))["name"] == "Nissan"


class TestAgain:
    def test_only_what_differs_is_written(self, step: Step) -> None:
        step.write([NISSAN, DATSUN], CARS)
        step.take()
        content, revision = content_of(step.to), step.to.revision
        assert step.take(LATER) == InStep()
        assert step.to.revision == revision
        step.to.remove_nodes(NodeType.CONCEPT, [entity_id("Yokohama")])
        forget_step(step.to)
        assert step.counts() == (0, 0, 0)
        assert content_of(step.to) == content
        document = step.properties(NodeType.DOCUMENT, "nissan")
        assert (document["updated_at"], document["version"]) == (time_text(FIRST), 1)

    def test_a_graph_of_another_commit_is_refused(self, step: Step) -> None:
        step.write([NISSAN])
        graph = derive_graph(step.record)
        step.write([DATSUN])
        with pytest.raises(BadInput, match="another commit"):
            bring_in_step(step.to, step.record, graph)
        assert not any(step.to.counts().values())


class TestChanges:
    def test_what_is_gone_goes_with_its_sources_and_concepts_and_messages_stay(self, step: Step) -> None:
        step.write([NISSAN, DATSUN, PAGE], CARS)
        step.take()
        step.to.put_node(sample_node(NodeType.MESSAGE, "m"))
        for of, key in ((NodeType.DOCUMENT, "page"), (NodeType.CHUNK, "page"), (NodeType.DOCUMENT, "nissan")):
            step.to.link(Edge(EdgeType.REFERENCES, (NodeType.MESSAGE, "m"), (of, key), {"number": 1}))
        step.write([], removed=["page"])
        changes = step.take()
        assert (changes.new, changes.changed, changes.gone, changes.chunks) == (0, 0, 1, 0)
        assert step.to.counts()[NodeType.SOURCE] == 1
        assert step.to.node(NodeType.CONCEPT, entity_id("Velm")) is None
        assert step.to.node(NodeType.MESSAGE, "m") is not None
        assert len(list(step.to.edges(EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.DOCUMENT))) == 1
        assert not list(step.to.edges(EdgeType.REFERENCES, NodeType.MESSAGE, NodeType.CHUNK))

    def test_what_is_only_extracted_anew_is_the_same_version(self, step: Step) -> None:
        step.write([NISSAN], CARS)
        step.take()
        batch = [(NISSAN, extraction_of([("Nissan", "is", "maker", RelationType.HIERARCHICAL)]))]
        Writer(step.record, HashEmbedder()).write(batch)
        assert step.take(LATER) == InStep(chunks=1)
        document = step.properties(NodeType.DOCUMENT, "nissan")
        assert (document["version"], document["updated_at"]) == (1, time_text(FIRST))
        assert step.to.node(NodeType.CONCEPT, entity_id("maker")) is not None

    def test_an_edited_file_keeps_its_node_and_what_was_viewed_of_it(self, step: Step) -> None:
        before, other = (
            Passage(key, "Velm", f"The Velm is {key}.", f"{path}.txt", {"document": f"of {key}"})
            for key, path in (("long", "velm"), ("short", "marn"))
        )
        step.write([before, other])
        step.take()
        step.to.put_node(Node(NodeType.USER, "anna", {"created_at": NOON}))
        viewed: dict[str, PropertyValue] = {"view_count": 2, "first_viewed_at": NOON, "last_viewed_at": NOON}
        step.to.link(Edge(EdgeType.VIEWED, (NodeType.USER, "anna"), (NodeType.DOCUMENT, "of long"), viewed))
        step.write([replace(before, id="wide", metadata={"document": "of wide"})], removed=["long"])
        assert step.counts() == (0, 1, 0)
        assert step.to.node(NodeType.DOCUMENT, "of long") is None
        document = step.properties(NodeType.DOCUMENT, "of wide")
        times = document["created_at"], document["updated_at"]
        assert (document["version"], *times) == (2, time_text(FIRST), time_text(LATER))
        (seen,) = step.to.edges(EdgeType.VIEWED, NodeType.USER, NodeType.DOCUMENT)
        assert (seen.target[1], seen.properties["view_count"]) == ("of wide", 2)


KEYS = [f"p{n}" for n in range(5)]
NAMES = ["Velm", "Marn", "Sund", "Orlo"]
VERSIONS = st.dictionaries(
    st.sampled_from(KEYS),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from(list(RelationType)[:5]), st.booleans()),
)


def version_of(wanted: Mapping[str, tuple[str, str, RelationType, bool]]) -> tuple[list[Passage], dict[str, Any]]:
    passages = [
        Passage(key, title, f"{title} and {name}.", f"{title}.txt", {"document": f"doc-{title}"} if in_file else {})
        for key, (title, name, _, in_file) in wanted.items()
    ]
    facts = {key: [(title, "of", name, relation)] for key, (title, name, relation, _) in wanted.items()}
    return passages, facts


class TestInterruption:
    @given(st.lists(st.tuples(VERSIONS, st.booleans()), min_size=1, max_size=5))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8, deadline=None)
    def test_whatever_was_interrupted_the_next_step_ends_as_a_fresh_one(
        self, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, bool]]
    ) -> None:
        step = Step(tmp_path_factory.mktemp("step"))
        for wanted, is_stopped in steps:
            passages, facts = version_of(wanted)
            step.write(passages, facts, [key for key in step.record.fingerprints() if key not in wanted])
            with pytest.MonkeyPatch.context() as patch:
                if is_stopped:
                    patch.setattr(documents, "_drop_computed", stop)
                try:
                    step.take()
                except KeyboardInterrupt:
                    assert not is_in_step(step.to, step.record)
        step.take(LATER)
        fresh = Step(tmp_path_factory.mktemp("fresh"))
        fresh.write(passages, facts)
        fresh.take()
        assert content_of(step.to) == content_of(fresh.to) if wanted else step.to.counts()[NodeType.DOCUMENT] == 0


def stop(*_: Any) -> None:
    """Stop as a kill would."""
    raise KeyboardInterrupt


def test_a_workspace_that_was_emptied_has_no_documents(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path / "workspace", [passage_of("p", "Velm", "A river.")])
    with workspace.open_record() as record:
        relate(workspace, record)
    with workspace.writing(), workspace.open_record() as record:
        write_passages(record, [], {}, HashEmbedder(), ["p"])
        workspace.withdraw(record)
        assert relate(workspace, record).gone == 1


class TestTimes:
    """Documents have the times of the record's versions, whenever the step is taken."""

    def dated(self, step: Step, date: str, *passages: Passage, removed: Sequence[str] = ()) -> None:
        with step.record.transaction():
            step.record.versions.begin(first_moment("2020"))
        step.record.stand_from(first_moment(date))
        step.write(passages, removed=removed)

    def times(self, step: Step) -> dict[str, tuple[str, ...]]:
        return {
            node.id: tuple(str(node.properties[name])[:10] for name in ("created_at", "updated_at"))
            for node in step.to.nodes(NodeType.DOCUMENT)
        }

    def test_a_loaded_history_counts_by_its_dates_in_one_step_and_in_many(self, step: Step, tmp_path: Path) -> None:
        for each, in_many in ((step, False), (Step(tmp_path / "other"), True)):
            self.dated(each, "2021", NISSAN, DATSUN)
            for date in ("2022", "2023"):
                if in_many:
                    each.take()
                self.dated(each, date, replace(NISSAN, text=f"Nissan in {date}."))
            each.take(LATER)
            assert self.times(each) == {"nissan": ("2021-01-01", "2023-01-01"), "datsun": ("2021-01-01", "2021-01-01")}
            assert each.take(LATER) == InStep()
