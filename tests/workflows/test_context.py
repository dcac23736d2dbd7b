"""The settings of a run: described, bounded, refused by name, and the same from Studio, Python and the command line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from graph.errors import BadInput
from graph.retrieve.modes import HIPPORAG2, MARA, SEED, Mode, Preset, WalkSettings
from tests.workflows.scripted import MakeContext
from tests.workflows.small_world import QUESTION, run
from workflows import indexing, mara, retrieval
from workflows.context import QUESTION_LIMIT, Context, Walk, check_question, make_context
from workflows.settings.indexing import IndexingContext

GRAPHS: dict[str, Any] = {"mara": mara.graph, "retrieval": retrieval.graph}

BAD_SETTINGS: list[tuple[str, Any]] = [
    ("mode", "bm25"),
    ("preset", "best"),
    ("temperature", -0.1),
    ("temperature", math.nan),
    ("manager_temperature", 2.5),
    ("top_k", 0),
    ("top_k", 201),
    ("top_k", 2.5),
    ("top_k", "many"),
    ("answer_passages", 0),
    ("max_facts", 0),
    ("max_json_retries", -1),
    ("max_json_retries", 6),
    ("damping", 1.0),
    ("damping", math.nan),
    ("passage_weight", math.inf),
    ("passage_seeds", -1),
    ("seed_sharpness", 0.5),
    ("alpha", 1.5),
    ("entity_rarity", "loud"),
    ("workspace", "w" * 4097),
    ("model", "m" * 257),
    ("filter_facts", "perhaps"),
    ("engine", "fast"),
    ("where", "tenant=a"),
    ("where", {"tenant": None}),
    ("where", {"tenant": {"$regex": ".*"}}),
    ("where", {"$or": [{"tenant": "a"}, {"tenant": "b"}]}),
    ("where", {f"key {i}": i for i in range(10_000)}),
]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of the settings of workflow mara."""
    return mara.graph.get_context_jsonschema() or {}


