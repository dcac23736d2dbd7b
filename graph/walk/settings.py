"""The choices of a walk: its engine, how β becomes a factor, and how an edge weighs by the side it is left from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from graph.relations import PassageLink


class Engine(StrEnum):
    """The engine of the walk."""

    AUTO = "auto"
    """``push`` for few seeds on a large graph where numba is installed, else ``matrix``."""
    IGRAPH = "igraph"
    """PRPACK: the reference."""
    MATRIX = "matrix"
    """Accelerated power iteration: all scores, to a stated error."""
    PUSH = "push"
    """Forward push: the best passages, without going through the whole graph."""


class FactorPolicy(StrEnum):
    """How β becomes a factor."""

    NEUTRAL = "neutral"
    """n β with n types in the category, own ones that β does not name left out: uniform β is exactly the walk without
    β."""
    CATEGORY = "category"
    """β itself, as in the source documents; a synonym edge takes that of ATTRIBUTION."""
    FACTS = "facts"
    """β itself on fact edges, 1 on passage edges: the w_r of A = Σ w_r M_r + M_syn + M_passage."""


@dataclass(frozen=True, slots=True)
class Directions:
    """Multipliers that an edge takes by the side it is left from, before β.

    From an entity the walk should go to the passage that is about it, from a passage to what the passage mentions.
    """

    fact: float = 1.0
    synonym: float = 1.0
    from_entity: Mapping[PassageLink, float] = field(default_factory=dict)
    from_passage: Mapping[PassageLink, float] = field(default_factory=dict)

    def without_titles(self) -> Directions:
        """Return the multipliers under which a title is a name like any other: those of a mention."""
        from_entity, from_passage = (
            dict.fromkeys(PassageLink, side.get(PassageLink.MENTION, 1.0))
            for side in (self.from_entity, self.from_passage)
        )
        return replace(self, from_entity=from_entity, from_passage=from_passage)


UNDIRECTED = Directions()
"""Every edge weighs the same from both sides."""


DIRECTED = Directions(
    fact=0.3,
    synonym=0.3,
    from_entity={PassageLink.OWN_TITLE: 10.0, PassageLink.OTHER_TITLE: 1.0, PassageLink.MENTION: 1.0},
    from_passage={PassageLink.OWN_TITLE: 0.1, PassageLink.OTHER_TITLE: 2.0, PassageLink.MENTION: 0.3},
)
