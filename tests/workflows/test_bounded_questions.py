"""The limits of a question: replies that never end, never come or come too late, and a budget that is spent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from agents.answerer import ChatAnswerer
from agents.chat import usage as budget_module
from agents.chat.model import CHARACTERS_A_TOKEN
from agents.fact_filter import ChatFactFilter
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import ChatPredictor
from tests.scripted_server import Fault, Reply, ReplyLike, Script
from tests.workflows.ragenta_world import TWO_THINGS, judges, quick_ragenta
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import ANSWERED, on_a_thread, run, shown_to_model, well_behaved

ROLES: Mapping[str, tuple[str, str, int]] = {
    "fact filter": ("filter_facts", "keep_top_facts", ChatFactFilter.reply_tokens),
    "manager": ("weigh_relations", "neutral_relations", ChatManager.reply_tokens),
    "answerer": ("write_answer", "quote_passages", ChatAnswerer.reply_tokens),
}
"""The node of each role of workflow mara, its fallback, and its limit of tokens."""

OF_RAGENTA: Mapping[str, tuple[str, str, int]] = {
    "predictor": ("predict_answer", "skip_prediction", ChatPredictor.reply_tokens),
    "judge": ("score_passage", "leave_unjudged", ChatJudge.reply_tokens),
}
"""Those of the roles of workflow ragenta that judge passages."""


HANGS = Reply(fault=Fault.HANG)


class Clock:
    """The time of budgets, of which a test lets an hour pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._later = 0.0
        monkeypatch.setattr(budget_module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + self._later))

    def an_hour_passes(self) -> None:
        self._later += 3600

    def an_hour_passes_in(self, body: Mapping[str, Any]) -> Reply:
        """Reply with signs of life and no end, an hour later."""
        self.an_hour_passes()
        return Reply(events=ticking())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def ticking() -> Iterator[bytes]:
    while True:
        yield b": keep alive\n\n"
        time.sleep(0.02)


def runaway(body: Mapping[str, Any]) -> Reply:
    """2,000 tokens that are no reply, from a server that heeds no limit, and on and on in the long roles."""
    return Reply(pieces=repeat("and so on ", 2_000))


def kinds_at(result: Mapping[str, Any], *nodes: str) -> list[tuple[str, str]]:
    """The (node, kind) of each error of these nodes, in order."""
    return [(error["node"], error["kind"]) for error in result["errors"] if error["node"] in nodes]


def asked_of(in_mara: Scripted, in_ragenta: Scripted, script: Script) -> Iterator[tuple[str, Any, Any]]:
    """Let a role of each workflow go wrong in turn; yield it, its requests, and the result of a question."""
    settings: dict[str, Any]
    for workflow, role, settings in ((in_mara, "manager", {}), (in_ragenta, "judge", {"follow_up_rounds": 0})):
        scripts = {**workflow.well_behaved(), role: script}
        result = workflow.ask(TWO_THINGS, scripts, top_k=1, **settings).result
        yield role, [request.body for request in workflow.requests_of(role)], result


def test_a_runaway_is_cut_at_the_roles_limit_tried_once_more_and_falls_back(
    in_mara: Scripted, in_ragenta: Scripted
) -> None:
    for role, requests, result in asked_of(in_mara, in_ragenta, runaway):
        node, fallback, limit = {**ROLES, **OF_RAGENTA}[role]
        assert [body["max_tokens"] for body in requests] == [limit] * 2
        assert kinds_at(result, node, fallback) == [*[(node, "MalformedReply")] * 2, (fallback, "Fallback")]
        errors = [error for error in result["errors"] if error["node"] == node]
        assert {error["message"] for error in errors} == {"The reply was cut at the token limit: write less"}
        assert all(len(error["raw"]) <= limit * CHARACTERS_A_TOKEN + 10 for error in errors), role
        assert result["answer"], role


