"""The limits of follow-ups: so many calls of the model, and so many seconds, whatever the replies are."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count, product
from random import Random
from typing import Any

import pytest

from tests.scripted_server import ReplyLike, Script, ScriptedServer
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    NO,
    ROLES,
    TWO_THINGS,
    YES,
    MakeContext,
    assessment,
    chat_requests,
    checks,
    in_turn,
    judges,
    predicts,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
    writes,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import run, shown_to_model
from workflows.nodes import follow_up_budget, ragenta

QUESTIONS = (FOLLOW_UP, "Where was Duke Orlo born?", "What is Kesh known for?")
LEAST = {"hybrid": 4, "mara": 6}
"""The fewest calls that a follow-up takes: those of its search, two for a passage, the answer and its check."""

SPENT = "BudgetSpent"


def lacking(questions: tuple[str, ...]) -> Script:
    """Return a claim judge that never finds the second thing, and asks these questions, each time in new words."""
    turns = count(1)

    def reply(body: Mapping[str, Any]) -> str:
        said = json.loads(checks(body))
        turn = next(turns)
        said["components"][1].update(coverage="NOT ANSWERED", claims=[])
        said["follow_ups"] = [{"component": 2, "question": f"{question} {turn}"} for question in questions]
        return json.dumps(said)

    return reply


def generous(body: Mapping[str, Any]) -> ReplyLike:
    """Keep every passage of a follow-up."""
    shown = shown_to_model(body)
    return YES if shown["question"] != TWO_THINGS or shown["title"] == "Tarn Dam" else NO


def unreliable(scripts: dict[str, Script], share: float, seed: int) -> dict[str, Script]:
    """Make a share of all replies malformed, once the first answer is checked."""
    chance = Random(seed)
    checked: list[bool] = []

    def faulty(role: str, script: Script) -> Script:
        def reply(body: Mapping[str, Any]) -> ReplyLike:
            if checked and chance.random() < share:
                return "<think>"
            if role == "claim judge":
                checked.append(True)
            return script(body) if callable(script) else script[0]

        return reply

    return {role: faulty(role, script) for role, script in scripts.items()}


def spent_on_follow_ups(server: ScriptedServer) -> int:
    """Return how many requests came after the one that the first answer was checked with."""
    roles = [request.role for request in server.requests]
    return len(roles) - roles.index("claim judge") - 1


def test_follow_ups_never_take_more_calls_than_they_may(in_ragenta: Scripted) -> None:
    for mode, calls in product(LEAST, (3, 7, 13)):
        scripts = well_behaved(claim_judge=lacking(QUESTIONS), judge=generous)
        settings = {"mode": mode, "top_k": 1, "follow_up_calls": calls, "follow_up_passages": 3, "follow_up_rounds": 3}
        result = in_ragenta.ask(TWO_THINGS, unreliable(scripts, 0.5, seed=calls), **settings).result
        assert spent_on_follow_ups(in_ragenta.server) <= calls
        assert result["usage"]["calls"] == chat_requests(in_ragenta.server)
        asked = [each for each in result["follow_ups"] if each["outcome"] != "not asked"]
        assert bool(asked) == (calls >= LEAST[mode])
        assert result["answer"].startswith(BUILDER_ANSWERED)
        if len(asked) < len(result["follow_ups"]):
            assert SPENT in {error["kind"] for error in result["errors"]}


def test_as_much_is_asked_as_the_calls_let(in_ragenta: Scripted) -> None:
    for calls, asked, judged, spent in ((3, 0, 0, 0), (4, 1, 1, 4), (5, 1, 1, 4), (6, 2, 2, 6), (8, 3, 3, 8)):
        scripts = well_behaved(claim_judge=in_turn(checks, lacking_once()), judge=generous)
        result = in_ragenta.ask(TWO_THINGS, scripts, top_k=1, follow_up_calls=calls, follow_up_passages=3).result
        assert [each["outcome"] for each in result["follow_ups"]] == ["found"] * asked + ["not asked"] * (3 - asked)
        assert spent_on_follow_ups(in_ragenta.server) == spent
        assert sum(each["question"] != TWO_THINGS for each in result["judgements"]) == judged
        errors = [error for error in result["errors"] if error["kind"] == SPENT]
        nodes = ["plan_follow_ups"] * (asked < 3) + ["merge_passages"] * (asked > 0)
        assert [error["node"] for error in errors] == nodes, calls
        if asked < 3:
            assert errors[0]["message"].startswith(f"{3 - asked} follow-up questions were not asked")
    scripts = well_behaved(claim_judge=in_turn(checks, lacking_once()), judge=generous)
    unlimited = in_ragenta.ask(TWO_THINGS, scripts, top_k=1, follow_up_calls=60, follow_up_passages=3).result
    assert SPENT not in {error["kind"] for error in unlimited["errors"]}
    assert sum(each["question"] != TWO_THINGS for each in unlimited["judgements"]) > 3


def lacking_once(questions: tuple[str, ...] = QUESTIONS) -> str:
    """Return the claim judge's reply to the first answer, with these follow-ups."""
    components = [("Who built it?", "FULLY ANSWERED", [1]), ("Where was the builder born?", "NOT ANSWERED", [])]
    return assessment(components, [(1, [1])], [(2, question) for question in questions])


