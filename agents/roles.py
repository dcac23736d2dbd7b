"""The values that agents share."""

from __future__ import annotations

from dataclasses import dataclass

REFUSAL = "NOT IN THE PASSAGES"
"""The whole of an answer that says that the passages do not hold it."""

DEFAULT_N = 0.5
"""The number of standard deviations between the mean of the judgements and the threshold below it."""


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
        is_evidence: it quotes what bears on the question; no answer was written.
        notes: what a reader should know of how the question was read.
        beyond: passages that it cites beside those that it was given: other rows of a table, numbered on.
        dropped: numbers that its model cited and no passage has: its text has no such mark any more.
        cut_at: the tokens at which its model's words were cut; None where they were not.
    """

    text: str
    plain_text: str
    citations: tuple[Citation, ...]
    refused: bool = False
    is_evidence: bool = False
    notes: tuple[str, ...] = ()
    beyond: tuple[NumberedPassage, ...] = ()
    dropped: tuple[int, ...] = ()
    cut_at: int | None = None


def refusal() -> Answer:
    """Return the answer that says that the passages do not hold it."""
    return Answer(REFUSAL, REFUSAL, (), refused=True)
