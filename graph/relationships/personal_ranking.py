"""Personal ranking: a ranking of passages, moved towards what a user read, marked and asked.

It works on the places of a ranking, and so alike on that of every mode. A passage moves up by at most `REACH` times how
near it is to the user's profile, before those that are less near. So it never overtakes one that stands `REACH` places
or more above it; only a passage that the user marked as not relevant may be overtaken from twice as far.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.profile import Did, Interest, Profile
from graph.schema import entity_id

REACH = 4.0
"""Places that a passage at the centre of a user's interests is moved up by; half as many at half that interest."""

VIEW_SHARE = 0.0
"""The share of its views in how near a passage is; the rest is that of its concepts.

Measured (`python -m benchmarks.personal`): what somebody read raises what explains the same concepts, itself among
them; to raise the very document beyond that helps fewer.
"""

REASONS = 3
"""Reasons that are told of a passage, at most: those that weigh most."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage of a ranking.

    Attributes:
        id: of the passage.
        document: the id of its document.
        concepts: ids of the concepts that it is linked with.
    """

    id: str
    document: str
    concepts: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a passage was moved.

    Attributes:
        told: in words.
        weight: of it, in [-1, 1].
        concept: the id of the concept that it is about; empty where it is about the passage's own document.
        document: the id of the document that was viewed; empty for a question.
    """

    told: str
    weight: float
    concept: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage in its place of a personal ranking.

    Attributes:
        place: its index in the ranking before.
        shift: the places that it was moved up by, before others were; in [-`REACH`, `REACH`].
        reasons: why, the weightiest first; empty where nothing about it is known of the user.
    """

    place: int
    shift: float
    reasons: tuple[Reason, ...]


def candidates_of(graph: KnowledgeGraph, passages: Sequence[int]) -> list[Candidate]:
    """Return passages, by index, with their documents and the concepts that they are linked with."""
    found = ((graph.passages[row], graph.entities_in(row).tolist()) for row in passages)
    return [
        Candidate(passage.id, passage.document, [entity_id(graph.entity_names[entity]) for entity in entities])
        for passage, entities in found
    ]


def personal_ranking(
    ranking: Sequence[Candidate], profile: Profile, reach: float = REACH, view_share: float = VIEW_SHARE
) -> list[Placed]:
    """Return a ranking as a user's profile moves it; without a profile, as it is.

    Args:
        ranking: passages, best first.
        profile: of the user.
        reach: see `REACH`; 0 or more.
        view_share: see `VIEW_SHARE`; in [0, 1].
    """
    placed = [
        Placed(place, reach * nearness(each, profile, view_share), tuple(_reasons(each, profile)[:REASONS]))
        for place, each in enumerate(ranking)
    ]
    return sorted(placed, key=lambda each: (each.place - each.shift, each.place))


def nearness(candidate: Candidate, profile: Profile, view_share: float = VIEW_SHARE) -> float:
    """Return how near a passage is to a user's profile, in [-1, 1].

    It is that of the concept that interests the user most; a mark of the user on the document is added to it.
    """
    view = profile.documents.get(candidate.document)
    near = max((each.weight for each in _interests(candidate, profile).values()), default=0.0)
    if view is None:
        return (1 - view_share) * near
    if view.is_marked:
        return max(-1.0, min(1.0, near + view.weight))
    return view_share * view.weight + (1 - view_share) * near


def _interests(candidate: Candidate, profile: Profile) -> Mapping[str, Interest]:
    return {key: profile.concepts[key] for key in sorted(candidate.concepts) if key in profile.concepts}


def _reasons(candidate: Candidate, profile: Profile) -> list[Reason]:
    found = sorted(_interests(candidate, profile).items(), key=lambda each: (-each[1].weight, each[0]))
    reasons = [Reason(_told(each), each.weight, key, each.best.document) for key, each in found]
    view = profile.documents.get(candidate.document)
    if view is not None and view.is_marked:
        told = "you marked it as relevant" if view.weight >= 0 else "you marked it as not relevant"
        reasons.insert(0, Reason(told, view.weight, document=candidate.document))
    return reasons


def _told(interest: Interest) -> str:
    if interest.best.did is Did.ASKED:
        return f"you asked about {interest.name}"
    return f"you read {interest.best.title}, which explains {interest.name}"
