"""Tables of the relationship graph's nodes and edges, in Markdown, read off its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graph.relationships.schema import EDGES, NODES, EdgeType, Property

FED_BY: Mapping[EdgeType, str] = {
    EdgeType.CHUNK_OF: "indexing",
    EdgeType.SOURCED_FROM: "indexing",
    EdgeType.STORED_IN: "computed: a view of the chunks",
    EdgeType.EMBEDDING_OF: "computed: a view of the chunks",
    EdgeType.FOLLOWS: "asking in a conversation",
    EdgeType.REFERENCES: "indexing (links), asking in a conversation (citations)",
    EdgeType.PART_OF: "asking in a conversation",
    EdgeType.MENTIONS: "asking in a conversation",
    EdgeType.EXPLAINS: "computed from the published generation",
    EdgeType.RELATED_TO: "computed from the published generation",
    EdgeType.VIEWED: "asking and reading as a known user",
    EdgeType.CREATED: "asking as a known user",
    EdgeType.SIMILARITY: "a search, on request",
}
"""Which work writes each type of edge."""


def node_table() -> str:
    """Return the types of nodes with their properties."""
    rows = (f"| {of} | {', '.join(_shown(properties))} |" for of, properties in NODES.items())
    return "\n".join(["| node | properties beside its id |", "|---|---|", *rows, ""])


def edge_table() -> str:
    """Return the types of edges with what they link, their properties and what writes them."""
    rows = []
    for of, schema in EDGES.items():
        pairs = "<br/>".join(f"{start} → {end}" for start, end in schema.pairs)
        rows.append(f"| {of} | {pairs} | {', '.join(_shown(schema.properties))} | {FED_BY[of]} |")
    return "\n".join(["| edge | links | properties | written by |", "|---|---|---|---|", *rows, ""])


def _shown(properties: Mapping[str, Property]) -> Iterator[str]:
    for name, each in properties.items():
        limits = f" {each.least:g}…{each.most:g}" if each.least is not None and each.most is not None else ""
        yield f"`{name}`{limits}" + ("" if each.required else " (may be null)")
