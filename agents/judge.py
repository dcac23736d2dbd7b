"""The judge: how far one passage supports an answer to a question (RAGentA, agent 2), and which passages pass."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, pstdev
from typing import Protocol

from agents.agent import Agent
from agents.answerer import DEFAULT_BUDGET_CHARACTERS, fitting_passages
from agents.chat.agent import ChatAgent, checked
from agents.chat.model import ChatReply
from agents.chat.replies import without_thinking
from agents.offline.evidence import holds_anything
from agents.roles import DEFAULT_N, Feedback, NumberedPassage
from graph.errors import MalformedReply

TOP_LOGPROBS = 5
"""The number of likeliest tokens requested at each place: room for the spellings of both words."""

LEAST_LOGPROB = -20.0
"""The least log-probability that is told apart from none: two in a thousand million."""

CONFIDENCES = (0.51, 0.99)
"""A stated confidence is clipped to these: even a guess falls on the side of its word, and no score is above 4.6."""

_MAX_PREDICTION = 2_000
_REPLY = re.compile(r"(yes|no)(?:[.,:;]?\s+([01]|[01]?\.[0-9]{1,9}))?\.?", re.IGNORECASE)
# A tokenizer may split a word; no other word that begins so is worth more than it.
_YES = frozenset({"y", "ye", "yes"})
_NO = frozenset({"n", "no"})


class JudgedBy(StrEnum):
    """The source of a judge's score."""

    LOGPROBS = "logprobs"
    """The model's log-probabilities of Yes and No."""
    CONFIDENCE = "confidence"
    """The model's own yes or no, with the confidence that it states: its server tells no log-probabilities."""
    WORDS = "words"
    """The rules of the offline judge."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's score of a passage: how far it supports an answer to a question.

    Attributes:
        score: log P(Yes) - log P(No), natural logarithms, finite; 0 where both are as likely.
        judged_by: where the score comes from.
    """

    score: float
    judged_by: JudgedBy


class Judge(Protocol):
    """Says how far one passage supports an answer to a question (RAGentA, agent 2)."""

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return the score of a passage; ``prediction`` is what the predictor answered from it, or empty.

        Raises MalformedReply.
        """


class ChatJudge(ChatAgent):
    """Asks a chat model for Yes or No, once, and reads how sure it is.

    The score comes from the model's log-probabilities of the two words, or, where its server tells none, from the
    confidence that the same reply states.
    """

    prompt = "judge"
    material = "question, passage and answer"
    reply_tokens = 32

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return the score of a passage; ``prediction`` is what the predictor answered from it, or empty.

        Raises:
            MalformedReply: the reply is not Yes or No with a confidence from 0.5 to 1, which may be missing only where
                the server tells log-probabilities; or it is empty, cut, or never ends its thinking.
        """
        answer = prediction[:_MAX_PREDICTION]
        bare = self.messages({"question": question, "answer_from_it": answer}, feedback)
        (shown,) = fitting_passages((passage,), self._room(bare, DEFAULT_BUDGET_CHARACTERS))
        material = {"question": question, "title": shown.title, "text": shown.text, "answer_from_it": answer}
        messages = self.messages(material, feedback)
        reply = self._model.ask(messages, top_logprobs=TOP_LOGPROBS, max_tokens=self.reply_tokens)
        return checked(_judgement, reply, reply.text())


def _judgement(reply: ChatReply) -> Judgement:
    answer = without_thinking(reply.raw)
    parsed = _REPLY.fullmatch(answer)
    if parsed is None or float(parsed[2] or 0) > 1:
        raise MalformedReply("The reply is not Yes or No, a space and a confidence from 0.5 to 1")
    # The last one: thinking before the answer may hold the words, too, and what follows it does not.
    word = next((token for token in reversed(reply.tokens) if _spelling(token.text) in _YES | _NO), None)
    log_odds = log_odds_of(word.top) if word else None
    if log_odds is not None:
        return Judgement(log_odds, JudgedBy.LOGPROBS)
    if parsed[2] is None:
        raise MalformedReply("The reply states no confidence: write it after the word, from 0.5 to 1")
    if float(parsed[2]) < 0.5:
        raise MalformedReply("A confidence below 0.5 speaks against its own word: write from 0.5 to 1")
    return Judgement(_stated_log_odds(parsed[1], float(parsed[2])), JudgedBy.CONFIDENCE)


