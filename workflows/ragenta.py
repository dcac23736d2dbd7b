"""Workflow ragenta: judged passages, checked claims and follow-up questions (RAGentA, after MAIN-RAG).

retrieval ─ line_up_passages ─┬─ judge_passage (each) ─┬─ keep_passages ─┬─ write_answer ⟲ ┄ quote_passages ─┐
                              └────────────────────────┘      │          └─ abstain                          │
          ┌───────────────────────────────────────────────────┘                                              │
          └─ judge_passage (each) ─ merge_passages ─ search_follow_up (each) ─ plan_follow_ups ─ check_claims ┘

Retrieval is that of ``workflows.retrieval``, by similarity or by a walk; the claim check that of any workflow.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from langgraph.graph import END, StateGraph
from langgraph.types import RetryPolicy, Send

from workflows import retrieval
from workflows.context import asking
from workflows.mara import CHECKED, no_answer
from workflows.nodes.claim_check import build_claim_check
from workflows.nodes.conversation import ask_back
from workflows.nodes.history import RECORD_TURN, REMEMBERED, add_recording
from workflows.nodes.passage_judge import ONE_PASSAGE, build_passage_judge
from workflows.nodes.ragenta import (
    ASKED,
    abstain,
    keep_passages,
    line_up_passages,
    merge_passages,
    plan_follow_ups,
    quote_passages,
    record_turn,
    write_answer,
)
from workflows.nodes.retrieval import begin
from workflows.retrieval import add_retrieval
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import check_sources, written_from
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, VALID, WorkflowBuilder, after_reply, router
from workflows.settings.mara import Context, Question
from workflows.settings.ragenta import RagentaContext
from workflows.states.ragenta import FollowUpState, Found, PassageState, RagentaOutput, RagentaState
from workflows.states.records import FIRST_NODE, ErrorRecord, Update
from workflows.states.shared import Asked, check_shape

WORKFLOW = "ragenta"

MAX_CONCURRENCY = 16
"""Passages that are judged at once, unless the caller's config says otherwise."""

RECURSION_LIMIT = 100
"""Steps a run may take: above three rounds of follow-ups with all retries."""

EACH_PASSAGE = "each passage"
NONE_TO_JUDGE = "none to judge"
OVER_THE_BAR = "over the bar"
NONE_PASSES = "nothing supports an answer"
NOTHING_NEW = "nothing new"
EACH_FOLLOW_UP = "each follow-up"
NOTHING_TO_ASK = "nothing to ask"

_search: Any = retrieval.graph

ROUTED = ("mode", "generation", "passages", "kept", "written_from")
"""The keys of the state that are sent on to nodes that work on one passage or one follow-up."""


@node()
def encode_question(state: Asked, run: OpenRun) -> Update:
    """Start afresh, all that was judged included, and compute the question's vectors into the cache."""
    context = RagentaContext.of(run.context)
    return {
        **begin(state, run),
        **no_answer(),
        "workflow": WORKFLOW,
        "checks_claims": context.check_claims,
        "judges_passages": context.judge_passages,
        "judge_outcome": "",
        "judgements": None,
        "bars": [],
        "final_prompt": "",
        "candidates": [],
        "kept": [],
        "new_kept": [],
        "draft": None,
        "round": 0,
        "found": None,
        "calls_before": None,
        "settled": None,
    }


@node()
def search_follow_up(state: FollowUpState, run: OpenRun) -> Update:
    """Retrieve passages for one follow-up question, as for the question itself; malformed replies fall back at once."""
    context = RagentaContext.of(run.context)
    check_sources(state["sources"], run)
    settings = context.model_copy(update={"top_k": context.follow_ups.passages, "max_json_retries": 0})
    result: dict[str, Any] = _search.invoke(asking(state["question"]), context=settings)
    # Replies may name facts that the state does not hold, and so no later filter could tell whether to drop them.
    records: list[ErrorRecord] = result["errors"]
    errors: list[ErrorRecord] = [{**record, "raw": ""} for record in records if record["node"] != FIRST_NODE]
    passages = result.get("passages", [])
    if result["generation"] != state.get("generation", result["generation"]):
        message = "The workspace was indexed anew since the question was asked: a follow-up finds nothing in it"
        errors.append(run.error("IndexedAnew", message))
        passages = []
    return {
        "found": [Found(follow_up=state["follow_up"], passages=passages)],
        "errors": errors,
    }


