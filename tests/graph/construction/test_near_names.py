from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.construction import near_names
from graph.construction.arrays import Array
from graph.construction.edge_weights import nearest_pairs
from graph.construction.near_names import find_near_names

Floats = NDArray[np.float32]


def unit(vectors: NDArray[np.float64]) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def families(count: int, size: int, spread: float, *, dimension: int = 48, seed: int = 7) -> Floats:
    """Return vectors around centres, in no order."""
    rng = np.random.default_rng(seed)
    centres = np.repeat(unit(rng.standard_normal((count, dimension))), size, axis=0)
    vectors = unit(centres + spread / dimension**0.5 * rng.standard_normal(centres.shape))
    return np.asarray(rng.permutation(vectors))


def exact_pairs(vectors: Floats) -> dict[tuple[int, int], float]:
    products = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    rows, columns = np.nonzero(np.triu(products >= 0.8, 1))
    return {(a, b): float(products[a, b]) for a, b in zip(rows.tolist(), columns.tolist(), strict=True)}


def found_in(vectors: Floats, folder: Path, eligible: NDArray[np.bool_] | None = None) -> Array:
    return find_near_names(vectors, np.ones(len(vectors), np.bool_) if eligible is None else eligible, folder)


def pairs_of(found: Array) -> list[tuple[int, int]]:
    return list(zip(found["first"].tolist(), found["second"].tolist(), strict=True))


def test_nearly_all_pairs_are_found_once_in_order_and_nothing_else(tmp_path: Path) -> None:
    vectors = families(400, 10, 0.45)
    expected, found = exact_pairs(vectors), found_in(vectors, tmp_path)
    pairs = pairs_of(found)
    assert pairs == sorted(set(pairs))
    assert set(pairs) <= expected.keys()
    assert len(pairs) >= 0.99 * len(expected) > 4_950
    products = (vectors[found["first"]].astype(np.float64) * vectors[found["second"]]).sum(axis=1)
    assert found["cosine"].tolist() == np.minimum(1.0, products).tolist(), "as a writer computes it"
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.npy"]


def test_of_a_name_with_many_neighbours_those_are_found_that_the_graph_keeps(tmp_path: Path) -> None:
    for spread in [0.0, 0.2, 0.4]:
        vectors = families(2, 150, spread)
        wanted = exact_pairs(vectors)
        ends = np.array(sorted(wanted), dtype=np.int32)
        cosines = np.minimum(1.0, (vectors[ends[:, 0]].astype(np.float64) * vectors[ends[:, 1]]).sum(axis=1))
        kept = ends[np.unique(nearest_pairs(ends, cosines, 0, len(vectors)))]
        assert len(kept) < len(wanted), spread
        near = pairs_of(found_in(vectors, tmp_path))
        assert near == sorted(map(tuple, kept.tolist())), spread


def test_names_that_may_have_no_synonyms_are_in_no_pair(tmp_path: Path) -> None:
    vectors = families(20, 10, 0.3)
    eligible = np.arange(len(vectors)) % 3 > 0
    pairs = pairs_of(found_in(vectors, tmp_path, eligible))
    assert pairs == [(a, b) for a, b in sorted(exact_pairs(vectors)) if a % 3 and b % 3]


def test_threads_blocks_and_an_early_drop_of_far_neighbours_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = families(12, 130, 0.35)
    places = [tmp_path / name for name in "ab"]
    for place in places:
        place.mkdir()
    one = found_in(vectors, places[0])
    monkeypatch.setattr(near_names, "_MEMBERS", 7)
    monkeypatch.setattr(near_names, "_MOST_FOUND", 500)
    monkeypatch.setattr(near_names, "_EXACT_BLOCK", 90)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    other = found_in(vectors, places[1])
    assert one.tobytes() == other.tobytes()


def test_more_neighbours_as_near_as_the_hundredth_than_can_be_held_are_cut_by_row(tmp_path: Path) -> None:
    same = np.repeat(unit(np.ones((1, 8))), 700, axis=0)
    near = found_in(same, tmp_path)
    assert np.bincount(near["second"], minlength=700).max() <= 100
    assert set(near["cosine"].tolist()) == {near["cosine"][0]}
