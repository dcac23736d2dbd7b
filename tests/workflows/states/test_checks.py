"""A state that a person edited is checked before a node reads it: refused by name, or gone on from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graph.errors import BadInput
from graph.retrieve.modes import Mode
from tests.trace_server import TraceServer
from tests.workflows.small_world import QUESTION, on_a_thread
from workflows.context import Context

MakeContext = Callable[..., Context]

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


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ({"seeds": "junk"}, "seeds"),
        ({"seeds": None}, "seeds"),
        ({"seeds": NAMELESS}, "seeds.entities.0.text is missing"),
        ({"seeds": {"entities": []}}, "seeds.passages is missing"),
        ({"relation_factors": "x"}, "relation_factors"),
        ({"relation_factors": {"entity_entity": {}}}, "entity_passage is missing"),
        ({"passage_weight": "heavy"}, "passage_weight"),
        ({"mode": "bogus"}, "mode is 'bogus'.*Give one of"),
        ({"mode": None}, "mode"),
    ],
)
def test_what_no_walk_can_start_from_is_refused_by_name(
    settings: MakeContext, edit: dict[str, Any], reason: str
) -> None:
    with pytest.raises(BadInput, match=reason):
        go_on(settings(), "walk_graph", edit)


def test_facts_are_to_say_whether_they_are_kept(settings: MakeContext) -> None:
    graph, before = asked(settings())
    facts = before["seed_graph"].values["facts"]
    unkept = [{key: value for key, value in fact.items() if key != "kept"} for fact in facts]
    fork = graph.update_state(before["seed_graph"].config, {"facts": unkept}, as_node="filter_facts")
    with pytest.raises(BadInput, match=r"facts\.0\.kept is missing.*and 5 more"):
        graph.invoke(None, fork, context=settings())


@pytest.mark.parametrize("refusal", ["again", {"reason": "r", "raw": ""}, {"final": "no"}])
def test_a_refusal_that_is_none_is_refused(settings: MakeContext, refusal: Any) -> None:
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


def test_a_good_edit_changes_the_walk_and_is_no_error(settings: MakeContext) -> None:
    seeds = {"entities": [], "passages": [{"id": "glass", "weight": 1}]}
    result = go_on(settings(), "walk_graph", {"seeds": seeds})
    assert result["passages"][0]["id"] == "glass"
    assert {(told["node"], told["kind"]) for told in result["errors"]} <= {("write_answer", "Evidence")}


@pytest.mark.parametrize("node", ["retrieve_passages", "filter_facts", "seed_graph", "walk_graph"])
@pytest.mark.parametrize("begun", [Mode.MARA, Mode.HIPPORAG2])
def test_a_run_that_walks_cannot_go_on_by_similarity(settings: MakeContext, begun: Mode, node: str) -> None:
    with pytest.raises(BadInput, match=f"began in mode {begun} and cannot go on in mode dense"):
        go_on(settings(mode=begun), node, {}, settings(mode="dense"))


def test_a_run_by_similarity_cannot_go_on_with_a_walk(settings: MakeContext) -> None:
    with pytest.raises(BadInput, match="began in mode dense and cannot go on in mode mara"):
        go_on(settings(mode="dense"), "retrieve_passages", {}, settings())


@pytest.mark.parametrize(("begun", "then"), [("mara", "hipporag2"), ("dense", "sparse")])
def test_modes_of_one_kind_may_take_over_from_each_other(settings: MakeContext, begun: str, then: str) -> None:
    result = go_on(settings(mode=begun), "retrieve_passages", {}, settings(mode=then))
    assert result["ranked_by"] == {"hipporag2": "walk", "sparse": "sparse"}[then]


def test_a_trace_changes_nothing_of_that(settings: MakeContext) -> None:
    with TraceServer() as server, server.tracing(), pytest.raises(BadInput, match="is missing"):
        go_on(settings(), "walk_graph", {"seeds": NAMELESS})


def test_a_beta_that_names_no_relation_is_walked_with_and_told(settings: MakeContext) -> None:
    factors: dict[str, Any] = {"entity_entity": {}, "entity_passage": {}}
    with TraceServer() as server, server.tracing():
        result = go_on(settings(), "walk_graph", {"relation_factors": factors})
    assert [told["kind"] for told in result["errors"]] == ["UnknownRelation"]
