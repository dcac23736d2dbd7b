"""Concepts, which documents explain them and how they are related: computed when asked, and held nowhere else.

They follow from the published generation of the knowledge graph. A workspace without one has what was imported.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import LazySequence
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.explanations import EXPLANATION_TYPES, Links, descriptions, explanations, relatedness
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.schema import entity_id

Pruned = Mapping[tuple[str, str], str]
"""{ends of an edge that was pruned: the evidence that it rested on}."""

PRUNABLE = (EdgeType.EXPLAINS, EdgeType.RELATED_TO)
"""The types of edges that may be pruned: those of this view. What people said and did is never pruned."""

_ROWS = {
    EdgeType.EXPLAINS: """
        SELECT document.id, concept.id, explanation_type, relevance_score, confidence
        FROM explains JOIN document ON document.key = source JOIN concept ON concept.key = target""",
    EdgeType.RELATED_TO: """
        SELECT a.id, b.id, relation, documents, confidence
        FROM related_to JOIN concept a ON a.key = source JOIN concept b ON b.key = target""",
}


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A concept that is related to another."""

    id: str
    name: str
    relation: str


def evidence_of(properties: Mapping[str, PropertyValue]) -> str:
    """Return what an edge rests on as a text: pruning remembers it, and takes an edge back once it is another."""
    return json.dumps(dict(properties), sort_keys=True, ensure_ascii=False)


class ConceptView(ABC):
    """Concepts by place, in the order of their ids, and the edges at them that were not pruned.

    Attributes:
        documents: ids, by number.
        ids: of the concepts, by place.
        index: {concept: its place}.
        kinds: the names of explanation types, and of relation types, as the edges of each type number them.
    """

    documents: Sequence[str]
    ids: Sequence[str]
    index: Mapping[str, int]
    kinds: Mapping[EdgeType, Sequence[str]]

    def __init__(self, pruned: Mapping[EdgeType, Pruned]) -> None:
        self._pruned = pruned
        self._stale: dict[EdgeType, list[tuple[str, str]]] = {of: [] for of in PRUNABLE}
        self._links: dict[EdgeType, Links] = {}

    @abstractmethod
    def name(self, place: int) -> str:
        """Return how a concept is shown."""

    @abstractmethod
    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""

    @abstractmethod
    def _all_links(self, of: EdgeType) -> Links:
        """Return all edges of a type."""

    def links(self, of: EdgeType) -> Links:
        """Return the edges of a type, EXPLAINS or RELATED_TO, without those that were pruned on the same evidence."""
        if of not in self._links:
            links = self._all_links(of)
            kept = np.ones(len(links.sources), dtype=bool)
            for (source, target), evidence in self._pruned.get(of, {}).items():
                row = self._row(of, links, source, target)
                if row is not None and evidence_of(self._edge(of, links, row).properties) == evidence:
                    kept[row] = False
                else:
                    self._stale[of].append((source, target))
            self._links[of] = links.where(kept)
        return self._links[of]

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

    def _edge(self, of: EdgeType, links: Links, row: int) -> Edge:
        start, kind, weight = links.sources.item(row), self.kinds[of][links.kinds.item(row)], links.weights.item(row)
        if of is EdgeType.EXPLAINS:
            source = (NodeType.DOCUMENT, self.documents[start])
            told: dict[str, PropertyValue] = {"relevance_score": weight, "explanation_type": kind}
        else:
            source, told = (NodeType.CONCEPT, self.ids[start]), {"relation": kind, "documents": int(weight)}
        target = (NodeType.CONCEPT, self.ids[links.targets.item(row)])
        return Edge(of, source, target, {**told, "confidence": links.confidence.item(row)})

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
        found = self.links(EdgeType.EXPLAINS)
        order = np.lexsort((found.sources, -found.weights, found.targets))
        return order, np.searchsorted(found.targets[order], np.arange(len(self.ids) + 1))

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of RELATED_TO by each of their ends, best first; n more for a second end, of n rows."""
        found = self.links(EdgeType.RELATED_TO)
        ends = np.concatenate([found.sources, found.targets])
        order = np.lexsort((np.arange(len(ends)), np.tile(-found.confidence, 2), np.tile(-found.weights, 2), ends))
        return order, np.searchsorted(ends[order], np.arange(len(self.ids) + 1))


class ViewOfGeneration(ConceptView):
    """The view that a generation of the knowledge graph gives, of the documents that chunks are part of."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        documents: Sequence[str],
        document_of: Mapping[str, int],
        pruned: Mapping[EdgeType, Pruned],
    ) -> None:
        """``document_of`` is {passage: the number of its document}."""
        super().__init__(pruned)
        self._graph = graph
        self._document_of = document_of
        self.documents = documents
        self.ids = LazySequence(graph.n_entities, lambda at: entity_id(graph.entity_names[at]))
        self.index = graph.entity_index
        self.kinds = {
            EdgeType.EXPLAINS: EXPLANATION_TYPES,
            EdgeType.RELATED_TO: [kind.relation.value for kind in graph.kinds],
        }

    def name(self, place: int) -> str:
        """Return how documents write it most often."""
        return self._graph.entity_labels[place]

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""
        graph = self._graph
        wanted = np.full(graph.n_entities, places is None)
        wanted[[*(places or ())]] = True
        described = descriptions(graph, wanted)
        for place in range(graph.n_entities) if places is None else places:
            told = {"name": self.name(place), "description": described.get(place), "type": graph.entity_type(place)}
            yield Node(NodeType.CONCEPT, self.ids[place], told)

    def _all_links(self, of: EdgeType) -> Links:
        numbers = (self._document_of.get(key, -1) for key in self._graph.passage_ids)
        document_of = np.fromiter(numbers, dtype=np.int64, count=len(self._graph.passages))
        return (explanations if of is EdgeType.EXPLAINS else relatedness)(self._graph, document_of)


class ViewOfRows(ConceptView):
    """The view of what was imported, where there is no generation."""

    def __init__(self, query: Callable[[str], Iterator[Any]], nodes: Sequence[Node]) -> None:
        """``query`` runs a statement on the record; ``nodes`` are its concepts, by id."""
        super().__init__({})
        self._nodes = nodes
        self.ids = [node.id for node in nodes]
        self.index = {key: place for place, key in enumerate(self.ids)}
        self.documents = [key for (key,) in query("SELECT id FROM document ORDER BY key")]
        self._rows = {of: list(query(statement)) for of, statement in _ROWS.items()}
        self.kinds = {of: sorted({row[2] for row in rows}) for of, rows in self._rows.items()}

    def name(self, place: int) -> str:
        """Return its name."""
        return str(self._nodes[place].properties["name"])

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""
        return iter(self._nodes) if places is None else (self._nodes[place] for place in places)

    def _all_links(self, of: EdgeType) -> Links:
        starts = self._numbers if of is EdgeType.EXPLAINS else self.index
        rows = sorted(
            (starts[source], self.index[target], self.kinds[of].index(kind), *values)
            for source, target, kind, *values in self._rows[of]
        )
        columns = np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
        return Links(*(column.astype(np.int64) for column in columns[:3]), *columns[3:])
