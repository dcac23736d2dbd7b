"""The state of workflow ragenta: what every workflow has, and what was judged, kept and asked again."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field, FiniteFloat
from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from workflows.states.checks import check_shape
from workflows.states.records import (
    CitationMark,
    ClaimRecord,
    ComponentRecord,
    DraftRecord,
    FollowUpRecord,
    PassageHit,
    Refusal,
    Tally,
    UsageRecord,
)
from workflows.states.shared import (
    Answer,
    AnswerAttempts,
    AnswerText,
    ClaimOutput,
    Ended,
    Recording,
    Retrieved,
    Running,
    State,
)

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


class BarRecord(TypedDict):
    """Where the adaptive bar lay among the passages of one question: tau, sigma and tau - n sigma."""

    question: str
    tau: float
    sigma: float
    bar: float
    floor: float
    judged: int
    kept: int


class Candidate(TypedDict):
    """A passage that is to be judged for a question, and how many calls of the model that may take (null: any)."""

    number: int
    question: str
    calls: int | None


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


class Judged(TypedDict, total=False):
    """The passages judged, and those that the answer was written from."""

    judge_outcome: str
    judgements: Annotated[list[JudgementRecord], add_judgements]
    bars: list[BarRecord]
    written_from: list[int]
    final_prompt: str


class RagentaOutput(Answer, ClaimOutput, Judged):
    """The output of workflow ragenta."""


class SettledAnswer(TypedDict):
    """An answer whose claims were judged, to come back to where follow-ups leave nothing of it."""

    answer: str
    plain_answer: str
    refused: bool
    citations: list[CitationMark]
    written_from: list[int]
    final_prompt: str
    claims: list[ClaimRecord]
    claims_checked_by: str
    structure: str
    components: list[ComponentRecord]
    coverage: str


SETTLED_KEYS = tuple(SettledAnswer.__annotations__)
"""The keys of the state that make a settled answer."""


class FollowUpRounds(TypedDict, total=False):
    """Where the follow-ups are.

    ``round`` is 0 before the first; ``calls_before`` is what the run had taken when they began, ``follow_ups_began``
    when that was (seconds since the epoch).
    """

    round: Round
    calls_before: int | None
    follow_ups_began: float | None


class RagentaState(State, RagentaOutput, FollowUpRounds):
    """The state of workflow ragenta.

    ``kept`` are the numbers of the passages that the answer is written from, in the order in which they are shown,
    ``new_kept`` those that the last judging added.
    """

    judges_passages: NotRequired[bool]
    candidates: NotRequired[list[Candidate]]
    kept: NotRequired[list[int]]
    new_kept: NotRequired[list[int]]
    draft: NotRequired[DraftRecord | None]
    found: Annotated[list[Found], add_found]
    settled: NotRequired[SettledAnswer | None]
    calls_allowed: NotRequired[int | None]


class Showing(Running, Retrieved):
    """What every node after retrieval reads: all that names passages, so that nothing stays that a filter hides."""

    judgements: NotRequired[list[JudgementRecord]]
    kept: NotRequired[list[int]]
    written_from: NotRequired[list[int]]


class RecordingJudged(Showing, Recording):
    """Input of ``record_turn``."""


class LinedUp(Running):
    """Input of the router ``to_judges``."""

    judges_passages: NotRequired[bool]
    candidates: NotRequired[list[Candidate]]
    passages: NotRequired[list[PassageHit]]
    kept: NotRequired[list[int]]
    written_from: NotRequired[list[int]]
    calls_before: NotRequired[int | None]
    follow_ups_began: NotRequired[float | None]


class OnePassage(Running):
    """What is judged: one passage, for the question of the run or a follow-up, which comes from an answer's sources."""

    sources: NotRequired[list[str]]
    passage: PassageHit
    calls: NotRequired[int | None]
    follow_ups_began: NotRequired[float | None]


class PredictorReply(TypedDict, total=False):
    """How the predictor replied."""

    predict_refusal: Refusal | None


class JudgeReply(TypedDict, total=False):
    """How the judge replied."""

    score_refusal: Refusal | None


class Predicting(OnePassage, PredictorReply):
    """Input of the predictor and its fallback."""

    predict_attempts: NotRequired[int]


class Scoring(OnePassage, JudgeReply):
    """Input of the judge and its fallback."""

    prediction: NotRequired[str]
    predict_attempts: NotRequired[int]
    score_attempts: NotRequired[int]


class OnePassageOutput(Tally):
    """The update from judging one passage."""

    judgements: Annotated[list[JudgementRecord], add_judgements]


class OnePassageState(Predicting, Scoring, OnePassageOutput):
    """The state of judging one passage."""


class Keeping(Showing, FollowUpRounds):
    """Input of ``keep_passages``."""

    candidates: NotRequired[list[Candidate]]
    judges_passages: NotRequired[bool]
    bars: NotRequired[list[BarRecord]]
    draft: NotRequired[DraftRecord | None]
    follow_ups: NotRequired[list[FollowUpRecord]]


class Kept(Ended, total=False):
    """Input of the router ``after_keeping``."""

    new_kept: list[int]
    round: Round


class Predicted(Showing, FollowUpRounds, AnswerAttempts):
    """Input of the final predictor and its fallback."""

    draft: NotRequired[DraftRecord | None]
    follow_ups: NotRequired[list[FollowUpRecord]]
    usage: NotRequired[UsageRecord]


class Planning(Showing, AnswerText, ClaimOutput, FollowUpRounds):
    """Input of ``plan_follow_ups``."""

    final_prompt: NotRequired[str]
    settled: NotRequired[SettledAnswer | None]
    usage: NotRequired[UsageRecord]


class FollowUpsPlanned(Ended):
    """Input of the router ``to_searches``."""

    mode: str
    generation: NotRequired[int]
    round: NotRequired[Round]
    follow_ups: NotRequired[list[FollowUpRecord]]
    passages: NotRequired[list[PassageHit]]
    kept: NotRequired[list[int]]
    written_from: NotRequired[list[int]]


class Searching(Running):
    """Input of ``search_follow_up``; ``follow_up`` is the question's place among all of them, from 1.

    ``sources`` are the passages of the answer that the question comes from.
    """

    sources: list[str]
    follow_up: int


class Merging(Showing, FollowUpRounds):
    """Input of ``merge_passages``."""

    found: NotRequired[list[Found]]
    follow_ups: NotRequired[list[FollowUpRecord]]
    usage: NotRequired[UsageRecord]
