from __future__ import annotations

from pathlib import Path

import pytest

from graph.construction.workers import build_processes
from graph.errors import BadInput
from graph.publish.derive import publish
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder, passage_of, publish_workspace, write_passages

CORPUS = [passage_of("a", "Nissan", "Nissan is old."), passage_of("b", "Datsun", "Nissan built it.")]


def test_processes_work_beside_this_one_for_a_large_corpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting, passages, processes in (("1", 10**6, 0), ("3", 100, 0), ("3", 10**6, 3)):
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
        assert build_processes(passages) == processes
    for setting in ("0", "many", "-1"):
        monkeypatch.setenv("OMP_NUM_THREADS", setting)
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
    with workspace.writing(), workspace.open_record() as record:
        workspace.withdraw(record)
    assert not workspace.build_cache.exists()
