"""The part of a graph that a filter lets be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from graph.construction.knowledge_graph import GraphFact, KnowledgeGraph
from graph.schema import Fact, RelationType
from graph.text import normalise_name

_RELATIONS = [relation.value for relation in RelationType]


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
        facts: the ids of the facts that a selected passage supports.
    """

    graph: KnowledgeGraph
    passages: NDArray[np.bool_]
    rows: NDArray[np.intp]
    entities: NDArray[np.bool_]
    shared: NDArray[np.bool_]
    facts: Mapping[str, None]

    @staticmethod
    def of(graph: KnowledgeGraph, passage_ids: Iterable[str]) -> Selection:
        """Return the selection of some passages; ids that the graph does not know are left out."""
        passages = np.zeros(len(graph.passages), dtype=bool)
        passages[[graph.passage_index[key] for key in passage_ids if key in graph.passage_index]] = True
        is_link = graph.edges.target >= graph.n_entities
        linked = graph.edges.source[is_link]
        selected = passages[graph.edges.target[is_link] - graph.n_entities]
        return Selection(
            graph=graph,
            passages=passages,
            rows=np.flatnonzero(passages),
            entities=_marked(linked[selected], graph.n_entities),
            shared=_marked(linked[~selected], graph.n_entities),
            facts=dict.fromkeys(compress(graph.facts, graph.facts.passages.holding(passages).tolist())),
        )

    @property
    def is_empty(self) -> bool:
        """Whether no passage is selected."""
        return not len(self.rows)

    @cached_property
    def documents(self) -> Mapping[str, int]:
        """The documents of which a passage is selected, by id, each with the first of those passages."""
        found: dict[str, int] = {}
        for row in self.rows.tolist():
            found.setdefault(self.graph.passages[row].document, row)
        return found

    @cached_property
    def relations(self) -> Mapping[frozenset[int], frozenset[str]]:
        """The types of the facts that selected passages support, by the entities that they relate."""
        facts = self.graph.facts
        supported = facts.passages.holding(self.passages)
        found: dict[frozenset[int], set[str]] = {}
        for ends, relation in zip(facts.ends[supported].tolist(), facts.relations[supported].tolist(), strict=True):
            found.setdefault(frozenset(ends), set()).add(_RELATIONS[relation])
        return {ends: frozenset(types) for ends, types in found.items()}

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


def _marked(places: NDArray[np.integer], length: int) -> NDArray[np.bool_]:
    marked = np.zeros(length, dtype=bool)
    marked[places] = True
    return marked
