from __future__ import annotations

import numpy as np
import pytest

from benchmarks.synthetic import Counts, draw_questions, synthetic_graph
from benchmarks.walkers import factor_by_relation, published_graph, published_walk
from graph.construction.edges import TypedGraph
from graph.walk.factors import edge_factors
from graph.walk.pagerank import walk
from graph.walk.settings import Engine


@pytest.fixture
def graph() -> TypedGraph:
    return synthetic_graph(Counts(120, 30, 150, 400, 200), np.random.default_rng(0))


def test_the_published_way_finds_what_the_igraph_engine_finds(graph: TypedGraph) -> None:
    network = published_graph(graph)
    for question in draw_questions(graph, 3, np.random.default_rng(0)):
        factors = edge_factors(question.beta)
        published = published_walk(network, question.restart, factor_by_relation(factors), 0.5)
        reference = walk(graph, question.restart, factors, 0.5, Engine.IGRAPH)
        assert np.abs(published - reference.scores).sum() < 1e-12
