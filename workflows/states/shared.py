"""The typed state that the workflows share: plain JSON-like values, no vector, no graph, no score of all passages."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from agents.chat.budget import Spent
from agents.chat.usage import Usage
from agents.roles import Feedback
from graph.errors import MalformedReply, MaraError
from graph.schema import MetadataValue

Update = dict[str, Any]
"""The update that a node returns."""

FIRST_NODE = "encode_question"
"""The node that every run of a workflow starts with."""

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
    """What a question that leans on earlier turns was understood as: the state's ``question``, in place of ``asked``.

    ``because`` tells what leans, in words; ``names`` are those of earlier turns that the walk starts from; ``by`` is
    ``offline`` or the chat model. Where ``choices`` are given, nothing decides between them, and the answer asks back.
    """

    asked: str
    because: str
    names: list[str]
    choices: list[str]
    by: str


class RecordedRecord(TypedDict):
    """What was written of a turn to the history: ids, empty where a part is not written.

    ``question`` and ``answer`` are those of the messages, ``viewed`` those of the documents that count as viewed.
    """

    conversation: str
    user: str
    question: str
    answer: str
    viewed: list[str]


class Asked(TypedDict):
    """The input of the first node, which checks it.

    Not a pydantic model: LangGraph would build that from the checkpoint before every later run of a thread, and one
    refused question would shut the thread for good.
    """

    question: str
    turns: NotRequired[list[TurnRecord]]


class PersonalReason(TypedDict):
    """Why a passage was moved, in words, and how much that weighs, in [-1, 1].

    ``concept`` and ``document`` are the ids of what it is about; empty for none.
    """

    told: str
    weight: float
    concept: str
    document: str


class PersonalPlace(TypedDict):
    """How a personal ranking moved a passage.

    ``before`` is its number without it, ``shift`` how many places it was moved up by before others were. A passage of
    which nothing is known has no reasons: others moved past it.
    """

    before: int
    shift: float
    reasons: list[PersonalReason]


class PassageHit(TypedDict):
    """A retrieved passage, where it comes from, and the score of the mode that ranked it.

    Its number is its place in the ranking, and what citations mean by it; passages that follow-up questions find get
    the next ones, and keep the score of their own ranking. ``follow_up`` tells which question found it, from 1;
    ``personal`` how a personal ranking moved it. Where the question was asked as of a date, ``superseded_at`` tells
    when its words ended; None where they still stand.
    """

    number: int
    id: str
    title: str
    text: str
    source: str
    metadata: dict[str, MetadataValue]
    score: float
    follow_up: NotRequired[int]
    personal: NotRequired[PersonalPlace]
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


class WalkReport(TypedDict):
    """The computation of the walk: engine, error (L1 over all nodes), number of arcs, and damping.

    PRPACK does not tell the arcs; under a filter they would tell of hidden passages.
    """

    engine: str
    error: float
    arcs: int | None
    damping: float


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


class ClaimSpan(TypedDict):
    """The characters of a passage's text that hold what a claim says."""

    number: int
    passage_id: str
    start: int
    end: int


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
    spans: list[ClaimSpan]


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
    """What of an answer is worth completing, and the numbers that it cites with good reason."""

    text: str
    cited: list[int]


class VerdictRecord(TypedDict):
    """The claim judge's verdict on a claim, by its number."""

    claim: int
    supported_by: list[int]
    relevant: bool


class SuggestionRecord(TypedDict):
    """A follow-up question that the claim judge suggests, for a component by its number."""

    question: str
    component: int


class AssessmentRecord(TypedDict):
    """The claim judge's reply, before anything was done about it."""

    structure: str
    components: list[ComponentRecord]
    verdicts: list[VerdictRecord]
    follow_ups: list[SuggestionRecord]


