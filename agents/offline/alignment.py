"""How well sentences hold the terms of a question: by stems, spelling, dates, and the meaning of single words.

The sentences are those of passages, with items and rows, and with the headings that they stand under.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, starmap, zip_longest

import numpy as np
from numpy.typing import NDArray

from agents.answers.citations import quotable, strip_citations
from agents.offline.questions import ParsedQuestion, Role, Term, holds_kind
from agents.offline.words import days_in, function_words, stem, words_of
from agents.roles import NumberedPassage
from graph.embedding.bert import word_vectors
from graph.embedding.embeddings import TextCache
from graph.errors import DependencyMissing
from graph.sentences import KeyValue, key_values, text_units
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


_STOPS = tuple(".!?:…。！？।؟")
_CLOSERS = " \"'”’»)*_"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One sentence, or neighbours of one paragraph, as they are quoted.

    Attributes:
        sentences: in the order of the text.
        key: the one that they are quoted for; None where that is not known.
        column: of a row, the one that is asked for; empty where none is.
    """

    sentences: tuple[Sentence, ...]
    key: Sentence | None = None
    column: str = ""

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
        said = tokens(title)
        # Two words may stand before a title: "The first Tacoma Narrows Bridge".
        opens = [words[start : start + len(said)] for start in range(3)]
        holds_title = set(words).issuperset(said) if first.is_row else said in opens
        names = [] if holds_title else [title]
        if heading != title and not set(words).issuperset(tokens(heading)):
            names.append(heading)
        return names

    def quote(self, citation: str = "", *, marked: bool = False) -> str:
        """Return what is shown of it: its words behind those names, with the citation after each of its sentences.

        Lines without a stop, such as those of a data sheet, are cited together.

        Args:
            citation: as it is written.
            marked: whether the sentence or cell that it is quoted for stands in bold, where there are others.
        """
        if self.sentences[0].is_row and (row := _row_words(self.sentences[0], self.column if marked else "")):
            return ": ".join([*self.names, f"{row}{citation}"])
        quote = ""
        for each, following in zip_longest(self.sentences, self.sentences[1:]):
            words = quotable(each.text)
            shown = f"**{words}**" if marked and each is self.key and len(self.sentences) > 1 else words
            if following is None or words.rstrip(_CLOSERS).endswith(_STOPS):
                quote += f"{shown}{citation} "
            else:
                quote += f"{shown}; "
        return ": ".join([*self.names, quote.rstrip()])


_LONGEST_ROW_NAME = 60


def naming_cell(cells: Sequence[KeyValue], title: str) -> KeyValue:
    """Return the cell that names a row: that of the title, else the first one."""
    return next((cell for cell in cells if cell.value.casefold() == title.casefold()), cells[0])


def _row_words(row: Sentence, column: str) -> str:
    """A row by its name, with its other cells behind it, one column in bold; empty where it cannot be taken apart."""
    cells = key_values(row.text, 0, len(row.text))
    if len(cells) < 2 or len((named := naming_cell(cells, row.passage.title)).value) > _LONGEST_ROW_NAME:
        return ""
    parts = [(quotable(f"{cell.key}: {cell.value}"), cell.key == column) for cell in cells if cell is not named]
    others = "; ".join([f"**{words}**" if is_asked else words for words, is_asked in parts])
    return f"{quotable(named.value)}: {others}"


def passage_sentences(passages: Sequence[NumberedPassage]) -> list[Sentence]:
    """Return what may be evidence, in order: no headings, questions or openings of lists, no citations alone."""
    return [*chain.from_iterable(starmap(_sentences, enumerate(passages)))]


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
            return Excerpt(tuple(sentences[first : last + 1]), sentences[place])
        near = max(beside, key=worth.__getitem__)
        size += sentences[near].end - sentences[near].start
        first, last = min(first, near), max(last, near)


def _belongs(one: Sentence, other: Sentence) -> bool:
    where = (one.passage.id, one.paragraph, one.heading)
    return not one.is_row and not other.is_row and where == (other.passage.id, other.paragraph, other.heading)


Embed = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to unit vectors, one row a text."""

Row = NDArray[np.float64]

UNLIKE, ALIKE = 0.2, 0.6
"""Cosines of two words' vectors: at the first or below they mean different things, at the second or above the same."""

PARAPHRASED, PREFIXED, MISSPELT, ABBREVIATED = 0.9, 0.85, 0.9, 0.6
"""The most that a word holds of another one: by its meaning, by a common beginning, by a letter that differs, as its
first three letters."""

