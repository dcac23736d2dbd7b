"""The main workflow: a question in, a cited answer out.

Retrieval (see ``workflows.retrieval``), then ``write_answer`` with its retry edge and its fallback ``quote_passages``.
"""

from __future__ import annotations

from langgraph.graph import END, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy

from agents.answerer import quote_passages as quote
from agents.roles import Answer, NumberedPassage
from graph.errors import MalformedReply
from workflows.context import Context, Question, context_of
from workflows.filtered import Update, within_filter
from workflows.resources import answerer_for, open_workspace_index
from workflows.retrieval import (
    RECURSION_LIMIT,
    TRANSPORT_RETRIES,
    AfterReply,
    add_retrieval,
    after_reply,
    reply_edges,
)
from workflows.retrieval_nodes import encode_question as encode
from workflows.state import (
    Answering,
    AnswerReply,
    Asked,
    CitationMark,
    Output,
    State,
    error_of,
    feedback_from,
    refusal_of,
)
from workflows.tracing import answer_shown, numbered_documents, step
from workflows.watched import watched

WORKFLOW = "mara"

SHOWN = ("passages", "facts", "seeds", "passage_candidates")
"""What of the state names passages."""


def encode_question(state: Asked, runtime: Runtime[Context]) -> Update:
    """Start afresh, the answer included, and compute the question's vectors into the cache."""
    no_answer: Update = {"answer": "", "plain_answer": "", "citations": [], "refused": False}
    return {
        **encode(state, runtime),
        **no_answer,
        "answer_attempts": 0,
        "answer_refusal": None,
        "workflow": WORKFLOW,
    }


@watched
@within_filter(*SHOWN)
def write_answer(state: Answering, runtime: Runtime[Context]) -> Update:
    """Ask the answerer for a cited answer from the best passages."""
    context = context_of(runtime)
    index = open_workspace_index(context, state.get("generation"))
    attempt = state.get("answer_attempts", 0) + 1
    passages = _numbered(state, context)
    try:
        answer = step(
            "chain",
            "answerer",
            lambda: {"question": state["question"], **numbered_documents(passages)},
            lambda: answerer_for(context, index).answer(
                state["question"], passages, feedback_from(state.get("answer_refusal"))
            ),
            answer_shown,
            {"mara_attempt": attempt},
        )
    except MalformedReply as fault:
        return {
            "answer_attempts": attempt,
            "answer_refusal": refusal_of(fault, final=attempt > context.max_json_retries),
            "errors": [error_of("write_answer", fault.kind, fault.reason, attempt, fault.raw)],
        }
    return {"answer_attempts": attempt, "answer_refusal": None, **_as_update(answer)}


@watched
@within_filter(*SHOWN)
def quote_passages(state: Answering, runtime: Runtime[Context]) -> Update:
    """Fallback of the answerer: quote the sentences that share most with the question."""
    message = "The answerer's replies stayed malformed: the answer quotes the best passages"
    return {
        **_as_update(quote(state["question"], _numbered(state, context_of(runtime)))),
        "errors": [error_of("quote_passages", "Fallback", message, state.get("answer_attempts", 0))],
    }


def after_answer(state: AnswerReply) -> AfterReply:
    """Ask again while replies are malformed and attempts are left, then fall back."""
    return after_reply(state.get("answer_refusal"))


def build(transport_retries: RetryPolicy = TRANSPORT_RETRIES) -> StateGraph[State, Context, Question, Output]:
    """Return the builder of the main workflow, to compile with a checkpointer of one's own."""
    builder = StateGraph(State, context_schema=Context, input_schema=Question, output_schema=Output)
    add_retrieval(builder, encode_question, "write_answer", transport_retries)
    builder.add_node("write_answer", write_answer, retry_policy=transport_retries)
    builder.add_node("quote_passages", quote_passages)
    builder.add_conditional_edges("write_answer", after_answer, reply_edges("write_answer", "quote_passages", END))
    builder.add_edge("quote_passages", END)
    return builder


def _numbered(state: Answering, context: Context) -> list[NumberedPassage]:
    best = state.get("passages", [])[: context.answer_passages]
    return [NumberedPassage(n, hit["id"], hit["title"], hit["text"]) for n, hit in enumerate(best, start=1)]


def _as_update(answer: Answer) -> Update:
    return {
        "answer": answer.text,
        "plain_answer": answer.plain_text,
        "refused": answer.refused,
        "citations": [
            CitationMark(number=c.number, passage_id=c.passage_id, start=c.start, end=c.end) for c in answer.citations
        ],
    }


graph = build().compile(name=WORKFLOW).with_config(recursion_limit=RECURSION_LIMIT)
