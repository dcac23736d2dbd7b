"""The answerer without a model: it quotes the sentences that bear on a question."""

from __future__ import annotations

from collections.abc import Sequence

from agents.offline.reading.alignment import Embed
from agents.offline.reading.evidence import find_each_evidence
from agents.offline.reading.quoting import quote_evidence
from agents.roles import Answer, Feedback, NumberedPassage


class OfflineAnswerer:
    """Quotes evidence, each sentence followed by its citation; deterministic, and says nothing of its own.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of evidence, on the scale of that embedding.
    """

    def __init__(self, embed: Embed | None = None, least_likeness: float = 0.0) -> None:
        self._embed = embed
        self._least_likeness = least_likeness

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the evidence for each part of the question, or a refusal where there is none.

        Each sentence stands as in its passage, less any citation of its own, which would read as one of this answer.
        """
        return quote_evidence(find_each_evidence(question, passages, self._embed, self._least_likeness))
