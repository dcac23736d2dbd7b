"""The claim judge without a model: which passages hold the words of each claim, and what the question still lacks.

It sees words, not meaning: a sentence that turns its source round ("A acquired B" for "B acquired A") or negates it
passes, and a true paraphrase in other words fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.answers.claims import Claim
from agents.offline.language.words import ADVERBS, FUNCTION_WORDS, bare_stem, content_stems
from agents.offline.reading.alignment import Embed
from agents.offline.reading.evidence import Evidence, find_each_evidence
from agents.offline.reading.questions import split_question
from agents.roles import (
    Assessment,
    ClaimVerdict,
    Component,
    Coverage,
    Feedback,
    FollowUp,
    NumberedPassage,
    Structure,
)
from graph.text import token_spans, tokens

LEAST_SHARED = 0.6
"""Share of a sentence's content words that its source holds, at least, where it supports the sentence."""

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_UNNAMED = FUNCTION_WORDS | ADVERBS


def is_supported(sentence: str, source: str) -> bool:
    """Tell whether a source holds all numbers and capitalised words of a sentence, and most of its content words.

    Most is `LEAST_SHARED`. A sentence without content words, such as "Yes.", has nothing to hold and is not supported.
    """
    said, known = set(content_stems(sentence)), set(content_stems(source))
    if not said or len(said & known) < LEAST_SHARED * len(said):
        return False
    return _numbers(sentence) <= _numbers(source) and _names(sentence) <= {bare_stem(token) for token in tokens(source)}


def _numbers(text: str) -> set[str]:
    return {match[0].replace(",", "") for match in _NUMBER.finditer(text)}


def _names(text: str) -> set[str]:
    """Return the stems of the capitalised words that are no function words."""
    return {
        bare_stem(token) for token, start, _ in token_spans(text) if text[start].isupper() and token not in _UNNAMED
    }


class OfflineClaimJudge:
    """Compares words, and judges no meaning: what it finds is evidence, never an answer; deterministic.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of evidence, on the scale of that embedding.
    """

    def __init__(self, embed: Embed | None = None, least_likeness: float = 0.0) -> None:
        self._embed = embed
        self._least_likeness = least_likeness

    def assess(
        self,
        question: str,
        claims: Sequence[Claim],
        passages: Sequence[NumberedPassage],
        max_follow_ups: int,
        feedback: Feedback | None = None,
    ) -> Assessment:
        """Return what the passages hold of each claim, and for which parts of the question there is evidence.

        A part of several that has none is asked again as a follow-up.
        """
        verdicts = tuple(_verdict(claim, passages) for claim in claims)
        if len(split_question(question)) == 1:
            held = tuple(verdict.claim for verdict in verdicts if verdict.supported_by)
            component = Component(question, Coverage.EVIDENCE if held else Coverage.NOT, held)
            return Assessment(Structure.SINGLE, (component,), verdicts)
        found = find_each_evidence(question, passages, self._embed, self._least_likeness)
        components = tuple(_component(each, verdicts) for each in found)
        wanted = [
            FollowUp(part.text, number) for number, part in enumerate(components, 1) if part.coverage is Coverage.NOT
        ]
        kept = tuple(wanted[:max_follow_ups])
        return Assessment(Structure.MULTIPLE, components, verdicts, kept, len(wanted) - len(kept))


def _component(found: Evidence, verdicts: Sequence[ClaimVerdict]) -> Component:
    """The claims that rest on the passages which hold evidence for a part."""
    numbers = {excerpt.passage.number for excerpt in found.excerpts}
    held = tuple(verdict.claim for verdict in verdicts if numbers.intersection(verdict.supported_by))
    return Component(found.question, Coverage.EVIDENCE if held else Coverage.NOT, held)


def _verdict(claim: Claim, passages: Sequence[NumberedPassage]) -> ClaimVerdict:
    """Which passages hold what a claim says: of those that it cites, or of all where it cites none.

    Where none does alone, those that it cites may hold it together, as a comparison does.
    """
    shown = [passage for passage in passages if not claim.cited or passage.number in claim.cited]
    sources = {passage.number: f"{passage.title}\n{passage.text}" for passage in shown}
    holding = [number for number, source in sources.items() if is_supported(claim.text, source)]
    if not holding and len(claim.cited) > 1 and is_supported(claim.text, "\n".join(sources.values())):
        holding = list(sources)
    return ClaimVerdict(claim.number, tuple(holding))
