"""How an agent is declared, and what of a run it may know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from agents.chat.model import ChatModel
from graph.retrieve.open_index import Index
from graph.retrieve.selection import Selection

Role = TypeVar("Role")
Said = TypeVar("Said")


class Run(Protocol):
    """A run that asks, as far as an agent may know it."""

    @property
    def index(self) -> Index:
        """The index that it works on."""

    @property
    def selection(self) -> Selection | None:
        """The passages that its filters select of the index, with all that they support; None without a filter."""

    @property
    def answer_tokens(self) -> int | None:
        """The tokens that an answer may take; None for what the agent that writes it takes of its own."""


@dataclass(frozen=True)
class Agent(Generic[Role, Said]):
    """An agent, and how a workflow asks it.

    Attributes:
        name: its step in a trace, and what a caller's own agent goes by.
        key: begins the keys of the state that count its attempts and hold its refused reply.
        chat: makes it from a chat model, for a run.
        offline: makes its offline twin.
        shown: what a trace shows of a reply.
        instead: what its fallback does without a reply, in words; braces stand for what the node names.
        own: the agent that a run's settings ask for in place of both, given whether a chat model answers.
        temperature: the setting that holds the temperature of its chat model.
    """

    name: str
    key: str
    chat: Callable[[ChatModel, Run], Role]
    offline: Callable[[Run], Role]
    shown: Callable[[Said], dict[str, Any]]
    instead: str
    own: Callable[[Any, bool], Role | None] | None = None
    temperature: str = "temperature"

    @cached_property
    def attempts(self) -> str:
        """The key of the state that counts its attempts."""
        return f"{self.key}_attempts"

    @cached_property
    def refusal(self) -> str:
        """The key of the state that holds its last reply where that was malformed."""
        return f"{self.key}_refusal"

    @cached_property
    def not_asked(self) -> Mapping[str, Any]:
        """The two keys of the state as they stand before it is asked."""
        return {self.attempts: 0, self.refusal: None}
