"""Typed edges: what kinds there are, the columns that hold them, and the graph as a walk reads it.

A walk follows arcs, node by node. Those from source to target are the columns of the edges themselves; those from
target to source are the same edges in the order of their targets. A snapshot holds them, so that no process has to sort
what all of them read.

Edges are made of columns of evidence: what depends on the whole corpus is decided here, for all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import Array, ArrayWriter, check_bounds, check_range, joined, load_array
from graph.relations import ENTITY_RELATIONS, PASSAGE_RELATIONS, PassageClasses, PassageLink, RelationType

MOST_KINDS = 2**8
"""Kinds that an edge's column can tell apart."""


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


RELATION_KINDS = np.array(
    [
        *(KIND_INDEX.get(EdgeKind(relation), MOST_KINDS - 1) for relation in RelationType),
        *range(len(EDGE_KINDS), MOST_KINDS),
    ],
    dtype=np.uint8,
)
"""By the place of a fact's relation type, the built-in ones before a graph's own: the kind of its edges."""


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
    order: NDArray[np.integer[Any]] = np.argsort(edges.kind, kind="stable")
    for ends in (edges.target, edges.source):
        order = order[_order_of(ends[order], int(ends.max(initial=-1)) + 1)]
    return Edges(*(getattr(edges, column.name)[order] for column in fields(Edges)))


_STARTS = {"forward": "arc_forward.npy", "backward": "arc_backward.npy"}
_BACKWARD = {"source": "arc_node.npy", "kind": "arc_kind.npy", "weight": "arc_weight.npy"}
_COUNTS = "arc_counts.npy"
_READ_AT_ONCE = 1 << 22
_SORTED_AT_ONCE = 1 << 23
"""Arcs that are sorted at once: some 50 bytes of memory each."""


class Arcs(NamedTuple):
    """The arcs that leave each node, one after the other, node by node.

    Attributes:
        starts: shape (n_nodes + 1,): node u's arcs stand from starts[u] to starts[u + 1].
        node: where each arc leads.
        kind: index into the graph's kinds.
        weight: the edge's weight.
    """

    starts: NDArray[np.int64]
    node: NDArray[np.int32]
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]


class NodeArcs(NamedTuple):
    """All arcs of a graph: every edge is one each way.

    Attributes:
        forward: from source to target: the columns of the edges.
        backward: from target to source, those of a node in the order of the edges.
        counts: how many arcs leave each node, both ways; 1 for isolated nodes.
    """

    forward: Arcs
    backward: Arcs
    counts: NDArray[np.int32]


def derive_arcs(
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    kind: NDArray[np.uint8],
    weight: NDArray[np.float32],
    n_nodes: int,
) -> NodeArcs:
    """Return the arcs of some edges that are in the order of their sources."""
    there, back = (_starts(np.bincount(ends, minlength=n_nodes)) for ends in (source, target))
    order = _order_of(target, n_nodes)
    backward = Arcs(back, source[order], kind[order], weight[order])
    arcs = NodeArcs(Arcs(there, target, kind, weight), backward, _counts(there, back))
    for column in (there, *backward, arcs.counts):
        column.flags.writeable = False
    return arcs


def write_arcs(folder: Path, n_nodes: int, *, at_once: int = _SORTED_AT_ONCE) -> None:
    """Write the arcs of a snapshot's edges beside them, in memory that does not grow with their number.

    A counting sort over ranges of targets: the targets are read through once for each range. In memory stay
    two numbers a node, and the arcs of one range.

    Args:
        folder: holds ``edge_source.npy``, ``edge_target.npy``, ``edge_kind.npy`` and ``edge_weight.npy``, in the order
            of their sources.
        n_nodes: how many nodes the graph has.
        at_once: how many arcs a range may have; a node with more is a range of its own.

    Raises ValueError where an edge ends at no node.
    """
    edges = {name: np.load(folder / f"edge_{name}.npy", mmap_mode="r") for name in ("target", *_BACKWARD)}
    targets = edges.pop("target")
    there, back = (_starts(_degrees(column, n_nodes)) for column in (edges["source"], targets))
    np.save(folder / _STARTS["forward"], there)
    np.save(folder / _STARTS["backward"], back)
    np.save(folder / _COUNTS, _counts(there, back))
    with ExitStack() as stack:
        written = {
            name: stack.enter_context(ArrayWriter(folder / file, edges[name].dtype)) for name, file in _BACKWARD.items()
        }
        for first, last in _ranges(back, at_once):
            into = [start + np.flatnonzero((block >= first) & (block < last)) for start, block in _blocks(targets)]
            places = joined(into, np.int64)
            places = places[_order_of(targets[places] - np.int32(first), last - first)]
            for name, file in written.items():
                file.append(edges[name][places])


