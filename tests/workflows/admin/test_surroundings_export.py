"""The surroundings of a document as a file: what is told of them, nothing of people, and GraphML that others read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.graph.relationships.small_graph import cite, small_record
from workflows.admin.export import export_surroundings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The small graph, in which an answer to Mia cites the document on Nissan."""
    folder = tmp_path / "w"
    folder.mkdir()
    with small_record(folder) as record:
        cite(record, "m2", "d-nissan")
    return folder


def test_what_is_written_is_told_and_nothing_of_people_is(root: Path, tmp_path: Path) -> None:
    drawn = export_surroundings(root, "d-nissan", tmp_path / "a.graphml")
    assert (drawn["title"], drawn["messages"], drawn["of_concepts"]) == ("D-Nissan", 1, 2)
    assert drawn["related"] == [
        {"id": "d-alliance", "title": "D-Alliance", "shared": ["Nissan"]},
        {"id": "d-yokohama", "title": "D-Yokohama", "shared": ["Yokohama"]},
    ]
    assert drawn.pop("file") == str(tmp_path / "a.graphml")
    export_surroundings(root, "d-nissan", tmp_path / "b.graphml")
    assert (tmp_path / "a.graphml").read_bytes() == (tmp_path / "b.graphml").read_bytes()
    for shown in ((tmp_path / "a.graphml").read_text(encoding="utf-8"), str(drawn)):
        assert not any(word in shown.lower() for word in ("mia", "thread", "m2"))


def test_graphml_is_read_by_igraph(root: Path, tmp_path: Path) -> None:
    igraph = pytest.importorskip("igraph")
    export_surroundings(root, "d-nissan", tmp_path / "a.graphml")
    read = igraph.Graph.Read_GraphML(str(tmp_path / "a.graphml"))
    assert read["messages"] == 1
    assert sorted(read.vs["kind"]) == ["Concept"] * 2 + ["Document"] * 3
    edges = {
        (read.vs[edge.source]["ref"], read.vs[edge.target]["name"], edge["explanation_type"], edge["relevance_score"])
        for edge in read.es
    }
    assert edges == {
        ("d-nissan", "Nissan", "mention", 1.0),
        ("d-nissan", "Yokohama", "mention", 0.5),
        ("d-alliance", "Nissan", "mention", 0.8),
        ("d-yokohama", "Yokohama", "mention", 1.0),
    }
