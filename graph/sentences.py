"""Sentences and their substitutes: items of lists, rows of tables, key-value lines and headings.

A sentence ends at a stop that is not that of an abbreviation, an initial or an ordinal number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import chain

import regex

from graph.text import is_date

_BULLET = r"[-*+•‣◦▪▫●○■□➢►✓✔⁃∙·\uf0b7\uf0a7–—]"
# Signs that open a line without being part of what it says: quotes, bullets, boxes to tick, numbers, marks of headings.
_SIGN = regex.compile(
    rf"[ \t]*+(?:>[ \t]*+)*+(?:(?P<heading>\#{{1,6}})[ \t]++(?=\S)"
    rf"|(?P<bullet>{_BULLET})[ \t]++(?=\S)(?:\[[ xX]\][ \t]++(?=\S))?+"
    r"|(?P<ordinal>\(?(?:[0-9]{1,3}(?:\.[0-9]{1,3})*+[.)]|[a-zA-Z]\)|[ivxIVX]{1,5}\)))[ \t]++(?=\S))?+"
)
_LONE_BULLET = regex.compile(rf"\s*+{_BULLET}\s*+")
_REST_OF_DATE = regex.compile(r"\p{L}+\.?[ \t]+[0-9]{3,4}\b")
# Text that may stand within a wrapped sentence, at the start of a line, is no such sign: a dash, "12." or "b)".
_INTERRUPTING = regex.compile(r"[^–—(0-9a-zA-Z]|\(?[1aAiI][.)]")
_CLAUSE_NUMBER = regex.compile(r"(?:§[ \t]?[0-9]+[a-z]?|[0-9]{1,3}(?:\.[0-9]{1,3})++)[ \t]++(?=\p{Lu})")
_RULE = regex.compile(r"[ \t]*+(?:[-=*_~`|:+>][ \t]*+)*+|[ \t]*+(?:`{3,}+|~{3,}+)[^`~]*+")
_UNDERLINE = regex.compile(r"[ \t]*+(?:={2,}+|-{2,}+)[ \t]*+")
_KEY = regex.compile(r"[*_]{0,2}[\p{L}\p{N}(\"„“«][^:;!?|\n]{0,59}:[*_]{0,2}[ \t]++(?=\S)")
_AMOUNT = regex.compile(
    r"(?<![\p{L}\p{N}.,])[0-9][0-9.,]*+(?:[ \u00a0]*+(?:\p{Ll}|[%‰°€$£])|[ \u00a0]\p{Lu}{1,3}\p{Ll}?(?!\p{L}))"
    r"|[€$£][ \u00a0]*+[0-9]"
)
_WORD_START = regex.compile(r"[\"'“‘„«(\[*_]*+(?P<lower>\p{Ll})?")
_SIGNS = " \t>-*+•‣◦▪▫●○■□–—|#.()0123456789"
_CLOSERS = "\"'”’»)]*_`"
_LONGEST_KEY = 5
_LONGEST_SIGN = 40
_LONGEST_ROW = 400
_LONGEST_HEADING = 8
_LEAST_WIDTH = 60
"""Characters that a line has room for at least: lines that are all shorter are broken by choice."""

_WRAPPED_FROM = 0.65
"""The share of a line's room that a line, with the next word, takes up where it may be wrapped."""


_END = regex.compile(
    r"(?:(?<=[\p{L}\p{M}\p{N})\]\"'”’»%‰€$£°][.!?])|(?<=[。！？।؟…])|(?<=[.!?][\"'”’»)*_])|(?<=[.!?]\*\*))"
    r"(?:\s++(?:>[>\s]*+)?+(?=[\p{Lu}\p{Lo}\p{N}\"'“‘„«(\[*_])|(?<=[。！？।])\s*+)"
)
_WORD_AT_END = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}.\-/&]*\Z")
_NEXT_WORD = regex.compile(r"[\"'“‘„«(\[*_]*+([\p{L}\p{M}]*+)")
_WORD_BEFORE = regex.compile(r"([\p{L}\p{M}.]+)[ \t\u00a0]\Z")
_ROMAN = regex.compile(r"[IVXLC]+")
_FARTHEST = 40


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words(
    "Mr Mrs Ms Dr Prof Fr Hr Hrn Mme Mlle Sra Dra vs approx Approx ca Ca cf vgl Vgl bzw ggf Ggf inkl exkl zzgl abzgl "
    "sog evtl geb viz esp"
)
"""Abbreviations that something always follows."""

