"""The predictor without a model: the one sentence of a passage that answers the question best."""

from __future__ import annotations

from agents.citations import strip_citations
from agents.offline.asked import read_question
from agents.offline.held import read_sentences, support
from agents.offline.quotes import Embed, passage_sentences
from agents.offline.units import known_names
from agents.roles import Feedback, NumberedPassage

LEAST_SUPPORT = 0.25
"""A sentence below this support is no answer, nor a step towards one."""


class OfflinePredictor:
    """Quotes the sentence of a passage that answers a question, or says nothing; deterministic.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the best sentence, without citations of its own; empty below `LEAST_SUPPORT`."""
        sentences = passage_sentences([passage])
        asked = read_question(question, known_names(question, sentences))
        shares = [support(asked, held) for held in read_sentences(question, asked, sentences, self._embed)]
        if not shares or max(shares) < LEAST_SUPPORT:
            return ""
        return strip_citations(sentences[shares.index(max(shares))].text).strip()
