"""The profile of a user: what somebody read, marked and asked, as concepts and documents with weights.

The latest deed counts fully; one of a half-life before it, half. So a profile is a function of the history
alone, and not of the time at which a question is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from graph.construction.knowledge_graph import KnowledgeGraph
from graph.relationships.record import RelationshipRecord
from graph.relationships.sight import Sight
from graph.relationships.tables import along
from graph.retrieve.modes import EntityRarity
from graph.schema import entity_id

HALF_LIFE_DAYS = 30.0
"""Days before the user's last activity at which something counts half."""

READING_S = 60.0
"""Seconds spent on a document that count as much as one more view."""

HALF_KNOWN = 0.25
"""The evidence that tells half of an interest, where a question tells 1 and one view of a document at most 0.5."""

ACTIVITY_LIMIT = 200
"""Views, and questions, that a profile is made of, at most: the last ones."""

READ_CONCEPTS = 10
"""Concepts of a viewed document that count, at most: the best explained."""

_VIEWS = f"""
    SELECT document.id, title, view_count, coalesce(duration, 0), relevance_score, last_viewed_at
    FROM {along('"user" -viewed-> document')} WHERE "user".id = ? ORDER BY last_viewed_at DESC, document.id LIMIT ?"""
_QUESTIONS = f"""
    SELECT message.key, message.created_at FROM {along('"user" -created-> message')}
    WHERE "user".id = ? AND message.role = 'user' ORDER BY message.created_at DESC, message.id LIMIT ?"""
_MENTIONED = """
    SELECT concept.id, mentions.confidence FROM mentions JOIN concept ON concept.key = mentions.target
    WHERE mentions.source = ?"""
