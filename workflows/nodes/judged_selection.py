"""Which judged passages are kept: those over the adaptive bar, of the question and of each follow-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.answers.judge_threshold import adaptive_threshold, passing_places
from workflows.nodes.follow_up_budget import why_over
from workflows.nodes.follow_ups import ASKED, FOUND, NOTHING_FOUND, NOTHING_NEW, ROUND, become
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import SHOWING
from workflows.settings.ragenta import RagentaContext
from workflows.states.ragenta import JudgementRecord, RagentaState
from workflows.states.records import Update

NOT_JUDGED = "not judged"
"""What came of passages that nobody judged."""

KEPT = "kept"
NOTHING_SUPPORTS = "nothing supports"
FAILED = "failed"
"""What came of judging the passages of the question."""


@node(*SHOWING, *ROUND, "candidates", "judges_passages", "bars", "draft", "follow_ups")
def keep_passages(state: RagentaState, run: OpenRun) -> Update:
    """Keep the passages over the adaptive bar, of the question or of the round's follow-ups."""
    context = RagentaContext.of(run.context)
    if state.get("round", 0):
        return _keep_of_follow_ups(state, run)
    question, hits = state["question"], state.get("passages", [])
    if not state.get("judges_passages", True):
        kept = [hit["number"] for hit in hits[: context.answer_passages]]
        return {"kept": kept, "new_kept": kept, "judge_outcome": NOT_JUDGED if kept else NOTHING_SUPPORTS}
    judged = _judged_for(state, question)
    chosen, bars = _pass_the_bar(judged, question, context)
    unjudged = sorted((each for each in judged if each["score"] is None), key=lambda each: each["number"])
    update: Update = {"judge_outcome": KEPT if chosen else NOTHING_SUPPORTS, "bars": bars}
    if unjudged and not chosen:
        chosen = [JudgementRecord(**{**each, "kept": True}) for each in unjudged[: context.answer_passages]]
        message = (
            f"Nothing passed, and {len(unjudged)} passages could not be judged: the best {len(chosen)} of them are kept"
        )
        update |= {"judge_outcome": FAILED, "errors": [run.error("Fallback", message)]}
    kept = [each["number"] for each in chosen]
    return {**update, "kept": kept, "new_kept": kept, "judgements": chosen}


def _keep_of_follow_ups(state: RagentaState, run: OpenRun) -> Update:
    """Keep what the follow-ups of this round found; what was kept before stays."""
    context = RagentaContext.of(run.context)
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
            chosen, own_bars = _pass_the_bar(judged, question, context)
            judgements += chosen
            bars += own_bars
            kept = [each["number"] for each in chosen]
            nothing = NOTHING_FOUND if own_bars else NOT_JUDGED
        else:
            kept, nothing = lined_up[: context.answer_passages], NOTHING_FOUND
        nothing = nothing if lined_up else NOTHING_NEW
        new += [number for number in kept if number not in new]
        follow_ups[place] = become(follow_up, FOUND if kept else nothing, kept)
    cited = (state.get("draft") or {"cited": []})["cited"]
    shown = list(dict.fromkeys([*new, *(number for number in cited if number in before), *before]))
    update: Update = {"kept": shown, "new_kept": new, "judgements": judgements, "bars": bars, "follow_ups": follow_ups}
    if new and (over := why_over(context, state.get("follow_ups_began"))):
        message = f"{over}: what the follow-ups found is judged, but not written into the answer"
        update |= {"kept": before, "new_kept": [], "errors": [run.error("BudgetSpent", message)]}
    return update


def _judged_for(state: RagentaState, question: str) -> list[JudgementRecord]:
    """Return the judgements of one question."""
    return [each for each in state.get("judgements", []) if each["question"] == question]


def _pass_the_bar(
    judged: Sequence[JudgementRecord], question: str, context: RagentaContext
) -> tuple[list[JudgementRecord], list[dict[str, Any]]]:
    """Return the judgements that pass, the best first, marked as kept, and where the bar lay; no bar without scores."""
    scored = sorted(
        ((each["score"], each) for each in judged if each["score"] is not None), key=lambda it: it[1]["number"]
    )
    scores = [score for score, _ in scored]
    if not scores:
        return [], []
    places = passing_places(
        scores, context.n, floor=context.judge_floor, least=context.min_kept, most=context.answer_passages
    )
    bar = adaptive_threshold(scores, context.n)
    record = {
        "question": question,
        "tau": bar.tau,
        "sigma": bar.sigma,
        "bar": bar.value,
        "floor": context.judge_floor,
        "judged": len(scores),
        "kept": len(places),
    }
    return [JudgementRecord(**{**scored[place][1], "kept": True}) for place in places], [record]
