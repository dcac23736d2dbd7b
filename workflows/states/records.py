"""The values that states hold, and how those of several nodes are joined: plain and JSON-like."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from agents.chat.usage import Spent, Usage
from agents.roles import Feedback
from graph.errors import MalformedReply, MaraError
from graph.schema import MetadataValue
from graph.server_clients import told

Update = dict[str, Any]
"""The update that a node returns."""


FIRST_NODE = "encode_question"
"""The node that every run of a workflow starts with."""


UNREAD_FILES = "UnreadFiles"
"""The kind of the note that files could not be read."""

CUT_ANSWER = "CutAnswer"
"""The kind of the note that an answer stops at its limit of tokens."""

DROPPED_CITATIONS = "DroppedCitations"
"""The kind of the note that an answer cited what is no passage."""

OUTSIDE_FILTER = "OutsideFilter"
"""The kind of an error that tells of parts of the state that were dropped, since they lie outside the run's filter."""


MALFORMED = MalformedReply.__name__
"""The kind of an error that tells of a reply that could not be used."""


class TurnRecord(TypedDict):
    """An earlier question of the conversation, its answer, and the ids of the passages that the answer cites."""

    question: str
    answer: str
    passages: list[str]


class Understood(TypedDict):
    """The reading of a question that leans on earlier turns: the state's ``question``, in place of ``asked``.

    ``because`` tells what leans, in words; ``names`` are those of earlier turns that the walk starts from; ``by`` is
    ``offline`` or the chat model. Where ``choices`` are given, nothing decides between them, and the answer asks back.
    """

    asked: str
    because: str
    names: list[str]
    choices: list[str]
    by: str


class PassageHit(TypedDict):
    """A retrieved passage, where it comes from, and the score of the mode that ranked it.

    Its number is its place in the ranking, and what citations mean by it; passages that follow-up questions find get
    the next ones, and keep the score of their own ranking. ``pagerank`` is what the walk alone gave it, where the score
    counts how the anchors converge, too. ``follow_up`` tells which question found it, from 1;
    ``personal`` how a personal ranking moved it: its number ``before``, how many places it was moved up by (``shift``)
    before others were, and the ``reasons``: what was ``told``, its ``weight`` in [-1, 1], and the ids of the
    ``concept`` and the ``document`` that it is about (empty for none). Where the question was asked as of a date,
    ``superseded_at`` tells when its words ended; None where they still stand.
    """

    number: int
    id: str
    title: str
    text: str
    source: str
    metadata: dict[str, MetadataValue]
    score: float
    pagerank: NotRequired[float]
    follow_up: NotRequired[int]
    personal: NotRequired[dict[str, Any]]
    superseded_at: NotRequired[str | None]


class PassageCandidate(TypedDict):
    """A passage near the question: a candidate for seeding the walk."""

    id: str
    score: float


class FactHit(TypedDict):
    """A candidate fact; ``kept`` tells whether the walk starts from it.

    Where the question was asked as of a date, ``superseded_at`` tells from when on no passage said it any more; None
    where one still does.
    """

    id: str
    subject: str
    predicate: str
    object: str
    relation: str
    score: float
    kept: bool
    superseded_at: NotRequired[str | None]


class EntitySeed(TypedDict):
    """An entity that the walk starts from."""

    id: str
    text: str
    weight: float


class PassageSeed(TypedDict):
    """A passage that the walk starts from."""

    id: str
    weight: float


class SeedSet(TypedDict):
    """The restart vector in words: all entity seeds, and the passage seeds, heaviest first."""

    entities: list[EntitySeed]
    passages: list[PassageSeed]


class Factors(TypedDict):
    """The manager's β."""

    entity_entity: dict[str, float]
    entity_passage: dict[str, float]


class CitationMark(TypedDict):
    """A cited passage and, where found, the characters of its text that hold the words."""

    number: int
    passage_id: str
    start: int | None
    end: int | None


class ClaimRecord(TypedDict):
    """A sentence of the answer as it was written, and what became of it.

    ``component`` is the number of the component of the question that it is about. ``verdict`` is ``supported``,
    ``unsupported`` or ``irrelevant``; ``kept`` tells whether the answer still holds it.
    """

    number: int
    text: str
    cited: list[int]
    supported_by: list[int]
    component: int | None
    verdict: str
    kept: bool
    spans: list[CitationMark]


class ComponentRecord(TypedDict):
    """One thing that the question asks for, how far it is answered, and by which claims."""

    text: str
    coverage: str
    claims: list[int]