def test_a_role_that_stays_too_slow_is_asked_twice_and_falls_back(
    in_mara: Scripted, in_ragenta: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", "0.5")
    for role, requests, result in asked_of(in_mara, in_ragenta, [HANGS]):
        node, fallback, _ = {**ROLES, **OF_RAGENTA}[role]
        assert [len(body["messages"]) for body in requests] == [2, 2], role
        assert kinds_at(result, node, fallback) == [*[(node, "SlowReply")] * 2, (fallback, "Fallback")]
        slow, _, fell_back = (error for error in result["errors"] if error["node"] in (node, fallback))
        assert slow["message"].startswith("The chat endpoint sent no token for 0.5 s. Raise MARA_TIMEOUT_S")
        assert "stayed too slow: " in fell_back["message"], role
        assert result["answer"], role
        assert result["usage"]["calls"] == len(in_mara.server.requests)


def test_a_budget_that_is_spent_in_the_middle_of_a_role_breaks_it_off_and_asks_no_other(
    in_mara: Scripted, clock: Clock
) -> None:
    for role, (node, fallback, _) in ROLES.items():
        result = in_mara.ask(scripts={**well_behaved(), role: clock.an_hour_passes_in}).result
        assert len(in_mara.requests_of(role)) == 1
        assert kinds_at(result, node, fallback) == [(node, "BudgetSpent"), (fallback, "Fallback")]
        messages = {error["node"]: error["message"] for error in result["errors"]}
        assert messages[node] == "The question's 300 s are over. Raise question_s or MARA_QUESTION_S"
        assert messages[fallback].startswith(f"Nothing was left to ask the {role}: ")
        assert {"write_answer", "quote_passages"} <= messages.keys()
        assert len(in_mara.requests_of("answerer")) == (role == "answerer")
        assert result["answer"], role


def test_passages_that_are_not_judged_in_time_are_dropped_where_others_were(in_ragenta: Scripted, clock: Clock) -> None:
    def late_for_the_others(body: Mapping[str, Any]) -> ReplyLike:
        return judges(body) if shown_to_model(body)["title"] == "Tarn Dam" else clock.an_hour_passes_in(body)

    in_ragenta.server.script(well_behaved_in_ragenta(judge=late_for_the_others))
    one_by_one = quick_ragenta.with_config(max_concurrency=1)
    result = run(in_ragenta.settings(top_k=2), TWO_THINGS, one_by_one).result
    judged = {each["number"]: (each["judged_by"], each["kept"]) for each in result["judgements"]}
    assert judged == {1: ("logprobs", True), 2: ("unjudged", False)}
    assert result["judge_outcome"] == "kept"


def test_no_more_calls_are_made_than_the_cap_and_the_rest_falls_back(in_mara: Scripted) -> None:
    for calls in (1, 2, 3):
        done = in_mara.ask(max_model_calls=calls)
        assert len(in_mara.server.requests) == done.result["usage"]["calls"] == calls
        assert sum(done.visits[fallback] for _, fallback, _ in ROLES.values()) == 3 - calls
        kinds = [error["kind"] for error in done.result["errors"]]
        assert sorted(kinds) == ["BudgetSpent"] * (3 - calls) + ["Fallback"] * (3 - calls)


def test_once_the_tokens_are_used_up_no_model_is_asked(in_mara: Scripted) -> None:
    usage = {"prompt_tokens": 600, "completion_tokens": 10, "total_tokens": 610}

    def costly(script: Script) -> Script:
        def reply(body: Mapping[str, Any]) -> Reply:
            said = script(body) if callable(script) else script[0]
            return Reply(said if isinstance(said, str) else said.text, usage=usage)

        return reply

    result = in_mara.ask(
        scripts={role: costly(script) for role, script in well_behaved().items()}, max_model_tokens=1_000
    ).result
    assert in_mara.requests_of("answerer") == []
    assert [(error["node"], error["message"]) for error in result["errors"]] == [
        ("write_answer", "The question's 1,000 tokens are used up. Raise max_model_tokens"),
        ("quote_passages", "Nothing was left to ask the answerer: the answer quotes the best passages"),
    ]


def asked_as_far_as_its_answer(in_mara: Scripted) -> tuple[Any, Any]:
    """A thread, and its graph, that was left before an answer was written."""
    graph, thread = on_a_thread()
    given = {"question": "When was Marn founded?"}
    graph.invoke(given, thread, context=in_mara.settings(), interrupt_before=["write_answer"])
    return graph, thread


def test_a_thread_that_is_gone_on_from_an_hour_later_has_its_seconds_left(in_mara: Scripted, clock: Clock) -> None:
    graph, thread = asked_as_far_as_its_answer(in_mara)
    clock.an_hour_passes()
    assert 0 < graph.get_state(thread).values["spent"]["seconds"] < 60
    result = graph.invoke(None, thread, context=in_mara.settings())
    assert (result["answer"], result["errors"]) == (ANSWERED, [])
    for past in graph.get_state_history(thread):
        if past.next:
            clock.an_hour_passes()
            assert graph.invoke(None, past.config, context=in_mara.settings())["errors"] == []


def test_what_a_thread_took_before_it_was_left_counts_when_it_is_gone_on_from(in_mara: Scripted) -> None:
    graph, thread = asked_as_far_as_its_answer(in_mara)
    result = graph.invoke(None, thread, context=in_mara.settings(max_model_calls=2))
    assert [error["kind"] for error in result["errors"]] == ["BudgetSpent", "Fallback"]
    assert in_mara.requests_of("answerer") == []


def test_under_an_event_loop_the_passages_share_the_budget_too(in_ragenta: Scripted) -> None:
    context = in_ragenta.settings(top_k=3, max_model_calls=4)
    result = asyncio.run(quick_ragenta.ainvoke({"question": TWO_THINGS}, context=context))
    assert len(in_ragenta.server.requests) == result["usage"]["calls"] == 4
    assert "BudgetSpent" in {error["kind"] for error in result["errors"]}
    assert result["answer"]


def test_the_environment_gives_the_seconds_where_the_settings_do_not(
    settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings().limits().seconds == 300
    monkeypatch.setenv("MARA_QUESTION_S", "0")
    assert settings().limits().seconds == 0
    assert settings(question_s=7).limits().seconds == 7
