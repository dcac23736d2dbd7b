"""The searches of follow-ups: as the question was searched for, in the same generation of the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.offline.extractor import OfflineExtractor
from graph.retrieve.modes import Mode
from tests.builders import HashEmbedder
from tests.scripted_server import ScriptedServer
from tests.workflows.hashed_world import hashed_world
from tests.workflows.ragenta_world import (
    BUILDER_ANSWERED,
    FOLLOW_UP,
    TWO_THINGS,
    MakeContext,
    chat_requests,
    checks,
    in_turn,
    quick_ragenta,
    ragenta_on_a_thread,
    well_behaved,
)
from tests.workflows.small_world import MALFORMED, PASSAGES, run, shown_to_model, write_lines
from workflows.indexing import index_sources
from workflows.runtime.resources import close_indexes


def test_a_walk_searches_for_follow_ups_and_asks_its_agents_once_each(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    done = run(ragenta_settings(mode=Mode.MARA, top_k=1), TWO_THINGS, quick_ragenta)
    assert done.result["answer"] == f"{BUILDER_ANSWERED} Ada Brandt was born in Lisk [2]."
    for role in ("fact filter", "manager"):
        asked = [shown_to_model(request.body)["question"] for request in chat_server.requests_of(role)]
        assert asked == [TWO_THINGS, FOLLOW_UP]
    assert done.result["usage"]["calls"] == chat_requests(chat_server) == 12
    assert done.result["question"] == TWO_THINGS
    assert {fact["subject"] for fact in done.result["facts"] if fact["kept"]} == {"Tarn Dam"}, "those of the question"


def test_in_the_search_of_a_follow_up_malformed_replies_fall_back_at_once_and_are_told(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    chat_server.script({**well_behaved(), "fact filter": in_turn([MALFORMED], '{"facts": []}'), "manager": [MALFORMED]})
    result = run(ragenta_settings(mode=Mode.MARA, top_k=1, max_json_retries=1), TWO_THINGS, quick_ragenta).result
    assert len(chat_server.requests_of("fact filter")) == 2
    assert len(chat_server.requests_of("manager")) == 3
    nodes = [error["node"] for error in result["errors"]]
    assert sorted(nodes[:3]) == ["neutral_relations", "weigh_relations", "weigh_relations"]
    assert sorted(nodes[3:]) == ["filter_facts", "keep_top_facts", "neutral_relations", "weigh_relations"]
    assert result["answer"].startswith(BUILDER_ANSWERED)
    assert result["usage"]["calls"] == chat_requests(chat_server)


@pytest.fixture
def own_world(tmp_path: Path, embedder: HashEmbedder) -> Path:
    """The small world in a workspace of the test's own."""
    return hashed_world(tmp_path)


def index_anew(workspace: Path) -> None:
    """Publish another generation, in which a passage more is about the birthplace."""
    newer = workspace.parent / "newer.jsonl"
    write_lines(newer, [{"id": "lisk", "title": "Lisk", "text": "Lisk is where Ada Brandt was born."}])
    index_sources([newer], workspace, extractor=OfflineExtractor())


def all_of(workspace: Path) -> dict[str, Any]:
    """Settings with which the hashed vectors do not matter: every passage is found."""
    return {"workspace": str(workspace), "top_k": len(PASSAGES), "follow_up_passages": len(PASSAGES) + 1}


def test_in_a_newer_generation_a_follow_up_finds_nothing_and_says_so(
    own_world: Path, chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    checked: list[str] = []

    def checks_and_indexes(body: Mapping[str, Any]) -> str:
        if not checked:
            index_anew(own_world)
        checked.append(checks(body))
        return checked[-1]

    chat_server.script(well_behaved(claim_judge=checks_and_indexes))
    done = run(ragenta_settings(**all_of(own_world)), TWO_THINGS, quick_ragenta)
    result = done.result
    assert done.error_kinds == {("search_follow_up", "IndexedAnew"): 1}
    assert result["plain_answer"] == "The Tarn Dam was built by Ada Brandt."
    assert (result["follow_ups"][0]["outcome"], len(result["passages"])) == ("nothing new", len(PASSAGES))
    assert "lisk" not in {hit["id"] for hit in result["passages"]}
    assert len(result["written_from"]) == 1


@pytest.mark.slow
def test_nor_does_one_that_is_gone_on_with_from_a_thread(
    own_world: Path, chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    chat_server.script(well_behaved())
    graph, thread = ragenta_on_a_thread()
    settings = ragenta_settings(**all_of(own_world))
    assert graph.invoke({"question": TWO_THINGS}, thread, context=settings)["errors"] == []
    at = next(past for past in graph.get_state_history(thread) if past.next == ("search_follow_up",))
    index_anew(own_world)
    close_indexes()
    again = graph.invoke(None, at.config, context=settings)
    assert [(error["node"], error["kind"]) for error in again["errors"]] == [("search_follow_up", "IndexedAnew")]
    assert again["plain_answer"] == "The Tarn Dam was built by Ada Brandt."


def test_a_fork_asks_questions_of_ones_own_in_a_round_that_is_not_done_yet(
    chat_server: ScriptedServer, ragenta_settings: MakeContext
) -> None:
    graph, thread = ragenta_on_a_thread()
    chat_server.script(well_behaved(claim_judge=lambda body: checks(body, follow_up="")))
    graph.invoke({"question": TWO_THINGS}, thread, context=ragenta_settings())
    at = next(past for past in graph.get_state_history(thread) if past.next == ("plan_follow_ups",))
    for round_, outcome in ((1, "found"), (2, "not asked")):
        mine = {"question": FOLLOW_UP, "component": "?", "round": round_, "outcome": "not asked", "passages": []}
        fork = graph.update_state(at.config, {"follow_ups": [mine]}, as_node="check_claims")
        result = graph.invoke(None, fork, context=ragenta_settings())
        assert [each["outcome"] for each in result["follow_ups"]] == [outcome]