class UsageRecord(TypedDict):
    """What a question took of chat models.

    ``calls`` are its replies, malformed ones included. The server told no tokens of ``unknown`` calls, which are in
    neither sum. A result also has its ``cost`` where the user gives prices: null where tokens are unknown.
    """

    calls: int
    prompt_tokens: int
    completion_tokens: int
    unknown: int
    cost: NotRequired[float | None]


class SpentRecord(TypedDict):
    """What a question has taken of its budget: seconds of work, calls of the model, and tokens, estimated if untold."""

    seconds: float
    calls: int
    tokens: int


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


class Models(TypedDict):
    """The chat model (or ``offline``), the embedding model and the vector store that answered."""

    chat: str
    embedding: str
    store: str


def add_errors(present: list[ErrorRecord], new: list[ErrorRecord] | None) -> list[ErrorRecord]:
    """Append; None, or an entry of the first node, starts fresh, so that a thread can be asked again.

    Replies that were written under another filter may name what lies outside this one: they go with what was dropped.
    """
    if new is None:
        return []
    if any(record["kind"] == OUTSIDE_FILTER for record in new):
        present = [record for record in present if not record["raw"]]
    return new if new and new[0]["node"] == FIRST_NODE else [*present, *new]


def add_timings(present: dict[str, float], new: dict[str, float]) -> dict[str, float]:
    """Add milliseconds node by node, so that retries count; the first node of a run starts fresh."""
    if FIRST_NODE in new:
        return new
    return {**present, **{node: round(present.get(node, 0.0) + ms, 3) for node, ms in new.items()}}


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


def most_spent(present: SpentRecord, new: SpentRecord | None) -> SpentRecord:
    """Keep the most of each: nodes side by side tell the same total, one later than the other. None starts fresh."""
    if new is None or not present:
        return new or SpentRecord(seconds=0.0, calls=0, tokens=0)
    return SpentRecord(
        seconds=max(present["seconds"], new["seconds"]),
        calls=max(present["calls"], new["calls"]),
        tokens=max(present["tokens"], new["tokens"]),
    )


def spent_record(spent: Spent) -> SpentRecord:
    """Return what a question has taken as state."""
    return SpentRecord(seconds=round(spent.seconds, 3), calls=spent.calls, tokens=spent.tokens)


class Tally(TypedDict):
    """The keys that every node adds to."""

    timings_ms: Annotated[dict[str, float], add_timings]
    usage: Annotated[UsageRecord, add_usage]
    errors: Annotated[list[ErrorRecord], add_errors]


class Account(Tally):
    """The provenance of a result; ``as_of`` is the date that was asked for, empty where what stands now answered."""

    models: NotRequired[Models]
    generation: NotRequired[int]
    as_of: NotRequired[str]


class Begun(TypedDict):
    """The start of a run; ``understood`` is None where the question stood alone."""

    question: str
    understood: NotRequired[Understood | None]
    mode: str


class Ranked(TypedDict, total=False):
    """The passages that retrieval found, and how."""

    passages: list[PassageHit]
    ranked_by: str
    walk: WalkReport | None
    facts: list[FactHit]
    fact_outcome: str
    relation_factors: Factors | None
    passage_weight: float | None
    tuning: int | None
    seeds: SeedSet


class RetrievalOutput(Begun, Ranked, Account):
    """The output of retrieval."""


class OfWorkflow(TypedDict, total=False):
    """The workflow that answered."""

    workflow: str


class AnswerText(TypedDict, total=False):
    """An answer."""

    answer: str
    plain_answer: str
    refused: bool
    answer_kind: str
    citations: list[CitationMark]


class Answer(Begun, OfWorkflow, AnswerText, Ranked, Account):
    """The output of every workflow that answers, in the documented order.

    ``walk``, ``relation_factors``, ``passage_weight`` and ``tuning`` are None where nothing walked, or not by them;
    ``recorded`` where nothing was written to the history.
    """

    recorded: NotRequired[RecordedRecord | None]


