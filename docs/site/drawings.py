"""Drawings of the workflows as Mermaid blocks, read off the compiled graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.runnables.graph import Edge, Graph, Node

WORKFLOWS = ("chat", "mara", "ragenta", "retrieval", "indexing")
"""The workflows that are drawn: modules of `workflows` that have a compiled ``graph``."""


def draw_workflow(name: str) -> str:
    """Return the drawing of a workflow as a Mermaid block."""
    return mermaid(import_module(f"workflows.{name}").graph.get_graph(xray=True))


_START, _END = "__start__", "__end__"
_STYLES: Mapping[str, str] = {
    "default": "fill:#f4f4f6,stroke:#6b6b76,color:#111",
    "again": "fill:#d9e8f6,stroke:#1f5f99,color:#111",
    "fallback": "fill:#ffe3bf,stroke:#a85b00,color:#111,stroke-dasharray:5 3",
    "terminal": "fill:#fff,stroke:#6b6b76,color:#111",
}


def mermaid(graph: Graph) -> str:
    """Return a drawing as a Mermaid block: the same text for the same graph.

    Dotted arrows are taken on a condition, which is their label. Nodes that may run again, and the fallbacks that
    take over from them, have colours of their own; a subgraph has a frame.
    """
    place = {node: position for position, node in enumerate(graph.nodes)}
    arrows = sorted(_arrows(graph), key=lambda edge: (place[edge.source], place[edge.target], str(edge.data or "")))
    nodes = list(_nodes(graph, arrows))
    used = ["default", *(style for style in _STYLES if any(node.endswith(f":::{style}") for node in nodes))]
    again = _again(arrows)
    drawn = (_arrow(edge, beside_a_loop=edge.source in again) for edge in arrows)
    lines = [*nodes, *drawn, *(f"classDef {style} {_STYLES[style]}" for style in used)]
    return "\n".join(["```mermaid", "graph TD", *(f"  {line}" for line in lines), "```", ""])


def _arrows(graph: Graph) -> list[Edge]:
    """Return the arrows, led past the ends of subgraphs to the nodes within."""
    edges = list(graph.edges)
    for end in filter(_is_end_of_subgraph, graph.nodes):
        into = [edge for edge in edges if edge.target == end]
        past = [_joined(one, other) for one in into for other in edges if other.source == end]
        edges = [*(edge for edge in edges if end not in (edge.source, edge.target)), *past]
    return edges


def _joined(one: Edge, other: Edge) -> Edge:
    label = ", ".join(str(edge.data) for edge in (one, other) if edge.data)
    return one._replace(target=other.target, data=label or None, conditional=one.conditional or other.conditional)


def _is_end_of_subgraph(node: str) -> bool:
    within, _, name = node.rpartition(":")
    return bool(within) and name in (_START, _END)


def _nodes(graph: Graph, edges: Sequence[Edge]) -> Iterator[str]:
    """Yield a line for each node, those of a subgraph between the lines of its frame."""
    again = _again(edges)
    shown = [node for node in graph.nodes.values() if not _is_end_of_subgraph(node.id)]
    for subgraph, nodes in groupby(shown, lambda node: node.id.rpartition(":")[0]):
        if subgraph:
            yield f"subgraph {_safe(subgraph)}"
        for node in nodes:
            yield ("  " if subgraph else "") + _node(node, edges, again)
        if subgraph:
            yield "end"


def _node(node: Node, edges: Sequence[Edge], again: set[str]) -> str:
    if node.id in (_START, _END):
        return f'{node.id}(["{node.id.strip("_")}"]):::terminal'
    kind = ":::again" if node.id in again else ":::fallback" if _is_fallback(node, edges, again) else ""
    waits = "<br/>(waits for all branches)" if (node.metadata or {}).get("defer") else ""
    return f'{_safe(node.id)}["{node.name}{waits}"]{kind}'


def _safe(name: str) -> str:
    """Return a name that Mermaid takes: a colon would end it."""
    return name.replace(":", "_")


def _is_fallback(node: Node, edges: Sequence[Edge], again: set[str]) -> bool:
    """Whether a node is reached on a condition alone, and only from nodes that may run again."""
    into = [edge for edge in edges if edge.target == node.id]
    return bool(into) and all(edge.conditional and edge.source in again for edge in into)


def _again(edges: Sequence[Edge]) -> set[str]:
    """Return the nodes that may run again, by an edge back to themselves."""
    return {edge.source for edge in edges if edge.source == edge.target}


def _arrow(edge: Edge, *, beside_a_loop: bool) -> str:
    """Return an arrow; a longer one beside a loop, whose label would lie on its own."""
    label = str(edge.data or "").replace('"', "'")
    longer = beside_a_loop and edge.source != edge.target
    shaft = ("-..->" if longer else "-.->") if edge.conditional else "-->"
    return f"{_safe(edge.source)} {shaft}" + (f'|"{label}"|' if label else "") + f" {_safe(edge.target)}"
