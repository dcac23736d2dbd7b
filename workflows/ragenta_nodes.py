"""The nodes of workflow ragenta that come after retrieval, but for those of its two subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langgraph.runtime import Runtime

from agents.answerer import quote_passages as quote
from agents.bar import adaptive_bar, over_the_bar
from agents.citations import strip_citations
from agents.claims import strip_marks
from agents.roles import Answer, Coverage, Draft, NumberedPassage, Structure
from agents.settling import refusal
from graph.errors import MalformedReply
from workflows.claim_check import NOT_ASKED
from workflows.claim_records import ComponentRecord, FollowUpRecord
from workflows.context import Context
from workflows.filtered import Update, open_run, within_filter
from workflows.follow_up_budget import (
    CALLS_A_PASSAGE,
    affordable_follow_ups,
    affordable_passages,
    calls_for_each,
    now,
)
from workflows.ragenta_context import RagentaContext, ragenta_context_of
from workflows.ragenta_state import (
    BarRecord,
    Budget,
    Candidate,
    Found,
    JudgementRecord,
    Keeping,
    Merging,
    Planning,
    Predicted,
    Showing,
)
from workflows.resources import OFFLINE, chat_model_name, final_predictor_for
from workflows.state import PassageHit, error_of, feedback_from, malformed_update
from workflows.tracing import answer_shown, numbered_documents, step
from workflows.translation import answer_update, numbered
from workflows.watched import watched

ASKED = "asked"
FOUND = "found"
NOTHING_FOUND = "nothing found"
"""What became of a follow-up question."""

KEPT = "kept"
NOTHING_SUPPORTS = "nothing supports"
FAILED = "failed"
NOT_JUDGED = "not judged"
"""What came of judging the passages of the question."""

SHOWN = ("passages", "facts", "seeds", "passage_candidates", "judgements")
"""What of the state names passages."""


@watched
@within_filter(*SHOWN)
def line_up_passages(state: Showing, runtime: Runtime[Context]) -> Update:
    """List the retrieved passages for the judge."""
    judges = ragenta_context_of(runtime).judge_passages
    question = state["question"]
    lined_up = [Candidate(number=hit["number"], question=question, calls=None) for hit in state.get("passages", [])]
    return {"candidates": lined_up if judges else [], "judges_passages": judges}


@watched
@within_filter(*SHOWN)
def keep_passages(state: Keeping, runtime: Runtime[Context]) -> Update:
    """Keep the passages over the adaptive bar, of the question or of the round's follow-ups."""
    context = ragenta_context_of(runtime)
    if state.get("round", 0):
        return _keep_of_follow_ups(state, context)
    question, hits = state["question"], state.get("passages", [])
    if not state.get("judges_passages", True):
        kept = [hit["number"] for hit in hits[: context.max_kept]]
        return {"kept": kept, "new_kept": kept, "judge_outcome": NOT_JUDGED if kept else NOTHING_SUPPORTS}
    judged = _judged_for(state, question)
    if judged and all(each["score"] is None for each in judged):
        kept = [hit["number"] for hit in hits[: context.max_kept]]
        message = f"No passage could be judged: the best {len(kept)} retrieved ones are kept"
        told = [error_of("keep_passages", "Fallback", message, 1)]
        return {"kept": kept, "new_kept": kept, "judge_outcome": FAILED, "errors": told}
    chosen, bars = _over_the_bar(judged, question, context)
    kept = [each["number"] for each in chosen]
    return {
        "kept": kept,
        "new_kept": kept,
        "judge_outcome": KEPT if kept else NOTHING_SUPPORTS,
        "judgements": chosen,
        "bars": bars,
    }


@watched
@within_filter(*SHOWN)
def abstain(state: Showing, runtime: Runtime[Context]) -> Update:
    """Answer that the passages do not hold it: none is over the floor."""
    component = ComponentRecord(text=state["question"], coverage=Coverage.NOT.value, claims=[])
    return {
        **answer_update(refusal()),
        "written_from": [],
        "structure": Structure.SINGLE.value,
        "components": [component],
        "coverage": Coverage.NOT.value,
    }


