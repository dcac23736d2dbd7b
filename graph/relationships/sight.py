"""The part of the relationship graph that a filter lets be seen: nothing that only hidden passages say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from graph.retrieve.selection import Selection
from graph.schema import Passage, RelationType

_RELATIONS = [relation.value for relation in RelationType]

DOCUMENT_KEY = "document"
"""The metadata key that names the document a passage is a part of."""


def document_of(passage: Passage) -> str:
    """Return the id of a passage's document: what its metadata names, else the passage's own id."""
    named = passage.metadata.get(DOCUMENT_KEY, "")
    return str(named) if str(named).strip() else passage.id


@dataclass(frozen=True, eq=False)
class Sight:
    """The documents, concepts and edges that the selected passages alone bear out.

    Attributes:
        selection: the passages that a filter selects.
    """

    selection: Selection

    @cached_property
    def rows(self) -> Mapping[str, tuple[int, ...]]:
        """The selected passages of each document that has any, by its id."""
        found: dict[str, list[int]] = {}
        passages = self.selection.graph.passages
        for row in self.selection.rows.tolist():
            found.setdefault(document_of(passages[row]), []).append(row)
        return {key: tuple(rows) for key, rows in found.items()}

    def sees_document(self, document_id: str) -> bool:
        """Tell whether a passage of the document is selected."""
        return document_id in self.rows

    def sees_concept(self, concept_id: str) -> bool:
        """Tell whether a selected passage is linked with the concept's entity."""
        place = self.selection.graph.entity_index.get(concept_id)
        return place is not None and bool(self.selection.entities[place])

    def label(self, concept_id: str) -> str:
        """Return how a concept that is seen is shown."""
        return self.selection.label(self.selection.graph.entity_index[concept_id])

    def explaining(self, concepts: Iterable[str]) -> dict[str, set[str]]:
        """Return the documents that explain each concept by a selected passage; concepts without any are left out."""
        graph = self.selection.graph
        place_of = {graph.entity_index[concept]: concept for concept in concepts if self.sees_concept(concept)}
        is_link = np.isin(graph.edges.source, list(place_of)) & (graph.edges.target >= graph.n_entities)
        sources, rows = graph.edges.source[is_link], graph.edges.target[is_link] - graph.n_entities
        seen = self.selection.passages[rows]
        found: dict[str, set[str]] = {}
        for source, row in zip(sources[seen].tolist(), rows[seen].tolist(), strict=True):
            found.setdefault(place_of[source], set()).add(document_of(graph.passages[row]))
        return found

    def relations(self, one: str, other: str) -> frozenset[str]:
        """Return the relation types by which facts of selected passages relate two concepts."""
        index = self.selection.graph.entity_index
        return self._related.get(frozenset((index.get(one, -1), index.get(other, -1))), frozenset())

    @cached_property
    def _related(self) -> Mapping[frozenset[int], frozenset[str]]:
        """The relation types of the facts of selected passages, by the two entities that they relate."""
        facts = self.selection.graph.facts
        stated = facts.passages.holding(self.selection.passages)
        found: dict[frozenset[int], set[str]] = {}
        for ends, relation in zip(facts.ends[stated].tolist(), facts.relations[stated].tolist(), strict=True):
            found.setdefault(frozenset(ends), set()).add(_RELATIONS[relation])
        return {pair: frozenset(relations) for pair, relations in found.items()}