_RANKS = _words("St Ste Mt Ft Lt Col Gen Gov Capt Cmdr Adm Maj Sgt Rev Hon Sen Rep Dipl Ing Mag")
"""Abbreviations before names; they are names or words, too: "Amartya Sen. He was"."""

_BEFORE_NUMBERS = _words(
    "No Nos Nr Nrn Art Abs Ziff Kap Abb Tab Fig Figs Eq Ch Sec Vol Bd Anl Pos Tel Rn pp Op op "
    "Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Okt Nov Dec Dez Mrz núm pág"
)
"""Abbreviations that are such where a number follows; elsewhere "No." and "Art." end a sentence."""

_ENDINGS = _words("Inc Ltd Co Corp Cie Bros Jr Sr etc usw al Std Mio Mrd Tsd Jh Str Ave Blvd Rd max min")
"""Abbreviations that a sentence may end with."""

_DOTTED_ENDINGS = _words("u.a u.ä o.ä u.s.w p.a")
_OPENING_ARTICLES = _words(
    "the this these those it he she they we its his their der die das den dem des dies diese dieser er es sie wir ein "
    "eine"
)
"""Articles and pronouns: in capitals they open a sentence, and no name."""

_OPENERS = _OPENING_ARTICLES | _words(
    "a an that her our there in on at for from by after before when while during since however if as both all each not "
    "under upon with you your im am an auf bei nach für vor seit mit als wenn zum zur ab bis alle ihr kein keine einer "
    "le les un une il elle ils ce cette el los las una"
)
_BEFORE_REFERENCES = _words("gem lt")
_BEFORE_ORDINALS = _words("am vom zum im der des dem den ab bis seit beim und oder jeden jedes jeder")
_GERMAN_MONTHS = _words("januar jänner februar märz april mai juni juli august september oktober november dezember")


class _Kind(Enum):
    HEADING = auto()
    ITEM = auto()
    ROW = auto()
    PAIR = auto()
    PROSE = auto()


@dataclass(frozen=True, slots=True)
class TextUnit:
    """A sentence, or an item of a list, a row of a table, a key-value line, or a heading.

    Attributes:
        start: where its words begin, behind the sign of its line.
        end: where they end.
        opens: where the sign of its line begins; ``start`` where there is none.
        is_heading: it names what follows, and says nothing by itself.
    """

    start: int
    end: int
    opens: int
    is_heading: bool = False