@watched
@within_filter(*SHOWN)
def write_answer(state: Predicted, runtime: Runtime[Context]) -> Update:
    """Ask the final predictor for an answer from the kept passages, or for the draft's completion from new ones."""
    context, index, _ = open_run(state, runtime)
    settings = ragenta_context_of(runtime)
    attempt = state.get("answer_attempts", 0) + 1
    passages, draft = _kept_passages(state), _draft(state)
    left = _calls_left(state, settings)
    try:
        final = step(
            "chain",
            "final_predictor",
            lambda: {"question": state["question"], **numbered_documents(passages), "draft": draft and draft.text},
            lambda: final_predictor_for(context, index).answer(
                state["question"], passages, draft, feedback_from(state.get("answer_refusal"))
            ),
            lambda final: answer_shown(final.answer),
            {"mara_attempt": attempt},
        )
    except MalformedReply as fault:
        spent = left is not None and left - 1 < _ANOTHER_AND_THE_CHECK
        return malformed_update(
            "write_answer", "answer", fault, attempt, final=attempt > settings.max_json_retries or spent
        )
    return {
        "answer_attempts": attempt,
        "answer_refusal": None,
        **answer_update(final.answer),
        "written_from": list(final.written_from),
        "final_prompt": final.prompt,
        "calls_allowed": None if left is None else max(1, left - 1),
    }


@watched
@within_filter(*SHOWN)
def quote_passages(state: Predicted, runtime: Runtime[Context]) -> Update:
    """Fallback of the final predictor: quote the sentences that share most with the question; a draft stays."""
    passages, draft = _kept_passages(state), _draft(state)
    if draft is None:
        answer = quote(state["question"], passages)
    else:
        answer = _completed(draft, state.get("follow_ups", []), state.get("round", 0), passages)
    message = "The final predictor's replies stayed malformed: the answer quotes the best passages"
    left = _calls_left(state, ragenta_context_of(runtime))
    return {
        **answer_update(answer),
        "written_from": [passage.number for passage in passages],
        "calls_allowed": None if left is None else max(1, left),
        "errors": [error_of("quote_passages", "Fallback", message, state.get("answer_attempts", 0))],
    }


@watched
@within_filter(*SHOWN)
def plan_follow_ups(state: Planning, runtime: Runtime[Context]) -> Update:
    """Choose which of the suggested follow-up questions are asked: as many as the budget lets."""
    context = ragenta_context_of(runtime)
    follow_ups, round_ = state.get("follow_ups", []), state.get("round", 0) + 1
    wanted = [
        place for place, each in enumerate(follow_ups) if each["round"] == round_ and each["outcome"] == NOT_ASKED
    ]
    if not wanted or round_ > context.follow_up_rounds:
        return {}
    calls = state.get("model_calls", 0)
    budget = state.get("budget") or Budget(calls_before=calls, deadline=now() + context.follow_up_seconds)
    affordable = 0 if is_late(budget) else len(wanted)
    left = _calls_left({**state, "budget": budget}, context)
    if affordable and left is not None:
        a_passage = CALLS_A_PASSAGE if context.judge_passages else 0
        affordable = affordable_follow_ups(len(wanted), left, _calls_of_a_search(context), a_passage)
    asked = set(wanted[:affordable])
    update: Update = {"budget": budget, "found": None}
    if asked:
        marked = [_become(each, ASKED) if place in asked else each for place, each in enumerate(follow_ups)]
        update |= {"follow_ups": marked, "round": round_, "answer_attempts": 0, "answer_refusal": None}
    if len(asked) < len(wanted):
        message = (
            f"{len(wanted) - len(asked)} follow-up questions were not asked: no calls or seconds are left for them"
        )
        update["errors"] = [error_of("plan_follow_ups", "BudgetSpent", message, 1)]
    return update


