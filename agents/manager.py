"""The manager: which relation types matter for a question (β)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, FiniteFloat

from agents.agent import Agent
from agents.chat.agent import ChatAgent, Schema, object_of, share
from agents.chat.model import ChatModel
from agents.roles import Feedback
from graph.own_types import NO_TYPES, OwnTypes, definition_list
from graph.relations import fact_relations
from graph.retrieve.modes import DEFAULT_PASSAGE_WEIGHT
from graph.schema import PASSAGE_RELATIONS, RelationFactors, RelationType
from graph.taxonomy import question_cues, relation_type_of

FACTOR_FLOOR = 0.02
"""The least share of a relation type: a zero would delete its edges."""

PASSAGE_WEIGHTS = (0.01, 0.1)
"""Lowest and highest passage weight that a manager may choose."""

_MAX_NAME = 40
_TOKENS_OF_A_SHARE = 24
_OWN_IN_REPLY = """
- The types {} are of this graph alone: the examples below leave them out, your reply gives each of them a share. Where
  the question asks for what one of them means, it comes before the others."""


@dataclass(frozen=True, slots=True)
class RelationWeights:
    """The manager's weights for a question.

    Attributes:
        factors: β, each category summing to 1.
        passage_weight: the adaptive restart share of passages, in [0.01, 0.1].
        defaulted: names that the reply left out or that are unknown; of the passage weight, also if it was clamped.
    """

    factors: RelationFactors
    passage_weight: float
    defaulted: tuple[str, ...] = ()


class Manager(Protocol):
    """Says which relation types matter for a question (β), and how much the passages do."""

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights of the question. Raises MalformedReply."""


class ManagerReply(BaseModel):
    """How much each relation type matters for the question, and how much the passages do.

    It is read less strictly than it is asked for: what is left out or added is defaulted and counted.
    """

    model_config = ConfigDict(extra="allow")

    entity_entity: dict[str, FiniteFloat]
    entity_passage: dict[str, FiniteFloat]
    passage_weight: FiniteFloat | None = None


