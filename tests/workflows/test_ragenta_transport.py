"""Faults of the endpoint in workflow ragenta: what may pass is tried again, what will not fails the run by name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from graph.errors import ModelUnavailable, TransportFault
from tests.cases import mostly_slow
from tests.scripted_server import Fault, Reply, ReplyLike, Script, ScriptedServer
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    MARN_ANSWERED,
    ONE_THING,
    ROLES,
    TWO_THINGS,
    MakeContext,
    chat_requests,
    in_turn,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
)
from tests.workflows.small_world import QUICK_RETRIES, run, shown_to_model
from workflows import ragenta, retrieval
from workflows.runtime import workflow_graph

PASSING = {
    "500": Reply("something broke", status=500),
    "connection reset": Reply(fault=Fault.RESET),
    "429": Reply("slow down", status=429, headers={"Retry-After": "60"}),
    "503": Reply("starting", status=503),
    "body cut": Reply(MARN_ANSWERED, fault=Fault.TRUNCATED),
    "no HTTP at all": Reply(fault=Fault.GARBAGE),
    "no chat completion": Reply(body='{"choices": []}'),
}
NODES = dict(zip(ROLES, ("predict_answer", "score_passage", "write_answer", "judge_claims"), strict=True))
FOR_ALL = pytest.mark.parametrize("role", ROLES)


def first(role: str, *replies: ReplyLike) -> dict[str, Script]:
    """A role whose first replies are these; all others behave."""
    scripts = well_behaved()
    return {**scripts, role: in_turn(scripts[role], *replies)}


@FOR_ALL
@pytest.mark.parametrize("fault", mostly_slow(PASSING, 1))
def test_a_fault_that_passes_is_tried_again_without_a_trace(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, role: str, fault: Reply
) -> None:
    chat_server.script(first(role, fault, fault))
    result = run(ragenta_settings(top_k=1), ONE_THING, quick_ragenta).result
    assert len(chat_server.requests_of(role)) == 3
    assert (result["answer"], result["errors"], result["coverage"]) == (MARN_ANSWERED, [], "FULLY ANSWERED")
    assert result["usage"]["calls"] == chat_requests(chat_server) - 2, "a call that brought no reply is none"


@FOR_ALL
def test_faults_do_not_count_as_attempts_of_the_retry_edge(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, role: str
) -> None:
    broke, useless = PASSING["500"], "<think>"
    chat_server.script(first(role, broke, useless, broke, broke, useless, broke))
    result = run(ragenta_settings(top_k=1), ONE_THING, quick_ragenta).result
    assert [(error["node"], error["attempt"]) for error in result["errors"]] == [(NODES[role], 1), (NODES[role], 2)]
    assert len(chat_server.requests_of(role)) == 7
    assert result["answer"] == MARN_ANSWERED


@FOR_ALL
@pytest.mark.parametrize("fault", mostly_slow(PASSING, 1))
def test_a_fault_that_stays_fails_the_run_after_three_requests(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, role: str, fault: Reply
) -> None:
    chat_server.script({**well_behaved(), role: [fault]})
    with pytest.raises(TransportFault) as failure:
        run(ragenta_settings(top_k=1), ONE_THING, quick_ragenta)
    assert isinstance(failure.value, ModelUnavailable)
    assert len(chat_server.requests_of(role)) == 3


@FOR_ALL
@pytest.mark.parametrize(("status", "advice"), mostly_slow([(401, "OPENAI_API_KEY"), (404, "MARA_CHAT_MODEL")], 1))
def test_a_refused_request_fails_the_run_at_once(
    chat_server: ScriptedServer,
    ragenta_settings: MakeContext,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    status: int,
    advice: str,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-42")
    chat_server.script({**well_behaved(), role: [Reply("the key sk-very-secret-42 is wrong", status=status)]})
    with pytest.raises(ModelUnavailable, match=advice) as failure:
        run(ragenta_settings(top_k=1), ONE_THING, quick_ragenta)
    assert not isinstance(failure.value, TransportFault)
    assert "very-secret" not in str(failure.value)
    assert len(chat_server.requests_of(role)) == 1


def invoke(question: str, context: Any) -> Any:
    return quick_ragenta.invoke({"question": question}, context=context)


def ainvoke(question: str, context: Any) -> Any:
    return asyncio.run(quick_ragenta.ainvoke({"question": question}, context=context))


@pytest.mark.parametrize("ask", [invoke, ainvoke])
def test_passages_that_cannot_be_judged_fail_the_run_with_the_documented_error_alone(
    ragenta_settings: MakeContext, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    def refuses_some(body: Mapping[str, Any]) -> ReplyLike:
        refused = shown_to_model(body)["title"] in ("Lake Sund", "Duke Orlo")
        return Reply("no such model", status=404) if refused else "Marn was founded in 1203."

    # A server of its own: requests on their way when a run fails are not called back.
    with ScriptedServer(well_behaved(predictor=refuses_some)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(ModelUnavailable, match="404") as failure:
            ask(ONE_THING, ragenta_settings(top_k=8))
    assert type(failure.value) is ModelUnavailable


@pytest.fixture
def quick_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search of a follow-up try again without a pause, too."""
    monkeypatch.setattr(ragenta, "_search", retrieval.build(QUICK_RETRIES).compile())


