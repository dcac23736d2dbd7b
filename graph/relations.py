"""The relation types, in one table: what each links, what it means, and how it is drawn.

The prompts, the kinds of edges, the colours of pages and pictures and the table in the docs follow from it. The
words that tell a type stand in `graph.taxonomy`; a test names whatever else a new type lacks. The types that
a user adds for a workspace stand in `graph.own_types`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

LONGEST_TYPE_NAME = 40
"""Characters of a type's name."""

RESERVED_NAMES = frozenset({"CAUSAL", "SYNONYM", "PASSAGE"})
"""Names that stand for a built-in relation type, or for the matrix of several."""

_OWN_NAME = re.compile(rf"[A-Z][A-Z0-9_]{{0,{LONGEST_TYPE_NAME - 1}}}")


class RelationType(StrEnum):
    """The relation type of an edge: one of those below, or a user's own, which is known by its name alone.

    Iteration gives the built-in types. ``RelationType("SUPPLIES")`` is a user's own: capitals, digits and underscores.
    Compare types with ``==``; two of a user's own that are equal may be two objects.
    """

    HIERARCHICAL = "HIERARCHICAL"
    TEMPORAL = "TEMPORAL"
    SPATIAL = "SPATIAL"
    CAUSALITY = "CAUSALITY"
    ATTRIBUTION = "ATTRIBUTION"
    SYNONYMY = "SYNONYMY"
    PRIMARY = "PRIMARY"
    SECONDARY = "SECONDARY"
    PERIPHERAL = "PERIPHERAL"

    @classmethod
    def _missing_(cls, value: object) -> RelationType | None:
        if not isinstance(value, str) or value in RESERVED_NAMES or not _OWN_NAME.fullmatch(value):
            return None
        own = str.__new__(cls, value)
        own._name_ = own._value_ = value
        return own

    def __reduce_ex__(self, protocol: Any) -> tuple[type[RelationType], tuple[str]]:
        """Copy a type by its value: Python up to 3.11.3 looks for a member of its name, which a user's own is not."""
        return RelationType, (self.value,)

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own."""
        return self not in RELATIONS


class Links(StrEnum):
    """The ends of a relation type: entities, names, or an entity and a passage."""

    FACT = "entity – entity"
    NAMES = "name – name"
    PASSAGE = "entity – passage"


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation type.

    Attributes:
        links: what it links.
        words: what a reader sees in place of its name.
        meaning: in one line, as the prompts and the documentation tell it.
        examples: of it, shortest first.
        colour: of its line on white.
        on_dark: the same on a dark ground.
        dash: lengths of the line's dashes and gaps, for a line 3.5 wide; empty for a solid one.
        question: one that asks for it; empty where none does.
    """

    links: Links
    words: str
    meaning: str
    examples: tuple[str, ...]
    colour: str
    on_dark: str
    dash: tuple[int, ...] = ()
    question: str = ""


RELATIONS: Mapping[RelationType, Relation] = MappingProxyType(
    {
        RelationType.HIERARCHICAL: Relation(
            Links.FACT,
            "part or kind",
            "one belongs under the other: is-a, part-of, member-of, subclass, kinship, capital-of",
            ("whale is a mammal", "Bavaria part of Germany", "Anna daughter of Erik"),
            "#c67c0d",
            "#e99636",
            question="What is Bavaria part of?",
        ),
        RelationType.TEMPORAL: Relation(
            Links.FACT,
            "time",
            "when something was, began or ended, or the order of events",
            ("company founded 1933", "concert held on 5 May", "reign preceded by regency"),
            "#176285",
            "#4c93de",
            (10, 4),
            question="When was Nissan founded?",
        ),
        RelationType.SPATIAL: Relation(
            Links.FACT,
            "place",
            "where something is or happened: location, containment, adjacency",
            ("museum located in Oslo", "village borders forest", "composer born in Salzburg"),
            "#289d91",
            "#5edebb",
            (5, 4),
            question="Where was the composer of Salka born?",
        ),
        RelationType.CAUSALITY: Relation(
            Links.FACT,
            "cause",
            "one brings the other about: causes, results in, leads to, enables",
            ("drought caused famine", "vaccine prevents disease", "strike led to reform"),
            "#5d1203",
            "#b84533",
            (12, 4, 3, 4),
            question="What caused the famine?",
        ),
        RelationType.ATTRIBUTION: Relation(
            Links.FACT,
            "property",
            "who made, owns or does it, and what it is like: creator, owner, role, occupation, property, quantity",
            ("opera composed by Verdi", "bridge has length of 300 m", "Kim works as engineer"),
            "#da3ebc",
            "#ec9ede",
            (3, 3),
            question="Who composed the opera?",
        ),
        RelationType.SYNONYMY: Relation(
            Links.NAMES,
            "like name",
            "two names are alike, and may mean one thing: found by similarity, never extracted",
            ("World War I and First World War",),
            "#6b5b10",
            "#f6f986",
            (1, 5),
        ),
        RelationType.PRIMARY: Relation(
            Links.PASSAGE,
            "about",
            "the passage is about the entity: its title, or the subject of its statements",
            ("a biography, for the person it tells of",),
            "#545e6c",
            "#b9c2cd",
        ),
        RelationType.SECONDARY: Relation(
            Links.PASSAGE,
            "told in",
            "the passage says something of the entity without being about it",
            ("a biography, for the person's school or employer",),
            "#717b88",
            "#939dab",
            (7, 5),
        ),
        RelationType.PERIPHERAL: Relation(
            Links.PASSAGE,
            "mentioned in",
            "the passage merely mentions the entity",
            ("a biography, for a country named in passing",),
            "#858d98",
            "#747f8d",
            (2, 5),
        ),
    }
)
"""Every relation type. The order counts: edges are numbered by it."""


def relation_words(relation: str) -> str:
    """Return what a reader sees in place of a relation type's name; a user's own is its name in small letters."""
    about = RELATIONS.get(RelationType(relation))
    return about.words if about else relation.lower().replace("_", " ")


def _linking(links: Links) -> tuple[RelationType, ...]:
    return tuple(relation for relation, about in RELATIONS.items() if about.links is links)


ENTITY_RELATIONS = _linking(Links.FACT)
"""Relation types between two entities that a fact can carry and the manager weighs."""

PASSAGE_RELATIONS = _linking(Links.PASSAGE)
"""Relation types between an entity and a passage."""


def fact_relations(own: Sequence[RelationType] = ()) -> tuple[RelationType, ...]:
    """Return the relation types that a fact can carry and the manager weighs, where a graph has some of its own."""
    return (*ENTITY_RELATIONS, *own)


DEFINITIONS: Mapping[RelationType, str] = MappingProxyType(
    {
        relation: f"{RELATIONS[relation].meaning} ({'; '.join(RELATIONS[relation].examples)})"
        for relation in (*ENTITY_RELATIONS, *PASSAGE_RELATIONS)
    }
)
"""One line of meaning, with examples, for every relation type that the manager weighs."""


class PassageLink(StrEnum):
    """The link between an entity and a passage."""

    OWN_TITLE = "own title"
    OTHER_TITLE = "title of another passage"
    MENTION = "mention"


class PassageClasses(StrEnum):
    """Where PRIMARY, SECONDARY and PERIPHERAL are cut: by thirds of the corpus, or at the published 0.6 and 0.3."""

    THIRDS = "thirds"
    PUBLISHED = "published"
