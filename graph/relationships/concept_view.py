"""Concepts, which documents explain them and how they are related: computed when asked.

They follow from the published generation of the knowledge graph. The words of a user are stored, and laid over it.
"""

from __future__ import annotations

import json
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import LazySequence
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.explanations import EXPLANATION_TYPES, Links, descriptions, explanations, no_links, relatedness
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.schema import entity_id

Pruned = Mapping[tuple[str, str], str]
"""{ends of an edge that was pruned: the evidence that it rested on}."""

PRUNABLE = (EdgeType.EXPLAINS, EdgeType.RELATED_TO)
"""The types of edges that may be pruned: those of this view. What people said and did is never pruned."""

Stated = tuple[str, str, str, float, float]
"""An edge that was written: the ids of its ends, the name of its kind, and its weight and confidence, see `Links`."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A concept that is related to another."""

    id: str
    name: str
    relation: str


def evidence_of(properties: Mapping[str, PropertyValue]) -> str:
    """Return what an edge rests on as a text: pruning remembers it, and takes an edge back once it is another."""
    return json.dumps(dict(properties), sort_keys=True, ensure_ascii=False)


class ConceptView:
    """Concepts by place, and the edges at them that were not pruned: what was written is laid over what is computed.

    Those of the generation come first, in the order of their ids, and then those that were written.

    Attributes:
        documents: ids, by number.
        ids: of the concepts, by place.
        index: {concept: its place}.
        kinds: the names of explanation types, and of relation types, as the edges of each type number them.
    """

    def __init__(
        self,
        graph: KnowledgeGraph | None,
        documents: Sequence[str],
        document_of: Mapping[str, int],
        written: Sequence[Node],
        stated: Mapping[EdgeType, Sequence[Stated]],
        pruned: Mapping[EdgeType, Pruned],
        computed: dict[EdgeType, Links] | None = None,
    ) -> None:
        """Lay what was written over a generation.

        Args:
            graph: the generation; None where there is none.
            documents: ids.
            document_of: {passage: the number of its document}.
            written: the concepts that the generation does not know.
            stated: the edges that were written.
            pruned: the edges of the generation that were pruned.
            computed: holds what views of the same generation and documents have computed, and takes it from this one.
        """
        self._graph, self._document_of = graph, document_of
        self._written, self._stated, self._pruned = written, stated, pruned
        self._n = n = graph.n_entities if graph else 0
        self._computed: dict[EdgeType, Links] = {} if computed is None else computed
        self._stale: dict[EdgeType, list[tuple[str, str]]] = {of: [] for of in PRUNABLE}
        self._links: dict[EdgeType, Links] = {}
        self.documents = documents
        self.ids: Sequence[str] = LazySequence(n + len(written), self._id)
        places = {node.id: n + number for number, node in enumerate(written)}
        known = graph.entity_index if graph else {}
        self.index: Mapping[str, int] = ChainMap(places, cast(Any, known)) if places else known
        relations = [kind.relation.value for kind in graph.kinds] if graph else []
        known_kinds: dict[EdgeType, Sequence[str]] = {
            EdgeType.EXPLAINS: EXPLANATION_TYPES,
            EdgeType.RELATED_TO: relations,
        }
        self.kinds = {
            of: [*kinds, *sorted({kind for _, _, kind, *_ in stated.get(of, ())} - set(kinds))]
            for of, kinds in known_kinds.items()
        }

    def _id(self, place: int) -> str:
        return entity_id(self._graph.entity_names[place]) if self._graph and place < self._n else self._at(place).id

    def _at(self, place: int) -> Node:
        return self._written[place - self._n]

    def name(self, place: int) -> str:
        """Return how a concept is shown: as documents write it most often."""
        if self._graph and place < self._n:
            return self._graph.entity_labels[place]
        return str(self._at(place).properties["name"])

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""
        graph, n = self._graph, self._n
        wanted = np.full(n, places is None)
        wanted[[place for place in places or () if place < n]] = True
        described = descriptions(graph, wanted) if graph else {}
        for place in range(len(self.ids)) if places is None else places:
            if graph and place < n:
                values = {
                    "name": self.name(place),
                    "description": described.get(place),
                    "type": graph.entity_type(place),
                }
                yield Node(NodeType.CONCEPT, self.ids[place], values)
            else:
                yield self._at(place)

    def computed(self, of: EdgeType) -> Links:
        """Return all edges of a type, EXPLAINS or RELATED_TO, that the generation gives."""
        if of not in self._computed:
            self._computed[of] = self._compute(of)
        return self._computed[of]

    def _compute(self, of: EdgeType) -> Links:
        if self._graph is None:
            return no_links()
        numbers = (self._document_of.get(key, -1) for key in self._graph.passage_ids)
        document_of = np.fromiter(numbers, dtype=np.int64, count=len(self._graph.passages))
        return (explanations if of is EdgeType.EXPLAINS else relatedness)(self._graph, document_of)

    def links(self, of: EdgeType) -> Links:
        """Return the edges of a type: what was written, and what is computed and not pruned on the same evidence."""
        if of not in self._links:
            links = self.computed(of)
            kept = np.ones(len(links.sources), dtype=bool)
            for (source, target), evidence in self._pruned.get(of, {}).items():
                row = self._row(of, links, source, target)
                if row is not None and evidence_of(self._edge(of, links, row).properties) == evidence:
                    kept[row] = False
                else:
                    self._stale[of].append((source, target))
            self._links[of] = links.where(kept).overlaid(self._stated_links(of))
        return self._links[of]

    def stated_ends(self, of: EdgeType) -> Iterator[tuple[str, str]]:
        """Yield the ends of the edges of a type that were written over those of a generation."""
        return ((source, target) for source, target, *_ in self._stated.get(of, ()) if self._graph)

    def _stated_links(self, of: EdgeType) -> Links:
        """Return the edges of a type that were written; those whose ends are gone are left out."""
        starts = self._numbers if of is EdgeType.EXPLAINS else self.index
        rows = []
        for source, target, kind, weight, confidence in self._stated.get(of, ()):
            if source in starts and target in self.index:
                ends = [starts[source], self.index[target]]
                ordered = sorted(ends) if of is EdgeType.RELATED_TO else ends
                rows.append((*ordered, self.kinds[of].index(kind), weight, confidence))
        columns = np.array(sorted(rows), dtype=np.float64).reshape(len(rows), 5).T
        return Links(*(column.astype(np.int64) for column in columns[:3]), *columns[3:])

    def no_longer_pruned(self, of: EdgeType) -> Sequence[tuple[str, str]]:
        """Return the ends of the edges of a type that were pruned and rest on other evidence now, or are gone."""
        self.links(of)
        return self._stale[of]

    def node(self, key: str) -> Node | None:
        """Return the concept of an id; None where there is none."""
        place = self.index.get(key)
        return None if place is None else next(self.nodes([place]))

    def label(self, key: str) -> str | None:
        """Return how the concept of an id is shown; None where there is none."""
        place = self.index.get(key)
        return None if place is None else self.name(place)

    def concepts_of(self, document: str) -> list[tuple[str, float]]:
        """Return the concepts that a document explains with its relevance for them, what it explains best first."""
        number, explains = self._numbers.get(document, -1), self.links(EdgeType.EXPLAINS)
        rows = slice(*np.searchsorted(explains.sources, [number, number + 1]).tolist())
        concepts, relevance = explains.targets[rows], explains.weights[rows]
        order = np.lexsort((concepts, -relevance))
        return [(self.ids[concepts.item(at)], relevance.item(at)) for at in order.tolist()]

    def documents_of(self, concept: str) -> Sequence[str]:
        """Return the documents that explain a concept, those that explain it best first."""
        place, sources = self.index.get(concept), self.links(EdgeType.EXPLAINS).sources
        if place is None:
            return ()
        order, starts = self._by_concept
        rows = order[starts.item(place) : starts.item(place + 1)]
        return LazySequence(len(rows), lambda at: self.documents[sources.item(rows.item(at))])

    def neighbours(self, concept: str) -> Iterator[Neighbour]:
        """Yield the concepts related to one: those that most documents relate to it first, then the surest."""
        place, related = self.index.get(concept), self.links(EdgeType.RELATED_TO)
        if place is None:
            return
        order, starts = self._by_end
        n = len(related.sources)
        for at in order[starts.item(place) : starts.item(place + 1)].tolist():
            other = (related.targets if at < n else related.sources).item(at % n)
            relation = self.kinds[EdgeType.RELATED_TO][related.kinds.item(at % n)]
            yield Neighbour(self.ids[other], self.name(other), relation)

    def edges(self, of: EdgeType) -> Iterator[Edge]:
        """Yield the edges of a type, by the ids of their ends."""
        links = self.links(of)
        rows: Sequence[int] = range(len(links.sources))
        if of is EdgeType.EXPLAINS:
            rows = sorted(rows, key=lambda row: self.documents[links.sources.item(row)])
        return (self._edge(of, links, row) for row in rows)

    def edge(self, of: EdgeType, source: str, target: str) -> Edge | None:
        """Return the edge of a type between two ids; None where there is none."""
        row = self.row(of, source, target)
        return None if row is None else self.edge_at(of, row)

    def row(self, of: EdgeType, source: str, target: str) -> int | None:
        """Return the place of that edge in the columns of its type; None where there is none."""
        return self._row(of, self.links(of), source, target)

    def edge_at(self, of: EdgeType, row: int) -> Edge:
        """Return the edge of a type at a place of its columns."""
        return self._edge(of, self.links(of), row)

    def computed_edge(self, edge: Edge) -> Edge | None:
        """Return what the generation gives for an edge, pruned or not; None where nothing."""
        links = self.computed(edge.type)
        row = self._row(edge.type, links, edge.source[1], edge.target[1])
        return None if row is None else self._edge(edge.type, links, row)

    def _edge(self, of: EdgeType, links: Links, row: int) -> Edge:
        start, kind, weight = links.sources.item(row), self.kinds[of][links.kinds.item(row)], links.weights.item(row)
        end, confidence = self.ids[links.targets.item(row)], links.confidence.item(row)
        properties: dict[str, PropertyValue]
        if of is EdgeType.EXPLAINS:
            source = (NodeType.DOCUMENT, self.documents[start])
            properties = {"relevance_score": weight, "explanation_type": kind, "confidence": confidence}
            return Edge(of, source, (NodeType.CONCEPT, end), properties)
        first, second = sorted((self.ids[start], end))
        properties = {"relation": kind, "documents": int(weight), "confidence": confidence}
        return Edge(of, (NodeType.CONCEPT, first), (NodeType.CONCEPT, second), properties)

    def _row(self, of: EdgeType, links: Links, source: str, target: str) -> int | None:
        """Return where the edge between two ids stands in columns that are in the order of their ends."""
        start = (self._numbers if of is EdgeType.EXPLAINS else self.index).get(source)
        end = self.index.get(target)
        if start is None or end is None:
            return None
        if of is EdgeType.RELATED_TO:
            start, end = min(start, end), max(start, end)
        first, last = np.searchsorted(links.sources, [start, start + 1]).tolist()
        row = first + int(np.searchsorted(links.targets[first:last], end))
        return row if row < last and links.targets.item(row) == end else None

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {key: number for number, key in enumerate(self.documents)}

    @cached_property
    def _by_concept(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of EXPLAINS by concept, the most relevant first, and where each concept's begin."""
        links = self.links(EdgeType.EXPLAINS)
        order = np.lexsort((links.sources, -links.weights, links.targets))
        return order, np.searchsorted(links.targets[order], np.arange(len(self.ids) + 1))

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of RELATED_TO by each of their ends, best first; n more for a second end, of n rows."""
        pairs = self.links(EdgeType.RELATED_TO)
        ends = np.concatenate([pairs.sources, pairs.targets])
        order = np.lexsort((np.arange(len(ends)), np.tile(-pairs.confidence, 2), np.tile(-pairs.weights, 2), ends))
        return order, np.searchsorted(ends[order], np.arange(len(self.ids) + 1))
