"""The frame around every node's own work, as one decorator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_type_hints

from langgraph.runtime import Runtime

from graph.server_clients import told_to_clients
from workflows.runtime.resources import OpenRun
from workflows.runtime.tracing import about_run, about_update, described
from workflows.runtime.visibility import NAMING_PASSAGES, with_superseded, within_filter
from workflows.settings.mara import Context
from workflows.states.records import FIRST_NODE, Update, spent_record, usage_record
from workflows.states.shared import check_shape, part_of

EVERY_NODE = ("question", "mode", "generation", "spent")
"""The keys of a state that every node but the first reads: the last two let a fork go on from where its run was."""

_EVENTS: Mapping[str, str] = {"MalformedReply": "malformed", "SlowReply": "slow", "BudgetSpent": "over"}

State = TypeVar("State", bound=Mapping[str, Any])


Node = Callable[[State, Runtime[Context]], Update]
"""A node of a workflow, as LangGraph calls it: a function of the state that returns an update of it."""

Work = Callable[[State, OpenRun], Update]
"""The work of a node itself."""


def node(*reads: str) -> Callable[[Work[State]], Node[State]]:
    """Make a node of LangGraph from a function of a state and of the open run.

    Around that function, the node hides what the run's filter hides, counts milliseconds and what chat models took,
    and describes itself to the trace and the stream. The stream (mode ``custom``) gets
    ``{"node", "event": "started"}``, and at the end ``{"node", "event", "ms", ...}`` with ``finished``, ``malformed``
    or ``fallback``, and what it found in numbers.

    Args:
        reads: the keys of the state that it reads beside those of `EVERY_NODE`: LangGraph gives it no more, and a trace
            shows no more. Without any it reads all that its type of state has.
    """

    def wrap(work: Work[State]) -> Node[State]:
        name, whole = work.__name__, get_type_hints(work)["state"]
        shape = part_of(whole, (*EVERY_NODE, *reads), f"{name}_input") if reads else whole
        naming = [key for key in shape.__annotations__ if key in NAMING_PASSAGES]

        def run_node(state: State, runtime: Runtime[Context]) -> Update:
            start, tell_stream = time.perf_counter(), runtime.stream_writer
            task = runtime.execution_info.task_id if runtime.execution_info else ""
            opened: OpenRun = runtime.context.beside.run
            with told_to_clients():
                run = opened.at(name, task, state)
                tell_stream({"node": name, "event": "started"})
                with described(lambda: about_run(run)) as tell_trace, run.budget.working() as tally:
                    if run.goes_on:
                        check_shape(state, shape)
                    if run.selection is None:
                        update = work(state, run)
                    else:
                        update = within_filter(naming, state, run, lambda seen: work(cast(State, seen), run))
                    if run.context.as_of:
                        update = with_superseded(update, run)
                    if tally.omissions:
                        records = [run.error("LeftOut", omission) for omission in dict.fromkeys(tally.omissions)]
                        update = {**update, "errors": [*(update.get("errors") or ()), *records]}
                    tell_trace(lambda: about_update(update))
            if name != FIRST_NODE:  # It clears what an earlier question of its thread had taken.
                update = {**update, "spent": spent_record(run.budget.spent())}
                if tally.usage.requests:
                    update["usage"] = usage_record(tally.usage)
            ms = round((time.perf_counter() - start) * 1000, 3)
            tell_stream({"node": name, "event": event_of(update), "ms": ms, **figures_of(update)})
            return {**update, "timings_ms": {name: ms}}

        run_node.__name__ = run_node.__qualname__ = name
        run_node.__module__, run_node.__doc__ = work.__module__, work.__doc__
        run_node.__annotations__ = {"state": shape, "runtime": Runtime[Context], "return": Update}
        return run_node

    return wrap


def event_of(update: Update) -> str:
    """Return how a node ended.

    ``malformed`` and ``slow`` where it asks again or gives up, ``over`` where nothing was left to ask with, and
    ``fallback`` where it stood in.
    """
    for key, value in update.items():
        if key.endswith("_refusal") and value:
            return _EVENTS.get(value.get("kind", ""), "malformed")
    for record in update.get("errors") or ():
        if record["kind"] == "Fallback":
            return "fallback"
    return "finished"


def figures_of(update: Update) -> dict[str, Any]:
    """Return what a node's update holds, in numbers and words that a person follows."""
    figures: dict[str, Any] = {}
    for key, value in update.items():
        if key.endswith("_attempts") and value:
            figures["attempt"] = value
    if facts := update.get("facts"):
        figures |= {"facts": len(facts), "kept": sum([fact["kept"] for fact in facts])}
    if candidates := update.get("candidates"):
        figures["to_judge"] = len(candidates)
    if passages := update.get("passages"):
        figures["passages"] = len(passages)
    return figures
