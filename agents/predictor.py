"""The predictor: what one passage, by itself, has to say to a question (RAGentA, agent 1)."""

from __future__ import annotations

from typing import Protocol

from agents.agent import Agent
from agents.answerer import DEFAULT_BUDGET_CHARACTERS, fitting_passages
from agents.answers.citations import quotable, strip_citations
from agents.chat.agent import ChatAgent
from agents.offline.evidence import best_sentence
from agents.roles import Feedback, NumberedPassage

NOTHING = "NOT IN THE PASSAGE"
"""A line of a reply that says that the passage holds nothing."""


class Predictor(Protocol):
    """Answers a question from one passage alone (RAGentA, agent 1)."""

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the answer, or the step towards it, that the passage holds; empty where it holds none.

        Raises MalformedReply.
        """


class ChatPredictor(ChatAgent):
    """Asks a chat model to answer a question from one passage alone."""

    prompt = "predictor"
    material = "question and passage"
    reply_tokens = 200

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the answer, or the step towards it, that the passage holds; empty where it holds none.

        A reply with the line `NOTHING` in it is empty, whatever is written around it. The end of a passage of above
        12,000 characters is not shown.

        Raises:
            MalformedReply: the reply is empty, cut, an echo, or never ends its thinking.
        """
        bare = self.messages({"question": question}, feedback, nothing=NOTHING)
        (shown,) = fitting_passages((passage,), self._room(bare, DEFAULT_BUDGET_CHARACTERS))
        material = {"question": question, "title": shown.title, "text": shown.text}
        return self._ask_text(self.messages(material, feedback, nothing=NOTHING), _prediction, NOTHING)


def _prediction(text: str) -> str:
    lines = [strip_citations(line).strip().rstrip(".").casefold() for line in text.splitlines()]
    return "" if NOTHING.casefold() in lines else text


class OfflinePredictor:
    """Quotes the sentence of a passage that bears on a question, or says nothing; deterministic."""

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the sentence without citations of its own; empty where the passage holds nothing of the question."""
        sentence = best_sentence(question, passage)
        return quotable(sentence.text) if sentence else ""


PREDICTOR: Agent[Predictor, str] = Agent(
    name="predictor",
    key="predict",
    chat=lambda model, run: ChatPredictor(model),
    offline=lambda run: OfflinePredictor(),
    shown=lambda prediction: {"prediction": prediction},
    instead="{} is judged without a prediction",
)
