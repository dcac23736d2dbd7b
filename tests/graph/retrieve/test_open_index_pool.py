from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph.retrieve.index_pool import IndexPool
from graph.retrieve.open_index import Index
from graph.storage.lock import GenerationHold
from graph.storage.workspace import Workspace
from tests.builders import HashEmbedder, passage_of, publish_workspace

PASSAGES = [
    passage_of("nissan", "Nissan", "Nissan was founded in 1933."),
    passage_of("sund", "Lake Sund", "Lake Sund lies in Ostra."),
    passage_of("marn", "Marn", "Marn is a town by Lake Sund."),
]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish_workspace(tmp_path_factory.mktemp("template") / "workspace", PASSAGES).root


@pytest.fixture
def workspace(template: Path, tmp_path: Path) -> Workspace:
    return Workspace(Path(shutil.copytree(template, tmp_path / "workspace")))


@pytest.fixture
def pool() -> Iterator[IndexPool]:
    pool = IndexPool()
    yield pool
    pool.close()


def passages_in(index: Index) -> list[str]:
    return sorted(index.graph.passages[passage].id for passage, _ in index.search_passages("Nissan", 9))


def test_after_a_write_both_generations_answer(
    pool: IndexPool, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = pool.get(workspace.root, HashEmbedder())
    monkeypatch.chdir(workspace.root.parent)
    assert pool.get(Path("workspace"), HashEmbedder()) is old, "opened once, by whichever path"
    publish_workspace(workspace.root, [passage_of("new", "New", "text")], removed=["marn"])
    new = pool.get(workspace.root, HashEmbedder())
    assert (old.graph.generation, new.graph.generation) == (1, 2)
    assert passages_in(old) == ["marn", "nissan", "sund"]
    assert passages_in(new) == ["new", "nissan", "sund"]
    for generation, expected in ((1, old), (2, new), (77, new)):
        assert pool.get(workspace.root, HashEmbedder(), generation=generation) is expected


def test_two_generations_are_kept_open(pool: IndexPool, workspace: Workspace) -> None:
    pool.get(workspace.root, HashEmbedder())
    for key in "abc":
        publish_workspace(workspace.root, [passage_of(key, key, "text")])
        pool.get(workspace.root, HashEmbedder())
    publish_workspace(workspace.root, [passage_of("d", "d", "text")])
    assert {folder.name for folder in (workspace.root / "index").iterdir()} == {"3", "4", "5"}
    assert pool.get(workspace.root, HashEmbedder(), generation=1).graph.generation == 5


def test_an_open_index_survives_a_damaged_current(pool: IndexPool, workspace: Workspace) -> None:
    old = pool.get(workspace.root, HashEmbedder())
    (workspace.root / "CURRENT").write_text("oops")
    new = pool.get(workspace.root, HashEmbedder())
    assert new is pool.get(workspace.root, HashEmbedder())
    assert passages_in(new) == ["marn", "nissan", "sund"]
    assert passages_in(old) == ["marn", "nissan", "sund"]


def test_closing_lets_go_of_every_file_from_any_thread(workspace: Workspace) -> None:
    pool = IndexPool()
    pool.get(workspace.root, HashEmbedder())
    thread = threading.Thread(target=pool.close)
    thread.start()
    thread.join()
    assert not GenerationHold.is_held(workspace.index_folder(1))


def test_threads_open_a_workspace_once(pool: IndexPool, workspace: Workspace) -> None:
    with ThreadPoolExecutor(4) as threads:
        opened = [*threads.map(lambda _: pool.get(workspace.root, HashEmbedder()), range(4))]
    assert len(set(map(id, opened))) == 1


def test_one_that_was_replaced_or_put_back_answers_as_it_stands(
    template: Path, tmp_path: Path, pool: IndexPool
) -> None:
    def replaced_by(other: Path) -> Path:
        shutil.rmtree(tmp_path / "workspace", ignore_errors=True)
        return Path(shutil.copytree(other, tmp_path / "workspace"))

    other = publish_workspace(tmp_path / "other", PASSAGES[1:])
    assert len(passages_in(pool.get(replaced_by(template), HashEmbedder()))) == 3
    assert passages_in(pool.get(replaced_by(other.root), HashEmbedder())) == ["marn", "sund"]
    publish_workspace(replaced_by(template), [passage_of("velm", "Velm", "Velm is a river.")])
    assert "velm" in passages_in(pool.get(tmp_path / "workspace", HashEmbedder()))
    publish_workspace(replaced_by(template), [passage_of("karv", "Karv", "Karv is a town.")])
    index = pool.get(tmp_path / "workspace", HashEmbedder())
    assert index.graph.generation == 2
    assert passages_in(index) == ["karv", "marn", "nissan", "sund"]


class TestWhatIsReferredTo:
    """A run refers to the index that it began with: that stays open until the run ends."""

    def write_and_ask(self, pool: IndexPool, workspace: Workspace, *keys: str) -> None:
        for key in keys:
            publish_workspace(workspace.root, [passage_of(key, key, "text")])
            pool.get(workspace.root, HashEmbedder())

    def test_it_answers_however_often_the_workspace_is_written(self, pool: IndexPool, workspace: Workspace) -> None:
        begun = pool.get(workspace.root, HashEmbedder())
        self.write_and_ask(pool, workspace, "a", "b", "c")
        assert passages_in(begun) == ["marn", "nissan", "sund"]
        assert GenerationHold.is_held(workspace.index_folder(1))
        del begun
        pool.close_unused()
        assert not GenerationHold.is_held(workspace.index_folder(1))
        assert pool.get(workspace.root, HashEmbedder(), generation=1).graph.generation == 4