class FollowUpRecord(TypedDict):
    """A question for what is missing of a component.

    ``outcome`` is ``not asked``, ``asked`` while its passages are judged, then ``found`` with the numbers of the
    passages that were kept for it, ``nothing found`` where none passed, ``nothing new`` where the answer was written
    from all of them already, or ``not judged`` where none has a score.
    ``round`` counts from 1.
    """

    question: str
    component: str
    round: int
    outcome: str
    passages: list[int]


class DraftRecord(TypedDict):
    """The part of an answer that is worth completing, and the numbers that it cites with good reason."""

    text: str
    cited: list[int]


class UsageRecord(TypedDict):
    """The use of chat models by a question.

    ``calls`` are its replies, malformed ones included. The server told no tokens of ``unknown`` calls, which are in
    neither sum. A result also has its ``cost`` where the user gives prices: null where tokens are unknown.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    unknown: int
    cost: NotRequired[float | None]


class ErrorRecord(TypedDict):
    """Something that went wrong and was dealt with."""

    node: str
    kind: str
    message: str
    attempt: int
    raw: str


class Refusal(TypedDict):
    """A reply that was refused, to be fed back; after the final one no attempt is left.

    ``kind`` is that of the error: ``MalformedReply``, or ``SlowReply`` or ``BudgetSpent`` where there was no reply,
    and so nothing to feed back.
    """

    reason: str
    raw: str
    final: bool
    kind: NotRequired[str]


def add_errors(present: list[ErrorRecord], new: list[ErrorRecord] | None) -> list[ErrorRecord]:
    """Append; None, or an entry of the first node, starts fresh, so that a thread can be asked again.

    Replies that were written under another filter may name what lies outside this one: they go with what was dropped.
    """
    if new is None:
        return []
    if OUTSIDE_FILTER in [record["kind"] for record in new]:
        present = [record for record in present if not record["raw"]]
    return new if new and new[0]["node"] == FIRST_NODE else [*present, *new]


def add_timings(present: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    """Add milliseconds node by node, so that retries count; the first node of a run starts fresh."""
    if FIRST_NODE in new:
        return new
    added = dict(present)
    for node, ms in new.items():
        added[node] = round(present.get(node, 0.0) + ms, 3)
    return added


def add_usage(present: UsageRecord, new: UsageRecord | None) -> UsageRecord:
    """Add up; None starts fresh."""
    return NO_USAGE if new is None else usage_record(usage_of(present) + usage_of(new))


def usage_of(record: UsageRecord) -> Usage:
    """Return a usage that the state holds; what it lacks is 0."""
    return Usage(
        record.get("calls", 0),
        record.get("prompt_tokens", 0),
        record.get("completion_tokens", 0),
        record.get("unknown", 0),
    )


def usage_record(usage: Usage) -> UsageRecord:
    """Return a usage as state."""
    return UsageRecord(
        calls=usage.requests,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        unknown=usage.unknown,
    )


NO_USAGE = usage_record(Usage())


def most_spent(present: dict[str, float], new: dict[str, float] | None) -> dict[str, float]:
    """Keep the most of each: nodes side by side tell the same total, one later than the other. None starts fresh."""
    if new is None or not present:
        return new or {"seconds": 0.0, "calls": 0, "tokens": 0}
    return dict(zip(present, map(max, present.values(), new.values()), strict=True))


def spent_record(spent: Spent) -> dict[str, float]:
    """Return what a question has taken of its budget as state: seconds of work, calls of the model, and tokens."""
    return {"seconds": round(spent.seconds, 3), "calls": spent.calls, "tokens": spent.tokens}


def feedback_from(refusal: Refusal | None) -> Feedback | None:
    """Return what to feed back to the model; nothing where there was no reply."""
    if not refusal or refusal.get("kind", MALFORMED) != MALFORMED:
        return None
    return Feedback(refusal["reason"], refusal["raw"])


def refusal_of(fault: MaraError, *, final: bool) -> Refusal:
    """Return a malformed reply, or why there was none, as state."""
    raw = fault.raw if isinstance(fault, MalformedReply) else ""
    return Refusal(reason=told(fault.message), raw=raw, final=final, kind=fault.kind)


def error_of(node: str, kind: str, message: str, attempt: int, raw: str = "") -> ErrorRecord:
    """Return an entry for ``errors``; a long reply is cut to 2,000 characters."""
    return ErrorRecord(node=node, kind=kind, message=told(message), attempt=attempt, raw=raw[:2000])
