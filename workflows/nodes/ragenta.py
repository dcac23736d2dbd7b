"""The nodes of workflow ragenta that come after retrieval, but for those of its two subgraphs.

The passages are judged, those over the adaptive bar kept, and the answer written from them. Follow-up questions then
search for what it lacks: which are asked, what they find and which of it is kept is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.claim_judge import Coverage, Structure
from agents.final_predictor import FINAL_PREDICTOR, Draft
from agents.judge import adaptive_threshold, passing_places
from agents.roles import NumberedPassage, refusal
from graph.errors import BadInput
from graph.text import normalise_name
from workflows.nodes.claim_check import NOT_ASKED
from workflows.nodes.follow_up_budget import CALLS_A_PASSAGE, affordable, calls_left, calls_of, why_over
from workflows.nodes.history import RECORDED
from workflows.nodes.retrieval import unknown_entries
from workflows.runtime.agents import ask, fell_back, flaws_of
from workflows.runtime.history import record_answer
from workflows.runtime.node import node
from workflows.runtime.resources import OpenRun
from workflows.runtime.tracing import numbered_documents
from workflows.runtime.unread_files import unread_files
from workflows.runtime.visibility import SHOWING
from workflows.settings.ragenta import RagentaContext
from workflows.states.conversion import answer_update, notes_of, numbered
from workflows.states.ragenta import SETTLED, Candidate, Found, JudgementRecord, RagentaState
from workflows.states.records import ComponentRecord, FollowUpRecord, PassageHit, Update

WRITING = (*SHOWING, "answer_attempts", "answer_refusal", "round", "draft", "follow_ups")
"""The keys of the state that the final predictor and its fallback read."""

ASKED = "asked"
FOUND = "found"
NOTHING_FOUND = "nothing found"
NOTHING_NEW = "nothing new"
"""The outcomes of a follow-up question."""

ROUND = ("round", "calls_before")
"""The keys of the state that tell where the follow-ups are."""

_LESS: frozenset[tuple[str, str]] = frozenset(
    {
        *((Coverage.FULLY, less) for less in (Coverage.PARTIALLY, Coverage.NOT)),
        *((more, Coverage.NOT) for more in (Coverage.PARTIALLY, Coverage.EVIDENCE)),
    }
)
"""Coverage before and after by which less is answered; quotes, which no model checked, are only more than nothing."""

NOT_JUDGED = "not judged"
"""The outcome for passages that were not judged."""

KEPT = "kept"
NOTHING_SUPPORTS = "nothing supports"
FAILED = "failed"
"""The outcome of judging the passages of the question."""


@node(*SHOWING)
def line_up_passages(state: RagentaState, run: OpenRun) -> Update:
    """List the retrieved passages for the judge."""
    judges = RagentaContext.of(run.context).judge_passages
    question = state["question"]
    lined_up = [Candidate(number=hit["number"], question=question) for hit in state.get("passages", [])]
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
        "errors": unread_files(run),
    }


@node(*WRITING)
def write_answer(state: RagentaState, run: OpenRun) -> Update:
    """Ask the final predictor for an answer from the kept passages, or for the draft's completion from new ones."""
    passages, draft = _kept_passages(state), _draft(state)
    asked_before = state.get("answer_attempts", 0) > 0
    lacking = 0 if run.selection is not None or asked_before else len(state.get("kept", [])) - len(passages)
    unknown = unknown_entries(run, lacking)
    reply = ask(
        FINAL_PREDICTOR,
        state,
        run,
        lambda: {"question": state["question"], **numbered_documents(passages), "draft": draft and draft.text},
        lambda final_predictor, feedback: final_predictor.answer(state["question"], passages, draft, feedback),
    )
    written = reply.said
    if written is None:
        return {**reply.update, "errors": [*unknown, *reply.update["errors"]]}
    return {
        **reply.update,
        **answer_update(written.answer, passages),
        "written_from": list(written.written_from),
        "final_prompt": written.prompt,
        "errors": [
            *unknown,
            *flaws_of(written.answer, run),
            *notes_of(written.answer, run.node),
            *(unread_files(run) if written.answer.refused else []),
        ],
    }


