"""The numbers of a workspace: counts that agree with its graph and with the report of its indexing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.errors import EmbeddingMismatch, WorkspaceMissing
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType
from tests.builders import HashEmbedder
from tests.workflows.small_world import PASSAGES, TRIPLES, write_lines
from tests.workflows.workspaces import KARV, ROWS, Indexer, content_of, use_embedder
from workflows.inspection import workspace_stats


def test_the_small_world_in_numbers(small_workspace: Path) -> None:
    stats = workspace_stats(small_workspace)
    assert (stats["passages"], stats["generation"]) == (len(PASSAGES), 1)
    assert stats["extractors"] == {"import": len(TRIPLES), "offline": len(PASSAGES) - len(TRIPLES)}
    assert stats["models"] == {"embedding": "all-MiniLM-L6-v2", "store": "embedded"}
    assert stats["dimension"] == 384
    assert stats["workspace"] == str(small_workspace)
    assert len(stats["workspace_id"]) == 32
    assert json.loads(json.dumps(stats)) == stats


def test_edges_are_counted_by_type_and_by_link(small_workspace: Path) -> None:
    stats = workspace_stats(small_workspace)
    assert sum(stats["edges_by_type"].values()) == stats["edges"]
    types = {*ENTITY_RELATIONS, *PASSAGE_RELATIONS, RelationType.SYNONYMY}
    assert stats["edges_by_type"].keys() == {relation.value for relation in types}
    by_passage_type = sum(stats["edges_by_type"][relation.value] for relation in PASSAGE_RELATIONS)
    assert sum(stats["passage_edges_by_link"].values()) == by_passage_type
    assert stats["passage_edges_by_link"]["own title"] == len(PASSAGES)
    assert all(stats["edges_by_type"][relation.value] for relation in PASSAGE_RELATIONS), "each class holds members"


@pytest.mark.usefixtures("embedder")
def test_the_counts_are_those_of_the_report_and_of_the_graph(index: Indexer, root: Path) -> None:
    report = index(ROWS)
    stats = workspace_stats(root)
    assert [stats[name] for name in ("passages", "entities", "facts", "edges", "generation")] == [
        report.passages,
        report.entities,
        report.facts,
        report.edges,
        report.generation,
    ]
    content = content_of(root)
    ends = [end for column in content["edges"][:2] for end in column]
    degree = [ends.count(node) for node in range(stats["entities"] + stats["passages"])]
    assert stats["max_degree"] == max(degree)
    assert stats["isolated_nodes"] == degree.count(0)
    assert sorted(degree)[len(degree) // 2] >= stats["median_degree"] >= sorted(degree)[(len(degree) - 1) // 2]
    with_facts = {passage for fact in content["facts"].values() for passage in fact.passages}
    assert stats["passages_without_facts"] == stats["passages"] - len(with_facts)
    assert stats["bytes"] >= (root / "record.sqlite").stat().st_size > 0


@pytest.mark.usefixtures("embedder")
def test_passages_without_facts_or_edges_are_counted(index: Indexer, root: Path) -> None:
    index([{"id": "a", "text": "very slowly indeed"}, KARV])
    stats = workspace_stats(root)
    assert stats["passages_without_facts"] == 1
    assert stats["isolated_nodes"] == 1


@pytest.mark.usefixtures("embedder")
def test_imported_and_extracted_passages_are_told_apart(index: Indexer, root: Path, tmp_path: Path) -> None:
    triples = tmp_path / "triples.jsonl"
    write_lines(triples, [{"id": "karv", "triples": [["Karv", "exports", "eel"]]}])
    index(ROWS, triples=triples)
    assert workspace_stats(root)["extractors"] == {"import": 1, "offline": 4}


def test_a_workspace_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="mara index"):
        workspace_stats(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("embedder")
def test_another_embedding_model_is_said(index: Indexer, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index([KARV])
    use_embedder(monkeypatch, HashEmbedder("another"))
    with pytest.raises(EmbeddingMismatch, match="mara reembed"):
        workspace_stats(root)
