"""The replies of each role's model: which replies are taken, which are asked for again, and what orders cannot do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.scripted_server import Reply, ReplyLike, ScriptedServer
from tests.workflows.scripted import Scripted
from tests.workflows.small_world import (
    ANSWERED,
    BETA,
    MALFORMED,
    MANAGED,
    ORDERS,
    Run,
    check_orders_are_quoted,
    run,
    well_behaved,
)

Ask = Callable[[str, ReplyLike, ReplyLike], Run]

ABOUT_THE_TOWN = "When was Marn founded?"
ABOUT_THE_BRIDGE = "When was the Sund Bridge rebuilt?"
FOUNDED_IN = ("Marn", "founded in", "1203")
PASSAGE_SHARES = {"PRIMARY": 0.6, "SECONDARY": 0.3, "PERIPHERAL": 0.1}


@pytest.fixture
def ask(in_mara: Scripted) -> Ask:
    """Run once; one role gives these two replies, the others their proper ones."""

    def once(role: str, first: ReplyLike, then: ReplyLike) -> Run:
        in_mara.server.script({**well_behaved(), role: [first, then]})
        return run(in_mara.settings(), ABOUT_THE_TOWN)

    return once


def choice(*facts: int) -> str:
    return json.dumps({"facts": facts})


def managed(**changes: Any) -> str:
    return json.dumps({"entity_entity": BETA, "entity_passage": PASSAGE_SHARES, "passage_weight": 0.05, **changes})


REFUSALS: list[tuple[str, ReplyLike, str]] = [
    ("fact filter", MALFORMED, "not valid JSON, or is cut"),
    ("fact filter", Reply(choice(1), finish_reason="length"), "cut at the token limit"),
    ("fact filter", choice(0, 99), "they are numbered 1 to 10"),
    ("manager", MANAGED.replace("0.6", '"high"'), "entity_entity.TEMPORAL"),
    ("manager", json.dumps({"entity_entity": BETA}), "entity_passage"),
    ("answerer", "It was founded in 1203.", "cites no passage"),
    ("answerer", "It was founded in 1203 [9].", "cites 9, but the passages are numbered 1, 2, 3, 4, 5"),
]
"""Replies that a role's reader refuses, and the reason; the tests of the agents have more."""

PROPER: Mapping[str, tuple[str, str]] = {
    "fact filter": ("filter_facts", choice(1)),
    "manager": ("weigh_relations", MANAGED),
    "answerer": ("write_answer", ANSWERED),
}
"""The node and a proper reply of each role."""


def test_a_malformed_reply_is_recorded_with_its_reason_and_asked_for_again(
    chat_server: ScriptedServer, ask: Ask
) -> None:
    for role, reply, reason in REFUSALS:
        node, proper = PROPER[role]
        done = ask(role, reply, proper)
        said = reply.text if isinstance(reply, Reply) else reply
        (record,) = done.result["errors"]
        assert (record["node"], record["kind"], record["attempt"], record["raw"]) == (node, "MalformedReply", 1, said)
        assert reason in record["message"]
        assert len(chat_server.requests_of(role)) == 2
        assert FOUNDED_IN in done.kept
        assert done.result["relation_factors"]["entity_entity"] == pytest.approx(BETA)
        assert done.result["answer"] == ANSWERED


def test_a_citation_that_leads_nowhere_is_dropped_and_told_and_the_answer_kept(
    chat_server: ScriptedServer, ask: Ask
) -> None:
    result = ask("answerer", "It was founded in 1203 [1, 9], by Duke Orlo [8].", MALFORMED).result
    assert result["answer"] == "It was founded in 1203 [1], by Duke Orlo."
    assert [mark["number"] for mark in result["citations"]] == [1]
    (note,) = result["errors"]
    assert (note["node"], note["kind"]) == ("write_answer", "DroppedCitations")
    assert "cited 9, 8, which no passage is" in note["message"]
    assert len(chat_server.requests_of("answerer")) == 1


