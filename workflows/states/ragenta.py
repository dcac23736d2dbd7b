"""The state of workflow ragenta: what every workflow has, and what was judged, kept and asked again."""

from __future__ import annotations

from typing import (
    Annotated,
    Any,
    NotRequired,
    Required,  # pydantic, and so the schemas, takes no other before Python 3.12
)

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict

from workflows.states.records import (
    DraftRecord,
    ErrorRecord,
    PassageHit,
    Refusal,
    UsageRecord,
    add_errors,
    add_timings,
    add_usage,
    most_spent,
)
from workflows.states.shared import CLAIMS, Output, State, check_shape

Round = Annotated[int, Field(ge=0)]
"""The number of rounds of follow-ups begun."""


class JudgementRecord(TypedDict):
    """The judgement of one passage for one question.

    ``score`` is log P(Yes) - log P(No), null where no reply could be used. ``judged_by`` is ``logprobs``,
    ``confidence``, ``words`` (offline) or ``unjudged``.
    """

    passage_id: str
    number: int
    question: str
    prediction: str
    score: FiniteFloat | None
    judged_by: str
    kept: bool


class Candidate(TypedDict):
    """A passage that is to be judged for a question."""

    number: int
    question: str


class Found(TypedDict):
    """The ranking of one follow-up question, and its place among all follow-ups, from 1."""

    follow_up: int
    passages: list[PassageHit]


def add_judgements(present: list[JudgementRecord], new: list[JudgementRecord] | None) -> list[JudgementRecord]:
    """Put judgements together: one of the same passage and question takes the earlier one's place; None clears.

    Raises:
        BadInput: a person wrote into the state what is no judgement.
    """
    if new is None:
        return []
    check_shape({"judgements": new}, dict[str, list[JudgementRecord]])
    merged = {(each["passage_id"], each["question"]): each for each in present}
    merged.update(((each["passage_id"], each["question"]), each) for each in new)
    return list(merged.values())


def add_found(present: list[Found], new: list[Found] | None) -> list[Found]:
    """Append; None clears. Raises BadInput where a person wrote into the state what no search finds."""
    if new is None:
        return []
    check_shape({"found": new}, dict[str, list[Found]])
    return [*present, *new]


JUDGED = ("judge_outcome", "judgements", "bars", "written_from", "final_prompt")
"""The keys of an output that tell of judged passages."""

SETTLED = ("answer", "plain_answer", "refused", "cut", "citations", "written_from", "final_prompt", *CLAIMS[:-1])
"""The keys of a settled answer, to come back to where follow-ups leave nothing of it."""


class RagentaOutput(Output, total=False):
    """The output of workflow ragenta: what was judged beside what every workflow puts out."""

    judge_outcome: str
    judgements: Annotated[list[JudgementRecord], add_judgements]
    bars: list[dict[str, Any]]
    final_prompt: str


class RagentaState(State, RagentaOutput, total=False):
    """The state of workflow ragenta.

    ``kept`` are the numbers of the passages that the answer is written from, in the order in which they are shown,
    ``new_kept`` those that the last judging added. ``bars`` tell, a question each, where the adaptive bar lay among its
    passages: tau, sigma and tau - n sigma, the floor, and how many were judged and kept. ``round`` is 0 before the
    first round of follow-ups; ``calls_before`` are the model's calls that the run had taken when they began.
    """

    judges_passages: bool
    candidates: list[Candidate]
    kept: list[int]
    new_kept: list[int]
    draft: DraftRecord | None
    found: Annotated[list[Found], add_found]
    settled: dict[str, Any] | None
    round: Round
    calls_before: int | None


class FollowUpState(TypedDict):
    """The input of a search for one follow-up question.

    ``follow_up`` is its place among all of them, from 1; ``sources`` are the passages of the answer that it comes from.
    """

    question: str
    mode: str
    generation: NotRequired[int]
    sources: list[str]
    follow_up: int


class PassageState(TypedDict, total=False):
    """The state of judging one passage, for the question of the run or a follow-up, which comes from ``sources``."""

    question: Required[str]
    mode: Required[str]
    generation: int
    sources: list[str]
    passage: Required[PassageHit]
    prediction: str
    predict_attempts: int
    predict_refusal: Refusal | None
    score_attempts: int
    score_refusal: Refusal | None
    judgements: Annotated[list[JudgementRecord], add_judgements]
    spent: Annotated[dict[str, float], most_spent]
    timings_ms: Annotated[dict[str, float], add_timings]
    usage: Annotated[UsageRecord, add_usage]
    errors: Annotated[list[ErrorRecord], add_errors]
