"""Faults of the endpoint in workflow ragenta: what may pass is tried again, what will not fails the run by name."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from graph.errors import ModelUnavailable, TransportFault
from tests.scripted_server import Reply, ReplyLike, Script, ScriptedServer
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
    well_behaved,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import QUICK_RETRIES, shown_to_model
from workflows import ragenta, retrieval
from workflows.runtime import workflow_graph

BROKE = Reply("something broke", status=500)
NODES = dict(zip(ROLES, ("predict_answer", "score_passage", "write_answer", "judge_claims"), strict=True))


def first(role: str, *replies: ReplyLike) -> dict[str, Script]:
    """A role whose first replies are these; all others behave."""
    scripts = well_behaved()
    return {**scripts, role: in_turn(scripts[role], *replies)}


def test_a_fault_that_passes_is_tried_again_without_a_trace_or_an_attempt_of_the_retry_edge(
    in_ragenta: Scripted,
) -> None:
    for role in ROLES:
        result = in_ragenta.ask(ONE_THING, first(role, BROKE, BROKE), top_k=1).result
        assert len(in_ragenta.requests_of(role)) == 3
        assert (result["answer"], result["errors"], result["coverage"]) == (MARN_ANSWERED, [], "FULLY ANSWERED")
        assert result["usage"]["calls"] == chat_requests(in_ragenta.server) - 2, "a call without a reply is none"
        scripts = first(role, BROKE, "<think>", BROKE, BROKE, "<think>", BROKE)
        result = in_ragenta.ask(ONE_THING, scripts, top_k=1).result
        assert [(error["node"], error["attempt"]) for error in result["errors"]] == [(NODES[role], 1), (NODES[role], 2)]
        assert len(in_ragenta.requests_of(role)) == 7
        assert result["answer"] == MARN_ANSWERED


def test_a_fault_that_stays_fails_the_run_after_three_requests_and_a_refusal_at_once(
    in_ragenta: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-42")
    refused = Reply("the key sk-very-secret-42 is wrong", status=401)
    for role in ROLES:
        with pytest.raises(TransportFault) as fault:
            in_ragenta.ask(ONE_THING, {**well_behaved(), role: [BROKE]}, top_k=1)
        assert isinstance(fault.value, ModelUnavailable)
        assert len(in_ragenta.requests_of(role)) == 3
        with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY") as refusal:
            in_ragenta.ask(ONE_THING, {**well_behaved(), role: [refused]}, top_k=1)
        assert not isinstance(refusal.value, TransportFault)
        assert "very-secret" not in str(refusal.value)
        assert len(in_ragenta.requests_of(role)) == 1


def test_passages_that_cannot_be_judged_fail_the_run_with_the_documented_error_alone(
    ragenta_settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses_some(body: Mapping[str, Any]) -> ReplyLike:
        refused = shown_to_model(body)["title"] in ("Lake Sund", "Duke Orlo")
        return Reply("no such model", status=404) if refused else "Marn was founded in 1203."

    given: Any = {"question": ONE_THING}
    for ask in (quick_ragenta.invoke, lambda *asked, **how: asyncio.run(quick_ragenta.ainvoke(*asked, **how))):
        # A server of its own: requests on their way when a run fails are not called back.
        with ScriptedServer(well_behaved(predictor=refuses_some)) as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            with pytest.raises(ModelUnavailable, match="404") as failure:
                ask(given, context=ragenta_settings(top_k=8))
        assert type(failure.value) is ModelUnavailable


def breaking_later(role: str, times: int) -> dict[str, Script]:
    """A role of which so many requests fail, once the first answer is checked."""
    scripts = well_behaved()
    later = in_turn(scripts[role], *[BROKE] * times)

    def reply(body: Mapping[str, Any]) -> ReplyLike:
        shown = shown_to_model(body)
        is_later = shown["question"] == FOLLOW_UP or "draft" in shown or len(shown.get("claims", [])) > 1
        script = later if is_later else scripts[role]
        return script(body) if callable(script) else script[0]

    return {**scripts, role: reply}


def test_in_a_follow_up_faults_are_as_in_the_question_itself(
    in_ragenta: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ragenta, "_search", retrieval.build(QUICK_RETRIES).compile())
    for role in ("judge", "manager"):
        result = in_ragenta.ask(TWO_THINGS, breaking_later(role, 2), mode="mara", top_k=1).result
        assert result["answer"] == f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [2]."
        assert result["errors"] == []
        assert result["usage"]["calls"] == chat_requests(in_ragenta.server) - 2 == 12
        with pytest.raises(TransportFault, match="500: something broke"):
            in_ragenta.ask(TWO_THINGS, breaking_later(role, 9), mode="mara", top_k=1)
        assert len(in_ragenta.requests_of(role)) == 4


def test_the_workflow_tries_transport_faults_again_wherever_a_model_is_asked() -> None:
    nodes = ragenta.build().nodes
    policies = {name for name, node in nodes.items() if node.retry_policy == workflow_graph.TRANSPORT_RETRIES}
    assert policies == {"rewrite_question", "filter_facts", "weigh_relations", "write_answer"}
    within: dict[str, set[str]] = {
        name: {inner for inner, node in nodes[name].runnable.builder.nodes.items() if node.retry_policy}  # type: ignore[union-attr]
        for name in ("judge_passage", "check_claims")
    }
    assert within == {"judge_passage": {"predict_answer", "score_passage"}, "check_claims": {"judge_claims"}}
