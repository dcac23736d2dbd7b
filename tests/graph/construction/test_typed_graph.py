from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graph.construction.edges import EDGE_KINDS, EdgeKind, TypedGraph
from graph.relations import PassageLink
from graph.schema import RelationType
from tests.builders import typed_graph

TEMPORAL, CAUSAL = EdgeKind(RelationType.TEMPORAL), EdgeKind(RelationType.CAUSALITY)
MENTION = EdgeKind(RelationType.PRIMARY, PassageLink.MENTION)


@pytest.fixture
def graph() -> TypedGraph:
    """Three entities (the last isolated) and two passages."""
    edges = [(0, 1, TEMPORAL, 1.0), (0, 1, CAUSAL, 2.0), (1, 3, MENTION, 0.5), (0, 4, MENTION, 0.25)]
    return typed_graph(3, 2, edges).typed


def test_arcs_that_arrive_at_a_node_tell_which_end_of_their_edge_they_leave(graph: TypedGraph) -> None:
    arcs, n_kinds = graph.arriving, len(EDGE_KINDS)
    found = [
        [
            (
                int(arcs.node[at]),
                EDGE_KINDS[arcs.kind[at] % n_kinds],
                bool(arcs.kind[at] >= n_kinds),
                float(arcs.weight[at]),
            )
            for at in range(arcs.starts[node], arcs.starts[node + 1])
        ]
        for node in range(5)
    ]
    assert found == [
        [(1, TEMPORAL, True, 1.0), (1, CAUSAL, True, 2.0), (4, MENTION, True, 0.25)],
        [(3, MENTION, True, 0.5), (0, TEMPORAL, False, 1.0), (0, CAUSAL, False, 2.0)],
        [],
        [(1, MENTION, False, 0.5)],
        [(0, MENTION, False, 0.25)],
    ]


def test_degrees_are_kept_by_kind(graph: TypedGraph) -> None:
    expected = np.zeros((5, len(EDGE_KINDS)))
    expected[[0, 1], EDGE_KINDS.index(TEMPORAL)] = 1.0
    expected[[0, 1], EDGE_KINDS.index(CAUSAL)] = 2.0
    expected[[1, 3], EDGE_KINDS.index(MENTION)] = 0.5
    expected[[0, 4], EDGE_KINDS.index(MENTION)] = 0.25
    assert np.array_equal(graph.kind_degrees, expected)
    assert graph.n_arcs.tolist() == [3, 3, 1, 1, 1]


def test_links_that_no_fact_makes_can_be_left_out() -> None:
    """Of the passages 3 and 4 the title is linked, with 5 and 6 a name; in 3 and 5 a fact holds it."""
    for titles, mentions, kept in [
        (True, True, [3, 4, 5, 6]),
        (False, True, [3, 5, 6]),
        (True, False, [3, 4, 5]),
        (False, False, [3, 5]),
    ]:
        title = EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)
        edges = [
            (0, 1, TEMPORAL, 1.0),
            (0, 3, title, 1.0),
            (0, 4, title, 1.0),
            (1, 5, MENTION, 1.0),
            (1, 6, MENTION, 1.0),
        ]
        graph = typed_graph(3, 4, edges)
        in_fact = np.isin(graph.edges.target, [3, 5]).astype(np.float32)
        graph = replace(graph, edges=replace(graph.edges, count=in_fact))
        part = graph.with_links(titles=titles, mentions=mentions)
        assert part.target.tolist() == [1, *kept], titles
        assert (part.n_entities, part.n_passages) == (3, 4), titles


def test_edges_out_of_order_are_refused() -> None:
    source, target = np.array([1, 0], np.int32), np.array([2, 2], np.int32)
    with pytest.raises(ValueError, match="order"):
        TypedGraph(2, 1, source, target, np.zeros(2, np.uint8), np.ones(2, np.float32))
