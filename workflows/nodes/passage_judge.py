"""Judging one passage: a small subgraph, one run a passage, so that each retries by itself.

predict_answer ⟲ ┄ skip_prediction ─ score_passage ⟲ ┄ leave_unjudged
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langgraph.graph import END, START
from langgraph.graph.state import CompiledStateGraph

from agents.judge import JUDGE
from agents.predictor import PREDICTOR
from agents.roles import NumberedPassage
from graph.errors import BadInput
from workflows.nodes.follow_up_budget import why_over
from workflows.runtime.agents import ask, fell_back
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.tracing import passage_shown
from workflows.runtime.visibility import check_sources, sees
from workflows.runtime.workflow_graph import WorkflowBuilder
from workflows.settings.mara import Context
from workflows.states.conversion import numbered
from workflows.states.ragenta import JudgementRecord, PassageState
from workflows.states.records import Update
from workflows.states.shared import part_of

UNJUDGED = "unjudged"
"""The source of a judgement that no judge made."""

ONE_PASSAGE = part_of(
    PassageState,
    ("question", "mode", "generation", "spent", "sources", "passage"),
    "OnePassage",
)
"""The part of the state that the subgraph is given."""

PREDICTING = ("sources", "passage", "predict_attempts", "predict_refusal")
SCORING = ("sources", "passage", "prediction", "score_attempts", "score_refusal")
"""The keys of the state that the predictor and the judge read, and their fallbacks."""


@node(*PREDICTING)
def predict_answer(state: PassageState, run: OpenRun) -> Update:
    """Ask the predictor what this passage alone answers."""
    passage = _passage(state, run)
    if why_over(run.context):
        return {"prediction": "", PREDICTOR.refusal: None}
    reply = ask(
        PREDICTOR,
        state,
        run,
        lambda: passage_shown(state["question"], passage),
        lambda predictor, feedback: predictor.predict(state["question"], passage, feedback),
    )
    return reply.update if reply.said is None else {**reply.update, "prediction": reply.said}


@node(*PREDICTING)
def skip_prediction(state: PassageState, run: OpenRun) -> Update:
    """Fallback of the predictor: the passage is judged without what it answers."""
    return {"prediction": "", **fell_back(PREDICTOR, state, run, _named(state))}


@node(*SCORING)
def score_passage(state: PassageState, run: OpenRun) -> Update:
    """Ask the judge how far this passage supports an answer."""
    passage, prediction = _passage(state, run), state.get("prediction", "")
    if over := why_over(run.context):
        message = f"{over}: {_named(state)} is left unjudged"
        return {
            "judgements": [_judgement(state, None, UNJUDGED)],
            JUDGE.refusal: None,
            "errors": [run.error("BudgetSpent", message, state.get("score_attempts", 0) + 1)],
        }
    reply = ask(
        JUDGE,
        state,
        run,
        lambda: {**passage_shown(state["question"], passage), "prediction": prediction},
        lambda judge, feedback: judge.judge(state["question"], passage, prediction, feedback),
    )
    if reply.said is None:
        return reply.update
    return {**reply.update, "judgements": [_judgement(state, reply.said.score, reply.said.judged_by.value)]}


@node(*SCORING)
def leave_unjudged(state: PassageState, run: OpenRun) -> Update:
    """Fallback of the judge: the passage has no score, and is not kept while others have one."""
    return {"judgements": [_judgement(state, None, UNJUDGED)], **fell_back(JUDGE, state, run, _named(state))}


def build_passage_judge(
    workflow: WorkflowBuilder[Any, Context, Any, Any],
) -> CompiledStateGraph[PassageState, Context, PassageState, PassageState]:
    """Return the compiled subgraph with the settings of ``workflow``."""
    builder: WorkflowBuilder[PassageState, Context, PassageState, PassageState] = WorkflowBuilder(
        PassageState,
        workflow.transport_retries,
        context_schema=workflow.context_schema,
        input_schema=ONE_PASSAGE,
        output_schema=part_of(PassageState, ("judgements", "timings_ms", "usage", "errors"), "OnePassageOutput"),
    )
    builder.add_edge(START, "predict_answer")
    builder.add_asking(predict_answer, PREDICTOR.refusal, skip_prediction, "score_passage", own_threads=True)
    builder.add_asking(score_passage, JUDGE.refusal, leave_unjudged, END, own_threads=True)
    return builder.compile(name="judge_passage")


def _passage(state: PassageState, run: OpenRun) -> NumberedPassage:
    """The passage to judge. Raises BadInput where the run's filter hides it, or the workspace lacks it."""
    check_sources(state.get("sources", []), run)
    if not sees(state["passage"]["id"], run):
        raise BadInput(
            f"Passage [{state['passage']['number']}] is to be judged, but this run cannot see it",
            "Fork before the passages were retrieved, or ask again",
        )
    return numbered([state["passage"]])[0]


def _named(state: Mapping[str, Any]) -> str:
    return f"passage [{state['passage']['number']}]"


def _judgement(state: PassageState, score: float | None, judged_by: str) -> JudgementRecord:
    passage = state["passage"]
    return JudgementRecord(
        passage_id=passage["id"],
        number=passage["number"],
        question=state["question"],
        prediction=state.get("prediction", ""),
        score=score,
        judged_by=judged_by,
        kept=False,
    )
