"""Whether the cited passages hold what an answer's sentences say: a lexical proxy that asks no model.

It sees words, not meaning: a sentence that turns its source round ("A acquired B" for "B acquired A") or negates it
passes, and a true paraphrase in other words fails. It tells systems apart that are measured alike, and no more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from agents.citations import parse_citations, strip_citations
from agents.offline.words import ADVERBS, FUNCTION_WORDS, content_stems, stem
from graph.text import sentence_spans, token_spans, tokens

LEAST_SHARED = 0.6
"""Share of a sentence's content words that its cited passages hold, at least, where they support it."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNNAMED = FUNCTION_WORDS | ADVERBS


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence of an answer without its citations, and the numbers that it cites, in order."""

    text: str
    numbers: tuple[int, ...]


def cited_sentences(answer: str, n_passages: int) -> list[CitedSentence]:
    """Return the sentences of an answer that cite, in order; one after a full stop belongs to the sentence before it.

    Args:
        answer: with citations such as ``[1]`` or ``[1, 3]``.
        n_passages: the passages are numbered from 1 to this; other numbers are no citations.
    """
    plain = strip_citations(answer)
    spans = sentence_spans(plain)
    cited: defaultdict[tuple[int, int], dict[int, None]] = defaultdict(dict)
    for start, end in parse_citations(answer, n_passages).spans:
        place = len(strip_citations(answer[:start]).rstrip(" \t("))
        sentence = max((span for span in spans if span[0] <= place), default=None)
        if sentence:
            cited[sentence].update(dict.fromkeys(parse_citations(answer[start:end], n_passages).numbers))
    return [CitedSentence(plain[slice(*span)], tuple(numbers)) for span, numbers in sorted(cited.items()) if numbers]


def supported_citations(answer: str, passages: Mapping[int, str]) -> dict[int, bool]:
    """Tell for each cited number whether all sentences that cite it are supported.

    A sentence is supported where the passages it cites hold together what `is_supported` asks for; a citation, where
    its passage holds some content word of that sentence besides.

    Args:
        answer: with citations.
        passages: title and text by number; a cited number without passage is no citation.
    """
    verdicts: dict[int, bool] = {}
    for sentence in cited_sentences(answer, max(passages, default=0)):
        known = [number for number in sentence.numbers if number in passages]
        holds = is_supported(sentence.text, "\n".join(passages[number] for number in known))
        said = set(content_stems(sentence.text))
        for number in known:
            shares = not said.isdisjoint(content_stems(passages[number]))
            verdicts[number] = verdicts.get(number, True) and holds and shares
    return verdicts


def is_supported(sentence: str, source: str) -> bool:
    """Tell whether a source holds all numbers and capitalised words of a sentence, and most of its content words.

    Most is `LEAST_SHARED`. A sentence without content words, such as "Yes.", has nothing to hold and is not supported.
    """
    said, known = set(content_stems(sentence)), set(content_stems(source))
    if not said or len(said & known) < LEAST_SHARED * len(said):
        return False
    return _numbers(sentence) <= _numbers(source) and _names(sentence) <= {stem(token) for token in tokens(source)}


def _numbers(text: str) -> set[str]:
    return {match[0].replace(",", "") for match in _NUMBER.finditer(text)}


def _names(text: str) -> set[str]:
    """Return the stems of the capitalised words that are no function words."""
    return {stem(token) for token, start, _ in token_spans(text) if text[start].isupper() and token not in _UNNAMED}
