"""The nodes of graph chat: answer the last question, told as chat piece by piece, and ask which reading is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from langchain_core.callbacks import CallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config
from langchain_core.tracers.base import BaseTracer
from langgraph.config import get_config
from langgraph.graph.message import add_messages
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt
from typing_extensions import TypedDict

from agents.leaning import chosen_reading
from graph.errors import BadInput
from workflows.conversation.messages import answer_message, answer_text, choices_of, next_question, spoken
from workflows.conversation.settings import ANSWER, ChatSettings, context_of_chat, lists_sources
from workflows.runtime.human_review import decision_in, review_of
from workflows.runtime.own_run import on_its_own
from workflows.settings.mara import QUESTION_LIMIT, Context
from workflows.states.records import Update
from workflows.streaming import Answered, Event, NodeStarted, Progress, Said, Token, aask_stream, ask_stream

Events = TypeVar("Events")

CHOOSE = "choose_question"
"""The action that a question of several readings asks for."""


class Conversation(TypedDict):
    """The messages so far: input, output and state of the graph. All else of a run is left out of checkpoints."""

    messages: Annotated[list[AnyMessage], add_messages]


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
        runtime: Runtime[ChatSettings | Context] = get_runtime()
        self._asked = next_question(state["messages"])
        task = runtime.execution_info.task_id if runtime.execution_info else ""
        self._context = context_of_chat(runtime.context).as_turn(task)
        self._lists_sources = lists_sources(runtime.context)
        self._write = runtime.stream_writer
        self._voice = Voice(get_config())
        self._result: Any = None

    def events(self, ask: Callable[..., Events]) -> Events:
        """Ask the workflow, by ``ask_stream`` or its twin, outside of the graph that this node is part of."""
        return on_its_own(ask, self._asked.question, self._context, self._asked.turns)

    def hear(self, event: Event) -> None:
        """Pass an event of the workflow on: its words as chat, its progress as the workflow's own nodes tell it."""
        if isinstance(event, Answered):
            self._result = event.result
            return
        self._voice.hear(event)
        if isinstance(event, NodeStarted):
            self._write({"node": event.node, "event": "started", "attempt": event.attempt})
        elif isinstance(event, Progress):
            self._write({"node": event.node, "event": event.event, **event.details})

    def update(self) -> Update:
        """Return the answer's message."""
        text = answer_text(self._result, lists_sources=self._lists_sources)
        self._voice.complete(text, spoken(self._result))
        message = answer_message(text, self._result, self._voice.message_id)
        self._voice.end(message)
        return {"messages": [message]}


def choose_reading(state: Conversation) -> Update:
    """Ask the user which reading of the question is meant, and wait; what they choose is the next question."""
    choices = choices_of(state["messages"])
    if not choices:
        raise BadInput("There is nothing to choose between", "Send a question")
    return {"messages": [HumanMessage(reading_from_user(choices))]}


def reading_from_user(choices: Sequence[str]) -> str:
    """Interrupt until the user has chosen a reading, by decision, number or words, or has put it in their own words."""
    listed = "\n".join(f"{number}. {choice}" for number, choice in enumerate(choices, start=1))
    description = f"What do you mean?\n{listed}\nApprove the first, or edit it: a number, or your own words."
    refused = ""
    while True:
        reply = interrupt(
            review_of(CHOOSE, {"question": choices[0]}, refused + description, "approve", "edit", "respond")
        )
        words = _words_of(reply, choices)
        if words.strip() and len(words) <= QUESTION_LIMIT:
            return chosen_reading(words, choices) or words
        refused = "That reply cannot be read. "


def _words_of(reply: object, choices: Sequence[str]) -> str:
    """Return the words of a reply; none where it has none."""
    if isinstance(reply, str | int) and not isinstance(reply, bool):
        return str(reply)
    decision = decision_in(reply)
    if decision.get("type") == "approve":
        return choices[0]
    edited = decision.get("edited_action")
    args = edited.get("args") if isinstance(edited, Mapping) else None
    said = args.get("question") if isinstance(args, Mapping) else decision.get("message")
    return str(said) if isinstance(said, str | int) else ""


class Voice:
    """Says the answer of one turn; an answer that is begun again is another message, which takes the first one's place.

    Traces hear nothing: they have the requests of the models themselves.

    Attributes:
        message_id: of the message that is being said.
    """

    def __init__(self, config: RunnableConfig) -> None:
        heard_by = get_callback_manager_for_config(config)
        self._manager = CallbackManager(
            [handler for handler in heard_by.handlers if not isinstance(handler, BaseTracer)],
            parent_run_id=heard_by.parent_run_id,
            tags=heard_by.tags,
            metadata=heard_by.metadata,
        )
        self._told = Said()
        self._begin()

    def hear(self, event: NodeStarted | Progress | Token) -> None:
        """Say the words of an event of the run."""
        self._say(*self._told.hear(event))

    def complete(self, text: str, words: str) -> None:
        """Say what is left of the whole text, which begins with the words of the answer."""
        self._say(*self._told.rest_of(text, words))

    def end(self, message: AIMessage) -> None:
        """Tell what goes with the whole message, which has this voice's id."""
        self._tell(AIMessageChunk(content="", id=message.id, response_metadata=message.response_metadata))
        for run in self._runs:
            run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))

    def _begin(self) -> None:
        self.message_id = str(uuid4())
        self._runs = self._manager.on_chat_model_start({"name": "answer"}, [[]])

    def _say(self, text: str, is_anew: bool) -> None:
        if is_anew:
            self._begin()
        if text:
            self._tell(AIMessageChunk(content=text, id=self.message_id))

    def _tell(self, chunk: AIMessageChunk) -> None:
        for run in self._runs:
            run.on_llm_new_token(str(chunk.text), chunk=ChatGenerationChunk(message=chunk))