@pytest.mark.usefixtures("quick_searches")
@pytest.mark.parametrize("role", mostly_slow(["judge", "manager", *ROLES[::2], ROLES[3], "fact filter"], 2))
@pytest.mark.parametrize("stays", [False, True], ids=["passes", "stays"])
def test_in_a_follow_up_faults_are_as_in_the_question_itself(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, role: str, stays: bool
) -> None:
    scripts = well_behaved()
    faults = [PASSING["500"]] * (9 if stays else 2)
    later = in_turn(scripts[role], *faults)

    def breaks_later(body: Mapping[str, Any]) -> ReplyLike:
        shown = shown_to_model(body)
        is_later = shown["question"] == FOLLOW_UP or "draft" in shown or len(shown.get("claims", [])) > 1
        script = later if is_later else scripts[role]
        reply = script(body) if callable(script) else script[0]
        assert isinstance(reply, str | Reply)
        return reply

    chat_server.script({**scripts, role: breaks_later})
    context = ragenta_settings(mode="mara", top_k=1)
    if stays:
        with pytest.raises(TransportFault, match="500: something broke"):
            run(context, TWO_THINGS, quick_ragenta)
        assert len(chat_server.requests_of(role)) == 4
        return
    result = run(context, TWO_THINGS, quick_ragenta).result
    assert result["answer"] == f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [2]."
    assert result["errors"] == []
    assert result["usage"]["calls"] == chat_requests(chat_server) - 2 == 12


@FOR_ALL
@pytest.mark.slow
def test_a_failed_run_goes_on_where_it_stopped(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, role: str
) -> None:
    graph, thread = ragenta_on_a_thread()
    chat_server.script({**well_behaved(), role: [Reply("wrong key", status=401)]})
    with pytest.raises(ModelUnavailable):
        graph.invoke({"question": ONE_THING}, thread, context=ragenta_settings())
    chat_server.script(well_behaved())
    result = graph.invoke(None, thread, context=ragenta_settings())
    assert (result["answer"], result["errors"]) == (MARN_ANSWERED, [])
    assert [each["number"] for each in result["judgements"]] == [1, 2]
    assert {request.role for request in chat_server.requests} == set(ROLES[ROLES.index(role) :])


@pytest.mark.slow
def test_a_run_after_a_failed_one_on_the_same_thread_is_clean(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    graph, thread = ragenta_on_a_thread()
    for role in ROLES:
        chat_server.script({**well_behaved(predictor=["<think>"]), role: [Reply("no", status=401)]})
        with pytest.raises(ModelUnavailable):
            graph.invoke({"question": TWO_THINGS}, thread, context=ragenta_settings())
    chat_server.script(well_behaved())
    again = graph.invoke({"question": TWO_THINGS}, thread, context=ragenta_settings())
    fresh = run(ragenta_settings(), TWO_THINGS, quick_ragenta).result
    assert {**again, "timings_ms": {}} == {**fresh, "timings_ms": {}}
    assert again["timings_ms"].keys() == fresh["timings_ms"].keys()


def test_the_workflow_tries_transport_faults_again_wherever_a_model_is_asked() -> None:
    nodes = ragenta.build().nodes
    policies = {name for name, node in nodes.items() if node.retry_policy == workflow_graph.TRANSPORT_RETRIES}
    assert policies == {"rewrite_question", "filter_facts", "weigh_relations", "write_answer"}
    within: dict[str, set[str]] = {
        name: {inner for inner, node in nodes[name].runnable.builder.nodes.items() if node.retry_policy}  # type: ignore[union-attr]
        for name in ("judge_passage", "check_claims")
    }
    assert within == {"judge_passage": {"predict_answer", "score_passage"}, "check_claims": {"judge_claims"}}