@dataclass(slots=True)
class _Line:
    """A line that holds words: where its sign and its words begin, where they end, and its kind.

    The first line of several that are read as one text, a block, is extended to all of them.
    """

    opens: int
    start: int
    end: int
    kind: _Kind
    sign: str
    is_indented: bool
    is_lower: bool
    n_lines: int = 1


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of each unit of a text; together they cover all but white space and the signs of lines."""
    return [(unit.start, unit.end) for unit in text_units(text)]


def text_units(text: str) -> list[TextUnit]:
    """Return the units of a text in order; linear in its length.

    Lines that are wrapped within a paragraph are one text. Items of lists, rows of tables, key-value lines and
    headings begin a unit of their own; all but rows are taken apart into their sentences, long rows too.
    """
    blocks = list(_blocks(text))
    units: list[TextUnit] = []
    for block, is_heading in zip(blocks, _headings(text, blocks), strict=True):
        for start, end in _sentences(text, block):
            units.append(TextUnit(start, end, block.opens if start == block.start else start, is_heading))
    return units


def _sentences(text: str, block: _Line) -> Iterator[tuple[int, int]]:
    """Yield where the sentences of a block stand, without the white space around them."""
    start = block.start
    is_whole = block.kind is _Kind.ROW and block.end - start <= _LONGEST_ROW
    ends = () if is_whole else _sentence_ends(text, start, block.end)
    for end, following in chain(ends, [(block.end, block.end)]):
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        start = following


def _blocks(text: str) -> Iterator[_Line]:
    """Yield the lines that begin a text of their own, each extended to the lines that continue it."""
    for lines in _paragraphs(text):
        width = max(line.end - line.opens for line in lines)
        block = last = lines[0]
        for line in lines[1:]:
            if _begins_block(text, line, last, block, width):
                yield block
                block = line
            else:
                block.end = line.end
                block.n_lines += 1
            last = line
        yield block


def _paragraphs(text: str) -> Iterator[list[_Line]]:
    """Yield the lines that hold words, up to each line that holds none."""
    lines: list[_Line] = []
    offset = 0
    bullet: int | None = None
    for content in text.split("\n"):
        start, offset = offset, offset + len(content) + 1
        if _RULE.fullmatch(content.rstrip()) or _LONE_BULLET.fullmatch(content):
            if lines and lines[-1].kind is _Kind.PROSE and _UNDERLINE.fullmatch(content):
                lines[-1].kind = _Kind.HEADING
            if lines:
                yield lines
            lines = []
            bullet = start if _LONE_BULLET.fullmatch(content) else None
            continue
        line = _read_line(start, content)
        if bullet is not None and line.kind is not _Kind.HEADING:
            line.opens, line.kind, line.sign = bullet, _Kind.ITEM, line.sign or "-"
        bullet = None
        lines.append(line)
    if lines:
        yield lines


def _read_line(offset: int, content: str) -> _Line:
    match = _SIGN.match(content)
    begin = match.end() if match else 0
    sign = (match["ordinal"] or match["bullet"] or "") if match else ""
    if match and match["ordinal"] and _REST_OF_DATE.match(content, begin):
        begin, sign = match.start("ordinal"), ""
    end = len(content.rstrip())
    if match and match["heading"]:
        kind, end = _Kind.HEADING, len(unclosed(content[:end]))
    elif _is_piped(content[begin:end]):
        kind, sign = _Kind.ROW, "|"
        end = len(content.rstrip("| \t"))
        begin += len(content[begin:end]) - len(content[begin:end].lstrip("| \t"))
    elif sign:
        kind = _Kind.ITEM
    elif _is_row(content[begin:]):
        kind = _Kind.ROW
    else:
        kind = _Kind.PAIR if _has_key(content[begin:]) else _Kind.PROSE
    space = len(content) - len(content.lstrip())
    begin += len(content[begin:]) - len(content[begin:].lstrip())
    first = _WORD_START.match(content, begin)
    is_lower = first is not None and first["lower"] is not None
    return _Line(offset + space, offset + begin, offset + max(begin, end), kind, sign, space > 1, is_lower)


def unclosed(heading: str) -> str:
    """Return a heading's text without the number signs that may close it: those of "C#" belong to the text."""
    bare = heading.rstrip("#")
    return bare.rstrip() if bare.endswith((" ", "\t")) else heading


def _is_piped(content: str) -> bool:
    """Tell whether a text has cells between bars: "| bolt | 3 |", "bolt | 3", but no sentence with a bar in it."""
    if content.startswith("|"):
        return True
    n_bars = content.count(" | ")
    return n_bars > 1 or (n_bars == 1 and not _ends_sentence(content, 0, len(content)))


def _has_key(content: str) -> bool:
    """Tell whether a text begins with a few words and a colon: "Term: two years"."""
    key = _KEY.match(content)
    return key is not None and len(key[0].split()) <= _LONGEST_KEY


def _is_row(content: str) -> bool:
    """Tell whether a text is made of key-value pairs, as in "customer: Moor Ltd; country: Corland"."""
    cells = content.split("; ")
    return len(cells) > 1 and all(map(_has_key, cells))


