"""The path over a chat model: malformed replies are asked for again with the reason, then a fallback stands in."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count, product
from typing import Any

import pytest

from tests.cases import mostly_slow
from tests.scripted_server import RecordedRequest, Reply, ReplyLike, Script, ScriptedServer
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
from workflows.context import Context

MakeContext = Callable[..., Context]

PROPER: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "fact filter": picks_first_fact,
    "manager": lambda body: MANAGED,
    "answerer": lambda body: ANSWERED,
}
NODES = {"fact filter": "filter_facts", "manager": "weigh_relations", "answerer": "write_answer"}
FALLBACKS = {"fact filter": "keep_top_facts", "manager": "neutral_relations", "answerer": "quote_passages"}
ROLES = tuple(NODES)
FOR_EVER = 99
HOW_OFTEN = {"ok": 0, "malformed once": 1, "malformed for ever": FOR_EVER}
COMBINATIONS = sorted(product(HOW_OFTEN, repeat=3), key=lambda outcomes: -len(set(outcomes)))
"""Those in which all three differ come first."""


def malformed_first(role: str, times: int) -> Script:
    """A role whose first replies are malformed; to the answerer, what cites nothing is."""
    turns = count()
    return lambda body: MALFORMED if next(turns) < times else PROPER[role](body)


def scripts_of(malformed: Mapping[str, int]) -> dict[str, Script]:
    return {role: malformed_first(role, malformed.get(role, 0)) for role in ROLES}


@pytest.mark.parametrize("outcomes", mostly_slow({", ".join(c): (c,) for c in COMBINATIONS}, 4))
def test_every_combination_of_retries_and_fallbacks_walks_once_and_says_what_happened(
    chat_server: ScriptedServer, settings: MakeContext, outcomes: tuple[str, str, str]
) -> None:
    malformed = {role: HOW_OFTEN[outcome] for role, outcome in zip(ROLES, outcomes, strict=True)}
    chat_server.script(scripts_of(malformed))

    done = run(settings())

    calls = {role: min(times + 1, 3) for role, times in malformed.items()}
    fallen = [role for role, times in malformed.items() if times == FOR_EVER]
    assert {role: len(chat_server.requests_of(role)) for role in ROLES} == calls
    assert done.visits == Counter(
        {
            "encode_question": 1,
            "retrieve_facts": 1,
            "retrieve_passages": 1,
            "seed_graph": 1,
            "walk_graph": 1,
            **{NODES[role]: n for role, n in calls.items()},
            **{FALLBACKS[role]: 1 for role in fallen},
        }
    )
    refused = {role: min(times, 3) for role, times in malformed.items() if times}
    assert done.error_kinds == Counter(
        {
            **{(NODES[role], "MalformedReply"): n for role, n in refused.items()},
            **{(FALLBACKS[role], "Fallback"): 1 for role in fallen},
        }
    )
    assert done.result["fact_outcome"] == ("failed" if "fact filter" in fallen else "kept")
    assert (done.result["relation_factors"] is None) == ("manager" in fallen)
    assert (done.result["answer"] == ANSWERED) == ("answerer" not in fallen)
    assert done.result["ranked_by"] == "walk"
    assert done.result["citations"]


def test_each_malformed_reply_is_recorded_with_its_attempt_reason_and_raw_text(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script({role: [MALFORMED] for role in ROLES})
    records = run(settings()).result["errors"]
    for node in NODES.values():
        refusals = [record for record in records if record["node"] == node]
        assert [record["attempt"] for record in refusals] == [1, 2, 3]
        assert {record["raw"] for record in refusals} == {MALFORMED}
        assert all(record["message"] for record in refusals)
    for node in FALLBACKS.values():
        (fallback,) = [record for record in records if record["node"] == node]
        assert fallback["kind"] == "Fallback"
        assert fallback["attempt"] == 3
        assert "stayed malformed" in fallback["message"]
        assert fallback["raw"] == ""
    assert all(record.keys() == {"node", "kind", "message", "attempt", "raw"} for record in records)


@pytest.mark.parametrize("retries", mostly_slow([2, 0, 1, 5], 2))
def test_max_json_retries_is_how_often_each_role_is_asked_again(
    chat_server: ScriptedServer, settings: MakeContext, retries: int
) -> None:
    chat_server.script({role: [MALFORMED] for role in ROLES})
    done = run(settings(max_json_retries=retries))
    assert [len(chat_server.requests_of(role)) for role in ROLES] == [retries + 1] * 3
    assert [done.visits[FALLBACKS[role]] for role in ROLES] == [1, 1, 1]
    assert done.visits["seed_graph"] == done.visits["walk_graph"] == 1


def test_the_fallback_of_the_filter_keeps_the_best_candidates(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(scripts_of({"fact filter": FOR_EVER}))
    facts = run(settings(max_facts=2)).result["facts"]
    scores = [hit["score"] for hit in facts]
    assert len(facts) > 2
    assert scores == sorted(scores, reverse=True)
    assert [hit["kept"] for hit in facts] == [True, True] + [False] * (len(facts) - 2)


def test_the_fallback_of_the_manager_walks_as_without_a_manager(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(scripts_of({"manager": FOR_EVER}))
    fallen = run(settings())
    chat_server.script(well_behaved())
    unweighed = run(settings(weigh_relations=False))
    assert "weigh_relations" not in unweighed.visits
    assert fallen.result["passages"] == unweighed.result["passages"]


def test_the_fallback_of_the_answerer_quotes_the_evidence_that_its_offline_twin_finds(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(scripts_of({"answerer": FOR_EVER}))
    result = run(settings()).result
    assert result["answer_kind"] == "evidence"
    assert result["answer"] == run(settings(model="offline")).result["answer"]
    passages = {hit["id"]: hit["text"] for hit in result["passages"]}
    for citation in result["citations"]:
        quoted = passages[citation["passage_id"]][citation["start"] : citation["end"]]
        assert quoted in result["plain_answer"]
        assert result["passages"][citation["number"] - 1]["id"] == citation["passage_id"]


@pytest.mark.parametrize("role", ROLES)
def test_the_reason_alone_is_fed_back_as_quoted_material(
    chat_server: ScriptedServer, settings: MakeContext, role: str
) -> None:
    chat_server.script(scripts_of({role: 2}))
    result = run(settings()).result
    first, second, third = chat_server.requests_of(role)
    reasons = [record["message"] for record in result["errors"]]
    assert len(first.body["messages"]) == 2
    for request, reason in ((second, reasons[0]), (third, reasons[1])):
        assert request.body["messages"][:2] == first.body["messages"]
        assert len(request.body["messages"]) == 3
        assert fed_back(request.body) == reason
        assert "Marn" not in request.text_of(2)


def test_a_refusal_is_fed_back_to_its_own_role_alone(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script(scripts_of({"fact filter": 1}))
    run(settings())
    assert [len(request.body["messages"]) for request in chat_server.requests_of("fact filter")] == [2, 3]
    assert [len(request.body["messages"]) for request in chat_server.requests_of("manager")] == [2]
    assert [len(request.body["messages"]) for request in chat_server.requests_of("answerer")] == [2]


def test_the_context_names_the_model_and_the_temperature_of_each_role(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    result = run(settings(model="some-model", temperature=0.25, manager_temperature=0.75)).result
    sent = {role: chat_server.requests_of(role)[0].body for role in ROLES}
    assert {body["model"] for body in sent.values()} == {"some-model"}
    assert {role: body["temperature"] for role, body in sent.items()} == {
        "fact filter": 0.25,
        "manager": 0.75,
        "answerer": 0.25,
    }
    assert result["models"]["chat"] == "some-model"


def test_the_filter_and_the_manager_are_asked_side_by_side(chat_server: ScriptedServer, settings: MakeContext) -> None:
    both_asked = threading.Barrier(2)

    def when_both_are_asked(role: str) -> Script:
        def reply(body: Mapping[str, Any]) -> ReplyLike:
            try:
                both_asked.wait(5)
            except threading.BrokenBarrierError:
                return Reply("asked alone", status=400)
            return PROPER[role](body)

        return reply

    roles = ("fact filter", "manager")
    chat_server.script({**well_behaved(), **{role: when_both_are_asked(role) for role in roles}})
    assert run(settings()).result["answer"] == ANSWERED
    assert [request.role for request in chat_server.requests][2:] == ["answerer"]


def test_hipporag2_on_a_chat_model_asks_the_filter_and_no_manager(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    done = run(settings(mode="hipporag2"))
    assert len(done.kept) == 1
    assert Counter(request.role for request in chat_server.requests) == {"fact filter": 1, "answerer": 1}
    assert done.result["relation_factors"] is None


@pytest.mark.parametrize("mode", ["dense", "sparse", "hybrid"])
def test_ranking_by_similarity_asks_the_answerer_alone(
    chat_server: ScriptedServer, settings: MakeContext, mode: str
) -> None:
    chat_server.script(well_behaved())
    run(settings(mode=mode))
    assert [request.role for request in chat_server.requests] == ["answerer"]


def test_a_run_that_wants_no_filter_keeps_every_candidate_and_asks_none(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    done = run(settings(filter_facts=False, fact_candidates=6))
    assert len(done.kept) == len(done.result["facts"]) == 6
    assert not chat_server.requests_of("fact filter")


def test_the_offline_agents_can_be_chosen_although_a_server_is_configured(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    result = run(settings(model="offline")).result
    assert chat_server.requests == []
    assert result["models"]["chat"] == "offline"


def test_the_answerer_sees_the_best_passages_numbered_from_one(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    done = run(settings(answer_passages=3))
    shown = shown_to_model(only(chat_server.requests_of("answerer")).body)
    best = done.result["passages"][:3]
    assert shown["question"] == QUESTION
    assert shown["passages"] == [
        {"number": n, "title": hit["title"], "text": hit["text"]} for n, hit in enumerate(best, start=1)
    ]


def test_the_filter_sees_the_candidates_without_type_or_score(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    facts = run(settings()).result["facts"]
    shown = shown_to_model(only(chat_server.requests_of("fact filter")).body)
    numbered = [[n, f["subject"], f["predicate"], f["object"]] for n, f in enumerate(facts, start=1)]
    assert shown == {"question": QUESTION, "max_facts": 4, "facts": numbered}


def test_what_the_context_window_leaves_out_of_a_prompt_stands_in_the_errors_of_its_node(
    chat_server: ScriptedServer, settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    chat_server.tells = {"/v1/models": json.dumps({"data": [{"id": "of a small window", "max_model_len": 1_450}]})}
    result = run(settings(model="of a small window"), QUESTION).result
    (told,) = [error for error in result["errors"] if error["node"] == "write_answer"]
    shown = shown_to_model(only(chat_server.requests_of("answerer")).body)["passages"]
    left_out = len(result["written_from"]) - len(shown)
    assert 0 < left_out < 5
    assert (told["kind"], told["message"]) == (
        "LeftOut",
        f"The answerer was not shown {left_out} of 5 passages: no more fits into the context window of 1,450 tokens",
    )
    assert result["answer"] == ANSWERED


def test_no_key_reaches_the_result(
    chat_server: ScriptedServer, settings: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-42")
    chat_server.script(scripts_of({"manager": FOR_EVER}))
    result = run(settings()).result
    assert chat_server.requests[0].headers["authorization"] == "Bearer sk-very-secret-42"
    assert "very-secret" not in json.dumps(result)


def only(requests: list[RecordedRequest]) -> RecordedRequest:
    (request,) = requests
    return request
