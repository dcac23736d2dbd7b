"""Documents to read next: one or two concept steps away from what somebody asked for or read.

From the seed concepts the search follows RELATED_TO once and twice; the documents that explain a concept so reached
count by how many of them they explain, a way through a concept that many documents explain for less. A viewed document
is never proposed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice

from graph.errors import BadInput
from graph.relationships.record import RelationshipRecord
from graph.relationships.sight import Sight, named_document
from graph.relationships.tables import along
from graph.text import is_date

PROPOSED = 3
"""Documents that are proposed unless another number is asked for."""

STEPS = 2
"""RELATED_TO edges from a seed to the farthest concept that counts."""

SEED_LIMIT = 20
"""Concepts that a search starts from, at most; those asked for last come first."""

READ_CONCEPTS = 5
"""Concepts of a document that was read that a search starts from, at most: the best explained."""

NEIGHBOUR_LIMIT = 30
"""Edges followed from one concept, at most: those that most documents state, then the surest."""

CONCEPT_LIMIT = 300
"""Concepts beyond which no further ones are looked for; those fewer steps away come first."""

COMMON = 1_000
"""Documents from which on a concept is as common as any."""

DOCUMENT_LIMIT = 50
"""Documents that one concept leads to, at most: those that explain it best."""


_ASKED = f"""
    SELECT concept.id, max(message.created_at) AS latest, max(mentions.confidence) AS confidence
    FROM {along('"user" -created-> message -mentions-> concept')}
    WHERE "user".id = ? AND message.role = 'user'
    GROUP BY concept.key ORDER BY latest DESC, confidence DESC, concept.id LIMIT ?"""
_READ = f"""
    SELECT document.id FROM {along('"user" -viewed-> document')}
    WHERE "user".id = ? AND coalesce(viewed.relevance_score, 0) >= 0
    ORDER BY last_viewed_at DESC, document.id LIMIT ?"""
_TALKED = f"""
    SELECT concept.id, max(part_of.position) AS latest
    FROM {along("conversation <-part_of- message -mentions-> concept")}
    WHERE conversation.id = ? GROUP BY concept.key ORDER BY latest DESC, concept.id LIMIT ?"""
_VIEWED = f"""SELECT document.id FROM {along('"user" -viewed-> document')} WHERE "user".id = ?"""
_CITED = " UNION ".join(
    f"SELECT document.id FROM {along(f'conversation <-part_of- message {cited} document')} WHERE conversation.id = ?"
    for cited in (
        "-references_message_document->",
        "-references_message_document_chunk-> document_chunk -chunk_of->",
    )
)


class Because(StrEnum):
    """Why a concept is a seed."""

    ASKED = "asked"
    """A message of the user mentions it."""
    READ = "read"
    """A document that the user viewed explains it."""
    CONVERSATION = "conversation"
    """A message of the conversation mentions it."""
    DOCUMENT = "document"
    """The document to which others are looked for explains it."""
    TOPIC = "topic"
    """The topic names it."""
    NEAR = "near"
    """The topic names no concept, and a passage near to it is linked with this one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One RELATED_TO edge of a path, to the concept of that id and name."""

    relation: str
    concept: str
    name: str


@dataclass(frozen=True, slots=True)
class ConceptPath:
    """How a concept was reached.

    Attributes:
        seed: the id of the concept that the search started from.
        because: why it did.
        document: the id of the document that explains the seed, where that is why.
        name: the seed as it is shown.
        steps: one or two; none of a path that begins.
    """

    seed: str
    because: Because
    document: str = ""
    name: str = ""
    steps: tuple[Step, ...] = ()

    @property
    def end(self) -> Step:
        """The last step, to the concept that the document explains."""
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Discovery:
    """A document that is proposed.

    Attributes:
        relevance: how many concepts it explains that are one or two steps away.
        paths: how each of these was reached, the nearest first, of those what counts most.
    """

    id: str
    path: str
    title: str
    relevance: int
    paths: tuple[ConceptPath, ...]


def discover(
    record: RelationshipRecord,
    *,
    user_id: str = "",
    conversation_id: str = "",
    concepts: Sequence[str] = (),
    named: bool = True,
    document_id: str = "",
    k: int = PROPOSED,
    sight: Sight | None = None,
) -> list[Discovery]:
    """Return what to read next: the best ``k`` documents.

    Each concept that a document explains counts as 1/n, where n documents explain the most common concept on the way to
    it; of documents that count the same, fewer steps come first, then the smaller id.

    Args:
        record: the relationship graph.
        user_id: whose questions and views count; what this user viewed is not proposed.
        conversation_id: whose messages count; what they cite is not proposed.
        concepts: ids of concepts of a topic.
        named: whether the topic names them, or they are those of passages near to it.
        document_id: the document whose concepts count, the best explained first; it is not proposed.
        k: how many are proposed at most.
        sight: what a filter lets be seen; without one, everything.

    Raises:
        BadInput: neither a user, a conversation, a concept nor a document is given, or ``k`` is less than 1.
    """
    if k < 1:
        raise BadInput(f"{k} documents are asked for", "Ask for at least one")
    if not (user_id or conversation_id or concepts or document_id):
        raise BadInput("Nothing tells what to discover from", "Give a topic, a user or a conversation")
    explained = record.concepts.concepts_of
    own = explained(document_id)[:SEED_LIMIT]
    talked = record.execute(_TALKED, (conversation_id, SEED_LIMIT))
    asked = record.execute(_ASKED, (user_id, SEED_LIMIT))
    read = record.execute(_READ, (user_id, SEED_LIMIT))
    wanted = [
        *(ConceptPath(concept, Because.DOCUMENT, document_id) for concept, _ in own),
        *(ConceptPath(concept, Because.TOPIC if named else Because.NEAR) for concept in concepts),
        *(ConceptPath(concept, Because.CONVERSATION) for concept, _ in talked),
        *(ConceptPath(concept, Because.ASKED) for concept, *_ in asked),
        *(ConceptPath(each, Because.READ, key) for (key,) in read for each, _ in explained(key)[:READ_CONCEPTS]),
    ]
    seeds: dict[str, ConceptPath] = {}
    for path in _seen(wanted, sight):
        seeds.setdefault(path.seed, path)
    reached = _reached(record, list(seeds.values())[:SEED_LIMIT], sight)
    seen = _listed(record, _VIEWED, (user_id,)) | _listed(record, _CITED, (conversation_id,) * 2) | {document_id}
    return _proposed(record, reached, _rarities(record, reached), seen, k, sight)


def _seen(begun: Sequence[ConceptPath], sight: Sight | None) -> list[ConceptPath]:
    """Return the paths whose seeds a sight lets be seen: their concepts, and that their document explains them."""
    if sight is None:
        return list(begun)
    explaining = sight.explaining({path.seed for path in begun if path.document})
    return [
        path
        for path in begun
        if (path.document in explaining.get(path.seed, ()) if path.document else sight.sees_concept(path.seed))
    ]


def _reached(record: RelationshipRecord, begun: Sequence[ConceptPath], sight: Sight | None) -> dict[str, ConceptPath]:
    """Return {concept: the shortest path to it} of the concepts one or two steps from a seed, nearest first.

    Dates lead nowhere: documents that share a year are about different things. No path comes back over the edge that it
    left by: a seed is reached from another seed alone.
    """
    ways: dict[str, list[ConceptPath]] = {}
    for path in begun:
        name = record.concepts.label(path.seed)
        if name is not None and sight is not None:
            name = sight.label(path.seed)
        if name and not is_date(name):
            ways[path.seed] = [replace(path, name=name)]
    reached: dict[str, ConceptPath] = {}
    for _ in range(STEPS):
        ways = _step(record, ways, sight, CONCEPT_LIMIT - len(reached))
        for concept, (way, *_) in ways.items():
            reached.setdefault(concept, way)
    return reached


def _step(
    record: RelationshipRecord, ways: Mapping[str, list[ConceptPath]], sight: Sight | None, limit: int
) -> dict[str, list[ConceptPath]]:
    """Return the ways to the concepts one edge farther: of each at most two, from different seeds."""
    farther: dict[str, list[ConceptPath]] = {}
    for concept, arrived in ways.items():
        if len(farther) >= limit:
            break
        for step in islice(_related(record, concept, sight), NEIGHBOUR_LIMIT):
            onward = [replace(way, steps=(*way.steps, step)) for way in arrived if way.seed != step.concept]
            if onward:
                known = farther.get(step.concept, [])
                known += [way for way in onward if all(way.seed != other.seed for other in known)]
                farther[step.concept] = known[:2]
    return farther


def _related(record: RelationshipRecord, concept: str, sight: Sight | None) -> Iterator[Step]:
    """Yield the concepts next to one: those related in most documents first, then the surest."""
    for near in record.concepts.neighbours(concept):
        if is_date(near.name):
            continue
        if sight is None:
            yield Step(near.relation, near.id, near.name)
        elif seen := sight.relations(concept, near.id):
            yield Step(near.relation if near.relation in seen else min(seen), near.id, sight.label(near.id))


def _rarities(record: RelationshipRecord, reached: Mapping[str, ConceptPath]) -> dict[str, float]:
    """Return {concept: 1/n}, where n documents explain the most common concept on the way to it."""
    ways = {key: (path.seed, *(step.concept for step in path.steps)) for key, path in reached.items()}
    common = {
        concept: max(1, min(COMMON, len(record.concepts.documents_of(concept))))
        for concept in {concept for way in ways.values() for concept in way}
    }
    return {key: 1 / max(common[concept] for concept in way) for key, way in ways.items()}


def _proposed(
    record: RelationshipRecord,
    reached: Mapping[str, ConceptPath],
    counts: Mapping[str, float],
    seen: Set[str],
    k: int,
    sight: Sight | None,
) -> list[Discovery]:
    explained: dict[str, list[ConceptPath]] = defaultdict(list)
    shown = None if sight is None else sight.explaining(reached)
    for concept, path in reached.items():
        unread = (
            key
            for key in record.concepts.documents_of(concept)
            if key not in seen and (shown is None or key in shown.get(concept, ()))
        )
        for document in islice(unread, DOCUMENT_LIMIT):
            explained[document].append(path)

    def rank(item: tuple[str, list[ConceptPath]]) -> tuple[float, int, str]:
        document, paths = item
        steps = sum(len(path.steps) for path in paths)
        return -round(sum(counts[path.end.concept] for path in paths), 9), steps, document

    def nearest(paths: Sequence[ConceptPath]) -> tuple[ConceptPath, ...]:
        return tuple(sorted(paths, key=lambda path: (len(path.steps), -counts[path.end.concept])))

    return [
        Discovery(document, *named_document(record, document, sight), len(paths), nearest(paths))
        for document, paths in heapq.nsmallest(k, explained.items(), key=rank)
    ]


def _listed(record: RelationshipRecord, query: str, values: Sequence[str]) -> set[str]:
    return {str(key) for (key,) in record.execute(query, values)}