def _begins_block(text: str, line: _Line, last: _Line, block: _Line, width: int) -> bool:
    """Tell whether a line begins a text of its own, rather than go on with the line before it."""
    if _Kind.HEADING in (line.kind, last.kind) or line.kind is _Kind.ROW or block.sign == "|":
        return True
    is_list = block.kind is not _Kind.PROSE
    is_wrapped = _is_wrapped(text, line, last, max(width, _LEAST_WIDTH))
    is_open = is_wrapped and not _ends_sentence(text, last.start, last.end)
    if line.kind is _Kind.ITEM:
        return block.kind is _Kind.ITEM or not is_open or _INTERRUPTING.fullmatch(line.sign) is not None
    if line.kind is _Kind.PAIR:
        return not (line.is_lower and is_open)
    if _CLAUSE_NUMBER.match(text, line.start):
        return not is_open
    return not line.is_lower and not (is_list and line.is_indented) and not is_wrapped


def _is_wrapped(text: str, line: _Line, last: _Line, width: int) -> bool:
    """Tell whether a line may be broken because its next word did not fit, rather than by choice."""
    word = len(text[line.start : min(line.end, line.start + width)].split(None, 1)[0])
    return last.end - last.opens + 1 + word > _WRAPPED_FROM * width


def _ends_sentence(text: str, start: int, end: int) -> bool:
    return text[start:end].rstrip(_CLOSERS)[-1:] in tuple(".!?。！？।؟…")


def _headings(text: str, blocks: Sequence[_Line]) -> list[bool]:
    """Tell for each block whether it is a heading: marked as one, or a few words alone over the text that they name.

    A few words over a marked heading are what the heading before them has to say.
    """
    flags = [block.kind is _Kind.HEADING for block in blocks]
    for place in range(len(blocks) - 2, -1, -1):
        block, following = blocks[place], blocks[place + 1]
        gaps = text[blocks[place - 1].end : block.opens] if place else "\n\n", text[block.end : following.opens]
        is_apart = min(gap.count("\n") for gap in gaps) > 1
        if flags[place] or following.kind is _Kind.HEADING or not _is_short_line(text, block, is_apart):
            continue
        if block.kind is _Kind.ITEM:
            after_item = place > 0 and blocks[place - 1].kind is _Kind.ITEM
            if after_item or following.kind is not _Kind.PROSE:
                continue
        flags[place] = flags[place + 1] or _says_something(text, following)
    return flags


def _is_short_line(text: str, block: _Line, is_apart: bool) -> bool:
    """Tell whether a block is one line of a few words, not quoted, without a mark at its end.

    With a digit in it, as in "Prices 2026", it has to stand apart, begin in no small letter, and be no date or amount.
    """
    if block.n_lines > 1 or not (block.kind is _Kind.PROSE or block.sign[:1].isdigit()):
        return False
    if ">" in text[block.opens : block.start]:
        return False
    number = _CLAUSE_NUMBER.match(text, block.start)
    words = text[number.end() if number else block.start : block.end].rstrip(_CLOSERS)
    if any(map(str.isdigit, words)) and (not is_apart or block.is_lower or is_date(words) or _AMOUNT.search(words)):
        return False
    is_short = len(words.split()) <= _LONGEST_HEADING
    return is_short and any(map(str.isalpha, words)) and words[-1] not in ".!?:;,。！？।؟…"


def _says_something(text: str, block: _Line) -> bool:
    if block.kind is not _Kind.PROSE:
        return True
    words = text[block.start : block.end]
    is_long = len(words.split()) > _LONGEST_HEADING
    return is_long or _AMOUNT.search(words) is not None or _ends_sentence(text, block.start, block.end)


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A key and its value, without the colon between them; ``start`` and ``end`` are the key's in the text."""

    key: str
    value: str
    start: int
    end: int