class ClaimOutput(TypedDict, total=False):
    """The output of the claim check; ``claims_checked_by`` is empty where nothing was checked."""

    claims: list[ClaimRecord]
    claims_checked_by: str
    structure: str
    components: list[ComponentRecord]
    coverage: str
    follow_ups: list[FollowUpRecord]


class Output(Answer, ClaimOutput):
    """The output of workflow mara; ``written_from``: the numbers of the passages that the answer was written from."""

    written_from: NotRequired[list[int]]


class FilterReply(TypedDict, total=False):
    """How the filter replied."""

    filter_refusal: Refusal | None


class FilterAttempts(FilterReply, total=False):
    """The filter's retry loop."""

    filter_attempts: int


class ManagerReply(TypedDict, total=False):
    """How the manager replied."""

    manager_refusal: Refusal | None


class ManagerAttempts(ManagerReply, total=False):
    """The manager's retry loop."""

    manager_attempts: int


class AnswerAttempts(TypedDict, total=False):
    """The retry loop of who writes the answer."""

    answer_attempts: int
    answer_refusal: Refusal | None


class RewriterReply(TypedDict, total=False):
    """How the rewriter replied."""

    rewriter_refusal: Refusal | None


class RewriterAttempts(RewriterReply, total=False):
    """The rewriter's retry loop."""

    rewriter_attempts: int


class RetrievalState(RetrievalOutput, RewriterAttempts, FilterAttempts, ManagerAttempts):
    """The state of retrieval, beside its output: retry loops, the keys of its routers, and what was spent.

    ``turns`` is the input's alone, and empty once it was read; ``earlier`` are those that the run's filter lets count.
    """

    turns: NotRequired[list[TurnRecord]]
    earlier: NotRequired[list[TurnRecord]]
    leaning: NotRequired[str]
    asked_at: NotRequired[str]
    remembers: NotRequired[bool]

    spent: NotRequired[Annotated[SpentRecord, most_spent]]
    weighs_relations: NotRequired[bool]
    nothing_selected: NotRequired[bool]
    adaptive_passage_weight: NotRequired[float | None]
    passage_candidates: NotRequired[list[PassageCandidate]]


class State(RetrievalState, Output, AnswerAttempts):
    """The state of the main workflow."""

    checks_claims: NotRequired[bool]


class Running(TypedDict):
    """What every node after the first reads; its own type says what else it reads, and a trace shows no more.

    `workflows.runtime.visibility.within_filter` writes back what a filter leaves of a key: the last node reads all
    that show passages.
    """

    question: str
    mode: str
    generation: NotRequired[int]
    spent: NotRequired[SpentRecord]


class Retrieved(TypedDict, total=False):
    """The findings of retrieval, all of which name passages."""

    passages: list[PassageHit]
    facts: list[FactHit]
    seeds: SeedSet
    passage_candidates: list[PassageCandidate]


class RewritingInput(Running, RewriterAttempts):
    """Input of the rewriter and its fallback."""

    earlier: NotRequired[list[TurnRecord]]
    leaning: NotRequired[str]


class AskingBack(Running):
    """Input of ``ask_back``."""

    understood: NotRequired[Understood | None]


class Searching(Running):
    """Input of the nodes that search with a question's words."""

    understood: NotRequired[Understood | None]


class Filtering(Running, FilterAttempts):
    """Input of the fact filter and its fallback."""

    facts: NotRequired[list[FactHit]]


class Weighing(Running, ManagerAttempts):
    """Input of the manager and its fallback."""


class Seeding(Searching):
    """Input of ``seed_graph``."""

    facts: NotRequired[list[FactHit]]
    fact_outcome: NotRequired[str]
    passage_candidates: NotRequired[list[PassageCandidate]]
    adaptive_passage_weight: NotRequired[float | None]


