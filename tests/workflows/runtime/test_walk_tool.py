"""The walk as a tool: what an agent sees of it, what it returns, and that the node `walk_graph` calls it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import ValidationError

from graph.errors import BadInput, WorkspaceMissing
from graph.schema import ENTITY_RELATIONS, PASSAGE_RELATIONS, entity_id
from tests.workflows.small_world import QUESTION, quick_graph
from workflows.answering import ask
from workflows.context import QUESTION_LIMIT, Context, asking
from workflows.for_agents import walk_tool
from workflows.runtime.walk_tool import AgentArguments

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
    context = settings(coverage=0.0)
    result: Any = ask(QUESTION, context)
    found = walk_tool(context).invoke(as_asked(result))
    assert found["passages"] == [
        {key: hit[key] for key in ("id", "title", "score", "text")} for hit in result["passages"]
    ]
    assert {key: found[key] for key in ("engine", "error", "arcs", "damping")} == {
        key: value for key, value in result["walk"].items() if key != "convergence"
    }
    assert (found["unknown_seeds"], found["unknown_relations"]) == (0, [])


def test_where_every_passage_is_a_seed_the_question_weighs_them(settings: MakeContext) -> None:
    context = settings(mode="mara-matrix")
    result: Any = ask(QUESTION, context)
    found = walk_tool(context).invoke(
        {**as_asked(result), "passage_seeds": [], "question": QUESTION, "passage_weight": result["passage_weight"]}
    )
    assert [(hit["id"], hit["score"]) for hit in found["passages"]] == [
        (hit["id"], hit["score"]) for hit in result["passages"]
    ]


def test_the_question_stands_in_for_passage_seeds(settings: MakeContext) -> None:
    context = settings()
    result: Any = ask(QUESTION, context)
    found = walk_tool(context).invoke({**as_asked(result), "passage_seeds": [], "question": QUESTION})
    assert [hit["score"] for hit in found["passages"]] == [hit["score"] for hit in result["passages"]]


def test_an_entity_is_named_by_its_id_or_its_name(settings: MakeContext) -> None:
    walk = walk_tool(settings())
    by_name = walk.invoke({"entity_seeds": [{"id": " vELM", "weight": 2}], "k": 2})
    by_id = walk.invoke({"entity_seeds": [{"id": entity_id("Velm"), "weight": 1}], "k": 2})
    assert by_name == by_id
    assert len(by_name["passages"]) == 2
    assert by_name["passages"][0]["text"]


def test_an_agent_sees_a_schema_with_every_argument_described(settings: MakeContext) -> None:
    told = convert_to_openai_tool(walk_tool(settings()))["function"]
    assert told["name"] == "personalized_pagerank"
    given = told["parameters"]["properties"]
    assert given.keys() == {
        *("entity_seeds", "passage_seeds", "question", "passage_weight", "relation_weights", "damping", "k")
    }
    assert all(argument["description"] for argument in given.values())
    for relation in (*ENTITY_RELATIONS, *PASSAGE_RELATIONS):
        assert relation in given["relation_weights"]["description"]
    beta = given["relation_weights"]["anyOf"][0]["properties"]
    assert list(beta["entity_entity"]["properties"]) == list(ENTITY_RELATIONS)
    assert list(beta["entity_passage"]["properties"]) == list(PASSAGE_RELATIONS)
    assert not beta["entity_entity"]["additionalProperties"]
    question, damping = given["question"]["anyOf"][0], given["damping"]["anyOf"][0]
    assert (question["minLength"], question["maxLength"]) == (1, QUESTION_LIMIT)
    assert (damping["minimum"], damping["exclusiveMaximum"]) == (0, 1)


def test_a_tool_call_gets_its_result_as_json(settings: MakeContext) -> None:
    walk = walk_tool(settings())
    arguments = {"entity_seeds": [{"id": "Velm", "weight": 1}]}
    message = walk.invoke({"name": walk.name, "args": arguments, "id": "1", "type": "tool_call"})
    assert json.loads(message.content) == walk.invoke(arguments)


def test_seeds_that_are_unknown_or_hidden_count_alike_and_lead_nowhere(settings: MakeContext) -> None:
    hidden = walk_tool(settings(where={"year": 1}))
    open_ = walk_tool(settings())
    for walk, seeds in (
        (open_, [{"id": "Nobody", "weight": 1}]),
        (hidden, [{"id": "Velm", "weight": 1}]),
    ):
        found = walk.invoke({"entity_seeds": seeds, "passage_seeds": [{"id": "p-none", "weight": 1}]})
        assert (found["passages"], found["engine"], found["unknown_seeds"]) == ([], None, 2)


def test_what_β_does_not_name_is_told(settings: MakeContext) -> None:
    beta = {"entity_entity": {"TEMPORAL": 1.0}, "entity_passage": dict.fromkeys(PASSAGE_RELATIONS, 1 / 3)}
    found = walk_tool(settings()).invoke(
        {"entity_seeds": [{"id": "Velm", "weight": 1}], "relation_weights": beta, "damping": 0.3}
    )
    assert found["unknown_relations"] == [relation for relation in ENTITY_RELATIONS if relation != "TEMPORAL"]


def call(arguments: dict[str, Any], context: Context) -> Any:
    """Return what LangGraph's own tool node answers a model that calls the tool."""
    walk = walk_tool(context)
    asked = {"name": walk.name, "args": arguments, "id": "1", "type": "tool_call"}
    flow = StateGraph(MessagesState).add_node("tools", ToolNode([walk])).set_entry_point("tools").compile()
    return flow.invoke({"messages": [AIMessage("", tool_calls=[asked])]})["messages"][-1]


