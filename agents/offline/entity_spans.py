"""Where entities stand in a text: names, quoted titles, dates, quantities, and names in another script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import regex

from agents.offline.name_runs import LONGEST_NAME, NameFinder, Token
from graph.dates import date_spans
from graph.text import sentence_spans


class SpanKind(Enum):
    """What kind of entity a span is."""

    NAME = auto()
    QUOTED = auto()
    DATE = auto()
    QUANTITY = auto()
    FOREIGN = auto()


@dataclass(frozen=True, slots=True)
class EntitySpan:
    """An entity as it stands in a text: ``text[start:end]``."""

    text: str
    start: int
    end: int
    kind: SpanKind


@dataclass(frozen=True, slots=True)
class EntityScan:
    """The tokens, sentences and entity spans of a text, each in order; entity spans never overlap."""

    tokens: tuple[Token, ...]
    sentences: tuple[tuple[int, int], ...]
    spans: tuple[EntitySpan, ...]
    overlong_names: int


_TOKEN = regex.compile(
    r"[\p{L}\p{N}][\p{L}\p{M}\p{N}]*+(?:['’\-‐.](?!s\b)[\p{L}\p{N}][\p{L}\p{M}\p{N}]*+)*+|['’]s\b|[,;:()\[\]—–]"
)
_QUOTE = regex.compile(r"[\"“„«「『《](?P<title>[^\"“”„«»「」『』《》\n]*+)[\"”»」』》]")

_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_SCALE = r"(?:hundred|thousand|million|billion|trillion)"
_UNIT = (
    r"(?:km²?|kilomet(?:re|er)s?|m|met(?:re|er)s?|cm|mm|mi|miles?|ft|feet|foot|inch(?:es)?|kg|kilograms?|tons?|tonnes?"
    r"|lbs?|acres?|ha|hectares?|sq mi|square \w{2,12}|people|mw|kw|hz|mhz|ghz|degrees|men|women)"
)
_COUNTED = r"(?!was|has|its|this|does|his)[a-z]{3,20}s"
_QUANTITY = re.compile(
    rf"(?<![\w.,$€£¥₹])(?:(?:US)?[$€£¥₹]\s?{_NUMBER}(?: {_SCALE})?"
    rf"|{_NUMBER}(?:\s?%| percent| {_SCALE}(?: (?:{_UNIT}|{_COUNTED}))?|[ -]?{_UNIT})"
    rf"|(?![12]\d{{3}}\b){_NUMBER} {_COUNTED}|\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?)(?!\w)"
)

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


def scan_entities(text: str, title: str = "") -> EntityScan:
    """Find the entities of a text in one pass, linear in its length.

    Names are runs of capitalised words with connectors such as "of" inside. In Chinese or Japanese text, runs of
    Katakana and of 2 to 8 Han characters count too; in mostly Latin text, runs of any other script.

    Args:
        text: what to read.
        title: the name the text is about.
    """
    tokens = tuple(
        Token(word, word.lower(), *match.span(), word[0].isalnum())
        for match in _TOKEN.finditer(text)
        if (word := match[0])
    )
    sentences = tuple(sentence_spans(text))
    titles = _titles(text, title)
    fixed = _without_overlap([*titles, *_quoted(text), *_dates(text), *_quantities(text), *_other_scripts(text)])
    starts = frozenset(start for start, _ in sentences)
    runs, overlong = NameFinder(text, tokens, starts, _blocked(tokens, fixed), title).find()
    names = [EntitySpan(text[start:end], start, end, SpanKind.NAME) for start, end in runs]
    spans = _with_nicknames(text, _without_overlap([*names, *fixed]))
    return EntityScan(tokens, sentences, tuple(spans), overlong)


def _without_overlap(spans: Iterable[EntitySpan]) -> list[EntitySpan]:
    """The spans from left to right; of those that overlap the earliest, of those with one start the longest."""
    kept: list[EntitySpan] = []
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
    return kept


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


def _blocked(tokens: Sequence[Token], spans: Sequence[EntitySpan]) -> list[bool]:
    flags = []
    position = 0
    for token in tokens:
        while position < len(spans) and spans[position].end <= token.start:
            position += 1
        flags.append(position < len(spans) and spans[position].start < token.end)
    return flags


def _titles(text: str, title: str) -> list[EntitySpan]:
    """Where the title stands word for word: no other rule finds one in small letters."""
    spans = []
    start = text.find(title) if title else -1
    while start >= 0:
        end = start + len(title)
        if not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            spans.append(EntitySpan(title, start, end, SpanKind.NAME))
        start = text.find(title, end)
    return spans


def _quoted(text: str) -> list[EntitySpan]:
    """Titles in quotation marks: unlike quoted speech they are short, and their long words have capitals."""
    spans = []
    for match in _QUOTE.finditer(text):
        title = match["title"].strip(" ,.;")
        words = title.split()
        plain = sum(word[0].islower() and len(word) > 4 for word in words)
        if (
            words
            and len(words) <= LONGEST_NAME
            and len(title) <= _LONGEST_RUN
            and not title[0].islower()
            and 2 * plain < len(words)
        ):
            start = match.start("title") + match["title"].index(title)
            spans.append(EntitySpan(title, start, start + len(title), SpanKind.QUOTED))
    return spans


def _dates(text: str) -> list[EntitySpan]:
    return [EntitySpan(text[start:end], start, end, SpanKind.DATE) for start, end in date_spans(text)]


def _quantities(text: str) -> list[EntitySpan]:
    """Numbers with a currency, a unit, a scale, a percent sign, a counted noun, or thousands."""
    return [EntitySpan(match[0], match.start(), match.end(), SpanKind.QUANTITY) for match in _QUANTITY.finditer(text)]


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
    return [
        EntitySpan(match[0], match.start(), match.end(), SpanKind.FOREIGN)
        for pattern, longest in patterns
        for match in pattern.finditer(text)
        if 2 <= len(match[0]) <= longest
    ]