def key_values(text: str, start: int, end: int) -> list[KeyValue]:
    """Return the pairs of a unit that is a row or a key-value line; none for a sentence, whatever colon it holds."""
    unit = text[start:end]
    _, newline, before = text[max(0, start - _LONGEST_SIGN) : start].rpartition("\n")
    opens_line = (newline or start <= _LONGEST_SIGN) and not before.strip(_SIGNS)
    is_told = _ends_sentence(text, start, end) and len(unit.split()) > _LONGEST_KEY
    if not opens_line or not (_is_row(unit) or (_has_key(unit) and not is_told)):
        return []
    pairs = []
    offset = start
    for cell in unit.split("; ") if _is_row(unit) else [unit]:
        match = _KEY.match(cell)
        key = match[0].rstrip(" \t*_:") if match else ""
        value = cell[match.end() if match else 0 :].strip(" \t*_")
        pairs.append(KeyValue(key.lstrip("*_"), value, offset, offset + len(key)))
        offset += len(cell) + len("; ")
    return pairs


def _sentence_ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield (where a sentence ends, where the next begins) for a text from start to end, in order."""
    for match in _END.finditer(text, start, end):
        if text[match.start() - 1] != "." or not _is_abbreviated(text, start, match.start() - 1, match.end()):
            yield match.span()


def _is_abbreviated(text: str, start: int, stop: int, after: int) -> bool:
    """Tell whether a stop belongs to the word before it, and the sentence continues behind it.

    Args:
        text: all of it.
        start: where the sentence's block begins.
        stop: where the stop stands.
        after: where the next word begins.
    """
    last_word = _WORD_AT_END.search(text[max(start, stop - _FARTHEST) : stop])
    following = _NEXT_WORD.match(text, after)
    if last_word is None or following is None:
        return False
    word, next_word = last_word[0].rstrip("."), following[1]
    is_opener = next_word.lower() in _OPENERS
    if word.isdecimal():
        is_date = _REST_OF_DATE.match(text, after) is not None and not is_opener
        before = text[max(start, stop - _FARTHEST) : stop - len(last_word[0])]
        return len(word) <= 2 and (is_date or _is_ordinal(before, next_word))
    if "." in word and all(len(part) <= 3 and part.isalpha() for part in word.split(".")):
        return _is_dotted(word, is_opener)
    last = regex.split(r"[.\-/&]", word)[-1]
    if len(last) == 1:
        before = text[max(start, stop - _FARTHEST) : stop - 1]
        return _is_initial(last, before, next_word, text[after + 1 : after + 2])
    spelled = last.title() if last.isupper() else last
    if spelled in _NEVER_LAST:
        return True
    if spelled in _RANKS:
        return next_word.lower() not in _OPENING_ARTICLES
    if spelled in _BEFORE_NUMBERS:
        return text[after].isdigit()
    if spelled in _BEFORE_REFERENCES:
        return next_word in _BEFORE_NUMBERS
    if spelled in _ENDINGS or last.endswith("str"):
        return not is_opener
    return bool(_ROMAN.fullmatch(last)) and not is_opener


def _is_ordinal(before: str, next_word: str) -> bool:
    """Tell whether a number with a stop is one such as "am 3. Oktober", "im 19. Jahrhundert"."""
    if next_word.lower() in _GERMAN_MONTHS:
        return True
    word = _WORD_BEFORE.search(before)
    return word is not None and word[1].lower() in _BEFORE_ORDINALS and next_word.lower() not in _OPENERS


def _is_dotted(word: str, is_opener: bool) -> bool:
    """Tell whether the sentence continues behind "z.B.", "e.g.", "U.S."; behind the last, not where another begins."""
    if word.lower() in ("a.m", "p.m"):
        return False
    may_end = word[0].isupper() or word.lower() in _DOTTED_ENDINGS
    return not (may_end and is_opener)


def _is_initial(letter: str, before: str, next_word: str, behind: str) -> bool:
    """Tell whether a letter with a stop is an initial ("J. Moor") or a part of "z. B." or "p. 12"."""
    if letter.isupper():
        return next_word.lower() not in _OPENING_ARTICLES
    if not letter.islower():
        return False
    is_second = regex.search(r"(?<!\p{L})\p{L}\.[ \u00a0]\Z", before) is not None
    return is_second or behind == "." or (letter == "p" and not next_word)
