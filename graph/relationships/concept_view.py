"""Concepts, which documents explain them and how they are related: computed when asked, and held nowhere else.

They follow from the published generation of the knowledge graph. A workspace without one has what was imported.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import LazySequence
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.explanations import (
    EXPLANATION_TYPES,
    Explanations,
    Ints,
    Relatedness,
    descriptions,
    explanations,
    relatedness,
)
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.schema import entity_id

Pruned = Mapping[tuple[str, str], str]
"""{ends of an edge that was pruned: the evidence that it rested on}."""

Columns = TypeVar("Columns", Explanations, Relatedness)

PRUNABLE = (EdgeType.EXPLAINS, EdgeType.RELATED_TO)
"""The types of edges that may be pruned: those of this view. What people said and did is never pruned."""

_EXPLAINS_ROWS = """
    SELECT document.id, concept.id, relevance_score, explanation_type, confidence
    FROM explains JOIN document ON document.key = source JOIN concept ON concept.key = target"""
_RELATED_ROWS = """
    SELECT a.id, b.id, relation, documents, confidence
    FROM related_to JOIN concept a ON a.key = source JOIN concept b ON b.key = target"""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A concept that is related to another.

    Attributes:
        documents: how many documents state the relation.
    """

    id: str
    name: str
    relation: str
    documents: int
    confidence: float


def evidence_of(properties: Mapping[str, PropertyValue]) -> str:
    """Return what an edge rests on as a text: pruning remembers it, and takes an edge back once it is another."""
    return json.dumps(dict(properties), sort_keys=True, ensure_ascii=False)


