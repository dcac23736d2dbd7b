from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agents.answers.claims import Claim
from agents.chat.material import Room
from agents.chat.usage import tallied
from agents.claim_judge import (
    DEFAULT_BUDGET_CHARACTERS,
    JUDGED_COVERAGES,
    MAX_COMPONENTS,
    Assessment,
    ChatClaimJudge,
    ClaimJudge,
    ClaimVerdict,
    Component,
    Coverage,
    FollowUp,
    Structure,
    shown_passages,
)
from agents.roles import NumberedPassage
from graph.errors import MalformedReply
from tests.chatting import model_on
from tests.scripted_server import ReplyLike, scripted

QUESTION = "Who founded the yard at Orsund, and when did it close?"
FOUNDED = Claim(1, "The yard was founded by Nils Berg.", (3,), 0, 38)
CLOSED = Claim(2, "It closed in 1940.", (12,), 39, 61)
CLAIMS = (FOUNDED, CLOSED)
YARD = NumberedPassage(3, "p-yard", "Orsund", "The yard at Orsund was founded by Nils Berg.")
BANK = NumberedPassage(12, "p-bank", "Orsund Bank", "The bank closed in 1940.")
PASSAGES = (BANK, YARD)

COMPONENTS = [
    {"text": "Who founded the yard at Orsund?", "coverage": "FULLY ANSWERED", "claims": [1]},
    {"text": "When did the yard at Orsund close?", "coverage": "NOT ANSWERED", "claims": [2]},
]
VERDICTS = [{"number": 1, "supported_by": [3], "relevant": True}, {"number": 2, "supported_by": [], "relevant": True}]
FOLLOW_UP = {"component": 2, "question": "When did the yard of Nils Berg close?"}
REPLY: dict[str, Any] = {
    "structure": "multiple",
    "components": COMPONENTS,
    "claims": VERDICTS,
    "follow_ups": [FOLLOW_UP],
}
ASSESSMENT = Assessment(
    Structure.MULTIPLE,
    (
        Component("Who founded the yard at Orsund?", Coverage.FULLY, (1,)),
        Component("When did the yard at Orsund close?", Coverage.NOT, (2,)),
    ),
    (ClaimVerdict(1, (3,)), ClaimVerdict(2, ())),
    (FollowUp("When did the yard of Nils Berg close?", 2),),
)


def assess(
    reply: ReplyLike,
    claims: Sequence[Claim] = CLAIMS,
    max_follow_ups: int = 3,
    passages: Sequence[NumberedPassage] = PASSAGES,
) -> Assessment:
    with scripted({"claim judge": [reply]}) as server:
        agent: ClaimJudge = ChatClaimJudge(model_on(server))
        return agent.assess(QUESTION, claims, passages, max_follow_ups)


def reply_with(**changes: object) -> str:
    return json.dumps(REPLY | changes)


def component(coverage: str, claims: list[int], text: str = "When did it close?") -> dict[str, object]:
    return {"text": text, "coverage": coverage, "claims": claims}


def test_a_consistent_reply_is_taken_as_it_is_whatever_stands_around_it() -> None:
    for frame in ("{}", "```json\n{}\n```", "<think>{{?}}</think>\n{}", "Here it is:\n{}"):
        assert assess(frame.format(reply_with())) == ASSESSMENT
    assert ASSESSMENT.coverage is Coverage.PARTIALLY


def test_verdicts_come_in_the_order_of_the_claims_and_numbers_once() -> None:
    verdicts = [
        {"number": 2, "supported_by": [12, 3, 12], "relevant": False},
        {"number": 1, "supported_by": [3], "relevant": True},
    ]
    components = [component("FULLY ANSWERED", [2, 1, 2])]
    result = assess(reply_with(structure="single", components=components, claims=verdicts, follow_ups=[]))
    assert result.verdicts == (ClaimVerdict(1, (3,)), ClaimVerdict(2, (12, 3), relevant=False))
    assert result.components[0].claims == (2, 1)
    assert result.coverage is Coverage.FULLY


def test_a_claim_is_supported_by_any_passage_that_was_shown_and_by_no_other() -> None:
    for passages, support in ((PASSAGES, (12,)), ((), ())):
        verdicts = [VERDICTS[0] | {"supported_by": [*support]}, VERDICTS[1]]
        assert assess(reply_with(claims=verdicts), passages=passages).verdicts[0].supported_by == support


def test_a_refusal_has_no_claims_and_answers_nothing_and_a_single_component_may_be_the_question() -> None:
    follow_up = {"component": 1, "question": "Which yards closed in Orsund?"}
    components = [component("NOT ANSWERED", [], "")]
    result = assess(reply_with(structure="single", components=components, claims=[], follow_ups=[follow_up]), claims=())
    assert (result.coverage, result.verdicts, len(result.follow_ups)) == (Coverage.NOT, (), 1)
    assert [component.text for component in result.components] == [QUESTION]


