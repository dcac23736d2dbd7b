"""The claim judge (RAGentA, agent 4): which claims hold, what the question lacks, and what is left of the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from pydantic import BaseModel, Field

from agents.agent import Agent
from agents.answerer import OfflineReader, passages_material, tell_left_out, within_room
from agents.answers.citations import locate_quote
from agents.answers.claims import Claim, join_claims, plain_text, split_claims
from agents.answers.quotes import unmarked
from agents.chat.agent import ChatAgent, Schema, list_of, number_of, numbers_of, object_of, one_of, text_of
from agents.chat.material import Room
from agents.offline.evidence import Evidence
from agents.offline.questions import split_question
from agents.offline.words import ADVERBS, FUNCTION_WORDS, bare_stem, content_stems
from agents.roles import REFUSAL, Answer, Citation, Feedback, NumberedPassage, refusal
from graph.errors import MalformedReply
from graph.text import normalise_name, token_spans, tokens

DEFAULT_BUDGET_CHARACTERS = 24_000
MAX_COMPONENTS = 8
MAX_FOLLOW_UP_CHARACTERS = 500

# The most that a grammar lets a component or a follow-up question have.
_ASKED_CHARACTERS = 300


class Coverage(StrEnum):
    """How far an answer answers a question, or a component of it."""

    FULLY = "FULLY ANSWERED"
    EVIDENCE = "EVIDENCE, NOT JUDGED"
    """Sentences that bear on it were found by their words; whether they answer it was not judged."""
    PARTIALLY = "PARTIALLY ANSWERED"
    NOT = "NOT ANSWERED"


class Structure(StrEnum):
    """Whether a question asks for one thing, however many steps that takes, or for several."""

    SINGLE = "single"
    MULTIPLE = "multiple"


@dataclass(frozen=True, slots=True)
class Component:
    """One thing that a question asks for.

    Attributes:
        text: in words of its own, or the whole question where that is single.
        coverage: how far the claims answer it.
        claims: numbers of the claims that are about it.
    """

    text: str
    coverage: Coverage
    claims: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """The verdict on one claim.

    Attributes:
        claim: its number.
        supported_by: numbers of passages that say what it says; empty where none does.
        relevant: whether it helps to answer the question; what does not is removed.
    """

    claim: int
    supported_by: tuple[int, ...]
    relevant: bool = True


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question about what is missing; it can be understood by itself.

    Attributes:
        question: what is asked.
        component: which component it is about, from 1.
    """

    question: str
    component: int


@dataclass(frozen=True, slots=True)
class Assessment:
    """The claim judge's assessment of an answer.

    Attributes:
        structure: of the question.
        components: one where the question is single, two or more where it is multiple.
        verdicts: one for each claim, in their order.
        follow_ups: for components that are not fully answered, the most needed first.
        dropped: how many follow-up questions of the reply were of no use: too many, repeated, about nothing missing.
    """

    structure: Structure
    components: tuple[Component, ...]
    verdicts: tuple[ClaimVerdict, ...]
    follow_ups: tuple[FollowUp, ...] = ()
    dropped: int = 0

    @property
    def coverage(self) -> Coverage:
        """How far the whole question is answered."""
        coverages = {component.coverage for component in self.components}
        return coverages.pop() if len(coverages) == 1 else Coverage.PARTIALLY


class ClaimJudge(Protocol):
    """Checks an answer claim by claim, and says what the question still lacks (RAGentA, agent 4)."""

    def assess(
        self,
        question: str,
        claims: Sequence[Claim],
        passages: Sequence[NumberedPassage],
        max_follow_ups: int,
        feedback: Feedback | None = None,
    ) -> Assessment:
        """Return what holds of each claim, and how far the question is answered.

        Args:
            question: what is asked.
            claims: the sentences of the answer; none where it is a refusal.
            passages: those that the answer was written from.
            max_follow_ups: at most so many follow-up questions are returned.
            feedback: why the last reply was refused.

        Raises MalformedReply.
        """


JUDGED_COVERAGES = (Coverage.FULLY, Coverage.PARTIALLY, Coverage.NOT)


class ClaimReply(BaseModel):
    """The findings on one claim."""

    number: int
    supported_by: list[int]
    relevant: bool


