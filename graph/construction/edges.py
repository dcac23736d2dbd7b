"""Typed edges: what kinds there are, the columns that hold them, and the graph as a walk reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.arcs import Arcs, NodeArcs, derive_arcs
from graph.relations import ENTITY_RELATIONS, PASSAGE_RELATIONS, RelationType

MOST_KINDS = 2**8
"""Kinds that an edge's column can tell apart."""


class PassageLink(StrEnum):
    """The link between an entity and a passage."""

    OWN_TITLE = "own title"
    OTHER_TITLE = "title of another passage"
    MENTION = "mention"


@dataclass(frozen=True, slots=True)
class EdgeKind:
    """The kind of an edge, by which the walk weighs it: the relation type and, for passage edges, the link."""

    relation: RelationType
    link: PassageLink | None = None


EDGE_KINDS: tuple[EdgeKind, ...] = (
    *(EdgeKind(relation) for relation in ENTITY_RELATIONS),
    EdgeKind(RelationType.SYNONYMY),
    EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE),
    *(EdgeKind(relation, PassageLink.OTHER_TITLE) for relation in PASSAGE_RELATIONS),
    *(EdgeKind(relation, PassageLink.MENTION) for relation in PASSAGE_RELATIONS),
)
"""The built-in kinds; an edge stores its kind's index in the kinds of its graph, which begin with these."""

KIND_INDEX: Mapping[EdgeKind, int] = {kind: index for index, kind in enumerate(EDGE_KINDS)}
"""Each built-in kind's index, the same in every graph."""


def kinds_with(own: Sequence[RelationType]) -> tuple[EdgeKind, ...]:
    """Return the kinds of a graph some of whose facts are of a user's own relation types."""
    return (*EDGE_KINDS, *map(EdgeKind, own))


def _of_kinds(kinds: frozenset[EdgeKind]) -> NDArray[np.bool_]:
    """Return which indices of kinds are those of some built-in ones, for every index that an edge can store."""
    return np.asarray([index < len(EDGE_KINDS) and EDGE_KINDS[index] in kinds for index in range(MOST_KINDS)])


IS_PASSAGE_KIND = _of_kinds(frozenset(kind for kind in EDGE_KINDS if kind.link is not None))
IS_OWN_TITLE = _of_kinds(frozenset(kind for kind in EDGE_KINDS if kind.link is PassageLink.OWN_TITLE))
IS_SYNONYM_KIND = _of_kinds(frozenset((EdgeKind(RelationType.SYNONYMY),)))
IS_FACT_KIND = ~(IS_PASSAGE_KIND | IS_SYNONYM_KIND)
"""By index of kind, those of own types included."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Undirected edges, one per (pair, type), in the order of their sources; all arrays have one element an edge.

    Attributes:
        source: node index, an entity.
        target: node index, an entity, or a passage for passage edges.
        kind: index into the kinds of the graph, which begin with ``EDGE_KINDS``.
        weight: confidence sum, cosine, or composite weight.
        count: the weight that HippoRAG 2 gives: how often a fact stands, the cosine, 1 or 0 for passage edges.
        offset: for passage edges, where the name stands in the passage's content, in characters; -1 where absent.
    """

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]
    count: NDArray[np.float32]
    offset: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.source)

    def where(self, kept: NDArray[np.bool_]) -> Edges:
        """Return some of the edges, in their order."""
        return Edges(*(getattr(self, column.name)[kept] for column in fields(Edges)))


EDGE_TYPES = {
    "source": np.int32,
    "target": np.int32,
    "kind": np.uint8,
    "weight": np.float32,
    "count": np.float32,
    "offset": np.int32,
}
"""The columns of edges, as files hold them."""


def sort_edges(edges: Edges) -> Edges:
    """Return the edges in the order that a walk reads them: by source, then target, then kind."""
    order = np.lexsort((edges.kind, edges.target, edges.source))
    return Edges(*(getattr(edges, column.name)[order] for column in fields(Edges)))


