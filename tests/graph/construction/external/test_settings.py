from __future__ import annotations

from pathlib import Path

import pytest

from graph.construction.external.build import build_processes, is_built_on_disk
from graph.errors import BadInput
from graph.publish.derive import publish
from graph.retrieve.open_index import open_index
from tests.builders import HashEmbedder, passage_of, publish_workspace, write_passages

CORPUS = [passage_of("a", "Nissan", "Nissan is old."), passage_of("b", "Datsun", "Nissan built it.")]


@pytest.mark.parametrize(
    ("said", "least", "expected"), [("", 2, True), ("", 3, False), ("disk", 9, True), ("memory", 1, False)]
)
def test_it_is_built_where_the_setting_says_else_by_size(
    said: str, least: int, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CORPUS)
    monkeypatch.setenv("MARA_BUILD", said)
    monkeypatch.setattr("graph.construction.external.build.LARGE", least)
    with workspace.open_record() as record:
        assert is_built_on_disk(record) is expected


def test_another_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = publish_workspace(tmp_path / "workspace", CORPUS)
    monkeypatch.setenv("MARA_BUILD", "cloud")
    with workspace.open_record() as record, pytest.raises(BadInput, match="memory, disk"):
        is_built_on_disk(record)


def test_one_process_means_none_beside_the_one_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for said in ("1", "3"):
        monkeypatch.setenv("MARA_BUILD_PROCESSES", said)
        found.append(build_processes())
    assert found == [0, 3]


@pytest.mark.parametrize("said", ["0", "many", "-1"])
def test_no_number_of_processes_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_BUILD_PROCESSES", said)
    with pytest.raises(BadInput, match="MARA_BUILD_PROCESSES"):
        build_processes()


def test_a_published_workspace_answers_and_keeps_nothing_of_passages_that_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_BUILD", "disk")
    monkeypatch.setenv("MARA_BUILD_PROCESSES", "1")
    workspace = publish_workspace(tmp_path / "workspace", CORPUS)
    index = open_index(workspace.root, HashEmbedder())
    assert index.graph.passage_ids == ("a", "b")
    index.close()
    assert any(b"Nissan built" in path.read_bytes() for path in workspace.build_cache.rglob("*.npy"))
    with workspace.writing(), workspace.open_record() as record:
        write_passages(record, [], {}, HashEmbedder(), removed=["b"])
        publish(workspace, record)
    assert not any(b"Nissan built" in path.read_bytes() for path in workspace.build_cache.rglob("*.npy"))


def test_a_build_in_memory_and_an_empty_workspace_keep_nothing_of_passages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_BUILD_PROCESSES", "1")
    for number, leave in enumerate(("memory", "withdrawn")):
        monkeypatch.setenv("MARA_BUILD", "disk")
        workspace = publish_workspace(tmp_path / str(number), CORPUS)
        assert workspace.build_cache.is_dir()
        with workspace.writing(), workspace.open_record() as record:
            if leave == "memory":
                monkeypatch.setenv("MARA_BUILD", leave)
                write_passages(record, [passage_of("c", "", "new")], {}, HashEmbedder())
                publish(workspace, record)
            else:
                workspace.withdraw(record)
        assert not workspace.build_cache.exists()
