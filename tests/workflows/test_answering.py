"""``ask``: one call from a question and its settings to the documented result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from graph.errors import BadInput, ModelUnavailable, WorkspaceDamaged, WorkspaceMissing
from graph.retrieve.modes import Mode
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.small_world import ANSWERED, MALFORMED, QUESTION, well_behaved
from workflows.answering import ask
from workflows.context import Context, make_context
from workflows.results import Result

MakeContext = Callable[..., Context]

KEYS_IN_ORDER = [
    "question",
    "understood",
    "mode",
    "workflow",
    "answer",
    "plain_answer",
    "refused",
    "answer_kind",
    "cut",
    "citations",
    "passages",
    "ranked_by",
    "walk",
    "facts",
    "fact_outcome",
    "relation_factors",
    "passage_weight",
    "tuning",
    "seeds",
    "timings_ms",
    "usage",
    "errors",
    "models",
    "generation",
    "as_of",
    "recorded",
]


@pytest.mark.parametrize("mode", ["mara", "dense"])
def test_the_keys_come_in_the_documented_order(settings: MakeContext, mode: str) -> None:
    result = ask(QUESTION, settings(mode=mode))
    assert list(result) == KEYS_IN_ORDER
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    not_always = ("understood", "walk", "relation_factors", "passage_weight", "tuning", "recorded")
    assert None not in [value for key, value in result.items() if key not in not_always]


@pytest.mark.parametrize(
    "changes",
    [*({"mode": mode} for mode in Mode), {"check_claims": True}, {"where": {"nothing": "has this"}}],
    ids=lambda changes: "-".join(map(str, changes.values())),
)
def test_the_result_is_of_the_type_that_it_is_declared_to_be(settings: MakeContext, changes: dict[str, Any]) -> None:
    result = ask(QUESTION, settings(**changes))
    TypeAdapter(Result).validate_python(result, strict=True)
    assert result.keys() <= Result.__annotations__.keys()


def test_the_result_of_ragenta_is_of_that_type_and_holds_all_of_it(ragenta_settings: MakeContext) -> None:
    result = ask(QUESTION, ragenta_settings())
    TypeAdapter(Result).validate_python(result, strict=True)
    assert result.keys() == Result.__annotations__.keys()


def test_the_parts_of_the_result_have_the_documented_keys(settings: MakeContext) -> None:
    result = ask(QUESTION, settings())
    assert result["citations"][0].keys() == {"number", "passage_id", "start", "end"}
    told = {"number", "id", "title", "text", "source", "metadata", "score", "pagerank"}
    assert result["passages"][0].keys() == told
    assert {"subject", "predicate", "object", "relation", "score", "kept"} <= result["facts"][0].keys()
    assert result["relation_factors"]
    assert result["relation_factors"].keys() == {"entity_entity", "entity_passage"}
    assert result["seeds"]["entities"][0].keys() == {"id", "text", "weight"}
    assert result["seeds"]["passages"][0].keys() == {"id", "weight"}
    assert {"chat", "embedding"} <= result["models"].keys()
    assert result["walk"]
    assert result["walk"].keys() == {"engine", "error", "arcs", "damping", "convergence"}


def test_what_was_retried_is_in_the_result(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script({**well_behaved(), "answerer": [MALFORMED, ANSWERED]})
    result = ask(QUESTION, settings())
    assert result["answer"] == ANSWERED
    assert [(record["node"], record["kind"]) for record in result["errors"]] == [("write_answer", "MalformedReply")]


@pytest.mark.parametrize("question", ["", " \n", "?" * 10_001, "\udcff"], ids=["empty", "blank", "too long", "broken"])
def test_a_question_that_cannot_be_asked_is_refused_before_the_workspace_is_opened(
    tmp_path: Path, question: str
) -> None:
    with pytest.raises(BadInput, match="question") as failure:
        ask(question, Context(workspace=str(tmp_path / "none")))
    assert not isinstance(failure.value, WorkspaceMissing)


def test_the_longest_question_is_answered(settings: MakeContext) -> None:
    question = f"{QUESTION} {'x' * 10_000}"[:10_000]
    assert ask(question, settings(mode="sparse"))["question"] == question


def test_a_missing_workspace_is_said(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match=str(tmp_path)):
        ask(QUESTION, make_context(workspace=str(tmp_path / "none")))


def test_a_file_in_the_workspaces_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no workspace", encoding="utf-8")
    with pytest.raises(BadInput, match="is a file"):
        ask(QUESTION, Context(workspace=str(tmp_path / "file")))


def test_a_damaged_workspace_is_said(tmp_path: Path) -> None:
    (tmp_path / "record.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(WorkspaceDamaged, match=r"record\.sqlite"):
        ask(QUESTION, Context(workspace=str(tmp_path)))


def test_an_unavailable_model_is_said(chat_server: ScriptedServer, settings: MakeContext) -> None:
    chat_server.script([Reply("no", status=401)])
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        ask(QUESTION, settings())


def test_the_workspace_of_the_environment_is_the_default(
    small_workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_WORKSPACE", str(small_workspace))
    assert ask(QUESTION, Context(mode="sparse"))["citations"]


def test_without_any_setting_the_workspace_is_dot_mara_in_the_working_folder(
    small_workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".mara").symlink_to(small_workspace, target_is_directory=True)
    assert ask(QUESTION, Context(mode="sparse"))["citations"]
