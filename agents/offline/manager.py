"""The manager without a model: β from the cue words of the question."""

from __future__ import annotations

from agents.manager import normalise_factors
from agents.roles import Feedback, RelationWeights
from graph.own_types import NO_TYPES, OwnTypes
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.schema import PASSAGE_RELATIONS, RelationType
from graph.taxonomy import question_cues

SMOOTHING = 1.0
"""The weight of every type before any cue counts: one outright cue doubles a type, and no type takes all."""

STRONGEST_CUE = 2.0
"""Cues above this add nothing, so one type gets at most three times the share of a type without cues."""

CAUSAL_RELIEF = 0.02
"""How much one outright causal cue takes off the passage weight: causes are followed along facts, not wording."""


class OfflineManager:
    """Weighs the relation types by the English cue words of the taxonomy; deterministic.

    The passage classes stay uniform: nothing in a question's wording tells whether its answer stands in the passage
    about an entity or in one that mentions it.

    Args:
        own: the user's own types that the graph's facts have; one whose cue the question holds gets half of β.
    """

    def __init__(self, own: OwnTypes = NO_TYPES) -> None:
        self._own = own

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return (smoothing + cues) a type, normalised; without cues exactly uniform and the default passage weight."""
        cues = question_cues(question)
        strengths = {relation: SMOOTHING + min(strength, STRONGEST_CUE) for relation, strength in cues.items()}
        strengths |= {relation: SMOOTHING + asked for relation, asked in self._own.asked_in(question).items()}
        total = sum(strengths.values())
        return normalise_factors(
            {relation.value: strength / total for relation, strength in strengths.items()},
            {relation.value: 1 / len(PASSAGE_RELATIONS) for relation in PASSAGE_RELATIONS},
            DEFAULT_PASSAGE_WEIGHT - CAUSAL_RELIEF * min(1.0, cues[RelationType.CAUSALITY]),
            self._own,
        )
