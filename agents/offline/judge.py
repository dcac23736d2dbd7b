"""The judge without a model: how far a passage answers a question, by its names, its words and kinds of answers."""

from __future__ import annotations

from collections.abc import Sequence

from agents.offline.asked import Asked, read_question
from agents.offline.components import split_question
from agents.offline.held import HALF, LONGER_TITLE, Held, log_odds, read_sentences
from agents.offline.quotes import Embed, Sentence, passage_sentences
from agents.offline.units import best_unit, known_names
from agents.roles import Feedback, JudgedBy, Judgement, NumberedPassage


class OfflineJudge:
    """Scores a passage by the best of its sentences; deterministic.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return the log-odds of the passage's best sentence, whatever the prediction is."""
        sentences = passage_sentences([passage])
        return Judgement(max(self._score(part, sentences) for part in split_question(question)), JudgedBy.WORDS)

    def _score(self, part: str, sentences: Sequence[Sentence]) -> float:
        asked = read_question(part, known_names(part, sentences))
        alone = best_unit(part, sentences, self._embed).support
        held = read_sentences(part, asked, sentences, self._embed) if asked.is_nested else []
        step = max((_step(asked, sentence) for sentence in held), default=0.0)
        return log_odds(max(alone, step))


STEP = 0.6
"""What a step towards an answer is worth: less than an answer, more than nothing."""


def _step(asked: Asked, held: Held) -> float:
    """How far a sentence is a step: it is about all the names, or holds what is asked and the kind of answer."""
    outer = [near for word, near in zip(asked.relation, held.relation, strict=True) if not word.is_inner]
    is_start = held.least_name >= LONGER_TITLE
    is_end = max(outer) >= HALF and held.kind
    return STEP if is_start or is_end else 0.0
