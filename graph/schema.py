"""The types of the knowledge graph: passages, facts, relation types and their factors."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from graph.relations import ENTITY_RELATIONS as ENTITY_RELATIONS
from graph.relations import PASSAGE_RELATIONS as PASSAGE_RELATIONS
from graph.relations import RelationType as RelationType
from graph.relations import fact_relations
from graph.text import normalise_name

MetadataValue = str | int | float | bool

MAX_ID = 1_000
"""Characters of a passage's id, which answers, tables and other programs repeat."""


def stable_id(kind: str, *parts: str) -> str:
    """Return an id that depends on the parts alone: the same on every machine, in every run."""
    ended = "\x00".join((*parts, "")).encode("utf-8", "surrogatepass")
    return f"{kind}-{hashlib.blake2b(ended, digest_size=12).hexdigest()}"


@lru_cache(maxsize=50_000)
def entity_id(name: str) -> str:
    """Return the id of the entity of that name; two spellings of one normal form share it."""
    return stable_id("entity", normalise_name(name))


@dataclass(frozen=True, slots=True)
class Triple:
    """One statement of a passage, as extracted or imported."""

    subject: str
    predicate: str
    object: str
    relation: RelationType = RelationType.ATTRIBUTION
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be retrieved and cited.

    Attributes:
        id: given by the corpus, or a hash of source and content.
        source: the file or address it came from.
        metadata: what the user or the loader knows about it; scalars alone, so that Chroma can filter on them.
    """

    id: str
    title: str
    text: str
    source: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """The text that is embedded and searched: the title, a newline, the text."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def document(self) -> str:
        """The id of the document that it is a part of: what its metadata names, else its own id."""
        return str(self.metadata.get("document") or self.id)

    @property
    def number(self) -> int:
        """Its place among the passages of its document, from 0."""
        number = self.metadata.get("chunk", 0)
        return number if isinstance(number, int) and number >= 0 else 0


@dataclass(frozen=True, slots=True)
class Extraction:
    """The extraction of one passage.

    Attributes:
        entities: names as they stand in the passage.
        triples: typed statements; identical ones within a passage are already collapsed.
        extractor: who found them: ``offline``, ``import``, or a model's name.
        notes: how many items were dropped or defaulted, by reason.
        failure: why nothing could be extracted; empty where it could.
        types: the user's own entity type of those entities that have one, by name.
    """

    entities: tuple[str, ...]
    triples: tuple[Triple, ...]
    extractor: str
    notes: Mapping[str, int] = field(default_factory=dict)
    failure: str = ""
    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement of the corpus, whichever passages hold it."""

    subject: str
    predicate: str
    object: str
    relation: RelationType

    @property
    def id(self) -> str:
        """Hash of the normal form of its four parts."""
        return stable_id("fact", *map(normalise_name, (self.subject, self.predicate, self.object)), self.relation)

    @property
    def text(self) -> str:
        """The text that is embedded: never the type, never the confidence."""
        return f"{self.subject} {self.predicate} {self.object}"


@dataclass(frozen=True, slots=True)
class ScoredFact:
    """A fact with its similarity to the question, in [0, 1]."""

    fact: Fact
    score: float


@dataclass(frozen=True, slots=True)
class RelationFactors:
    """The manager's β: how much each relation type matters for a question.

    Each category sums to 1. Keys are names of ``ENTITY_RELATIONS``, those of own types beside them, and
    ``PASSAGE_RELATIONS``.
    """

    entity_entity: Mapping[str, float]
    entity_passage: Mapping[str, float]

    @staticmethod
    def uniform(own: Sequence[RelationType] = ()) -> RelationFactors:
        """Return the factors that prefer nothing, in a graph with some own relation types."""
        between_entities = fact_relations(own)
        return RelationFactors(
            {relation.value: 1 / len(between_entities) for relation in between_entities},
            {relation.value: 1 / len(PASSAGE_RELATIONS) for relation in PASSAGE_RELATIONS},
        )