@watched
@within_filter(*SHOWN, "found")
def merge_passages(state: Merging, runtime: Runtime[Context]) -> Update:
    """Number the passages that follow-ups found after all others, and list those that are not kept for the judge."""
    context = ragenta_context_of(runtime)
    merged = list(state.get("passages", []))
    numbers = {hit["id"]: hit["number"] for hit in merged}
    kept = set(state.get("kept", []))
    found = sorted(state.get("found", []), key=lambda each: each["follow_up"])
    follow_ups = state.get("follow_ups", [])
    wanted: list[tuple[PassageHit, Candidate]] = []
    for each, hit in _in_turn(found):
        number = numbers.get(hit["id"], 0) or max(numbers.values(), default=0) + 1
        if number in kept or any(candidate["number"] == number for _, candidate in wanted):
            continue
        numbers[hit["id"]] = number
        question = follow_ups[each["follow_up"] - 1]["question"]
        new = PassageHit(**{**hit, "number": number, "follow_up": each["follow_up"]})
        wanted.append((new, Candidate(number=number, question=question, calls=None)))
    left = _calls_left(state, context)
    judged = wanted
    if left is not None and context.judge_passages:
        judged = wanted[: affordable_passages(len(wanted), left)]
        for _, candidate in judged:
            candidate["calls"] = calls_for_each(len(judged), left)
    known = {hit["id"] for hit in merged}
    merged += [hit for hit, _ in judged if hit["id"] not in known]
    update: Update = {"passages": merged, "candidates": [candidate for _, candidate in judged]}
    if len(judged) < len(wanted):
        message = f"{len(wanted) - len(judged)} passages of follow-ups were not judged: no calls are left for them"
        update["errors"] = [error_of("merge_passages", "BudgetSpent", message, 1)]
    return update


_ANOTHER_AND_THE_CHECK = 2


def _keep_of_follow_ups(state: Keeping, context: RagentaContext) -> Update:
    """Keep what the follow-ups of this round found; what was kept before stays."""
    before, candidates = state.get("kept", []), state.get("candidates", [])
    new: list[int] = []
    judgements: list[JudgementRecord] = []
    bars = list(state.get("bars", []))
    follow_ups = list(state.get("follow_ups", []))
    for place, follow_up in enumerate(follow_ups):
        if follow_up["round"] != state.get("round", 0) or follow_up["outcome"] != ASKED:
            continue
        question = follow_up["question"]
        lined_up = [each["number"] for each in candidates if each["question"] == question]
        if state.get("judges_passages", True):
            judged = [each for each in _judged_for(state, question) if each["number"] in lined_up]
            chosen, own_bars = _over_the_bar(judged, question, context)
            judgements += chosen
            bars += own_bars
            kept = [each["number"] for each in chosen]
            nothing = NOTHING_FOUND if own_bars or not judged else NOT_JUDGED
        else:
            kept, nothing = lined_up[: context.max_kept], NOTHING_FOUND
        new += [number for number in kept if number not in new]
        follow_ups[place] = _become(follow_up, FOUND if kept else nothing, kept)
    cited = (state.get("draft") or {"cited": []})["cited"]
    rest = [number for number in before if number not in cited]
    shown = [*new, *(number for number in cited if number in before), *rest]
    update: Update = {"kept": shown, "new_kept": new, "judgements": judgements, "bars": bars, "follow_ups": follow_ups}
    if new and is_late(state.get("budget")):
        message = "The follow-ups' seconds are over: what they found is judged, but not written into the answer"
        update |= {"kept": before, "new_kept": [], "errors": [error_of("keep_passages", "BudgetSpent", message, 1)]}
    return update


def is_late(budget: Budget | None) -> bool:
    """Tell whether the time for follow-ups is over."""
    return budget is not None and now() >= budget["deadline"]


