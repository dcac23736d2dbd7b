"""An answer as chat: told piece by piece to whoever streams the messages of a run, as LangChain's chat models are."""

from __future__ import annotations

from uuid import uuid4

from langchain_core.callbacks import CallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_callback_manager_for_config
from langchain_core.tracers.base import BaseTracer


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
        self._begun_again = False
        self._begin()

    def begin_again(self) -> None:
        """Take note that what was said is void, unless it is said again."""
        self._begun_again = True

    def say(self, text: str) -> None:
        """Say the next piece."""
        if self._begun_again and self._said:
            if text.startswith(self._said):
                text = text[len(self._said) :]
            else:
                self._begin()
        self._begun_again = False
        self._tell(AIMessageChunk(content=text, id=self.message_id))
        self._said += text

    def end(self, message: AIMessage) -> None:
        """Tell what goes with the whole message, which has this voice's id."""
        if str(message.text) != self._said:
            self.say(str(message.text).removeprefix(self._said))
        self._tell(AIMessageChunk(content="", id=message.id, response_metadata=message.response_metadata))
        for run in self._runs:
            run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=message)]]))

    def _begin(self) -> None:
        self.message_id, self._said = str(uuid4()), ""
        self._runs = self._manager.on_chat_model_start({"name": "answer"}, [[]])

    def _tell(self, chunk: AIMessageChunk) -> None:
        for run in self._runs:
            run.on_llm_new_token(str(chunk.text), chunk=ChatGenerationChunk(message=chunk))
