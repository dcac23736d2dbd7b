"""The walk as a tool: its schema, its result, and that the node `walk_graph` calls it."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import ValidationError

from graph.errors import BadInput, WorkspaceMissing
from graph.schema import entity_id
from tests.workflows.small_world import QUESTION
from workflows.answering import ask
from workflows.context import QUESTION_LIMIT, Context
from workflows.for_agents import walk_tool

MakeContext = Callable[..., Context]

VELM = [{"id": "Velm", "weight": 1}]


def as_asked(result: dict[str, Any]) -> dict[str, Any]:
    """The tool's arguments of an answered question."""
    return {
        "entity_seeds": result["seeds"]["entities"],
        "passage_seeds": result["seeds"]["passages"],
        "relation_weights": result["relation_factors"],
    }


def test_the_tool_ranks_as_the_run_did(settings: MakeContext) -> None:
    context = settings(walk={"coverage": 0.0})
    result: Any = ask(QUESTION, context)
    walked = walk_tool(context).invoke(as_asked(result))
    assert walked["passages"] == [
        {key: hit[key] for key in ("id", "title", "score", "text")} for hit in result["passages"]
    ]
    assert {key: walked[key] for key in ("engine", "error", "arcs", "damping")} == {
        key: value for key, value in result["walk"].items() if key != "convergence"
    }
    assert (walked["unknown_seeds"], walked["unknown_relations"]) == (0, [])


def test_the_question_stands_in_for_passage_seeds(settings: MakeContext) -> None:
    for mode, weighed in (("mara", False), ("mara-matrix", True)):
        context = settings(mode=mode)
        result: Any = ask(QUESTION, context)
        arguments = {**as_asked(result), "passage_seeds": [], "question": QUESTION}
        walked = walk_tool(context).invoke(
            {**arguments, "passage_weight": result["passage_weight"]} if weighed else arguments
        )
        assert [hit["score"] for hit in walked["passages"]] == [hit["score"] for hit in result["passages"]], mode


def test_an_entity_is_named_by_its_id_or_its_name(settings: MakeContext) -> None:
    walk = walk_tool(settings())
    by_name = walk.invoke({"entity_seeds": [{"id": " vELM", "weight": 2}], "k": 2})
    assert by_name == walk.invoke({"entity_seeds": [{"id": entity_id("Velm"), "weight": 1}], "k": 2})
    assert len(by_name["passages"]) == 2
    assert by_name["passages"][0]["text"]


def test_seeds_that_are_unknown_or_hidden_count_alike_and_lead_nowhere(settings: MakeContext) -> None:
    for context, name in ((settings(), "No such name"), (settings(where={"year": 1}), "Velm")):
        walked = walk_tool(context).invoke(
            {"entity_seeds": [{"id": name, "weight": 1}], "passage_seeds": [{"id": "p-none", "weight": 1}]}
        )
        assert (walked["passages"], walked["engine"], walked["unknown_seeds"]) == ([], None, 2)


def call(arguments: dict[str, Any], context: Context) -> Any:
    """Return the message with which LangGraph's own tool node replies to a model that calls the tool."""
    walk = walk_tool(context)
    asked = {"name": walk.name, "args": arguments, "id": "1", "type": "tool_call"}
    flow = StateGraph(MessagesState).add_node("tools", ToolNode([walk])).set_entry_point("tools").compile()
    return flow.invoke({"messages": [AIMessage("", tool_calls=[asked])]})["messages"][-1]


def test_wrong_arguments_are_a_message_to_the_model_and_end_no_agent(settings: MakeContext) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        *(({"damping": damping}, "damping") for damping in (1.0, -0.1, math.nan)),
        ({"entity_seeds": [{"id": "Velm", "weight": 1.7e308}, {"id": "Marn", "weight": 1.7e308}]}, "no seed"),
        ({"passage_weight": 0.1}, "passage_weight needs a question"),
        ({"question": "?" * (QUESTION_LIMIT + 1)}, "question"),
        ({"question": QUESTION, "passage_seeds": [{"id": "velm", "weight": 1}]}, "exclude each other"),
        ({"relation_weights": {"entity_entity": {"PRIMARY": 1}, "entity_passage": {}}}, "PRIMARY"),
    ]
    for arguments, said in cases:
        message = call({"entity_seeds": VELM, **arguments}, settings())
        assert (message.status, said in message.content) == ("error", True), arguments
    with pytest.raises(ValidationError, match="where"):
        walk_tool(settings()).invoke({"where": {"year": 1}})


def test_faults_that_no_model_can_mend_are_raised(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing):
        call({"entity_seeds": VELM}, Context(workspace=str(tmp_path / "none")))
    with pytest.raises(BadInput, match="Mode dense does not walk"):
        walk_tool(Context(workspace=str(tmp_path), mode="dense"))
