"""How relation types are drawn, on pages and in pictures alike: a colour and a dash for each.

The colours of relations between entities keep apart with protanopia, deuteranopia and tritanopia, too (by the model of
Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency", 2009); links
to passages are greys. Dashes tell all of a sort apart without any colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graph.schema import RelationType


@dataclass(frozen=True, slots=True)
class RelationLook:
    """A line: its colour on white and on dark ground, and the lengths of its dashes and gaps; none where it is solid.

    Lengths are for a line 3.5 wide, and grow with a wider one.
    """

    colour: str
    on_dark: str
    dash: tuple[int, ...] = ()


RELATION_LOOKS: Mapping[RelationType, RelationLook] = {
    RelationType.HIERARCHICAL: RelationLook("#c67c0d", "#e99636"),
    RelationType.TEMPORAL: RelationLook("#176285", "#4c93de", (10, 4)),
    RelationType.SPATIAL: RelationLook("#289d91", "#5edebb", (5, 4)),
    RelationType.CAUSALITY: RelationLook("#5d1203", "#b84533", (12, 4, 3, 4)),
    RelationType.ATTRIBUTION: RelationLook("#da3ebc", "#ec9ede", (3, 3)),
    RelationType.SYNONYMY: RelationLook("#6b5b10", "#f6f986", (1, 5)),
    RelationType.PRIMARY: RelationLook("#545e6c", "#b9c2cd"),
    RelationType.SECONDARY: RelationLook("#717b88", "#939dab", (7, 5)),
    RelationType.PERIPHERAL: RelationLook("#858d98", "#747f8d", (2, 5)),
}

DASHED_WIDTH = 3.5
"""Up to this width of a line its dashes are as long as they are given."""


def dashes() -> dict[str, list[int]]:
    """Return {relation type: the lengths of its dashes and gaps}."""
    return {relation.value: list(look.dash) for relation, look in RELATION_LOOKS.items()}


def palette_css() -> str:
    """Return the colours as CSS variables that are named for the relation types, dark ones for who asks for these."""
    light = " ".join(f"--{relation.value}: {look.colour};" for relation, look in RELATION_LOOKS.items())
    dark = " ".join(f"--{relation.value}: {look.on_dark};" for relation, look in RELATION_LOOKS.items())
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root:not(.printing) {{ {dark} }} }}\n"