@router(*ROUTED, "judges_passages", "candidates")
def to_judges(state: RagentaState) -> list[Send] | str:
    """Send each passage in line to the judge."""
    check_shape(state, to_judges.__annotations__["state"])
    hits = {hit["number"]: hit for hit in state.get("passages", [])}
    sent = [
        Send(
            "judge_passage",
            PassageState(
                question=each["question"],
                mode=state["mode"],
                generation=state.get("generation", 0),
                passage=hits[each["number"]],
                sources=written_from(state),
            ),
        )
        for each in state.get("candidates", [])
        if each["number"] in hits and state.get("judges_passages", True)
    ]
    return sent or NONE_TO_JUDGE


@router("remembers", "new_kept", "round")
def after_keeping(state: RagentaState) -> str:
    """Write the answer from what was kept; without that, abstain, or leave the answer as it is."""
    if state.get("new_kept"):
        return OVER_THE_BAR
    if not state.get("round", 0):
        return NONE_PASSES
    return REMEMBERED if state.get("remembers") else NOTHING_NEW


@router("answer_refusal", "checks_claims", "refused", "remembers")
def after_answer(state: RagentaState) -> str:
    """Ask again while replies are malformed and attempts are left, then fall back; a valid one may be checked."""
    reply = after_reply(state.get("answer_refusal"))
    return reply if reply != VALID else after_fallback(state)


@router("checks_claims", "refused", "remembers")
def after_fallback(state: RagentaState) -> str:
    """Check the claims where that is wanted; of a refusal, what the question lacks; else remember it, if at all."""
    if state.get("checks_claims"):
        return CHECKED
    return REMEMBERED if state.get("remembers") else VALID


@router(*ROUTED, "remembers", "round", "follow_ups")
def to_searches(state: RagentaState) -> list[Send] | str:
    """Send each follow-up question of this round to be searched for."""
    check_shape(state, to_searches.__annotations__["state"])
    sent = [
        Send(
            "search_follow_up",
            FollowUpState(
                question=each["question"],
                mode=state["mode"],
                generation=state.get("generation", 0),
                follow_up=place,
                sources=written_from(state),
            ),
        )
        for place, each in enumerate(state.get("follow_ups", []), start=1)
        if each["outcome"] == ASKED and each["round"] == state.get("round", 0)
    ]
    return sent or (REMEMBERED if state.get("remembers") else NOTHING_TO_ASK)


def build(
    transport_retries: RetryPolicy = TRANSPORT_RETRIES,
) -> StateGraph[RagentaState, Context, Question | Asked, Any]:
    """Return the builder of the workflow, to compile with a checkpointer of one's own."""
    builder: WorkflowBuilder[RagentaState, Context, Question | Asked, Any] = WorkflowBuilder(
        RagentaState,
        transport_retries,
        context_schema=RagentaContext,
        input_schema=Question,
        output_schema=RagentaOutput,
    )
    add_retrieval(builder, encode_question, "line_up_passages", "ask_back")
    builder.add(ask_back)
    builder.add(line_up_passages)
    builder.add_node("judge_passage", build_passage_judge(builder), input_schema=ONE_PASSAGE)
    builder.add(keep_passages)
    builder.add(abstain)
    builder.add_asking(
        write_answer,
        after_answer,
        quote_passages,
        END,
        after_fallback=after_fallback,
        others={CHECKED: "check_claims", REMEMBERED: RECORD_TURN},
    )
    builder.add_node("check_claims", build_claim_check(builder))
    builder.add(plan_follow_ups)
    builder.add(search_follow_up, own_threads=True)
    builder.add(merge_passages)
    judged: dict[Hashable, str] = {EACH_PASSAGE: "judge_passage", NONE_TO_JUDGE: "keep_passages"}
    builder.add_conditional_edges("line_up_passages", to_judges, judged)
    builder.add_conditional_edges("merge_passages", to_judges, judged)
    builder.add_edge("judge_passage", "keep_passages")
    builder.add_conditional_edges(
        "keep_passages",
        after_keeping,
        {OVER_THE_BAR: "write_answer", NONE_PASSES: "abstain", NOTHING_NEW: END, REMEMBERED: RECORD_TURN},
    )
    builder.add_edge("check_claims", "plan_follow_ups")
    builder.add_conditional_edges(
        "plan_follow_ups",
        to_searches,
        {EACH_FOLLOW_UP: "search_follow_up", NOTHING_TO_ASK: END, REMEMBERED: RECORD_TURN},
    )
    builder.add_edge("search_follow_up", "merge_passages")
    add_recording(builder, record_turn, "ask_back", "abstain")
    return builder


graph = build().compile(name=WORKFLOW).with_config(recursion_limit=RECURSION_LIMIT, max_concurrency=MAX_CONCURRENCY)
