"""Names as runs of capitalised words, in any script that has capitals."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from agents.offline.words import FUNCTION_WORDS, word_set
from graph.dates import is_date

LONGEST_NAME = 10
"""Words in the longest name; a longer run of capitalised words is a heading or noise."""

_CONNECTORS = word_set(
    "of the de del della di da do dos das du des la le les van von der den ter el al bin ibn y e for & und et zu"
)
_ABBREVIATIONS = word_set("st dr mr mrs ms jr sr mt ft no prof rev gen col capt sgt lt hon")
_OPENERS = FUNCTION_WORDS | word_set(
    "however according following early former located founded born based originally currently today thus hence "
    "additionally furthermore moreover meanwhile instead later various numerous due together known set starring "
    "written directed released produced published part previously eventually"
)
_GOVERNING_NOUNS = word_set(
    "university college school academy institute museum library church cathedral court bank house senate parliament "
    "council ministry department office bureau board party republic kingdom empire union federation association "
    "society league order bishop duke earl king queen prince battle treaty act hall county city town district province "
    "region state minister secretary president governor leader gulf bay cape sea isle lake"
)
_ARTICLES = frozenset(("the", "a", "an"))
_YEAR_INTRODUCERS = _ARTICLES | {"at", "its", "their", "his", "her"}
_ADJECTIVE_ENDINGS = ("-born", "-based", "-speaking", "-language", "-style", "-era", "-led", "-owned")
_NO_NAMES = (
    _ABBREVIATIONS
    | FUNCTION_WORDS
    | word_set("monday tuesday wednesday thursday friday saturday sunday ii iii iv vi vii viii")
)
_QUOTES = "\"“„«「『《'‘"


class Token(NamedTuple):
    """A word, or one of the marks that shape a clause; ``lower`` is the word in lower case."""

    text: str
    lower: str
    start: int
    end: int
    is_word: bool


class NameFinder:
    """Finds the names among a text's tokens.

    Args:
        text: the text itself.
        tokens: its tokens, in order.
        sentence_starts: offsets at which sentences start.
        blocked: a flag a token: it belongs to a date, a quoted title or the like, and to no name.
        title: the name the text is about; a sentence that opens with it keeps its article.
    """

    def __init__(
        self, text: str, tokens: Sequence[Token], sentence_starts: Set[int], blocked: Sequence[bool], title: str
    ) -> None:
        self._text = text
        self._tokens = tokens
        self._starts = sentence_starts
        self._title = title.casefold()
        self._capital = [
            token.is_word and not taken and _is_capitalised(token) for token, taken in zip(tokens, blocked, strict=True)
        ]
        self._numeral = [
            not taken and token.text.isdecimal() and len(token.text) <= 3
            for token, taken in zip(tokens, blocked, strict=True)
        ]
        opening = [self._opens_sentence(token) for token in tokens]
        self._opening = opening
        self._lower_words = {token.lower for token in tokens if token.text == token.lower}
        self._inner_capitals = {
            token.lower
            for token, capital, opens in zip(tokens, self._capital, opening, strict=True)
            if capital and not opens
        }

    def find(self) -> tuple[list[tuple[int, int]], int]:
        """Return (start, end) of each name in the text, in order, and how many runs were too long to be one."""
        names = []
        overlong = 0
        position = 0
        while position < len(self._tokens):
            if not self._capital[position]:
                position += 1
                continue
            end = self._run_end(position)
            first = self._trimmed(position, end)
            if end - first > LONGEST_NAME:
                overlong += 1
            elif first < end and self._is_name(first, end):
                names.append((self._tokens[self._with_year(first, end)].start, self._end_offset(end - 1)))
            position = end
        return names, overlong

    def _opens_sentence(self, token: Token) -> bool:
        return token.start in self._starts or self._text[token.start - 1 : token.start] in _QUOTES

    def _run_end(self, first: int) -> int:
        end = first + 1
        while (extended := self._extension(first, end)) > end:
            end = extended
        return end

    def _extension(self, first: int, end: int) -> int:
        """The end of a run that goes on with a capitalised word, a number, or connectors and a capitalised word.

        After several words "of" goes on only with a noun that takes it: "Supreme Court of India" is one name, the
        singer "of" a band is two.
        """
        if end + 1 < len(self._tokens) and self._tokens[end].text == "," and self._tokens[end + 1].text in ("Jr", "Sr"):
            return end + 2
        if end >= len(self._tokens) or not self._is_joined(end):
            return end
        if self._capital[end] or self._numeral[end]:
            return end + 1
        previous = self._tokens[end - 1].lower
        if self._tokens[end].text == "of" and end - first > 1 and previous not in _GOVERNING_NOUNS:
            return end
        after = end
        while after < min(len(self._tokens), end + 3) and self._tokens[after].text in _CONNECTORS:
            after += 1
            if after >= len(self._tokens) or not self._is_joined(after):
                return end
        return after + 1 if after > end and self._capital[after] else end

    def _is_joined(self, position: int) -> bool:
        """Whether only a space, or the stop of an initial or abbreviation, stands before a token."""
        previous, token = self._tokens[position - 1], self._tokens[position]
        gap = self._text[previous.end : token.start]
        if token.start in self._starts:
            return False
        if gap in (". ", "."):
            return len(previous.text) == 1 or "." in previous.text or previous.lower in _ABBREVIATIONS
        return gap in (" ", "\u00a0", " & ")

    def _trimmed(self, first: int, end: int) -> int:
        """The start of a run without the function words and openers that a sentence puts before a name."""
        if not self._opening[first]:
            return first
        while first < end:
            token = self._tokens[first]
            is_letter = len(token.text) == 1 and first + 1 < end and self._is_plain_space(first + 1)
            is_opener = token.lower in _OPENERS and not self._article_belongs(first, end)
            if self._capital[first] and not is_letter and not is_opener:
                return first
            first += 1
        return first

    def _article_belongs(self, position: int, end: int) -> bool:
        """Whether the article that opens a sentence is part of the name, as the title has it."""
        token = self._tokens[position]
        if token.lower not in _ARTICLES or position + 1 >= end:
            return False
        return self._title.startswith(self._text[token.start : self._tokens[position + 1].end].casefold())

    def _is_name(self, first: int, end: int) -> bool:
        token = self._tokens[first]
        if end - first > 1:
            return True
        if len(token.text) < 2 or token.lower in _NO_NAMES or is_date(token.text):
            return False
        if not self._opening[first] or token.lower in self._inner_capitals:
            return True
        is_compound = token.text.rpartition("-")[2].islower() and "-" in token.text
        return (
            not is_compound and token.lower not in self._lower_words and not token.lower.endswith(("ly", "ing", "ed"))
        )

    def _with_year(self, first: int, end: int) -> int:
        """The start of a name with the year before it: "the 1998 Winter Fair", not "in 2007 Nissan"."""
        if first < 2 or not self._is_plain_space(first):
            return first
        year = self._tokens[first - 1].text
        introduced = self._tokens[first - 2].lower in _YEAR_INTRODUCERS and self._is_plain_space(first - 1)
        if not (introduced and len(year) == 4 and year.isdecimal()):
            return first
        describes_noun = (
            end < len(self._tokens) and self._is_plain_space(end) and self._tokens[end].lower not in FUNCTION_WORDS
        )
        return first if describes_noun else first - 1

    def _end_offset(self, position: int) -> int:
        """Where a name ends, the last stop of "U.S." included."""
        token = self._tokens[position]
        is_dotted = "." in token.text and self._text[token.end : token.end + 1] == "."
        return token.end + 1 if is_dotted and len(token.text.rpartition(".")[2]) == 1 else token.end

    def _is_plain_space(self, position: int) -> bool:
        return self._text[self._tokens[position - 1].end : self._tokens[position].start] == " "


def _is_capitalised(token: Token) -> bool:
    return token.text[0] != token.lower[0] and not token.text.endswith(_ADJECTIVE_ENDINGS)