class ChatManager(ChatAgent):
    """Asks a chat model to weigh the relation types for a question.

    Args:
        model: who is asked.
        own: the user's own types that the graph's facts have.
    """

    prompt = "manager"
    material = "question"
    reply_tokens = 300

    def __init__(self, model: ChatModel, own: OwnTypes = NO_TYPES) -> None:
        super().__init__(model)
        self._own = own
        self.reply_tokens += _TOKENS_OF_A_SHARE * len(own.relations)

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights of the question, normalised by `normalise_factors`.

        Raises:
            MalformedReply: the reply is not of the schema; text, NaN or Infinity in place of a number included.
        """
        own = self._own
        messages = self.messages(
            {"question": question},
            feedback,
            entity_relations=definition_list(fact_relations(own.relation_types), own),
            passage_relations=definition_list(PASSAGE_RELATIONS, own),
            own_relations=_OWN_IN_REPLY.format(", ".join(own.relation_types)) if own.relations else "",
            lowest_passage_weight=PASSAGE_WEIGHTS[0],
            usual_passage_weight=DEFAULT_PASSAGE_WEIGHT,
            highest_passage_weight=PASSAGE_WEIGHTS[1],
        )
        return self._ask_object(ManagerReply, _schema(own), messages, self._weights)

    def _weights(self, reply: ManagerReply) -> RelationWeights:
        weights = normalise_factors(reply.entity_entity, reply.entity_passage, reply.passage_weight, self._own)
        unknown = tuple(name[:_MAX_NAME] for name in reply.model_extra or {})
        return replace(weights, defaulted=weights.defaulted + unknown)


def _schema(own: OwnTypes) -> Schema:
    return object_of(
        entity_entity=object_of(**dict.fromkeys(fact_relations(own.relation_types), share())),
        entity_passage=object_of(**dict.fromkeys(PASSAGE_RELATIONS, share())),
        passage_weight=share(*PASSAGE_WEIGHTS),
    )


def normalise_factors(
    entity_entity: Mapping[str, float],
    entity_passage: Mapping[str, float],
    passage_weight: float | None = None,
    own: OwnTypes = NO_TYPES,
) -> RelationWeights:
    """Return a manager's raw numbers as weights: complete, within limits, each category summing to 1.

    Names match case-insensitively. A type left out counts 0, values are clamped to [0, 1], each category is divided
    by its sum (all zeros: uniform), and no type gets less than `FACTOR_FLOOR`: types below it are lifted to it and
    the others shrink in proportion, so shares that were above it keep their ratios. The passage weight is clamped to
    `PASSAGE_WEIGHTS`; None gives `DEFAULT_PASSAGE_WEIGHT`.

    Args:
        entity_entity: finite numbers by type name.
        entity_passage: finite numbers by type name.
        passage_weight: a finite number, or None.
        own: the user's own types, which are weighed beside the built-in ones.

    Returns:
        The weights; ``defaulted`` names every type left out, every name that is no type of its category, and
        ``passage_weight`` where it was missing or clamped.
    """
    entity_factors, entity_notes = _category(entity_entity, fact_relations(own.relation_types), own)
    passage_factors, passage_notes = _category(entity_passage, PASSAGE_RELATIONS, own)
    wanted = DEFAULT_PASSAGE_WEIGHT if passage_weight is None else passage_weight
    clamped = min(max(wanted, PASSAGE_WEIGHTS[0]), PASSAGE_WEIGHTS[1])
    weight_notes = [] if clamped == passage_weight else ["passage_weight"]
    return RelationWeights(
        RelationFactors(entity_factors, passage_factors), clamped, tuple(entity_notes + passage_notes + weight_notes)
    )


def _category(
    numbers: Mapping[str, float], relations: tuple[RelationType, ...], own: OwnTypes
) -> tuple[dict[str, float], list[str]]:
    """The shares of one category, and the names that are unknown or missing."""
    given: dict[str, float] = {}
    unknown = []
    for name, value in numbers.items():
        relation = relation_type_of(name, own)
        if relation in relations:
            given.setdefault(relation.value, min(max(value, 0.0), 1.0))
        else:
            unknown.append(name[:_MAX_NAME])
    names = [relation.value for relation in relations]
    notes = [*unknown, *(name for name in names if name not in given)]
    total = sum(given.values())
    if total == 0:
        return dict.fromkeys(names, 1 / len(names)), notes
    return _with_floor({name: given.get(name, 0.0) / total for name in names}), notes


def _with_floor(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares that sum to 1, none below the floor; scaling the others down may push one more below, hence the loop."""
    lifted: set[str] = set()
    while True:
        free = sum([share for name, share in shares.items() if name not in lifted])
        scale = (1 - FACTOR_FLOOR * len(lifted)) / free
        result = {name: FACTOR_FLOOR if name in lifted else share * scale for name, share in shares.items()}
        below = {name for name, share in result.items() if share < FACTOR_FLOOR}
        if not below:
            return result
        lifted |= below


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
        if self._own.relations:
            strengths |= {relation: SMOOTHING + asked for relation, asked in self._own.asked_in(question).items()}
        total = sum(strengths.values())
        return normalise_factors(
            {relation.value: strength / total for relation, strength in strengths.items()},
            {relation.value: 1 / len(PASSAGE_RELATIONS) for relation in PASSAGE_RELATIONS},
            DEFAULT_PASSAGE_WEIGHT - CAUSAL_RELIEF * min(1.0, cues[RelationType.CAUSALITY]),
            self._own,
        )


def _shown(weights: RelationWeights) -> dict[str, Any]:
    return {
        "entity_entity": dict(weights.factors.entity_entity),
        "entity_passage": dict(weights.factors.entity_passage),
        "passage_weight": weights.passage_weight,
        "defaulted": list(weights.defaulted),
    }


MANAGER: Agent[Manager, RelationWeights] = Agent(
    name="manager",
    key="manager",
    chat=lambda model, run: ChatManager(model, run.index.graph.own),
    offline=lambda run: OfflineManager(run.index.graph.own),
    shown=_shown,
    instead="every relation type weighs the same",
    temperature="manager_temperature",
)
