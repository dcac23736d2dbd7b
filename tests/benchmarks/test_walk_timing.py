from __future__ import annotations

import numpy as np
import pytest

from benchmarks.synthetic import Counts, synthetic_graph
from benchmarks.walk_timing import SETTINGS, UNDIRECTED_SETTING, measure_setting
from benchmarks.walkers import PUBLISHED, REFERENCE, WALKERS
from graph.construction.edges import TypedGraph

pytest.importorskip("numba")


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    return synthetic_graph(Counts(400, 250, 500, 1500, 900), np.random.default_rng(0))


def test_every_way_is_asked_every_question_and_compared(graph: TypedGraph) -> None:
    for setting in SETTINGS:
        table = measure_setting(graph, setting, 3, np.random.default_rng(0))
        assert [series.walker for series in table.series] == list(setting.walkers), setting
        for series in table.series:
            assert len(series.ms) == len(series.engines) == len(series.arcs) == len(series.agreement) == 3, setting
            assert min(series.ms) > 0, setting
            assert all(found.holds for found in series.agreement), setting


def test_only_the_setting_of_the_published_walk_has_the_published_way() -> None:
    assert [PUBLISHED in setting.walkers for setting in SETTINGS] == [True, False, False]
    assert set(UNDIRECTED_SETTING.walkers) == set(WALKERS)


def test_exact_ways_agree_with_the_reference(graph: TypedGraph) -> None:
    table = measure_setting(graph, UNDIRECTED_SETTING, 2, np.random.default_rng(0))
    for walker in (PUBLISHED, REFERENCE, "matrix64", "matrix"):
        assert all(found.distance < 1e-5 and found.equal[5] for found in table.of(walker).agreement)


def test_slow_ways_can_be_asked_fewer_questions(graph: TypedGraph) -> None:
    table = measure_setting(graph, UNDIRECTED_SETTING, 3, np.random.default_rng(0), {REFERENCE: 2, PUBLISHED: 1})
    asked = {series.walker: len(series.ms) for series in table.series}
    assert asked == {**dict.fromkeys(WALKERS, 3), REFERENCE: 2, PUBLISHED: 1}
    assert len(table.of("matrix").agreement) == 2


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
