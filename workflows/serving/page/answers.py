"""The events of a turn as the page reads them: server-sent events, each with its kind and JSON."""

from __future__ import annotations

import asyncio
import json
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from agents.roles import Turn
from workflows.conversation.kept import ANSWERED, FAILED, STOPPED, TOUCHED_EVERY_S, Conversations, KeptTurn
from workflows.serving.page.turns import shown
from workflows.settings.mara import Context
from workflows.streaming import ANSWERING, Answered, NodeStarted, Progress, Token, aask_with_pauses

if TYPE_CHECKING:
    from workflows.serving.metrics import Metrics

STEPS: Mapping[str, str] = {
    "encode_question": "Reading the question",
    "rewrite_question": "Completing the question from the conversation",
    "complete_question": "Completing the question from the conversation",
    "ask_back": "Asking back",
    "retrieve_facts": "Looking up facts",
    "filter_facts": "Choosing the facts that matter",
    "keep_top_facts": "Keeping the best facts",
    "weigh_relations": "Weighing kinds of relations",
    "neutral_relations": "Weighing all relations alike",
    "retrieve_passages": "Looking for similar passages",
    "seed_graph": "Choosing where the walk starts",
    "walk_graph": "Walking the graph",
    "line_up_passages": "Lining up the passages",
    "merge_passages": "Putting the passages together",
    "keep_passages": "Keeping the passages that help",
    "plan_follow_ups": "Looking for what is missing",
    "write_answer": "Writing the answer",
    "quote_passages": "Quoting the passages",
    "judge_claims": "Checking each claim",
    "check_words": "Checking each claim by its words",
    "settle_claims": "Settling the claims",
    "abstain": "Saying that the documents do not tell",
    "record_turn": "Writing the history",
}
"""What the nodes do, in words; of others the name is told."""

_TOLD_BY_OTHERS = ("check_claims",)
"""Nodes whose own nodes tell what they do."""

_CHECKING = ("judge_claims", "check_words", "settle_claims")
_JUDGED = ("score_passage", "leave_unjudged")
_WRITING = (ANSWERING, "quote_passages")


def event(kind: str, **values: Any) -> str:
    """Return a server-sent event."""
    return f"data: {json.dumps({'kind': kind, **values})}\n\n"


async def answer(
    store: Conversations,
    owner: str,
    turn: KeptTurn,
    context: Context,
    turns: Sequence[Turn],
    tell: Callable[[Exception], str],
    metrics: Metrics,
) -> AsyncIterator[str]:
    """Answer a turn, tell what happens as events, and keep what came of it.

    Leaving the iterator stops the run; what it had written by then is kept.

    Args:
        store: where the turn is kept.
        owner: whose conversation it is.
        turn: the turn.
        context: its settings.
        turns: those before it that count.
        tell: returns what visitors may be told of an error.
        metrics: count what came of it.
    """
    draft, is_kept = _Draft(), False
    yield event("begun", turn=shown(turn))
    try:
        async with aclosing(aask_with_pauses(turn.question, context, turns, TOUCHED_EVERY_S)) as events:
            async for told in events:
                if told is None:
                    await to_thread(store.touch, turn.id)
                    yield ": at work\n\n"
                elif isinstance(told, Answered):
                    await to_thread(store.finish, turn.id, ANSWERED, result=told.result)
                    is_kept = True
                    metrics.answered(told.result)
                else:
                    for each in draft.events_of(told):
                        yield each
    except Exception as fault:
        metrics.failed(fault)
        await to_thread(store.finish, turn.id, FAILED, answer=draft.text, error=tell(fault))
        is_kept = True
    finally:
        if not is_kept:
            # Not awaited: whoever left cancels every wait.
            stopped = partial(store.finish, turn.id, STOPPED, answer=draft.text)
            asyncio.get_running_loop().run_in_executor(None, stopped)
    kept, version = await to_thread(store.ended, owner, turn.id)
    yield event("ended", turn=shown(kept), version=version)


class _Draft:
    """The answer so far, and what runs: each step told once, in words.

    Attributes:
        text: what has been written since it last began anew.
    """

    def __init__(self) -> None:
        self.text = ""
        self._begins_anew = False
        self._judged = self._to_judge = 0

    def events_of(self, told: NodeStarted | Progress | Token) -> Iterator[str]:
        """Yield the events that tell of one event of a run."""
        if isinstance(told, Token):
            if self._begins_anew:
                yield from self._begin_anew()
            self.text += told.text
            yield event("token", text=told.text)
        elif isinstance(told, NodeStarted):
            self._begins_anew = True
            if told.node in _WRITING:
                yield from self._begin_anew()
            if told.node not in _TOLD_BY_OTHERS:
                again = f", attempt {told.attempt}" if told.attempt > 1 else ""
                yield event("step", text=f"{_words(told.node)}{again}")
        elif "to_judge" in told.details:
            self._judged, self._to_judge = 0, int(told.details["to_judge"])
        elif told.node in _JUDGED and told.event in ("finished", "fallback"):
            self._judged += 1
            yield event("step", text=f"Judging passages: {self._judged} of {self._to_judge}", replaces=self._judged > 1)
        elif told.event == "started" and told.node in _CHECKING:
            yield event("step", text=_words(told.node))

    def _begin_anew(self) -> Iterator[str]:
        self._begins_anew = False
        if self.text:
            self.text = ""
            yield event("void")


def _words(node: str) -> str:
    return STEPS.get(node, node.replace("_", " ").capitalize())
