"""The claim judge without a model: which passages hold the words of each claim, and what the question still lacks."""

from __future__ import annotations

from collections.abc import Sequence

from agents.answers.claims import Claim
from agents.offline.reading.alignment import Embed
from agents.offline.reading.evidence import Evidence, find_each_evidence
from agents.offline.reading.parts import split_question
from agents.offline.reading.support import is_supported
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
