"""The nodes of workflow ragenta that come after retrieval, but for those of its two subgraphs."""

from __future__ import annotations

from dataclasses import replace

from agents.claim_judge import Coverage, Structure
from agents.final_predictor import FINAL_PREDICTOR, Draft
from agents.roles import NumberedPassage, refusal
from workflows.nodes.follow_up_budget import CALLS_AT_THE_END, calls_left, calls_of, why_over
from workflows.nodes.follow_ups import FOUND
from workflows.nodes.history import RECORDED
from workflows.nodes.retrieval import unknown_entries
from workflows.runtime.agents import ask, fell_back
from workflows.runtime.history import record_answer
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.tracing import numbered_documents
from workflows.runtime.visibility import SHOWING
from workflows.settings.ragenta import RagentaContext
from workflows.states.conversion import answer_update, notes_of, numbered
from workflows.states.ragenta import Candidate, RagentaState
from workflows.states.records import ComponentRecord, Update

WRITING = (
    *SHOWING,
    *("answer_attempts", "answer_refusal", "round", "calls_before", "follow_ups_began", "draft", "follow_ups", "usage"),
)
"""The keys of the state that the final predictor and its fallback read."""


@node(*SHOWING)
def line_up_passages(state: RagentaState, run: OpenRun) -> Update:
    """List the retrieved passages for the judge."""
    judges = RagentaContext.of(run.context).judge_passages
    question = state["question"]
    lined_up = [Candidate(number=hit["number"], question=question, calls=None) for hit in state.get("passages", [])]
    return {"candidates": lined_up if judges else [], "judges_passages": judges}


@node(*SHOWING)
def abstain(state: RagentaState, run: OpenRun) -> Update:
    """Answer that the passages do not hold it: none is over the floor."""
    component = ComponentRecord(text=state["question"], coverage=Coverage.NOT.value, claims=[])
    return {
        **answer_update(refusal()),
        "written_from": [],
        "structure": Structure.SINGLE.value,
        "components": [component],
        "coverage": Coverage.NOT.value,
    }


@node(*WRITING)
def write_answer(state: RagentaState, run: OpenRun) -> Update:
    """Ask the final predictor for an answer from the kept passages, or for the draft's completion from new ones."""
    settings, passages, draft = RagentaContext.of(run.context), _kept_passages(state), _draft(state)
    asked_before = state.get("answer_attempts", 0) > 0
    lacking = 0 if run.selection is not None or asked_before else len(state.get("kept", [])) - len(passages)
    unknown = unknown_entries(run, lacking)
    left = calls_left(state.get("calls_before"), calls_of(state), settings)

    def is_spent(attempt: int) -> bool:
        late = why_over(settings, state.get("follow_ups_began"))
        return bool(late) or (left is not None and left - 1 < CALLS_AT_THE_END)

    reply = ask(
        FINAL_PREDICTOR,
        state,
        run,
        lambda: {"question": state["question"], **numbered_documents(passages), "draft": draft and draft.text},
        lambda final_predictor, feedback: final_predictor.answer(state["question"], passages, draft, feedback),
        is_spent,
    )
    written = reply.said
    if written is None:
        return {**reply.update, "errors": [*unknown, *reply.update["errors"]]}
    return {
        **reply.update,
        **answer_update(written.answer, passages),
        "written_from": list(written.written_from),
        "final_prompt": written.prompt,
        "calls_allowed": None if left is None else max(1, left - 1),
        "errors": [*unknown, *notes_of(written.answer, run.node)],
    }


@node(*WRITING)
def quote_passages(state: RagentaState, run: OpenRun) -> Update:
    """Fallback of the final predictor: its offline twin quotes evidence; a draft stays, followed by what it lacks."""
    passages, draft = _kept_passages(state), _draft(state)
    said = FINAL_PREDICTOR.offline(run).answer(state["question"], passages, draft)
    answer = said.answer if draft is None else replace(said.answer, is_evidence=False)
    left = calls_left(state.get("calls_before"), calls_of(state), RagentaContext.of(run.context))
    told = fell_back(FINAL_PREDICTOR, state, run)
    return {
        **answer_update(answer, passages),
        "written_from": list(said.written_from),
        "calls_allowed": None if left is None else max(1, left),
        "errors": [*told["errors"], *notes_of(answer, run.node)],
    }


@node(*SHOWING, *RECORDED)
def record_turn(state: RagentaState, run: OpenRun) -> Update:
    """Write the question and its answer to the history."""
    return record_answer(state, run)


def _kept_passages(state: RagentaState) -> list[NumberedPassage]:
    """The kept passages, as far as the state holds them, in the order in which they are shown."""
    by_number = {passage.number: passage for passage in numbered(state.get("passages", []))}
    return [by_number[number] for number in state.get("kept", []) if number in by_number]


def _draft(state: RagentaState) -> Draft | None:
    """What is to be completed in a round of follow-ups; None where there is nothing."""
    draft = state.get("draft")
    if not draft or not state.get("round", 0):
        return None
    asked = [each["question"] for each in state.get("follow_ups", []) if each["outcome"] == FOUND]
    return Draft(draft["text"], tuple(draft["cited"]), tuple(asked))
