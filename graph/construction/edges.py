"""Typed edges: what kinds there are, and the columns that hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

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

    @property
    def name(self) -> str:
        """What tells it apart in a file that outlives this version's order of kinds."""
        return f"{self.relation} ({self.link})" if self.link else str(self.relation)


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