class Walking(Searching):
    """Input of ``walk_graph``."""

    facts: NotRequired[list[FactHit]]
    passage_candidates: NotRequired[list[PassageCandidate]]
    seeds: NotRequired[SeedSet]
    relation_factors: NotRequired[Factors | None]
    passage_weight: NotRequired[float | None]


class Answering(Running, Retrieved, AnswerAttempts):
    """Input of the answerer and its fallback."""


class Recording(Running, Retrieved, AnswerText):
    """Input of ``record_turn``."""

    understood: NotRequired[Understood | None]
    asked_at: NotRequired[str]
    written_from: NotRequired[list[int]]


class Started(TypedDict):
    """Input of the routers ``after_encoding`` and ``after_passages``."""

    mode: str
    nothing_selected: NotRequired[bool]
    leaning: NotRequired[str]


class Rewritten(Started, RewriterReply):
    """Input of the routers ``after_rewriting`` and ``after_offline_rewriting``."""

    understood: NotRequired[Understood | None]


class Planned(TypedDict):
    """Input of the router ``after_facts``."""

    weighs_relations: NotRequired[bool]


class Ended(TypedDict, total=False):
    """Input of the router ``after_ending``."""

    remembers: bool


class AnswerToCheck(Ended, total=False):
    """Input of the router ``after_fallback``."""

    checks_claims: bool
    refused: bool


class AnswerReply(AnswerToCheck, total=False):
    """Input of the router ``after_answer``."""

    answer_refusal: Refusal | None


class ClaimInput(Running, Retrieved):
    """The input of the claim check: the answer, the passages it was written from, and the budget of follow-ups."""

    answer: NotRequired[str]
    answer_kind: NotRequired[str]
    refused: NotRequired[bool]
    written_from: NotRequired[list[int]]
    kept: NotRequired[list[int]]
    follow_ups: NotRequired[list[FollowUpRecord]]
    round: NotRequired[int]
    calls_allowed: NotRequired[int | None]
    follow_ups_began: NotRequired[float | None]


class ClaimCheckOutput(ClaimOutput, Retrieved, AnswerText, Tally):
    """What the claim check gives back; what names passages goes through, less what the run's filter hides."""

    draft: NotRequired[DraftRecord | None]


class ClaimReply(TypedDict, total=False):
    """How the claim judge replied."""

    claim_refusal: Refusal | None


class ClaimJudging(ClaimInput, ClaimReply):
    """Input of the claim judge and its fallback."""

    claim_attempts: NotRequired[int]


class ClaimSettling(ClaimInput):
    """Input of ``settle_claims``."""

    assessment: NotRequired[AssessmentRecord | None]
    claims_checked_by: NotRequired[str]


class ClaimState(ClaimJudging, ClaimSettling, ClaimCheckOutput):
    """The state of the claim check."""


def searched_words(state: Searching) -> str:
    """Return the words that are searched with: the question's, and those typed once more where it was completed.

    So what somebody typed weighs more than what it was completed with.
    """
    understood = state.get("understood")
    return f"{state['question']} {understood['asked']}" if understood else state["question"]


def feedback_from(refusal: Refusal | None) -> Feedback | None:
    """Return what to feed back to the model; nothing where there was no reply."""
    if not refusal or refusal.get("kind", MALFORMED) != MALFORMED:
        return None
    return Feedback(refusal["reason"], refusal["raw"])


def refusal_of(fault: MaraError, *, final: bool) -> Refusal:
    """Return a malformed reply, or why there was none, as state."""
    raw = fault.raw if isinstance(fault, MalformedReply) else ""
    return Refusal(reason=fault.message, raw=raw, final=final, kind=fault.kind)


def error_of(node: str, kind: str, message: str, attempt: int, raw: str = "") -> ErrorRecord:
    """Return an entry for ``errors``; a long reply is cut to 2,000 characters."""
    return ErrorRecord(node=node, kind=kind, message=message, attempt=attempt, raw=raw[:2000])
