"""The claim check: a subgraph that any workflow runs on an answer.

judge_claims ⟲ ┄ check_words ─ settle_claims

It reads the answer and the passages it was written from, and gives back what is left of the answer, claim by claim,
and how far the question is answered. Its input leaves out what adds up, so that nothing of it is added twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, cast

from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph
from pydantic import TypeAdapter, ValidationError

from agents.answers.claims import Claim
from agents.answers.quotes import unmarked
from agents.claim_judge import (
    CLAIM_JUDGE,
    Assessment,
    Component,
    OfflineClaimJudge,
    Settled,
    SettledClaim,
    claims_of,
    nothing_answered,
)
from agents.claim_judge import settle_claims as settle
from agents.roles import NumberedPassage
from graph.errors import BadInput
from workflows.runtime.agents import ask, fell_back
from workflows.runtime.node import EVERY_NODE, node
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_name
from workflows.runtime.tracing import claims_shown
from workflows.runtime.visibility import RETRIEVED, check_sources, written_from
from workflows.runtime.workflow_graph import WorkflowBuilder
from workflows.settings.enums import ResultKind, UnsupportedClaims
from workflows.settings.mara import Context
from workflows.settings.problems import problems_of
from workflows.settings.ragenta import RagentaContext
from workflows.states.conversion import answer_update, numbered
from workflows.states.records import CitationMark, ClaimRecord, ComponentRecord, DraftRecord, FollowUpRecord, Update
from workflows.states.shared import CLAIMS, ClaimState, part_of

BY_WORDS = "words"
"""Who checked the claims where the claim judge's replies stayed malformed; no reason to refuse an answer."""

NOT_ASKED = "not asked"
"""The outcome of a follow-up question that is only suggested."""


CLAIM_INPUT = (
    *RETRIEVED,
    *("answer", "answer_kind", "refused", "written_from", "kept", "follow_ups", "round"),
)
"""The keys of a workflow's state that the claim check is given: the answer, the passages that it was written from, and
the follow-ups so far."""

CLAIM_OUTPUT = (
    *CLAIMS,
    *RETRIEVED,
    *("answer", "plain_answer", "refused", "answer_kind", "citations", "timings_ms", "usage", "errors", "draft"),
)
"""The keys that it gives back; what names passages goes through, less what the run's filter hides."""

JUDGING = ("passages", "answer", "written_from", "kept", "round", "claim_attempts", "claim_refusal")
"""The keys that the claim judge and its fallback read."""

_ASSESSMENTS = TypeAdapter(Assessment)


@node(*JUDGING)
def judge_claims(state: ClaimState, run: OpenRun) -> Update:
    """Ask the claim judge what supports each claim, and what the question still lacks."""
    passages, claims = _sources(state, run), _claims(state)
    wanted = _follow_ups_wanted(run.context, state.get("round", 0))
    if not claims and not wanted:
        nothing = _assessment_record(nothing_answered(state["question"]))
        return {**CLAIM_JUDGE.not_asked, "assessment": nothing, "claims_checked_by": ""}
    reply = ask(
        CLAIM_JUDGE,
        state,
        run,
        lambda: claims_shown(state["question"], claims, passages),
        lambda judge, feedback: judge.assess(state["question"], claims, passages, wanted, feedback),
    )
    assessment = reply.said
    if assessment is None:
        return reply.update
    update: Update = {
        **reply.update,
        "assessment": _assessment_record(assessment),
        "claims_checked_by": OFFLINE if chat_model_name(run.context) == OFFLINE else "model",
    }
    if assessment.dropped and wanted:
        message = f"{assessment.dropped} follow-up questions of the reply were of no use and were dropped"
        update["errors"] = [run.error("DroppedFollowUps", message, reply.attempt)]
    return update


@node(*JUDGING)
def check_words(state: ClaimState, run: OpenRun) -> Update:
    """Fallback of the claim judge: compare the words of claims and passages."""
    passages = _sources(state, run)
    assessment = OfflineClaimJudge(run.index.embed).assess(state["question"], _claims(state), passages, 0)
    return {
        "assessment": _assessment_record(assessment),
        "claims_checked_by": BY_WORDS,
        **fell_back(CLAIM_JUDGE, state, run),
    }


