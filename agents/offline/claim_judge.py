"""The claim judge without a model: what the passages hold of each claim, and what the question still lacks."""

from __future__ import annotations

from collections.abc import Sequence

from agents.claims import Claim
from agents.offline.components import split_question
from agents.offline.quotes import Embed, Sentence
from agents.offline.support import is_supported
from agents.offline.units import LEAST_SUPPORT, best_unit
from agents.offline.words import content_stems
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


class OfflineClaimJudge:
    """Compares words, names and kinds of answers; deterministic.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
    """

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed

    def assess(
        self,
        question: str,
        claims: Sequence[Claim],
        passages: Sequence[NumberedPassage],
        max_follow_ups: int,
        feedback: Feedback | None = None,
    ) -> Assessment:
        """Return the verdict on each claim, and the coverage of each part of the question."""
        by_number = {passage.number: passage for passage in passages}
        parts = split_question(question)
        verdicts = tuple(_verdict(claim, passages) for claim in claims)
        quoted = {
            claim.number: _as_sentence(claim, by_number[verdict.supported_by[0]])
            for claim, verdict in zip(claims, verdicts, strict=True)
            if verdict.supported_by
        }
        components = tuple(self._component(part, quoted) for part in parts)
        missing = [number for number, part in enumerate(components, 1) if part.coverage is not Coverage.FULLY]
        wanted = [FollowUp(parts[number - 1], number) for number in missing] if len(parts) > 1 else []
        structure = Structure.MULTIPLE if len(parts) > 1 else Structure.SINGLE
        kept = tuple(wanted[:max_follow_ups])
        return Assessment(structure, components, verdicts, kept, len(wanted) - len(kept))

    def _component(self, part: str, quoted: dict[int, Sentence]) -> Component:
        unit = best_unit(part, list(quoted.values()), self._embed)
        if unit.support < LEAST_SUPPORT:
            return Component(part, Coverage.NOT, ())
        used = tuple(number for number, sentence in quoted.items() if sentence in unit.sentences)
        return Component(part, Coverage.FULLY, used)


def _verdict(claim: Claim, passages: Sequence[NumberedPassage]) -> ClaimVerdict:
    """Which passages hold what a claim says: those that it cites, or any where it cites none."""
    shown = [passage for passage in passages if not claim.cited or passage.number in claim.cited]
    holding = [passage.number for passage in shown if is_supported(claim.text, f"{passage.title}\n{passage.text}")]
    return ClaimVerdict(claim.number, tuple(holding))


def _as_sentence(claim: Claim, passage: NumberedPassage) -> Sentence:
    """A claim as the sentence of its passage that it stands for."""
    place = passage.text.find(claim.text)
    start, end = (place, place + len(claim.text)) if place >= 0 else (0, len(passage.text))
    return Sentence(passage, 0, start, end, frozenset(content_stems(f"{passage.title} {claim.text}")))
