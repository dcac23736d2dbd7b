"""The claim judge on a chat model: which claims hold, and what the question still lacks (RAGentA, agent 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from agents.answerer import passages_material, tell_left_out, within_room
from agents.answers.claims import Claim
from agents.chat.agent import ChatAgent
from agents.chat.fitting import Room
from agents.chat.json_schema import Schema, list_of, number_of, numbers_of, object_of, one_of, text_of
from agents.roles import Assessment, ClaimVerdict, Component, Coverage, Feedback, FollowUp, NumberedPassage, Structure
from graph.errors import MalformedReply
from graph.text import normalise_name

DEFAULT_BUDGET_CHARACTERS = 24_000
MAX_COMPONENTS = 8
MAX_FOLLOW_UP_CHARACTERS = 500

_MAX_LISTED = 10
# A question may be as long.
_MAX_COMPONENT_CHARACTERS = 10_000
# What a grammar lets a component or a follow-up question have.
_ASKED_CHARACTERS = 300


JudgedCoverage = Literal[Coverage.FULLY, Coverage.PARTIALLY, Coverage.NOT]
JUDGED_COVERAGES: tuple[Coverage, ...] = get_args(JudgedCoverage)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ComponentReply(_Strict):
    """One thing that the question asks for; of a single one the text may be empty, and means the question."""

    text: str
    coverage: JudgedCoverage
    claims: list[int]


class ClaimReply(_Strict):
    """What was found of one claim."""

    number: int
    supported_by: list[int]
    relevant: bool


class FollowUpReply(_Strict):
    """A question about what is missing."""

    component: int
    question: str


class ClaimJudgeReply(_Strict):
    """The question's structure and components, the verdict on each claim, and what to ask next."""

    structure: Structure
    components: list[ComponentReply] = Field(min_length=1, max_length=MAX_COMPONENTS)
    claims: list[ClaimReply]
    follow_ups: list[FollowUpReply]


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

        Claims are cut to an even share of half the prompt's characters where they exceed it together, which is told.

        A follow-up question is dropped, and counted, where it is empty or above 500 characters, repeats another or
        the question itself, is about a component that is fully answered, or comes after ``max_follow_ups`` others.

        Raises:
            MalformedReply: the reply is not of the schema, or contradicts itself or what it was shown.
        """
        cut_claims = _cut_claims(claims, DEFAULT_BUDGET_CHARACTERS // 2)
        about: dict[str, object] = {
            "question": question,
            "max_follow_ups": max_follow_ups,
            "claims": [{"number": each.number, "text": each.text, "cited": list(each.cited)} for each in cut_claims],
        }
        bare = self.messages(about, feedback, max_components=MAX_COMPONENTS)
        room = self._room(bare, DEFAULT_BUDGET_CHARACTERS - sum(len(claim.text) for claim in cut_claims))
        if cut_claims != claims:
            room.tell(f"the end of {sum(a != b for a, b in zip(claims, cut_claims, strict=True))} claims")
        shown = shown_passages(claims, passages, room)
        tell_left_out(passages, shown, room)
        messages = self.messages(
            {**about, "passages": passages_material(shown)}, feedback, max_components=MAX_COMPONENTS
        )

        claim_numbers = {claim.number for claim in claims}
        passage_numbers = {passage.number for passage in shown}

        def check(reply: ClaimJudgeReply) -> Assessment:
            reason = _contradiction(reply, claim_numbers, passage_numbers)
            if reason:
                raise MalformedReply(reason)
            return _assessment(reply, question, claims, max_follow_ups)

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


def _cut_claims(claims: Sequence[Claim], budget_characters: int) -> Sequence[Claim]:
    """The claims, each cut to an even share of the budget where they exceed it together."""
    if sum(len(claim.text) for claim in claims) <= budget_characters:
        return claims
    share = budget_characters // len(claims)
    return [replace(claim, text=claim.text[:share]) for claim in claims]


def _contradiction(reply: ClaimJudgeReply, claims: Collection[int], passages: Collection[int]) -> str | None:
    """What a reply of the schema gets wrong, in words that tell what to mend; None for a consistent one."""
    judged = Counter(claim.number for claim in reply.claims)
    components = range(1, len(reply.components) + 1)
    single = reply.structure is Structure.SINGLE
    wrong_count = (len(components) != 1) if single else (len(components) < 2)
    uncovered = [
        place
        for place, component in enumerate(reply.components, 1)
        if component.coverage is not Coverage.NOT and not component.claims
    ]
    unreadable = [
        place
        for place, component in enumerate(reply.components, 1)
        if len(component.text) > _MAX_COMPONENT_CHARACTERS or not (single or component.text.strip())
    ]
    listed_claims = [number for component in reply.components for number in component.claims]
    supporting = [number for claim in reply.claims for number in claim.supported_by]
    followed = [follow_up.component for follow_up in reply.follow_ups]
    faults = (
        ("claims: there is no claim {}", _unknown((*judged, *listed_claims), claims)),
        ("claims: no verdict on claim {}", sorted(set(claims) - judged.keys())),
        ("claims: more than one verdict on claim {}", [number for number, count in judged.items() if count > 1]),
        ("supported_by: no passage {} was shown", _unknown(supporting, passages)),
        (
            "structure: single takes one component, multiple two or more, but there are {}",
            [len(components)] * wrong_count,
        ),
        ("components: the text of component {} is empty or too long", unreadable),
        ("components: answered at least in part takes a claim, but none is listed for component {}", uncovered),
        ("follow_ups: there is no component {}", _unknown(followed, components)),
    )
    return next((words.format(", ".join(map(str, found[:_MAX_LISTED]))) for words, found in faults if found), None)


def _unknown(numbers: Collection[int], known: Collection[int]) -> list[int]:
    return sorted({number for number in numbers if number not in known})


def _assessment(reply: ClaimJudgeReply, question: str, claims: Sequence[Claim], max_follow_ups: int) -> Assessment:
    found = {claim.number: claim for claim in reply.claims}
    verdicts = tuple(
        ClaimVerdict(claim.number, _each_once(found[claim.number].supported_by), found[claim.number].relevant)
        for claim in claims
    )
    components = tuple(
        Component(component.text.strip() or question, component.coverage, _each_once(component.claims))
        for component in reply.components
    )
    follow_ups = _useful(reply.follow_ups, components, question)[:max_follow_ups]
    return Assessment(reply.structure, components, verdicts, follow_ups, len(reply.follow_ups) - len(follow_ups))


def _useful(
    follow_ups: Sequence[FollowUpReply], components: Sequence[Component], question: str
) -> tuple[FollowUp, ...]:
    """The follow-up questions about what is missing, each wording once, in their order."""
    asked = {"", normalise_name(question)}
    useful = []
    for item in follow_ups:
        wording = normalise_name(item.question)
        fully = components[item.component - 1].coverage is Coverage.FULLY
        if wording in asked or len(item.question) > MAX_FOLLOW_UP_CHARACTERS or fully:
            continue
        asked.add(wording)
        useful.append(FollowUp(item.question.strip(), item.component))
    return tuple(useful)


def _each_once(numbers: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))
