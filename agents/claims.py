"""The claims of an answer: its sentences, each with the passages it cites; taken apart and put together without loss."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of an answer.

    Attributes:
        number: from 1, in the order of the answer.
        text: the sentence without its citations.
        cited: numbers of the passages that it cites, each once, in order; empty for an uncited sentence.
        start: where it begins in the answer, in characters.
        end: where it ends, its citations included: those after its full stop belong to it.
    """

    number: int
    text: str
    cited: tuple[int, ...]
    start: int
    end: int
