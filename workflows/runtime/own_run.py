"""Runs of their own, started from within a graph: no part of its state, its checkpoints or its streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


def on_its_own(work: Callable[Arguments, Outcome], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Outcome:
    """Do work outside of the graph whose node calls it, if any: what it runs is no subgraph of it.

    Who asks, and the trace, stay those of the caller.
    """
    inherited = (ensure_config().get("configurable") or {}).items()
    kept = {key: value for key, value in inherited if not key.startswith(("__", "checkpoint"))}
    with set_config_context(RunnableConfig(configurable=kept)) as outside:
        return outside.run(work, *args, **kwargs)
