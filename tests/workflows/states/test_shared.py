"""The state: plain values that start afresh with each run of a thread, forks of its history, and checked edits."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agents.chat.usage import Usage
from graph.errors import BadInput
from graph.retrieve.modes import Mode
from graph.schema import entity_id
from tests.trace_server import TraceServer
from tests.workflows.scripted import MakeContext, Scripted
from tests.workflows.small_world import ANSWERED, MALFORMED, QUESTION, on_a_thread, run, well_behaved
from workflows.context import Context
from workflows.states.records import (
    FIRST_NODE,
    NO_USAGE,
    add_errors,
    add_timings,
    add_usage,
    error_of,
    usage_of,
    usage_record,
)

OTHER_QUESTION = "What caused the flood of 1871?"

COUNTS = st.integers(0, 10**9)
NODE_NAMES = st.sampled_from(["filter_facts", "walk_graph", "write_answer"])
MILLISECONDS = st.dictionaries(NODE_NAMES, st.floats(0, 1e6))


def without_timings(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != "timings_ms"}


def test_errors_append_and_none_starts_afresh() -> None:
    first, second = error_of("a", "Kind", "one", 1), error_of("b", "Kind", "two", 2)
    errors, timings = [first], {"a": 1.0}
    assert add_errors(errors, [second]) == [first, second]
    assert add_errors([first, second], None) == []
    add_timings(timings, {"a": 1.0})
    assert (errors, timings) == ([first], {"a": 1.0}), "what is added to stays as it is"


@given(MILLISECONDS, MILLISECONDS)
def test_timings_of_one_node_add_up(present: dict[str, float], new: dict[str, float]) -> None:
    added = add_timings(present, new)
    assert added.keys() == present.keys() | new.keys()
    for node, spent in added.items():
        assert spent == pytest.approx(present.get(node, 0) + new.get(node, 0), abs=1e-3)


@given(MILLISECONDS)
def test_the_first_nodes_timing_starts_the_timings_afresh(present: dict[str, float]) -> None:
    assert add_timings(present, {FIRST_NODE: 1.5}) == {FIRST_NODE: 1.5}


@given(st.lists(st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS)))
def test_usages_add_up_in_any_order_and_none_starts_afresh(usages: list[Usage]) -> None:
    records = [usage_record(usage) for usage in usages]
    total = reduce(add_usage, records, NO_USAGE)
    assert usage_of(total) == sum(usages, Usage())
    assert reduce(add_usage, reversed(records), NO_USAGE) == total
    assert add_usage(total, None) == NO_USAGE
    of_a_subgraph: Any = {}
    assert add_usage(of_a_subgraph, total) == total


def test_nothing_of_a_threads_last_run_leaks_into_the_next(in_mara: Scripted) -> None:
    graph, thread = on_a_thread()
    in_mara.server.script({role: [MALFORMED] for role in ("fact filter", "manager", "answerer")})
    first = graph.invoke({"question": QUESTION}, thread, context=in_mara.settings())
    assert len(first["errors"]) == 12
    assert {"keep_top_facts", "neutral_relations", "quote_passages"} <= first["timings_ms"].keys()

    in_mara.server.script(well_behaved())
    second = graph.invoke({"question": OTHER_QUESTION}, thread, context=in_mara.settings())
    alone = run(in_mara.settings(), OTHER_QUESTION)
    assert without_timings(second) == without_timings(alone.result)
    assert second["timings_ms"].keys() == alone.visits.keys()
    values = graph.get_state(thread).values
    assert {values[key] for key in ("filter_attempts", "manager_attempts", "answer_attempts")} == {1}
    assert {values[key] for key in ("filter_refusal", "manager_refusal", "answer_refusal")} == {None}


def test_a_refused_question_does_not_shut_its_thread(settings: MakeContext) -> None:
    for bad in ({"question": ""}, {"question": " \n"}, {"question": 5}, {}):
        graph, thread = on_a_thread()
        with pytest.raises(ValueError, match="question"):
            graph.invoke(bad, thread, context=settings())
        assert graph.get_state(thread).next == (FIRST_NODE,), bad
        assert graph.invoke({"question": QUESTION}, thread, context=settings())["citations"], bad


def test_state_is_plain_json_after_every_node_holds_no_vector_and_survives_the_checkpoint_without_a_word(
    in_mara: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    graph, thread = on_a_thread()
    in_mara.server.script({**well_behaved(), "manager": [MALFORMED]})
    with caplog.at_level(logging.WARNING, logger="langgraph"):
        result = graph.invoke({"question": QUESTION}, thread, context=in_mara.settings())
        history = list(graph.get_state_history(thread))
    assert caplog.messages == []
    assert len(history) > 7
    strict = JsonPlusSerializer(allowed_msgpack_modules=[])
    for snapshot in history:
        assert json.loads(json.dumps(snapshot.values, allow_nan=False)) == snapshot.values
        assert strict.loads_typed(strict.dumps_typed(snapshot.values)) == snapshot.values
        assert longest_run_of_numbers(snapshot.values) <= 8
    assert {key: history[0].values[key] for key in result} == result


def test_a_fork_before_the_walk_walks_from_other_seeds_and_asks_no_filter_again(in_mara: Scripted) -> None:
    graph, thread = on_a_thread()
    in_mara.server.script({**well_behaved(), "answerer": [MALFORMED, ANSWERED]})
    first = graph.invoke({"question": QUESTION}, thread, context=in_mara.settings())
    (before,) = [state for state in graph.get_state_history(thread) if state.next == ("walk_graph",)]

    asked = len(in_mara.server.requests)
    fork = graph.update_state(before.config, {"seeds": {"entities": [], "passages": [{"id": "glass", "weight": 1.0}]}})
    forked = graph.invoke(None, fork, context=in_mara.settings())
    assert [request.role for request in in_mara.server.requests[asked:]] == ["answerer"]
    assert forked["passages"][0]["id"] == "glass"
    assert forked["passages"][0]["id"] != first["passages"][0]["id"]
    assert forked["errors"] == []

    again = graph.invoke(None, before.config, context=in_mara.settings())
    assert again["passages"] == first["passages"]


def test_an_edit_that_no_walk_can_use_is_refused_by_name(settings: MakeContext) -> None:
    edits: list[dict[str, Any]] = [
        {"relation_factors": {"entity_entity": {"TEMPORAL": -5}, "entity_passage": {}}},
        {"relation_factors": {"entity_entity": {"TEMPORAL": float("nan")}, "entity_passage": {}}},
        {"seeds": {"entities": [{"id": entity_id("Velm"), "text": "Velm", "weight": -1.0}], "passages": []}},
    ]
    graph, thread = on_a_thread()
    graph.invoke({"question": QUESTION}, thread, context=settings(model="offline"))
    (before,) = [state for state in graph.get_state_history(thread) if state.next == ("walk_graph",)]
    for edit in edits:
        fork = graph.update_state(before.config, edit)
        with pytest.raises(BadInput, match=next(iter(edit))):
            graph.invoke(None, fork, context=settings(model="offline"))


def longest_run_of_numbers(value: Any) -> int:
    """The length of the longest list of bare numbers in a JSON value: what a vector would look like."""
    if isinstance(value, dict):
        return max(map(longest_run_of_numbers, value.values()), default=0)
    if not isinstance(value, list):
        return 0
    if value and all(isinstance(item, int | float) for item in value):
        return len(value)
    return max(map(longest_run_of_numbers, value), default=0)


NAMELESS: dict[str, Any] = {"entities": [{"id": "x", "weight": 1.0}], "passages": []}
"""Seeds, of which one lacks its text."""


def asked(context: Context) -> tuple[Any, dict[str, Any]]:
    """A finished run on a thread, and its states by the node that was next."""
    graph, thread = on_a_thread()
    graph.invoke({"question": QUESTION}, thread, context=context)
    return graph, {node: state for state in graph.get_state_history(thread) for node in state.next}


def go_on(context: Context, node: str, edit: dict[str, Any], then: Context | None = None) -> dict[str, Any]:
    """Edit the state before a node, and go on from there."""
    graph, before = asked(context)
    fork = graph.update_state(before[node].config, edit) if edit else before[node].config
    result = graph.invoke(None, fork, context=then or context)
    assert isinstance(result, dict)
    return result


def test_what_no_walk_can_start_from_is_refused_by_name(settings: MakeContext) -> None:
    edits: list[tuple[dict[str, Any], str]] = [
        ({"seeds": "junk"}, "seeds"),
        ({"seeds": NAMELESS}, "seeds.entities.0.text is missing"),
        ({"seeds": {"entities": []}}, "seeds.passages is missing"),
        ({"relation_factors": {"entity_entity": {}}}, "entity_passage is missing"),
        ({"passage_weight": "heavy"}, "passage_weight"),
        ({"mode": "bogus"}, "mode is 'bogus'.*Give one of"),
    ]
    graph, before = asked(settings())
    for edit, reason in edits:
        fork = graph.update_state(before["walk_graph"].config, edit)
        with pytest.raises(BadInput, match=reason):
            graph.invoke(None, fork, context=settings())


def test_a_refusal_that_is_none_is_refused(settings: MakeContext) -> None:
    for refusal in ("again", {"reason": "r", "raw": ""}, {"final": "no"}):
        graph, before = asked(settings())
        with pytest.raises(BadInput, match="refusal"):
            graph.update_state(before["seed_graph"].config, {"filter_refusal": refusal}, as_node="filter_facts")


def test_seeds_that_the_workspace_does_not_hold_are_dropped_and_counted(settings: MakeContext) -> None:
    seeds = {
        "entities": [{"id": "entity-zzz", "text": "zz", "weight": 1.0}],
        "passages": [{"id": "lake-sund", "weight": 1.0}, {"id": "nowhere", "weight": 1.0}],
    }
    result = go_on(settings(), "walk_graph", {"seeds": seeds})
    assert result["ranked_by"] == "walk"
    (told,) = result["errors"]
    assert (told["node"], told["kind"], told["message"][:9]) == ("walk_graph", "UnknownEntries", "2 entries")


def test_a_run_that_walks_cannot_go_on_by_similarity(settings: MakeContext) -> None:
    for node in ("retrieve_passages", "filter_facts", "seed_graph", "walk_graph"):
        for begun in (Mode.MARA, Mode.HIPPORAG2):
            with pytest.raises(BadInput, match=f"began in mode {begun} and cannot go on in mode dense"):
                go_on(settings(mode=begun), node, {}, settings(mode="dense"))


def test_a_beta_that_names_no_relation_is_walked_with_and_told(settings: MakeContext) -> None:
    factors: dict[str, Any] = {"entity_entity": {}, "entity_passage": {}}
    with TraceServer() as server, server.tracing():
        result = go_on(settings(), "walk_graph", {"relation_factors": factors})
    assert [error["kind"] for error in result["errors"]] == ["UnknownRelation"]
