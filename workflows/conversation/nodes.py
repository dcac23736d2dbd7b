"""The nodes of graph chat: answer the last question of a conversation, and ask which of several readings is meant."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any, TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime

from graph.errors import BadInput
from workflows.conversation.asking_back import reading_from_user
from workflows.conversation.reading import choices_of, next_question
from workflows.conversation.settings import ANSWER, WorkflowChoice, context_of_chat
from workflows.conversation.voice import Voice
from workflows.conversation.writing import answer_message
from workflows.runtime.own_run import on_its_own
from workflows.settings.mara import Context
from workflows.states.chat import Conversation
from workflows.states.records import Update
from workflows.streaming import Answered, Event, NodeStarted, Progress, Token, aask_stream, ask_stream

Events = TypeVar("Events")


class Answer(Runnable[Conversation, Update]):
    """Node ``answer``: asks the workflow behind the conversation, and says its answer as it comes.

    The workflow runs on its own rather than as a subgraph: nothing of it gets into the thread's checkpoints, and no
    client takes its state for the conversation's. A run that is cancelled stops it.
    """

    name = ANSWER

    def invoke(self, input: Conversation, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Answer where the caller is."""
        turn = _Turn(input)
        with closing(turn.events(ask_stream)) as events:
            for event in events:
                turn.hear(event)
        return turn.update()

    async def ainvoke(self, input: Conversation, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Answer while the event loop goes on."""
        turn = _Turn(input)
        async with aclosing(turn.events(aask_stream)) as events:
            async for event in events:
                turn.hear(event)
        return turn.update()


class _Turn:
    """One question on its way to its answer."""

    def __init__(self, state: Conversation) -> None:
        runtime: Runtime[WorkflowChoice | Context] = get_runtime()
        self._asked = next_question(state["messages"])
        task = runtime.execution_info.task_id if runtime.execution_info else ""
        self._context = context_of_chat(runtime.context).as_turn(task)
        self._write = runtime.stream_writer
        self._voice = Voice(get_config())
        self._result: Any = None

    def events(self, ask: Callable[..., Events]) -> Events:
        """Ask the workflow, by ``ask_stream`` or its twin, outside of the graph that this node is part of."""
        return on_its_own(ask, self._asked.question, self._context, self._asked.turns)

    def hear(self, event: Event) -> None:
        """Pass an event of the workflow on: its words as chat, its progress as the workflow's own nodes tell it."""
        if isinstance(event, Token):
            self._voice.say(event.text)
        elif isinstance(event, NodeStarted):
            self._voice.begin_again()
            self._write({"node": event.node, "event": "started", "attempt": event.attempt})
        elif isinstance(event, Progress):
            self._write({"node": event.node, "event": event.event, **event.details})
        elif isinstance(event, Answered):
            self._result = event.result

    def update(self) -> Update:
        """Return the answer's message."""
        message = answer_message(self._result, self._asked.notes, self._voice.message_id)
        self._voice.end(message)
        return {"messages": [message]}


def choose_reading(state: Conversation) -> Update:
    """Ask the user which reading of the question is meant, and wait; what they choose is the next question."""
    choices = choices_of(state["messages"])
    if not choices:
        raise BadInput("There is nothing to choose between", "Send a question")
    return {"messages": [HumanMessage(reading_from_user(choices))]}
