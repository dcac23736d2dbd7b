"""The contract of vector stores, held by each that mara has: Chroma, embedded and on a server, mapped files."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.errors import DependencyMissing, WorkspaceDamaged
from graph.publish import mapped_store, vector_store
from graph.publish.vector_store import (
    COLLECTIONS,
    OpenCost,
    OpenSet,
    Place,
    Vectors,
    VectorStore,
    installed_stores,
    store_named,
)
from tests.damages import everything_in

DIMENSION = 16
KINDS = ["chroma", "server", "mapped", "graphs"]


def unit_vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def vectors_of(held: NDArray[np.float32], block: int = 50) -> Vectors:
    return Vectors(
        len(held), held.shape[1], lambda: (held[start : start + block] for start in range(0, len(held), block))
    )


@dataclass
class Kept:
    """A store, and where what is written to it lies in this test."""

    store: VectorStore
    name: str
    root: Path
    prefix: str

    def place(self, generation: str = "1", key: str = "0a") -> Place:
        return Place(self.root / generation, self.name, key, self.prefix)

    def write(
        self, facts: NDArray[np.float32], passages: NDArray[np.float32] | None = None, place: Place | None = None
    ) -> OpenSet:
        """Write a set, and open it."""
        place = place or self.place()
        place.folder.mkdir(exist_ok=True)
        passages = unit_vectors(3) if passages is None else passages
        self.store.write(place, {"facts": vectors_of(facts), "passages": vectors_of(passages)})
        return self.store.open(place)


@pytest.fixture(params=KINDS)
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    name = {"server": "chroma", "graphs": "mapped"}.get(request.param, request.param)
    if request.param == "server":
        monkeypatch.setenv("MARA_VECTORS", f"chroma+{request.getfixturevalue('chroma_url')}")
    if request.param == "graphs":
        pytest.importorskip("faiss", reason="the extra `large` is not installed")
        monkeypatch.setattr(mapped_store, "COMPARED_ONE_BY_ONE", 5)
        monkeypatch.setattr(mapped_store, "_GATHERED", 4)
    return Kept(store_named(name), name, tmp_path, f"{uuid.uuid4()}-")


class TestEveryStore:
    def test_the_nearest_come_first_with_their_cosines_of_all_and_within_some(self, kept: Kept) -> None:
        vectors = unit_vectors(140)
        opened = kept.write(vectors)
        for question in unit_vectors(3, seed=9):
            cosines = vectors @ question
            hits = opened.search("facts", question, 7)
            assert [number for number, _ in hits] == np.argsort(-cosines)[:7].tolist()
            assert [cosine for _, cosine in hits] == pytest.approx(np.sort(cosines)[::-1][:7], abs=1e-3)
        cosines = vectors @ vectors[0]
        farthest = np.argsort(cosines)[:9]
        hits = opened.search("facts", vectors[0], 5, np.sort(farthest))
        assert [number for number, _ in hits] == farthest[::-1][:5].tolist()
        assert [cosine for _, cosine in hits] == pytest.approx(cosines[farthest[::-1][:5]], abs=1e-3)
        assert len(opened.search("facts", vectors[0], 50, np.sort(farthest))) == 9
        opened.close()

    def test_a_set_is_read_in_any_order_and_not_changed_by_it(self, kept: Kept) -> None:
        with pytest.raises(WorkspaceDamaged):
            kept.store.open(kept.place())
        vectors = unit_vectors(120)
        kept.write(vectors, unit_vectors(20, seed=1)).close()
        before = everything_in(kept.root)
        opened = kept.store.open(kept.place(), untouched=True)
        assert [opened.count(name) for name in COLLECTIONS] == [120, 20]
        assert opened.vectors("facts", [77, 3, 110]) == pytest.approx(vectors[[77, 3, 110]], abs=1e-3)
        assert opened.vectors("facts", range(120)) == pytest.approx(vectors, abs=1e-3)
        assert sorted(number for number, _ in opened.search("passages", vectors[0], 99)) == [*range(20)]
        opened.close()
        assert everything_in(kept.root) == before

    def test_a_store_tells_its_cost_and_no_secret_of_its_address(self, kept: Kept) -> None:
        kept.write(np.zeros((0, DIMENSION), dtype=np.float32), np.eye(7, dtype=np.float32)).close()
        opened = kept.store.open(kept.place())
        assert (opened.count("facts"), opened.vectors("passages", [2]).shape) == (0, (1, 7))
        opened.close()
        address = kept.store.address(kept.place())
        assert "secret" not in address
        assert address.startswith("http://") == kept.store.remote
        assert (kept.store.cost(kept.place()) == OpenCost()) == kept.store.remote

    def test_sets_are_apart_and_each_stays_when_another_one_is_written(self, kept: Kept) -> None:
        first = kept.write(unit_vectors(30))
        second = kept.write(unit_vectors(10, seed=1), place=kept.place("2", "0b"))
        assert (first.count("facts"), second.count("facts")) == (30, 10)
        ((number, _),) = first.search("facts", unit_vectors(30)[21], 1)
        assert number == 21
        first.close()
        second.close()

    def test_only_sets_of_the_workspace_that_are_not_kept_are_forgotten(self, kept: Kept) -> None:
        others = Kept(kept.store, kept.name, kept.root, f"{kept.prefix}ab12-")
        places = [kept.place("1", "0a"), kept.place("2", "0b"), others.place("3", "0c")]
        for place in places:
            kept.write(unit_vectors(5), place=place).close()
        kept.store.forget(kept.prefix, {"0b"})
        for place in places[0 if not kept.store.remote else 1 :]:
            opened = kept.store.open(place)
            assert opened.count("facts") == 5
            opened.close()
        if kept.store.remote:
            with pytest.raises(WorkspaceDamaged):
                kept.store.open(places[0])


class TestInstalled:
    def test_another_package_adds_one_by_an_entry_point(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert {"chroma", "mapped"} <= installed_stores().keys()
        point = EntryPoint("ours", "graph.publish.mapped_store:MappedStore", vector_store.GROUP)
        monkeypatch.setattr(vector_store, "installed_stores", lambda: {"ours": point})
        store_named.cache_clear()
        assert isinstance(store_named("ours"), mapped_store.MappedStore)
        with pytest.raises(DependencyMissing, match="'chroma' is not installed"):
            store_named("chroma")
        store_named.cache_clear()