HELD = 0.85
"""A name, number or date is held from here on."""

CONTEXT, BEFORE, AROUND = 0.9, 0.7, 0.45
"""The weight of a term that stands not in the sentence but in its title or heading, in the sentences before it in its
paragraph, or elsewhere in its passage."""

ASKED_WEIGHT, NAME_WEIGHT = 1.5, 1.3
"""The weight of what is asked for, and of names and numbers, beside their rarity."""

OWN, LIKENESS, OF_KIND, RANK, SAYING_NOTHING = 0.3, 0.8, 0.35, -0.02, -0.3
"""Additions to the worth of a sentence beside the terms that it holds: holding them itself, its cosine, the kind of
answer, the rank of its passage, and words that are the question's alone."""

PROMISE_OF_KIND = 0.2
"""The worth of the kind of answer before cosines are known."""

MOST_EMBEDDED = 16
"""Sentences that are compared with the question by their meaning as a whole: those that hold most of its terms."""

_SHORTEST_NAME = 4

_WORDS = TextCache(word_vectors, 50_000)


class Alignment:
    """A question beside the sentences that may answer it.

    Attributes:
        question: taken apart.
        sentences: all those at hand.
        passages: that they stand in, by id.
        weights: of the terms, by their rarity; they sum to 1.
        own: how far each sentence holds each term in its own words, title or heading, shape (sentences, terms).
        near: the same with the words around it.
        cosines: of each sentence with the question; 0 where it was not embedded.
        of_kind: whether each sentence holds the kind of answer.
        anywhere: the same with all of its passage.
        ranks: of the sentences' passages.
        worth: how well each sentence bears on the question.
        holding: the words that hold any term.
        misspelt: names of the question that stand spelt otherwise, and how.
    """

    def __init__(self, question: ParsedQuestion, sentences: Sequence[Sentence], embed: Embed | None) -> None:
        self.question = question
        self.sentences = sentences
        texts = [words_of(sentence.text) for sentence in sentences]
        context = [words_of(sentence.context) for sentence in sentences]
        self.passages = {sentence.passage.id: sentence.passage for sentence in sentences}
        around = {key: words_of(f"{p.title} {p.source} {p.text}") for key, p in self.passages.items()}
        words = sorted(frozenset[str]().union(*around.values(), *context, *texts))
        spelt, self.misspelt = _spelt(question, words)
        likeness = np.maximum(spelt, word_likeness(question.terms, words))
        places = {word: place for place, word in enumerate(words)}

        def cover(word_sets: Iterable[frozenset[str]]) -> Row:
            rows = [likeness[:, [*map(places.__getitem__, each)]].max(axis=1, initial=0.0) for each in word_sets]
            return np.array(rows, dtype=np.float64).reshape(len(rows), len(question.terms))

        in_text, in_context = cover(texts), cover(context)
        by_passage = dict(zip(around, cover(around.values()), strict=True))
        self.anywhere = np.array([by_passage[sentence.passage.id] for sentence in sentences]).reshape(in_text.shape)
        self._add_dates(in_text)
        self.own = np.maximum(in_text, CONTEXT * in_context)
        before = _before(sentences, in_text)
        self.near = np.maximum.reduce([self.own, BEFORE * before, AROUND * self.anywhere])
        self.weights = _weights(question.terms, in_text)
        self.of_kind = np.array([holds_kind(s.text, question.kind, question.words) for s in sentences], dtype=bool)
        self.cosines = self._cosines(self.lexical(self.weights) + PROMISE_OF_KIND * self.of_kind, embed)
        self.holding = (
            {words[column] for column in np.flatnonzero((likeness >= ABBREVIATED).any(axis=0))} if words else set()
        )
        known = question.words.union(self.misspelt.values(), function_words(question.language))
        says_nothing = np.array([text <= known for text in texts], dtype=bool)
        self.ranks = np.array([sentence.rank for sentence in sentences], dtype=np.float64)
        self.worth: Row = self.bearing(self.weights) + RANK * self.ranks + SAYING_NOTHING * says_nothing

    def lexical(self, weights: Row) -> Row:
        """Return how far each sentence holds the terms, weighed so, its own words counting more."""
        return np.asarray(self.near @ weights + OWN * (self.own @ weights))

    def bearing(self, weights: Row) -> Row:
        """Return how well each sentence bears on the question, its terms weighed so, wherever its passage ranks."""
        return np.asarray(self.lexical(weights) + LIKENESS * self.cosines + OF_KIND * self.of_kind)

    def _add_dates(self, in_text: Row) -> None:
        """Dates are compared as such, whatever their notation."""
        for column, term in enumerate(self.question.terms):
            if term.day is None:
                continue
            parts = [part for part in term.day if part]
            for row, sentence in enumerate(self.sentences):
                for cells, text in ((in_text, sentence.text), (self.anywhere, sentence.passage.text)):
                    if any(list(day[: len(parts)]) == parts for day in days_in(text)):
                        cells[row, column] = 1.0

    def _cosines(self, promise: Row, embed: Embed | None) -> Row:
        cosines = np.zeros(len(self.sentences))
        likely = np.argsort(-promise, kind="stable")[:MOST_EMBEDDED]
        if embed is not None and len(likely):
            texts = [f"{self.sentences[place].context}: {self.sentences[place].text}" for place in likely]
            vectors = embed([self.question.text, *texts])
            cosines[likely] = vectors[1:] @ vectors[0]
        return cosines


