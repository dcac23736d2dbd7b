"""The rows of a table that a question asks to list or to count: those whose cells are what it names.

Nothing is guessed: every word of the question has to be a whole cell of one column, or a word of a column's or the
table's name. "In Germany or France", "before 2020" and "most" are no such words, so what holds them is not counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter

from agents.offline.alignment import HELD, Excerpt, Sentence, naming_cell, passage_sentences, word_likeness
from agents.offline.questions import AnswerKind, ParsedQuestion, Term
from agents.offline.words import function_words, stem, word_set, word_spans, words_of
from agents.roles import NumberedPassage
from graph.sentences import KeyValue, key_values

Words = tuple[str, ...]

OtherRows = Callable[[str], Sequence[NumberedPassage]]
"""Returns all passages of a source that may be seen, so that a table is whole."""

MOST_LISTED = 50
"""Rows that are listed at most; of more, the first ones by name."""

_ASKS = re.compile(
    r"^\W*(?:and |please )?(?:which|what|list|name|how many|wie ?viele|welche[nrms]?|nenne)\b", re.IGNORECASE
)
_UNCOUNTED = word_set(
    "not no nor without except other others but or more most less least fewer over under above below before after"
    " since until between than only still yet longer first last average total sum nicht kein keine keinen ohne außer"
    " oder mehr meisten weniger wenigsten über unter vor nach seit bis zwischen als nur noch erste letzte"
)
_PLACING = word_set(
    "lie lies located stored kept based live lives work works sit sits belong belongs exist come comes liegen liegt "
    "lagern lagert stehen steht befinden befindet sitzen sitzt arbeiten arbeitet gehören gehört kommen gibt"
)


@dataclass(frozen=True, slots=True)
class Listing:
    """The rows that a question asks for.

    Attributes:
        count: how many they are, of how many, which cells they share, and how many of them are listed if not all.
        excerpts: one a row, by their names; `MOST_LISTED` at most.
    """

    count: str
    excerpts: tuple[Excerpt, ...]


class _Table:
    """Rows of one source that begin with the same column, each with its cells by column.

    Attributes:
        values: the columns in which each cell stands, by its words.
    """

    def __init__(self, rows: Sequence[tuple[Sentence, Sequence[KeyValue]]]) -> None:
        first, cells = rows[0]
        self.source = first.passage.source
        self.naming = naming_cell(cells, first.passage.title).key
        self.rows = [(sentence, {cell.key: cell.value for cell in cells}) for sentence, cells in rows]
        self.name = f"{re.sub(r'[._-]', ' ', self.source)} {first.heading}"
        self.values: dict[Words, set[str]] = defaultdict(set)
        for _, by_column in self.rows:
            for column, value in by_column.items():
                self.values[_words(value)].add(column)


def list_rows(asked: ParsedQuestion, sentences: Iterable[Sentence], other_rows: OtherRows) -> Listing | None:
    """Return the rows that a question asks to list or count; None where it asks for none, or not of one table alone.

    Args:
        asked: the question.
        sentences: those found; the tables of their rows are read whole.
        other_rows: reads them.
    """
    words = [word for word, _, _ in word_spans(asked.text)]
    if not _ASKS.match(asked.text) or asked.choices or not _UNCOUNTED.isdisjoint(words):
        return None
    sources = dict.fromkeys(each.passage.source for each in sentences if each.is_row and each.passage.source)
    tables = chain.from_iterable(_tables(other_rows(source)) for source in sources)
    listings = [listing for table in tables if (listing := _listed(asked, words, table)) is not None]
    return listings[0] if len(listings) == 1 else None


def _tables(passages: Sequence[NumberedPassage]) -> Iterator[_Table]:
    grouped: dict[str, list[tuple[Sentence, Sequence[KeyValue]]]] = defaultdict(list)
    for sentence in passage_sentences(passages):
        cells = key_values(sentence.text, 0, len(sentence.text)) if sentence.is_row else []
        if len(cells) > 1:
            grouped[cells[0].key].append((sentence, cells))
    for rows in grouped.values():
        if len(rows) > 1:
            yield _Table(rows)


def _listed(asked: ParsedQuestion, words: Sequence[str], table: _Table) -> Listing | None:
    conditions, covered = _conditions(words, table, asked.language)
    rest = [term for term in asked.terms if term.text not in covered and term.text not in _PLACING]
    # The first term says what the rows are: by the column that names them, or the name of the table.
    if conditions is None or not rest or not _is_held(rest[0], f"{table.naming} {table.name}", asked.language):
        return None
    names = " ".join([table.naming, table.name, *conditions])
    if not all(_is_held(term, names, asked.language) for term in rest[1:]):
        return None
    wanted = {column: _words(value) for column, value in conditions.items()}
    rows = [
        (cells.get(table.naming, "").casefold(), sentence)
        for sentence, cells in table.rows
        if all(_words(cells.get(column, "")) == words for column, words in wanted.items())
    ]
    if not rows or (asked.kind is not AnswerKind.COUNT and not conditions and len(rows) < 2):
        return None
    count = f"{len(rows):,} rows in {table.source}"
    if conditions:
        cells = ", ".join(f"{column}: {value}" for column, value in conditions.items())
        has = "has" if len(rows) == 1 else "have"
        count = f"{len(rows):,} of the {len(table.rows):,} rows of {table.source} {has} {cells}"
    if len(rows) > MOST_LISTED:
        count += f"; the first {MOST_LISTED} by name"
    ordered = sorted(rows, key=itemgetter(0))[:MOST_LISTED]
    return Listing(count, tuple(Excerpt((sentence,), sentence) for _, sentence in ordered))


def _conditions(words: Sequence[str], table: _Table, language: str) -> tuple[dict[str, str] | None, set[str]]:
    """The cells that a question names, by their columns, and the words that name them.

    None in their place where a cell may be of two columns, or a column has two of them, or a number stands without the
    name of its column.
    """
    longest = max(map(len, table.values), default=0)
    conditions: dict[str, str] = {}
    covered: set[str] = set()
    asked = {stem(word, language) for word in words}
    place = 0
    while place < len(words):
        ends = range(min(place + longest, len(words)), place, -1)
        cells = (end for end in ends if tuple(words[place:end]) in table.values)
        end = next((end for end in cells if not function_words(language).issuperset(words[place:end])), 0)
        if not end:
            place += 1
            continue
        named = tuple(words[place:end])
        columns = table.values[named]
        named_columns = {column for column in columns if asked & {stem(word, language) for word in words_of(column)}}
        is_number = all(any(map(str.isdigit, word)) for word in named)
        columns = named_columns if named_columns or is_number else columns
        column = next(iter(columns)) if len(columns) == 1 else ""
        if not column or column in conditions:
            return None, covered
        conditions[column] = next(cells[column] for _, cells in table.rows if _words(cells.get(column, "")) == named)
        covered.update(named)
        place = end
    return conditions, covered


def _is_held(term: Term, name: str, language: str) -> bool:
    known = sorted(words_of(name))
    return term.stem in {stem(word, language) for word in known} or bool((word_likeness([term], known) >= HELD).any())


def _words(text: str) -> Words:
    return tuple([word for word, _, _ in word_spans(text)])
