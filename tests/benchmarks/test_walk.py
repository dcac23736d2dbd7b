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
from graph.errors import WorkspaceDamaged
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


def test_the_graph_of_a_workspace_comes_first(tmp_path: Path) -> None:
    workspace = publish_workspace(tmp_path, [passage_of("p1", "Nissan", "Nissan was founded in 1933.")])
    names = [name for name, _ in walk._graphs(options(workspace=tmp_path))]
    assert names == ["workspace", "size 0.01"]
    generation = workspace.current()
    assert generation is not None
    (workspace.index_folder(generation) / "snapshot.json").write_text("{}", encoding="utf-8")
    with pytest.raises(WorkspaceDamaged, match="cannot be read"):
        next(walk._graphs(options(workspace=tmp_path)))
