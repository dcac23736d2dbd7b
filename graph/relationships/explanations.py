"""The concepts that documents explain, and how concepts are related, read off a generation of the knowledge graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_FACT_KIND, IS_OWN_TITLE, IS_PASSAGE_KIND
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.explain.flows import edges_of_facts
from graph.relations import RelationType
from graph.taxonomy import tells_kind

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

    def where(self, kept: Marks) -> Links:
        """Return some of the edges, in their order."""
        return Links(*(getattr(self, column.name)[kept] for column in fields(Links)))

    def overlaid(self, others: Links) -> Links:
        """Return these edges and others, which take the place of those between the same ends."""
        if not len(others.sources):
            return self
        columns = [np.concatenate([getattr(each, column.name) for each in (others, self)]) for column in fields(Links)]
        sources, targets = columns[:2]
        _, first = np.unique(sources * (1 + targets.max()) + targets, return_index=True)
        return Links(*(column[first] for column in columns))


def no_links() -> Links:
    """Return no edge."""
    none = np.zeros(0, dtype=np.int64)
    return Links(none, none, none, np.zeros(0), np.zeros(0))


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
