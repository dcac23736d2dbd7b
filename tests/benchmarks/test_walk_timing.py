from __future__ import annotations

import numpy as np
import pytest

from benchmarks.synthetic import Counts, synthetic_graph
from benchmarks.walk_timing import SETTINGS, UNDIRECTED_SETTING, measure_setting
from benchmarks.walkers import PUBLISHED, REFERENCE
from graph.construction.edges import TypedGraph

pytest.importorskip("numba")


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    return synthetic_graph(Counts(400, 250, 500, 1500, 900), np.random.default_rng(0))


def test_exact_ways_agree_with_the_reference(graph: TypedGraph) -> None:
    table = measure_setting(graph, UNDIRECTED_SETTING, 2, np.random.default_rng(0))
    for walker in (PUBLISHED, REFERENCE, "matrix64", "matrix"):
        assert all(found.distance < 1e-5 and found.equal[5] for found in table.of(walker).agreement)


def test_a_way_says_which_engine_answered(graph: TypedGraph) -> None:
    table = measure_setting(graph, SETTINGS[1], 1, np.random.default_rng(0))
    assert {series.walker: series.engines for series in table.series} == {
        "igraph": ["igraph"],
        "matrix64": ["matrix"],
        "matrix": ["matrix"],
        "push": ["push"],
        "auto": ["matrix"],
    }
    assert not table.symmetric
