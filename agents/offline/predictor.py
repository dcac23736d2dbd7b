"""The predictor without a model: the sentence of a passage that holds most of a question."""

from __future__ import annotations

from agents.answers.citations import quotable
from agents.offline.reading.evidence import best_sentence
from agents.roles import Feedback, NumberedPassage


class OfflinePredictor:
    """Quotes the sentence of a passage that bears on a question, or says nothing; deterministic."""

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the sentence without citations of its own; empty where the passage holds nothing of the question."""
        found = best_sentence(question, passage)
        return quotable(found.text) if found else ""
