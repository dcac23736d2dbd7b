"""Walks on three entities (A, B, C) and two passages (P, Q), for the tests of paths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import EdgeKind
from graph.explain.flow_paths import SHOWN_PATHS, FlowPath, PathSearch
from graph.explain.flows import Flows
from tests.builders import typed_graph
from tests.random_walks import walked
from tests.walking import NEUTRAL

A, B, C, P, Q = range(5)


def flows_from(seeds: dict[int, float], *edges: tuple[int, int, EdgeKind, float], damping: float = 0.5) -> Flows:
    """Three entities (A, B, C) and two passages (P, Q)."""
    restart = np.zeros(5)
    for node, weight in seeds.items():
        restart[node] = weight
    return walked(typed_graph(3, 2, list(edges)).typed, restart, NEUTRAL, damping)


def nodes_of(path: FlowPath) -> list[int]:
    return [path.seed, *(step.target for step in path.steps)]


def best_paths(
    flows: Flows,
    nodes: Sequence[int],
    edges: NDArray[np.bool_] | None = None,
    seeds: NDArray[np.bool_] | None = None,
    limit: int = SHOWN_PATHS,
) -> list[list[FlowPath]]:
    """The best paths to each node, whether they take a fact or not."""
    search = PathSearch(flows, edges, seeds)
    return [search.best_to(node, limit) for node in nodes]
