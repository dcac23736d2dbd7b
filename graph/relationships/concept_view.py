"""Concepts, which documents explain them and how they are related, read off a generation of the knowledge graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.construction.columns import LazySequence
from graph.construction.edges import IS_FACT_KIND, IS_OWN_TITLE, IS_PASSAGE_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.explain.flows import edges_of_facts
from graph.relations import RelationType
from graph.relationships.schema import Edge, EdgeType, Node, NodeType, PropertyValue
from graph.schema import entity_id
from graph.taxonomy import tells_kind

CONCEPT_EDGES = (EdgeType.EXPLAINS, EdgeType.RELATED_TO)
"""The types of edges that follow from a generation."""

Stated = tuple[str, str, str, float, float]
"""An edge that was written: the ids of its ends, the name of its kind, and its weight and confidence, see `Links`."""

RELATED_PER_CONCEPT = 100
"""RELATED_TO edges that a concept has at most: those in most documents, then the surest."""

NAME_ALONE = 0.5
"""The confidence in a name that a document holds without a statement about it."""

_DIGITS = 4

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]
Marks = NDArray[np.bool_]


class ExplanationType(StrEnum):
    """The part that a document plays for a concept: the first that holds, in this order."""

    DEFINITION = "definition"
    """The document has the concept as its title, or says what it is or belongs to (subject of a HIERARCHICAL fact)."""
    EXAMPLE = "example"
    """The document names something that is one or belongs to it (object of a HIERARCHICAL fact)."""
    APPLICATION = "application"
    """The document says what it does, causes or has, or who made it (CAUSALITY, ATTRIBUTION or an own type)."""
    SETTING = "setting"
    """The document says when or where it is or was, or what is or was then or there (TEMPORAL or SPATIAL)."""
    MENTION = "mention"
    """The document names it, and states nothing of it."""


EXPLANATION_TYPES = tuple(ExplanationType)

_MENTION = EXPLANATION_TYPES.index(ExplanationType.MENTION)
_AS_SUBJECT = {
    RelationType.HIERARCHICAL: ExplanationType.DEFINITION,
    RelationType.CAUSALITY: ExplanationType.APPLICATION,
    RelationType.ATTRIBUTION: ExplanationType.APPLICATION,
    RelationType.TEMPORAL: ExplanationType.SETTING,
    RelationType.SPATIAL: ExplanationType.SETTING,
}
_AS_OBJECT = {**_AS_SUBJECT, RelationType.HIERARCHICAL: ExplanationType.EXAMPLE}


@dataclass(frozen=True, slots=True)
class Links:
    """EXPLAINS or RELATED_TO edges, one element each, by their sources and then their targets.

    Attributes:
        sources: numbers of the documents that explain, or indices of entities, the smaller ones of pairs.
        targets: indices of entities.
        kinds: indices into ``EXPLANATION_TYPES``, or into the graph's kinds of edges, whose relation types they have.
        weights: how relevant the document is, in [0, 1], or how many documents relate the two.
        confidence: in [0, 1].
    """

    sources: Ints
    targets: Ints
    kinds: Ints
    weights: Doubles
    confidence: Doubles

    def values(self, of: EdgeType) -> Doubles:
        """Return what each edge is worth, in [0, 1]: confidence times relevance, or n / (n + 1) of n documents."""
        return self.confidence * (self.weights if of is EdgeType.EXPLAINS else self.weights / (self.weights + 1.0))

    def where(self, kept: Marks) -> Links:
        """Return some of the edges, in their order."""
        return Links(*(getattr(self, column.name)[kept] for column in fields(Links)))


@dataclass(frozen=True, slots=True)
class _Statements:
    """The facts of a graph, once for each passage that states one; facts of a name with itself are left out.

    Attributes:
        subjects, objects: indices of the entities.
        documents: numbers of the documents.
        relations: indices into the relation types of the graph's facts.
        confidences: the mean over all passages that state a fact of that pair and type.
    """

    subjects: Ints
    objects: Ints
    documents: Ints
    relations: NDArray[np.intp]
    confidences: Doubles


def explanations(graph: KnowledgeGraph, document_of: Ints) -> Links:
    """Return which concepts each document explains.

    The relevance is 1 where the concept is the title of the document, else the largest weight of an edge between the
    concept and a passage of the document (0.4 role + 0.4 similarity + 0.2 position, as the walk has it). The type is
    `ExplanationType`'s first that holds. The confidence is 1 for a title, that of the surest fact of the document with
    the concept, and at least `NAME_ALONE` times the share in which documents write its name as a name.

    Args:
        graph: the generation.
        document_of: the number of each passage's document; -1 for a passage that belongs to none.
    """
    edges, n = graph.edges, graph.n_entities
    kept = IS_PASSAGE_KIND[edges.kind]
    kept[kept] = document_of[edges.target[kept] - n] >= 0
    entities, passages = edges.source[kept].astype(np.int64), edges.target[kept].astype(np.int64) - n
    titled = IS_OWN_TITLE[edges.kind[kept]]
    stated = _statements(graph, document_of)
    no_weight = np.zeros(2 * len(stated.documents))
    as_stated = [_types_of(types, graph)[stated.relations] for types in (_AS_SUBJECT, _AS_OBJECT)]
    documents = np.concatenate([document_of[passages], stated.documents, stated.documents])
    concepts = np.concatenate([entities, stated.subjects, stated.objects])
    weight = np.concatenate([np.where(titled, 1.0, edges.weight[kept]), no_weight])
    kinds = np.concatenate([np.where(titled, 0, _MENTION), *as_stated])
    spelled = np.where(titled, 1.0, NAME_ALONE * graph.name_shares[entities])
    confidence = np.concatenate([spelled, stated.confidences, stated.confidences])
    keys, groups = np.unique(documents * max(1, n) + concepts, return_inverse=True)
    return Links(
        sources=keys // max(1, n),
        targets=keys % max(1, n),
        weights=_rounded(_largest(weight, groups, len(keys))),
        kinds=_MENTION - _largest((_MENTION - kinds).astype(np.float64), groups, len(keys)).astype(np.int64),
        confidence=_rounded(_largest(confidence, groups, len(keys))),
    )


def relatedness(graph: KnowledgeGraph, document_of: Ints) -> Links:
    """Return which concepts the facts relate.

    The relation is the type with the largest sum of confidences. Statements confirm each other: the confidence is
    1 - Π (1 - c) over all statements, c being the mean of a type. A concept keeps `RELATED_PER_CONCEPT` edges, and
    an edge has to be among those of both its ends.

    Args:
        graph: the generation.
        document_of: the number of each passage's document; -1 for a passage that belongs to none.
    """
    edges, n = graph.edges, max(1, graph.n_entities)
    is_fact = IS_FACT_KIND[edges.kind]
    pairs = edges.source[is_fact].astype(np.int64) * n + edges.target[is_fact]
    weights, counts = edges.weight[is_fact].astype(np.float64), np.maximum(edges.count[is_fact].astype(np.float64), 1)
    order = np.lexsort((edges.kind[is_fact], -weights, pairs))
    keys, first = np.unique(pairs[order], return_index=True)
    with np.errstate(divide="ignore"):
        doubts = counts * np.log1p(-np.minimum(1.0, weights / counts))
    doubt = np.add.reduceat(doubts[order], first) if len(keys) else np.zeros(0)
    related = Links(
        sources=keys // n,
        targets=keys % n,
        kinds=edges.kind[is_fact][order][first].astype(np.int64),
        weights=_documents_of_pairs(_statements(graph, document_of), keys, n),
        confidence=_rounded(1 - np.exp(doubt)),
    )
    return _without_hubs(related, n)


def descriptions(graph: KnowledgeGraph, wanted: Marks) -> dict[int, str]:
    """Return {entity: what facts say that it is}, of the fact in most passages; the first by id where several are.

    Args:
        graph: the generation.
        wanted: of each entity, whether it is to be described.
    """
    passages = np.diff(graph.facts.passages.starts)
    texts: dict[int, tuple[int, str]] = {}
    for place in np.flatnonzero(_is_hierarchical(graph) & wanted[graph.facts.ends[:, 0]]).tolist():
        subject, known = graph.facts.ends.item(place, 0), passages.item(place)
        if known > texts.get(subject, (0, ""))[0]:
            fact = graph.facts.rows.at(place).fact
            if tells_kind(fact.predicate):
                texts[subject] = (known, fact.object)
    return {entity: text for entity, (_, text) in texts.items()}


def _is_hierarchical(graph: KnowledgeGraph) -> Marks:
    return np.asarray(graph.facts.relations == graph.facts.types.index(RelationType.HIERARCHICAL))


def _statements(graph: KnowledgeGraph, document_of: Ints) -> _Statements:
    facts = graph.facts
    owners = np.repeat(np.arange(len(facts)), np.diff(facts.passages.starts))
    ends = facts.ends.astype(np.int64)
    confidences = _mean_confidences(graph)
    kept = (ends[:, 0] != ends[:, 1])[owners] & (document_of[facts.passages.values] >= 0)
    owners = owners[kept]
    return _Statements(
        subjects=ends[owners, 0],
        objects=ends[owners, 1],
        documents=document_of[facts.passages.values[kept]],
        relations=facts.relations[owners].astype(np.intp),
        confidences=confidences[owners],
    )


def _mean_confidences(graph: KnowledgeGraph) -> Doubles:
    """Return of each fact the mean confidence of all statements of its pair and type; 0 for a loop, which has none."""
    edges, places = graph.edges, edges_of_facts(graph)
    if not len(edges):
        return np.zeros(len(places))
    means = edges.weight[places].astype(np.float64) / np.maximum(1, edges.count[places])
    return np.where(places >= 0, np.minimum(1.0, means), 0.0)


def _documents_of_pairs(stated: _Statements, pairs: Ints, n_entities: int) -> Doubles:
    """Return of each pair of entities, which ascend, in how many documents a fact relates them."""
    low, high = np.minimum(stated.subjects, stated.objects), np.maximum(stated.subjects, stated.objects)
    order = np.lexsort((stated.documents, low * n_entities + high))
    keys, documents = (low * n_entities + high)[order], stated.documents[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (keys[1:] != keys[:-1]) | (documents[1:] != documents[:-1])
    return np.bincount(np.searchsorted(pairs, keys[new]), minlength=len(pairs)).astype(np.float64)


def _without_hubs(pairs: Links, n_entities: int) -> Links:
    ends = np.concatenate([pairs.sources, pairs.targets])
    order = np.lexsort((np.tile(-pairs.confidence, 2), np.tile(-pairs.weights, 2), ends))
    starts = np.searchsorted(ends[order], np.arange(n_entities))
    rank = np.empty(len(ends), dtype=np.int64)
    rank[order] = np.arange(len(ends)) - starts[ends[order]]
    return pairs.where(np.asarray((rank < RELATED_PER_CONCEPT).reshape(2, -1).all(axis=0)))


def _largest(values: Doubles, groups: NDArray[np.intp], n_groups: int) -> Doubles:
    maxima = np.zeros(n_groups)
    np.maximum.at(maxima, groups, values)
    return maxima


def _rounded(values: Doubles) -> Doubles:
    """Return shares that differ by more than a last digit if they differ at all."""
    return np.clip(np.round(values, _DIGITS), 0.0, 1.0)


def _types_of(types: Mapping[RelationType, ExplanationType], graph: KnowledgeGraph) -> Ints:
    """Return of each relation type of a graph's facts what it makes of a document; an own type tells an application."""
    made = (types.get(relation, ExplanationType.APPLICATION) for relation in graph.facts.types)
    return np.asarray([EXPLANATION_TYPES.index(each) for each in made], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A concept that is related to another."""

    id: str
    name: str
    relation: str


class ConceptView:
    """Concepts by place, in the order of their ids, and the edges at them: of a generation, else those that are stored.

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
        written: Sequence[Node] = (),
        stated: Mapping[EdgeType, Sequence[Stated]] | None = None,
        bar: float = 0.0,
    ) -> None:
        """Take what the view is of.

        Args:
            graph: the generation; None where there is none.
            documents: ids.
            document_of: {passage: the number of its document}.
            written: the concepts that are stored, where there is no generation.
            stated: the edges that are stored, where there is no generation.
            bar: edges of the generation that are worth less are pruned.
        """
        self._graph, self._document_of, self._stated, self._bar = graph, document_of, stated or {}, bar
        self._links: dict[EdgeType, Links] = {}
        self.documents = documents
        self.ids: Sequence[str]
        self.index: Mapping[str, int]
        self.kinds: Mapping[EdgeType, Sequence[str]]
        self._names: Sequence[str]
        if graph is None:
            self.ids, self._names = [node.id for node in written], [str(node.properties["name"]) for node in written]
            self.index = {key: place for place, key in enumerate(self.ids)}
            self.kinds = {of: sorted({kind for _, _, kind, *_ in edges}) for of, edges in self._stated.items()}
        else:
            names = graph.entity_names
            self.ids = LazySequence(len(names), lambda place: entity_id(names[place]))
            self.index, self._names = graph.entity_index, graph.entity_labels
            relations = [kind.relation.value for kind in graph.kinds]
            self.kinds = {EdgeType.EXPLAINS: EXPLANATION_TYPES, EdgeType.RELATED_TO: relations}

    def nodes(self, places: Sequence[int] | None = None) -> Iterator[Node]:
        """Yield the concepts of the generation at some places; all without."""
        if self._graph is None:
            return
        chosen = range(len(self.ids)) if places is None else places
        wanted = np.zeros(len(self.ids), dtype=bool)
        wanted[[*chosen]] = True
        described = descriptions(self._graph, wanted)
        for place in chosen:
            values = {
                "name": self._names[place],
                "description": described.get(place),
                "type": self._graph.entity_type(place),
            }
            yield Node(NodeType.CONCEPT, self.ids[place], values)

    def links(self, of: EdgeType) -> Links:
        """Return the edges of a type, EXPLAINS or RELATED_TO."""
        if of not in self._links:
            links = self.unpruned(of)
            self._links[of] = links.where(links.values(of) >= self._bar)
        return self._links[of]

    def unpruned(self, of: EdgeType) -> Links:
        """Return the edges of a type, with those that are worth less than the bar."""
        graph = self._graph
        if graph is None:
            return self._stated_links(of)
        numbers = (self._document_of.get(key, -1) for key in graph.passage_ids)
        document_of = np.fromiter(numbers, dtype=np.int64, count=len(graph.passages))
        return (explanations if of is EdgeType.EXPLAINS else relatedness)(graph, document_of)

    def _stated_links(self, of: EdgeType) -> Links:
        starts = self._numbers if of is EdgeType.EXPLAINS else self.index
        rows = []
        for source, target, kind, weight, confidence in self._stated.get(of, ()):
            ends = [starts[source], self.index[target]]
            ordered = sorted(ends) if of is EdgeType.RELATED_TO else ends
            rows.append((*ordered, self.kinds[of].index(kind), weight, confidence))
        columns = np.array(sorted(rows), dtype=np.float64).reshape(len(rows), 5).T
        return Links(*(column.astype(np.int64) for column in columns[:3]), *columns[3:])

    def node(self, key: str) -> Node | None:
        """Return the concept of an id; None where there is none."""
        place = self.index.get(key)
        return None if place is None else next(self.nodes([place]), None)

    def label(self, key: str) -> str | None:
        """Return how the concept of an id is shown; None where there is none."""
        place = self.index.get(key)
        return None if place is None else self._names[place]

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
            yield Neighbour(self.ids[other], self._names[other], relation)

    def edges(self, of: EdgeType) -> Iterator[Edge]:
        """Yield the edges of a type, by the ids of their ends."""
        links = self.links(of)
        rows: Sequence[int] = range(len(links.sources))
        if of is EdgeType.EXPLAINS:
            rows = sorted(rows, key=lambda row: self.documents[links.sources.item(row)])
        return (self._edge(of, links, row) for row in rows)

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
