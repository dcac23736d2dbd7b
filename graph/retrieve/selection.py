"""The part of a graph that a filter lets be seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import FactTable, GraphFact, KnowledgeGraph
from graph.schema import Fact, RelationType
from graph.text import normalise_name

_AT_ONCE = 1 << 16

_RELATIONS = [relation.value for relation in RelationType]


class SelectedFacts(Mapping[str, GraphFact]):
    """Some facts of a graph, by id: nothing of them is held but their places.

    Attributes:
        rows: their places, ascending.
    """

    def __init__(self, facts: FactTable, rows: NDArray[np.intp]) -> None:
        self._facts = facts
        self.rows = rows

    def __getitem__(self, fact_id: str) -> GraphFact:
        if fact_id not in self:
            raise KeyError(fact_id)
        return self._facts[fact_id]

    def __contains__(self, fact_id: object) -> bool:
        place = self._facts.place(fact_id)
        if place is None:
            return False
        at = int(np.searchsorted(self.rows, place))
        return at < len(self.rows) and self.rows.item(at) == place

    def __iter__(self) -> Iterator[str]:
        return map(self._facts.ids.at, self.rows.tolist())

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Selection:
    """The passages that a filter selects, and what they say.

    How a name or a fact is spelled comes from any passage that holds it; where one of those is not selected, its
    normal form is shown instead.

    Attributes:
        graph: what it is a part of.
        passages: whether each passage is selected, shape (n_passages,).
        rows: the selected passages, ascending.
        entities: whether each entity is linked with a selected passage, shape (n_entities,).
        shared: whether each entity is linked with a passage that is not selected, shape (n_entities,).
        facts: the facts that a selected passage supports, by id.
    """

    graph: KnowledgeGraph
    passages: NDArray[np.bool_]
    rows: NDArray[np.intp]
    entities: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    facts: SelectedFacts

    @staticmethod
    def of(graph: KnowledgeGraph, rows: NDArray[np.intp]) -> Selection:
        """Return the selection of the passages of some rows, which ascend."""
        passages = np.zeros(len(graph.passages), dtype=bool)
        passages[rows] = True
        entities, shared = _linked(graph, passages)
        supported = np.flatnonzero(graph.facts.passages.holding(passages))
        return Selection(graph, passages, rows, entities, shared, SelectedFacts(graph.facts, supported))

    @property
    def is_empty(self) -> bool:
        """Whether no passage is selected."""
        return not len(self.rows)

    @cached_property
    def documents(self) -> Mapping[str, int]:
        """The documents of which a passage is selected, by id, each with the first of those passages."""
        documents: dict[str, int] = {}
        for row in self.rows.tolist():
            documents.setdefault(self.graph.passages[row].document, row)
        return documents

    @cached_property
    def relations(self) -> Mapping[frozenset[int], frozenset[str]]:
        """The types of the facts that selected passages support, by the entities that they relate."""
        facts = self.graph.facts
        supported = self.facts.rows
        types_between: dict[frozenset[int], set[str]] = {}
        for ends, relation in zip(facts.ends[supported].tolist(), facts.relations[supported].tolist(), strict=True):
            types_between.setdefault(frozenset(ends), set()).add(_RELATIONS[relation])
        return {ends: frozenset(types) for ends, types in types_between.items()}

    def fact(self, fact_id: str) -> GraphFact | None:
        """Return a fact with its selected passages alone; None where none of them supports it."""
        if fact_id not in self.facts:
            return None
        whole = self.graph.facts[fact_id]
        passages = tuple(passage for passage in whole.passages if self.passages[passage])
        if len(passages) == len(whole.passages):
            return whole
        subject, predicate, object_ = map(normalise_name, (whole.fact.subject, whole.fact.predicate, whole.fact.object))
        return GraphFact(Fact(subject, predicate, object_, whole.fact.relation), whole.subject, whole.object, passages)

    def label(self, entity: int) -> str:
        """Return how an entity that is linked with a selected passage is shown."""
        return self.graph.entity_names[entity] if self.shared[entity] else self.graph.entity_labels[entity]


def _linked(graph: KnowledgeGraph, passages: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which entities are linked with a marked passage, and which with one that is not, block by block."""
    arcs, n = graph.typed.backward, graph.n_entities
    linked_nodes = np.zeros((2, n), dtype=bool)
    for first in range(0, len(passages), _AT_ONCE):
        starts = arcs.starts[n + first : n + min(first + _AT_ONCE, len(passages)) + 1]
        linked = arcs.node[starts[0] : starts[-1]]
        selected = np.repeat(passages[first : first + _AT_ONCE], np.diff(starts))
        linked_nodes[0, linked[selected]] = True
        linked_nodes[1, linked[~selected]] = True
    return linked_nodes[0], linked_nodes[1]
