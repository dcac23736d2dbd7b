"""Personal ranking: a ranking of passages, moved towards what a user read, marked and asked.

It works on the scores of any mode. They are brought to [0, 1], worst to best of what is compared; a passage gains at
most `REACH` of that, so one never overtakes another whose score is better by more.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graph.relationships.profile import Interest, Profile, View, concepts_told
from graph.retrieve.seeds import min_max

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
class Placed:
    """A passage in its place of a personal ranking.

    Attributes:
        place: its index in the ranking before.
        gain: what its score gained, in [-`REACH`, `REACH`].
        reasons: why, in words, the weightiest first; empty where nothing about it is known of the user.
    """

    place: int
    gain: float
    reasons: tuple[str, ...]


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
    return Placed(place, REACH * affinity(candidate, profile), _reasons(candidate, profile))


def _reasons(candidate: Candidate, profile: Profile) -> tuple[str, ...]:
    found = sorted(_interests(candidate, profile).values(), key=lambda each: (-each.weight, each.name))
    told = concepts_told(found)
    if view := profile.documents.get(candidate.document):
        told.insert(0, _view_told(view))
    return tuple(told[:REASONS])


def _view_told(view: View) -> str:
    if view.is_marked:
        return "you marked it as relevant" if view.weight >= 0 else "you marked it as not relevant"
    return "you read it once" if view.count == 1 else f"you read it {view.count} times"
