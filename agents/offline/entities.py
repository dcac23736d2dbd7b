"""Entities in a text: names in any script, names within names, quoted titles, dates and quantities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain, pairwise
from operator import attrgetter
from typing import NamedTuple

import regex

from agents.offline.words import FUNCTION_WORDS, word_set
from graph.sentences import KeyValue, key_values, sentence_spans
from graph.text import date_spans, is_date, is_unspaced

LONGEST_NAME = 10
"""Words in the longest name; a longer run of capitalised words is a heading or noise."""

CONNECTORS = word_set(
    "of the de del della di da do dos das du des la le les van von der den ter el al bin ibn y e for & und et zu"
)
_HONORIFICS = word_set("dr mr mrs ms prof rev gen col capt sgt lt hon shri smt")
_ABBREVIATIONS = _HONORIFICS | word_set("st jr sr mt ft no vol rd ave blvd v vs op")
_OPENERS = FUNCTION_WORDS | word_set(
    "however according following early former located founded born based originally currently today thus hence "
    "additionally furthermore moreover meanwhile instead later various numerous due together known set starring "
    "written directed released produced published part previously eventually "
    "besides despite unlike amid among whilst prior aside whereas"
)
_LONGEST_RANK = 4
_RANKS = _HONORIFICS | word_set(
    "president vice-president vice chancellor premier senator congressman congresswoman representative governor mayor "
    "minister secretary ambassador general admiral colonel major captain lieutenant sergeant corporal commander "
    "brigadier marshal professor doctor judge justice sir dame actor actress director coach"
)
GOVERNING_NOUNS = word_set(
    "university college school academy institute museum library church cathedral court bank house senate parliament "
    "council ministry department office bureau board party republic kingdom empire union federation association "
    "society league order bishop duke earl king queen prince battle treaty act hall county city town district province "
    "region state minister secretary president governor leader gulf bay cape sea isle lake premier mayor ambassador "
    "chancellor senator general emperor empress princess count countess baron archbishop cardinal patriarch pope "
    "archdiocese diocese duchy principality margraviate canton commonwealth medal observatory government siege "
    "conquest invasion faculty institution legislature archipelago strait port division gallery orchestra"
)
_JOINING_NOUNS = word_set(
    "ministry department office bureau institute board minister secretary commission committee faculty council agency"
)
_PURPOSE_NOUNS = _JOINING_NOUNS | word_set(
    "center centre foundation fund campaign alliance award prize network group party programme program project"
)
_ARTICLES = frozenset(("the", "a", "an"))
_BEHIND_VERBS = _ARTICLES | word_set("this that these those its his her their our my your it them any each every all")
_NUMBER_INTRODUCERS = _ARTICLES | {"at", "its", "their", "his", "her"}
PLACE_NOUNS = word_set(
    "street road avenue square park river island islands hospital airport station building bridge mountain award prize "
    "cup trophy hotel motors company corporation"
)
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


def _is_capitalised(token: Token) -> bool:
    is_capital = token.is_word and token.text[0] != token.lower[0]
    return is_capital and not token.text.endswith(_ADJECTIVE_ENDINGS)


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
        self._capital = [not taken and _is_capitalised(token) for token, taken in zip(tokens, blocked, strict=True)]
        self._numeral = [
            not taken and token.text.isdecimal() and len(token.text) <= 3
            for token, taken in zip(tokens, blocked, strict=True)
        ]
        opening = [token.start in sentence_starts or text[token.start - 1 : token.start] in _QUOTES for token in tokens]
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
            end = position + 1
            while (extended := self._extension(position, end)) > end:
                end = extended
            first = self._without_rank(self._trimmed(position, end), end)
            if end - first > LONGEST_NAME:
                overlong += 1
            elif first < end and self._is_name(first, end):
                names.append((self._tokens[self._with_number(first, end)].start, self._end_offset(end - 1)))
            position = end
        return names, overlong

    def _extension(self, first: int, end: int) -> int:
        """The end of a run that continues with a capitalised word, a number, or connectors and a capitalised word.

        After several words "of" continues only a noun that takes it: "Supreme Court of India" is one name, the
        singer "of" a band is two.
        """
        if end + 1 < len(self._tokens) and self._tokens[end].text == "," and self._tokens[end + 1].text in ("Jr", "Sr"):
            return end + 2
        if end >= len(self._tokens) or not self._is_joined(end):
            return end
        if self._capital[end] or self._numeral[end]:
            return end + 1
        previous = self._tokens[end - 1].lower
        if self._tokens[end].text == "of" and end - first > 1 and previous not in GOVERNING_NOUNS:
            return end
        if self._tokens[end].text == "for" and previous not in GOVERNING_NOUNS | _PURPOSE_NOUNS:
            return end
        if self._tokens[end].text == "and":
            return end + 2 if self._joins_departments(first, end) else end
        after = end
        while after < min(len(self._tokens), end + 3) and self._tokens[after].text in CONNECTORS:
            after += 1
            if after >= len(self._tokens) or not self._is_joined(after):
                return end
        return after + 1 if after > end and self._capital[after] else end

    def _joins_departments(self, first: int, position: int) -> bool:
        """Whether "and" stands within a name as in "Ministry of Culture and Science": between two single words."""
        return (
            position - first >= 3
            and position + 1 < len(self._tokens)
            and self._tokens[position - 2].text in ("of", "for")
            and self._tokens[position - 3].lower in _JOINING_NOUNS
            and self._is_joined(position + 1)
            and self._capital[position + 1]
        )

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
        if self._is_instruction(first):
            return False
        is_compound = token.text.rpartition("-")[2].islower() and "-" in token.text
        return (
            not is_compound and token.lower not in self._lower_words and not token.lower.endswith(("ly", "ing", "ed"))
        )

    def _is_instruction(self, position: int) -> bool:
        """Whether the word that opens a sentence is a verb that tells what to do: "Enter the address", "Use your key".

        No name has an article or a possessive behind it.
        """
        return (
            position + 1 < len(self._tokens)
            and self._is_plain_space(position + 1)
            and self._tokens[position + 1].text in _BEHIND_VERBS
        )

    def _without_rank(self, first: int, end: int) -> int:
        """The start of a name without the office or rank before it ("Senator Anna Berg"), if two words are left.

        Of a place or an institution the word is part ("General Hospital of Oslo", "Prime Minister of Norway").
        """
        last = min(end - 2, first + _LONGEST_RANK)
        start = next((at for at in range(last, first, -1) if self._tokens[at - 1].lower in _RANKS), first)
        if start == first:
            return first
        words = [token.lower for token in self._tokens[start:end]]
        if any(word in GOVERNING_NOUNS or not word[0].isalpha() for word in words):
            return first
        return first if words[0] in CONNECTORS or words[-1] in PLACE_NOUNS else start

    def _with_number(self, first: int, end: int) -> int:
        """The start of a name with the year or ordinal before it: "the 1998 Winter Fair", not "in 2007 Nissan"."""
        if first < 2 or not self._is_plain_space(first):
            return first
        number = self._tokens[first - 1].text
        introduced = self._tokens[first - 2].lower in _NUMBER_INTRODUCERS and self._is_plain_space(first - 1)
        is_ordinal = number[0].isdecimal() and number.endswith(("st", "nd", "rd", "th"))
        is_year = len(number) == 4 and number.isdecimal()
        if not introduced or not (is_year or (is_ordinal and self._tokens[first].lower not in _RANKS)):
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


class SpanKind(Enum):
    """The kind of entity that a span is."""

    NAME = auto()
    QUOTED = auto()
    DATE = auto()
    QUANTITY = auto()
    FOREIGN = auto()
    CODE = auto()


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """An entity as it stands in a text: ``text[start:end]``."""

    text: str
    start: int
    end: int
    kind: SpanKind

    @property
    def is_name(self) -> bool:
        """Whether it can do or be something: no date, no quantity."""
        return self.kind not in (SpanKind.DATE, SpanKind.QUANTITY)


@dataclass(frozen=True, slots=True)
class EntityScan:
    """The tokens, sentences and entity spans of a text, each in order; entity spans never overlap."""

    tokens: tuple[Token, ...]
    sentences: tuple[tuple[int, int], ...]
    spans: tuple[EntitySpan, ...]
    overlong_names: int


_TOKEN = regex.compile(
    r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*+(?:(?:['’\-‐.](?!s\b)|(?<=\p{L})–(?=\p{Lu}))[\p{L}\p{N}][\p{L}\p{M}\p{N}]*+)*+|['’]s\b|[,;:()\[\]—–]"
)
_QUOTE = regex.compile(r"[\"“„«「『《](?P<title>[^\"“”„«»「」『』《》\n]*+)[\"”»」』》]")
_SINGLE_QUOTE = regex.compile(
    r"(?<![\p{L}\p{N}'])(?:``|''|[‘'])(?P<title>\p{Lu}(?:[^‘’'`\"\n]|(?<=\p{L})[’'](?=\p{L}))*+)(?:''|[’'])(?![\p{L}\p{N}])"
)
_LONGEST_UNICASE_TITLE = 6

_NUMBER = r"\d+(?:,\d+)*(?:\.\d+)?"
_SCALE = r"(?:hundred|thousand|million|billion|trillion)"
_UNIT = (
    r"(?:km²?|kilomet(?:re|er)s?|m|met(?:re|er)s?|cm|mm|mi|miles?|ft|feet|foot|inch(?:es)?|kg|kilograms?|tons?|tonnes?"
    r"|lbs?|acres?|ha|hectares?|sq mi|square \w{2,12}|people|mw|kw|hz|mhz|ghz|[MGk]Hz|[kM]W|cc|°C|°F|km/h|mph|degrees"
    r"|men|women|children)"
)
_NO_ADJECTIVE = (
    r"(?:and|or|of|in|on|at|to|by|for|with|from|was|is|are|were|had|the|as|than|that|who|when|until|after|before|most"
    r"|more|over|under|but|not|while|each|it|he|she|they)\b"
)
_NO_NOUN = r"(?:was|has|its|this|does|his|as|times|plus|always|across|less|versus|thus|towards|[a-z]+(?:ous|ss))\b"
_COUNTED = rf"(?:(?!{_NO_ADJECTIVE})[a-z][a-z-]{{2,16}} )?(?!{_NO_NOUN})[a-z]{{3,20}}s"
_CLOCK = r"\d{1,2}(?::\d\d)?\s?(?:[ap]\.m\.|[ap]m\b|[AP]M\b)|\d{1,2}:\d\d\b"
_PROPERTY_VALUE = re.compile(
    r"\b(?:population|elevation|length|height|area|capacity|total|number|average|rate|rank|code)"
    r"(?: of| was| is| were|:)? (?P<value>(?![12]\d{3}\b)\d{3,}+(?:\.\d+)?+)(?![\w%,.]*\d)(?!\s?%)"
)
_CODE = regex.compile(
    r"(?<!`)`(?P<quoted>[\p{L}$/.\-][^`\n]{1,59}+)`(?!`)"
    r"|(?<![\p{L}\p{N}_/])\p{L}[\p{L}\p{N}]*+(?:_[\p{L}\p{N}]++)++(?![\p{L}\p{N}_(])"
)
_ADDRESS = regex.compile(r"(?:https?://|www\.)[^\s<>()\[\]\"]++|[\w.+\-]++@[\w\-]++(?:\.[\w\-]++)++")
_QUANTITY = re.compile(
    rf"(?<![\w.,:$€£¥₹])(?:{_CLOCK}|(?:US|AU|NZ|CA|HK|A|C|S)?[$€£¥₹]\s?{_NUMBER}(?: {_SCALE})?"
    rf"|{_NUMBER}(?:\s?%| percent| {_SCALE}(?: (?:{_UNIT}|{_COUNTED}))?|[ -]?{_UNIT})"
    rf"|(?![12]\d{{3}}\b){_NUMBER} {_COUNTED}|\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+\.\d+(?!\.?\d))(?!\w)"
)

_LONGER_NAME = regex.compile(r"(?: \p{Lu}[\p{L}\p{M}'’\-]*+){1,3}+(?= \(|,| (?:is|was|are|were)\b)")
_MARK = regex.compile(r"\p{M}")
_LATIN = regex.compile(r"\p{Latin}")
_OTHER_LETTER = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)
_UNSPACED_LETTER = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_OTHER_SCRIPT_RUN = regex.compile(
    r"[\p{L}--\p{Latin}][[\p{L}\p{M}--\p{Latin}]ー々]*+(?:[ \u200c・·\-][[\p{L}\p{M}--\p{Latin}]ー々]++){0,5}", regex.V1
)
_KATAKANA_RUN = regex.compile(r"[\p{Katakana}ー][\p{Katakana}ー・]++")
_HAN_RUN = regex.compile(r"[\p{Han}--[的是在了于於为為被由也其及或等这這该該]]++", regex.V1)
_LONGEST_RUN = 80
_LONGEST_HAN_NAME = 8
_GAPS_IN_NAME = frozenset((" and ", " of ", " of the ", " for ", " for the ", " & "))
_MOST_JOINED = 4


def scan_entities(text: str, title: str = "", shapes: re.Pattern[str] | None = None) -> EntityScan:
    """Find the entities of a text in one pass, linear in its length.

    Names are runs of capitalised words with connectors such as "of" inside; the keys of rows and key-value lines are
    none, and nothing in an address is one. In Chinese or Japanese text, runs of Katakana and of 2 to 8 Han characters
    count too; in mostly Latin text, runs of any other script.

    Args:
        text: what to read.
        title: the name the text is about.
        shapes: finds names of forms that the user says names have.
    """
    tokens = [
        Token(word := match[0], word.lower(), *match.span(), word[0].isalnum()) for match in _TOKEN.finditer(text)
    ]
    sentences = tuple(sentence_spans(text))
    titles = _titles(text, title)
    others = _other_scripts(text)
    free = [span for span, taken in zip(others, _blocked(others, titles), strict=True) if not taken]
    # A name within the address of a page or a mailbox names nothing.
    matches = _ADDRESS.finditer(text) if "/" in text or "@" in text else ()
    addresses = [EntitySpan(match[0], *match.span(), SpanKind.CODE) for match in matches]
    shaped = [EntitySpan(m[0], *m.span(), SpanKind.CODE) for m in shapes.finditer(text)] if shapes else []
    plain = [
        EntitySpan(text[start:end], start, end, kind)
        for kind, spans in (
            (SpanKind.DATE, date_spans(text)),
            (SpanKind.QUANTITY, _quantity_spans(text)),
            (SpanKind.CODE, _code_spans(text)),
        )
        for start, end in spans
    ]
    apart = _without_overlap([*shaped, *titles, *_quoted(text), *plain, *free])
    fixed = [span for span, taken in zip(apart, _blocked(apart, addresses), strict=True) if not taken]
    starts = {start for start, _ in sentences}
    keys = [pair for start, end in sentences for pair in key_values(text, start, end)]
    taken = _blocked(tokens, sorted([*fixed, *keys, *addresses], key=attrgetter("start")))
    runs, overlong = NameFinder(text, tokens, starts, taken, title).find()
    names = [EntitySpan(text[start:end], start, end, SpanKind.NAME) for start, end in runs]
    entities = _with_acronyms(text, _with_nicknames(text, _without_overlap([*names, *fixed])))
    return EntityScan(tuple(tokens), sentences, tuple(entities), overlong)


def _without_overlap(spans: Iterable[EntitySpan]) -> list[EntitySpan]:
    """The spans from left to right; of those that overlap the earliest, of those with one start the longest."""
    apart: list[EntitySpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart


def _with_nicknames(text: str, spans: Sequence[EntitySpan]) -> list[EntitySpan]:
    """The spans with names joined over a quoted nickname: Robert "Bob" Smith is one person."""
    joined: list[EntitySpan] = []
    for span in spans:
        if len(joined) > 1 and span.kind is SpanKind.NAME:
            first, nickname = joined[-2:]
            opened, closed = text[first.end : nickname.start], text[nickname.end : span.start]
            quoted = opened in (' "', " “") and closed in ('" ', "” ")
            if first.kind is SpanKind.NAME and nickname.kind is SpanKind.QUOTED and quoted:
                joined[-2:] = [EntitySpan(text[first.start : span.end], first.start, span.end, SpanKind.NAME)]
                continue
        joined.append(span)
    return joined


def _with_acronyms(text: str, spans: Sequence[EntitySpan]) -> list[EntitySpan]:
    """The spans with names joined as far as the acronym behind them tells: "Centre for Art and Design (CAD)"."""
    joined: list[EntitySpan] = []
    for span in spans:
        if text[span.start - 1 : span.start] == "(" and text[span.end : span.end + 1] == ")" and span.text.isupper():
            for back in range(2, min(_MOST_JOINED, len(joined)) + 1):
                parts = joined[-back:]
                gaps = {text[left.end : right.start] for left, right in pairwise(parts)}
                name = text[parts[0].start : parts[-1].end]
                if gaps <= _GAPS_IN_NAME and is_acronym(span.text, name):
                    joined[-back:] = [EntitySpan(name, parts[0].start, parts[-1].end, SpanKind.NAME)]
                    break
        joined.append(span)
    return joined


def is_acronym(short: str, name: str) -> bool:
    """Tell whether a text is made of the initials of a name's capitalised words."""
    return len(short) > 1 and short == "".join(word[0] for word in name.split() if word[0].isupper())