def beta(**shares: float) -> dict[str, Any]:
    return {"relation_weights": {"entity_entity": shares, "entity_passage": {}}}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"damping": 1.0}, "damping"),
        ({"damping": -0.1}, "damping"),
        ({"damping": math.nan}, "damping"),
        ({"entity_seeds": [{"id": "Velm", "weight": -1}]}, "weight"),
        ({"entity_seeds": [{"id": "Velm", "weight": math.inf}]}, "weight"),
        ({"entity_seeds": [{"id": "Velm", "weight": 1, "colour": "red"}]}, "colour"),
        ({"passage_seeds": [{"id": "velm", "weight": math.nan}]}, "weight"),
        ({"entity_seeds": [{"id": "Velm", "weight": 1.7e308}, {"id": "Marn", "weight": 1.7e308}]}, "no seed"),
        ({"question": QUESTION, "passage_weight": -1}, "passage_weight"),
        ({"question": QUESTION, "passage_weight": math.nan}, "passage_weight"),
        ({"passage_weight": 0.1}, "passage_weight needs a question"),
        ({"question": ""}, "question"),
        ({"question": " \n\u3000"}, "question"),
        ({"question": "?" * (QUESTION_LIMIT + 1)}, "question"),
        ({"question": QUESTION, "passage_seeds": [{"id": "velm", "weight": 1}]}, "exclude each other"),
        (beta(TEMPORAL=-1), "TEMPORAL"),
        (beta(TEMPORAL=math.nan), "TEMPORAL"),
        (beta(temporal=1), "temporal"),
        (beta(FOO=1), "FOO"),
        (beta(PRIMARY=1), "PRIMARY"),
        ({"relation_weights": {"entity_entity": {}}}, "entity_passage"),
        ({"k": 0}, "k"),
    ],
)
def test_what_a_model_gets_wrong_is_told_it_and_ends_no_agent(
    settings: MakeContext, arguments: dict[str, Any], said: str
) -> None:
    told = call({"entity_seeds": VELM, **arguments}, settings())
    assert (told.status, said in told.content) == ("error", True)


@pytest.mark.parametrize("k", [1, 10**30])
def test_any_number_of_passages_may_be_wanted(settings: MakeContext, k: int) -> None:
    told = call({"entity_seeds": VELM, "k": k}, settings())
    assert told.status == "success"
    assert 1 <= len(json.loads(told.content)["passages"]) <= k


def test_what_no_model_can_mend_is_raised(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing):
        call({"entity_seeds": VELM}, Context(workspace=str(tmp_path / "none")))


@pytest.mark.parametrize("arguments", [{"where": {"year": 1}}, {"k": 0}, {"entity_seeds": ["Velm"]}])
def test_arguments_that_the_schema_does_not_allow_are_refused(settings: MakeContext, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(arguments))):
        walk_tool(settings()).invoke(arguments)


def test_a_mode_without_a_walk_has_no_such_tool(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Mode dense does not walk"):
        walk_tool(Context(workspace=str(tmp_path), mode="dense"))


def test_the_node_calls_the_tool_so_that_any_callback_sees_it(settings: MakeContext) -> None:
    seen: list[tuple[str, Any]] = []

    class Watching(BaseCallbackHandler):
        def on_tool_start(self, serialized: Any, input_str: str, **more: Any) -> None:
            seen.append((serialized["name"], more["inputs"]))

        def on_tool_end(self, output: Any, **more: Any) -> None:
            seen.append(("end", output))

    result = quick_graph.invoke(asking(QUESTION), {"callbacks": [Watching()]}, context=settings())
    (name, given), (_, found) = seen
    assert name == "personalized_pagerank"
    assert given["entity_seeds"] == result["seeds"]["entities"]
    assert [hit["score"] for hit in found["passages"]] == [hit["score"] for hit in result["passages"]]
    assert "text" not in found["passages"][0]


def test_an_agent_is_told_every_relation_type() -> None:
    schema = AgentArguments.model_json_schema()["$defs"]["AgentFactors"]["properties"]
    assert list(schema["entity_entity"]["properties"]) == list(ENTITY_RELATIONS)
    assert list(schema["entity_passage"]["properties"]) == list(PASSAGE_RELATIONS)
    every = {
        "entity_entity": dict.fromkeys(ENTITY_RELATIONS, 0.2),
        "entity_passage": dict.fromkeys(PASSAGE_RELATIONS, 0.3),
    }
    AgentArguments.model_validate({"relation_weights": every})