class ClaimJudgeReply(BaseModel):
    """The question's structure and components, the verdict on each claim, and what to ask next.

    Of a single component the text may be empty, and means the question.
    """

    structure: Structure
    components: list[Component] = Field(min_length=1, max_length=MAX_COMPONENTS)
    claims: list[ClaimReply]
    follow_ups: list[FollowUp]


class ChatClaimJudge(ChatAgent):
    """Asks a chat model for a verdict on each claim, and how far each component of the question is answered."""

    prompt = "claim_judge"
    material = "question, claims and passages"
    reply_tokens = 2_000

    def assess(
        self,
        question: str,
        claims: Sequence[Claim],
        passages: Sequence[NumberedPassage],
        max_follow_ups: int,
        feedback: Feedback | None = None,
    ) -> Assessment:
        """Return what the model found, as far as it is consistent; see `shown_passages` for what it is shown.

        A follow-up question is dropped, and counted, where it is empty or above 500 characters, repeats another or
        the question itself, is about a component that is fully answered, or comes after ``max_follow_ups`` others.

        Raises:
            MalformedReply: the reply is not of the schema, or contradicts itself or what it was shown.
        """
        about: dict[str, object] = {
            "question": question,
            "max_follow_ups": max_follow_ups,
            "claims": [{"number": each.number, "text": each.text, "cited": list(each.cited)} for each in claims],
        }
        bare = self.messages(about, feedback, max_components=MAX_COMPONENTS)
        taken = sum(len(claim.text) for claim in claims)
        room = self._room(bare, max(0, DEFAULT_BUDGET_CHARACTERS - taken))
        shown = shown_passages(claims, passages, room)
        tell_left_out(passages, shown, room)
        material = {**about, "passages": passages_material(shown)}
        messages = self.messages(material, feedback, max_components=MAX_COMPONENTS)
        claim_numbers = {claim.number for claim in claims}
        passage_numbers = {passage.number for passage in shown}

        def check(reply: ClaimJudgeReply) -> Assessment:
            for reason in _contradictions(reply, claim_numbers, passage_numbers):
                raise MalformedReply(reason)
            return _assessment(reply, question, max_follow_ups)

        schema = _schema(claim_numbers, passage_numbers, max_follow_ups)
        return self._ask_object(ClaimJudgeReply, schema, messages, check)


def _schema(claims: Collection[int], passages: Collection[int], max_follow_ups: int) -> Schema:
    """The schema of a reply about these claims and passages: all of them chosen by number."""
    component = object_of(text=text_of(_ASKED_CHARACTERS), coverage=one_of(JUDGED_COVERAGES), claims=numbers_of(claims))
    verdict = object_of(number=number_of(claims), supported_by=numbers_of(passages), relevant={"type": "boolean"})
    follow_up = object_of(component=number_of(range(1, MAX_COMPONENTS + 1)), question=text_of(_ASKED_CHARACTERS))
    return object_of(
        structure=one_of([*Structure]),
        components=list_of(component, MAX_COMPONENTS, at_least=1),
        claims=list_of(verdict, len(claims), at_least=len(claims)),
        follow_ups=list_of(follow_up, max_follow_ups),
    )


def shown_passages(
    claims: Sequence[Claim], passages: Sequence[NumberedPassage], room: Room
) -> tuple[NumberedPassage, ...]:
    """Return the passages that claims are checked against: the cited ones first, then the others, the best first.

    The cited ones are all shown: where they do not fit, each is cut to the sentences that fit into an even share. Of
    the others, those that fit are.
    """
    if not passages:
        return ()
    cited = {number for claim in claims for number in claim.cited}
    needed = [passage for passage in passages if passage.number in cited]
    others = [passage for passage in passages if passage.number not in cited]
    if room.count([passage.title + passage.text for passage in needed]) < len(needed):
        return tuple(shown for passage in needed for shown in within_room((passage,), room.share(len(needed))))
    return within_room((*needed, *others), room)


