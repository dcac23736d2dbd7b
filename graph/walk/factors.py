"""From β to one multiplier a kind of edge and side: the policies by which relation types steer the walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graph.construction.edges import IS_PASSAGE_KIND, kinds_with
from graph.relations import fact_relations
from graph.schema import PASSAGE_RELATIONS, RelationFactors, RelationType
from graph.walk.settings import UNDIRECTED, Directions, FactorPolicy


@dataclass(frozen=True)
class EdgeFactors:
    """One multiplier for each of a graph's kinds of edges, by the side an edge is left from.

    Edges between entities are always left from an entity: both arrays hold the same value there.

    Attributes:
        from_entity: shape (number of kinds,), non-negative.
        from_passage: the same for arcs from a passage to an entity.
        unknown: relation types that β did not name: they took their category's mean, 1 under the neutral policy.
    """

    from_entity: NDArray[np.float64]
    from_passage: NDArray[np.float64]
    unknown: tuple[str, ...] = ()

    @property
    def from_source(self) -> NDArray[np.float64]:
        """Each kind's factor where an edge is left from its source, which is always an entity."""
        return self.from_entity

    @cached_property
    def from_target(self) -> NDArray[np.float64]:
        """Each kind's factor where an edge is left from its target: a passage for passage edges, else an entity."""
        back: NDArray[np.float64] = np.where(
            IS_PASSAGE_KIND[: len(self.from_entity)], self.from_passage, self.from_entity
        )
        return back

    @property
    def symmetric(self) -> bool:
        """Whether every edge weighs the same from both sides, so that an undirected walk does."""
        return bool(np.array_equal(self.from_source, self.from_target))


def edge_factors(
    beta: RelationFactors | None,
    *,
    policy: FactorPolicy = FactorPolicy.NEUTRAL,
    directions: Directions = UNDIRECTED,
    own: Sequence[RelationType] = (),
) -> EdgeFactors:
    """Return the factors of a question; ``beta`` None is the walk without β.

    Args:
        beta: the manager's factors.
        policy: how β becomes a factor.
        directions: multipliers by side, before β.
        own: the user's own relation types that the graph's facts have.
    """
    kinds = kinds_with(own)
    by_type, unknown = _factor_by_type(beta, policy, fact_relations(own))
    tied = policy is FactorPolicy.CATEGORY
    by_type[RelationType.SYNONYMY] = by_type[RelationType.ATTRIBUTION] if tied else 1.0
    from_entity = np.empty(len(kinds))
    from_passage = np.empty(len(kinds))
    for index, kind in enumerate(kinds):
        factor = by_type[kind.relation]
        if kind.link is not None:
            from_entity[index] = factor * directions.from_entity.get(kind.link, 1.0)
            from_passage[index] = factor * directions.from_passage.get(kind.link, 1.0)
        else:
            base = directions.synonym if kind.relation is RelationType.SYNONYMY else directions.fact
            from_entity[index] = from_passage[index] = factor * base
    return EdgeFactors(from_entity, from_passage, unknown)


def _factor_by_type(
    beta: RelationFactors | None, policy: FactorPolicy, between_entities: tuple[RelationType, ...]
) -> tuple[dict[RelationType, float], tuple[str, ...]]:
    """Return the factor of every weighed type, and the types that β does not name."""
    factors: dict[RelationType, float] = {}
    unknown: list[str] = []
    passages_weighed = policy is not FactorPolicy.FACTS
    for relations, shares in (
        (between_entities, beta.entity_entity if beta else None),
        (PASSAGE_RELATIONS, beta.entity_passage if beta and passages_weighed else None),
    ):
        weighed = len([relation for relation in relations if not relation.is_own or relation in (shares or {})])
        for relation in relations:
            if shares is None:
                factors[relation] = 1.0
                continue
            share = shares.get(relation)
            if share is None:
                unknown.append(relation)
                mean = sum(shares.values()) / len(shares) if shares else 1 / len(relations)
                factors[relation] = 1.0 if policy is FactorPolicy.NEUTRAL else mean
                continue
            factors[relation] = weighed * share if policy is FactorPolicy.NEUTRAL else share
    return factors, tuple(unknown)