@node(*CLAIM_INPUT, "assessment", "claims_checked_by")
def settle_claims(state: ClaimState, run: OpenRun) -> Update:
    """Remove or mark what does not hold, and say how far the question is answered."""
    passages, claims = _sources(state, run), _claims(state)
    assessment = _assessment(state.get("assessment"), claims)
    checked_by = state.get("claims_checked_by")
    by_words = checked_by == BY_WORDS
    is_evidence = state.get("answer_kind") == ResultKind.EVIDENCE
    settled = settle(
        state["question"],
        state.get("answer", ""),
        claims,
        assessment,
        passages,
        remove_unsupported=run.context.unsupported_claims is UnsupportedClaims.REMOVE and not by_words,
        refuse_unanswered=not by_words,
        are_quotes=checked_by == OFFLINE or (by_words and is_evidence),
    )
    suggested = [
        FollowUpRecord(
            question=each.question,
            component=assessment.components[each.component - 1].text,
            round=state.get("round", 0) + 1,
            outcome=NOT_ASKED,
            passages=[],
        )
        for each in assessment.follow_ups
    ]
    beside = _cited_beside(settled)
    listed = ", ".join(f"[{number}]" for number in beside)
    message = f"Passages that do not say what a supported claim says are cited beside those that do: {listed}"
    errors = [run.error("UnsupportedCitations", message)] if beside else []
    return {
        **answer_update(settled.answer, passages),
        "errors": errors,
        "claims": [_claim_record(each) for each in settled.claims],
        "structure": assessment.structure.value,
        "components": [_component_record(each) for each in settled.components],
        "coverage": settled.coverage.value,
        "draft": DraftRecord(text=settled.draft, cited=list(settled.cited)) if settled.draft else None,
        "follow_ups": [*state.get("follow_ups", []), *suggested],
    }


def build_claim_check(
    workflow: WorkflowBuilder[Any, Context, Any, Any],
) -> CompiledStateGraph[ClaimState, Context, ClaimState, ClaimState]:
    """Return the compiled subgraph, a node of a workflow, with the settings of ``workflow``."""
    builder: WorkflowBuilder[ClaimState, Context, ClaimState, ClaimState] = WorkflowBuilder(
        ClaimState,
        workflow.transport_retries,
        context_schema=workflow.context_schema,
        input_schema=part_of(ClaimState, (*EVERY_NODE, *CLAIM_INPUT), "ClaimInput"),
        output_schema=part_of(ClaimState, CLAIM_OUTPUT, "ClaimCheckOutput"),
    )
    builder.add_edge(START, "judge_claims")
    builder.add_asking(judge_claims, CLAIM_JUDGE.refusal, check_words, "settle_claims")
    builder.add(settle_claims)
    builder.add_edge("settle_claims", END)
    return builder.compile(name="check_claims")


def _sources(state: ClaimState, run: OpenRun) -> list[NumberedPassage]:
    """The passages that the answer was written from.

    Raises:
        BadInput: the run's filter hides one of them, or the state does not hold it.
    """
    check_sources(written_from(state), run)
    hits = {hit["number"]: hit for hit in state.get("passages", [])}
    return numbered(hits[number] for number in state.get("written_from", []))


def _cited_beside(settled: Settled) -> list[int]:
    """The numbers that supported claims of an answer cite without being supported by them."""
    kept = [each for each in settled.claims if each.kept and each.holds]
    return sorted({number for each in kept for number in each.claim.cited if number not in each.supported_by})


def _claims(state: ClaimState) -> list[Claim]:
    """The claims of the answer; those of quotes without the signs of what stands in bold."""
    claims = claims_of(state.get("answer", ""), state.get("written_from", []))
    if state.get("answer_kind") != ResultKind.EVIDENCE:
        return claims
    return [replace(claim, text=unmarked(claim.text)) for claim in claims]


def _follow_ups_wanted(context: Context, round_: int) -> int:
    """How many follow-up questions would be asked: none by a workflow that asks none, or after the last round."""
    if not isinstance(context, RagentaContext) or round_ >= context.follow_ups.rounds:
        return 0
    return context.follow_ups.questions


def _assessment_record(assessment: Assessment) -> dict[str, Any]:
    return cast(dict[str, Any], _ASSESSMENTS.dump_python(assessment, mode="json", exclude={"dropped"}))


def _assessment(record: dict[str, Any] | None, claims: Sequence[Claim]) -> Assessment:
    """Return what the state holds of an assessment. Raises BadInput where an edit made it none of these claims."""
    hint = "Correct the edit, or fork before judge_claims"
    try:
        assessment = _ASSESSMENTS.validate_python(record)
    except ValidationError as fault:
        raise BadInput(f"The state's assessment cannot be used ({problems_of(fault)})", hint) from fault
    judged = [verdict.claim for verdict in assessment.verdicts]
    known = range(1, len(assessment.components) + 1)
    is_of_these = judged == [claim.number for claim in claims] and len(known) > 0
    if not is_of_these or any(each.component not in known for each in assessment.follow_ups):
        raise BadInput("The state's assessment is of other claims or components than the answer's", hint)
    return assessment


def _component_record(component: Component) -> ComponentRecord:
    return ComponentRecord(text=component.text, coverage=component.coverage.value, claims=list(component.claims))


def _claim_record(settled: SettledClaim) -> ClaimRecord:
    return ClaimRecord(
        number=settled.claim.number,
        text=settled.claim.text,
        cited=list(settled.claim.cited),
        supported_by=list(settled.supported_by),
        component=settled.component,
        verdict=settled.verdict.value,
        kept=settled.kept,
        spans=[cast(CitationMark, asdict(each)) for each in settled.spans],
    )
