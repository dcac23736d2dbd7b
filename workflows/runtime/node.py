"""What every node does around its own work, as one decorator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast, get_type_hints

from langgraph.runtime import Runtime

from agents.chat.budget import Spent
from workflows.runtime.access import within_reach
from workflows.runtime.question_budget import budget_under_way
from workflows.runtime.resources import OpenRun
from workflows.runtime.superseded import with_superseded
from workflows.runtime.tracing import about_run, about_update, described
from workflows.runtime.visibility import within_filter
from workflows.settings.mara import Context
from workflows.states.checks import check_shape
from workflows.states.records import FIRST_NODE, Update, spent_record, usage_record

_EVENTS: Mapping[str, str] = {"MalformedReply": "malformed", "SlowReply": "slow", "BudgetSpent": "over"}

State = TypeVar("State", bound=Mapping[str, Any], contravariant=True)


class Node(Protocol[State]):
    """A node of a workflow."""

    __name__: str

    def __call__(self, state: State, runtime: Runtime[Context]) -> Update:
        """Return an update of the state."""
        ...


class Work(Protocol[State]):
    """What a node does itself."""

    __name__: str

    def __call__(self, state: State, run: OpenRun) -> Update:
        """Return an update of the state."""
        ...


def node(filtered: Sequence[str] = ()) -> Callable[[Work[State]], Node[State]]:
    """Make a node of LangGraph from a function of a state and of the open run.

    Around that function, the node checks the shape of what is read, hides what the run's filter hides, counts
    milliseconds and the usage of chat models, and describes itself to the trace and the stream. The stream (mode
    ``custom``) gets ``{"node", "event": "started"}``, and at the end ``{"node", "event", "ms", ...}`` with
    ``finished``, ``malformed`` or ``fallback``, and what it found in numbers.

    Args:
        filtered: keys of the state that name passages, of which the function sees what lies within the run's filter.
    """

    def wrap(work: Work[State]) -> Node[State]:
        name, shape = work.__name__, get_type_hints(work)["state"]

        def run_node(state: State, runtime: Runtime[Context]) -> Update:
            run = _open_run(name, state, runtime)
            budget = budget_under_way()
            budget.begin(run.context.limits(), _spent_before(name, state))
            runtime.stream_writer({"node": name, "event": "started"})
            start = time.perf_counter()
            with described(lambda: about_run(run)) as tell:
                if name != FIRST_NODE:
                    check_shape(state, shape)
                with budget.working() as tally:
                    if filtered:
                        update = within_filter(filtered, state, run, lambda seen: work(cast(State, seen), run))
                    else:
                        update = work(state, run)
                update = with_superseded(update, run)
                if tally.omissions:
                    told = [run.error("LeftOut", omission) for omission in dict.fromkeys(tally.omissions)]
                    update = {**update, "errors": [*(update.get("errors") or ()), *told]}
                tell(lambda: about_update(update))
            ms = round((time.perf_counter() - start) * 1000, 3)
            runtime.stream_writer({"node": name, "event": event_of(update), "ms": ms, **figures_of(update)})
            counted: Update = {}
            if name != FIRST_NODE:
                counted = {"usage": usage_record(tally.usage), "spent": spent_record(budget.spent())}
            return {**update, **counted, "timings_ms": {name: ms}}

        run_node.__name__ = run_node.__qualname__ = name
        run_node.__module__, run_node.__doc__ = work.__module__, work.__doc__
        run_node.__annotations__ = {"state": shape, "runtime": Runtime[Context], "return": Update}
        return run_node

    return wrap


def _open_run(name: str, state: Mapping[str, Any], runtime: Runtime[Context]) -> OpenRun:
    """Open a run within what its caller may see; the first node begins on the newest generation."""
    generation = None if name == FIRST_NODE else state.get("generation")
    context = within_reach(Context.of(runtime.context), runtime.server_info)
    return OpenRun(context, generation, name, runtime.execution_info.task_id if runtime.execution_info else "")


def _spent_before(name: str, state: Mapping[str, Any]) -> Spent:
    """What the question had taken when this run of it began; nothing where that is the first."""
    record = None if name == FIRST_NODE else state.get("spent")
    return Spent(**record) if record else Spent()


def event_of(update: Update) -> str:
    """Return how a node ended.

    ``malformed`` and ``slow`` where it asks again or gives up, ``over`` where nothing was left to ask with, and
    ``fallback`` where it stood in.
    """
    if refusal := next((update[key] for key in update if key.endswith("_refusal") and update[key]), None):
        return _EVENTS.get(refusal.get("kind", ""), "malformed")
    stood_in = any(record["kind"] == "Fallback" for record in update.get("errors") or ())
    return "fallback" if stood_in else "finished"


def figures_of(update: Update) -> dict[str, Any]:
    """Return what a node's update holds, in numbers and words that a person follows."""
    figures: dict[str, Any] = {}
    if attempt := max((n for key, n in update.items() if key.endswith("_attempts")), default=0):
        figures["attempt"] = attempt
    if facts := update.get("facts"):
        figures |= {"facts": len(facts), "kept": sum(fact["kept"] for fact in facts)}
    if (factors := update.get("relation_factors")) and (between := factors["entity_entity"]):
        figures["heaviest_relation"] = max(between, key=lambda relation: between[relation])
    if near := update.get("passage_candidates"):
        figures["passage_candidates"] = len(near)
    seeds = update.get("seeds") or {"entities": (), "passages": ()}
    if seeds["entities"] or seeds["passages"]:
        figures |= {"entity_seeds": len(seeds["entities"]), "passage_seeds": len(seeds["passages"])}
    if candidates := update.get("candidates"):
        figures["to_judge"] = len(candidates)
    if passages := update.get("passages"):
        figures["passages"] = len(passages)
    if ranked_by := update.get("ranked_by"):
        figures["ranked_by"] = ranked_by
    if "citations" in update and update.get("answer"):
        figures |= {"citations": len(update["citations"]), "refused": update["refused"]}
    return figures
