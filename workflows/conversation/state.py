"""The state of graph chat: its messages, and what the message of an answer tells beside its text."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph.message import Messages, add_messages
from typing_extensions import TypedDict  # pydantic, and so the schemas, takes no other before Python 3.12

from graph.errors import BadInput
from workflows.states.records import Understood, UsageRecord

METADATA = "mara"
"""The key of an answer's ``response_metadata`` that holds its `AnswerMetadata`."""


def join_messages(present: Messages, new: Messages) -> Messages:
    """Append messages, as LangGraph's ``add_messages`` does. Raises BadInput where some are none."""
    try:
        return add_messages(present, new)
    except (ValueError, TypeError, NotImplementedError) as fault:
        raise BadInput(
            f"The messages cannot be read ({str(fault).splitlines()[0]})", "Send text, or messages of type human and ai"
        ) from fault


class Conversation(TypedDict):
    """The messages so far: input, output and state of the graph. All else of a run is left out of checkpoints."""

    messages: Annotated[list[AnyMessage], join_messages]


class SourceRecord(TypedDict):
    """A passage that an answer cites by its number; ``excerpt`` is what it quotes or says, ``start`` and ``end`` where.

    Where the words of the answer were not found, ``start`` and ``end`` are null and the excerpt is the beginning.
    """

    number: int
    passage_id: str
    title: str
    source: str
    excerpt: str
    start: int | None
    end: int | None


class AnswerMetadata(TypedDict):
    """What the message of an answer tells beside its text: small, since a thread keeps it for every turn.

    ``question`` is the question as it was understood, ``understood`` how it was completed (null where it stood alone);
    ``coverage`` is empty where no claims were checked. ``notes`` tell what was retried, dropped or defaulted.
    """

    question: str
    understood: Understood | None
    workflow: str
    mode: str
    answer_kind: str
    coverage: str
    sources: list[SourceRecord]
    generation: int | None
    models: dict[str, Any]
    usage: UsageRecord
    notes: list[str]
