"""A run of its own within a graph is no part of that graph, but knows its user."""

from __future__ import annotations

from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from workflows.runtime.own_run import on_its_own


class Words(TypedDict):
    words: str


TENANT: ContextVar[str] = ContextVar("tenant", default="none")


def inner_node(state: Words) -> Words:
    info = get_runtime().server_info
    user = info.user.identity if info and info.user else "none"
    return {"words": f"{state['words']} {user} {TENANT.get()}"}


def graph_of(node: Any) -> Any:
    builder = StateGraph(Words)
    builder.add_node("work", node)
    builder.add_edge(START, "work")
    return builder


INNER = graph_of(inner_node).compile()


def outer_node(state: Words) -> Words:
    words: Words = on_its_own(INNER.invoke, state)
    return words


def test_it_is_in_no_checkpoint_and_in_no_stream_of_the_graph_and_knows_its_user() -> None:
    saver = InMemorySaver()
    user = SimpleNamespace(identity="ada")
    config: Any = {"configurable": {"thread_id": "one", "langgraph_auth_user": user}}
    outer = graph_of(outer_node).compile(checkpointer=saver)
    token = TENANT.set("orlo")
    chunks = list(outer.stream({"words": "by"}, config, stream_mode=["values", "updates"], subgraphs=True))
    TENANT.reset(token)
    assert chunks[-1][2] == {"words": "by ada orlo"}
    assert {within for within, _, _ in chunks} == {()}
    assert {past.config["configurable"]["checkpoint_ns"] for past in saver.list(config)} == {""}
