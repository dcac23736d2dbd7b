"""What a question may take: replies that never end, never come or come too late, and a budget that is spent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from agents.answerer import ChatAnswerer
from agents.chat import usage as budget_module
from agents.chat.model import CHARACTERS_A_TOKEN
from agents.claim_judge import ChatClaimJudge
from agents.fact_filter import ChatFactFilter
from agents.final_predictor import ChatFinalPredictor
from agents.judge import ChatJudge
from agents.manager import ChatManager
from agents.predictor import ChatPredictor
from graph.errors import BadInput, TransportFault
from tests.cases import mostly_slow
from tests.scripted_server import Fault, Reply, ReplyLike, Script, ScriptedServer
from tests.workflows.ragenta_world import BUILDER_ANSWERED, TWO_THINGS, judges, quick_ragenta, ragenta_on_a_thread
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.small_world import ANSWERED, on_a_thread, run, shown_to_model, well_behaved
from workflows.context import Context
from workflows.settings.ragenta import RagentaContext

MakeContext = Callable[..., Context]
MakeRagentaContext = Callable[..., RagentaContext]

ROLES: Mapping[str, tuple[str, str, int]] = {
    "fact filter": ("filter_facts", "keep_top_facts", ChatFactFilter.reply_tokens),
    "manager": ("weigh_relations", "neutral_relations", ChatManager.reply_tokens),
    "answerer": ("write_answer", "quote_passages", ChatAnswerer.reply_tokens),
}
"""The node of each role of workflow mara, its fallback, and its limit of tokens."""

OF_RAGENTA: Mapping[str, tuple[str, str, int]] = {
    "predictor": ("predict_answer", "skip_prediction", ChatPredictor.reply_tokens),
    "judge": ("score_passage", "leave_unjudged", ChatJudge.reply_tokens),
    "final predictor": ("write_answer", "quote_passages", ChatFinalPredictor.reply_tokens),
    "claim judge": ("judge_claims", "check_words", ChatClaimJudge.reply_tokens),
}
"""Those of workflow ragenta."""

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


@pytest.mark.parametrize("role", ROLES)
def test_a_runaway_is_cut_at_the_roles_limit_tried_once_more_and_falls_back(
    chat_server: ScriptedServer, settings: MakeContext, role: str
) -> None:
    node, fallback, limit = ROLES[role]
    chat_server.script({**well_behaved(), role: runaway})
    result = run(settings()).result
    requests = chat_server.requests_of(role)
    assert [request.body["max_tokens"] for request in requests] == [limit] * 2
    assert kinds_at(result, node, fallback) == [*[(node, "MalformedReply")] * 2, (fallback, "Fallback")]
    told = [error for error in result["errors"] if error["node"] == node]
    assert all(error["message"] == "The reply was cut at the token limit: write less" for error in told)
    assert all(len(error["raw"]) <= limit * CHARACTERS_A_TOKEN + 10 for error in told)
    assert result["answer"]


@pytest.mark.parametrize("role", mostly_slow(list(OF_RAGENTA), 2))
def test_a_runaway_of_ragenta_is_cut_too(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext, role: str
) -> None:
    node, fallback, limit = OF_RAGENTA[role]
    chat_server.script({**well_behaved_in_ragenta(), role: runaway})
    result = run(ragenta_settings(top_k=1, follow_up_rounds=0), TWO_THINGS, quick_ragenta).result
    assert [request.body["max_tokens"] for request in chat_server.requests_of(role)] == [limit] * 2
    assert kinds_at(result, node, fallback) == [*[(node, "MalformedReply")] * 2, (fallback, "Fallback")]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_stays_too_slow_is_asked_twice_and_falls_back(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", "1")
    node, fallback, _ = ROLES[role]
    chat_server.script({**well_behaved(), role: [HANGS]})
    result = run(settings()).result
    assert [len(request.body["messages"]) for request in chat_server.requests_of(role)] == [2, 2]
    assert kinds_at(result, node, fallback) == [*[(node, "SlowReply")] * 2, (fallback, "Fallback")]
    slow, _, fell_back = (error for error in result["errors"] if error["node"] in (node, fallback))
    assert slow["message"].startswith("The chat endpoint sent no token for 1 s. Raise MARA_TIMEOUT_S")
    assert fell_back["message"].startswith(f"The {role}'s replies stayed too slow: ")
    assert result["answer"]
    assert result["usage"]["calls"] == len(chat_server.requests)


@pytest.mark.parametrize("role", mostly_slow(list(OF_RAGENTA), 2))
def test_a_role_of_ragenta_that_stays_too_slow_falls_back(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", "1")
    node, fallback, _ = OF_RAGENTA[role]
    chat_server.script({**well_behaved_in_ragenta(), role: [HANGS]})
    result = run(ragenta_settings(top_k=1, follow_up_rounds=0), TWO_THINGS, quick_ragenta).result
    assert kinds_at(result, node, fallback) == [*[(node, "SlowReply")] * 2, (fallback, "Fallback")]
    assert result["answer"]


def test_a_slow_reply_that_comes_at_the_second_attempt_is_taken_and_told(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", "1")
    chat_server.script({**well_behaved(), "answerer": [HANGS, ANSWERED]})
    result = run(settings()).result
    assert result["answer"] == ANSWERED
    assert kinds_at(result, "write_answer", "quote_passages") == [("write_answer", "SlowReply")]


def test_the_reason_of_a_malformed_reply_is_fed_back_and_that_of_a_slow_one_is_not(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", "1")
    chat_server.script({**well_behaved(), "answerer": ["In 1203.", HANGS]})
    done = run(settings())
    assert [len(request.body["messages"]) for request in chat_server.requests_of("answerer")] == [2, 3]
    assert kinds_at(done.result, "write_answer") == [("write_answer", "MalformedReply"), ("write_answer", "SlowReply")]


def test_a_server_that_stops_in_mid_reply_stays_an_error(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script({**well_behaved(), "answerer": [Reply(ANSWERED, fault=Fault.TRUNCATED)]})
    with pytest.raises(TransportFault, match="broke off"):
        run(settings())
    assert len(chat_server.requests_of("answerer")) == 3


@pytest.mark.parametrize("role", ROLES)
def test_a_budget_that_is_spent_in_the_middle_of_a_role_breaks_it_off_and_asks_nobody_else(
    chat_server: ScriptedServer, settings: MakeContext, clock: Clock, role: str
) -> None:
    node, fallback, _ = ROLES[role]
    chat_server.script({**well_behaved(), role: clock.an_hour_passes_in})
    result = run(settings()).result
    assert len(chat_server.requests_of(role)) == 1
    assert kinds_at(result, node, fallback) == [(node, "BudgetSpent"), (fallback, "Fallback")]
    told = {error["node"]: error["message"] for error in result["errors"]}
    assert told[node] == "The question's 300 s are over. Raise question_s or MARA_QUESTION_S"
    assert told[fallback].startswith(f"Nothing was left to ask the {role}: ")
    assert {"write_answer", "quote_passages"} <= told.keys()
    assert len(chat_server.requests_of("answerer")) == (role == "answerer")
    assert result["answer"]


@pytest.mark.parametrize("role", mostly_slow(list(OF_RAGENTA), 2))
def test_a_budget_that_is_spent_in_the_middle_of_a_role_of_ragenta_asks_nobody_else(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext, clock: Clock, role: str
) -> None:
    chat_server.script({**well_behaved_in_ragenta(), role: clock.an_hour_passes_in})
    result = run(ragenta_settings(top_k=1), TWO_THINGS, quick_ragenta).result
    order = list(OF_RAGENTA)
    assert [each for each in order if chat_server.requests_of(each)] == order[: order.index(role) + 1]
    node, fallback, _ = OF_RAGENTA[role]
    assert kinds_at(result, node, fallback)[:2] == [(node, "BudgetSpent"), (fallback, "Fallback")]
    assert result["answer"]


def test_passages_that_are_not_judged_in_time_are_dropped_where_others_were(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext, clock: Clock
) -> None:
    def late_for_the_others(body: Mapping[str, Any]) -> ReplyLike:
        return judges(body) if shown_to_model(body)["title"] == "Tarn Dam" else clock.an_hour_passes_in(body)

    chat_server.script(well_behaved_in_ragenta(judge=late_for_the_others))
    one_by_one = quick_ragenta.with_config(max_concurrency=1)
    result = run(ragenta_settings(top_k=2), TWO_THINGS, one_by_one).result
    told = {each["number"]: (each["judged_by"], each["kept"]) for each in result["judgements"]}
    assert told == {1: ("logprobs", True), 2: ("unjudged", False)}
    assert result["judge_outcome"] == "kept"


def test_no_passage_judged_in_time_keeps_the_best_of_them(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext, clock: Clock
) -> None:
    chat_server.script(well_behaved_in_ragenta(predictor=clock.an_hour_passes_in))
    result = run(ragenta_settings(top_k=2), TWO_THINGS, quick_ragenta).result
    assert result["judge_outcome"] == "failed"
    assert [each["kept"] for each in result["judgements"]] == [True, True]
    assert chat_server.requests_of("judge") == chat_server.requests_of("final predictor") == []
    told = [error["message"] for error in result["errors"] if error["node"] == "score_passage"]
    assert sorted(told) == [f"The question's 300 s are over: passage [{number}] is left unjudged" for number in (1, 2)]


def test_follow_ups_are_not_asked_where_the_budget_is_spent(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext
) -> None:
    chat_server.script(well_behaved_in_ragenta())
    calls = 4  # predictor, judge, final predictor and claim judge
    result = run(ragenta_settings(top_k=1, max_model_calls=calls), TWO_THINGS, quick_ragenta).result
    assert result["answer"] == BUILDER_ANSWERED
    assert [each["outcome"] for each in result["follow_ups"]] == ["not asked"]
    assert [error["kind"] for error in result["errors"]] == ["BudgetSpent"]
    assert len(chat_server.requests) == calls


def test_follow_ups_take_no_more_than_the_question_may(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext
) -> None:
    chat_server.script(well_behaved_in_ragenta())
    result = run(ragenta_settings(top_k=1, max_model_calls=8), TWO_THINGS, quick_ragenta).result
    assert [each["outcome"] for each in result["follow_ups"]] == ["found"]
    assert "born in Lisk" in result["plain_answer"]
    assert len(chat_server.requests) == 8


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_no_more_calls_are_made_than_the_cap_and_the_rest_falls_back(
    chat_server: ScriptedServer, settings: MakeContext, calls: int
) -> None:
    chat_server.script(well_behaved())
    done = run(settings(max_model_calls=calls))
    assert len(chat_server.requests) == done.result["usage"]["calls"] == calls
    assert sum(done.visits[fallback] for _, fallback, _ in ROLES.values()) == 3 - calls
    kinds = [error["kind"] for error in done.result["errors"]]
    assert sorted(kinds) == ["BudgetSpent"] * (3 - calls) + ["Fallback"] * (3 - calls)


def test_once_the_tokens_are_used_up_nobody_is_asked(chat_server: ScriptedServer, settings: MakeContext) -> None:
    usage = {"prompt_tokens": 600, "completion_tokens": 10, "total_tokens": 610}

    def costly(script: Script) -> Script:
        def reply(body: Mapping[str, Any]) -> Reply:
            said = script(body) if callable(script) else script[0]
            return Reply(said if isinstance(said, str) else said.text, usage=usage)

        return reply

    chat_server.script({role: costly(script) for role, script in well_behaved().items()})
    result = run(settings(max_model_tokens=1_000)).result
    assert chat_server.requests_of("answerer") == []
    assert [(error["node"], error["message"]) for error in result["errors"]] == [
        ("write_answer", "The question's 1,000 tokens are used up. Raise max_model_tokens"),
        ("quote_passages", "Nothing was left to ask the answerer: the answer quotes the best passages"),
    ]


def test_the_offline_agents_need_no_budget(settings: MakeContext) -> None:
    result = run(settings(question_s=0.000_001, max_model_calls=1, max_model_tokens=1)).result
    assert result["errors"] == []


def test_a_thread_that_is_gone_on_from_an_hour_later_has_its_seconds_left(
    chat_server: ScriptedServer, settings: MakeContext, clock: Clock
) -> None:
    graph, thread = on_a_thread()
    chat_server.script(well_behaved())
    graph.invoke({"question": "When was Marn founded?"}, thread, context=settings(), interrupt_before=["write_answer"])
    clock.an_hour_passes()
    assert 0 < graph.get_state(thread).values["spent"]["seconds"] < 60
    result = graph.invoke(None, thread, context=settings())
    assert (result["answer"], result["errors"]) == (ANSWERED, [])
    for past in graph.get_state_history(thread):
        if past.next:
            clock.an_hour_passes()
            assert graph.invoke(None, past.config, context=settings())["errors"] == []


def test_what_a_thread_took_before_it_was_left_counts_when_it_is_gone_on_from(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    graph, thread = on_a_thread()
    chat_server.script(well_behaved())
    graph.invoke({"question": "When was Marn founded?"}, thread, context=settings(), interrupt_before=["write_answer"])
    result = graph.invoke(None, thread, context=settings(max_model_calls=2))
    assert [error["kind"] for error in result["errors"]] == ["BudgetSpent", "Fallback"]
    assert chat_server.requests_of("answerer") == []


def test_a_new_question_on_a_thread_begins_with_a_whole_budget(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    graph, thread = on_a_thread()
    chat_server.script(well_behaved())
    for _ in range(2):
        result = graph.invoke({"question": "When was Marn founded?"}, thread, context=settings(max_model_calls=3))
        assert result["errors"] == []
        assert graph.get_state(thread).values["spent"]["calls"] == 3


def test_a_thread_of_ragenta_counts_what_its_subgraphs_took(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext
) -> None:
    graph, thread = ragenta_on_a_thread()
    chat_server.script(well_behaved_in_ragenta())
    graph.invoke({"question": TWO_THINGS}, thread, context=ragenta_settings())
    assert graph.get_state(thread).values["spent"]["calls"] == len(chat_server.requests)


def test_under_an_event_loop_the_passages_share_the_budget_too(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext
) -> None:
    chat_server.script(well_behaved_in_ragenta())
    context = ragenta_settings(top_k=3, max_model_calls=4)
    result = asyncio.run(quick_ragenta.ainvoke({"question": TWO_THINGS}, context=context))
    assert len(chat_server.requests) == result["usage"]["calls"] == 4
    assert "BudgetSpent" in {error["kind"] for error in result["errors"]}
    assert result["answer"]


def test_two_questions_at_once_have_a_budget_each(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script(well_behaved())
    results: dict[int, Any] = {}

    def ask(calls: int) -> None:
        results[calls] = run(settings(max_model_calls=calls)).result

    threads = [threading.Thread(target=ask, args=(calls,)) for calls in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {calls: result["usage"]["calls"] for calls, result in results.items()} == {1: 1, 2: 2, 3: 3}


def test_a_caller_that_streams_messages_sees_the_answer_alone(
    chat_server: ScriptedServer, ragenta_settings: MakeRagentaContext
) -> None:
    chat_server.script(well_behaved_in_ragenta())
    pieces: Iterator[Any] = quick_ragenta.stream(
        {"question": TWO_THINGS}, context=ragenta_settings(), stream_mode="messages", subgraphs=True
    )
    nodes = {about["langgraph_node"] for _, (_, about) in pieces}
    assert nodes == {"write_answer"}
    assert all(request.body["stream"] for request in chat_server.requests)


@pytest.mark.parametrize("seconds", ["soon", "-1", "nan", "inf"])
def test_a_budget_that_is_none_is_bad_input(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("MARA_QUESTION_S", seconds)
    with pytest.raises(BadInput, match=rf"MARA_QUESTION_S is '{seconds}'.*0 for no limit"):
        run(settings())


def test_the_environment_gives_the_seconds_where_the_settings_do_not(
    settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings().limits().seconds == 300
    monkeypatch.setenv("MARA_QUESTION_S", "0")
    assert settings().limits().seconds == 0
    assert settings(question_s=7).limits().seconds == 7
