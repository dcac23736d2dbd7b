"""The answerer without passages: what a chat model knows by itself, to compare answers from passages with."""

from __future__ import annotations

from collections.abc import Sequence

from agents.answerer import is_refusal
from agents.answers.citations import strip_citations, without_marks
from agents.chat.agent import ChatAgent
from agents.roles import Answer, Feedback, NumberedPassage
from graph.errors import MalformedReply

NOT_KNOWN = "NOT KNOWN"
"""The whole of an answer that says that the model does not know it."""


class ClosedBookAnswerer(ChatAgent):
    """Asks a chat model the question alone."""

    prompt = "closed_book"
    material = "question"
    reply_tokens = 320

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return what the model knows, without citations; it is shown no passage, whatever is given.

        Raises:
            MalformedReply: the reply is empty, cut or an echo.
        """
        messages = self.messages({"question": question}, feedback, refusal=NOT_KNOWN)
        return self._ask_text(messages, _read, NOT_KNOWN)


def _read(text: str) -> Answer:
    """Return a reply as an answer; a citation in it would cite nothing, and is removed."""
    plain = strip_citations(without_marks(text)).strip()
    if not plain:
        raise MalformedReply("The reply holds no answer")
    if is_refusal(plain, NOT_KNOWN):
        return Answer(NOT_KNOWN, NOT_KNOWN, (), refused=True)
    return Answer(plain, plain, ())
