"""What rounds of follow-ups may not do: lose an answer that held, or pay for a question twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.scripted_server import ReplyLike, ScriptedServer
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    SUPPORTS,
    THE_BIRTHPLACE,
    THE_BUILDER,
    TWO_THINGS,
    YES,
    MakeContext,
    assessment,
    checks,
    in_turn,
    quick_ragenta,
    well_behaved,
)
from tests.workflows.small_world import MALFORMED, run, shown_to_model

NOTHING_HOLDS = assessment(
    [(THE_BUILDER, "NOT ANSWERED", [1]), (THE_BIRTHPLACE, "NOT ANSWERED", [2])], [(1, []), (2, [])]
)
COMPLETED = f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [3]."
OTHER_WORDS = "Who was born at Lisk?"


def test_an_answer_that_held_is_not_lost_to_its_completion(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    chat_server.script(well_behaved(claim_judge=lambda body: NOTHING_HOLDS if _is_completed(body) else checks(body)))
    found = run(ragenta_settings(top_k=2), TWO_THINGS, quick_ragenta)
    assert found.result["answer"] == BUILDER_ANSWERED
    assert not found.result["refused"]
    assert found.result["coverage"] == "PARTIALLY ANSWERED"
    assert [claim["verdict"] for claim in found.result["claims"]] == ["supported"]
    assert [mark["number"] for mark in found.result["citations"]] == found.result["written_from"] == [1]
    assert found.error_kinds == {("plan_follow_ups", "EarlierAnswer"): 1}


def test_nor_to_a_claim_judge_that_fails_at_it(chat_server: ScriptedServer, ragenta_settings: MakeContext) -> None:
    paraphrased = "Une ingénieure le fit [1]. Elle naquit ailleurs [3]."
    chat_server.script(
        well_behaved(
            final_predictor=lambda body: paraphrased if "draft" in shown_to_model(body) else BUILDER_ANSWERED,
            claim_judge=lambda body: MALFORMED if _is_completed(body) else checks(body),
        )
    )
    found = run(ragenta_settings(top_k=2, max_json_retries=0), TWO_THINGS, quick_ragenta)
    assert found.result["answer"] == BUILDER_ANSWERED
    assert found.result["claims_checked_by"] == "model"
    assert ("plan_follow_ups", "EarlierAnswer") in found.error_kinds


def test_a_refusal_has_nothing_before_it_to_come_back_to(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    nothing = assessment([(TWO_THINGS, "NOT ANSWERED", [])], [], [(1, FOLLOW_UP)])
    chat_server.script(
        well_behaved(final_predictor=["NOT IN THE PASSAGES"], claim_judge=in_turn([nothing], nothing, nothing))
    )
    found = run(ragenta_settings(top_k=2), TWO_THINGS, quick_ragenta)
    assert found.result["refused"]
    assert found.error_kinds == {}


@pytest.mark.parametrize("repeated", [FOLLOW_UP, FOLLOW_UP.upper()])
def test_a_question_is_asked_in_one_round_only(
    chat_server: ScriptedServer, ragenta_settings: MakeContext, repeated: str
) -> None:
    again = assessment(
        [(THE_BUILDER, "FULLY ANSWERED", [1]), (THE_BIRTHPLACE, "NOT ANSWERED", [2])],
        [(1, [1]), (2, [3])],
        [(2, repeated), (2, OTHER_WORDS)],
    )

    def judged(body: Mapping[str, Any]) -> ReplyLike:
        shown = shown_to_model(body)
        return YES if shown["title"] in (SUPPORTS.get(shown["question"]), "Duke Orlo") else "No 0.9"

    chat_server.script(
        well_behaved(judge=judged, claim_judge=lambda body: again if _is_completed(body) else checks(body))
    )
    result = run(ragenta_settings(top_k=2, follow_up_rounds=2), TWO_THINGS, quick_ragenta).result
    outcomes = {(each["question"], each["round"]): each["outcome"] for each in result["follow_ups"]}
    assert outcomes[FOLLOW_UP, 1] == "found"
    assert outcomes[repeated, 2] == "not asked"
    assert outcomes[OTHER_WORDS, 2] != "not asked"


def _is_completed(body: Mapping[str, Any]) -> bool:
    """Whether a claim judge is shown the answer of the round of follow-ups."""
    return len(shown_to_model(body)["claims"]) == 2


def test_components_in_another_order_are_still_the_same(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    completed = assessment(
        [(THE_BIRTHPLACE, "FULLY ANSWERED", [2]), (THE_BUILDER, "FULLY ANSWERED", [1])], [(1, [1]), (2, [3])]
    )
    chat_server.script(well_behaved(claim_judge=lambda body: completed if _is_completed(body) else checks(body)))
    found = run(ragenta_settings(top_k=2), TWO_THINGS, quick_ragenta)
    assert found.result["coverage"] == "FULLY ANSWERED"
    assert found.error_kinds == {}


def test_a_completion_may_drop_a_citation_that_supports_nothing(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    twice = BUILDER_ANSWERED.replace("[1]", "[1, 2]")
    chat_server.script(
        well_behaved(
            judge=[YES],
            final_predictor=lambda body: COMPLETED if "draft" in shown_to_model(body) else twice,
        )
    )
    found = run(ragenta_settings(top_k=2), TWO_THINGS, quick_ragenta)
    assert found.result["answer"] == COMPLETED
    assert ("write_answer", "MalformedReply") not in found.error_kinds
