"""The replies of the models of workflow ragenta: which replies are asked for again, what stands in, what orders do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.scripted_server import Reply, ReplyLike
from tests.workflows.ragenta_world import (
    MARN_ANSWERED,
    NO,
    NOTHING,
    ONE_THING,
    ROLES,
    YES,
    accepts,
    assessment,
    chat_requests,
    checks,
    judges,
    malformed_once,
    predicts,
    quick_ragenta,
    well_behaved,
    writes,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import ORDERS, check_orders_are_quoted, fed_back, run

Script = Callable[[Mapping[str, Any]], ReplyLike]

PROPER: dict[str, Script] = {"predictor": predicts, "judge": judges, "final predictor": writes, "claim judge": checks}
NODES = dict(zip(ROLES, ("predict_answer", "score_passage", "write_answer", "judge_claims"), strict=True))
FALLBACKS = dict(zip(ROLES, ("skip_prediction", "leave_unjudged", "quote_passages", "check_words"), strict=True))
PASSAGES = 2
A_PASSAGE = {"predictor": PASSAGES, "judge": PASSAGES, "final predictor": 1, "claim judge": 1}
"""How often each role is asked in a run without a fault."""

JUDGED = assessment([(ONE_THING, "FULLY ANSWERED", [1])], [(1, [1])])


NO_PREDICTION: list[tuple[ReplyLike, str]] = [
    (Reply("It was founded in", finish_reason="length"), "cut at the token limit")
]

NO_JUDGEMENT: list[tuple[ReplyLike, str]] = [("The passage answers it.", "Yes or No"), ("Yes", "no confidence")]

NO_ANSWER: list[tuple[ReplyLike, str]] = [
    ("Marn was founded in 1203.", "cites no passage"),
    ("Marn was founded in 1203 [2].", "cites 2, but the passages are numbered 1"),
]

NO_ASSESSMENT: list[tuple[ReplyLike, str]] = [
    (JUDGED[:-20], "not valid JSON, or is cut"),
    (json.dumps({**json.loads(JUDGED), "claims": []}), "each of 1 takes one verdict"),
]


MALFORMED = [
    (role, reply, reason)
    for role, replies in zip(ROLES, (NO_PREDICTION, NO_JUDGEMENT, NO_ANSWER, NO_ASSESSMENT), strict=True)
    for reply, reason in replies
]


def raw_of(reply: ReplyLike) -> str:
    return reply.text if isinstance(reply, Reply) else reply


def test_a_malformed_reply_is_recorded_and_asked_for_again(in_ragenta: Scripted) -> None:
    for role, reply, reason in MALFORMED:
        done = in_ragenta.ask(ONE_THING, {**well_behaved(), role: malformed_once(PROPER[role], reply)})
        assert len(done.result["errors"]) == A_PASSAGE[role]
        for error in done.result["errors"]:
            assert (error["node"], error["kind"], error["attempt"]) == (NODES[role], "MalformedReply", 1)
            assert reason in error["message"]
            assert error["raw"] == raw_of(reply)
        assert {each: len(in_ragenta.requests_of(each)) for each in ROLES} == {**A_PASSAGE, role: 2 * A_PASSAGE[role]}
        assert fed_back(in_ragenta.requests_of(role)[-1].body) == error["message"]
        assert (done.result["answer"], done.result["coverage"]) == (MARN_ANSWERED, "FULLY ANSWERED"), role
        assert {each["judged_by"] for each in done.result["judgements"]} == {"logprobs"}, role
        assert done.result["claims_checked_by"] == "model", role
        assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server), role


def test_after_the_last_malformed_reply_a_fallback_stands_in(in_ragenta: Scripted) -> None:
    for role in ROLES:
        done = in_ragenta.ask(ONE_THING, {**well_behaved(claim_judge=accepts), role: ["<think>"]}, max_json_retries=1)
        kinds = {(NODES[role], "MalformedReply"): 2 * A_PASSAGE[role], (FALLBACKS[role], "Fallback"): A_PASSAGE[role]}
        all_failed = {("keep_passages", "Fallback"): 1} if role == "judge" else {}
        assert done.error_kinds == Counter({**kinds, **all_failed}), role
        assert len(in_ragenta.requests_of(role)) == 2 * A_PASSAGE[role]
        assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server)
        assert "1203" in done.result["plain_answer"]
        assert [mark["number"] for mark in done.result["citations"]][:1] == [1]
        assert done.result["coverage"] == ("EVIDENCE, NOT JUDGED" if role == "claim judge" else "FULLY ANSWERED")


def no_tokens(body: Mapping[str, Any]) -> ReplyLike:
    return judges(body).text


def test_a_server_without_log_probabilities_or_response_format_is_asked_without(in_ragenta: Scripted) -> None:
    for refused in ((), ("logprobs",), ("response_format",), ("logprobs", "response_format")):
        in_ragenta.server.script(well_behaved(judge=no_tokens), refuses=refused)
        context = in_ragenta.settings(model=f"server that refuses {', '.join(refused)}", top_k=1)
        first = run(context, ONE_THING, quick_ragenta).result
        assert chat_requests(in_ragenta.server) == first["usage"]["calls"] + len(refused)
        again = run(context, ONE_THING, quick_ragenta).result
        assert chat_requests(in_ragenta.server) == 2 * first["usage"]["calls"] + len(refused), "remembered"
        assert {**first, "timings_ms": {}} == {**again, "timings_ms": {}}, refused
        (judgement,) = first["judgements"]
        assert (judgement["judged_by"], judgement["kept"]) == ("confidence", True), refused
        assert judgement["score"] == pytest.approx(2.197, abs=0.001), refused
        assert (first["answer"], first["errors"], first["claims_checked_by"]) == (MARN_ANSWERED, [], "model"), refused


def test_scores_are_finite_whatever_log_probabilities_are_told(in_ragenta: Scripted) -> None:
    for top in ({"Yes": float("-inf"), "No": 0.0}, {"Yes": -9999.0, "No": 0.0}, {"Yes": 0.0, "No": -9999.0}):
        judge = [Reply.spelt(("Yes", top), (" 0.9", {}))]
        result = in_ragenta.ask(ONE_THING, well_behaved(judge=judge), check_claims=False).result
        assert all(abs(each["score"]) <= 20 for each in result["judgements"]), top
        assert json.loads(json.dumps(result["bars"], allow_nan=False)) == result["bars"], top


ABOUT_THE_BRIDGE = "When was the Sund Bridge rebuilt?"
REBUILT = "The Sund Bridge was rebuilt in 1874 [1]."


def bridge_scripts() -> dict[str, Any]:
    verdict = assessment([(ABOUT_THE_BRIDGE, "FULLY ANSWERED", [1])], [(1, [1])])
    return well_behaved(
        predictor=["It was rebuilt in 1874."], judge=[YES], final_predictor=[REBUILT], claim_judge=[verdict]
    )


def test_an_answer_that_was_cut_is_checked_as_far_as_it_goes(in_ragenta: Scripted) -> None:
    scripts = {**bridge_scripts(), "final predictor": [Reply(f"{REBUILT} [9", finish_reason="length")]}
    result = in_ragenta.ask(ABOUT_THE_BRIDGE, scripts, top_k=1, answer_tokens=400).result
    assert (result["answer"], result["cut"]) == (REBUILT, True)
    assert [claim["verdict"] for claim in result["claims"]] == ["supported"]
    assert [note["kind"] for note in result["errors"]] == ["CutAnswer"]
    (asked,) = in_ragenta.requests_of("final predictor")
    assert asked.body["max_tokens"] == 400


def test_orders_of_passages_and_replies_stay_quoted_in_every_request(in_ragenta: Scripted) -> None:
    disobedient = Reply(ORDERS.replace("[1]", ""), finish_reason="length")
    proper = bridge_scripts()
    failing = {**proper, **{role: [disobedient, *proper[role]] for role in ROLES}}
    for scripts, asked in ((proper, 4), (failing, 8)):
        done = in_ragenta.ask(f"{ABOUT_THE_BRIDGE} {ORDERS}", scripts, top_k=1)
        assert done.result["answer"] == REBUILT
        assert len(in_ragenta.server.requests) == asked
        for request in in_ragenta.server.requests:
            check_orders_are_quoted(request.body)


def test_a_reply_that_says_nothing_of_a_passage_is_no_prediction(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(ONE_THING, well_behaved(predictor=[f"{NOTHING}."], judge=[NO])).result
    assert [each["prediction"] for each in result["judgements"]] == ["", ""]
    assert result["errors"] == []
