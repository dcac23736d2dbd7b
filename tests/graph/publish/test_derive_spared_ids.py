from __future__ import annotations

from pathlib import Path

import pytest

from graph.construction.knowledge_graph import load
from graph.publish.search_indexes import ids_of_generations
from graph.retrieve.open_index import open_index
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, TripleParts, passage_of, publish_workspace

PASSAGES = [passage_of(key, key, f"{key} was built") for key in ("a", "b", "c", "d")]
BUILT: dict[str, list[TripleParts]] = {p.id: [(p.id, "was built by", f"yard {p.id}")] for p in PASSAGES}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Generation 1 holds a and b, 2 b and c, 3 c and d; a reader keeps 1."""
    publish_workspace(tmp_path, PASSAGES[:2], BUILT)
    reader = open_index(tmp_path, HashEmbedder())
    publish_workspace(tmp_path, PASSAGES[2:3], BUILT, removed=["a"])
    workspace = publish_workspace(tmp_path, PASSAGES[3:], BUILT, removed=["b"])
    assert {folder.name for folder in (tmp_path / "index").iterdir()} == {"1", "3"}
    reader.close()
    return workspace


def passages(workspace: Workspace) -> list[list[str]]:
    return sorted(sorted(ids) for ids in ids_of_generations(workspace)["passages"].values())


def test_the_current_generation_is_told_and_what_a_reader_holds(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path, PASSAGES[:2], BUILT)
    reader = open_index(tmp_path, HashEmbedder())
    publish_workspace(tmp_path, PASSAGES[2:], BUILT, removed=["a"])
    held = ids_of_generations(workspace)
    for generation in (1, 2):
        graph = load(workspace.index_folder(generation))
        assert set(held["facts"][graph.commit_id]) == graph.facts.keys()
        assert set(held["passages"][graph.commit_id]) == {passage.id for passage in graph.passages}
    assert passages(workspace) == [["a", "b"], ["b", "c", "d"]]
    reader.close()


def test_what_nobody_holds_any_more_is_not_told_though_it_is_on_disk(workspace: Workspace) -> None:
    assert workspace.index_folder(1).exists()
    assert passages(workspace) == [["c", "d"]]


def test_what_cannot_be_read_is_not_told(workspace: Workspace) -> None:
    (workspace.index_folder(3) / "snapshot.json").write_text("{")
    assert ids_of_generations(workspace) == {"facts": {}, "passages": {}}


def test_a_workspace_without_any_generation(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.create()
    assert ids_of_generations(workspace) == {"facts": {}, "passages": {}}