def _before(sentences: Sequence[Sentence], in_text: Row) -> Row:
    """The terms that the two sentences before each one hold, within its paragraph."""
    before = np.zeros_like(in_text)
    for place, sentence in enumerate(sentences):
        for back in range(max(0, place - 2), place):
            other = sentences[back]
            if (other.passage.id, other.paragraph) == (sentence.passage.id, sentence.paragraph):
                before[place] = np.maximum(before[place], in_text[back])
    return before


def _weights(terms: Sequence[Term], in_text: Row) -> Row:
    """The rarity of each term among the sentences, as shares of 1."""
    if not terms:
        return np.zeros(0)
    holding = (in_text >= 0.8).sum(axis=0)
    rarity = np.log(1 + len(in_text) / (holding + 0.5))
    boost = [ASKED_WEIGHT if t.is_asked else 1.0 if t.role is Role.WORD else NAME_WEIGHT for t in terms]
    weighed = rarity * np.array(boost)
    return np.asarray(weighed / weighed.sum()) if weighed.sum() else weighed


def _spelt(question: ParsedQuestion, words: Sequence[str]) -> tuple[Row, dict[str, str]]:
    """How far each word is each term by its letters, shape (terms, words), and the names that are spelt otherwise."""
    stems = [stem(word, question.language) for word in words]
    spelt = np.zeros((len(question.terms), len(words)))
    misspelt: dict[str, str] = {}
    for row, term in enumerate(question.terms):
        spelt[row] = [_spelling(term, word, root) for word, root in zip(words, stems, strict=True)]
        if term.role is Role.NAME and not (spelt[row] == 1.0).any() and len(term.text) >= _SHORTEST_NAME:
            for column, word in enumerate(words):
                if _differs_little(term.text, word):
                    spelt[row, column] = MISSPELT
                    misspelt[term.text] = word
    return spelt, misspelt


def _spelling(term: Term, word: str, root: str) -> float:
    """How far a word is a term by its letters: in whole, by its stem, by its beginning, or as an abbreviation."""
    text = term.text
    if word == text:
        return 1.0
    if term.role in (Role.NUMBER, Role.DATE):
        return 0.0
    if root == term.stem:
        return 1.0
    if len(word) == 3:
        return ABBREVIATED if term.role is Role.WORD and len(text) > 6 and text.startswith(word) else 0.0
    shared = _shared(word, text)
    return PREFIXED if shared >= max(4, 0.75 * min(len(word), len(text))) else 0.0


def word_likeness(terms: Sequence[Term], words: Sequence[str]) -> Row:
    """How near words come to plain terms in meaning, from 0 to `PARAPHRASED`.

    Zeros where the packaged vectors are not installed.
    """
    if not terms or not words:
        return np.zeros((len(terms), len(words)))
    try:
        cosines = _WORDS.embed([term.text for term in terms]) @ _WORDS.embed(words).T
    except DependencyMissing:
        return np.zeros((len(terms), len(words)))
    cosines[[term.role is not Role.WORD for term in terms]] = 0.0
    return np.clip((cosines.astype(np.float64) - UNLIKE) / (ALIKE - UNLIKE), 0.0, PARAPHRASED)


def _shared(one: str, other: str) -> int:
    """How many letters two words begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _differs_little(name: str, word: str) -> bool:
    """Tell whether a word is another name but for one letter: changed, added or left out."""
    shared = _shared(name, word)
    rest, other = name[shared:], word[shared:]
    is_near = rest[1:] == other[1:] or rest[1:] == other or rest == other[1:]
    return is_near and len(word) >= _SHORTEST_NAME and word[0].isalpha()
