"""The citation grammar of answers: ``[1]``, ``[1, 3]``, ``[1][2]``, ``[1-3]``, and the same in ``【】``.

A bracket with a number above 999, such as ``[2024]``, is prose. Where the words of a claim stand in a passage is found
here, too.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass

from graph.sentences import sentence_spans
from graph.text import tokens

_PART = r"[0-9]{1,3}(?:\s*[-–]\s*[0-9]{1,3})?"
_PARTS = rf"\s*{_PART}(?:\s*[,;，、；]\s*{_PART})*\s*"
CITATION = rf"(?:\[{_PARTS}\]|【{_PARTS}】)"
"""Pattern of one bracket."""

MARK = "[unsupported]"
"""The mark that follows, after a space, a claim that no passage supports."""

_RUN = rf"{CITATION}(?:[ \t]*(?:[,;][ \t]*)?{CITATION})*"
CITATIONS = rf"(?:\({_RUN}\)|{_RUN})"
"""Pattern of citations side by side, with the parentheses around them: ``[1], [2]`` or ``([1])``."""

_CITATION = re.compile(CITATION)
_NUMBERS = re.compile(r"([0-9]+)(?:\s*[-–]\s*([0-9]+))?")
_LINE_BREAKS = re.compile(r"(?<!\s)\s*[\n\r\v\f\x85\u2028\u2029]\s*(?:>[> \t]*)?")
_LINK = re.compile(r"!?\[([^\[\]]{1,200})\]\([^()\s]{1,500}\)")
_CODE = re.compile(r"(?<!`)(`{1,2})([^`]{1,300})\1(?!`)")
_EMPHASIS = re.compile(r"(?<![\w*_])(\*{1,3}|_{1,3})(?=\S)([^*_]{1,300})(?<=\S)\1(?![\w*_])")
_STRUCK = re.compile(r"~~(?=\S)([^~\n]{1,300})(?<=\S)~~")
_REFERENCE = re.compile(r"!?\[([^\[\]]{1,200})\]\[[^\[\]]{0,100}\]")
_FOOTNOTE = re.compile(r"\[\^[0-9]{1,3}\]:?")
_ADDRESS = re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,500})>")
_BREAK = re.compile(r"[ \t]{0,20}<br[ ]?/?>[ \t]{0,20}", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([*_])")
_LOOSE_EMPHASIS = re.compile(r"^(?:\*\*|__)(?=\S)|(?<=\S)(?:\*\*|__)$")
_BAR = re.compile(r"[ \t]\|[ \t]")
# At the start of a line the space after a citation goes with it, elsewhere the space before it.
_REMOVED = re.compile(rf"^{CITATIONS}[ \t]*|(?<![ \t])[ \t]*{CITATIONS}", re.MULTILINE)
_HALF = re.compile(r"[\[【][0-9,;\s–-]*")

MIN_OVERLAP = 0.3
"""The least share of a citing sentence's content tokens that a quoted sentence must hold."""

_FUNCTION_WORDS = frozenset(
    tokens("""
    a about after all also an and any are as at be been before between both but by can could did do does during each
    for from had has have he her his how i if in into is it its many may more most much no not of on one or other our
    s she so some such than that the their them then there these they this those through to under until up was we were
    what when where whether which while who whom whose why will with would you your
""")
)


@dataclass(frozen=True, slots=True)
class ParsedCitations:
    """The citations of an answer.

    Attributes:
        numbers: the passages cited, each once, in order of first appearance.
        out_of_range: cited numbers that no passage has, each once, in order of first appearance.
        spans: (start, end) of each bracket in the text.
    """

    numbers: tuple[int, ...]
    out_of_range: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


def parse_citations(text: str, known: Container[int]) -> ParsedCitations:
    """Return the citations of a text.

    A range holds both its ends, whichever comes first.

    Args:
        text: an answer, or a part of one.
        known: the numbers that passages have, gaps allowed; a citation's number is 999 at most.
    """
    cited: dict[int, None] = {}
    spans = []
    for mark in _CITATION.finditer(text):
        spans.append(mark.span())
        for first, last in _NUMBERS.findall(mark[0]):
            ends = sorted((int(first), int(last or first)))
            cited.update(dict.fromkeys(range(ends[0], ends[1] + 1)))
    return ParsedCitations(
        numbers=tuple(number for number in cited if number in known),
        out_of_range=tuple(number for number in cited if number not in known),
        spans=tuple(spans),
    )


