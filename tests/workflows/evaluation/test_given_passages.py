"""Systems without retrieval: the gold passages, or none, are given to the answerer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graph.errors import BadInput
from tests.scripted_server import ScriptedServer
from tests.workflows.evaluation.river_run import Orders, Runs
from workflows.context import Context


@pytest.fixture
def served(rivers: Path) -> Context:
    return Context(workspace=str(rivers), model="scripted")


def test_the_answerer_is_shown_the_gold_passages_of_the_workspace_and_nothing_else(
    run: Runs, order: Orders, served: Context, chat_server: ScriptedServer
) -> None:
    chat_server.script({"answerer": ["Lake Sund [1]."]})
    done = run(order(context=served, systems=("gold-passages",), concurrency=1))
    shown = [json.loads(request.text_of(1).splitlines()[2]) for request in chat_server.requests]
    assert [len(each["passages"]) for each in shown] == [1, 2, 1, 1, 1]
    rows = {row["id"]: row for row in done.results["gold-passages"]}
    assert rows["q2"]["retrieved_ids"] == rows["q2"]["written_from"] == ["sund", "brandt"]
    assert rows["q4"]["retrieved_ids"] == ["sund"], "what the workspace lacks cannot be given"
    assert (rows["q5"]["refused"], rows["q5"]["model_calls"]) == (True, 0), "it has no gold passage"
    assert (rows["q1"]["mode"], rows["q1"]["ranked_by"], rows["q1"]["em"]) == ("gold-passages", "given", 1.0)


def test_a_closed_book_is_asked_the_question_alone(
    run: Runs, order: Orders, served: Context, chat_server: ScriptedServer
) -> None:
    chat_server.script({"closed book": ["Lake Sund", "NOT KNOWN", "Belavia"]})
    rows = run(order(context=served, systems=("closed-book",), concurrency=1, limit=3)).results["closed-book"]
    assert {request.role for request in chat_server.requests} == {"closed book"}
    assert [row["refused"] for row in rows] == [False, True, False]
    assert all((row["retrieved_ids"], row["citations"], row["written_from"]) == ([], [], []) for row in rows)


def test_a_system_without_retrieval_has_no_part_in_retrieval_alone(run: Runs, order: Orders) -> None:
    with pytest.raises(BadInput, match="'gold-passages' retrieves nothing"):
        run(order(systems=("mara", "gold-passages"), retrieval_only=True))