def load_arcs(
    folder: Path,
    columns: tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.float32]],
    n_entities: int,
    n_nodes: int,
    n_kinds: int,
) -> NodeArcs:
    """Open the arcs that `write_arcs` wrote; what is large stays on disk, memory-mapped.

    Args:
        folder: the snapshot's.
        columns: of its edges: target, kind and weight.
        n_entities: how many entities there are: the arcs from target to source lead to them.
        n_nodes: how many nodes there are.
        n_kinds: how many kinds of edges there are.

    Raises:
        OSError: a file cannot be read.
        ValueError: one is damaged.
    """
    n_edges = len(columns[0])
    there, back = (load_array(folder / file, np.int64, (n_nodes + 1,)) for file in _STARTS.values())
    for starts in (there, back):
        check_bounds(starts, n_edges)
    node = load_array(folder / _BACKWARD["source"], np.int32, (n_edges,))
    kind = load_array(folder / _BACKWARD["kind"], np.uint8, (n_edges,))
    weight = load_array(folder / _BACKWARD["weight"], np.float32, (n_edges,))
    check_range(node, n_entities)
    check_range(kind, n_kinds)
    counts = load_array(folder / _COUNTS, np.int32, (n_nodes,))
    check_range(counts, np.iinfo(np.int32).max)
    return NodeArcs(Arcs(there, *columns), Arcs(back, node, kind, weight), counts)


def _blocks(column: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    return ((start, column[start : start + _READ_AT_ONCE]) for start in range(0, len(column), _READ_AT_ONCE))


def _degrees(column: NDArray[np.int32], n_nodes: int) -> NDArray[np.int64]:
    degrees = np.zeros(n_nodes, dtype=np.int64)
    for _, block in _blocks(column):
        degrees += np.bincount(check_range(block, n_nodes), minlength=n_nodes)
    return degrees


def _starts(degrees: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(degrees, dtype=np.int64)])


def _counts(there: NDArray[np.int64], back: NDArray[np.int64]) -> NDArray[np.int32]:
    counts: NDArray[np.int32] = np.maximum(1, np.diff(there) + np.diff(back)).astype(np.int32)
    return counts


def _ranges(starts: NDArray[np.int64], at_once: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) of nodes that have at most so many arcs together, or are one node."""
    first, end = 0, len(starts) - 1
    while first < end:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + at_once, side="right")) - 1)
        yield first, last
        first = last


def _order_of(numbers: NDArray[np.int32], limit: int) -> NDArray[np.integer[Any]]:
    """Return where the numbers below ``limit`` stand in ascending order, equal ones as they come: a counting sort."""
    from scipy.sparse import csr_array

    places = np.arange(len(numbers), dtype=np.int32 if len(numbers) < 2**31 else np.int64)
    one_row = csr_array((places, numbers, np.array([0, len(numbers)])), shape=(1, limit))
    order: NDArray[np.integer[Any]] = one_row.tocsc().data
    return order


@dataclass(frozen=True)
class TypedGraph:
    """Undirected typed edges between nodes that are numbered: entities first, passages after them.

    An edge stands once. Its source is an entity; edges are in the order of their sources, so that the columns are
    the arcs from source to target as they are. Other arrays of an engine are derived when it first asks.

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


SYNONYMS_PER_NAME = 100
"""A pair of near names is kept when it is among so many nearest of at least one of its names."""

ROLE_SHARE, SIMILARITY_SHARE, POSITION_SHARE = 0.4, 0.4, 0.2
SUBJECT_ROLE, OBJECT_ROLE, UNTRIPLED_ROLE = 1.0, 0.7, 0.5
ABSENT_POSITION = 0.5
CLASS_QUANTILES = (1 / 3, 2 / 3)
PUBLISHED_CUTS = (0.3, 0.6)
_FREQUENT_PASSAGES, _FREQUENT_SHARE = 20, 0.01

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Marks = NDArray[np.bool_]


PASSAGE_CLASSES = "passage_classes"
"""The note of the record that says where the classes are cut."""


