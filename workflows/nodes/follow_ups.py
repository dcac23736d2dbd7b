"""Follow-up questions: which are asked, what they find, which of it is kept, and what they may take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from agents.claim_judge import Coverage
from agents.final_predictor import FINAL_PREDICTOR
from graph.errors import BadInput
from graph.text import normalise_name
from workflows.nodes.claim_check import NOT_ASKED
from workflows.nodes.follow_up_budget import (
    CALLS_A_PASSAGE,
    affordable_follow_ups,
    affordable_passages,
    calls_for_each,
    calls_left,
    calls_of,
    now,
    why_over,
)
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.visibility import SHOWING
from workflows.settings.ragenta import RagentaContext
from workflows.states.ragenta import SETTLED, Candidate, Found, RagentaState
from workflows.states.records import FollowUpRecord, PassageHit, Update

ASKED = "asked"
FOUND = "found"
NOTHING_FOUND = "nothing found"
NOTHING_NEW = "nothing new"
"""What became of a follow-up question."""

ROUND = ("round", "calls_before", "follow_ups_began")
"""The keys of the state that tell where the follow-ups are."""

_LESS: frozenset[tuple[str, str]] = frozenset(
    {
        *((Coverage.FULLY, less) for less in (Coverage.PARTIALLY, Coverage.NOT)),
        *((more, Coverage.NOT) for more in (Coverage.PARTIALLY, Coverage.EVIDENCE)),
    }
)
"""Coverage before and after by which less is answered; evidence, which nobody judged, is only more than nothing."""


@node(*SHOWING, *SETTLED, *ROUND, "answer_kind", "follow_ups", "settled", "usage", "judges_passages")
def plan_follow_ups(state: RagentaState, run: OpenRun) -> Update:
    """Choose which of the suggested follow-up questions are asked: as many as the budget lets.

    Where the last round left less of an answer than there was, the answer before it is the result.
    """
    context = RagentaContext.of(run.context)
    earlier = state.get("settled")
    if earlier and _is_worse(state, earlier):
        message = "The completed answer answers less than the one before the follow-ups, which stays"
        return {**earlier, "settled": None, "errors": [run.error("EarlierAnswer", message)]}
    round_ = state.get("round", 0) + 1
    wanted = _suggested(state.get("follow_ups", []), round_)
    if not wanted or round_ > context.follow_up_rounds:
        return {}
    began, before = state.get("follow_ups_began"), state.get("calls_before")
    began = now() if began is None else began
    before = calls_of(state) if before is None else before
    begun = cast(RagentaState, {**state, "follow_ups_began": began, "calls_before": before})
    asked = wanted[: _affordable(len(wanted), begun, context)]
    update: Update = {"follow_ups_began": began, "calls_before": before, "found": None}
    if asked:
        follow_ups = list(state.get("follow_ups", []))
        for place in asked:
            follow_ups[place] = become(follow_ups[place], ASKED)
        update |= {"follow_ups": follow_ups, "round": round_, **FINAL_PREDICTOR.not_asked}
        update["settled"] = _settled(state)
    if len(asked) < len(wanted):
        message = f"{len(wanted) - len(asked)} follow-up questions were not asked: no calls or seconds are left"
        update["errors"] = [run.error("BudgetSpent", message)]
    return update


@node(*SHOWING, *ROUND, "found", "follow_ups", "usage", "judges_passages")
def merge_passages(state: RagentaState, run: OpenRun) -> Update:
    """Number the passages that follow-ups found after all others, and list those not written from for the judge."""
    context = RagentaContext.of(run.context)
    left = calls_left(state.get("calls_before"), calls_of(state), context)
    wanted = _not_seen(state)
    judged = wanted
    if left is not None and state.get("judges_passages", True):
        judged = wanted[: affordable_passages(len(wanted), left)]
    a_passage = calls_for_each(len(judged), left) if judged and left is not None else None
    merged = {hit["number"]: hit for hit in state.get("passages", [])}
    for hit, _ in judged:
        merged.setdefault(hit["number"], hit)
    update: Update = {
        "passages": list(merged.values()),
        "candidates": [Candidate(number=hit["number"], question=question, calls=a_passage) for hit, question in judged],
    }
    if len(judged) < len(wanted):
        message = f"{len(wanted) - len(judged)} passages of follow-ups were not judged: no calls are left for them"
        update["errors"] = [run.error("BudgetSpent", message)]
    return update


def _suggested(follow_ups: Sequence[FollowUpRecord], round_: int) -> list[int]:
    """The places of the suggestions of a round, less those that repeat a question of an earlier one."""
    before = {normalise_name(each["question"]) for each in follow_ups if each["round"] < round_}
    return [
        place
        for place, each in enumerate(follow_ups)
        if each["round"] == round_ and each["outcome"] == NOT_ASKED and normalise_name(each["question"]) not in before
    ]


def _affordable(wanted: int, state: RagentaState, context: RagentaContext) -> int:
    """How many follow-ups the budget lets be asked."""
    if why_over(context, state.get("follow_ups_began")):
        return 0
    left = calls_left(state.get("calls_before"), calls_of(state), context)
    if left is None:
        return wanted
    a_passage = CALLS_A_PASSAGE if state.get("judges_passages", True) else 0
    return affordable_follow_ups(wanted, left, _calls_of_a_search(context), a_passage)


def _settled(state: RagentaState) -> dict[str, Any] | None:
    """The answer as it was settled, to come back to; None where it is a refusal."""
    if state.get("coverage") in (None, Coverage.NOT):
        return None
    held: Mapping[str, Any] = state
    return {key: held[key] for key in SETTLED}


def _is_worse(state: RagentaState, earlier: Mapping[str, Any]) -> bool:
    """Whether the whole, or a component that both answers name alike, is answered less than before."""
    pairs = [(earlier["coverage"], state.get("coverage", ""))]
    found = {normalise_name(each["text"]): each["coverage"] for each in state.get("components", [])}
    before = ((each["coverage"], found.get(normalise_name(each["text"]))) for each in earlier["components"])
    pairs += [(one, other) for one, other in before if other is not None]
    return any(pair in _LESS for pair in pairs)


def _not_seen(state: RagentaState) -> list[tuple[PassageHit, str]]:
    """The passages that follow-ups found and that the answer was not written from, numbered, each with its question.

    One that several follow-ups found is there for each of them. Raises BadInput where an edit names no follow-up.
    """
    numbers = {hit["id"]: hit["number"] for hit in state.get("passages", [])}
    seen = set(state.get("written_from", []))
    follow_ups = state.get("follow_ups", [])
    found = [
        Found(
            follow_up=each["follow_up"],
            passages=[hit for hit in each["passages"] if numbers.get(hit["id"]) not in seen],
        )
        for each in sorted(state.get("found", []), key=lambda each: each["follow_up"])
    ]
    if any(not 1 <= each["follow_up"] <= len(follow_ups) for each in found):
        raise BadInput("The state's `found` names a follow-up that there is not", "Correct the edit")
    wanted: dict[tuple[int, str], PassageHit] = {}
    for each, hit in _in_turn(found):
        number = numbers.setdefault(hit["id"], max(numbers.values(), default=0) + 1)
        question = follow_ups[each["follow_up"] - 1]["question"]
        numbered = PassageHit(**{**hit, "number": number, "follow_up": each["follow_up"]})
        wanted.setdefault((number, question), numbered)
    return [(hit, question) for (_, question), hit in wanted.items()]


def _calls_of_a_search(context: RagentaContext) -> int:
    """What retrieval asks a model for one question, without retries."""
    if not context.mode.walks:
        return 0
    return int(context.filter_facts) + int(context.walk_settings().beta)


def become(follow_up: FollowUpRecord, outcome: str, passages: Sequence[int] = ()) -> FollowUpRecord:
    """Return a follow-up question with what became of it."""
    return FollowUpRecord(**{**follow_up, "outcome": outcome, "passages": list(passages)})


def _in_turn(found: Sequence[Found]) -> list[tuple[Found, PassageHit]]:
    """The passages of all follow-ups, the best of each first, then the second best, and so on."""
    deepest = max((len(each["passages"]) for each in found), default=0)
    return [(each, each["passages"][rank]) for rank in range(deepest) for each in found if rank < len(each["passages"])]
