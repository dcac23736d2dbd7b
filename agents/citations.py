"""The citation grammar of answers: ``[1]``, ``[1, 3]``, ``[1][2]``, ``[1-3]``.

A bracket with a number above 999, such as ``[2024]``, is prose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graph.text import sentence_spans

_PART = r"[0-9]{1,3}(?:\s*[-–]\s*[0-9]{1,3})?"
_MARK = rf"\[\s*{_PART}(?:\s*[,;]\s*{_PART})*\s*\]"
_RUN = rf"{_MARK}(?:[ \t]*(?:[,;][ \t]*)?{_MARK})*"
_CITATION = re.compile(_MARK)
_NUMBERS = re.compile(r"([0-9]+)(?:\s*[-–]\s*([0-9]+))?")
_AFTER_STOP = re.compile(rf"([.!?。！？])[ \t]*({_RUN})(?=\s|$)")
# At the start of a line the space after a citation goes with it, elsewhere the space before it.
_REMOVED = re.compile(rf"^(?:\({_RUN}\)|{_RUN})[ \t]*|(?<![ \t])[ \t]*(?:\({_RUN}\)|{_RUN})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ParsedCitations:
    """What an answer cites.

    Attributes:
        numbers: the passages cited, each once, in order of first appearance.
        out_of_range: cited numbers that no passage has, each once, in order of first appearance.
        spans: (start, end) of each bracket in the text.
    """

    numbers: tuple[int, ...]
    out_of_range: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


def parse_citations(text: str, n_passages: int) -> ParsedCitations:
    """Return the citations of a text whose passages are numbered from 1 to ``n_passages``.

    A range holds both its ends, whichever comes first.
    """
    cited: dict[int, None] = {}
    spans = []
    for mark in _CITATION.finditer(text):
        spans.append(mark.span())
        for first, last in _NUMBERS.findall(mark[0]):
            ends = sorted((int(first), int(last or first)))
            cited.update(dict.fromkeys(range(ends[0], ends[1] + 1)))
    return ParsedCitations(
        numbers=tuple(number for number in cited if 1 <= number <= n_passages),
        out_of_range=tuple(number for number in cited if not 1 <= number <= n_passages),
        spans=tuple(spans),
    )


def strip_citations(text: str) -> str:
    """Return a text without its citations and the space they took: "in 1933 [1]." becomes "in 1933."."""
    return _REMOVED.sub("", text)


def citing_sentence(text: str, number: int) -> str:
    """Return the first sentence that cites a passage, without its citations; empty where none does.

    A citation after a full stop belongs to the sentence before it.
    """
    inside = _AFTER_STOP.sub(r" \2\1", text)
    for start, end in sentence_spans(inside):
        sentence = inside[start:end]
        if number in parse_citations(sentence, number).numbers:
            return strip_citations(sentence).strip()
    return ""
