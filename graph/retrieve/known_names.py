"""The names that a collection knows in a conversation, and the pronoun that the passage of each has."""

from __future__ import annotations

import re
from enum import StrEnum

from graph.construction.edges import IS_OWN_TITLE
from graph.construction.knowledge_graph import KnowledgeGraph
from graph.retrieve.selection import Selection
from graph.text import tokens

LEAST_NAME_SHARE = 0.8
"""How often the corpus has to write a word with a capital for it to be a name though a person types it without."""

_PRONOUN = re.compile(
    r"\b(?:(?P<he>he|his|him|er|ihm|ihn|il|él)|(?P<she>she|her|hers|elle|ella)"
    r"|(?P<it>it|its|they|their|them|es|ils|elles|ellos|ellas))\b",
    re.IGNORECASE,
)


class Pronoun(StrEnum):
    """How a passage speaks of what it is about."""

    HE = "he"
    SHE = "she"
    THING = "it"
    UNKNOWN = ""


class KnownNames:
    """Names of one generation, within a filter's selection."""

    def __init__(self, graph: KnowledgeGraph, selection: Selection | None = None) -> None:
        self._graph = graph
        self._selection = selection

    def spelled(self, text: str) -> list[str]:
        """Return the known names that a text spells in whatever case, in order, as the corpus writes them."""
        graph, selection = self._graph, self._selection
        mentions = graph.names.find(tokens(text), None if selection is None else selection.entities)
        sure = [mention.name for mention in mentions if graph.name_shares[mention.name] >= LEAST_NAME_SHARE]
        label = graph.entity_labels.__getitem__ if selection is None else selection.label
        return [label(entity) for entity in dict.fromkeys(sure)]

    def knows(self, name: str) -> bool:
        """Tell whether the corpus holds a name, and writes it as one more often than not."""
        return any(self._graph.name_shares[entity] > 0.5 for entity in self._spelling(name))

    def pronoun_of(self, name: str) -> Pronoun:
        """Return the pronoun that a passage titled with a name uses first; "it" where it uses none.

        Unknown for a name that is no title.
        """
        texts = self._own_texts(name)
        if not texts:
            return Pronoun.UNKNOWN
        first = next((match for text in texts if (match := _PRONOUN.search(text))), None)
        kind = first.lastgroup if first else None
        return {"he": Pronoun.HE, "she": Pronoun.SHE}.get(kind or "", Pronoun.THING)

    def _own_texts(self, name: str) -> list[str]:
        """The texts of the passages that a name is the title of."""
        graph, selection = self._graph, self._selection
        places: list[int] = []
        for entity in self._spelling(name):
            first, last = graph.typed.forward.starts[entity : entity + 2].tolist()
            own = IS_OWN_TITLE[graph.edges.kind[first:last]]
            places += (graph.edges.target[first:last][own] - graph.n_entities).tolist()
        return [graph.passages[place].text for place in places if selection is None or selection.passages[place]]

    def _spelling(self, name: str) -> list[int]:
        """The entities that a whole name spells."""
        spelled = tokens(name)
        seen = None if self._selection is None else self._selection.entities
        return [
            mention.name
            for mention in self._graph.names.find(spelled, seen)
            if mention.end - mention.start == len(spelled)
        ]
