"""The claims of an answer: its sentences with the passages they cite; taken apart and put together without loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass
from itertools import pairwise

import regex

from agents.answers.citations import CITATION, CITATIONS, MARK, parse_citations, strip_citations, stripped_spans
from graph.sentences import text_units

_EVERY_NUMBER = range(1_000)
_CLOSING = r"[\"'”’»)\]*_]"
_STOP = rf"[.!?。！？।؟…]{_CLOSING}*"
_CITATIONS = rf"(?>[ \t]*{CITATIONS})+"
_OPENING = rf"(?![(]?{CITATION}|{regex.escape(MARK)})[\p{{Lu}}\p{{Lo}}\p{{N}}\"'“‘«(\[*_]"
_OPTIONAL_MARK = rf"(?: {regex.escape(MARK)})?"
# Where a claim begins though no sentence does: behind citations that follow a stop or end a line, and at those that
# begin a line.
_BEFORE_CLAIM = regex.compile(
    rf"(?:{_STOP}{_CITATIONS}{_OPTIONAL_MARK}\s+|{CITATION}\)?{_OPTIONAL_MARK}[ \t\r]*\n\s*)(?={_OPENING})"
)
_LINE_START = rf"^[ \t]*+[*_]*+{_CITATIONS}[*_]*[ \t]*"
_LINE_START_CITATIONS = regex.compile(rf"{_LINE_START}(?={_OPENING})", regex.MULTILINE)
_OPENED_BY = regex.compile(rf"(?r)(?:{_LINE_START})?[*_]*", regex.MULTILINE)
_EMPHASIS = regex.compile(r"[*_]+")
_LAST_SPACE_OR_EMPHASIS = regex.compile(r"(?r)[\s*_]*")
_LINE_BREAK = regex.compile(r"(?<=\S)[ \t\r]*\n")
_LINE_MARKER = regex.compile(
    r"^[ \t]*(?:(?:[-*+•‣◦–>]|(?P<heading>#{1,6})|(?P<ordinal>[0-9]{1,3}[.)]))[ \t]+)+"
    rf"(?=\S)(?!{regex.escape(MARK)})",
    regex.MULTILINE,
)
_REST_OF_DATE = regex.compile(r"\p{L}+\.?[ \t]+[0-9]{3,4}\b")
_BLANK_LINES = regex.compile(r"\n[ \t\r]*\n\s*")
_WORD = regex.compile(r"[[\p{L}\p{N}\p{S}]--[|<>+=~^`]]", regex.V1)
_MARK_AFTER_SPACE = regex.compile(rf" {regex.escape(MARK)}")
_CLAIM_END = regex.compile(rf"(?r)[.!?。！？।؟…](?:{_CITATIONS}|[ \t]*{_CLOSING})*")
_LINE_END = regex.compile(r"[ \t\r]*(?:\n|\Z)")


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


def split_claims(answer: str, known: Container[int] | None = None) -> list[Claim]:
    """Return the claims of an answer, in order; no word and no citation stands outside of them.

    A claim is a sentence, a heading or an item of a list, without the marker of its line. Citations belong to the
    sentence that they stand in or follow; those that begin a line, to the one that they precede. A mark behind a claim
    belongs to it and is no part of its text. A text without words has no claims, whatever it cites.

    Args:
        answer: with citations, and perhaps with marks.
        known: the numbers that passages have; None takes every number for that of a passage.
    """
    claims: list[Claim] = []
    for start, end, text in _pieces(answer):
        cited = parse_citations(answer[start:end], _EVERY_NUMBER if known is None else known).numbers
        claims.append(Claim(len(claims) + 1, text, cited, start, end))
    return claims


def join_claims(
    answer: str, claims: Collection[Claim], *, remove: Collection[int] = (), mark: Collection[int] = ()
) -> str:
    """Return an answer without some of its claims, and with `MARK` behind others; all else stays as it was.

    A line that loses its only claim goes with its list or heading marker. A claim that is both removed and marked is
    removed; one that bears the mark gets no second.

    Args:
        answer: what the claims were split from.
        claims: all of them, as `split_claims` returned them; without any of them, nothing is left.
        remove: numbers of claims to leave out.
        mark: numbers of claims to mark.
    """
    if claims and all(claim.number in remove for claim in claims):
        return ""
    parts: list[str] = []
    gap, end = "", 0
    is_removed = False
    for claim in sorted(claims, key=lambda claim: claim.start):
        between = answer[end : claim.start]
        gap, end = _joined_gaps(gap, between, at_start=not parts) if is_removed else between, claim.end
        is_removed = claim.number in remove
        if is_removed:
            continue
        is_marked = claim.number in mark and not answer.endswith(f" {MARK}", claim.start, claim.end)
        parts += [gap, answer[claim.start : claim.end], f" {MARK}" if is_marked else ""]
    rest = answer[end:]
    return "".join([*parts, _joined_gaps(gap, rest, at_start=False) if is_removed and rest.strip() else rest])


def _joined_gaps(before: str, behind: str, *, at_start: bool) -> str:
    """Return the rest of a removed claim's line: its marker where more follows on it; else the next line's."""
    if "\n" not in behind:
        return before
    first, second = _line_breaks(before), _line_breaks(behind)
    breaks = first if at_start else max(first, second, key=lambda each: each.count("\n"))
    return breaks + behind.removeprefix(second)


def _line_breaks(gap: str) -> str:
    """The space that a gap begins with, to its last line break."""
    return gap[: gap.rfind("\n", 0, _length_of_space(gap)) + 1]


def strip_marks(text: str) -> str:
    """Return a text without the marks behind its claims; "[unsupported]" within a sentence is prose and stays."""
    return _without_spans(text, _mark_spans(text))[0]


def marks_in_words(text: str, words: str) -> str:
    """Return a text with words in place of the marks behind its claims."""
    for start, end in reversed(_mark_spans(text)):
        text = f"{text[:start]} {words}{text[end:]}"
    return text


def plain_text(answer: str) -> str:
    """Return an answer without its citations and marks."""
    return strip_citations(strip_marks(answer)).strip()


def citing_sentences(text: str) -> dict[int, str]:
    """Return the first claim that cites each passage, without its citations, by the passage's number."""
    sentences: dict[int, str] = {}
    for claim in split_claims(text):
        for number in claim.cited:
            sentences.setdefault(number, claim.text)
    return sentences