def test_invented_facts_beside_true_ones_are_dropped_and_counted(chat_server: ScriptedServer, ask: Ask) -> None:
    done = ask("fact filter", choice(99, 1, 0), MALFORMED)
    (record,) = done.result["errors"]
    assert done.kept == [FOUNDED_IN]
    assert (record["node"], record["kind"], record["attempt"]) == ("filter_facts", "InventedFacts", 1)
    assert record["message"].startswith("2 items")
    assert len(chat_server.requests_of("fact filter")) == 1


def test_an_empty_choice_is_legal_and_not_the_same_as_a_failed_filter(chat_server: ScriptedServer, ask: Ask) -> None:
    done = ask("fact filter", choice(), MALFORMED)
    assert done.result["fact_outcome"] == "nothing relevant"
    assert done.kept == []
    assert done.result["errors"] == []
    assert len(chat_server.requests_of("fact filter")) == 1
    assert [seed["text"] for seed in done.result["seeds"]["entities"]] == ["Marn"]
    assert done.result["ranked_by"] == "walk"


def test_what_the_manager_leaves_out_or_overdoes_is_defaulted_and_named(chat_server: ScriptedServer, ask: Ask) -> None:
    lacking = managed(entity_entity={"TEMPORAL": 5, "SPATIAL": 0.5, "CULINARY": 1}, passage_weight=0.7)
    done = ask("manager", lacking, MALFORMED)
    (record,) = done.result["errors"]
    assert (record["node"], record["kind"]) == ("weigh_relations", "Defaulted")
    for name in ("CAUSALITY", "HIERARCHICAL", "ATTRIBUTION", "CULINARY", "passage_weight"):
        assert name in record["message"]
    assert "SPATIAL" not in record["message"]
    beta = done.result["relation_factors"]["entity_entity"]
    assert sum(beta.values()) == pytest.approx(1)
    assert min(beta.values()) == pytest.approx(0.02)
    assert beta["TEMPORAL"] == pytest.approx(2 * beta["SPATIAL"])
    assert len(chat_server.requests_of("manager")) == 1


def test_the_managers_passage_weight_scales_the_seeds_where_the_context_wants_it(in_mara: Scripted) -> None:
    fixed = in_mara.ask(
        ABOUT_THE_TOWN, {**well_behaved(), "manager": [managed(passage_weight=0.1)]}, passage_weight=0.4
    ).result
    scaled = run(
        in_mara.settings(
            walk={"passage_weight": 0.4, "adaptive_passage_weight": True},
        ),
        ABOUT_THE_TOWN,
    ).result
    assert (fixed["passage_weight"], scaled["passage_weight"]) == (0.4, pytest.approx(0.8))
    heaviest = [result["seeds"]["passages"][0]["weight"] for result in (fixed, scaled)]
    assert heaviest == [pytest.approx(0.4), pytest.approx(0.8)]


def test_orders_of_passages_facts_and_replies_stay_quoted_in_every_request(in_mara: Scripted) -> None:
    proper = {"fact filter": choice(), "manager": MANAGED, "answerer": "In 1874 [1]."}
    for failing in (False, True):
        replies = [ORDERS.replace("[1]", "[9]")] if failing else []
        scripts = {role: [*replies, reply] for role, reply in proper.items()}
        done = in_mara.ask(f"{ABOUT_THE_BRIDGE} {ORDERS}", scripts)
        assert done.result["answer"] == "In 1874 [1]."
        assert len(in_mara.server.requests) == (6 if failing else 3)
        for request in in_mara.server.requests:
            check_orders_are_quoted(request.body)


def test_facts_that_a_model_chose_start_the_walk_however_far_they_are_and_others_over_the_bar_alone(
    in_mara: Scripted,
) -> None:
    every = {**well_behaved(), "fact filter": [choice(*range(1, 11))]}
    chosen = in_mara.ask(ABOUT_THE_TOWN, every, max_facts=10, entity_seeds=10)
    unfiltered = in_mara.ask(ABOUT_THE_TOWN, filter_facts=False, entity_seeds=10)
    assert len(chosen.kept) == len(unfiltered.kept) == 10
    seeds = [{seed["text"] for seed in done.result["seeds"]["entities"]} for done in (unfiltered, chosen)]
    assert seeds[0] < seeds[1]