def is_kept(own: Marks, frequency: NDArray[np.integer], n_passages: int) -> Marks:
    """Tell which links stay: a passage's own, and mentions of names that are not too frequent to mean anything.

    Args:
        own: whether each is a name of the passage's own rather than one that its text merely spells out.
        frequency: of each link's name, how many passages spell it.
        n_passages: of the corpus.
    """
    return np.asarray(own | (frequency <= max(_FREQUENT_PASSAGES, _FREQUENT_SHARE * n_passages)))


class LinkTerms(NamedTuple):
    """The parts of the weights of entity-passage edges, one element an edge, each in [0, 1]."""

    role: Doubles
    similarity: Doubles
    position: Doubles

    @property
    def weight(self) -> Doubles:
        """0.4 role + 0.4 similarity + 0.2 position (MARA-RAG)."""
        return ROLE_SHARE * self.role + SIMILARITY_SHARE * self.similarity + POSITION_SHARE * self.position


def link_terms(subject_of: Ints, object_of: Ints, cosines: Floats, offsets: Ints, lengths: Ints) -> LinkTerms:
    """Return the terms of links of entities and passages, one element each.

    Args:
        subject_of: in how many triples of the passage the entity is the subject.
        object_of: in how many it is the object.
        cosines: of the name's vector to the passage's.
        offsets: where the name stands first, in characters; -1 where it does not.
        lengths: of the passages' contents, in characters.

    The role is 0.5 where the entity is in no triple, else its share of being subject (1.0) and object (0.7), at most 1.
    """
    n = subject_of + object_of
    role = np.minimum(1.0, (SUBJECT_ROLE * subject_of + OBJECT_ROLE * object_of) / np.maximum(1, n))
    relative = offsets / np.maximum(1, lengths)
    return LinkTerms(
        role=np.where(n > 0, role, UNTRIPLED_ROLE),
        similarity=(cosines.astype(np.float64) + 1) / 2,
        position=np.where(offsets >= 0, 1 - np.minimum(1, relative), ABSENT_POSITION),
    )


def class_cuts(weights: Doubles, classes: PassageClasses) -> tuple[float, float]:
    """Return the least weights of SECONDARY and of PRIMARY; the weights, of links without titles, are reordered."""
    if classes is not PassageClasses.THIRDS:
        return PUBLISHED_CUTS
    low, high = np.quantile(weights, CLASS_QUANTILES, overwrite_input=True) if len(weights) else (0.0, 0.0)
    return float(low), float(high)


def title_shares(chunk_of: NDArray[np.uint64]) -> Doubles:
    """Return of each passage what share of its title's edge it has: one over the root of its document's chunks.

    ``chunk_of`` has sixteen bytes for the document that each is a chunk of; zeros where it is no chunk.
    """
    _, place, sizes = np.unique(chunk_of, axis=0, return_inverse=True, return_counts=True)
    # Python's power: numpy's differs in the last bit.
    shares = np.array([size**-0.5 for size in sizes.tolist()], dtype=np.float64)
    return np.where(chunk_of.any(axis=1), shares[place.reshape(-1)], 1.0)


def passage_edges(
    entities: Ints, links: Array, is_title: Marks, shares: Doubles, n_entities: int, cuts: tuple[float, float]
) -> Edges:
    """Return the edges of weighed links of entities and passages, classed among those of the corpus.

    Args:
        entities: of the links.
        links: as the build keeps them.
        is_title: whether each entity is the title of some passage.
        shares: of each passage: the share of its title's edge that it has.
        n_entities: how many entities there are; passages are the nodes after them.
        cuts: the least weights of SECONDARY and of PRIMARY.
    """
    titled, weight = links["titled"], links["weight"]
    kind = _passage_kinds(_classify(weight, titled, cuts), titled, is_title)
    share = np.where(titled, shares[links["passage"]], 1.0)
    target = n_entities + links["passage"]
    return _edges(entities, target, kind, weight * share, links["stated"], links["offset"])


