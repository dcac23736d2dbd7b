from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.publish.vector_store import OpenCost
from graph.retrieve import index_pool
from graph.retrieve.index_pool import OPEN_BYTES_VARIABLE, IndexPool, budget_of_environment, parts_of, taken_by
from graph.retrieve.open_index import Index
from graph.storage.lock import GenerationHold
from graph.storage.workspace import Layer, Workspace
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
def tenants(template: Path, tmp_path: Path) -> list[Path]:
    return [Path(shutil.copytree(template, tmp_path / name)) for name in "abcd"]


def cost_of(template: Path) -> OpenCost:
    return sum(parts_of(template / "index" / "1").values(), OpenCost())


@pytest.fixture
def pool(template: Path) -> Iterator[IndexPool]:
    """A pool with room for two workspaces and a half."""
    one = cost_of(template)
    pool = IndexPool(OpenCost(2.5 * one.bytes, 1_000, 1_000))
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


def open_among(workspaces: list[Path]) -> str:
    """Return the names of those workspaces that are open in this process."""
    return "".join(root.name for root in workspaces if GenerationHold.is_held(root / "index" / "1"))


@contextmanager
def run(pool: IndexPool, *roots: Path) -> Iterator[list[Index]]:
    """Use the indexes of some workspaces within the block, as a run does."""
    used = []
    for root in roots:
        used.append(pool.get(root, HashEmbedder()))
        pool.begin_use(used[-1])
    try:
        yield used
    finally:
        for index in used:
            pool.end_use(index)
        used.clear()


def ask(pool: IndexPool, root: Path) -> list[str]:
    passages = passages_in(pool.get(root, HashEmbedder()))
    pool.close_unused()
    return passages


def test_those_that_fit_stay_open_and_the_least_recent_makes_room(pool: IndexPool, tenants: list[Path]) -> None:
    for which in (0, 1, 0):
        assert ask(pool, tenants[which]) == ["marn", "nissan", "sund"]
    assert (open_among(tenants), pool.workspaces) == ("ab", 2)
    ask(pool, tenants[2])
    pool.close_unused()
    assert open_among(tenants) == "ac"
    for root in [*tenants, *tenants]:
        assert ask(pool, root) == ["marn", "nissan", "sund"], "however few fit"


def test_each_limit_counts_and_one_that_is_larger_stays_alone(template: Path, tenants: list[Path]) -> None:
    one = cost_of(template)
    few_files, few_threads = OpenCost(1e12, 1.5 * one.files, 1e6), OpenCost(1e12, 1e6, 1.5 * one.threads)
    for budget in (few_files, few_threads, OpenCost(1, 1, 1)):
        pool = IndexPool(budget)
        for root in tenants[:3]:
            ask(pool, root)
            assert open_among(tenants) == root.name
        pool.close()


class TestRunsUnderWay:
    """A workspace that a run works on stays open."""

    def test_it_stays_open_until_the_run_has_ended(self, pool: IndexPool, tenants: list[Path]) -> None:
        with run(pool, tenants[0]):
            for root in tenants[1:]:
                ask(pool, root)
            assert open_among(tenants) == "ad"
            ask(pool, tenants[1])
            ask(pool, tenants[2])
        assert "a" in open_among(tenants)
        pool.close_unused()
        ask(pool, tenants[1])
        ask(pool, tenants[2])
        assert open_among(tenants) == "bc"


def test_an_older_generation_goes_before_a_workspace(pool: IndexPool, tenants: list[Path]) -> None:
    ask(pool, tenants[0])
    publish_workspace(tenants[0], [passage_of("new", "New", "text")])
    ask(pool, tenants[0])
    ask(pool, tenants[1])
    assert GenerationHold.is_held(tenants[0] / "index" / "2")
    assert not GenerationHold.is_held(tenants[0] / "index" / "1")
    assert pool.workspaces == 2


def test_what_is_taken_is_what_is_open(pool: IndexPool, tenants: list[Path], template: Path) -> None:
    one = cost_of(template)
    for root in tenants:
        ask(pool, root)
    assert pool.taken.bytes == pytest.approx(2 * one.bytes)
    assert pool.taken.files == 2 * one.files
    pool.close()
    assert pool.taken.bytes == pytest.approx(0)
    assert open_among(tenants) == ""


