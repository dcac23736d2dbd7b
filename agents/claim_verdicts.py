"""The consequences of judged claims for an answer: the parts kept, marked, removed, and worth completing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from agents.answers.citations import locate_quote
from agents.answers.claims import Claim, join_claims, plain_text, split_claims
from agents.answers.quotes import unmarked
from agents.claim_judge import Assessment, ClaimVerdict, Component, Coverage, Structure
from agents.roles import REFUSAL, Answer, Citation, NumberedPassage, refusal


class Verdict(StrEnum):
    """The finding on a claim."""

    SUPPORTED = "supported"
    QUOTED = "quoted"
    """Its words stand in what it cites; whether that answers the question was not judged."""
    UNSUPPORTED = "unsupported"
    IRRELEVANT = "irrelevant"


@dataclass(frozen=True, slots=True)
class SettledClaim:
    """A claim and what became of it.

    Attributes:
        claim: as it was written.
        supported_by: numbers of the passages that say it, cited or not.
        component: which component of the question it is about, from 1; None for none.
        verdict: what was found; a claim that cites is supported only by passages that it cites.
        kept: whether the answer still holds it.
        spans: where the passages that it rests on hold its words, as far as they do.
    """

    claim: Claim
    supported_by: tuple[int, ...]
    component: int | None
    verdict: Verdict
    kept: bool
    spans: tuple[Citation, ...]

    @property
    def holds(self) -> bool:
        """Whether a passage that it cites says it."""
        return self.verdict in (Verdict.SUPPORTED, Verdict.QUOTED)


@dataclass(frozen=True, slots=True)
class Settled:
    """An answer after its claims were judged.

    Attributes:
        answer: without irrelevant claims, the unsupported ones marked or removed; a refusal where nothing is answered.
        claims: all that were written, in order.
        components: those of the question; one whose claims are all unsupported is not answered.
        coverage: of the whole question.
        draft: the supported claims alone, to be completed; empty where there are none.
        cited: numbers that the draft cites with good reason.
    """

    answer: Answer
    claims: tuple[SettledClaim, ...]
    components: tuple[Component, ...]
    coverage: Coverage
    draft: str
    cited: tuple[int, ...]


def nothing_answered(question: str, claims: Sequence[Claim] = ()) -> Assessment:
    """Return what holds of an answer that answers nothing: the question is one, and not answered."""
    component = Component(question, Coverage.NOT, ())
    return Assessment(Structure.SINGLE, (component,), tuple(ClaimVerdict(claim.number, ()) for claim in claims))


def settle_claims(
    question: str,
    text: str,
    claims: Sequence[Claim],
    assessment: Assessment,
    passages: Iterable[NumberedPassage],
    *,
    remove_unsupported: bool,
    refuse_unanswered: bool = True,
    are_quotes: bool = False,
) -> Settled:
    """Return what is left of an answer.

    A claim that cites is supported only by passages that it cites; one that does not cite gets no citation. Irrelevant
    claims are removed, unsupported ones removed or marked: none is kept in silence. A claim that another passage
    supports than it cites is unsupported as it stands, but no reason to refuse: its component is partially answered.

    Args:
        question: what was asked.
        text: the answer.
        claims: its claims, see `split_claims`.
        assessment: what the claim judge said of them; one verdict a claim.
        passages: those that the answer was written from.
        remove_unsupported: whether unsupported claims go, rather than being marked.
        refuse_unanswered: whether an answer that answers nothing becomes the refusal.
        are_quotes: whether the claims are quotes, which no model checked.
    """
    assessment = _with_all_claims(assessment)
    by_number = {passage.number: passage for passage in passages}
    component_of = {
        number: place for place, component in enumerate(assessment.components, 1) for number in component.claims
    }
    settled = tuple(
        _settle_claim(
            claim,
            verdict,
            component_of.get(claim.number),
            question,
            by_number,
            remove=remove_unsupported,
            holding=Verdict.QUOTED if are_quotes else Verdict.SUPPORTED,
        )
        for claim, verdict in zip(claims, assessment.verdicts, strict=True)
    )
    by_claim = {each.claim.number: each for each in settled}
    unlisted = [each for each in settled if each.claim.number not in component_of]
    components = tuple(_settle_component(component, by_claim, unlisted) for component in assessment.components)
    coverage = replace(assessment, components=components).coverage
    if not any(each.kept for each in settled) or (coverage is Coverage.NOT and refuse_unanswered):
        dropped = tuple(replace(each, kept=False) for each in settled)
        components = tuple(replace(component, coverage=Coverage.NOT) for component in components)
        return Settled(refusal(), dropped, components, Coverage.NOT, "", ())
    removed = {each.claim.number for each in settled if not each.kept}
    marked = {each.claim.number for each in settled if each.kept and each.verdict is Verdict.UNSUPPORTED}
    answer = _answer(join_claims(text, claims, remove=removed, mark=marked), settled, by_number)
    if are_quotes:
        answer = replace(answer, is_evidence=True, plain_text=unmarked(answer.plain_text))
    supported = [each for each in settled if each.holds]
    cited = tuple(dict.fromkeys(n for each in supported for n in each.claim.cited if n in each.supported_by))
    draft = join_claims(text, claims, remove=by_claim.keys() - {each.claim.number for each in supported})
    return Settled(answer, settled, components, coverage, draft if cited else "", cited)


def _with_all_claims(assessment: Assessment) -> Assessment:
    """A question that asks for one thing has all relevant claims about it, listed or not."""
    if len(assessment.components) != 1:
        return assessment
    (component,) = assessment.components
    listed = dict.fromkeys([*component.claims, *(each.claim for each in assessment.verdicts if each.relevant)])
    return replace(assessment, components=(replace(component, claims=tuple(listed)),))


def _settle_claim(
    claim: Claim,
    verdict: ClaimVerdict,
    component: int | None,
    question: str,
    passages: Mapping[int, NumberedPassage],
    *,
    remove: bool,
    holding: Verdict,
) -> SettledClaim:
    known = tuple(number for number in verdict.supported_by if number in passages)
    support = tuple(number for number in known if not claim.cited or number in claim.cited)
    finding = holding if support else Verdict.UNSUPPORTED
    finding = finding if verdict.relevant else Verdict.IRRELEVANT
    stays = finding is holding or (finding is Verdict.UNSUPPORTED and not remove)
    located = ((number, locate_quote(claim.text, passages[number].text, question)) for number in support)
    spans = tuple(Citation(number, passages[number].id, *span) for number, span in located if span)
    return SettledClaim(claim, known, component, finding, stays, spans)


def _settle_component(
    component: Component, claims: Mapping[int, SettledClaim], unlisted: Sequence[SettledClaim]
) -> Component:
    """A component is not answered by claims that no passage says, and not fully where one is unsupported as it stands.

    A finding of the claim judge is lowered where it has to be, and never raised. Claims that it lists nowhere may be
    about any component.
    """
    about = [claims[number] for number in component.claims if number in claims]
    said = any(each.supported_by and each.verdict is not Verdict.IRRELEVANT for each in (*about, *unlisted))
    if component.coverage is Coverage.NOT or not said:
        return replace(component, coverage=Coverage.NOT)
    if component.coverage is Coverage.EVIDENCE:
        return component
    fully = component.coverage is Coverage.FULLY and all(each.verdict is not Verdict.UNSUPPORTED for each in about)
    return replace(component, coverage=Coverage.FULLY if fully else Coverage.PARTIALLY)


def _answer(text: str, claims: Iterable[SettledClaim], passages: Mapping[int, NumberedPassage]) -> Answer:
    """The answer with its citations, each located by the first claim that cites it."""
    stay = [each for each in claims if each.kept]
    citations: dict[int, Citation] = {}
    for each in stay:
        spans = {span.number: span for span in each.spans}
        for number in each.claim.cited:
            if number in passages:
                citations.setdefault(number, spans.get(number) or Citation(number, passages[number].id))
    return Answer(text, plain_text(text), tuple(citations.values()))


def claims_of(text: str, numbers: Iterable[int]) -> list[Claim]:
    """Return the claims of an answer that cites passages of these numbers; a refusal makes none."""
    return [] if text.strip() == REFUSAL else split_claims(text, set(numbers))
