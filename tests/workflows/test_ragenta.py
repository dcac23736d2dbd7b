"""Workflow ragenta as a whole: from a question to an answer of judged passages and checked claims."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from itertools import product
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from tests.scripted_server import Reply, ReplyLike
from tests.workflows.ragenta_world import (
    MARN_ANSWERED,
    NO,
    NO_SCORE,
    ONE_THING,
    REFUSED,
    ROLES,
    SAID,
    TWO_THINGS,
    YES_SCORE,
    MakeContext,
    chat_requests,
    judged_at,
    judges,
    malformed_once,
    predicts,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import TEXTS, shown_to_model
from workflows.answering import ask
from workflows.context import Context
from workflows.runtime.resources import OFFLINE
from workflows.states.records import NO_USAGE

ABSTAINED = {
    "judge_outcome": "nothing supports",
    "answer": REFUSED,
    "refused": True,
    "citations": [],
    "claims": [],
    "coverage": "NOT ANSWERED",
    "follow_ups": [],
    "final_prompt": "",
}


def values_of(result: Mapping[str, Any], *keys: str) -> tuple[Any, ...]:
    return tuple(result[key] for key in keys)


def test_a_question_goes_from_retrieval_to_checked_claims(in_ragenta: Scripted) -> None:
    done = in_ragenta.ask(ONE_THING)
    assert done.passage_ids == ["marn", "lake-sund"]
    assert done.result["answer"] == MARN_ANSWERED
    assert done.result["plain_answer"] == "Marn was founded in 1203."
    assert values_of(done.result, "refused", "written_from", "judge_outcome") == (False, [1], "kept")
    assert values_of(done.result, "structure", "coverage", "claims_checked_by") == ("single", "FULLY ANSWERED", "model")
    assert values_of(done.result, "errors", "follow_ups", "workflow") == ([], [], "ragenta")
    assert {role: len(in_ragenta.requests_of(role)) for role in ROLES} == dict(zip(ROLES, (2, 2, 1, 1), strict=True))
    assert done.result["usage"]["calls"] == chat_requests(in_ragenta.server) == 6
    assert done.result["timings_ms"].keys() == {
        *("encode_question", "retrieve_passages", "line_up_passages", "predict_answer", "score_passage"),
        *("keep_passages", "write_answer", "judge_claims", "settle_claims", "plan_follow_ups"),
    }
    assert done.visits == Counter(
        {
            "judge_passage": 2,
            **dict.fromkeys(("encode_question", "retrieve_passages", "line_up_passages", "keep_passages"), 1),
            **dict.fromkeys(("write_answer", "check_claims", "plan_follow_ups"), 1),
        }
    )


def test_each_passage_is_predicted_from_and_judged_by_itself(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(ONE_THING).result
    marn, lake = result["judgements"]
    assert values_of(marn, "passage_id", "number", "judged_by", "kept") == ("marn", 1, "logprobs", True)
    assert values_of(lake, "passage_id", "number", "judged_by", "kept") == ("lake-sund", 2, "logprobs", False)
    assert values_of(marn, "question", "prediction") == (ONE_THING, f"{SAID['Marn']}.")
    assert values_of(lake, "question", "prediction") == (ONE_THING, "")
    assert [marn["score"], lake["score"]] == pytest.approx([YES_SCORE, NO_SCORE])
    (bar,) = result["bars"]
    assert values_of(bar, "question", "floor", "judged", "kept") == (ONE_THING, 0.0, 2, 1)
    assert values_of(bar, "tau", "sigma", "bar") == pytest.approx((0.0, 2.95, -1.475))
    seen = {
        material["title"]: material
        for material in (shown_to_model(request.body) for request in in_ragenta.requests_of("judge"))
    }
    assert seen["Marn"]["answer_from_it"] == f"{SAID['Marn']}."
    assert seen["Lake Sund"]["answer_from_it"] == ""


def test_claims_name_what_supports_them_and_the_final_prompt_is_the_one_that_was_sent(in_ragenta: Scripted) -> None:
    result = in_ragenta.ask(ONE_THING).result
    (claim,) = result["claims"]
    (span,) = claim.pop("spans")
    assert claim == {
        "number": 1,
        "text": "Marn was founded in 1203.",
        "cited": [1],
        "supported_by": [1],
        "component": 1,
        "verdict": "supported",
        "kept": True,
    }
    assert values_of(span, "number", "passage_id") == (1, "marn")
    assert TEXTS["marn"][span["start"] : span["end"]] == "It was founded in 1203 by Duke Orlo."
    assert result["citations"] == [span]
    assert result["components"] == [{"text": ONE_THING, "coverage": "FULLY ANSWERED", "claims": [1]}]
    (request,) = in_ragenta.requests_of("final predictor")
    assert result["final_prompt"] == "\n\n".join(message["content"] for message in request.body["messages"])
    assert [p["title"] for p in shown_to_model(request.body)["passages"]] == ["Marn"], "what is not kept is not shown"


def test_there_are_at_most_four_calls_and_two_a_passage(in_ragenta: Scripted) -> None:
    for mode, checked, judged in product((Mode.HYBRID, Mode.MARA), (True, False), (True, False)):
        result = in_ragenta.ask(ONE_THING, mode=mode, top_k=4, judge_passages=judged, check_claims=checked).result
        calls = (2 if mode.walks else 0) + 4 * 2 * judged + 1 + checked
        assert chat_requests(in_ragenta.server) == result["usage"]["calls"] == calls
        assert result["plain_answer"].startswith(SAID["Marn"])
        assert bool(result["claims"]) == bool(result["coverage"]) == bool(result["claims_checked_by"]) == checked
        assert result["ranked_by"] == ("walk" if mode.walks else "hybrid")


def test_without_a_passage_that_helps_nothing_is_answered_and_no_model_asked(in_ragenta: Scripted) -> None:
    done = in_ragenta.ask(ONE_THING, well_behaved(judge=[NO]))
    assert {key: done.result[key] for key in ABSTAINED} == ABSTAINED
    assert done.result["components"] == [{"text": ONE_THING, "coverage": "NOT ANSWERED", "claims": []}]
    assert [each["kept"] for each in done.result["judgements"]] == [False, False]
    assert done.result["bars"][0]["kept"] == 0
    assert done.visits["abstain"] == 1
    assert in_ragenta.requests_of("final predictor") == in_ragenta.requests_of("claim judge") == []


SCORES = {"Marn": 0.5, "Lake Sund": -1.0, "Ada Brandt": 4.0, "Tarn Dam": 1.5}
"""Of the passages 1 to 4: the mean is 1.25, the standard deviation 1.82."""


def test_passages_over_the_bar_are_kept_the_best_first_with_their_numbers(in_ragenta: Scripted) -> None:
    scripts = well_behaved(judge=judged_at(SCORES), final_predictor=[REFUSED])
    cases: list[tuple[str, dict[str, Any], list[int]]] = [
        ("over tau - sigma / 2", {}, [3, 4, 1]),
        ("over tau", {"n": 0}, [3, 4]),
        ("over tau + sigma", {"n": -1, "min_kept": 0}, [3]),
        ("the least number", {"n": -1}, [3, 4]),
        ("none", {"n": -5, "min_kept": 0}, []),
        ("the floor holds, whatever the bar", {"n": 5}, [3, 4, 1]),
        ("a floor is reached at its height", {"n": 5, "judge_floor": -1}, [3, 4, 1, 2]),
        ("the least number does not beat the floor", {"judge_floor": 4.1}, []),
        ("the greatest number", {"answer_passages": 1}, [3]),
    ]
    for rule, changes, kept in cases:
        result = in_ragenta.ask(ONE_THING, scripts, top_k=4, check_claims=False, **changes).result
        assert [hit["title"] for hit in result["passages"]] == list(SCORES)
        assert result["written_from"] == kept, rule
        assert {each["number"] for each in result["judgements"] if each["kept"]} == set(kept), rule
        shown = [shown_to_model(request.body)["passages"] for request in in_ragenta.requests_of("final predictor")]
        assert [[passage["number"] for passage in passages] for passages in shown] == ([kept] if kept else []), rule


def at_once(parties: int, script: Any) -> Any:
    """Answer once so many have asked."""
    barrier = Barrier(parties)

    def reply(body: Mapping[str, Any]) -> ReplyLike:
        try:
            barrier.wait(timeout=5)
        except BrokenBarrierError:
            return Reply("the others never asked", status=401)
        return script(body)  # type: ignore[no-any-return]

    return reply


def test_all_passages_are_judged_at_once(in_ragenta: Scripted) -> None:
    n = len(TEXTS)
    context = in_ragenta.settings(top_k=n)

    async def asynchronously(*asked: Any, **how: Any) -> Any:
        return await quick_ragenta.ainvoke(*asked, **how)

    for invoke in (quick_ragenta.invoke, lambda *asked, **how: asyncio.run(asynchronously(*asked, **how))):
        in_ragenta.server.script(well_behaved(predictor=at_once(n, predicts), judge=at_once(n, judges)))
        result = invoke({"question": ONE_THING}, context=context)
        assert result["answer"] == MARN_ANSWERED
        assert [each["number"] for each in result["judgements"]] == list(range(1, n + 1))


def test_a_thread_asked_again_holds_nothing_of_the_first_run(in_ragenta: Scripted) -> None:
    graph, used = ragenta_on_a_thread()
    in_ragenta.server.script(well_behaved(claim_judge=["of no use"], judge=malformed_once(judges, "Perhaps")))
    graph.invoke({"question": TWO_THINGS}, used, context=in_ragenta.settings(top_k=4, follow_ups={"rounds": 2}))
    in_ragenta.server.script(well_behaved())
    graph.invoke({"question": TWO_THINGS}, used, context=in_ragenta.settings(mode="mara"))
    for changes in ({"judge_passages": False, "check_claims": False}, {}):
        context = in_ragenta.settings(**changes)
        graph.invoke({"question": ONE_THING}, used, context=context)
        other, fresh = ragenta_on_a_thread()
        other.invoke({"question": ONE_THING}, fresh, context=context)
        again, once = graph.get_state(used).values, other.get_state(fresh).values
        assert again.keys() == once.keys()
        times = {"timings_ms": 0, "spent": 0}
        assert {**again, **times} == {**once, **times}
        assert again["timings_ms"].keys() == once["timings_ms"].keys()
        assert again["spent"]["calls"] == once["spent"]["calls"]


def test_settings_of_another_workflow_are_refused(ragenta_settings: MakeContext) -> None:
    with pytest.raises(BadInput, match="settings of workflow mara"):
        quick_ragenta.invoke({"question": ONE_THING}, context=Context(workspace=ragenta_settings().workspace))


def test_offline_the_workflow_runs_whole_and_gives_plain_values(ragenta_settings: MakeContext) -> None:
    context = ragenta_settings(mode=Mode.HYBRID, top_k=5, model=OFFLINE)
    result = ask(ONE_THING, context)
    assert "1203" in result["plain_answer"]
    assert values_of(result, "answer_kind", "coverage", "errors") == ("evidence", "EVIDENCE, NOT JUDGED", [])
    assert {claim["verdict"] for claim in result["claims"]} == {"quoted"}
    assert values_of(result, "claims_checked_by", "usage", "final_prompt") == ("offline", NO_USAGE, "")
    assert {each["judged_by"] for each in result["judgements"]} == {"words"}
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert {**ask(ONE_THING, context), "timings_ms": {}} == {**result, "timings_ms": {}}