def alternatives(schema: dict[str, Any], field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schemas a field may fit, references resolved, null left out."""
    for each in field.get("anyOf", [field]):
        if "$ref" in each:
            yield schema["$defs"][each["$ref"].rsplit("/", 1)[-1]]
        elif each["type"] != "null":
            yield each


def is_bounded(schema: dict[str, Any]) -> bool:
    """Whether a schema limits what it takes."""
    match schema["type"]:
        case "integer" | "number":
            return bool(schema["minimum"] <= schema["maximum"])
        case "string":
            return bool(schema.get("enum") or schema["maxLength"])
        case "object":
            return bool(schema["maxProperties"])
        case "array":
            return bool(schema["maxItems"])
    return bool(schema["type"] == "boolean")


def test_every_setting_is_described_bounded_and_has_a_default(schema: dict[str, Any]) -> None:
    assert retrieval.graph.get_context_jsonschema() == schema
    for name, field in schema["properties"].items():
        assert len(field["description"]) > 20, name
        assert "default" in field, name
        assert all(map(is_bounded, alternatives(schema, field))), name
        for value in re.findall(r"\((?:mara )?([\d.]+)\)", field["description"]):
            assert getattr(MARA, name) == float(value), "the description tells the mode's own default"
    assert Context(**Context().model_dump(exclude_none=True)) == Context()


def test_the_form_groups_settings_and_ties_each_to_nodes() -> None:
    for settings_class, graph in ((Context, mara.graph), (IndexingContext, indexing.graph)):
        properties = settings_class.model_json_schema()["properties"]
        groups = [setting["title"].split(" · ")[0] for setting in properties.values()]
        assert all(len(setting["title"].split(" · ")) == 2 for setting in list(properties.values())[1:]), settings_class
        assert [group for group, _ in groupby(groups)] == list(dict.fromkeys(groups)), "a group stands together"
        assert groups[0] == "Workspace", settings_class
        for setting in properties.values():
            assert setting["langgraph_nodes"], settings_class
            assert set(setting["langgraph_nodes"]) <= graph.get_graph().nodes.keys()


def test_a_bad_setting_is_refused_by_name() -> None:
    for name, value in BAD_SETTINGS:
        with pytest.raises(BadInput, match=rf"A setting cannot be used \((?:walk\.)?{name}(?:: | has to )") as failure:
            make_context(**{name: value})
        assert failure.value.hint, name


def test_a_bad_condition_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(
        BadInput, match=r"\(where: The condition of `where` on 'tenant' has '\$regex'.* Use one of \$eq"
    ):
        make_context(where={"tenant": {"$regex": ".*"}})


def test_a_bad_setting_given_to_the_graph_is_refused_by_name(small_workspace: Path) -> None:
    for name, value in [
        ("top_k", 0),
        ("damping", 5),
        ("mode", "bm25"),
        ("unheard_of", 1),
        ("where", {"tenant": {"$regex": ".*"}}),
    ]:
        with pytest.raises(ValidationError, match=name):
            run({"workspace": str(small_workspace), name: value})


def test_a_setting_that_was_not_given_keeps_its_default() -> None:
    assert make_context(top_k=None, mode=None, personalise=True) == Context(personalise=True)


def test_several_bad_settings_are_told_together() -> None:
    with pytest.raises(
        BadInput, match=r"\(top_k has to be 1 or more, not 0; walk.damping has to be 0.99 or less, not 5\)"
    ):
        make_context(top_k=0, walk={"damping": 5})


def test_without_a_context_the_defaults_apply(small_workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", str(small_workspace))
    plain: Any = mara.graph
    result = plain.invoke({"question": QUESTION})
    assert (result["mode"], result["models"]["chat"]) == ("mara", "offline")
    assert len(result["passages"]) == Context().top_k
    assert result["citations"]


def test_a_context_may_be_a_plain_dict(small_workspace: Path) -> None:
    done = run({"workspace": str(small_workspace), "mode": "sparse", "top_k": 1})
    assert (done.result["mode"], len(done.result["passages"])) == ("sparse", 1)


def test_where_a_setting_is_empty_the_modes_own_value_holds() -> None:
    assert Context().walk_settings() == MARA
    assert Context(preset=Preset.SEED).walk_settings() == SEED
    assert Context(mode=Mode.HIPPORAG2, preset=Preset.SEED).walk_settings() == HIPPORAG2


def test_a_setting_that_is_given_changes_that_one_alone_even_where_it_is_zero() -> None:
    for name, value in [
        ("damping", 0.0),
        ("passage_weight", 0.0),
        ("passage_seeds", 0),
        ("seed_sharpness", 1.0),
        ("alpha", 0.0),
        ("fact_candidates", 3),
        ("entity_seeds", 0),
        ("entity_rarity", "inverse"),
        ("name_weight", 0.0),
        ("synonym_edges", False),
        ("adaptive_passage_weight", True),
    ]:
        changed = Context(walk=Walk(**{name: value})).walk_settings()
        differing = {key for key in WalkSettings.__dataclass_fields__ if getattr(changed, key) != getattr(MARA, key)}
        assert differing == {name}
        assert getattr(changed, name) == value


def test_without_the_manager_a_walk_goes_by_no_beta() -> None:
    assert Context().walk_settings().beta
    assert not Context(weigh_relations=False).walk_settings().beta
    assert not Context(mode=Mode.HIPPORAG2).walk_settings().beta


def test_alpha_mixes_the_hybrid_ranking_in_every_mode() -> None:
    assert Context(mode=Mode.HYBRID).hybrid_alpha == 0.65
    assert Context(mode=Mode.HYBRID, walk=Walk(alpha=0.0)).hybrid_alpha == 0.0


def test_the_input_is_a_described_question_and_the_turns_before_it() -> None:
    for graph in GRAPHS.values():
        schema = graph.get_input_jsonschema()
        assert (list(schema["properties"]), schema["required"]) == (["question", "turns"], ["question"]), graph
        question, turns = schema["properties"].values()
        assert turns["description"], graph
        assert question["description"], graph
        assert question["examples"], graph
        assert (question["minLength"], question["maxLength"]) == (1, QUESTION_LIMIT), graph


def test_what_is_no_question_is_refused_by_name(settings: MakeContext) -> None:
    questions: list[Any] = ["", "  \n\u3000", "?" * (QUESTION_LIMIT + 1), None, 7, ["When?"], "\ud800?"]
    for question in questions:
        for graph in GRAPHS.values():
            with pytest.raises(ValidationError, match="question"):
                graph.invoke({"question": question}, context=settings())


def test_a_question_that_cannot_be_asked_is_bad_input_with_a_hint() -> None:
    for question, reason in [
        ("", "empty"),
        (" \u3000\n", "empty"),
        ("?" * (QUESTION_LIMIT + 1), "10,001 characters"),
        ("\udcff?", "Unicode"),
    ]:
        with pytest.raises(BadInput, match=reason) as failure:
            check_question(question)
        assert failure.value.hint, question


def test_a_question_may_be_odd() -> None:
    for question in ("?", "🙂", "x" * QUESTION_LIMIT, "a\x00b", "\u200b", "本"):
        assert check_question(question) == question


def test_a_question_without_a_word_is_not_searched_but_asked_for(settings: MakeContext) -> None:
    for mode in Mode:
        done = run(settings(mode=mode), "?! \u200b")
        assert (done.result["answer"], done.passage_ids) == ("Ask a question about the documents.", []), mode


def test_the_exported_graph_has_a_recursion_limit_and_no_checkpointer() -> None:
    for graph in GRAPHS.values():
        assert graph.config["recursion_limit"] == retrieval.RECURSION_LIMIT
        assert graph.checkpointer is None


def test_the_builder_compiles_with_a_checkpointer_of_ones_own(settings: MakeContext) -> None:
    for module in (mara, retrieval):
        saver = InMemorySaver()
        thread: Any = {"configurable": {"thread_id": "one"}}
        result = module.build().compile(checkpointer=saver).invoke({"question": QUESTION}, thread, context=settings())
        assert result["passages"][0]["id"] == "lake-sund", module
        assert saver.get(thread) is not None, module
