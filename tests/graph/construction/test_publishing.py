from __future__ import annotations

from pathlib import Path

import pytest

from graph.construction.workers import build_processes
from graph.errors import BadInput
from graph.publish.derive import publish
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder, passage_of, publish_workspace, write_passages

CORPUS = [passage_of("a", "Nissan", "Nissan is old."), passage_of("b", "Datsun", "Nissan built it.")]


def test_one_process_and_a_small_corpus_mean_none_beside_the_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for said, passages in (("1", 10**6), ("3", 100), ("3", 10**6)):
        monkeypatch.setenv("OMP_NUM_THREADS", said)
        found.append(build_processes(passages))
    assert found == [0, 0, 3]


@pytest.mark.parametrize("said", ["0", "many", "-1"])
def test_no_number_of_processes_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    with pytest.raises(BadInput, match="OMP_NUM_THREADS"):
        build_processes(0)


def test_a_published_workspace_answers_and_keeps_nothing_of_passages_that_go(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CORPUS)
    index = open_index(workspace.root, HashEmbedder())
    assert index.graph.passage_ids == ("a", "b")
    index.close()
    assert any(b"Nissan built" in path.read_bytes() for path in workspace.build_cache.rglob("*.npy"))
    with workspace.writing(), workspace.open_record() as record:
        write_passages(record, [], {}, HashEmbedder(), removed=["b"])
        publish(workspace, record)
    assert not any(b"Nissan built" in path.read_bytes() for path in workspace.build_cache.rglob("*.npy"))


def test_an_empty_workspace_keeps_nothing_of_passages(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CORPUS)
    assert workspace.build_cache.is_dir()
    with workspace.writing(), workspace.open_record() as record:
        workspace.withdraw(record)
    assert not workspace.build_cache.exists()
