from __future__ import annotations

import numpy as np
import pytest

from benchmarks.synthetic import Counts, draw_questions, synthetic_graph
from benchmarks.walk_costs import find_limits, measure_beta, measure_push_floor
from benchmarks.walk_timing import UNDIRECTED_SETTING, measure_setting
from graph.construction.edges import TypedGraph

pytest.importorskip("numba")


@pytest.fixture(scope="module")
def graph() -> TypedGraph:
    return synthetic_graph(Counts(300, 50, 400, 900, 450), np.random.default_rng(0))


def test_each_question_is_measured(graph: TypedGraph) -> None:
    questions = draw_questions(graph, 2, np.random.default_rng(0))
    beta = measure_beta(graph, questions)
    assert len(beta.degrees) == len(beta.walk) == len(measure_push_floor(graph, questions)) == 2


def test_limits_are_of_our_engines_and_their_median_walk(graph: TypedGraph) -> None:
    table = measure_setting(graph, UNDIRECTED_SETTING, 3, np.random.default_rng(0))
    limits = find_limits(graph, table)
    assert [limit.walker for limit in limits] == ["matrix64", "matrix", "push"]
    for limit in limits:
        series = table.of(limit.walker)
        assert limit.arcs in series.arcs
        assert limit.ms == np.median(series.ms)
        assert limit.touched.streamed > 0
