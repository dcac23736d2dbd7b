"""The typed state that the workflows share: plain JSON-like values, no vector, no graph, no score of all passages."""

from __future__ import annotations

from typing import Annotated, NotRequired

from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from workflows.states.records import (
    Account,
    AssessmentRecord,
    CitationMark,
    ClaimRecord,
    ComponentRecord,
    DraftRecord,
    FactHit,
    Factors,
    FollowUpRecord,
    PassageCandidate,
    PassageHit,
    RecordedRecord,
    Refusal,
    SeedSet,
    SpentRecord,
    Tally,
    TurnRecord,
    Understood,
    WalkReport,
    most_spent,
)


class Asked(TypedDict):
    """The input of the first node, which checks it.

    Not a pydantic model: LangGraph would build that from the checkpoint before every later run of a thread, and one
    refused question would shut the thread for good.
    """

    question: str
    turns: NotRequired[list[TurnRecord]]


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
