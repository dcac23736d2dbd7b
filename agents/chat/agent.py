"""The base of the agents on a chat model: fills the prompt, quotes the material, asks, and checks the reply.

Text that comes from users and documents goes into prompts through `agents.chat.material` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel

from agents.answers.unlinked import NO_ADDRESSES, Addresses
from agents.chat.echoes import check_no_echo, check_says_something
from agents.chat.material import Room, most_tokens, quoted
from agents.chat.model import CUT, ChatModel
from agents.chat.replies import parse_object, without_thinking
from agents.roles import Feedback
from graph.errors import MalformedReply
from prompts import fill

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Schema = dict[str, Any]
"""A JSON schema as it is sent with a request: bounded everywhere, so that no reply under a grammar runs on."""

Reply = TypeVar("Reply")
ObjectReply = TypeVar("ObjectReply", bound=BaseModel)
Result = TypeVar("Result")

_NO_BRACKETS = str.maketrans(dict.fromkeys("[]【】{}"))
_MAX_REASON = 1_000
_TOKENS_OF_A_MESSAGE = 16


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
            cut, and malformed, unless it is an answer. As many are kept free for it where the model's context window is
            known.
        writes_answers: whether its text is the answer, which streams tell as chat; every other reply is internal.
    """

    prompt: ClassVar[str]
    material: ClassVar[str]
    reply_tokens: int
    writes_answers: ClassVar[bool] = False

    def __init__(self, model: ChatModel, reply_tokens: int | None = None) -> None:
        self._model = model
        if reply_tokens is not None:
            self.reply_tokens = reply_tokens

    @property
    def role(self) -> str:
        """Its name in messages to the user."""
        return self.prompt.replace("_", " ")

    @classmethod
    def messages(
        cls, material: Mapping[str, object], feedback: Feedback | None = None, **placeholders: object
    ) -> list[BaseMessage]:
        """Return the messages of a request: the prompt with its placeholders filled, and the quoted material.

        A placeholder takes what never changes from question to question, so that servers reuse the whole system prompt.
        """
        return prompt_messages(fill(cls.prompt, **placeholders), quoted(cls.material, material), feedback)

    def _room(self, messages: Sequence[BaseMessage], characters: float = float("inf")) -> Room:
        """Return the room for the part of the material that these messages lack, the reply's own room kept free."""
        window = self._model.context_tokens
        if window is None:
            return Room(self.role, characters)
        taken = sum(_TOKENS_OF_A_MESSAGE + most_tokens(str(message.text)) for message in messages)
        return Room(self.role, characters, window, max(0, window - taken - min(self.reply_tokens, window // 2)))

    def _ask_object(
        self,
        reply_type: type[ObjectReply],
        schema: Schema,
        messages: Sequence[BaseMessage],
        check: Callable[[ObjectReply], Result],
    ) -> Result:
        """Ask for one object of a schema, whose form the examples show, since servers may ignore it; check it."""
        schema_asked = json_format(reply_type.__name__, schema)
        raw = self._model.ask(messages, schema_asked, max_tokens=self.reply_tokens).text()

        def check_both(reply: ObjectReply) -> Result:
            check_no_echo(reply, messages)
            return check(reply)

        return checked(check_both, parse_object(raw, reply_type), raw)

    def _ask_text(
        self,
        messages: Sequence[BaseMessage],
        check: Callable[[str], Result],
        refusal: str,
        addresses: Addresses = NO_ADDRESSES,
        check_cut: Callable[[str], Result] | None = None,
    ) -> Result:
        """Ask for plain text, which can be streamed; check it without the model's thinking.

        ``refusal`` is the line that says that there is no answer: a text with it need not say anything else. An answer
        may name these addresses alone. ``check_cut`` checks a text that was cut at its limit; None refuses any.
        """
        aloud = addresses if self.writes_answers else None
        reply = self._model.ask(messages, max_tokens=self.reply_tokens, addresses=aloud)
        keeps_cut = check_cut if reply.cut else None
        text = without_thinking(reply.raw if keeps_cut else reply.text())
        if not text:
            raise MalformedReply(CUT if keeps_cut else "The reply is empty", reply.raw)

        def check_all(text: str) -> Result:
            check_no_echo(text, messages)
            if refusal.casefold() not in text.casefold():
                check_says_something(text, messages)
            return (keeps_cut or check)(text)

        try:
            return checked(check_all, text, text)
        except MalformedReply as refused:
            raise MalformedReply(CUT, text) if keeps_cut else refused from None


def checked(check: Callable[[Reply], Result], reply: Reply, raw: str) -> Result:
    """Return what a check makes of a reply. Raises MalformedReply with the check's reason and the reply as it came."""
    try:
        return check(reply)
    except MalformedReply as refused:
        raise MalformedReply(refused.reason, raw) from None


def prompt_messages(system: str, material: str, feedback: Feedback | None = None) -> list[BaseMessage]:
    """Return the messages of a request: the agent's system prompt, its `quoted` material, and why to answer again.

    Why the last reply was refused is told by nothing that could be read as an answer: not by the reply, and by no
    bracket of a citation or an object.
    """
    from langchain_core.messages import HumanMessage, SystemMessage

    messages = [SystemMessage(system), HumanMessage(material)]
    if feedback is None:
        return messages
    reason = " ".join(feedback.reason.translate(_NO_BRACKETS).split())[:_MAX_REASON]
    return [*messages, HumanMessage(fill("feedback", material=quoted("reason", reason)))]


def json_format(name: str, schema: Schema) -> dict[str, Any]:
    """Return the ``response_format`` that asks for an object of ``schema``."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def object_of(**properties: Schema) -> Schema:
    """Return the schema of an object with these properties, all required and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def list_of(items: Schema, at_most: int, at_least: int = 0) -> Schema:
    """Return the schema of a list of so many items."""
    least = {"minItems": at_least} if at_least else {}
    return {"type": "array", "items": items, **least, "maxItems": at_most}


def text_of(at_most: int) -> Schema:
    """Return the schema of a text of so many characters."""
    return {"type": "string", "maxLength": at_most}


def one_of(words: Sequence[str]) -> Schema:
    """Return the schema of one of several words."""
    return {"type": "string", "enum": list(words)}


def number_of(known: Collection[int]) -> Schema:
    """Return the schema of the number of one thing that the prompt shows, in a form that grammars enforce."""
    return {"type": "integer", "enum": sorted(known)} if known else {"type": "integer"}


def numbers_of(known: Collection[int], at_most: int | None = None) -> Schema:
    """Return the schema of a list that chooses by number among what the prompt shows."""
    return list_of(number_of(known), len(known) if at_most is None else min(len(known), at_most))


def share(least: float = 0, most: float = 1) -> Schema:
    """Return the schema of a number between two others."""
    return {"type": "number", "minimum": least, "maximum": most}
