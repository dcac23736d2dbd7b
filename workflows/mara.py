"""The main workflow: a question in, a cited answer out.

retrieval ─┬─ write_answer ⟲ ┄ quote_passages ─ [check_claims] ─ [record_turn]
           └─ ask_back ─ [record_turn]

Retrieval is that of ``workflows.retrieval``. Without a model, ``write_answer`` asks the answerer's offline twin;
``quote_passages`` stands in where a model's replies stayed of no use. Where wanted, the claims are checked (see
``workflows.nodes.claim_check``), and the turn is written to the history.
"""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, StateGraph
from langgraph.types import RetryPolicy

from agents.answerer import ANSWERER
from agents.roles import Answer, NumberedPassage
from graph.errors import BadInput
from workflows.nodes.claim_check import build_claim_check
from workflows.nodes.conversation import ask_back
from workflows.nodes.history import ENDINGS, RECORD_TURN, REMEMBERED, add_recording, after_ending, record_turn
from workflows.nodes.retrieval import begin
from workflows.retrieval import RECURSION_LIMIT, add_retrieval
from workflows.runtime.agents import ask, fell_back, flaws_of
from workflows.runtime.node import node
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_name
from workflows.runtime.tracing import numbered_documents
from workflows.runtime.unread_files import unread_files
from workflows.runtime.visibility import RETRIEVED
from workflows.runtime.workflow_graph import TRANSPORT_RETRIES, VALID, WorkflowBuilder, after_reply, router
from workflows.settings.enums import Workflow
from workflows.settings.mara import Context, Question
from workflows.states.conversion import answer_update, hits_of, notes_of, numbered
from workflows.states.records import Update
from workflows.states.shared import Asked, Output, State

WORKFLOW = "mara"

CHECKED = "claims are checked"


@node()
def encode_question(state: Asked, run: OpenRun) -> Update:
    """Start afresh, the answer included, and compute the question's vectors into the cache."""
    context = run.context
    if context.workflow is not Workflow.MARA:
        raise BadInput(
            f"Workflow {WORKFLOW} was given settings of workflow {context.workflow}", "Pass a workflows.context.Context"
        )
    return {**begin(state, run), **no_answer(), "workflow": WORKFLOW, "checks_claims": context.check_claims}


def no_answer() -> Update:
    """Return what the answer's part of the state starts from, so that a used thread holds nothing of the last one."""
    return {
        "answer": "",
        "plain_answer": "",
        "citations": [],
        "refused": False,
        "answer_kind": "",
        "cut": False,
        "written_from": [],
        **ANSWERER.not_asked,
        "claims": [],
        "claims_checked_by": "",
        "structure": "",
        "components": [],
        "coverage": "",
        "follow_ups": [],
        "recorded": None,
    }


ANSWERING = (*RETRIEVED, "answer_attempts", "answer_refusal")
"""The keys that the nodes read that write an answer: all that name passages, for a filter leaves what it lets be seen
in the state as they return it."""


@node(*ANSWERING)
def write_answer(state: State, run: OpenRun) -> Update:
    """Ask the answerer for a cited answer from the best passages."""
    passages = _best(state, run)
    reply = ask(
        ANSWERER,
        state,
        run,
        lambda: {"question": state["question"], **numbered_documents(passages)},
        lambda answerer, feedback: answerer.answer(state["question"], passages, feedback),
    )
    if reply.said is None:
        return reply.update
    answered = _quoted(reply.said, passages, state, run)
    return {**reply.update, **answered, "errors": [*flaws_of(reply.said, run), *answered["errors"]]}


@node(*ANSWERING)
def quote_passages(state: State, run: OpenRun) -> Update:
    """Fallback of the answerer: its offline twin quotes evidence from all passages."""
    passages = numbered(state.get("passages", []))
    quoted = ANSWERER.offline(run).answer(state["question"], passages)
    fallback = fell_back(ANSWERER, state, run)
    answered = _quoted(quoted, passages, state, run)
    return {**answered, "errors": [*fallback["errors"], *answered["errors"]]}


@router("answer_refusal", "checks_claims", "refused", "remembers")
def after_answer(state: State) -> str:
    """Ask again while replies are malformed and attempts are left, then fall back; a valid one may be checked."""
    reply = after_reply(state.get("answer_refusal"))
    return reply if reply != VALID else after_fallback(state)


@router("checks_claims", "refused", "remembers")
def after_fallback(state: State) -> str:
    """Check the claims where that is wanted, and there are any; else remember the turn, if at all."""
    if state.get("checks_claims") and not state.get("refused"):
        return CHECKED
    return REMEMBERED if state.get("remembers") else VALID


def build(transport_retries: RetryPolicy = TRANSPORT_RETRIES) -> StateGraph[State, Context, Question | Asked, Any]:
    """Return the builder of the main workflow, to compile with a checkpointer of one's own."""
    builder: WorkflowBuilder[State, Context, Question | Asked, Any] = WorkflowBuilder(
        State, transport_retries, context_schema=Context, input_schema=Question, output_schema=Output
    )
    add_retrieval(builder, encode_question, "write_answer", "ask_back")
    builder.add(ask_back)
    add_answering(builder)
    builder.add_conditional_edges("ask_back", after_ending, dict(ENDINGS))
    return builder


def add_answering(builder: WorkflowBuilder[Any, Any, Any, Any]) -> None:
    """Add the nodes from ``write_answer`` to the end of a run to a workflow."""
    builder.add_asking(
        write_answer,
        after_answer,
        quote_passages,
        END,
        after_fallback=after_fallback,
        others={CHECKED: "check_claims", REMEMBERED: RECORD_TURN},
    )
    builder.add_node("check_claims", build_claim_check(builder))
    add_recording(builder, record_turn, "check_claims")


def _quoted(answer: Answer, passages: list[NumberedPassage], state: State, run: OpenRun) -> Update:
    """Return an answer as it goes into the state; passages that it cites beyond those found go behind them."""
    seen = [*passages, *answer.beyond]
    beyond = hits_of(run.index, answer.beyond)
    return {
        **answer_update(answer, seen),
        **({"passages": [*state.get("passages", []), *beyond]} if beyond else {}),
        "written_from": [passage.number for passage in seen],
        "errors": [*notes_of(answer, run.node), *(unread_files(run) if answer.refused else [])],
    }


def _best(state: State, run: OpenRun) -> list[NumberedPassage]:
    hits = state.get("passages", [])
    reads_all = chat_model_name(run.context) == OFFLINE
    return numbered(hits if reads_all else hits[: run.context.answer_passages])


graph = build().compile(name=WORKFLOW).with_config(recursion_limit=RECURSION_LIMIT)