def _judged_for(state: Keeping, question: str) -> list[JudgementRecord]:
    return [each for each in state.get("judgements", []) if each["question"] == question]


def _over_the_bar(
    judged: Sequence[JudgementRecord], question: str, context: RagentaContext
) -> tuple[list[JudgementRecord], list[BarRecord]]:
    """Return the judgements that pass, the best first, marked as kept, and where the bar lay; no bar without scores."""
    scored = sorted(
        ((each["score"], each) for each in judged if each["score"] is not None), key=lambda it: it[1]["number"]
    )
    scores = [score for score, _ in scored]
    if not scores:
        return [], []
    places = over_the_bar(scores, context.n, floor=context.judge_floor, least=context.min_kept, most=context.max_kept)
    bar = adaptive_bar(scores, context.n)
    record = BarRecord(
        question=question,
        tau=bar.tau,
        sigma=bar.sigma,
        bar=bar.height,
        floor=context.judge_floor,
        judged=len(scores),
        kept=len(places),
    )
    return [JudgementRecord(**{**scored[place][1], "kept": True}) for place in places], [record]


def _kept_passages(state: Predicted) -> list[NumberedPassage]:
    """The kept passages, as far as the state holds them, in the order in which they are shown."""
    by_number = {passage.number: passage for passage in numbered(state.get("passages", []))}
    return [by_number[number] for number in state.get("kept", []) if number in by_number]


def _draft(state: Predicted) -> Draft | None:
    """What is to be completed in a round of follow-ups; None where there is nothing."""
    draft = state.get("draft")
    if not draft or not state.get("round", 0):
        return None
    asked = [each["question"] for each in state.get("follow_ups", []) if each["outcome"] == FOUND]
    return Draft(draft["text"], tuple(draft["cited"]), tuple(asked))


def _completed(
    draft: Draft, follow_ups: Iterable[FollowUpRecord], round_: int, passages: Sequence[NumberedPassage]
) -> Answer:
    """Return a draft with quotes for each follow-up of a round from the passages that it found."""
    parts = [Answer(draft.text, strip_citations(strip_marks(draft.text)).strip(), ())]
    for each in follow_ups:
        if each["round"] == round_ and each["outcome"] == FOUND:
            found = [passage for passage in passages if passage.number in each["passages"]]
            quoted = quote(each["question"], found)
            parts += [] if quoted.refused else [quoted]
    text = " ".join(part.text for part in parts)
    plain = " ".join(part.plain_text for part in parts)
    return Answer(text, plain, tuple(citation for part in parts for citation in part.citations))


def _calls_left(state: Any, context: RagentaContext) -> int | None:
    """Return what follow-ups may still take; None before they begin, and where no model is asked."""
    budget = state.get("budget")
    if not budget or not _asks_a_model(context):
        return None
    left: int = context.follow_up_calls - (state.get("model_calls", 0) - budget["calls_before"])
    return max(0, left)


def _calls_of_a_search(context: RagentaContext) -> int:
    """What retrieval asks a model for one question, without retries."""
    if not context.mode.walks:
        return 0
    return int(context.filter_facts) + int(context.walk_settings().beta)


def _asks_a_model(context: Context) -> bool:
    return chat_model_name(context) != OFFLINE


def _become(follow_up: FollowUpRecord, outcome: str, passages: Sequence[int] = ()) -> FollowUpRecord:
    return FollowUpRecord(**{**follow_up, "outcome": outcome, "passages": list(passages)})


def _in_turn(found: Sequence[Found]) -> list[tuple[Found, PassageHit]]:
    """The passages of all follow-ups, the best of each first, then the second best, and so on."""
    deepest = max((len(each["passages"]) for each in found), default=0)
    return [(each, each["passages"][rank]) for rank in range(deepest) for each in found if rank < len(each["passages"])]