def _blocked(pieces: Sequence[Token | EntitySpan], spans: Sequence[EntitySpan | KeyValue]) -> list[bool]:
    """Tell for each piece of the text, in order, whether it overlaps one of the spans, or the key of a pair."""
    flags = []
    position = 0
    for piece in pieces:
        while position < len(spans) and spans[position].end <= piece.start:
            position += 1
        flags.append(position < len(spans) and spans[position].start < piece.end)
    return flags


def _titles(text: str, title: str) -> list[EntitySpan]:
    """Where the title stands word for word: no other rule finds one in small letters, or in most unicase scripts.

    Not inside a longer word, but where the script has no spaces between words.
    """
    full = opening_name(text, title)
    spans = []
    start = text.find(title) if title else -1
    while start >= 0:
        name = full if full and text.startswith(full, start) else title
        end = start + len(name)
        if _ends_word(text[start - 1 : start], name[0]) and _ends_word(name[-1], text[end : end + 1]):
            spans.append(EntitySpan(name, start, end, SpanKind.NAME))
        start = text.find(title, end)
    return spans


def opening_name(text: str, title: str) -> str:
    """Return the longer name with which a text on a title opens ("Anna Berg Moor (born 1933) ..."), or nothing."""
    longer = _LONGER_NAME.match(text, len(title)) if " " in title and text.startswith(title) else None
    return text[: longer.end()] if longer else ""


