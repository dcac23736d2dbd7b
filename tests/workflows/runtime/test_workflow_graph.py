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


def test_a_subgraph_is_drawn_with_its_nodes() -> None:
    for name in ("judge_passage", "check_claims"):
        assert any(node.startswith(f"{name}:") for node in GRAPH.get_graph(xray=True).nodes)
        assert name in GRAPH.get_graph().nodes


def test_it_is_the_same_workflow_with_its_settings() -> None:
    assert GRAPH.name == ragenta.WORKFLOW
    assert GRAPH.config["max_concurrency"] == ragenta.MAX_CONCURRENCY
    assert GRAPH.config["recursion_limit"] == ragenta.RECURSION_LIMIT
