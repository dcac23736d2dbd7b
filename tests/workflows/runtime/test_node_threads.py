"""A node on a thread of its own is the same node: its caller's context, its errors, its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from operator import add
from typing import Annotated, Any

import pytest
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from typing_extensions import TypedDict

from agents.chat.usage import Usage, count_usage, tallied
from workflows.context import Context
from workflows.runtime.node import Node
from workflows.runtime.workflow_graph import THREADS, OnOwnThreads

tenant: ContextVar[str] = ContextVar("tenant", default="no tenant")


class Seen(TypedDict):
    """What the nodes of these tests read and write."""

    number: int
    seen: Annotated[list[Any], add]


def of(work: Node[Seen], *, fanned_out: int = 1) -> Any:
    """A workflow of one node on its own threads, run so many times side by side."""
    builder = StateGraph(Seen, context_schema=Context)
    builder.add_node("work", OnOwnThreads(work), input_schema=Seen)

    def fan_out(state: Seen) -> list[Send]:
        return [Send("work", Seen(number=number, seen=[])) for number in range(fanned_out)]

    builder.add_conditional_edges(START, fan_out, ["work"])
    builder.add_edge("work", END)
    return builder.compile().with_config(max_concurrency=fanned_out)


def sync(graph: Any, context: Context | None = None) -> Any:
    return graph.invoke({"number": 0, "seen": []}, context=context)


def on_a_loop(graph: Any, context: Context | None = None) -> Any:
    return asyncio.run(graph.ainvoke({"number": 0, "seen": []}, context=context))


Ask = Callable[..., Any]
either_way = pytest.mark.parametrize("ask", [sync, on_a_loop])


def test_under_an_event_loop_it_runs_on_a_thread_of_its_own_and_else_where_its_caller_is() -> None:
    def work(state: Seen, runtime: Runtime[Context]) -> dict[str, Any]:
        return {"seen": [threading.current_thread().name.startswith("mara-nodes")]}

    assert (on_a_loop(of(work))["seen"], sync(of(work))["seen"]) == ([True], [False])


@either_way
def test_it_has_the_settings_the_config_and_the_context_variables_of_its_caller(ask: Ask) -> None:
    def work(state: Seen, runtime: Runtime[Context]) -> dict[str, Any]:
        seen = [runtime.context.top_k, get_config()["metadata"]["langgraph_node"], state["number"], tenant.get()]
        tenant.set("another")
        return {"seen": seen}

    token = tenant.set("orlo")
    assert ask(of(work), Context(top_k=7))["seen"] == [7, "work", 0, "orlo"]
    assert tenant.get() == "orlo"
    tenant.reset(token)


@either_way
def test_calls_of_nodes_side_by_side_are_counted_apart(ask: Ask) -> None:
    together = threading.Barrier(4, timeout=10)

    def work(state: Seen, runtime: Runtime[Context]) -> dict[str, Any]:
        with tallied() as spent:
            together.wait()
            for _ in range(state["number"]):
                count_usage(Usage(1))
            together.wait()
        return {"seen": [(state["number"], spent.usage.requests)]}

    assert sorted(ask(of(work, fanned_out=4))["seen"]) == [(number, number) for number in range(4)]


def test_as_many_run_at_once_as_there_are_threads_and_no_more_than_the_caller_wants() -> None:
    """The loop's own threads are fewer on a small machine: processors + 4."""
    together = threading.Barrier(THREADS, timeout=10)

    def work(state: Seen, runtime: Runtime[Context]) -> dict[str, Any]:
        return {"seen": [together.wait()]}

    assert sorted(on_a_loop(of(work, fanned_out=THREADS))["seen"]) == list(range(THREADS))


def test_the_event_loop_goes_on_meanwhile() -> None:
    async def both() -> Any:
        loop, begun, said = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def work(state: Seen, runtime: Runtime[Context]) -> dict[str, Any]:
            loop.call_soon_threadsafe(begun.set)
            return {"seen": [said.wait(10)]}

        waiting = asyncio.create_task(of(work).ainvoke({"number": 0, "seen": []}))
        await begun.wait()
        said.set()
        return await waiting

    assert asyncio.run(both())["seen"] == [True]
