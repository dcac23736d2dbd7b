from __future__ import annotations

from pathlib import Path

import pytest

from graph.errors import BadInput
from graph.publish.vector_store import OpenCost
from graph.retrieve import index_pool
from graph.retrieve.index_pool import OPEN_BYTES_VARIABLE, Taken, budget_of_environment, parts_of
from graph.storage.workspace import Layer


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The limits of a container, as its cgroup tells them; none at first."""
    monkeypatch.setattr(index_pool, "_CGROUP", tmp_path)
    monkeypatch.delenv(OPEN_BYTES_VARIABLE, raising=False)
    return tmp_path


class TestTheBudget:
    def test_is_half_of_the_container_s_memory_and_threads(self, cgroup: Path) -> None:
        (cgroup / "memory").mkdir()
        (cgroup / "memory" / "memory.limit_in_bytes").write_text("3000000\n")
        assert budget_of_environment().bytes == 1_500_000, "as an older cgroup tells it"
        (cgroup / "memory.max").write_text("1000000\n")
        (cgroup / "pids.max").write_text("600\n")
        assert (budget_of_environment().bytes, budget_of_environment().threads) == (500_000, 300)

    def test_is_what_the_environment_says(self, cgroup: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (cgroup / "memory.max").write_text("1000000\n")
        sizes = {"2000000000": 2e9, "512M": 2**29, "1.5 GiB": 1.5 * 2**30, "64K": 2**16, "7B": 7}
        for text, size in sizes.items():
            monkeypatch.setenv(OPEN_BYTES_VARIABLE, text)
            assert budget_of_environment().bytes == size
        for text in ("much", "-1", "2 gallons", "1e9"):
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
        taken = Taken()
        taken.add(two)
        alone = taken.total
        taken.add(three)
        assert taken.total.bytes - alone.bytes == pytest.approx(
            sum(three.values(), OpenCost()).bytes - three[tmp_path / "1" / "chroma" / "key1"].bytes
        )
        taken.remove(two)
        taken.remove(three)
        assert taken.total == OpenCost()
