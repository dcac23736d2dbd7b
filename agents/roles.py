"""The roles of the agents: question and answer of each. A chat model and an offline twin implement every role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from agents.answers.claims import Claim
from graph.schema import Extraction, Passage, RelationFactors, ScoredFact


@dataclass(frozen=True, slots=True)
class Feedback:
    """Why the last reply was refused, fed back into the next prompt.

    Attributes:
        reason: what was wrong with the reply.
        raw: the reply as it came; a model is never shown it, since small ones repeat it.
    """

    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation, and what was answered.

    Attributes:
        question: as it was asked, or as it was understood.
        answer: may be empty.
        passages: ids of the passages that the answer cites.
    """

    question: str
    answer: str = ""
    passages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The reading of a question that leans on earlier turns.

    Attributes:
        question: whole, as it is searched and answered; the question itself where it stands alone after all.
        names: of earlier turns, which the walk starts from beside those in the question.
        choices: readings between which nothing decides, of which the asker has to choose one; else empty.
    """

    question: str
    names: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FactChoice:
    """The facts worth starting from.

    Attributes:
        kept: a subset of the candidates, in their order; empty is a legal choice.
        dropped: how many items of the reply were not candidates.
    """

    kept: tuple[ScoredFact, ...]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class RelationWeights:
    """The manager's weights for a question.

    Attributes:
        factors: β, each category summing to 1.
        passage_weight: the adaptive restart share of passages, in [0.01, 0.1].
        defaulted: names of what the reply left out or gave out of range, and was defaulted or clamped.
    """

    factors: RelationFactors
    passage_weight: float
    defaulted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NumberedPassage:
    """A passage as an agent sees it.

    Attributes:
        number: what an answer cites.
        id: of the passage.
        title: may be empty.
        text: all of it.
        source: the document that it stands in.
    """

    number: int
    id: str
    title: str
    text: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Citation:
    """One cited passage of an answer; the span (characters of the passage's text) where its words stand, if found."""

    number: int
    passage_id: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its sources.

    Attributes:
        text: the answer with citations such as ``[1]`` or ``[1, 3]``.
        plain_text: the same without citations.
        citations: one for each cited passage, in order of first appearance.
        refused: the passages do not hold the answer; then ``citations`` is empty.
        is_evidence: it quotes what bears on the question, and nobody wrote an answer.
        notes: what a reader should know of how the question was read.
    """

    text: str
    plain_text: str
    citations: tuple[Citation, ...]
    refused: bool = False
    is_evidence: bool = False
    notes: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that is to be completed from more passages.

    Attributes:
        text: the answer so far, with its citations.
        cited: numbers that it cites with good reason: they have to stay.
        follow_ups: the questions that the new passages were found with.
    """

    text: str
    cited: tuple[int, ...]
    follow_ups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """An answer, and what it was written from.

    Attributes:
        answer: with its citations.
        written_from: numbers of the passages that were looked at: all that were given, but for those without room.
        prompt: what a model was asked; empty where none was.
    """

    answer: Answer
    written_from: tuple[int, ...]
    prompt: str = ""


class Coverage(StrEnum):
    """How far an answer answers a question, or a component of it."""

    FULLY = "FULLY ANSWERED"
    EVIDENCE = "EVIDENCE, NOT JUDGED"
    """Sentences that bear on it were found by their words; nobody judged whether they answer it."""
    PARTIALLY = "PARTIALLY ANSWERED"
    NOT = "NOT ANSWERED"


class Structure(StrEnum):
    """Whether a question asks for one thing, however many steps that takes, or for several."""

    SINGLE = "single"
    MULTIPLE = "multiple"


@dataclass(frozen=True, slots=True)
class Component:
    """One thing that a question asks for.

    Attributes:
        text: in words of its own, or the whole question where that is single.
        coverage: how far the claims answer it.
        claims: numbers of the claims that are about it.
    """

    text: str
    coverage: Coverage
    claims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The verdict on one claim.

    Attributes:
        claim: its number.
        supported_by: numbers of passages that say what it says; empty where none does.
        relevant: whether it helps to answer the question; what does not is removed.
    """

    claim: int
    supported_by: tuple[int, ...]
    relevant: bool = True


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question about what is missing; it can be understood by itself.

    Attributes:
        question: what is asked.
        component: which component it is about, from 1.
    """

    question: str
    component: int


@dataclass(frozen=True, slots=True)
class Assessment:
    """The claim judge's assessment of an answer.

    Attributes:
        structure: of the question.
        components: one where the question is single, two or more where it is multiple.
        verdicts: one for each claim, in their order.
        follow_ups: for components that are not fully answered, the most needed first.
        dropped: how many follow-up questions of the reply were of no use: too many, repeated, about nothing missing.
    """

    structure: Structure
    components: tuple[Component, ...]
    verdicts: tuple[ClaimVerdict, ...]
    follow_ups: tuple[FollowUp, ...] = ()
    dropped: int = 0

    @property
    def coverage(self) -> Coverage:
        """How far the whole question is answered."""
        found = {component.coverage for component in self.components}
        return found.pop() if len(found) == 1 else Coverage.PARTIALLY


class Rewriter(Protocol):
    """Completes a question that leans on earlier turns of its conversation."""

    def rewrite(self, question: str, turns: Sequence[Turn], feedback: Feedback | None = None) -> Rewriting:
        """Return the reading of the question; ``turns`` are the earlier ones, the last one last.

        Raises MalformedReply.
        """
        ...


class FactFilter(Protocol):
    """Recognition memory: keeps the candidate facts that help to answer the question."""

    def choose(
        self, question: str, candidates: Sequence[ScoredFact], max_facts: int, feedback: Feedback | None = None
    ) -> FactChoice:
        """Return at most ``max_facts`` of the candidates. Raises MalformedReply."""
        ...


class Manager(Protocol):
    """Says which relation types matter for a question (β), and how much the passages do."""

    def weigh(self, question: str, feedback: Feedback | None = None) -> RelationWeights:
        """Return the weights of the question. Raises MalformedReply."""
        ...


class Answerer(Protocol):
    """Writes a cited answer from numbered passages, or says that they do not hold it."""

    def answer(self, question: str, passages: Sequence[NumberedPassage], feedback: Feedback | None = None) -> Answer:
        """Return the answer; its citations name only the given passages. Raises MalformedReply."""
        ...


class Predictor(Protocol):
    """Answers a question from one passage alone (RAGentA, agent 1)."""

    def predict(self, question: str, passage: NumberedPassage, feedback: Feedback | None = None) -> str:
        """Return the answer, or the step towards it, that the passage holds; empty where it holds none.

        Raises MalformedReply.
        """
        ...


class Judge(Protocol):
    """Says how far one passage supports an answer to a question (RAGentA, agent 2)."""

    def judge(
        self, question: str, passage: NumberedPassage, prediction: str, feedback: Feedback | None = None
    ) -> Judgement:
        """Return the score of a passage; ``prediction`` is what the predictor answered from it, or empty.

        Raises MalformedReply.
        """
        ...


class FinalPredictor(Protocol):
    """Writes the answer from the passages that were kept, every claim cited (RAGentA, agent 3)."""

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the answer; its citations name only the given passages, whose numbers may have gaps.

        Args:
            question: what is asked.
            passages: the best first.
            draft: what is to be completed; None for an answer from nothing.
            feedback: why the last reply was refused.

        Raises MalformedReply.
        """
        ...


class ClaimJudge(Protocol):
    """Checks an answer claim by claim, and says what the question still lacks (RAGentA, agent 4)."""

    def assess(
        self,
        question: str,
        claims: Sequence[Claim],
        passages: Sequence[NumberedPassage],
        max_follow_ups: int,
        feedback: Feedback | None = None,
    ) -> Assessment:
        """Return what holds of each claim, and how far the question is answered.

        Args:
            question: what is asked.
            claims: the sentences of the answer; none where it is a refusal.
            passages: those that the answer was written from.
            max_follow_ups: at most so many follow-up questions are returned.
            feedback: why the last reply was refused.

        Raises MalformedReply.
        """
        ...


class Extractor(Protocol):
    """Finds the entities and typed triples of one passage."""

    @property
    def name(self) -> str:
        """Who extracts; stored with each passage."""
        ...

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return what the passage says. Raises MalformedReply."""
        ...
