"""Random small graphs and walks on them, for what holds of any walk; and a walk with what its edges carry."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from graph.construction.edges import EDGE_KINDS, IS_PASSAGE_KIND, EdgeKind, TypedGraph
from graph.explain.flows import Flows, flows_of
from graph.walk.factors import EdgeFactors
from graph.walk.pagerank import walk
from graph.walk.settings import Engine
from tests.builders import typed_graph
from tests.walking import KINDS, Vector

Edge = tuple[int, int, EdgeKind, float]
Given = tuple[TypedGraph, Vector, EdgeFactors, float]

weights = st.sampled_from([0.0, 0.05, 0.5, 1.0, 3.5])
factor_values = st.sampled_from([0.0, 0.02, 0.3, 1.0, 10.0])
dampings = st.sampled_from([0.0, 0.3, 0.5, 0.7, 0.85, 0.99])


@st.composite
def graphs(draw: st.DrawFn) -> TypedGraph:
    n_entities, n_passages = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    edges: list[Edge] = []
    for kind in draw(st.lists(st.sampled_from(EDGE_KINDS), max_size=14)):
        a = draw(st.integers(0, n_entities - 1))
        b = (
            draw(st.integers(0, n_entities - 1))
            if kind.link is None
            else n_entities + draw(st.integers(0, n_passages - 1))
        )
        if a != b:
            edges.append((a, b, kind, draw(weights)))
    return typed_graph(n_entities, n_passages, edges).typed


@st.composite
def walks(draw: st.DrawFn, *, symmetric: bool = False) -> Given:
    graph = draw(graphs())
    restart = np.array(
        draw(st.lists(st.sampled_from([0.0, 0.05, 1.0]), min_size=graph.n_nodes, max_size=graph.n_nodes))
    )
    restart[draw(st.integers(0, graph.n_nodes - 1))] += 0.5
    from_entity = np.array(draw(st.lists(factor_values, min_size=KINDS, max_size=KINDS)))
    from_passage = from_entity.copy()
    if not symmetric:
        drawn = draw(st.lists(factor_values, min_size=KINDS, max_size=KINDS))
        is_passage_kind = IS_PASSAGE_KIND[:KINDS]
        from_passage[is_passage_kind] = np.array(drawn)[is_passage_kind]
    return graph, restart, EdgeFactors(from_entity, from_passage), draw(dampings)


def walked(graph: TypedGraph, restart: Vector, factors: EdgeFactors, damping: float) -> Flows:
    """Walk by the reference engine and return what each edge carries."""
    found = walk(graph, restart, factors, damping, Engine.IGRAPH)
    return flows_of(graph, found.scores, restart, factors, damping)