@dataclass(frozen=True)
class TypedGraph:
    """Undirected typed edges between nodes that are numbered: entities first, passages after them.

    An edge stands once. Its source is an entity; edges are in the order of their sources, so that the columns are
    the arcs from source to target as they are. What else an engine reads is derived when it first asks.

    Attributes:
        source: node of each edge, ascending; an entity.
        target: node of each edge: an entity, or a passage for passage edges.
        kind: index into the graph's kinds.
        weight: non-negative.
        kinds: of edges.
        known_arcs: of these very columns, where a snapshot holds them; their order was seen to when they were written.
    """

    n_entities: int
    n_passages: int
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]
    kinds: tuple[EdgeKind, ...] = EDGE_KINDS
    known_arcs: NodeArcs | None = None

    def __post_init__(self) -> None:
        if self.known_arcs is not None:
            columns = zip(self.known_arcs.forward[1:], (self.target, self.kind, self.weight), strict=True)
            if not all(known is column for known, column in columns):
                raise ValueError("the arcs are those of other edges")
        elif len(self.source) and (np.diff(self.source) < 0).any():
            raise ValueError("edges are to be in the order of their sources: see sort_edges")
        for column in (self.source, self.target, self.kind, self.weight):
            column.flags.writeable = False

    @staticmethod
    def of(
        edges: Edges,
        n_entities: int,
        n_passages: int,
        *,
        counts: bool = False,
        kinds: tuple[EdgeKind, ...] = EDGE_KINDS,
        arcs: NodeArcs | None = None,
    ) -> TypedGraph:
        """Return the graph of the edges' weights, or of HippoRAG 2's, which are counts."""
        weight = edges.count if counts else edges.weight
        return TypedGraph(n_entities, n_passages, edges.source, edges.target, edges.kind, weight, kinds, arcs)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return self.n_entities + self.n_passages

    @cached_property
    def arcs(self) -> NodeArcs:
        """Every edge as an arc each way: as a snapshot holds them, else derived on first use."""
        known = self.known_arcs
        return derive_arcs(self.source, self.target, self.kind, self.weight, self.n_nodes) if known is None else known

    @property
    def forward(self) -> Arcs:
        """The arcs from source to target: the columns themselves."""
        return self.arcs.forward

    @property
    def backward(self) -> Arcs:
        """The arcs from target to source."""
        return self.arcs.backward

    @property
    def n_arcs(self) -> NDArray[np.int32]:
        """How many arcs leave each node; 1 for isolated nodes."""
        return self.arcs.counts

    @cached_property
    def arriving(self) -> Arcs:
        """The arcs that lead to each node, by the node that they leave.

        The kind of one that leaves an edge's target counts on from their number.
        """
        there, back = self.forward, self.backward
        # A node's arcs stand together: first those from targets, to it as a source, then those from sources.
        places = (
            np.arange(len(self)) + np.repeat(back.starts[:-1], np.diff(there.starts)),
            np.arange(len(self)) + np.repeat(there.starts[1:], np.diff(back.starts)),
        )
        kinds = (there.kind + np.uint8(len(self.kinds)), back.kind)
        columns = ((there.node, back.node), kinds, (there.weight, back.weight))
        arcs = Arcs(there.starts + back.starts, *(_merged(parts, places) for parts in columns))
        for column in arcs:
            column.flags.writeable = False
        return arcs

    @cached_property
    def kind_degrees(self) -> NDArray[np.float64]:
        """Each node's weight by kind of edge, shape (n_nodes, number of kinds): the degrees under any factors."""
        n_kinds = len(self.kinds)
        degrees = np.zeros(self.n_nodes * n_kinds)
        for ends in (self.source, self.target):
            degrees += np.bincount(ends * np.int64(n_kinds) + self.kind, self.weight, len(degrees))
        degrees.flags.writeable = False
        return degrees.reshape(self.n_nodes, n_kinds)

    @cached_property
    def undirected(self) -> Any:
        """The igraph graph with one edge an edge; built on first use, for the engine ``igraph`` alone."""
        return _igraph(self.n_nodes, self.source, self.target)

    @cached_property
    def directed(self) -> Any:
        """The igraph graph with one arc each way: first all forward, then all backward; built on first use."""
        source = np.concatenate([self.source, self.target])
        target = np.concatenate([self.target, self.source])
        return _igraph(self.n_nodes, source, target, directed=True)


def _merged(
    parts: tuple[NDArray[Any], NDArray[Any]], places: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> NDArray[Any]:
    """Return one array with the elements of both at their places."""
    merged = np.empty(sum(map(len, parts)), dtype=parts[0].dtype)
    for part, place in zip(parts, places, strict=True):
        merged[place] = part
    return merged


def _igraph(n_nodes: int, source: NDArray[np.int32], target: NDArray[np.int32], *, directed: bool = False) -> Any:
    import igraph

    return igraph.Graph(n=n_nodes, edges=np.column_stack([source, target]), directed=directed)
