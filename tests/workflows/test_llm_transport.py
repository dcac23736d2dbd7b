"""Faults of the endpoint: what may pass is tried again, what will not fails the run, and neither falls back."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest

from graph.errors import BadInput, ModelUnavailable, TransportFault
from tests.cases import mostly_slow
from tests.scripted_server import Fault, Reply, Script, ScriptedServer
from tests.workflows.small_world import (
    ANSWERED,
    MALFORMED,
    MANAGED,
    QUESTION,
    on_a_thread,
    quick_graph,
    run,
    well_behaved,
)
from workflows import mara, retrieval
from workflows.context import Context
from workflows.runtime import workflow_graph

MakeContext = Callable[..., Context]

PROPER: dict[str, str] = {"fact filter": json.dumps({"facts": []}), "manager": MANAGED, "answerer": ANSWERED}
NODES = {"fact filter": "filter_facts", "manager": "weigh_relations", "answerer": "write_answer"}
ROLES = tuple(NODES)
PASSING = {
    "429": Reply("slow down", status=429, headers={"Retry-After": "60"}),
    "500": Reply("something broke", status=500),
    "503": Reply("starting", status=503),
    "connection reset": Reply(fault=Fault.RESET),
    "body cut": Reply(ANSWERED, fault=Fault.TRUNCATED),
    "no HTTP at all": Reply(fault=Fault.GARBAGE),
}


def scripts_with(role: str, *replies: Reply) -> dict[str, Script]:
    return {**well_behaved(), role: [*replies, PROPER[role]]}


def for_ever(role: str, reply: Reply) -> dict[str, Script]:
    return {**well_behaved(), role: [reply]}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("fault", mostly_slow(PASSING, 2))
def test_a_fault_that_passes_is_tried_again_without_a_fallback_or_an_error(
    chat_server: ScriptedServer, settings: MakeContext, role: str, fault: Reply
) -> None:
    chat_server.script(scripts_with(role, fault, fault))
    done = run(settings())
    assert len(chat_server.requests_of(role)) == 3
    assert done.result["errors"] == []
    assert done.result["answer"] == ANSWERED
    assert {done.visits[node] for node in NODES.values()} == {1}
    assert not done.visits.keys() & {"keep_top_facts", "neutral_relations", "quote_passages"}


def test_faults_do_not_count_as_attempts_of_the_retry_edge(chat_server: ScriptedServer, settings: MakeContext) -> None:
    replies = [PASSING["500"], Reply(MALFORMED), PASSING["429"], Reply(MALFORMED), PASSING["500"]]
    chat_server.script(scripts_with("manager", *replies))
    done = run(settings(max_json_retries=2))
    assert [record["attempt"] for record in done.result["errors"]] == [1, 2]
    assert len(chat_server.requests_of("manager")) == 6
    assert "neutral_relations" not in done.visits


@pytest.mark.parametrize("role", ROLES)
def test_a_fault_that_stays_fails_the_run_after_three_requests(
    chat_server: ScriptedServer, settings: MakeContext, role: str
) -> None:
    chat_server.script(for_ever(role, PASSING["500"]))
    with pytest.raises(TransportFault, match="chat endpoint answered 500: something broke") as failure:
        run(settings())
    assert isinstance(failure.value, ModelUnavailable)
    assert "try again later" in str(failure.value)
    assert len(chat_server.requests_of(role)) == 3


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    ("status", "advice"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "MARA_CHAT_MODEL"), (400, "model")]
)
def test_a_refused_request_fails_the_run_at_once(
    chat_server: ScriptedServer,
    settings: MakeContext,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    status: int,
    advice: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-42")
    chat_server.script(for_ever(role, Reply("the key sk-very-secret-42 is wrong", status=status)))
    with pytest.raises(ModelUnavailable, match=advice) as failure:
        run(settings())
    assert not isinstance(failure.value, TransportFault)
    assert str(status) in str(failure.value)
    assert "very-secret" not in str(failure.value)
    assert len(chat_server.requests_of(role)) == 1


def test_an_endpoint_where_nobody_listens_is_unavailable(
    settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    with pytest.raises(TransportFault, match=r"cannot be reached.*OPENAI_BASE_URL"):
        run(settings())


@pytest.mark.parametrize("seconds", ["soon", "0", "-1", "nan", "inf"])
def test_a_timeout_that_is_none_is_bad_input(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    monkeypatch.setenv("MARA_TIMEOUT_S", seconds)
    with pytest.raises(BadInput, match="MARA_TIMEOUT_S"):
        run(settings())
    assert chat_server.requests == []


def test_a_model_without_key_or_server_is_unavailable_before_any_request(settings: MakeContext) -> None:
    with pytest.raises(ModelUnavailable, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL"):
        run(settings(model="some-model"))


def test_a_run_after_a_failed_one_on_the_same_thread_is_clean(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    graph, thread = on_a_thread()
    chat_server.script({**for_ever("answerer", Reply("no", status=401)), "manager": [MALFORMED]})
    with pytest.raises(ModelUnavailable):
        graph.invoke({"question": QUESTION}, thread, context=settings())
    stopped = graph.get_state(thread).values
    assert {record["node"] for record in stopped["errors"]} == {"weigh_relations", "neutral_relations"}

    chat_server.script(well_behaved())
    again = graph.invoke({"question": QUESTION}, thread, context=settings())
    assert again["errors"] == []
    assert again["answer"] == ANSWERED
    assert again["relation_factors"] is not None
    fresh = run(settings()).result
    assert {key: value for key, value in again.items() if key != "timings_ms"} == {
        key: value for key, value in fresh.items() if key != "timings_ms"
    }


def test_a_failed_run_can_be_resumed_where_it_stopped(chat_server: ScriptedServer, settings: MakeContext) -> None:
    graph, thread = on_a_thread()
    chat_server.script(for_ever("answerer", PASSING["500"]))
    with pytest.raises(TransportFault):
        graph.invoke({"question": QUESTION}, thread, context=settings())
    chat_server.script(well_behaved())
    assert graph.invoke(None, thread, context=settings())["answer"] == ANSWERED
    assert [request.role for request in chat_server.requests] == ["answerer"]


def test_the_workflows_try_transport_faults_alone_three_times() -> None:
    assert (workflow_graph.TRANSPORT_RETRIES.max_attempts, workflow_graph.TRANSPORT_RETRIES.retry_on) == (
        3,
        TransportFault,
    )
    for builder in (mara.build(), retrieval.build()):
        policies = {name: node.retry_policy for name, node in builder.nodes.items() if node.retry_policy is not None}
        assert policies == dict.fromkeys(policies, workflow_graph.TRANSPORT_RETRIES)
        assert policies.keys() == {"rewrite_question", *NODES.values()} & builder.nodes.keys()


def test_the_quick_graph_of_these_tests_differs_in_nothing_else() -> None:
    assert quick_graph.get_graph().to_json() == mara.graph.get_graph().to_json()