def _spelling(token: str) -> str:
    return token.strip().rstrip(".,:;").casefold()


def log_odds_of(top: Collection[tuple[str, float]]) -> float | None:
    """Return log P(Yes) - log P(No) from the likeliest tokens at one place, summed over the spellings of each word.

    A word that is not among them is at most as likely as the least likely of them, which is taken as its bound.
    Log-probabilities below `LEAST_LOGPROB` count as that, so the score lies within 20 on either side of 0. None where
    there are fewer than two tokens to compare, neither word is among them, or one of them has no number.
    """
    if len(top) < 2 or any(math.isnan(logprob) for _, logprob in top):
        return None
    known = [(_spelling(text), max(LEAST_LOGPROB, logprob)) for text, logprob in top]
    yes, no = (sum(math.exp(logprob) for text, logprob in known if text in words) for words in (_YES, _NO))
    if not yes and not no:
        return None
    bound = math.exp(min(logprob for _, logprob in known))
    return max(LEAST_LOGPROB, min(-LEAST_LOGPROB, math.log(yes or bound) - math.log(no or bound)))


def _stated_log_odds(word: str, confidence: float) -> float:
    least, most = CONFIDENCES
    clipped = min(max(confidence, least), most)
    log_odds = math.log(clipped / (1 - clipped))
    return log_odds if word.casefold() == "yes" else -log_odds


KEPT, DROPPED = 1.0, -1.0
"""The scores of a passage with and without a term of the question: words cannot tell of one passage more than that."""


class OfflineJudge:
    """Scores all passages that may bear on a question alike, so that their order stays; deterministic.

    Whether a passage answers a question shows only beside the others: that is left to the reader of them all.
    """

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return `KEPT` or `DROPPED`, whatever the prediction is."""
        return Judgement(KEPT if holds_anything(question, passage) else DROPPED, JudgedBy.WORDS)


_ROUNDING = 1e-9
"""A score that lies exactly on the threshold may come out below it by so much."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold among a question's scores.

    Attributes:
        tau: their mean.
        sigma: their population standard deviation.
        value: tau - n sigma; a passage at this score or above passes.
    """

    tau: float
    sigma: float
    value: float


def adaptive_threshold(scores: Sequence[float], n: float = DEFAULT_N) -> Threshold:
    """Return the threshold of at least one score; equal scores lie exactly on it, whatever ``n`` is."""
    tau = fmean(scores)
    sigma = pstdev(scores)
    if max(scores) == min(scores):
        tau, sigma = scores[0], 0.0
    return Threshold(tau, sigma, tau - n * sigma)


def passing_places(
    scores: Sequence[float], n: float = DEFAULT_N, *, floor: float = -math.inf, least: int = 0, most: int | None = None
) -> list[int]:
    """Return the places of the scores that pass, the best first, ties by place.

    A score passes at tau - n sigma or above, and never below the floor: the threshold alone keeps about 69 % of
    any scores, good or bad. Where fewer than ``least`` pass, the best ones at the floor or above do. Empty where no
    score reaches the floor, or there is none.

    Args:
        scores: finite.
        n: how far below the mean the threshold lies, in standard deviations; less than 0 for above it.
        floor: the least score that may pass.
        least: so many pass, where the floor lets them.
        most: at most so many pass; None for all.
    """
    if not scores:
        return []
    value = adaptive_threshold(scores, n).value
    ranked = sorted(range(len(scores)), key=lambda place: -scores[place])
    passing = [place for place in ranked if scores[place] >= floor]
    above = sum(scores[place] >= value - _ROUNDING for place in passing)
    return passing[: max(above, least)][:most]


JUDGE: Agent[Judge, Judgement] = Agent(
    name="judge",
    key="score",
    chat=lambda model, run: ChatJudge(model),
    offline=lambda run: OfflineJudge(),
    shown=lambda judgement: {"score": judgement.score, "judged_by": judgement.judged_by.value},
    instead="{} is left unjudged",
)
