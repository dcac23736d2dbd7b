"""The base of the agents on a chat model: fills the prompt, quotes the material, asks, and checks the reply.

Text that comes from users and documents goes into prompts through `quoted` alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from agents.chat.model import ChatModel
from agents.chat.replies import parse_object, without_thinking
from agents.roles import Feedback
from graph.errors import MalformedReply
from prompts import fill

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Reply = TypeVar("Reply")
Schema = TypeVar("Schema", bound=BaseModel)
Result = TypeVar("Result")

_MAX_FED_BACK = 4_000
# What could end the quoted line, or read as markup of a chat template: written as JSON escapes.
_UNQUOTABLE = re.compile("[<\x7f-\x9f\u2028\u2029\ud800-\udfff]|```")


class ChatAgent:
    """An agent on a chat model: a subclass names its prompt, says what a reply must be, and checks it.

    A check takes a reply and returns what the role promises. Where the reply cannot be used, it raises `MalformedReply`
    with a reason that tells the model what to mend; the reply itself is added here.

    Every request may raise TransportFault (the endpoint could not be reached, was busy or broke off), ModelUnavailable
    (it refused the key, the model or the request), and MalformedReply for a reply that is empty, cut, too long, or
    never ends its thinking.

    Attributes:
        prompt: the name of its prompt.
        material: what the prompt quotes, in a few words.
        reply_tokens: what its longest reply may take, beside what a model thinks before it: a reply that takes more is
            cut, and malformed.
    """

    prompt: ClassVar[str]
    material: ClassVar[str]
    reply_tokens: ClassVar[int]

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @classmethod
    def messages(
        cls, material: Mapping[str, object], feedback: Feedback | None = None, **placeholders: object
    ) -> list[BaseMessage]:
        """Return the messages of a request: the prompt with its placeholders filled, and the quoted material."""
        return prompt_messages(fill(cls.prompt, **placeholders), quoted(cls.material, material), feedback)

    def _ask_object(
        self,
        schema: type[Schema],
        material: Mapping[str, object],
        check: Callable[[Schema], Result],
        feedback: Feedback | None,
        **placeholders: object,
    ) -> Result:
        """Ask for one object of a schema, which the prompt states too since servers may ignore it; check it."""
        messages = self.messages(material, feedback, schema=schema_text(schema), **placeholders)
        raw = self._model.complete(messages, json_format(schema), max_tokens=self.reply_tokens)
        return checked(check, parse_object(raw, schema), raw)

    def _ask_text(self, messages: Sequence[BaseMessage], check: Callable[[str], Result]) -> Result:
        """Ask for plain text, which can be streamed; check it without the model's thinking."""
        raw = self._model.complete(messages, max_tokens=self.reply_tokens)
        text = without_thinking(raw)
        if not text:
            raise MalformedReply("The reply is empty", raw)
        return checked(check, text, text)


def checked(check: Callable[[Reply], Result], reply: Reply, raw: str) -> Result:
    """Return what a check makes of a reply. Raises MalformedReply with the check's reason and the reply as it came."""
    try:
        return check(reply)
    except MalformedReply as refused:
        raise MalformedReply(refused.reason, raw) from None


def prompt_messages(system: str, material: str, feedback: Feedback | None = None) -> list[BaseMessage]:
    """Return the messages of a request: the agent's system prompt, its `quoted` material, and why to answer again."""
    from langchain_core.messages import HumanMessage, SystemMessage

    return [SystemMessage(system), HumanMessage(material), *feedback_messages(feedback)]


def feedback_messages(feedback: Feedback | None) -> list[BaseMessage]:
    """Return the message that feeds a refused reply back: the reason and the reply as data; none without feedback."""
    from langchain_core.messages import HumanMessage

    if feedback is None:
        return []
    material = {"reason": feedback.reason, "reply": feedback.raw[:_MAX_FED_BACK]}
    return [HumanMessage(fill("feedback", material=quoted("last reply", material)))]


def quoted(label: str, value: object) -> str:
    """Return untrusted material as one line of JSON inside a labelled fence.

    Line ends, quotes, fences and the ``<`` of chat-template markup are written as JSON escapes, so no text within
    the value can end the line, the string or the fence that hold it. ``value`` is anything JSON can hold.
    """
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    escaped = _UNQUOTABLE.sub(lambda match: "".join(f"\\u{ord(character):04x}" for character in match[0]), line)
    return f"Quoted material ({label}):\n```json\n{escaped}\n```"


def json_format(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the ``response_format`` that asks for an object of ``schema``."""
    json_schema = {"name": schema.__name__, "schema": schema.model_json_schema()}
    return {"type": "json_schema", "json_schema": json_schema}


def schema_text(schema: type[BaseModel]) -> str:
    """Return a schema as a prompt states it: JSON on one line."""
    return json.dumps(schema.model_json_schema(), ensure_ascii=False)
