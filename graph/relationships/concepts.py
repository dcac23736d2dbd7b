"""The concepts that a text mentions: entities of the knowledge graph, found by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.retrieve.seeds import COMMON_NOUN_SHARE, spelled_names
from graph.schema import entity_id


class ConceptExtractor(Protocol):
    """Finds the concepts that a text mentions, such as a message."""

    def concepts_in(self, text: str) -> Mapping[str, float]:
        """Return {concept id: confidence in (0, 1]}, most confident first, ties by id.

        Ids are those of entities in the knowledge graph: nothing that the documents do not hold becomes a concept.
        """


class SpelledConcepts:
    """Finds the known names that a text spells out, the longest first, as the walk finds its seeds."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._graph = graph

    def concepts_in(self, text: str) -> Mapping[str, float]:
        """Return {concept id: confidence} as `ConceptExtractor` says.

        The confidence is the share in which documents write the name as a name, at least `COMMON_NOUN_SHARE`, times
        `spelled_names`'s share: 1 for what is always a name, less for words that are common nouns as well.
        """
        graph = self._graph
        confidences = {
            entity_id(graph.entity_names[entity]): share * max(COMMON_NOUN_SHARE, float(graph.name_shares[entity]))
            for entity, share in spelled_names(text, graph.names).items()
        }
        return dict(sorted(confidences.items(), key=lambda each: (-each[1], each[0])))
