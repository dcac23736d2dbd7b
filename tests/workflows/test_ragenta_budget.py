"""The limit of follow-ups: so many calls of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count, product
from typing import Any

from tests.scripted_server import ReplyLike, Script, ScriptedServer
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    NO,
    TWO_THINGS,
    YES,
    MakeContext,
    assessment,
    chat_requests,
    checks,
    in_turn,
    quick_ragenta,
    well_behaved,
)
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import run, shown_to_model

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


def spent_on_follow_ups(server: ScriptedServer) -> int:
    """Return how many requests came after the one that the first answer was checked with."""
    roles = [request.role for request in server.requests]
    return len(roles) - roles.index("claim judge") - 1


def test_follow_ups_never_take_more_calls_than_they_may(in_ragenta: Scripted) -> None:
    for mode, calls in product(LEAST, (3, 7, 13)):
        scripts = well_behaved(claim_judge=lacking(QUESTIONS), judge=generous)
        settings = {"mode": mode, "top_k": 1, "follow_up_calls": calls, "follow_up_passages": 3, "follow_up_rounds": 3}
        result = in_ragenta.ask(TWO_THINGS, scripts, **settings).result
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


def test_offline_follow_ups_need_no_calls(ragenta_settings: MakeContext) -> None:
    context = ragenta_settings(model="offline", top_k=1, follow_up_calls=0)
    result = run(context, "Who built the Tarn Dam, and when was Marn founded?", quick_ragenta).result
    assert [each["outcome"] for each in result["follow_ups"]] == ["found"]
    assert "Ada Brandt" in result["plain_answer"]
    assert "1203" in result["plain_answer"]
    assert (result["coverage"], result["answer_kind"]) == ("EVIDENCE, NOT JUDGED", "evidence")
    assert {(error["node"], error["kind"]) for error in result["errors"]} == {("write_answer", "Evidence")}
