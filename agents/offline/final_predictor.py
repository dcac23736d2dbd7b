"""The final predictor without a model: the sentences that bear on a question, each with its citation."""

from __future__ import annotations

from collections.abc import Sequence

from agents.answerer import located_citations
from agents.answers.citations import strip_citations
from agents.offline.answerer import OfflineAnswerer
from agents.offline.reading.alignment import Embed
from agents.roles import Answer, Draft, Feedback, FinalAnswer, NumberedPassage


class OfflineFinalPredictor:
    """Quotes evidence as the offline answerer does.

    Args:
        embed: gives unit vectors of texts; None compares words alone.
        least_likeness: the least cosine of evidence, on the scale of that embedding.
    """

    def __init__(self, embed: Embed | None = None, least_likeness: float = 0.0) -> None:
        self._answerer = OfflineAnswerer(embed, least_likeness)

    def answer(
        self,
        question: str,
        passages: Sequence[NumberedPassage],
        draft: Draft | None = None,
        feedback: Feedback | None = None,
    ) -> FinalAnswer:
        """Return the quotes or a refusal; a draft stays as it is, and evidence for its follow-ups is appended."""
        seen = tuple(passage.number for passage in passages)
        if draft is None:
            return FinalAnswer(self._answerer.answer(question, passages), seen)
        found = [self._answerer.answer(asked, passages) for asked in draft.follow_ups]
        return FinalAnswer(_appended(draft, [each for each in found if not each.refused], passages, question), seen)


def _appended(draft: Draft, found: Sequence[Answer], passages: Sequence[NumberedPassage], question: str) -> Answer:
    """The draft with more paragraphs behind it, and the citations of both."""
    new = dict.fromkeys(paragraph for each in found for paragraph in each.text.split("\n\n"))
    text = "\n\n".join([draft.text.rstrip(), *(paragraph for paragraph in new if paragraph not in draft.text)])
    cited = located_citations(draft.text, question, passages, {passage.number for passage in passages})
    citations = {citation.number: citation for each in (*found,) for citation in each.citations}
    citations |= {citation.number: citation for citation in cited}
    order = dict.fromkeys([*(citation.number for citation in cited), *citations])
    notes = tuple(note for each in found for note in each.notes)
    ordered = tuple(citations[number] for number in order)
    return Answer(text, strip_citations(text).strip(), ordered, is_evidence=True, notes=notes)