class ConceptView(ABC):
    """Concepts by place, in the order of their ids, and the edges at them that were not pruned.

    Attributes:
        documents: ids, by number.
        ids: of the concepts, by place.
        index: {concept: its place}.
        kinds: what documents do for concepts, and ``relations``: the relation types, as the edges number them.
    """

    documents: Sequence[str]
    ids: Sequence[str]
    index: Mapping[str, int]
    kinds: Sequence[str]
    relations: Sequence[str]

    def __init__(self, pruned: Mapping[EdgeType, Pruned]) -> None:
        self._pruned = pruned
        self._stale: dict[EdgeType, list[tuple[str, str]]] = {EdgeType.EXPLAINS: [], EdgeType.RELATED_TO: []}

    @abstractmethod
    def name(self, place: int) -> str:
        """Return how a concept is shown."""

    @abstractmethod
    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""

    @abstractmethod
    def _explains(self) -> Explanations:
        """Return all EXPLAINS edges, by document and concept."""

    @abstractmethod
    def _related(self) -> Relatedness:
        """Return all RELATED_TO edges, by first and second end."""

    @cached_property
    def explains(self) -> Explanations:
        """The EXPLAINS edges, by document and concept."""
        return self._unpruned(EdgeType.EXPLAINS, self._explains())

    @cached_property
    def related(self) -> Relatedness:
        """The RELATED_TO edges, by first and second end."""
        return self._unpruned(EdgeType.RELATED_TO, self._related())

    def no_longer_pruned(self, of: EdgeType) -> Sequence[tuple[str, str]]:
        """Return the ends of the edges of a type that were pruned and rest on other evidence now, or are gone."""
        _ = self.explains if of is EdgeType.EXPLAINS else self.related
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
        number = self._numbers.get(document)
        if number is None:
            return []
        rows = slice(*self._document_starts[number : number + 2].tolist())
        concepts, relevance = self.explains.concepts[rows], self.explains.relevance[rows]
        order = np.lexsort((concepts, -relevance))
        return [(self.ids[concepts.item(at)], relevance.item(at)) for at in order.tolist()]

    def documents_of(self, concept: str) -> Sequence[str]:
        """Return the documents that explain a concept, those that explain it best first."""
        place = self.index.get(concept)
        if place is None:
            return ()
        order, starts = self._by_concept
        rows = order[starts.item(place) : starts.item(place + 1)]
        return LazySequence(len(rows), lambda at: self.documents[self.explains.documents.item(rows.item(at))])

    def neighbours(self, concept: str) -> Iterator[Neighbour]:
        """Yield the concepts related to one: those that most documents relate to it first, then the surest."""
        place = self.index.get(concept)
        if place is None:
            return
        order, starts = self._by_end
        n = len(self.related.first)
        for at in order[starts.item(place) : starts.item(place + 1)].tolist():
            row, other = at % n, (self.related.second if at < n else self.related.first).item(at % n)
            yield Neighbour(
                self.ids[other],
                self.name(other),
                self.relations[self.related.kinds.item(row)],
                self.related.documents.item(row),
                self.related.confidence.item(row),
            )

    def edges(self, of: EdgeType) -> Iterator[Edge]:
        """Yield the edges of a type, EXPLAINS or RELATED_TO, by the ids of their ends."""
        rows: Sequence[int]
        if of is EdgeType.RELATED_TO:
            rows = range(len(self.related.first))
        else:
            by_id = np.argsort(np.argsort(np.array(self.documents, dtype=object)))
            rows = np.argsort(by_id[self.explains.documents], kind="stable").tolist() if len(by_id) else ()
        for row in rows:
            yield self.edge_at(of, row)

    def edge(self, of: EdgeType, source: str, target: str) -> Edge | None:
        """Return the edge of a type, EXPLAINS or RELATED_TO, between two ids; None where there is none."""
        row = self.row(of, source, target)
        return None if row is None else self.edge_at(of, row)

    def row(self, of: EdgeType, source: str, target: str) -> int | None:
        """Return the place of that edge in the columns of its type; None where there is none."""
        return self._row(of, self.explains if of is EdgeType.EXPLAINS else self.related, source, target)

    def edge_at(self, of: EdgeType, row: int) -> Edge:
        """Return the edge of a type at a place of its columns."""
        return self._edge(of, self.explains if of is EdgeType.EXPLAINS else self.related, row)

    def _edge(self, of: EdgeType, columns: Explanations | Relatedness, row: int) -> Edge:
        confidence = columns.confidence.item(row)
        if isinstance(columns, Explanations):
            start = (NodeType.DOCUMENT, self.documents[columns.documents.item(row)])
            end, relevance = columns.concepts.item(row), columns.relevance.item(row)
            kind = self.kinds[columns.kinds.item(row)]
            told: dict[str, PropertyValue] = {"relevance_score": relevance, "explanation_type": kind}
        else:
            start, end = (NodeType.CONCEPT, self.ids[columns.first.item(row)]), columns.second.item(row)
            told = {"relation": self.relations[columns.kinds.item(row)], "documents": columns.documents.item(row)}
        return Edge(of, start, (NodeType.CONCEPT, self.ids[end]), {**told, "confidence": confidence})

    def _row(self, of: EdgeType, columns: Explanations | Relatedness, source: str, target: str) -> int | None:
        """Return where the edge between two ids stands in its columns, which are in the order of their ends."""
        start = self._numbers.get(source) if of is EdgeType.EXPLAINS else self.index.get(source)
        end = self.index.get(target)
        if start is None or end is None:
            return None
        if isinstance(columns, Explanations):
            starts, ends = columns.documents, columns.concepts
        else:
            starts, ends = columns.first, columns.second
            start, end = min(start, end), max(start, end)
        first, last = np.searchsorted(starts, [start, start + 1]).tolist()
        row = first + int(np.searchsorted(ends[first:last], end))
        return row if row < last and ends.item(row) == end else None

    def _unpruned(self, of: EdgeType, columns: Columns) -> Columns:
        """Return the edges without those that were pruned and rest on the same evidence."""
        kept = np.ones(len(columns.confidence), dtype=bool)
        for (source, target), evidence in self._pruned.get(of, {}).items():
            row = self._row(of, columns, source, target)
            if row is not None and evidence_of(self._edge(of, columns, row).properties) == evidence:
                kept[row] = False
            else:
                self._stale[of].append((source, target))
        if kept.all():
            return columns
        return replace(columns, **{each.name: getattr(columns, each.name)[kept] for each in fields(columns)})

    @cached_property
    def _numbers(self) -> Mapping[str, int]:
        return {key: number for number, key in enumerate(self.documents)}

    @cached_property
    def _document_starts(self) -> NDArray[np.intp]:
        return np.searchsorted(self.explains.documents, np.arange(len(self.documents) + 1))

    @cached_property
    def _by_concept(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of EXPLAINS by concept, the most relevant first, and where each concept's begin."""
        found = self.explains
        order = np.lexsort((found.documents, -found.relevance, found.concepts))
        return order, np.searchsorted(found.concepts[order], np.arange(len(self.ids) + 1))

    @cached_property
    def _by_end(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The rows of RELATED_TO by each of their ends, best first; n more for a second end, of n rows."""
        found = self.related
        ends = np.concatenate([found.first, found.second])
        order = np.lexsort((np.arange(len(ends)), np.tile(-found.confidence, 2), np.tile(-found.documents, 2), ends))
        return order, np.searchsorted(ends[order], np.arange(len(self.ids) + 1))


class ViewOfGeneration(ConceptView):
    """The view that a generation of the knowledge graph gives, of the documents that chunks are part of."""

    kinds = tuple(kind.value for kind in EXPLANATION_TYPES)

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
        self.relations = [kind.relation.value for kind in graph.kinds]
        self.index = graph.entity_index

    @cached_property
    def ids(self) -> Sequence[str]:  # type: ignore[override]
        """The concepts' ids."""
        names = self._graph.entity_names
        return LazySequence(len(names), lambda at: entity_id(names[at]))

    def name(self, place: int) -> str:
        """Return how documents write it most often."""
        return self._graph.entity_labels[place]

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""
        graph = self._graph
        wanted = np.ones(graph.n_entities, dtype=bool)
        if places is not None:
            wanted[:] = False
            wanted[[*places]] = True
        described = descriptions(graph, wanted)
        for place in range(graph.n_entities) if places is None else places:
            told = {"name": self.name(place), "description": described.get(place), "type": graph.entity_type(place)}
            yield Node(NodeType.CONCEPT, self.ids[place], told)

    def _explains(self) -> Explanations:
        return explanations(self._graph, self._documents_of_passages())

    def _related(self) -> Relatedness:
        return relatedness(self._graph, self._documents_of_passages())

    def _documents_of_passages(self) -> Ints:
        found = (self._document_of.get(key, -1) for key in self._graph.passage_ids)
        return np.fromiter(found, dtype=np.int64, count=len(self._graph.passages))


class ViewOfRows(ConceptView):
    """The view of what was imported, where there is no generation."""

    def __init__(self, query: Callable[[str], Iterator[Any]], nodes: Sequence[Node]) -> None:
        """``query`` runs a statement on the record; ``nodes`` are its concepts, by id."""
        super().__init__({})
        self._nodes = nodes
        self.ids = [node.id for node in nodes]
        self.index = {key: place for place, key in enumerate(self.ids)}
        self.documents = [key for (key,) in query("SELECT id FROM document ORDER BY key")]
        explained, related = list(query(_EXPLAINS_ROWS)), list(query(_RELATED_ROWS))
        self.kinds = sorted({row[3] for row in explained})
        self.relations = sorted({row[2] for row in related})
        self._explained_rows = sorted(
            (self._numbers[a], self.index[b], relevance, bisect_left(self.kinds, kind), confidence)
            for a, b, relevance, kind, confidence in explained
        )
        self._related_rows = sorted(
            (self.index[a], self.index[b], bisect_left(self.relations, relation), number, confidence)
            for a, b, relation, number, confidence in related
        )

    def name(self, place: int) -> str:
        """Return its name."""
        return str(self._nodes[place].properties["name"])

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts at some places; all without."""
        return iter(self._nodes) if places is None else (self._nodes[place] for place in places)

    def _explains(self) -> Explanations:
        documents, concepts, relevance, kinds, confidence = _columns(self._explained_rows)
        ends = (documents.astype(np.int64), concepts.astype(np.int64))
        return Explanations(*ends, relevance, kinds.astype(np.int64), confidence)

    def _related(self) -> Relatedness:
        first, second, kinds, documents, confidence = _columns(self._related_rows)
        ends = (first.astype(np.int64), second.astype(np.int64))
        return Relatedness(*ends, kinds.astype(np.int64), documents.astype(np.int64), confidence)


def _columns(rows: Sequence[tuple[float, ...]]) -> NDArray[np.float64]:
    return np.array(rows, dtype=np.float64).reshape(len(rows), 5).T
