"""The path over a chat model: malformed replies are asked for again, faults of the endpoint tried again or told."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count, cycle
from typing import Any

import pytest

from graph.errors import ModelUnavailable, TransportFault
from tests.scripted_server import Fault, RecordedRequest, Reply, Script
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import (
    ANSWERED,
    MALFORMED,
    MANAGED,
    QUESTION,
    fed_back,
    picks_first_fact,
    run,
    shown_to_model,
    well_behaved,
)
from workflows import mara, retrieval
from workflows.runtime import workflow_graph

PROPER: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "fact filter": picks_first_fact,
    "manager": lambda body: MANAGED,
    "answerer": lambda body: ANSWERED,
}
NODES = {"fact filter": "filter_facts", "manager": "weigh_relations", "answerer": "write_answer"}
FALLBACKS = {"fact filter": "keep_top_facts", "manager": "neutral_relations", "answerer": "quote_passages"}
ROLES = tuple(NODES)
FOR_EVER = 99


def malformed_first(role: str, times: int) -> Script:
    """A role whose first replies are malformed; to the answerer, what cites nothing is."""
    turns = count()
    return lambda body: MALFORMED if next(turns) < times else PROPER[role](body)


def scripts_of(malformed: Mapping[str, int]) -> dict[str, Script]:
    return {role: malformed_first(role, malformed.get(role, 0)) for role in ROLES}


def test_every_combination_of_retries_and_fallbacks_walks_once_and_says_what_happened(in_mara: Scripted) -> None:
    once = {"encode_question", "retrieve_facts", "retrieve_passages", "seed_graph", "walk_graph"}
    for times in ((0, 1, FOR_EVER), (1, FOR_EVER, 0), (FOR_EVER, 0, 1), (FOR_EVER, FOR_EVER, FOR_EVER)):
        malformed = dict(zip(ROLES, times, strict=True))
        done = in_mara.ask(scripts=scripts_of(malformed))
        calls = {role: min(malformed[role] + 1, 3) for role in ROLES}
        fallen = [role for role in ROLES if malformed[role] == FOR_EVER]
        assert {role: len(in_mara.requests_of(role)) for role in ROLES} == calls
        visits = {**dict.fromkeys(once, 1), **{NODES[role]: n for role, n in calls.items()}}
        assert done.visits == Counter({**visits, **{FALLBACKS[role]: 1 for role in fallen}})
        refused = {(NODES[role], "MalformedReply"): min(malformed[role], 3) for role in ROLES if malformed[role]}
        assert done.error_kinds == Counter({**refused, **{(FALLBACKS[role], "Fallback"): 1 for role in fallen}})
        assert done.result["fact_outcome"] == ("failed" if "fact filter" in fallen else "kept")
        assert (done.result["relation_factors"] is None) == ("manager" in fallen)
        assert (done.result["answer"] == ANSWERED) == ("answerer" not in fallen)
        assert done.result["ranked_by"] == "walk"
        assert done.result["citations"], times


def test_the_fallback_of_the_filter_keeps_the_best_candidates(in_mara: Scripted) -> None:
    facts = in_mara.ask(scripts=scripts_of({"fact filter": FOR_EVER}), max_facts=2).result["facts"]
    scores = [hit["score"] for hit in facts]
    assert len(facts) > 2
    assert scores == sorted(scores, reverse=True)
    assert [hit["kept"] for hit in facts] == [True, True] + [False] * (len(facts) - 2)


def test_the_reason_alone_is_fed_back_as_quoted_material_to_its_own_role(in_mara: Scripted) -> None:
    for role in ROLES:
        result = in_mara.ask(scripts=scripts_of({role: 2})).result
        first, second, third = in_mara.requests_of(role)
        reasons = [record["message"] for record in result["errors"]]
        for request, reason in ((second, reasons[0]), (third, reasons[1])):
            assert request.body["messages"][:2] == first.body["messages"]
            assert len(request.body["messages"]) == 3
            assert fed_back(request.body) == reason
            assert "Marn" not in request.text_of(2)
        others = [request for request in in_mara.server.requests if request.role != role]
        assert {len(request.body["messages"]) for request in (first, *others)} == {2}


def test_the_context_names_the_model_and_the_temperature_of_each_role(in_mara: Scripted) -> None:
    result = in_mara.ask(model="some-model", temperature=0.25, manager_temperature=0.75).result
    sent = {role: in_mara.requests_of(role)[0].body for role in ROLES}
    assert {body["model"] for body in sent.values()} == {"some-model"}
    assert {role: body["temperature"] for role, body in sent.items()} == {
        "fact filter": 0.25,
        "manager": 0.75,
        "answerer": 0.25,
    }
    assert result["models"]["chat"] == "some-model"


def test_the_filter_sees_bare_candidates_and_the_answerer_the_best_passages_numbered_from_one(
    in_mara: Scripted,
) -> None:
    result = in_mara.ask(answer_passages=3).result
    shown = shown_to_model(only(in_mara.requests_of("fact filter")).body)
    facts = [[n, fact["subject"], fact["predicate"], fact["object"]] for n, fact in enumerate(result["facts"], start=1)]
    assert shown == {"question": QUESTION, "max_facts": 4, "facts": facts}
    shown = shown_to_model(only(in_mara.requests_of("answerer")).body)
    best = enumerate(result["passages"][:3], start=1)
    passages = [{"number": n, "title": hit["title"], "text": hit["text"]} for n, hit in best]
    assert (shown["question"], shown["passages"]) == (QUESTION, passages)


def test_what_the_context_window_leaves_out_of_a_prompt_stands_in_the_errors_of_its_node(in_mara: Scripted) -> None:
    in_mara.server.tells = {"/v1/models": json.dumps({"data": [{"id": "of a small window", "max_model_len": 1_450}]})}
    result = run(in_mara.settings(model="of a small window"), QUESTION).result
    (told,) = [error for error in result["errors"] if error["node"] == "write_answer"]
    shown = shown_to_model(only(in_mara.requests_of("answerer")).body)["passages"]
    left_out = len(result["written_from"]) - len(shown)
    assert 0 < left_out < 5
    assert (told["kind"], told["message"]) == (
        "LeftOut",
        f"The answerer was not shown {left_out} of 5 passages: no more fits into the context window of 1,450 tokens",
    )
    assert result["answer"] == ANSWERED


def only(requests: list[RecordedRequest]) -> RecordedRequest:
    (request,) = requests
    return request


PROPER_REPLIES: dict[str, str] = {"fact filter": json.dumps({"facts": []}), "manager": MANAGED, "answerer": ANSWERED}
PASSING = {
    "429": Reply("slow down", status=429, headers={"Retry-After": "60"}),
    "500": Reply("something broke", status=500),
    "503": Reply("starting", status=503),
    "connection reset": Reply(fault=Fault.RESET),
    "body cut": Reply(ANSWERED, fault=Fault.TRUNCATED),
    "no HTTP at all": Reply(fault=Fault.GARBAGE),
}


def scripts_with(role: str, *replies: Reply) -> dict[str, Script]:
    return {**well_behaved(), role: [*replies, PROPER_REPLIES[role]]}


def for_ever(role: str, reply: Reply) -> dict[str, Script]:
    return {**well_behaved(), role: [reply]}


def test_a_fault_that_passes_is_tried_again_without_a_fallback_or_an_error(in_mara: Scripted) -> None:
    for role, (name, fault) in zip(cycle(ROLES), PASSING.items(), strict=False):
        done = in_mara.ask(scripts=scripts_with(role, fault, fault))
        assert len(in_mara.requests_of(role)) == 3, name
        assert (done.result["answer"], done.result["errors"]) == (ANSWERED, []), name
        assert {done.visits[node] for node in NODES.values()} == {1}
        assert not done.visits.keys() & {"keep_top_facts", "neutral_relations", "quote_passages"}


def test_a_fault_that_stays_fails_the_run_after_three_requests(in_mara: Scripted) -> None:
    for role in ROLES:
        with pytest.raises(TransportFault, match="chat endpoint answered 500: something broke") as failure:
            in_mara.ask(scripts=for_ever(role, PASSING["500"]))
        assert isinstance(failure.value, ModelUnavailable)
        assert "try again later" in str(failure.value)
        assert len(in_mara.requests_of(role)) == 3


def test_a_refused_request_fails_the_run_at_once(in_mara: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-42")
    advice = {401: "OPENAI_API_KEY", 403: "OPENAI_API_KEY", 404: "MARA_CHAT_MODEL", 400: "model"}
    for role, (status, words) in zip(cycle(ROLES), advice.items(), strict=False):
        refused = Reply("the key sk-very-secret-42 is wrong", status=status)
        with pytest.raises(ModelUnavailable, match=words) as failure:
            in_mara.ask(scripts=for_ever(role, refused))
        assert not isinstance(failure.value, TransportFault)
        assert str(status) in str(failure.value)
        assert "very-secret" not in str(failure.value)
        assert len(in_mara.requests_of(role)) == 1


def test_an_endpoint_at_which_no_server_listens_is_unavailable(
    settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    with pytest.raises(TransportFault, match=r"cannot be reached.*OPENAI_BASE_URL"):
        run(settings())


def test_the_workflows_try_transport_faults_alone_three_times() -> None:
    assert (workflow_graph.TRANSPORT_RETRIES.max_attempts, workflow_graph.TRANSPORT_RETRIES.retry_on) == (
        3,
        TransportFault,
    )
    for builder in (mara.build(), retrieval.build()):
        policies = {name: node.retry_policy for name, node in builder.nodes.items() if node.retry_policy is not None}
        assert policies == dict.fromkeys(policies, workflow_graph.TRANSPORT_RETRIES)
        assert policies.keys() == {"rewrite_question", *NODES.values()} & builder.nodes.keys()
