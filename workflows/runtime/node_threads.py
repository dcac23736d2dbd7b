"""Nodes that wait for a model, many at once: under an event loop they run on threads of their own.

LangGraph runs plain functions on the loop's default threads, of which a small machine has few (processors + 4): twenty
passages would wait for each other. Without an event loop LangGraph's own threads are as many as ``max_concurrency``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from workflows.runtime.node import Node
from workflows.settings.mara import Context
from workflows.states.records import Update

THREADS = 32
"""The number of such nodes that run at once in a process, under event loops."""

State = TypeVar("State", bound=Mapping[str, Any])


class OnOwnThreads(Runnable[State, Update]):
    """A node as a runnable, which LangGraph takes as it is: the same function, called directly or on a thread."""

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
