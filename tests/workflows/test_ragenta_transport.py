"""Faults of the endpoint in workflow ragenta: what may pass is tried again, what will not fails the run by name."""

from __future__ import annotations

import pytest

from graph.errors import ModelUnavailable, TransportFault
from tests.scripted_server import Reply, ReplyLike, Script
from tests.workflows.ragenta_world import (
    MARN_ANSWERED,
    ONE_THING,
    ROLES,
    chat_requests,
    in_turn,
    well_behaved,
)
from tests.workflows.scripted import Scripted

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
