"""The concepts that a text mentions: entities of the knowledge graph, found by name or by an extractor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.retrieve.seeds import COMMON_NOUN_SHARE, spelled_names
from graph.schema import Extraction, Passage, entity_id

NAME_ALONE = 0.5
"""The confidence in a name that an extractor found without a statement about it."""


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
        shares = spelled_names(text, graph.names)
        return _ordered(
            {
                entity_id(graph.entity_names[entity]): share * max(COMMON_NOUN_SHARE, float(graph.name_shares[entity]))
                for entity, share in shares.items()
            }
        )


class ExtractedConcepts:
    """Finds the names of a text by an extractor of facts: a model's, or the rules of the offline one."""

    def __init__(self, extract: Callable[[Passage], Extraction], graph: KnowledgeGraph) -> None:
        """Take the extractor's ``extract``, and the graph that tells which names are concepts."""
        self._extract = extract
        self._known = graph.entity_index

    def concepts_in(self, text: str) -> Mapping[str, float]:
        """Return {concept id: confidence} as `ConceptExtractor` says.

        The confidence is that of the surest statement with the name, and `NAME_ALONE` for one without a statement.
        """
        extraction = self._extract(Passage("message", "", text))
        confidences: dict[str, float] = {}
        for name, confidence in _names_with_confidence(extraction):
            key = entity_id(name)
            confidences[key] = max(confidence, confidences.get(key, 0.0))
        return _ordered({key: confidence for key, confidence in confidences.items() if key in self._known})


def _names_with_confidence(extraction: Extraction) -> list[tuple[str, float]]:
    stated = [(end, triple.confidence) for triple in extraction.triples for end in (triple.subject, triple.object)]
    return [*((name, NAME_ALONE) for name in extraction.entities), *stated]


def _ordered(confidences: Mapping[str, float]) -> dict[str, float]:
    """Return what is above zero, most confident first, ties by id."""
    capped = ((key, min(1.0, confidence)) for key, confidence in confidences.items() if confidence > 0)
    return dict(sorted(capped, key=lambda each: (-each[1], each[0])))