def test_a_workspace_that_opens_slowly_keeps_no_other_waiting(pool: IndexPool, tenants: list[Path]) -> None:
    slow, other = tenants[:2]
    current = slow / "CURRENT"
    current.unlink()
    os.mkfifo(current)
    gate = os.open(current, os.O_RDWR)
    answers: list[list[str]] = []
    thread = threading.Thread(target=lambda: answers.append(ask(pool, slow)))
    thread.start()
    assert ask(pool, other) == ["marn", "nissan", "sund"]
    assert not answers
    regular = slow / "current"
    regular.write_text("1\n", encoding="ascii")
    regular.replace(current)
    os.write(gate, b"1\n")
    os.close(gate)
    thread.join()
    assert answers == [["marn", "nissan", "sund"]]


def test_threads_that_ask_for_many_workspaces_get_each_its_own(tmp_path: Path) -> None:
    roots = [publish_workspace(tmp_path / f"w{i}", [passage_of(f"p{i}", "Title", f"Text {i}")]).root for i in range(6)]
    one = cost_of(roots[0])
    pool = IndexPool(OpenCost(2.5 * one.bytes, 1_000, 1_000))

    def work(seed: int) -> None:
        for step in range(6):
            which = (seed * 5 + step * (seed + 1)) % len(roots)
            with run(pool, roots[which]) as (index,):
                assert [index.graph.passages[row].id for row, _ in index.search_passages("Text", 3)] == [f"p{which}"]
            del index
            pool.close_unused()

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    pool.close_unused()
    assert pool.taken.fits(OpenCost(2.5 * one.bytes, 1_000, 1_000))
    pool.close()


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The limits of a container, as its cgroup tells them; none at first."""
    monkeypatch.setattr(index_pool, "_CGROUP", tmp_path)
    monkeypatch.delenv(OPEN_BYTES_VARIABLE, raising=False)
    return tmp_path


class TestTheBudget:
    def test_is_half_of_the_container_s_memory_and_threads(self, cgroup: Path) -> None:
        (cgroup / "memory.max").write_text("1000000\n")
        (cgroup / "pids.max").write_text("600\n")
        assert (budget_of_environment().bytes, budget_of_environment().threads) == (500_000, 300)

    def test_is_what_the_environment_says(self, cgroup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (cgroup / "memory.max").write_text("1000000\n")
        sizes = {"2000000000": 2e9, "512MiB": 2**29, "1.5 GiB": 1.5 * 2**30, "64K": 64e3, "7B": 7}
        for text, size in sizes.items():
            monkeypatch.setenv(OPEN_BYTES_VARIABLE, text)
            assert budget_of_environment().bytes == size
        for text in ("much", "-1", "2 gallons"):
            monkeypatch.setenv(OPEN_BYTES_VARIABLE, text)
            with pytest.raises(BadInput, match=OPEN_BYTES_VARIABLE):
                budget_of_environment()


class TestWhatAGenerationTakes:
    def test_without_an_embedded_search_index_it_takes_no_threads(self, tmp_path: Path) -> None:
        (tmp_path / "passage_vectors.npy").write_bytes(bytes(1_000))
        (tmp_path / "bm25").mkdir()
        (tmp_path / "bm25" / "data.npy").write_bytes(bytes(500))
        assert sum(parts_of(tmp_path).values(), OpenCost()) == OpenCost(303_000, 8, 0)

    def test_a_layer_takes_what_it_lies_on_too_and_both_generations_take_that_once(self, tmp_path: Path) -> None:
        for generation, size in (("1", 10_000_000), ("2", 0), ("3", 0)):
            vectors = tmp_path / generation / "chroma" / f"key{generation}" / "segment"
            vectors.mkdir(parents=True)
            (vectors / "data_level0.bin").write_bytes(bytes(size))
            Layer(1, f"key{generation}", "key1").save(tmp_path / generation)
        two, three = parts_of(tmp_path / "2"), parts_of(tmp_path / "3")
        assert sum(two.values(), OpenCost()).bytes > 11_000_000 + 2 * 6_000_000
        assert taken_by([two, three]).bytes - taken_by([two]).bytes == pytest.approx(
            sum(three.values(), OpenCost()).bytes - three[tmp_path / "1" / "chroma" / "key1"].bytes
        )