@node(*WRITING)
def quote_passages(state: RagentaState, run: OpenRun) -> Update:
    """Fallback of the final predictor: its offline twin quotes evidence; a draft stays, followed by what it lacks."""
    passages, draft = _kept_passages(state), _draft(state)
    said = FINAL_PREDICTOR.offline(run).answer(state["question"], passages, draft)
    answer = said.answer if draft is None else replace(said.answer, is_evidence=False)
    fallback = fell_back(FINAL_PREDICTOR, state, run)
    return {
        **answer_update(answer, passages),
        "written_from": list(said.written_from),
        "errors": [*fallback["errors"], *notes_of(answer, run.node)],
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
    """The part to be completed in a round of follow-ups; None where there is nothing."""
    draft = state.get("draft")
    if not draft or not state.get("round", 0):
        return None
    asked = [each["question"] for each in state.get("follow_ups", []) if each["outcome"] == FOUND]
    return Draft(draft["text"], tuple(draft["cited"]), tuple(asked))


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
    if new and (over := why_over(context)):
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
    if not wanted or round_ > context.follow_ups.rounds:
        return {}
    a_passage = CALLS_A_PASSAGE if state.get("judges_passages", True) else 0
    each = _calls_of_a_search(context) + a_passage
    asked = [] if why_over(context) else wanted[: affordable(len(wanted), calls_left(state, context), each)]
    before = state.get("calls_before")
    update: Update = {"calls_before": calls_of(state) if before is None else before, "found": None}
    if asked:
        follow_ups = list(state.get("follow_ups", []))
        for place in asked:
            follow_ups[place] = become(follow_ups[place], ASKED)
        update |= {"follow_ups": follow_ups, "round": round_, **FINAL_PREDICTOR.not_asked}
        update["settled"] = _settled(state)
    if len(asked) < len(wanted):
        message = f"{len(wanted) - len(asked)} follow-up questions were not asked: the budget is used up"
        update["errors"] = [run.error("BudgetSpent", message)]
    return update


@node(*SHOWING, *ROUND, "found", "follow_ups", "usage", "judges_passages")
def merge_passages(state: RagentaState, run: OpenRun) -> Update:
    """Number the passages that follow-ups found after all others, and list those not written from for the judge."""
    context = RagentaContext.of(run.context)
    judged = wanted = _not_seen(state)
    if state.get("judges_passages", True):
        judged = wanted[: affordable(len(wanted), calls_left(state, context), CALLS_A_PASSAGE)]
    merged = {hit["number"]: hit for hit in state.get("passages", [])}
    for hit, _ in judged:
        merged.setdefault(hit["number"], hit)
    update: Update = {
        "passages": list(merged.values()),
        "candidates": [Candidate(number=hit["number"], question=question) for hit, question in judged],
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


def _settled(state: RagentaState) -> dict[str, Any] | None:
    """The answer as it was settled, to come back to; None where it is a refusal."""
    if state.get("coverage") in (None, Coverage.NOT):
        return None
    values: Mapping[str, Any] = state
    return {key: values[key] for key in SETTLED}


def _is_worse(state: RagentaState, earlier: Mapping[str, Any]) -> bool:
    """Whether the whole, or a component that both answers name alike, is answered less than before."""
    pairs = [(earlier["coverage"], state.get("coverage", ""))]
    coverages = {normalise_name(each["text"]): each["coverage"] for each in state.get("components", [])}
    before = ((each["coverage"], coverages.get(normalise_name(each["text"]))) for each in earlier["components"])
    pairs += [(one, other) for one, other in before if other is not None]
    return any(pair in _LESS for pair in pairs)


def _not_seen(state: RagentaState) -> list[tuple[PassageHit, str]]:
    """The passages that follow-ups found and that the answer was not written from, numbered, each with its question.

    One that several follow-ups found is there for each of them. Raises BadInput where an edit names no follow-up.
    """
    numbers = {hit["id"]: hit["number"] for hit in state.get("passages", [])}
    seen = set(state.get("written_from", []))
    follow_ups = state.get("follow_ups", [])
    searches = [
        Found(
            follow_up=each["follow_up"],
            passages=[hit for hit in each["passages"] if numbers.get(hit["id"]) not in seen],
        )
        for each in sorted(state.get("found", []), key=lambda each: each["follow_up"])
    ]
    if any(not 1 <= each["follow_up"] <= len(follow_ups) for each in searches):
        raise BadInput("The state's `found` names a follow-up that there is not", "Correct the edit")
    wanted: dict[tuple[int, str], PassageHit] = {}
    for each, hit in _in_turn(searches):
        number = numbers.setdefault(hit["id"], max(numbers.values(), default=0) + 1)
        question = follow_ups[each["follow_up"] - 1]["question"]
        numbered = PassageHit(**{**hit, "number": number, "follow_up": each["follow_up"]})
        wanted.setdefault((number, question), numbered)
    return [(hit, question) for (_, question), hit in wanted.items()]


def _calls_of_a_search(context: RagentaContext) -> int:
    """The calls of a model that retrieval makes for one question, without retries."""
    if not context.mode.walks:
        return 0
    return int(context.filter_facts) + int(context.walk_settings().beta)


def become(follow_up: FollowUpRecord, outcome: str, passages: Sequence[int] = ()) -> FollowUpRecord:
    """Return a follow-up question with what became of it."""
    return FollowUpRecord(**{**follow_up, "outcome": outcome, "passages": list(passages)})


def _in_turn(searches: Sequence[Found]) -> list[tuple[Found, PassageHit]]:
    """The passages of all follow-ups, the best of each first, then the second best, and so on."""
    deepest = max((len(each["passages"]) for each in searches), default=0)
    return [
        (each, each["passages"][rank]) for rank in range(deepest) for each in searches if rank < len(each["passages"])
    ]
