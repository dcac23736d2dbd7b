from __future__ import annotations

import numpy as np
import pytest

from graph.construction.edges import IS_PASSAGE_KIND, KIND_INDEX, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import RelationType
from graph.walk.engines.transition import arc_weights, arriving_weights, degrees
from graph.walk.factors import EdgeFactors, edge_factors
from graph.walk.settings import DIRECTED
from tests.builders import typed_graph

TEMPORAL = EdgeKind(RelationType.TEMPORAL)
TITLE = EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
DIRECTED_FACTORS = edge_factors(None, directions=DIRECTED)


@pytest.fixture
def graph() -> TypedGraph:
    return typed_graph(2, 1, [(0, 1, TEMPORAL, 0.9), (0, 2, TITLE, 0.5), (1, 2, TITLE, 0.25)]).typed


def test_a_node_weighs_its_edges_by_the_factors_of_its_side(graph: TypedGraph) -> None:
    total = degrees(graph, DIRECTED_FACTORS)
    assert total.tolist() == pytest.approx([0.9 * 0.3 + 0.5 * 10, 0.9 * 0.3 + 0.25 * 10, 0.75 * 0.1])


def test_an_edge_weighs_by_the_side_that_it_is_left_from(graph: TypedGraph) -> None:
    forward, backward = arc_weights(graph, DIRECTED_FACTORS)
    assert forward.tolist() == pytest.approx([0.9 * 0.3, 0.5 * 10, 0.25 * 10])
    assert backward.tolist() == pytest.approx([0.9 * 0.3, 0.5 * 0.1, 0.25 * 0.1])
    alike = arc_weights(graph, edge_factors(None), np.float32)
    assert alike[0] is alike[1]
    assert alike[0].dtype == np.float32


def test_what_arrives_at_a_node_weighs_by_the_side_that_it_left(graph: TypedGraph) -> None:
    """In the order of the nodes that it arrives at: entity 0, entity 1, the passage."""
    arriving = arriving_weights(graph, DIRECTED_FACTORS, np.float64)
    assert graph.arriving.node.tolist() == [1, 2, 2, 0, 0, 1]
    assert arriving.tolist() == pytest.approx([0.9 * 0.3, 0.5 * 0.1, 0.25 * 0.1, 0.9 * 0.3, 0.5 * 10, 0.25 * 10])


def test_factors_of_passages_mean_nothing_where_no_passage_ends_an_edge() -> None:
    one = np.ones(len(IS_PASSAGE_KIND))
    odd = one.copy()
    odd[KIND_INDEX[TEMPORAL]] = 7.0
    assert EdgeFactors(one, odd).symmetric
    assert EdgeFactors(one, odd).from_target.tolist() == one.tolist()