def test_passages_that_are_not_judged_for_want_of_calls_are_not_in_the_result(in_ragenta: Scripted) -> None:
    settings = {"top_k": 1, "follow_up_calls": 6, "follow_up_passages": 5}
    result = in_ragenta.ask(TWO_THINGS, well_behaved(judge=generous), **settings).result
    assert [hit["number"] for hit in result["passages"]] == [1, 2, 3]
    (error,) = result["errors"]
    assert (error["node"], error["kind"]) == ("merge_passages", SPENT)
    assert error["message"].startswith("2 passages")


def test_each_follow_up_has_a_passage_judged_also_where_its_best_one_is_in_the_answer(in_ragenta: Scripted) -> None:
    both = ("When was Marn founded?", "Who built the Tarn Dam in 1866?")
    scripts = well_behaved(claim_judge=in_turn(checks, lacking_once(both)), judge=generous)
    result = in_ragenta.ask(TWO_THINGS, scripts, top_k=1, follow_up_calls=6, follow_up_passages=3).result
    judged = [each["question"] for each in result["judgements"] if each["question"] != TWO_THINGS]
    assert sorted(judged) == sorted(both)
    assert [each["outcome"] for each in result["follow_ups"]] == ["found", "found"]


def test_without_calls_for_follow_ups_the_question_itself_takes_all_it_needs(in_ragenta: Scripted) -> None:
    scripts = well_behaved(final_predictor=in_turn(writes, "<think>", "<think>"))
    result = in_ragenta.ask(TWO_THINGS, scripts, follow_up_calls=0).result
    assert result["answer"] == BUILDER_ANSWERED
    assert [error["kind"] for error in result["errors"]] == ["MalformedReply", "MalformedReply", SPENT]


def test_offline_follow_ups_need_no_calls(ragenta_settings: MakeContext) -> None:
    context = ragenta_settings(model="offline", top_k=1, follow_up_calls=0)
    result = run(context, "Who built the Tarn Dam, and when was Marn founded?", quick_ragenta).result
    assert [each["outcome"] for each in result["follow_ups"]] == ["found"]
    assert "Ada Brandt" in result["plain_answer"]
    assert "1203" in result["plain_answer"]
    assert (result["coverage"], result["answer_kind"]) == ("EVIDENCE, NOT JUDGED", "evidence")
    assert {(error["node"], error["kind"]) for error in result["errors"]} == {("write_answer", "Evidence")}


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = 1000.0
        for module in (follow_up_budget, ragenta):
            monkeypatch.setattr(module, "now", lambda: self.seconds)

    def late_after(self, script: Any, question: str) -> Script:
        """Let an hour pass while this script replies to a request for a question."""

        def reply(body: Mapping[str, Any]) -> ReplyLike:
            if shown_to_model(body)["question"] == question:
                self.seconds += 3600
            return script(body)  # type: ignore[no-any-return]

        return reply


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_seconds_count_from_the_first_follow_ups_on(in_ragenta: Scripted, clock: Clock) -> None:
    result = in_ragenta.ask(TWO_THINGS, well_behaved(predictor=clock.late_after(predicts, TWO_THINGS))).result
    assert (result["follow_ups"][0]["outcome"], result["errors"]) == ("found", [])
    done = in_ragenta.ask(TWO_THINGS, follow_up_seconds=0)
    assert "search_follow_up" not in done.visits
    assert [(each["node"], each["kind"]) for each in done.result["errors"]] == [("plan_follow_ups", SPENT)]
    assert done.result["follow_ups"][0]["outcome"] == "not asked"
    assert done.result["answer"] == BUILDER_ANSWERED


