"""Personal ranking: a ranking of passages, moved towards what a user read, marked and asked.

It works on the scores of any mode. They are brought to [0, 1], worst to best of what is compared; a passage gains at
most `REACH` of that, so one never overtakes another whose score is better by more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.profile import Did, Interest, Profile
from graph.retrieve.seeds import min_max
from graph.schema import entity_id

REACH = 0.2
"""How much of the span from the worst to the best score a passage may gain."""

OWN_SHARE = 0.5
"""The share of the affinity that having viewed the very document gives; the rest is that of its concepts."""

REASONS = 3
"""Reasons that are told of a passage, at most: those that weigh most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage of a ranking.

    Attributes:
        id: of the passage.
        document: the id of its document.
        score: as the mode gave it; any finite number.
        concepts: ids of the concepts that it is linked with.
    """

    id: str
    document: str
    score: float
    concepts: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a passage gained or lost.

    Attributes:
        told: in words.
        concept: the id of the concept that it is about; empty where it is about the passage's own document.
        document: the id of the document that was viewed; empty for a question.
    """

    told: str
    concept: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage in its place of a personal ranking.

    Attributes:
        place: its index in the ranking before.
        gain: what its score gained, in [-`REACH`, `REACH`].
        reasons: why, the weightiest first; empty where nothing about it is known of the user.
    """

    place: int
    gain: float
    reasons: tuple[Reason, ...]


def candidates_of(graph: KnowledgeGraph, ranking: Sequence[tuple[int, float]]) -> list[Candidate]:
    """Return the passages of a ranking (passage, score) with their documents and the concepts they are linked with."""
    edges = graph.edges
    rows = [row for row, _ in ranking]
    is_link = np.isin(edges.target, np.array(rows, dtype=np.int64) + graph.n_entities)
    concepts: dict[int, list[str]] = {row: [] for row in rows}
    for entity, target in zip(edges.source[is_link].tolist(), edges.target[is_link].tolist(), strict=True):
        concepts[target - graph.n_entities].append(entity_id(graph.entity_names[entity]))
    found = ((graph.passages[row], score, concepts[row]) for row, score in ranking)
    return [Candidate(passage.id, passage.document, score, linked) for passage, score, linked in found]


def personal_ranking(ranking: Sequence[Candidate], profile: Profile) -> list[Placed]:
    """Return a ranking as a user's profile moves it; without a profile, as it is.

    Args:
        ranking: passages, best first.
        profile: of the user.
    """
    scaled = min_max(np.array([each.score for each in ranking], dtype=np.float64)).tolist()
    placed = [_placed(place, each, profile) for place, each in enumerate(ranking)]
    return sorted(placed, key=lambda each: (-(scaled[each.place] + each.gain), each.place))


def affinity(candidate: Candidate, profile: Profile) -> float:
    """Return how near a passage is to a user's profile, in [-1, 1]: by its document and by its concepts."""
    view = profile.documents.get(candidate.document)
    near = _nearness(_interests(candidate, profile))
    return OWN_SHARE * (view.weight if view else 0.0) + (1 - OWN_SHARE) * near


def _nearness(interests: Mapping[str, Interest]) -> float:
    """Return the weight of several interests together, in [0, 1): further ones add, and never beyond 1."""
    return 1 - math.prod(1 - each.weight for each in interests.values())


def _interests(candidate: Candidate, profile: Profile) -> dict[str, Interest]:
    return {key: profile.concepts[key] for key in sorted(candidate.concepts) if key in profile.concepts}


def _placed(place: int, candidate: Candidate, profile: Profile) -> Placed:
    return Placed(place, REACH * affinity(candidate, profile), tuple(_reasons(candidate, profile)[:REASONS]))


def _reasons(candidate: Candidate, profile: Profile) -> list[Reason]:
    found = sorted(_interests(candidate, profile).items(), key=lambda each: (-each[1].weight, each[0]))
    reasons = [Reason(_interest_told(each), key, each.best.document) for key, each in found]
    if candidate.document in profile.documents:
        reasons.insert(0, _view_told(candidate.document, profile))
    return reasons


def _interest_told(interest: Interest) -> str:
    if interest.best.did is Did.ASKED:
        return f"you asked about {interest.name}"
    return f"you read {interest.best.title}, which explains {interest.name}"


def _view_told(document_id: str, profile: Profile) -> Reason:
    view = profile.documents[document_id]
    if view.is_marked:
        told = "you marked it as relevant" if view.weight >= 0 else "you marked it as not relevant"
    else:
        told = "you read it once" if view.count == 1 else f"you read it {view.count} times"
    return Reason(told, document=document_id)
