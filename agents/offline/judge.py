"""The judge without a model: it keeps each passage that holds anything of a question."""

from __future__ import annotations

from agents.offline.reading.evidence import holds_anything
from agents.roles import Feedback, JudgedBy, Judgement, NumberedPassage

KEPT, DROPPED = 1.0, -1.0
"""The scores of a passage with and without a term of the question: words cannot tell of one passage more than that."""


class OfflineJudge:
    """Scores all passages that may bear on a question alike, so that their order stays; deterministic.

    What answers a question shows only beside the other passages: that is left to who reads them together.
    """

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return `KEPT` or `DROPPED`, whatever the prediction is."""
        return Judgement(KEPT if holds_anything(question, passage) else DROPPED, JudgedBy.WORDS)
