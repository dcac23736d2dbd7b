"""Drawings of workflow ragenta: every edge that it has, and none besides."""

from __future__ import annotations

import asyncio
from typing import Any

from workflows import ragenta

GRAPH: Any = ragenta.graph


def test_the_drawing_has_the_edges_of_the_workflow() -> None:
    builder = ragenta.build()
    edges: set[tuple[str, str, str | None]] = {(source, target, None) for source, target in builder.edges}
    for source, branches in builder.branches.items():
        for branch in branches.values():
            edges |= {(source, target, str(label)) for label, target in (branch.ends or {}).items()}
    assert all(label != target for _, target, label in edges), "every condition has a label"
    for drawing in (GRAPH.get_graph(), asyncio.run(GRAPH.aget_graph())):
        assert {(edge.source, edge.target, edge.data) for edge in drawing.edges} == edges
