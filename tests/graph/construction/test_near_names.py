from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graph.construction import near_names
from graph.construction.columns import ID_TYPE, Array, Ids
from graph.construction.edges import nearest_pairs
from graph.construction.near_names import find_near_names, near_pairs

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
    every = np.ones(len(vectors), np.bool_) if eligible is None else eligible
    return np.concatenate([*find_near_names(vectors, every, folder)])


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
    assert not [*tmp_path.iterdir()]


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


def test_threads_and_blocks_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = families(12, 130, 0.35)
    one = found_in(vectors, tmp_path)
    monkeypatch.setattr(near_names, "_FILES", 7)
    monkeypatch.setattr(near_names, "_EXACT_BLOCK", 90)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    other = found_in(vectors, tmp_path)
    assert one.tobytes() == other.tobytes()


def test_more_neighbours_as_near_as_the_hundredth_than_can_be_held_are_cut_by_row(tmp_path: Path) -> None:
    same = np.repeat(unit(np.ones((1, 8))), 700, axis=0)
    near = found_in(same, tmp_path)
    assert np.bincount(near["second"], minlength=700).max() <= 100
    assert set(near["cosine"].tolist()) == {near["cosine"][0]}


ALL = families(20, 6, 0.35, dimension=16)
OTHER = families(20, 6, 0.35, dimension=16, seed=8)
"""Vectors of the same names in another model's eyes."""

Pairs = dict[tuple[int, int], Any]


def ids_of(names: NDArray[np.int64]) -> Ids:
    """Return ascending ids, some of which share their first half."""
    return np.array([bytes([0, name // 3, 0, name % 3]) for name in names.tolist()], dtype=ID_TYPE)


def found_by(names: list[int], kept: Path, *, changed: frozenset[int] = frozenset(), barred: int = -1) -> Pairs:
    """Return the pairs of some names that a build finds, by the names."""
    present = np.array(sorted(names), dtype=np.int64)
    vectors = vectors_of(present, changed)
    near = near_pairs(ids_of(present), vectors, present != barred, kept, [str(sorted(changed)), str(barred)])
    rows = zip(present[near["first"]].tolist(), present[near["second"]].tolist(), strict=True)
    return dict(zip(rows, near["cosine"].tolist(), strict=True))


def vectors_of(names: NDArray[np.int64], changed: frozenset[int]) -> Floats:
    is_changed = np.isin(names, np.array(sorted(changed), dtype=np.int64))
    return np.where(is_changed[:, None], OTHER[names], ALL[names])


def wanted(names: list[int], *, changed: frozenset[int] = frozenset(), barred: int = -1) -> Pairs:
    """Return all pairs of some names."""
    present = np.array(sorted(names), dtype=np.int64)
    pairs = exact_pairs(vectors_of(present, changed))
    by_name = {(int(present[a]), int(present[b])): cosine for (a, b), cosine in pairs.items()}
    return {pair: pytest.approx(cosine, abs=1e-9) for pair, cosine in by_name.items() if barred not in pair}


def not_again(*_: object) -> NoReturn:
    raise AssertionError("all were compared with all")


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let an index find the pairs, and any number of names change; called: from now on, an index is an error."""
    monkeypatch.setattr(near_names, "EXACT_NAMES", 0)
    monkeypatch.setattr(near_names, "_SHARE", 1)
    return lambda: monkeypatch.setattr(near_names, "find_near_names", not_again)


def test_names_that_come_go_and_change_are_followed(tmp_path: Path, lenient: Callable[[], None]) -> None:
    kept = tmp_path / "near"
    assert found_by([*range(100)], kept) == wanted([*range(100)])
    lenient()
    later = [*range(5, 110)]
    assert found_by(later, kept) == wanted(later)
    assert [path.name for path in tmp_path.iterdir()] == ["near"]


def test_where_the_vectors_are_others_all_are_compared_again(tmp_path: Path) -> None:
    kept, later = tmp_path / "near", [*range(5, 110)]
    assert found_by(later, kept) == wanted(later)
    changed = frozenset([7, 50])
    assert found_by(later, kept, changed=changed) == wanted(later, changed=changed)
    assert found_by(later, kept, changed=changed, barred=9) == wanted(later, changed=changed, barred=9)
    assert found_by(later, kept) == wanted(later)


@given(
    steps=st.lists(st.sets(st.integers(0, 119), max_size=60), min_size=2, max_size=4),
    exact=st.sampled_from([0, 20, 120]),
)
@settings(deadline=None, max_examples=30)
def test_after_any_changes_all_pairs_are_there(steps: list[set[int]], exact: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(near_names, "EXACT_NAMES", exact)
        patched.setattr(near_names, "_OLD_ROWS", 16)
        patched.setattr(near_names, "_SHARE", 1)
        patched.setattr(near_names, "_NEW_ROWS", 3)
        patched.setattr(near_names, "_ROWS", 7)
        patched.setattr(near_names, "_PAIRS", 5)
        for names in steps:
            assert found_by([*names], Path(folder) / "near") == wanted([*names])


def test_where_many_changed_all_are_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "near"
    monkeypatch.setattr(near_names, "_SHARE", 20)
    monkeypatch.setattr(near_names, "EXACT_NAMES", 0)
    found_by([*range(100)], kept)
    for last, changed in (102, 2), (104, 4), (105, 5), (106, 0), (108, 2):
        found_by([*range(last)], kept)
        assert json.loads((kept / "kept.json").read_text())["changed"] == changed


def test_names_that_became_few_again_are_compared_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "near"
    monkeypatch.setattr(near_names, "EXACT_NAMES", 90)
    found_by([*range(100)], kept)
    assert json.loads((kept / "kept.json").read_text())["by_index"]
    monkeypatch.setattr(near_names, "find_near_names", not_again)
    assert found_by([*range(90)], kept) == wanted([*range(90)])
    assert not json.loads((kept / "kept.json").read_text())["by_index"]


def test_what_is_damaged_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lenient: Callable[[], None]
) -> None:
    kept, names = tmp_path / "near", [*range(60)]
    for name in ("kept.json", "ids.npy", "pairs.npy"):
        for content in (None, b"", b"\x01\x02", b'{"of": [0], "by_index": false, "changed": 0}'):
            found_by(names, kept)
            (kept / name).unlink()
            if content is not None:
                (kept / name).write_bytes(content)
            assert found_by(names, kept) == wanted(names), name
            with monkeypatch.context() as taken_over:
                taken_over.setattr(near_names, "find_near_names", not_again)
                assert found_by(names[1:], kept) == wanted(names[1:]), name