def _pieces(answer: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, text without citations and marks) of each claim.

    A part that holds citations and no word goes to the claim before it, or else to the one after it.
    """
    pending: tuple[int, int, str] | None = None
    orphan: int | None = None
    for start, end in _sentences(answer):
        text = plain_text(answer[start:end])
        if _WORD.search(text):
            if pending:
                yield pending
            pending = (start if orphan is None else orphan, end, text)
            orphan = None
        elif parse_citations(answer[start:end], ()).spans:
            if pending:
                pending = (pending[0], end, pending[2])
            elif orphan is None:
                orphan = start
    if pending:
        yield pending


def _sentences(answer: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of the sentences of each block, less the space around them."""
    for block_start, block_end in _blocks(answer):
        block = answer[block_start:block_end]
        for start, end in pairwise((*_sentence_starts(block), len(block))):
            piece = _without_last_line_of_emphasis(block[start:end])
            left = start + len(piece) - len(piece.lstrip())
            yield block_start + left, block_start + start + len(piece.rstrip())


def _without_last_line_of_emphasis(piece: str) -> str:
    last = _LAST_SPACE_OR_EMPHASIS.match(piece)
    line_break = _LINE_BREAK.search(piece, last.start()) if last else None
    return piece[: line_break.start()] if line_break else piece


def _blocks(answer: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of paragraphs, headings and items of lists, without the markers of their lines."""
    begins = {0: 0}
    begins.update((match.start(), match.start()) for match in _BLANK_LINES.finditer(answer))
    for marker in _line_markers(answer):
        begins[marker.start()] = marker.end()
        if marker["heading"]:
            line_end = answer.find("\n", marker.end())
            line_end = len(answer) if line_end < 0 else line_end
            begins.setdefault(line_end, line_end)
    cited = parse_citations(answer, ()).spans
    begins_inside = {offset for start, end in cited for offset in range(start + 1, end)}.intersection(begins)
    for begin, after in pairwise((*sorted(begins.keys() - begins_inside), len(answer))):
        yield begins[begin], max(begins[begin], after)


def _line_markers(answer: str) -> list[regex.Match[str]]:
    """The markers of list items, quotes and headings; "12. May 1933" alone at a line's start is a date."""
    markers = list(_LINE_MARKER.finditer(answer))
    ordered = Counter(_length_of_space(marker[0]) for marker in markers if marker["ordinal"])
    return [
        marker
        for marker in markers
        if not marker["ordinal"]
        or ordered[_length_of_space(marker[0])] > 1
        or marker[0].strip() != marker["ordinal"]
        or not _REST_OF_DATE.match(answer, marker.end())
    ]


def _sentence_starts(block: str) -> list[int]:
    """Where the sentences of a block begin, with the citations and the emphasis that open them."""
    emphasis = [match.span() for match in _EMPHASIS.finditer(block)]
    plain, offsets = _without_spans(block, [*stripped_spans(block), *_mark_spans(block), *emphasis])
    starts = {offsets[unit.opens] for unit in text_units(plain)[1:]}
    starts.update(match.end() for match in _BEFORE_CLAIM.finditer(block))
    starts.update(match.start() for match in _LINE_START_CITATIONS.finditer(block))
    starts.difference_update(match.end() for match in _LINE_MARKER.finditer(block) if match["ordinal"])
    opened = {match.start() if (match := _OPENED_BY.match(block, 0, start)) else start for start in starts}
    return sorted({0, *opened})


def _mark_spans(text: str) -> list[tuple[int, int]]:
    return [
        match.span()
        for match in _MARK_AFTER_SPACE.finditer(text)
        if _LINE_END.match(text, match.end()) or _CLAIM_END.match(text, 0, match.start())
    ]


def _without_spans(text: str, spans: Collection[tuple[int, int]]) -> tuple[str, list[int]]:
    """A text without some spans, which may overlap, and where each character that is left stood."""
    offsets: list[int] = []
    done = 0
    for start, end in sorted(spans):
        offsets.extend(range(done, start))
        done = max(done, end)
    offsets.extend(range(done, len(text)))
    return "".join(text[offset] for offset in offsets), offsets


def _length_of_space(text: str) -> int:
    return len(text) - len(text.lstrip())