def _ends_word(before: str, after: str) -> bool:
    """Whether a word may end between two neighbouring characters; either may be empty."""
    if _MARK.match(after):
        return False
    is_inner = (before.isalnum() or _MARK.match(before)) and after.isalnum()
    return not is_inner or is_unspaced(before) or is_unspaced(after)


def _quoted(text: str) -> list[EntitySpan]:
    """Titles in quotation marks: unlike quoted speech they are short, and their long words have capitals."""
    spans = []
    for match in chain(_QUOTE.finditer(text), _SINGLE_QUOTE.finditer(text)):
        title = match["title"].strip(" ,.;")
        if title and _is_work(title):
            start = match.start("title") + match["title"].index(title)
            spans.append(EntitySpan(title, start, start + len(title), SpanKind.QUOTED))
    return spans


def _is_work(title: str) -> bool:
    words = title.split()
    if len(words) > LONGEST_NAME or len(title) > _LONGEST_RUN or title[0].islower():
        return False
    if title.lower() == title.upper():
        return len(words) <= _LONGEST_UNICASE_TITLE
    return 2 * sum(word[0].islower() and len(word) > 4 for word in words) < len(words)


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Code in backticks, and identifiers with underscores: "MAX_RETRIES"."""
    matches = _CODE.finditer(text) if "_" in text or "`" in text else ()
    return [match.span("quoted") if match["quoted"] else match.span() for match in matches]


def _quantity_spans(text: str) -> list[tuple[int, int]]:
    """Numbers with a currency, unit, scale, percent sign or counted noun, with thousands or decimals, and times.

    A bare number counts where a property stands before it: "a population of 806".
    """
    values = [match.span("value") for match in _PROPERTY_VALUE.finditer(text)]
    return [*map(re.Match.span, _QUANTITY.finditer(text)), *values]


def _other_scripts(text: str) -> list[EntitySpan]:
    if text.isascii():
        return []
    others = len(_OTHER_LETTER.findall(text))
    patterns: tuple[tuple[regex.Pattern[str], int], ...]
    if others <= len(_LATIN.findall(text)):
        patterns = ((_OTHER_SCRIPT_RUN, _LONGEST_RUN),)
    elif 2 * len(_UNSPACED_LETTER.findall(text)) > others:
        patterns = ((_KATAKANA_RUN, _LONGEST_RUN), (_HAN_RUN, _LONGEST_HAN_NAME))
    else:
        return []
    runs = [match for pattern, longest in patterns for match in pattern.finditer(text) if 2 <= len(match[0]) <= longest]
    return sorted((EntitySpan(run[0], *run.span(), SpanKind.FOREIGN) for run in runs), key=attrgetter("start"))


_KINDS = (SpanKind.NAME, SpanKind.DATE, SpanKind.QUOTED)


def governed_name(name: str) -> str:
    """Return the name that an office, institution or territory is "of": Norway in "Supreme Court of Norway".

    Empty where there is none: after "of the" stands a part of the name as often as a name.
    """
    head, _, tail = name.rpartition(" of ")
    is_governed = head.rpartition(" ")[2].lower() in GOVERNING_NOUNS
    return tail if is_governed and len(tail) > 2 and tail[0].isupper() else ""


def title_names(title: str) -> list[str]:
    """Return the names and dates within a title that is a phrase: "Military history of Norway during World War I".

    A title whose words are all capitalised is one name.
    """
    if all(not word[0].islower() or word in CONNECTORS for word in title.split()):
        return []
    names = []
    for span in scan_entities(title).spans:
        head, _, tail = span.text.partition(" of ")
        if span.kind not in _KINDS or span.text == title:
            continue
        if span.start == 0 and tail and head.lower() not in GOVERNING_NOUNS:
            names.append(tail)
        elif span.start or " " in span.text or title[span.end :][:2] in ("'s", "’s"):
            names.append(span.text)
    return names
