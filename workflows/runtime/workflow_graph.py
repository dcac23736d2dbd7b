"""How a workflow is put together: its nodes, the edges after an agent's reply, and the compiled graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Final, Literal, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.graph import Graph
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import RetryPolicy
from langgraph.typing import ContextT, InputT, OutputT, StateT

from graph.errors import TransportFault
from workflows.runtime.node import Node
from workflows.runtime.node_threads import OnOwnThreads
from workflows.runtime.question_budget import one_budget, question_of
from workflows.runtime.resources import index_pool
from workflows.settings.mara import Context
from workflows.states.checks import is_final
from workflows.states.records import Refusal, Update

TRANSPORT_RETRIES = RetryPolicy(max_attempts=3, initial_interval=1.0, retry_on=TransportFault)
"""Faults of the endpoint are tried again as they are; a malformed reply takes the retry edge instead."""

VALID: Final = "valid"
AGAIN: Final = "malformed"
GIVEN_UP: Final = "given up"

AfterReply = Literal["valid", "malformed", "given up"]


def after_reply(refusal: Refusal | None) -> AfterReply:
    """Return which edge a reply takes: on, back to the same node, or to its fallback."""
    if refusal is None:
        return VALID
    return GIVEN_UP if is_final(refusal) else AGAIN


class WorkflowGraph(CompiledStateGraph[StateT, ContextT, InputT, OutputT]):
    """A compiled workflow.

    Whatever runs it, the open indexes know that it is under way, so that it ends on the generation it began with,
    however often the workspace is written meanwhile; and all its nodes share one budget. Its drawing shows its own
    edges alone: LangGraph (1.2) draws, to a node that waits for all branches, an arrow from whatever ran last while it
    traced the graph. Every condition of our workflows has a label, so an arrow on a condition without one is such an
    invention.
    """

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Run the workflow; every synchronous way does so."""
        with one_budget(config) as budgeted, index_pool().run(question_of(budgeted)):
            yield from super().stream(input, budgeted, **kwargs)
        index_pool().close_unused()

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Run the workflow; every asynchronous way does so. What it held is closed with the next question."""
        with one_budget(config) as budgeted, index_pool().run(question_of(budgeted)):
            chunks: Any = super().astream(input, budgeted, **kwargs)
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

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
        prepared = _with_settings(node, self.context_schema)
        action: Any = OnOwnThreads(prepared) if own_threads else prepared
        self.add_node(node.__name__, action, input_schema=get_type_hints(node)["state"], **options)

    def add_asking(
        self,
        asks: Node[Any],
        after: Callable[[Any], str],
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
            after: its router; what it returns is `VALID`, `AGAIN`, `GIVEN_UP` or one of ``others``.
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
        self.add_conditional_edges(asks.__name__, after, {**onward, **back})
        if after_fallback is None:
            self.add_edge(fallback.__name__, then)
        else:
            self.add_conditional_edges(fallback.__name__, after_fallback, onward)

    def compile(self, *args: Any, **kwargs: Any) -> WorkflowGraph[StateT, ContextT, InputT, OutputT]:
        """Return the compiled workflow."""
        parts = vars(super().compile(*args, **kwargs))
        return WorkflowGraph(**{name: value for name, value in parts.items() if name != "__orig_class__"})


def _with_settings(node: Node[Any], form: Any) -> Node[Any]:
    """Give a node a workflow's default settings where plain Python passed none. It raises BadInput for another's."""

    @wraps(node)
    def prepared(state: Any, runtime: Runtime[Context]) -> Update:
        return node(state, runtime.override(context=form.of(runtime.context)))

    return prepared


def _with_labels(drawing: Graph) -> Graph:
    drawing.edges = [edge for edge in drawing.edges if edge.data or not edge.conditional]
    return drawing