def test_time_over_before_the_passages_are_judged_leaves_them_unjudged_and_is_told(
    in_ragenta: Scripted, clock: Clock
) -> None:
    picks = well_behaved()["fact filter"]
    scripts = {**well_behaved(), "fact filter": clock.late_after(picks, FOLLOW_UP)}
    result = in_ragenta.ask(TWO_THINGS, scripts, mode="mara", top_k=1).result
    assert [each["judged_by"] for each in result["judgements"]] == ["logprobs", "unjudged"]
    assert result["follow_ups"][0]["outcome"] == "not judged"
    assert [error["kind"] for error in result["errors"]] == [SPENT]
    assert result["answer"] == BUILDER_ANSWERED
    assert {role: len(in_ragenta.requests_of(role)) for role in ROLES} == dict.fromkeys(ROLES, 1)


def test_time_over_between_predictor_and_judge_asks_no_judge(in_ragenta: Scripted, clock: Clock) -> None:
    result = in_ragenta.ask(TWO_THINGS, well_behaved(predictor=clock.late_after(predicts, FOLLOW_UP))).result
    last = result["judgements"][-1]
    assert (last["question"], last["judged_by"], last["score"], last["kept"]) == (FOLLOW_UP, "unjudged", None, False)
    assert last["prediction"]
    assert [error["kind"] for error in result["errors"]] == [SPENT]


def test_time_over_after_judging_leaves_the_answer_as_it_was_and_is_told(in_ragenta: Scripted, clock: Clock) -> None:
    done = in_ragenta.ask(TWO_THINGS, well_behaved(judge=clock.late_after(judges, FOLLOW_UP)))
    assert done.result["answer"] == BUILDER_ANSWERED
    assert done.result["written_from"] == [1]
    assert done.visits["write_answer"] == done.visits["check_claims"] == 1
    (error,) = done.result["errors"]
    assert (error["node"], error["kind"]) == ("keep_passages", SPENT)
    assert "not written into the answer" in error["message"]


def test_what_is_being_written_when_the_time_is_over_is_waited_for_and_nothing_follows(
    in_ragenta: Scripted, clock: Clock
) -> None:
    def late_with_a_draft(body: Mapping[str, Any]) -> ReplyLike:
        if "draft" in shown_to_model(body):
            clock.seconds += 3600
        return writes(body)

    result = in_ragenta.ask(
        TWO_THINGS,
        well_behaved(final_predictor=late_with_a_draft, claim_judge=lacking((FOLLOW_UP,)), judge=generous),
        follow_up_rounds=2,
    ).result
    assert "born in Lisk" in result["plain_answer"]
    assert [each["outcome"] for each in result["follow_ups"]] == ["found", "not asked"]
    assert [(error["node"], error["kind"]) for error in result["errors"]] == [("plan_follow_ups", SPENT)]


def test_once_the_time_is_over_no_further_attempt_is_begun(in_ragenta: Scripted, clock: Clock) -> None:
    def malformed_and_late(script: Callable[[Mapping[str, Any]], ReplyLike]) -> Script:
        def reply(body: Mapping[str, Any]) -> ReplyLike:
            shown = shown_to_model(body)
            if "draft" not in shown and len(shown.get("claims", [])) < 2:
                return script(body)
            clock.seconds += 3600
            return "<think>"

        return reply

    for role, script, failing in (
        ("final predictor", writes, [("write_answer", "MalformedReply"), ("quote_passages", "Fallback")]),
        ("claim judge", checks, [("judge_claims", "MalformedReply"), ("check_words", "Fallback")]),
    ):
        scripts = {**well_behaved(), role: malformed_and_late(script)}
        result = in_ragenta.ask(TWO_THINGS, scripts, max_json_retries=3).result
        assert len(in_ragenta.requests_of(role)) == 2
        assert [(error["node"], error["kind"]) for error in result["errors"]] == failing
        assert result["answer"].startswith(BUILDER_ANSWERED)


def test_a_fork_that_brings_more_seconds_has_them(in_ragenta: Scripted, clock: Clock) -> None:
    graph, thread = ragenta_on_a_thread()
    in_ragenta.server.script(well_behaved(predictor=clock.late_after(predicts, FOLLOW_UP)))
    first = graph.invoke({"question": TWO_THINGS}, thread, context=in_ragenta.settings())
    assert first["follow_ups"][0]["outcome"] == "not judged"
    at = next(past for past in graph.get_state_history(thread) if past.next == ("merge_passages",))
    in_ragenta.server.script(well_behaved())
    clock.seconds -= 1
    for seconds, outcome in ((60, "not judged"), (3600, "found")):
        again = graph.invoke(None, at.config, context=in_ragenta.settings(follow_ups={"seconds": seconds}))
        assert again["follow_ups"][0]["outcome"] == outcome
    assert again["errors"] == []