_DOCUMENTS = "SELECT count(*) FROM document"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason why a passage is moved.

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
class Profile:
    """The profile of a user.

    Attributes:
        interests: {concept: what tells most of the interest in it}. The weight is in [0, 1): t / (t + `HALF_KNOWN`), t
            all that tells of it, times how rarely documents explain it.
        marks: {document: its mark, in [-1, 1]}; below 0 for one that is not relevant.
    """

    interests: Mapping[str, Reason] = field(default_factory=dict)
    marks: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything is known of the user."""
        return bool(self.interests or self.marks)


_Evidence = tuple[float, str, str]
"""How much an action tells of an interest, above 0, and id and title of the document, if that was read."""


def profile_of(record: RelationshipRecord, user_id: str, sight: Sight | None = None) -> Profile:
    """Return what the record knows of this user alone; empty for one who is unknown.

    A view weighs e / (1 + e), e the number of views plus the minutes spent; a mark of the user replaces that. A viewed
    document passes its weight on to the concepts that it explains; a question, to those that it mentions. Documents
    that were marked as not relevant pass nothing on.

    Args:
        record: the relationship graph.
        user_id: whose profile.
        sight: what a filter lets be seen; what lies outside of it counts for nothing.
    """
    viewed = record.execute(_VIEWS, (user_id, ACTIVITY_LIMIT))
    asked = record.execute(_QUESTIONS, (user_id, ACTIVITY_LIMIT))
    latest = max((str(at) for *_, at in (*viewed, *asked)), default="")
    marks: dict[str, float] = {}
    evidence: dict[str, list[_Evidence]] = defaultdict(list)
    for key, title, count, seconds, marked, at in viewed:
        if sight is not None and not sight.sees_document(key):
            continue
        worth = count + seconds / READING_S
        weight = (worth / (1 + worth) if marked is None else marked) * _freshness(at, latest)
        if marked is not None:
            marks[key] = weight
        if weight > 0:
            shown = title if sight is None else sight.named(key)[1]
            for concept, score in _concepts_of(record, key, sight):
                evidence[concept].append((weight * score, key, shown))
    for key, at in asked:
        for concept, confidence in record.execute(_MENTIONED, (key,)):
            if sight is None or sight.sees_concept(concept):
                evidence[concept].append((confidence * _freshness(at, latest), "", ""))
    return Profile(_interests(record, evidence, sight), marks)


def _concepts_of(record: RelationshipRecord, document_id: str, sight: Sight | None) -> list[tuple[str, float]]:
    """Return the concepts that a viewed document explains best, with its relevance for them."""
    concepts = record.concepts.concepts_of(document_id)
    if sight is not None:
        shown = sight.explaining(concept for concept, _ in concepts)
        concepts = [(concept, score) for concept, score in concepts if document_id in shown.get(concept, ())]
    return [(concept, score) for concept, score in concepts[:READ_CONCEPTS] if score > 0]


def _interests(
    record: RelationshipRecord, evidence: Mapping[str, list[_Evidence]], sight: Sight | None
) -> dict[str, Reason]:
    total = int(record.execute(_DOCUMENTS).fetchone()[0])
    interests = {}
    for concept in sorted(evidence):
        name = record.concepts.label(concept)
        if name is None:
            continue
        rarity = EntityRarity.LOG_IDF.share(len(record.concepts.documents_of(concept)), max(1, total))
        known = sum(weight for weight, *_ in evidence[concept])
        _, document, title = max(evidence[concept], key=lambda each: each[0])
        shown = name if sight is None else sight.label(concept)
        told = f"you read {title}, which explains {shown}" if document else f"you asked about {shown}"
        interests[concept] = Reason(told, rarity * known / (HALF_KNOWN + known), concept, document)
    return interests


def _freshness(at: str, latest: str) -> float:
    """Return the weight of something done at a time, relative to what was done last, in (0, 1]."""
    age = datetime.fromisoformat(latest) - datetime.fromisoformat(at)
    return float(0.5 ** (age.total_seconds() / 86_400 / HALF_LIFE_DAYS))


REACH = 4.0
"""Places that a passage at the centre of a user's interests is moved up by; half as many at half that interest."""

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
    mentions = ((graph.passages[row], graph.entities_in(row).tolist()) for row in passages)
    return [
        Candidate(passage.id, passage.document, [entity_id(graph.entity_names[entity]) for entity in entities])
        for passage, entities in mentions
    ]


def personal_ranking(ranking: Sequence[Candidate], profile: Profile, reach: float = REACH) -> list[Placed]:
    """Return a ranking as a user's profile moves it; without a profile, as it is.

    Args:
        ranking: passages, best first.
        profile: of the user.
        reach: see `REACH`; 0 or more.
    """
    placed = [
        Placed(place, reach * nearness(each, profile), tuple(_reasons(each, profile)[:REASONS]))
        for place, each in enumerate(ranking)
    ]
    return sorted(placed, key=lambda each: (each.place - each.shift, each.place))


def nearness(candidate: Candidate, profile: Profile) -> float:
    """Return how near a passage is to a user's profile, in [-1, 1].

    It is that of the concept that interests the user most; a mark of the user on the document is added to it. Views
    count by the concepts of the document alone: to raise the very document beyond that helps fewer.
    """
    near = max((reason.weight for reason in _interests_met(candidate, profile)), default=0.0)
    return max(-1.0, min(1.0, near + profile.marks.get(candidate.document, 0.0)))


def _interests_met(candidate: Candidate, profile: Profile) -> list[Reason]:
    return [profile.interests[key] for key in set(candidate.concepts) if key in profile.interests]


def _reasons(candidate: Candidate, profile: Profile) -> list[Reason]:
    reasons = sorted(_interests_met(candidate, profile), key=lambda each: (-each.weight, each.concept))
    if (mark := profile.marks.get(candidate.document)) is not None:
        mark_text = "you marked it as relevant" if mark >= 0 else "you marked it as not relevant"
        reasons.insert(0, Reason(mark_text, mark, document=candidate.document))
    return reasons
