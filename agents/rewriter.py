"""The rewriter on a chat model: it completes a question from the conversation that the question was asked in."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agents.chat.agent import ChatAgent
from agents.chat.json_schema import list_of, object_of, text_of
from agents.offline.language.words import content_stems
from agents.roles import Feedback, Rewriting, Turn
from graph.errors import MalformedReply

TURNS_SHOWN = 4
"""The last turns that a model is shown."""

LONGEST_QUESTION = 1_000
"""Characters of a completed question."""

_SHOWN_ANSWER = 600
_MOST_CHOICES = 4
_SCHEMA = object_of(
    stands_alone={"type": "boolean"},
    question=text_of(LONGEST_QUESTION),
    choices=list_of(text_of(LONGEST_QUESTION), _MOST_CHOICES),
)


class RewriterReply(BaseModel):
    """The question as it was understood."""

    stands_alone: bool
    question: str
    choices: list[str]


class ChatRewriter(ChatAgent):
    """Asks a chat model to complete a question, or to say that it stands alone."""

    prompt = "rewriter"
    material = "turns and question"
    reply_tokens = 300

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the completed question; the question as it is where the model says that it stands alone.

        Raises:
            MalformedReply: the reply is not of the schema, the question is empty or too long, or a reading keeps no
                word of the question.
        """

        def check(reply: RewriterReply) -> Rewriting:
            if reply.stands_alone:
                return Rewriting(question)
            choices = tuple(dict.fromkeys(choice.strip() for choice in reply.choices if choice.strip()))[:_MOST_CHOICES]
            whole = reply.question.strip()
            if not whole or len(whole) > LONGEST_QUESTION:
                raise MalformedReply(f"`question` has to hold one question of at most {LONGEST_QUESTION} characters")
            if not all(_asks_the_same(question, reading) for reading in (whole, *choices)):
                raise MalformedReply("Keep the words of the given question, and add what they refer to")
            return Rewriting(whole, choices=choices if len(choices) > 1 else ())

        shown = [{"question": turn.question, "answer": turn.answer[:_SHOWN_ANSWER]} for turn in turns[-TURNS_SHOWN:]]
        messages = self.messages({"turns": shown, "question": question}, feedback)
        return self._ask_object(RewriterReply, _SCHEMA, messages, check)


def _asks_the_same(question: str, reading: str) -> bool:
    """Tell whether a reading keeps any word of a question that says something, where there is one."""
    told = set(content_stems(question))
    return not told or not told.isdisjoint(content_stems(reading))
