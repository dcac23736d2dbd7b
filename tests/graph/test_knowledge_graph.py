from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from graph.build import build_graph
from graph.edges import KIND_INDEX, EdgeKind, Edges
from graph.knowledge_graph import KnowledgeGraph, load, load_header, save
from graph.record import Record
from graph.schema import Passage, RelationType, entity_id
from tests.builders import HashEmbedder, TripleParts, passage_of, write_passages


@pytest.fixture
def graph(tmp_path: Path) -> KnowledgeGraph:
    passages = [
        Passage("日産", "Nissan (company)", "Nissan\u2028was founded.\n", "a.txt", {"year": 1933, "x": 0.5, "b": True}),
        passage_of("b", "Nissan Motor", "Text."),
        passage_of("c", "", ""),
    ]
    triples: dict[str, list[TripleParts]] = {
        "日産": [("Nissan", "founded", "1933", RelationType.TEMPORAL, 0.9)],
        "b": [("Nissan Motor", "is", "日本")],
    }
    with Record(tmp_path / "record.sqlite", create=True) as record:
        write_passages(record, passages, triples, HashEmbedder())
        return build_graph(record)


class TestSnapshot:
    def test_it_comes_back_as_it_was_saved(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        again = load(tmp_path)
        for name in ("generation", "embedding_model", "entity_names", "entity_labels", "passages", "facts", "aliases"):
            assert getattr(again, name) == getattr(graph, name), name
        for name in ("triple_passages", "name_passages", "passage_vectors"):
            assert np.array_equal(getattr(again, name), getattr(graph, name)), name
        for column in fields(Edges):
            saved, loaded = getattr(graph.edges, column.name), getattr(again.edges, column.name)
            assert np.array_equal(saved, loaded)
            assert saved.dtype == loaded.dtype

    def test_typed_facts_counts_and_synonyms_survive(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        again = load(tmp_path)
        assert {fact.fact.relation for fact in again.facts.values()} == {
            RelationType.TEMPORAL,
            RelationType.ATTRIBUTION,
        }
        assert again.triple_passages[again.entity_index[entity_id("Nissan")]] == 1
        assert KIND_INDEX[EdgeKind(RelationType.SYNONYMY)] in again.edges.kind

    def test_nothing_of_it_is_pickled(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        for path in tmp_path.glob("*.npy"):
            np.load(path, allow_pickle=False)

    def test_the_header_tells_what_is_in_it(self, graph: KnowledgeGraph, tmp_path: Path) -> None:
        save(graph, tmp_path)
        header = load_header(tmp_path)
        assert (header["passages"], header["entities"], header["facts"]) == (3, graph.n_entities, 2)
        assert (header["edges"], header["generation"], header["embedding_model"]) == (len(graph.edges), 1, "hash")

    @pytest.mark.parametrize(
        "change", [{"snapshot_version": 0}, {"snapshot_version": 2}, {"passages": 4}, {"edges": 0}, {"facts": 1}]
    )
    def test_another_version_or_another_count_is_refused(
        self, graph: KnowledgeGraph, tmp_path: Path, change: dict[str, int]
    ) -> None:
        save(graph, tmp_path)
        path = tmp_path / "snapshot.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
        with pytest.raises(ValueError, match="snapshot"):
            load(tmp_path)

    def test_none_at_all_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            load(tmp_path)


class TestLookUps:
    def test_passages_by_id_and_entities_by_the_id_of_their_name(self, graph: KnowledgeGraph) -> None:
        assert graph.passages[graph.passage_index["日産"]].title == "Nissan (company)"
        assert graph.entity_names[graph.entity_index[entity_id(" NISSAN ")]] == "nissan"

    def test_names_and_full_titles_are_found_in_text(self, graph: KnowledgeGraph) -> None:
        nissan = graph.entity_index[entity_id("Nissan")]
        assert [mention.name for mention in graph.names.find(["the", "nissan", "company"])] == [nissan]
        assert [mention.end for mention in graph.names.find(["nissan", "company"])] == [2]
