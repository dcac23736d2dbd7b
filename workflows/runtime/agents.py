"""The one way in which nodes ask an agent, and fall back from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, cast

from agents.agent import Agent, Role, Said
from agents.chat.model import CUT
from agents.roles import Answer, Feedback
from graph.errors import BudgetSpent, MalformedReply, MaraError, SlowReply
from workflows.runtime.resources import OFFLINE, OpenRun, chat_model_name, chat_model_of
from workflows.runtime.tracing import Values, step
from workflows.states.records import (
    CUT_ANSWER,
    DROPPED_CITATIONS,
    ErrorRecord,
    Update,
    feedback_from,
    refusal_of,
)

_MOST_NAMED = 10

_RETRIES: Mapping[type[MaraError], int] = {SlowReply: 1, BudgetSpent: 0}
"""How often an agent is asked again after a fault, where the settings do not say less."""


@dataclass(frozen=True, slots=True)
class Reply(Generic[Said]):
    """The outcome of asking an agent.

    Attributes:
        said: its reply; None where that was malformed.
        attempt: which it was, from 1.
        update: what the state is told: the attempt and, of a malformed reply, why it was refused.
    """

    said: Said | None
    attempt: int
    update: Update


def ask(
    agent: Agent[Role, Said],
    state: Mapping[str, Any],
    run: OpenRun,
    inputs: Callable[[], Values],
    work: Callable[[Role, Feedback | None], Said],
) -> Reply[Said]:
    """Ask an agent as a step of the trace; a malformed reply is refused, a slow one given up, and each asked for again.

    A refusal is final where no retry is left: then the fallback node follows. A slow reply is asked for once more,
    and so is one that ran into its limit, which takes as long; nothing where nothing is left of the question's budget.

    Args:
        agent: the one that is asked.
        state: counts the attempts and holds the last refusal.
        run: the run that asks.
        inputs: what the trace shows of the question.
        work: asks the agent, given why its last reply was refused.
    """
    attempt = state.get(agent.attempts, 0) + 1
    feedback = feedback_from(state.get(agent.refusal))
    try:
        said = step(
            "chain",
            agent.name,
            inputs,
            lambda: work(agent_of(agent, run), feedback),
            agent.shown,
            {"mara_attempt": attempt},
        )
    except (MalformedReply, SlowReply, BudgetSpent) as fault:
        retries = min(_RETRIES.get(type(fault), run.context.max_json_retries), run.context.max_json_retries)
        if CUT in (fault.message, (state.get(agent.refusal) or {}).get("reason")):
            retries = min(retries, _RETRIES[SlowReply])
        refusal = refusal_of(fault, final=attempt > retries)
        errors = [run.error(fault.kind, str(fault), attempt, refusal["raw"])]
        return Reply(None, attempt, {agent.attempts: attempt, agent.refusal: refusal, "errors": errors})
    return Reply(said, attempt, {agent.attempts: attempt, agent.refusal: None})


def flaws_of(answer: Answer, run: OpenRun) -> list[ErrorRecord]:
    """Return what a model did wrong in an answer that stands, as entries of ``errors``."""
    flaws = []
    if answer.dropped:
        named = ", ".join(map(str, answer.dropped[:_MOST_NAMED]))
        flaws.append(run.error(DROPPED_CITATIONS, f"The model cited {named}, which no passage is: dropped"))
    if answer.cut_at is not None:
        flaw = f"The answer stops at its limit of {answer.cut_at:,} tokens: raise answer_tokens, or its model's window"
        flaws.append(run.error(CUT_ANSWER, flaw))
    return flaws


def agent_of(agent: Agent[Role, Said], run: OpenRun) -> Role:
    """Return who is asked in a run: the caller's own agent, the chat model's, or the offline twin.

    Raises ModelUnavailable.
    """
    context = run.context
    own = context.beside.agents.get(agent.name)
    if own is None and agent.own is not None:
        own = agent.own(context, chat_model_name(context) != OFFLINE)
    if own is not None:
        return cast(Role, own)
    model = chat_model_of(context, getattr(context, agent.temperature))
    return agent.chat(model, run) if model else agent.offline(run)


def fell_back(agent: Agent[Role, Said], state: Mapping[str, Any], run: OpenRun, *about: object) -> Update:
    """Return what an agent's fallback node tells, beside what it puts in place of the reply.

    Args:
        agent: the one that was asked.
        state: holds the last refusal.
        run: the run that falls back.
        about: fills the braces of what is done ``instead``.
    """
    called = agent.name.replace("_", " ")
    instead = agent.instead.format(*about)
    kind = (state.get(agent.refusal) or {}).get("kind")
    why = f"The {called}'s replies stayed {'too slow' if kind == SlowReply.__name__ else 'malformed'}"
    if kind == BudgetSpent.__name__:
        why = f"Nothing was left to ask the {called}"
    return {"errors": [run.error("Fallback", f"{why}: {instead}", state.get(agent.attempts, 0))]}