def _contradictions(reply: ClaimJudgeReply, claims: Collection[int], passages: Collection[int]) -> Iterator[str]:
    """Yield the faults of a reply of the schema, in words that tell how to mend it; nothing of a consistent one."""
    judged = [claim.number for claim in reply.claims]
    count, single = len(reply.components), reply.structure is Structure.SINGLE
    for number in (*judged, *(number for component in reply.components for number in component.claims)):
        if number not in claims:
            yield f"claims: there is no claim {number}"
    if sorted(judged) != sorted(claims):
        yield f"claims: each of {', '.join(map(str, sorted(claims)))} takes one verdict"
    for number in (number for claim in reply.claims for number in claim.supported_by):
        if number not in passages:
            yield f"supported_by: no passage {number} was shown"
    if single != (count == 1):
        yield f"structure: single takes one component, multiple two or more, but there are {count}"
    for place, component in enumerate(reply.components, 1):
        if not (single or component.text.strip()):
            yield f"components: the text of component {place} is empty"
        if component.coverage not in JUDGED_COVERAGES:
            yield f"components: the coverage of component {place} is none of {', '.join(JUDGED_COVERAGES)}"
        if component.coverage is not Coverage.NOT and not component.claims:
            yield f"components: answered at least in part takes a claim, but none is listed for component {place}"
    for follow_up in reply.follow_ups:
        if not 1 <= follow_up.component <= count:
            yield f"follow_ups: there is no component {follow_up.component}"


def _assessment(reply: ClaimJudgeReply, question: str, max_follow_ups: int) -> Assessment:
    replies = {claim.number: claim for claim in reply.claims}
    verdicts = tuple(
        ClaimVerdict(number, tuple(dict.fromkeys(each.supported_by)), each.relevant)
        for number, each in sorted(replies.items())
    )
    components = tuple(
        replace(component, text=component.text.strip() or question, claims=tuple(dict.fromkeys(component.claims)))
        for component in reply.components
    )
    follow_ups = _useful(reply.follow_ups, components, question)[:max_follow_ups]
    return Assessment(reply.structure, components, verdicts, follow_ups, len(reply.follow_ups) - len(follow_ups))


def _useful(follow_ups: Sequence[FollowUp], components: Sequence[Component], question: str) -> tuple[FollowUp, ...]:
    """The follow-up questions about what is missing, each wording once, in their order."""
    asked = {"", normalise_name(question)}
    useful = []
    for item in follow_ups:
        wording = normalise_name(item.question)
        fully = components[item.component - 1].coverage is Coverage.FULLY
        if wording in asked or len(item.question) > MAX_FOLLOW_UP_CHARACTERS or fully:
            continue
        asked.add(wording)
        useful.append(replace(item, question=item.question.strip()))
    return tuple(useful)


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


class OfflineClaimJudge(OfflineReader):
    """Compares words, and judges no meaning: what it finds is evidence, never an answer; deterministic."""

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
            supported = tuple(verdict.claim for verdict in verdicts if verdict.supported_by)
            component = Component(question, Coverage.EVIDENCE if supported else Coverage.NOT, supported)
            return Assessment(Structure.SINGLE, (component,), verdicts)
        evidence = self._find(question, passages)
        components = tuple(_component(each, verdicts) for each in evidence)
        wanted = [
            FollowUp(part.text, number) for number, part in enumerate(components, 1) if part.coverage is Coverage.NOT
        ]
        asked = tuple(wanted[:max_follow_ups])
        return Assessment(Structure.MULTIPLE, components, verdicts, asked, len(wanted) - len(asked))


def _component(evidence: Evidence, verdicts: Sequence[ClaimVerdict]) -> Component:
    """The claims that rest on the passages which hold evidence for a part."""
    numbers = {excerpt.passage.number for excerpt in (*evidence.excerpts, *evidence.related)}
    supported = tuple(verdict.claim for verdict in verdicts if numbers.intersection(verdict.supported_by))
    return Component(evidence.question, Coverage.EVIDENCE if supported else Coverage.NOT, supported)


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


def _shown(assessment: Assessment) -> dict[str, Any]:
    return {
        "coverage": assessment.coverage.value,
        "components": [{"text": each.text, "coverage": each.coverage.value} for each in assessment.components],
        "claims": [
            {"number": each.claim, "supported_by": list(each.supported_by), "relevant": each.relevant}
            for each in assessment.verdicts
        ],
        "follow_ups": [each.question for each in assessment.follow_ups],
    }


CLAIM_JUDGE: Agent[ClaimJudge, Assessment] = Agent(
    name="claim_judge",
    key="claim",
    chat=lambda model, run: ChatClaimJudge(model),
    offline=OfflineClaimJudge.of_run,
    shown=_shown,
    instead="claims are checked by their words",
)
