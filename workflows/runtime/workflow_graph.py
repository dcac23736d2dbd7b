"""How a workflow is put together: its nodes, the edges after an agent's reply, and the compiled graph."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any, Final, Literal, TypeVar, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langchain_core.runnables.graph import Graph
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import RetryPolicy
from langgraph.typing import ContextT, InputT, OutputT, StateT

from graph.errors import TransportFault
from graph.server_clients import told_to_clients
from workflows.runtime.access import heed_server
from workflows.runtime.node import Node
from workflows.runtime.resources import INDEX_POOL, run_of_caller
from workflows.settings.mara import Context
from workflows.states.records import Refusal, Update
from workflows.states.shared import is_final, part_of

TRANSPORT_RETRIES = RetryPolicy(max_attempts=3, initial_interval=1.0, retry_on=TransportFault)
"""Faults of the endpoint are tried again as they are; a malformed reply takes the retry edge instead."""

VALID: Final = "valid"
AGAIN: Final = "malformed"
GIVEN_UP: Final = "given up"

AfterReply = Literal["valid", "malformed", "given up"]

Router = TypeVar("Router", bound=Callable[..., Any])
Graphs = TypeVar("Graphs")
State = TypeVar("State", bound=Mapping[str, Any])

THREADS = 32
"""The number of nodes `OnOwnThreads` that run at once in a process, under event loops."""


def after_reply(refusal: Refusal | None) -> AfterReply:
    """Return which edge a reply takes: on, back to the same node, or to its fallback."""
    if refusal is None:
        return VALID
    return GIVEN_UP if is_final(refusal) else AGAIN


def router(*reads: str) -> Callable[[Router], Router]:
    """Let a router read some keys of the state of its workflow alone."""

    def narrowed(choose: Router) -> Router:
        whole = get_type_hints(choose)["state"]
        choose.__annotations__["state"] = part_of(whole, reads, f"{choose.__name__}_input")
        return choose

    return narrowed


class OnOwnThreads(Runnable[State, Update]):
    """A node that waits for a model, many at once: under an event loop it runs on a thread of its own.

    LangGraph runs plain functions on the loop's default threads, of which a small machine has few (processors + 4):
    twenty passages would wait for each other. Without an event loop its own threads are as many as ``max_concurrency``.
    """

    def __init__(self, node: Node[State]) -> None:
        self._node = node
        self.name = node.__name__

    def invoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node where the caller is."""
        return self._node(input, get_runtime(Context))

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node on a thread, in the caller's context."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_threads(), copy_context().run, self.invoke, input)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "mara-nodes")


class WorkflowGraph(CompiledStateGraph[StateT, ContextT, InputT, OutputT]):
    """A compiled workflow.

    A run is opened once, before its first node: its caller, its settings, and the budget of its question. It ends on
    the generation that it began with, however often the workspace is written meanwhile.
    Its drawing shows its own edges alone: LangGraph (1.2) draws, to a node that waits for all branches, an arrow from
    whatever ran last while it traced the graph. Every condition of our workflows has a label, so an arrow on a
    condition without one is such an invention.
    """

    def stream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **kwargs: Any
    ) -> Iterator[Any]:
        """Run the workflow; every synchronous way does so."""
        with self._opened(config, context) as opened:
            yield from super().stream(input, config, context=opened, **kwargs)
        INDEX_POOL.close_unused()

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, *, context: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Run the workflow; every asynchronous way does so. Its resources are closed with the next question."""
        with self._opened(config, context) as opened:
            chunks: Any = super().astream(input, config, context=opened, **kwargs)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

    @contextmanager
    def _opened(self, config: RunnableConfig | None, settings: Any) -> Iterator[Any]:
        """Open a run for as long as it is under way; yields the settings that LangGraph hands to its nodes.

        A subgraph is part of the run that it is in; a run that is started with settings of its own, within another one,
        shares its budget.
        """
        around = settings_around()
        outer = around.beside.run if isinstance(around, Context) else None
        if settings is None and outer is not None:
            yield None
            return
        form: Any = self.context_schema
        configurable = merge_configs(ensure_config(), self.config, config).get("configurable", {})
        heed_server(configurable)
        with told_to_clients():
            who = configurable.get("langgraph_auth_user")
            run = run_of_caller(form, around if settings is None else settings, who, outer)
        try:
            yield run.context
        finally:
            run.end()

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawing."""
        return _with_labels(super().get_graph(config, xray=xray))

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """Return the drawing, as servers ask for it."""
        return _with_labels(await super().aget_graph(config, xray=xray))


