"""The LangGraph state machines and the ways to run them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workflows.installation import check_packages

if TYPE_CHECKING:
    from workflows.answering import ask as ask
    from workflows.answering import retrieve as retrieve
    from workflows.context import Context as Context
    from workflows.explaining import explain as explain
    from workflows.for_agents import MaraRetriever as MaraRetriever
    from workflows.for_agents import tools as tools
    from workflows.indexing import index_sources as index_sources
    from workflows.results import Result as Result
    from workflows.streaming import ask_stream as ask_stream

_FROM = {
    "ask": "answering",
    "ask_stream": "streaming",
    "index_sources": "indexing",
    "retrieve": "answering",
    "explain": "explaining",
    "Context": "context",
    "Result": "results",
    "MaraRetriever": "for_agents",
    "tools": "for_agents",
}
"""The modules that callers' names come from: each is imported when one of its names is first used."""

__all__ = [*_FROM]

check_packages()


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FROM[name]}"), name)