def strip_citations(text: str) -> str:
    """Return a text without its citations and the space they took: "in 1933 [1]." becomes "in 1933."."""
    return _REMOVED.sub("", text)


def without_unknown(text: str, known: Container[int]) -> str:
    """Return a text without the citations of numbers that no passage has; what stays of a bracket is written anew."""

    def kept(run: re.Match[str]) -> str:
        parsed = parse_citations(run[0], known)
        if not parsed.out_of_range:
            return run[0]
        marks = "".join(f"[{number}]" for number in parsed.numbers)
        return f"{run[0][: len(run[0]) - len(run[0].lstrip())]}{marks}" if marks else ""

    return _REMOVED.sub(kept, text)


def without_half_citation(text: str) -> str:
    """Return a text that ends anywhere without the citation, or the space, that it may break off in."""
    text = text.rstrip()
    start = max(text.rfind("["), text.rfind("【"))
    return text[:start].removesuffix("(").rstrip() if start >= 0 and _HALF.fullmatch(text, start) else text


def renumbered(text: str, marks: Mapping[int, int]) -> str:
    """Return a text whose citations have other numbers; those of a number without one stay."""

    def other(bracket: re.Match[str]) -> str:
        parsed = parse_citations(bracket[0], marks)
        return bracket[0] if parsed.out_of_range else "".join(f"[{marks[number]}]" for number in parsed.numbers)

    return _CITATION.sub(other, text)


def is_same_but_citations(written: str, shown: str) -> bool:
    """Tell whether a text is one that was written, less citations, and a citation that it broke off in."""
    return strip_citations(without_half_citation(written)).rstrip() == strip_citations(shown).rstrip()


def quotable(sentence: str) -> str:
    """Return a sentence of a passage as an answer quotes it: its words alone, on one line.

    Left out are citations of its own and the signs of Markdown: emphasis, code, quotes, bars between cells, footnotes,
    line breaks, escapes, addresses of links. A list or a heading that a passage holds would otherwise take the answer
    apart, and leave its lines uncited.
    """
    unlinked = _ADDRESS.sub(r"\1", _REFERENCE.sub(r"\1", _LINK.sub(r"\1", _FOOTNOTE.sub("", sentence))))
    uncited = _REMOVED.sub("", _BREAK.sub(" ", unlinked))
    line = _LINE_BREAKS.sub(" ", without_marks(uncited) if "]" in uncited else uncited).strip()
    plain = _EMPHASIS.sub(r"\2", _STRUCK.sub(r"\1", _CODE.sub(r"\2", line)))
    return _ESCAPED.sub(r"\1", _BAR.sub("; ", _LOOSE_EMPHASIS.sub("", plain)))


def without_marks(text: str) -> str:
    """Return a text without anything that looks like `MARK`, which the claim check alone may set."""
    left: list[str] = []
    for character in text:
        left.append(character)
        if character == "]" and "".join(left[-len(MARK) :]).casefold() == MARK:
            del left[-len(MARK) :]
            while left and left[-1] in " \t":
                left.pop()
    return "".join(left)


def stripped_spans(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of what `strip_citations` takes, in order."""
    return [match.span() for match in _REMOVED.finditer(text)]


def locate_quote(claim_sentence: str, passage_text: str, context: str = "") -> tuple[int, int] | None:
    """Return (start, end) of the passage's sentence that shares most content tokens with a citing sentence.

    Ties go to the sentence that shares more with ``context`` (the question, for a claim of one word), then to the
    earlier one. None when it holds less than `MIN_OVERLAP` of the claim's content tokens, or there are none.
    """
    claim = content_tokens(strip_citations(claim_sentence))
    asked = content_tokens(context)
    best: tuple[int, int] | None = None
    best_score = (0, 0)
    for start, end in sentence_spans(passage_text):
        words = content_tokens(passage_text[start:end])
        score = (len(claim & words), len(asked & words))
        if score[0] and score > best_score:
            best, best_score = (start, end), score
    return best if claim and best_score[0] >= MIN_OVERLAP * len(claim) else None


def content_tokens(text: str) -> frozenset[str]:
    """Return the tokens of a text, less English function words."""
    return frozenset(tokens(text)) - _FUNCTION_WORDS