def test_a_useless_follow_up_is_dropped_and_counted_and_takes_no_place_of_a_useful_one() -> None:
    for useless in (
        {"component": 1, "question": "Who founded it?"},
        {"component": 2, "question": " \n"},
        {"component": 2, "question": f"  {QUESTION.upper().rstrip('?')}"},
    ):
        result = assess(reply_with(follow_ups=[useless, FOLLOW_UP]), max_follow_ups=1)
        assert (result.follow_ups, result.dropped) == (ASSESSMENT.follow_ups, 1), useless
    assert assess(reply_with(), max_follow_ups=0).dropped == 1
    repeated = {"component": 2, "question": " when did the yard of  Nils Berg CLOSE"}
    result = assess(reply_with(follow_ups=[FOLLOW_UP, repeated]))
    assert (result.follow_ups, result.dropped) == (ASSESSMENT.follow_ups, 1)
    partly = [COMPONENTS[0], COMPONENTS[1] | {"coverage": "PARTIALLY ANSWERED"}]
    assert assess(reply_with(components=partly)).follow_ups == ASSESSMENT.follow_ups


def test_what_contradicts_the_schema_the_material_or_itself_is_malformed() -> None:
    first, second = VERDICTS
    asked, missing = COMPONENTS
    for changes, reason in (
        ({"claims": [first]}, "each of 1, 2 takes one verdict"),
        ({"claims": [first, second, first]}, "each of 1, 2 takes one verdict"),
        ({"components": [asked, component("NOT ANSWERED", [9])]}, "there is no claim 9"),
        ({"claims": [first | {"supported_by": [3, 4]}, second]}, "no passage 4 was shown"),
        ({"follow_ups": [FOLLOW_UP | {"component": 3}]}, "there is no component 3"),
        ({"structure": "single"}, "single takes one component.*but there are 2"),
        ({"components": [missing]}, "multiple two or more, but there are 1"),
        ({"components": [asked] * (MAX_COMPONENTS + 1)}, "components: .*at most 8"),
        ({"components": [asked, component("FULLY ANSWERED", [])]}, "none is listed for component 2"),
        ({"components": [asked, component("NOT ANSWERED", [], " ")]}, "component 2 is"),
        ({"components": [asked, component("EVIDENCE, NOT JUDGED", [1])]}, "coverage of component 2 is none of"),
    ):
        raw = reply_with(**changes)
        with pytest.raises(MalformedReply, match=reason) as caught:
            assess(raw)
        assert caught.value.raw == raw


def test_the_request_shows_claims_and_passages_states_the_limit_and_lets_a_grammar_enforce_the_numbers() -> None:
    with scripted([reply_with()]) as server:
        ChatClaimJudge(model_on(server)).assess(QUESTION, CLAIMS, PASSAGES, 2)
    (request,) = server.requests
    assert json.loads(request.text_of(1).splitlines()[2]) == {
        "question": QUESTION,
        "max_follow_ups": 2,
        "claims": [{"number": claim.number, "text": claim.text, "cited": [*claim.cited]} for claim in CLAIMS],
        "passages": [{"number": p.number, "title": p.title, "text": p.text} for p in PASSAGES],
    }
    properties = request.body["response_format"]["json_schema"]["schema"]["properties"]
    verdicts, listed = properties["claims"], properties["components"]["items"]["properties"]
    assert (verdicts["minItems"], verdicts["maxItems"]) == (2, 2), "one verdict a claim"
    assert verdicts["items"]["properties"]["number"]["enum"] == listed["claims"]["items"]["enum"] == [1, 2]
    assert verdicts["items"]["properties"]["supported_by"]["items"]["enum"] == [3, 12]
    assert (properties["components"]["maxItems"], properties["follow_ups"]["maxItems"]) == (MAX_COMPONENTS, 2)
    assert listed["coverage"]["enum"] == [*JUDGED_COVERAGES]


def test_endless_claims_and_passages_stay_within_the_budget() -> None:
    claims = [Claim(number, "claim " * 50, (number,), 0, 9) for number in range(1, 7)]
    passages = [NumberedPassage(number, f"p{number}", "Title", "word " * 2_000) for number in range(1, 9)]
    verdicts = [{"number": claim.number, "supported_by": list(claim.cited), "relevant": True} for claim in claims]
    with scripted([reply_with(claims=verdicts, follow_ups=[])]) as server, tallied() as tally:
        ChatClaimJudge(model_on(server)).assess(QUESTION, claims, passages, 3)
    material = json.loads(server.requests[0].text_of(1).splitlines()[2])
    used = sum(len(claim["text"]) for claim in material["claims"])
    used += sum(len(passage["title"] + passage["text"]) for passage in material["passages"])
    assert 0.9 * DEFAULT_BUDGET_CHARACTERS < used <= DEFAULT_BUDGET_CHARACTERS
    assert len(tally.omissions) == 1


def test_cited_passages_go_first_and_others_fill_the_room() -> None:
    def shown(
        claims: Sequence[Claim], passages: Sequence[NumberedPassage], characters: int
    ) -> Sequence[NumberedPassage]:
        return shown_passages(claims, passages, Room("claim judge", characters))

    other = NumberedPassage(1, "p", "Sea", "It is cold.")
    everything = (other, BANK, YARD)
    assert shown([FOUNDED], everything, 10_000) == (YARD, other, BANK)
    assert shown(CLAIMS, everything, len(YARD.title + YARD.text + BANK.title + BANK.text)) == (BANK, YARD)
    assert [len(p.title + p.text) for p in shown(CLAIMS, everything, 60)] == [30, 30]
    assert shown(CLAIMS, (), 60) == ()
    assert shown((), (other, BANK), len(other.title + other.text)) == (other,)
