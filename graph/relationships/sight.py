"""The part of the relationship graph that a filter lets be seen: nothing that only hidden passages say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graph.relationships.record import RelationshipRecord
from graph.relationships.schema import NodeType
from graph.retrieve.selection import Selection


@dataclass(frozen=True, slots=True)
class Sight:
    """The documents, concepts and edges that the selected passages alone bear out.

    Attributes:
        selection: the passages that a filter selects.
    """

    selection: Selection

    def sees_document(self, document_id: str) -> bool:
        """Tell whether a passage of the document is selected."""
        return document_id in self.selection.documents

    def named(self, document_id: str) -> tuple[str, str]:
        """Return path and title of a document that is seen, as its first selected passage tells them."""
        passage = self.selection.graph.passages[self.selection.documents[document_id]]
        path = passage.source or document_id
        return path, passage.title or path

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
        documents_of: dict[str, set[str]] = {}
        for concept in concepts:
            if self.sees_concept(concept):
                rows = graph.passages_with(graph.entity_index[concept])
                seen = rows[self.selection.passages[rows]].tolist()
                documents_of[concept] = {graph.passages[row].document for row in seen}
        return {concept: documents for concept, documents in documents_of.items() if documents}

    def relations(self, one: str, other: str) -> frozenset[str]:
        """Return the relation types by which facts of selected passages relate two concepts."""
        index = self.selection.graph.entity_index
        return self.selection.relations.get(frozenset((index.get(one, -1), index.get(other, -1))), frozenset())


def named_document(record: RelationshipRecord, document_id: str, sight: Sight | None = None) -> tuple[str, str]:
    """Return path and title of a document; its id stands for both where the record does not hold it."""
    if sight is not None:
        return sight.named(document_id)
    node = record.node(NodeType.DOCUMENT, document_id)
    return (str(node.properties["path"]), str(node.properties["title"])) if node else (document_id, document_id)
