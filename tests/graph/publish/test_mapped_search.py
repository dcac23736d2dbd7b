"""The nearest of many vectors, by graphs over 4-bit codes and by comparing all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.publish import mapped_store
from graph.publish.mapped_store import NearVectors, exact_dtype, graphs_to_write

DIMENSION = 32


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    """Vectors in some hundred heaps, as those of sentences lie."""
    rng = np.random.default_rng(seed)
    heaps = np.random.default_rng(1).normal(size=(100, DIMENSION))
    vectors = heaps[rng.integers(100, size=count)] + 0.4 * rng.normal(size=(count, DIMENSION))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def nearest(
    vectors: NDArray[np.float32], question: NDArray[np.float32], k: int, within: NDArray[np.intp] | None = None
) -> list[int]:
    rows = np.arange(len(vectors)) if within is None else within
    return [int(row) for row in rows[np.argsort(-(vectors[rows] @ question), kind="stable")][:k]]


class TestFew:
    def test_all_are_compared(self) -> None:
        vectors = unit_vectors(50)
        near = NearVectors(vectors)
        for question in unit_vectors(5, seed=2):
            rows, cosines = near.search(question, 7)
            assert rows.tolist() == nearest(vectors, question, 7)
            assert cosines == pytest.approx(vectors[rows] @ question, abs=1e-6)

    def test_or_those_that_are_asked_for(self) -> None:
        vectors, within = unit_vectors(50), np.array([3, 10, 49])
        rows, _ = NearVectors(vectors).search(vectors[0], 2, within)
        assert rows.tolist() == nearest(vectors, vectors[0], 2, within)

    def test_many_are_kept_in_half_precision(self) -> None:
        assert exact_dtype(mapped_store.COMPARED_ONE_BY_ONE) == np.float32
        assert exact_dtype(mapped_store.COMPARED_ONE_BY_ONE + 1) == np.float16


@pytest.mark.slow
class TestMany:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pytest.importorskip("faiss", reason="the extra `large` is not installed")
        monkeypatch.setattr(mapped_store, "COMPARED_ONE_BY_ONE", 100)
        monkeypatch.setattr(mapped_store, "_SHARD", 1500)
        monkeypatch.setattr(mapped_store, "_GATHERED", 20)

    @pytest.fixture
    def vectors(self) -> NDArray[np.float16]:
        return unit_vectors(4000).astype(np.float16)

    @pytest.fixture
    def near(self, vectors: NDArray[np.float16], tmp_path: Path) -> NearVectors:
        for write in graphs_to_write(vectors, tmp_path, "facts"):
            write()
        assert len(list(tmp_path.iterdir())) == 3
        return NearVectors.open(vectors, tmp_path, "facts")

    def test_nearly_all_of_the_nearest_are_found_with_their_exact_cosines(
        self, near: NearVectors, vectors: NDArray[np.float16]
    ) -> None:
        found = 0
        for question in unit_vectors(50, seed=2):
            rows, cosines = near.search(question, 10)
            assert cosines == pytest.approx(vectors[rows].astype(np.float32) @ question, abs=1e-6)
            assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)
            found += len({*rows.tolist()} & {*nearest(vectors.astype(np.float32), question, 10)})
        assert found >= 0.98 * 500

    def test_within_some_rows_their_nearest_are_found_however_far_they_are(
        self, near: NearVectors, vectors: NDArray[np.float16]
    ) -> None:
        for count in [15, 300]:
            within = np.sort(np.random.default_rng(3).choice(len(vectors), count, replace=False))
            for question in unit_vectors(20, seed=2):
                rows, _ = near.search(question, 10, within)
                assert rows.tolist() == nearest(vectors.astype(np.float32), question, 10, within), count

    def test_the_same_vectors_give_the_same_files(
        self, near: NearVectors, vectors: NDArray[np.float16], tmp_path: Path
    ) -> None:
        (tmp_path / "again").mkdir()
        for write in graphs_to_write(vectors, tmp_path / "again", "facts"):
            write()
        for path in tmp_path.glob("*.hnsw"):
            assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()

    def test_a_damaged_file_is_refused(self, near: NearVectors, vectors: NDArray[np.float16], tmp_path: Path) -> None:
        for content in [b"", b"garbage" * 1000]:
            (tmp_path / "facts.1.hnsw").unlink()
            (tmp_path / "facts.1.hnsw").write_bytes(content)
            with pytest.raises(ValueError, match=r"facts\.1\.hnsw"):
                NearVectors.open(vectors, tmp_path, "facts")