class WorkflowBuilder(StateGraph[StateT, ContextT, InputT, OutputT]):
    """Builds a workflow, to compile with a checkpointer of one's own.

    Attributes:
        transport_retries: how nodes that ask an agent are tried again after a fault of the endpoint.
    """

    def __init__(self, state: type[StateT], transport_retries: RetryPolicy, **schemas: Any) -> None:
        super().__init__(state, **schemas)
        self.transport_retries = transport_retries

    def add(self, node: Node[Any], *, own_threads: bool = False, **options: Any) -> None:
        """Add a node under its own name, with this workflow's default settings where plain Python passed none.

        Args:
            node: what is run.
            own_threads: whether it waits for a model many times at once: see `OnOwnThreads`.
            options: of LangGraph's ``add_node``.
        """
        action: Any = OnOwnThreads(node) if own_threads else node
        self.add_node(node.__name__, action, input_schema=get_type_hints(node)["state"], **options)

    def add_asking(
        self,
        asks: Node[Any],
        after: Callable[[Any], str] | str,
        fallback: Node[Any],
        then: str,
        *,
        own_threads: bool = False,
        after_fallback: Callable[[Any], str] | None = None,
        others: dict[Hashable, str] | None = None,
    ) -> None:
        """Add a node that asks an agent, the retry edge back to it, and its fallback.

        Args:
            asks: the node.
            after: its router, which returns `VALID`, `AGAIN`, `GIVEN_UP` or one of ``others``; or the key of the state
                that holds the agent's refused reply, where that alone decides.
            fallback: the node that stands in for it.
            then: the node after a valid reply, and after the fallback.
            own_threads: as for `add`.
            after_fallback: the router after the fallback, which returns `VALID` or one of ``others``.
            others: further labels, and where they lead.
        """
        self.add(asks, own_threads=own_threads, retry_policy=self.transport_retries)
        self.add(fallback)
        onward: dict[Hashable, str] = {VALID: then, **(others or {})}
        back: dict[Hashable, str] = {AGAIN: asks.__name__, GIVEN_UP: fallback.__name__}
        choose = after if callable(after) else self._after_reply(asks.__name__, after)
        self.add_conditional_edges(asks.__name__, choose, {**onward, **back})
        if after_fallback is None:
            self.add_edge(fallback.__name__, then)
        else:
            self.add_conditional_edges(fallback.__name__, after_fallback, onward)

    def _after_reply(self, asks: str, refusal: str) -> Callable[[Any], str]:
        """Return the router of a node that asks: again while replies are malformed and attempts are left."""

        def after(state: Any) -> str:
            return after_reply(state.get(refusal))

        after.__name__ = f"after_{asks}"
        after.__annotations__["state"] = part_of(self.state_schema, (refusal,), f"after_{asks}_input")
        return after

    def compile(self, *args: Any, **kwargs: Any) -> WorkflowGraph[StateT, ContextT, InputT, OutputT]:
        """Return the compiled workflow."""
        return compiled_as(WorkflowGraph, super().compile(*args, **kwargs))


def compiled_as(kind: Callable[..., Graphs], compiled: CompiledStateGraph[Any, Any, Any, Any]) -> Graphs:
    """Return a compiled graph as one of a class of ours."""
    return kind(**{name: value for name, value in vars(compiled).items() if name != "__orig_class__"})


def settings_around() -> Any:
    """Return the settings of the run that the caller, a node, is part of; None outside of one."""
    try:
        runtime: Runtime[Any] | None = get_runtime()
    except RuntimeError:
        return None
    return runtime.context if runtime else None


def _with_labels(drawing: Graph) -> Graph:
    drawing.edges = [edge for edge in drawing.edges if edge.data or not edge.conditional]
    return drawing
