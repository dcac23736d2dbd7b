"""The budget of each question under way: one for all nodes that work on it, in whatever thread or subgraph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4
from weakref import WeakValueDictionary

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.config import get_config

from agents.chat.budget import QuestionBudget
from graph.environment import refresh_environment

_KEY = "__mara_question"
"""Where the config of a run names its question; LangGraph hands it down, and writes nothing that begins so anywhere."""

_UNDER_WAY: WeakValueDictionary[str, QuestionBudget] = WeakValueDictionary()


@contextmanager
def one_budget(config: RunnableConfig | None) -> Iterator[RunnableConfig | None]:
    """Give a run a budget for as long as it is under way, unless it is part of one; yields the config to run with.

    A run has the environment as it is when it begins.
    """
    own = dict((config or {}).get("configurable") or {})
    if {**(ensure_config().get("configurable") or {}), **own}.get(_KEY) in _UNDER_WAY:
        yield config
        return
    refresh_environment()
    name, budget = uuid4().hex, QuestionBudget()
    _UNDER_WAY[name] = budget
    yield RunnableConfig(**{**(config or {}), "configurable": {**own, _KEY: name}})


def budget_under_way() -> QuestionBudget:
    """Return the budget of the run that this node is part of; a new one for a node that is run by itself."""
    return _UNDER_WAY.get(question_under_way()) or QuestionBudget()


def question_under_way() -> str:
    """Return the name of the question that the caller, a node, works on; empty for a node that is run by itself."""
    try:
        return question_of(get_config())
    except RuntimeError:
        return ""


def question_of(config: RunnableConfig | None) -> str:
    """Return the name of the question that a config is of; empty where it names none."""
    own = (config or {}).get("configurable") or {}
    return str(own.get(_KEY) or (ensure_config().get("configurable") or {}).get(_KEY) or "")
