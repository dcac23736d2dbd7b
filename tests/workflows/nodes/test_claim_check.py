"""The claim check in workflow mara, where it is wanted: no claim that nothing supports is kept in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.answers.citations import strip_citations
from tests.scripted_server import ReplyLike, ScriptedServer
from tests.workflows.ragenta_world import assessment
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import Run, on_a_thread, run, well_behaved

ABOUT = "When was Marn founded?"
THREE = "Marn was founded in 1203 [1]. Marn is made of glass [2]. The mayor is tall [1]."
FULLY, PARTIALLY, NOT = "FULLY ANSWERED", "PARTIALLY ANSWERED", "NOT ANSWERED"


def judged(*supported_by: list[int], irrelevant: tuple[int, ...] = (), coverage: str = FULLY) -> str:
    """The claim judge's reply on a question for one thing: what supports each claim."""
    claims = list(enumerate(supported_by, start=1))
    return assessment([(ABOUT, coverage, [1, 2])], claims, irrelevant=irrelevant)


@pytest.fixture
def check(in_mara: Scripted) -> Callable[..., Run]:
    """Run once with a claim judge's replies on an answer, in mode ``hybrid``."""

    def once(answer: str, *replies: ReplyLike, **changes: Any) -> Run:
        in_mara.server.script({**well_behaved(), "answerer": [answer], "claim judge": list(replies)})
        return run(in_mara.settings(mode="hybrid", check_claims=True, **changes), ABOUT)

    return once


def verdicts(result: Any) -> list[tuple[str, bool]]:
    return [(claim["verdict"], claim["kept"]) for claim in result["claims"]]


def test_unsupported_claims_are_marked_or_removed_and_irrelevant_ones_removed(check: Callable[..., Run]) -> None:
    for how, answer, kept in [
        ("mark", "Marn was founded in 1203 [1]. Marn is made of glass [2]. [unsupported]", [1, 2]),
        ("remove", "Marn was founded in 1203 [1].", [1]),
    ]:
        result = check(THREE, judged([1], [], [1], irrelevant=(3,)), unsupported_claims=how).result
        assert result["answer"] == answer
        assert result["plain_answer"] == strip_citations(answer).replace(" [unsupported]", "")
        assert verdicts(result) == [("supported", True), ("unsupported", how == "mark"), ("irrelevant", False)]
        assert [mark["number"] for mark in result["citations"]] == kept
        assert [claim["text"] for claim in result["claims"]][1] == "Marn is made of glass.", how
        assert result["coverage"] == PARTIALLY, "a part of it is not supported"


def test_a_claim_is_supported_by_what_it_cites_alone(check: Callable[..., Run]) -> None:
    result = check("Marn was founded in 1203 [2]. It is a town.", judged([1], [1])).result
    assert verdicts(result) == [("unsupported", True), ("supported", True)]
    assert [claim["supported_by"] for claim in result["claims"]] == [[1], [1]]
    assert result["answer"] == "Marn was founded in 1203 [2]. [unsupported] It is a town."
    assert result["claims"][1]["cited"] == [], "an uncited claim gets no citation"


def test_an_answer_of_which_nothing_is_supported_becomes_a_refusal(check: Callable[..., Run]) -> None:
    for how in ("mark", "remove"):
        for coverage in (FULLY, PARTIALLY):
            result = check(THREE, judged([], [], [], coverage=coverage), unsupported_claims=how).result
            assert (result["answer"], result["plain_answer"], result["refused"]) == (
                *("NOT IN THE PASSAGES", "NOT IN THE PASSAGES"),
                True,
            ), how
            assert result["citations"] == [], how
            assert verdicts(result) == [("unsupported", False)] * 3, how
            assert (result["coverage"], result["components"][0]["coverage"]) == (NOT, NOT), how


def test_a_refusal_has_no_claims_to_check(check: Callable[..., Run], chat_server: ScriptedServer) -> None:
    done = check("NOT IN THE PASSAGES", "of no use")
    assert "check_claims" not in done.visits
    assert (done.result["refused"], done.result["claims"], done.result["coverage"]) == (True, [], "")
    assert chat_server.requests_of("claim judge") == []


def test_an_answer_of_citations_alone_says_nothing_and_quotes_stand_in(check: Callable[..., Run]) -> None:
    done = check("[1]", "of no use", max_json_retries=0)
    errors = [error for error in done.result["errors"] if error["node"] == "write_answer"]
    assert [(error["kind"], error["raw"]) for error in errors] == [("MalformedReply", "[1]")]
    assert errors[0]["message"].startswith("The reply says nothing of its own")
    assert done.visits["quote_passages"] == 1
    assert (done.result["refused"], done.result["claims_checked_by"]) == (False, "words")
    assert (done.result["answer_kind"], done.result["coverage"]) == ("evidence", "EVIDENCE, NOT JUDGED")
    assert {claim["verdict"] for claim in done.result["claims"]} == {"quoted"}
    assert all(claim["spans"] for claim in done.result["claims"])


def test_a_malformed_verdict_is_asked_for_again(check: Callable[..., Run], chat_server: ScriptedServer) -> None:
    for reply in ("All is well.", judged([1]), judged([1], [44], [1])):
        done = check(THREE, reply, reply, judged([1], [2], [1]))
        assert [(error["node"], error["attempt"]) for error in done.result["errors"]] == [
            ("judge_claims", 1),
            ("judge_claims", 2),
        ], reply
        assert len(chat_server.requests_of("claim judge")) == 3, reply
        assert (done.result["answer"], done.result["claims_checked_by"]) == (THREE, "model"), reply
        assert done.result["timings_ms"].keys() >= {"judge_claims", "settle_claims"}, reply


def test_a_thread_that_was_checked_and_then_is_not_holds_nothing_of_the_check(in_mara: Scripted) -> None:
    graph, thread = on_a_thread()
    in_mara.server.script({**well_behaved(), "answerer": [THREE], "claim judge": ["of no use"]})
    graph.invoke({"question": ABOUT}, thread, context=in_mara.settings(check_claims=True, mode="hybrid"))
    in_mara.server.script(well_behaved())
    again = graph.invoke({"question": ABOUT}, thread, context=in_mara.settings())
    fresh = run(in_mara.settings(), ABOUT).result
    assert {**again, "timings_ms": {}} == {**fresh, "timings_ms": {}}
    assert again["timings_ms"].keys() == fresh["timings_ms"].keys()
