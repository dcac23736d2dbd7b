"""What the tests of asking a chat model share: an object to ask for, and a model on a scripted server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, FiniteFloat

from agents.answers.unlinked import NO_ADDRESSES
from agents.chat.agent import ChatAgent, json_format, prompt_messages
from agents.chat.material import quoted
from agents.chat.model import ChatModel, open_chat_model
from agents.chat.replies import parse_object
from tests.scripted_server import ReplyLike, ScriptedServer, scripted

T = TypeVar("T", bound=BaseModel)

KEY = "sk-very-secret-0123456789"


class Verdict(BaseModel):
    """A small object to ask for."""

    name: str
    share: FiniteFloat
    tags: list[str] = []


VERDICT = Verdict(name="lake", share=0.5, tags=["a"])
TEXT = '{"name": "lake", "share": 0.5, "tags": ["a"]}'


class Tester(ChatAgent):
    """An agent of the tests, whose text is an answer."""

    reply_tokens = 4_096
    writes_answers = True


def messages() -> list[BaseMessage]:
    return prompt_messages("# Tester\nReply.", quoted("question", {"question": "Which?"}))


def ask_text(model: ChatModel, messages: Sequence[BaseMessage]) -> str:
    """Ask as an agent does that wants text."""
    return Tester(model)._ask_text(messages, str, "NOTHING")


def ask_object(model: ChatModel, messages: Sequence[BaseMessage], schema: type[T]) -> T:
    """Ask as an agent does that wants an object."""
    wanted = json_format(schema.__name__, schema.model_json_schema())
    return parse_object(model.ask(messages, wanted, addresses=NO_ADDRESSES).text(), schema)


def model_on(server: ScriptedServer, timeout_s: float = 5) -> ChatModel:
    return open_chat_model("scripted", 0.0, base_url=server.base_url, api_key=KEY, timeout_s=timeout_s)


@contextmanager
def served(*replies: ReplyLike, timeout_s: float = 5) -> Iterator[ChatModel]:
    with scripted(replies) as server:
        yield model_on(server, timeout_s)