def fact_edges(subjects: Ints, objects: Ints, kinds: NDArray[np.uint8], confidences: Doubles) -> Edges:
    """One edge per pair of entities and type: the sum of the confidences of its facts; loops carry nothing.

    Args:
        subjects: entity indices, one element a triple.
        objects: the same.
        kinds: indices into the kinds of the graph.
        confidences: of the triples.
    """
    low, high = np.minimum(subjects, objects), np.maximum(subjects, objects)
    order = np.lexsort((confidences, kinds, high, low))
    order = order[low[order] != high[order]]
    low, high, kind = low[order], high[order], kinds[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(new)
    sums = np.add.reduceat(confidences[order], first) if len(first) else np.zeros(0)
    counts = np.diff(np.append(first, len(order)))
    return _edges(low[first], high[first], kind[first], sums, counts)


def nearest_pairs(pairs: Ints, cosines: Doubles, start: int, end: int) -> NDArray[np.intp]:
    """Return the places of pairs that are among the nearest ``SYNONYMS_PER_NAME`` of an end within a range.

    Args:
        pairs: all that have such an end, the smaller entity first, shape (n, 2).
        cosines: of their names' vectors.
        start: the first entity of the range.
        end: the one behind it.
    """
    side, place = np.nonzero(((pairs >= start) & (pairs < end)).T)
    name, cosine = pairs[place, side] - start, cosines[place]
    if not len(place):
        return place
    # Names, and of each the nearest first, in one number: sorting these takes a tenth of what sorting by columns does.
    key = name.astype(np.int64) << 32 | ((1 - cosine) * 2**31).astype(np.int64)
    counts = np.bincount(name, minlength=end - start)
    last = np.sort(key)[np.cumsum(counts) - counts + np.minimum(counts, SYNONYMS_PER_NAME) - 1][name]
    near, tied = key < last, np.flatnonzero(key == last)
    ends = pairs[place[tied]]
    order = np.lexsort((ends[:, 1], ends[:, 0], -cosine[tied], name[tied]))
    taken, tied = np.bincount(name[near], minlength=end - start), tied[order]
    tied = tied[taken[name[tied]] + rank_in_group(name[tied]) < SYNONYMS_PER_NAME]
    return np.concatenate([place[near], place[tied]])


def near_name_edges(low: Ints, high: Ints, cosine: Doubles, triple_passages: Ints) -> Edges:
    """Return the edges of pairs of near names.

    HippoRAG 2's weight is 0 where a name stands in no triple: there it is no node.

    Args:
        low: the smaller entity of each pair.
        high: the larger one.
        cosine: of their names' vectors.
        triple_passages: of each entity, in how many passages' triples it stands.
    """
    in_triples = (triple_passages[low] > 0) & (triple_passages[high] > 0)
    kind = np.full(len(low), KIND_INDEX[EdgeKind(RelationType.SYNONYMY)], dtype=np.uint8)
    return _edges(low, high, kind, cosine, np.where(in_triples, cosine, 0.0))


def join_edges(parts: Sequence[Edges]) -> Edges:
    """Return the edges of all parts."""
    return Edges(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Edges)))


def _classify(weight: Doubles, titled: Marks, cuts: tuple[float, float]) -> NDArray[np.intp]:
    """Return 0, 1 or 2: PRIMARY, SECONDARY, PERIPHERAL."""
    low, high = cuts
    classes = np.where(weight >= high, 0, np.where(weight >= low, 1, 2))
    return np.where(titled, 0, classes)


def _passage_kinds(classes: NDArray[np.intp], titled: Marks, is_title: Marks) -> NDArray[np.uint8]:
    of_link = {
        link: np.array([KIND_INDEX[EdgeKind(relation, link)] for relation in PASSAGE_RELATIONS], dtype=np.uint8)
        for link in (PassageLink.OTHER_TITLE, PassageLink.MENTION)
    }
    own = np.uint8(KIND_INDEX[EdgeKind(RelationType.PRIMARY, PassageLink.OWN_TITLE)])
    others = np.where(is_title, of_link[PassageLink.OTHER_TITLE][classes], of_link[PassageLink.MENTION][classes])
    return np.where(titled, own, others).astype(np.uint8)


def rank_in_group(ordered: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return of each element of an ordered column how many equal ones stand before it."""
    return np.arange(len(ordered)) - np.searchsorted(ordered, ordered)


def _edges(
    source: Ints,
    target: Ints,
    kind: NDArray[np.uint8],
    weight: NDArray[np.floating],
    count: NDArray[np.generic],
    offset: Ints | None = None,
) -> Edges:
    return Edges(
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        kind=kind,
        weight=weight.astype(np.float32),
        count=count.astype(np.float32),
        offset=np.full(len(source), -1, dtype=np.int32) if offset is None else offset.astype(np.int32),
    )
