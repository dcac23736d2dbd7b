"""The sentences, items and rows of passages that may be evidence, with the headings that they stand under."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from agents.answers.citations import quotable, strip_citations
from agents.roles import NumberedPassage
from graph.sentences import text_units
from graph.text import title_name, tokens

LONGEST_QUOTE = 1_000
"""Characters of a sentence that are read and quoted; text without any stop would be a sentence of pages."""

LONGEST_EXCERPT = 300
"""Characters of a sentence together with its neighbours."""


@dataclass(frozen=True, eq=False)
class Sentence:
    """A sentence, an item of a list or a row of a table; each is itself alone.

    Attributes:
        passage: which it stands in.
        rank: the place of its passage, from 0.
        start: where it begins in the passage's text.
        end: where it ends.
        heading: the heading above it, and the question or the opening of the list that it follows.
        paragraph: the number of its paragraph, or of its list below an opening.
        is_row: whether it is a row of named cells, which stands for itself.
    """

    passage: NumberedPassage
    rank: int
    start: int
    end: int
    heading: str
    paragraph: int
    is_row: bool

    @cached_property
    def text(self) -> str:
        """The sentence as it stands in the passage."""
        return self.passage.text[self.start : self.end]

    @cached_property
    def context(self) -> str:
        """The title and heading that it stands under."""
        return f"{title_name(self.passage.title)}. {self.heading}"

    @cached_property
    def words(self) -> str:
        """Its words and those of its context, in lower case, with a space around each."""
        return f" {' '.join(tokens(f'{self.context} {self.text}'))} "


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One sentence, or neighbours of one paragraph, as they are quoted."""

    sentences: tuple[Sentence, ...]

    @property
    def passage(self) -> NumberedPassage:
        """The passage that it is taken from."""
        return self.sentences[0].passage

    @property
    def start(self) -> int:
        """Where it begins in the passage's text."""
        return self.sentences[0].start

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.sentences[-1].end

    @property
    def read(self) -> str:
        """All that is shown of it, heading included."""
        return f"{self.sentences[0].context} {self.passage.text[self.start : self.end]}"

    @property
    def names(self) -> list[str]:
        """The title and the heading that it stands under, but for those that it says itself.

        A sentence says a title only where it opens with it: "It was founded by Soichiro Honda" says whom, not what.
        """
        words, first = tokens(self.passage.text[self.start : self.end]), self.sentences[0]
        title, heading = title_name(self.passage.title), quotable(first.heading).strip(" :")
        holds_title = set(words).issuperset(tokens(title)) if first.is_row else _opens_with(words, tokens(title))
        names = [] if holds_title else [title]
        if heading != title and not set(words).issuperset(tokens(heading)):
            names.append(heading)
        return names

    @property
    def quote(self) -> str:
        """What is shown of it: its words behind those names."""
        return ": ".join([*self.names, " ".join(quotable(sentence.text) for sentence in self.sentences)])


def _opens_with(words: Sequence[str], name: Sequence[str]) -> bool:
    """Tell whether a name stands at the start of words, behind two at most: "The first Tacoma Narrows Bridge"."""
    return any(words[start : start + len(name)] == name for start in range(3))


def passage_sentences(passages: Sequence[NumberedPassage]) -> list[Sentence]:
    """Return what may be evidence, in order: no headings, questions or openings of lists, no citations alone."""
    return [found for rank, passage in enumerate(passages) for found in _sentences(rank, passage)]


def _sentences(rank: int, passage: NumberedPassage) -> Iterator[Sentence]:
    text = passage.text
    heading = opening = ""
    paragraph = end = 0
    units = text_units(text)
    for unit, following in zip_longest(units, units[1:]):
        said = text[unit.start : unit.end].rstrip(' *_"”»')
        is_item = unit.opens != unit.start
        paragraph += (is_item and not opening.endswith(":")) or "\n\n" in text[end : unit.opens]
        end = unit.end
        if unit.is_heading:
            heading, opening = said, ""
        elif said.endswith("?") or (said.endswith(":") and following and following.opens != following.start):
            opening = said
        elif strip_citations(said).strip():
            last = _quote_end(text, unit.start, unit.end)
            is_row = said.count(": ") > 1 and "; " in said
            around = " ".join(filter(None, (heading, opening)))
            yield Sentence(passage, rank, unit.start, last, around, paragraph, is_row)
            opening = said if said.endswith(":") else opening


def _quote_end(text: str, start: int, end: int) -> int:
    """Return where the quote of a sentence ends: between two of its words, where it is too long."""
    longest = start + LONGEST_QUOTE
    if end <= longest:
        return end
    space = text.rfind(" ", start, longest)
    return space if space > start else longest


def excerpt_around(place: int, sentences: Sequence[Sentence], worth: NDArray[np.float64]) -> Excerpt:
    """Return a sentence with its neighbours of the same paragraph, the worthier first, up to `LONGEST_EXCERPT`."""
    first = last = place
    size = sentences[place].end - sentences[place].start
    while True:
        beside = [
            near
            for near in (last + 1, first - 1)
            if 0 <= near < len(sentences)
            and _belongs(sentences[near], sentences[place])
            and size + sentences[near].end - sentences[near].start <= LONGEST_EXCERPT
        ]
        if not beside:
            return Excerpt(tuple(sentences[first : last + 1]))
        near = max(beside, key=lambda each: float(worth[each]))
        size += sentences[near].end - sentences[near].start
        first, last = min(first, near), max(last, near)


def _belongs(one: Sentence, other: Sentence) -> bool:
    where = (one.passage.id, one.paragraph, one.heading)
    return not one.is_row and not other.is_row and where == (other.passage.id, other.paragraph, other.heading)
