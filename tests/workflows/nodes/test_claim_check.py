"""The claim check in workflow mara, where it is wanted: no claim that nothing supports is kept in silence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from agents.answers.citations import strip_citations
from tests.scripted_server import Reply, ReplyLike, ScriptedServer
from tests.workflows.ragenta_world import assessment, chat_requests
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import QUESTION, TEXTS, Run, on_a_thread, run, shown_to_model, well_behaved
from workflows import mara
from workflows.answering import ask

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


def test_claims_are_checked_only_where_that_is_wanted(in_mara: Scripted) -> None:
    done = in_mara.ask(QUESTION)
    assert in_mara.requests_of("claim judge") == []
    assert "check_claims" not in done.visits
    of_claims = ("claims", "claims_checked_by", "structure", "components", "coverage", "follow_ups")
    assert [done.result[key] for key in of_claims] == [[], "", "", [], "", []]
    assert not set(of_claims) & ask(QUESTION, in_mara.settings()).keys()


def test_a_supported_answer_stays_as_it_is(check: Callable[..., Run], chat_server: ScriptedServer) -> None:
    done = check("Marn was founded in 1203 [1].", assessment([(ABOUT, FULLY, [1])], [(1, [1])]))
    result = done.result
    assert (result["answer"], result["plain_answer"]) == ("Marn was founded in 1203 [1].", "Marn was founded in 1203.")
    assert (result["structure"], result["coverage"], result["claims_checked_by"]) == ("single", FULLY, "model")
    assert result["components"] == [{"text": ABOUT, "coverage": FULLY, "claims": [1]}]
    assert (result["errors"], result["follow_ups"], result["refused"]) == ([], [], False)
    (claim,) = result["claims"]
    (span,) = claim["spans"]
    assert (claim["cited"], claim["supported_by"], claim["component"]) == ([1], [1], 1)
    assert TEXTS["marn"][span["start"] : span["end"]] == "It was founded in 1203 by Duke Orlo."
    assert result["citations"] == [span]
    assert done.visits["check_claims"] == 1
    assert result["usage"]["calls"] == chat_requests(chat_server) == 2
    assert result.keys() == mara.graph.get_output_jsonschema()["properties"].keys()


def test_the_judge_is_shown_the_claims_and_the_passages_of_the_answer(
    check: Callable[..., Run], chat_server: ScriptedServer
) -> None:
    result = check(THREE, judged([1], [], [1]), answer_passages=3).result
    shown = shown_to_model(chat_server.requests_of("claim judge")[0].body)
    assert shown["question"] == ABOUT
    assert shown["claims"] == [
        {"number": 1, "text": "Marn was founded in 1203.", "cited": [1]},
        {"number": 2, "text": "Marn is made of glass.", "cited": [2]},
        {"number": 3, "text": "The mayor is tall.", "cited": [1]},
    ]
    assert [passage["number"] for passage in shown["passages"]] == result["written_from"] == [1, 2, 3]
    assert shown["max_follow_ups"] == 0, "no follow-up is wanted"


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


def test_what_is_true_but_answers_nothing_is_a_refusal(check: Callable[..., Run]) -> None:
    result = check(THREE, assessment([(ABOUT, NOT, [])], [(1, [1]), (2, [2]), (3, [1])])).result
    assert (result["refused"], result["coverage"]) == (True, NOT)


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


def test_where_no_follow_up_is_wanted_none_is_suggested(check: Callable[..., Run]) -> None:
    components = [("Who founded Marn?", NOT, []), (ABOUT, FULLY, [1])]
    reply = assessment(components, [(1, [1])], [(1, "Who was the founder of Marn?")])
    done = check("Marn was founded in 1203 [1].", reply)
    assert done.result["follow_ups"] == []
    assert done.result["errors"] == []
    assert (done.result["structure"], done.result["coverage"]) == ("multiple", PARTIALLY)


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


def test_a_verdict_that_is_cut_is_asked_for_once_more(check: Callable[..., Run], chat_server: ScriptedServer) -> None:
    for second, checked_by in ((judged([1], [2], [1]), "model"), ("All is well.", "words")):
        cut = Reply(judged([1], [], [1]), finish_reason="length")
        done = check(THREE, cut, second, judged([1], [2], [1]))
        assert done.result["claims_checked_by"] == checked_by
        assert len(chat_server.requests_of("claim judge")) == 2, second


def test_malformed_for_ever_words_are_compared(check: Callable[..., Run], chat_server: ScriptedServer) -> None:
    done = check("Marn was founded in 1203 [1]. Marn exports organs [1].", "of no use", max_json_retries=1)
    assert done.error_kinds == Counter({("judge_claims", "MalformedReply"): 2, ("check_words", "Fallback"): 1})
    assert len(chat_server.requests_of("claim judge")) == 2
    assert done.result["claims_checked_by"] == "words"
    assert verdicts(done.result) == [("supported", True), ("unsupported", True)]
    assert done.result["usage"]["calls"] == chat_requests(chat_server)


def test_quotes_that_no_model_judged_stay_quotes(in_mara: Scripted) -> None:
    done = in_mara.ask(
        ABOUT,
        {**well_behaved(), "answerer": ["No idea."], "claim judge": ["of no use"]},
        mode="hybrid",
        check_claims=True,
        max_json_retries=0,
    )
    assert done.visits["quote_passages"] == done.visits["check_claims"] == 1
    assert done.result["claims"]
    assert {claim["verdict"] for claim in done.result["claims"]} == {"quoted"}
    assert done.result["answer_kind"] == "evidence"


def test_offline_every_claim_is_a_quote_with_its_place(settings: MakeContext) -> None:
    plain = run(settings(), QUESTION).result
    result = run(settings(check_claims=True), QUESTION).result
    assert result["claims_checked_by"] == "offline"
    assert result["answer"] == plain["answer"]
    assert result["claims"]
    assert all(claim["verdict"] == "quoted" and claim["spans"] for claim in result["claims"])
    assert result["usage"]["calls"] == 0
    assert json.loads(json.dumps(result, allow_nan=False)) == result


def test_a_thread_that_was_checked_and_then_is_not_holds_nothing_of_the_check(in_mara: Scripted) -> None:
    graph, thread = on_a_thread()
    in_mara.server.script({**well_behaved(), "answerer": [THREE], "claim judge": ["of no use"]})
    graph.invoke({"question": ABOUT}, thread, context=in_mara.settings(check_claims=True, mode="hybrid"))
    in_mara.server.script(well_behaved())
    again = graph.invoke({"question": ABOUT}, thread, context=in_mara.settings())
    fresh = run(in_mara.settings(), ABOUT).result
    assert {**again, "timings_ms": {}} == {**fresh, "timings_ms": {}}
    assert again["timings_ms"].keys() == fresh["timings_ms"].keys()
