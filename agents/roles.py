"""What each agent is asked and must answer; a chat model and an offline twin implement every role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from graph.schema import Extraction, Passage, RelationFactors, ScoredFact


@dataclass(frozen=True, slots=True)
class Feedback:
    """Why the last reply was refused, fed back into the next prompt.

    Attributes:
        reason: what was wrong with the reply.
        raw: the reply as it came.
    """

    reason: str
    raw: str


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
    """What the manager says about a question.

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
    """A passage as the answerer sees it; ``number`` is what the answer cites."""

    number: int
    id: str
    title: str
    text: str


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
    """

    text: str
    plain_text: str
    citations: tuple[Citation, ...]
    refused: bool = False


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


class Extractor(Protocol):
    """Finds the entities and typed triples of one passage."""

    @property
    def name(self) -> str:
        """Who extracts; stored with each passage."""
        ...

    def extract(self, passage: Passage, feedback: Feedback | None = None) -> Extraction:
        """Return what the passage says. Raises MalformedReply."""
        ...
