from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest

from benchmarks import walk
from benchmarks.fresh import Memory
from benchmarks.synthetic import Counts, synthetic_graph
from benchmarks.walk_report import GraphResult
from benchmarks.walkers import WALKERS
from graph.errors import WorkspaceDamaged, WorkspaceMissing
from tests.builders import passage_of, publish_workspace

COUNTS = Counts(300, 50, 400, 900, 450)


def options(**changes: object) -> argparse.Namespace:
    given: dict[str, object] = {"workspace": None, "sizes": [0.01], "questions": 2, "seed": 0}
    limits = {"reference_questions": 2, "published_questions": 1, "other_questions": 1}
    return argparse.Namespace(**{**given, **limits, **changes})


def measure(monkeypatch: pytest.MonkeyPatch) -> GraphResult:
    monkeypatch.setattr(walk, "measure_peak", lambda graph, walker: Memory(1, 2, 3))
    return walk.measure_graph("tiny", synthetic_graph(COUNTS, np.random.default_rng(0)), options())


def test_a_graph_is_measured_in_all_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    result = measure(monkeypatch)
    assert [len(table.series) for table in result.tables] == [6, 5, 5]
    assert {len(series.ms) for table in result.tables for series in table.series} == {2}
    assert set(result.memory) == set(WALKERS) - {"auto"}
    assert result.array_bytes > 13 * result.edges


def test_on_a_large_graph_slow_ways_are_asked_less(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(walk, "_LARGE", 100)
    first, *others = measure(monkeypatch).tables
    assert {series.walker: len(series.ms) for series in first.series} == {
        **dict.fromkeys(WALKERS, 2),
        "published": 1,
    }
    assert {len(series.ms) for table in others for series in table.series} == {1}


def test_sizes_are_multiples_of_musique() -> None:
    (found,) = walk._graphs(options())
    assert found[0] == "size 0.01"
    assert found[1].n_entities == 853


def test_the_graph_of_a_workspace_comes_first(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path, [passage_of("p1", "Nissan", "Nissan was founded in 1933.")])
    names = [name for name, _ in walk._graphs(options(workspace=tmp_path))]
    assert names == ["workspace", "size 0.01"]
    generation = workspace.current()
    assert generation is not None
    (workspace.index_folder(generation) / "snapshot.json").write_text("{}", encoding="utf-8")
    with pytest.raises(WorkspaceDamaged, match="cannot be read"):
        next(walk._graphs(options(workspace=tmp_path)))


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="no index"):
        next(walk._graphs(options(workspace=tmp_path)))
