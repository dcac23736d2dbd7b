"""``langgraph dev`` serves the workflows with no key and no network, and answers through its SDK."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.workflows.dev_server import ROOT, Case, Server
from tests.workflows.small_world import QUESTION
from workflows.answering import ask
from workflows.context import Context
from workflows.results import result_of as asked_result_of
from workflows.settings.ragenta import RagentaContext

EXPECTED = (
    # A run that fails, as some of these tests make it fail on purpose, is logged twice by the server's worker,
    "Run encountered an error in graph: ",
    "Background run failed. Exception: ",
    # and the first such exception makes the server's log formatter warn of its own set-up.
    "Remove `format_exc_info` from your processor chain",
    # A run without a thread has no checkpointer.
    "`durability` has no effect when no checkpointer is present",
)
"""The lines that the log may hold above the level of info."""

GRAPHS = {"mara": Context, "ragenta": RagentaContext, "retrieval": Context}
"""The workflows that take a question, and their settings."""


SIBLING = "workspace"
"""The name of the small workspace's folder."""

OFFLINE = {"model": "offline"}


def offline(given: dict[str, Any], assistant: str = "mara", **settings: Any) -> Case:
    """Return a run that asks no model."""
    return Case(given, {**OFFLINE, **settings}, assistant)


Outcomes = dict[str, dict[str, Any] | str]
"""The result of a run, or the message it failed with."""


ANSWERED = {
    "defaults": offline({"question": QUESTION}),
    "ragenta": offline({"question": QUESTION}, "ragenta", top_k=4),
}
REFUSED = {
    "damping": (offline({"question": QUESTION}, walk={"damping": 5}), "damping.*less than or equal to 0.99"),
    "where": (
        offline({"question": QUESTION}, where={"source": {"$regex": ""}}),
        "where.*on 'source' cannot be used. Give ",
    ),
    "path up": (offline({"question": QUESTION}, workspace="../small"), "not the name of a workspace.*Give the name"),
    "new workspace": (Case({"sources": ["."]}, {"workspace": "other"}, "indexing"), "no workspace other"),
    "all replaced": (Case({"sources": ["."], "sync": True}, {"replace_all": True}, "indexing"), "may not replace"),
    "missing workspace": (offline({"question": QUESTION}, workspace="nobody"), "no workspace.*nobody.*mara index"),
}


@pytest.fixture(scope="module")
def server(dev: Server, small_workspace: Path) -> Server:
    """The server on the small workspace."""
    assert small_workspace.name == SIBLING
    return dev


@pytest.fixture(scope="module")
def outcomes(server: Server) -> Outcomes:
    """The outcome of every case, asked all together: it takes a second to notice each run."""
    cases = {**ANSWERED, **{name: case for name, (case, _) in REFUSED.items()}}
    with ThreadPoolExecutor(len(cases)) as pool:
        return dict(zip(cases, pool.map(server.run, cases.values()), strict=True))


def result_of(outcome: dict[str, Any] | str) -> dict[str, Any]:
    assert isinstance(outcome, dict), outcome
    return outcome


def test_the_configuration_names_the_workflows_by_their_modules() -> None:
    configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    paths = {name: graph["path"] for name, graph in configuration["graphs"].items()}
    assert paths == {name: f"workflows.{name}:graph" for name in (*GRAPHS, "chat", "indexing")}
    assert all(graph["description"] for graph in configuration["graphs"].values())


def test_a_run_answers_as_in_python(outcomes: Outcomes, small_workspace: Path) -> None:
    workspace = str(small_workspace)
    contexts = {"defaults": Context(workspace=workspace), "ragenta": RagentaContext(workspace=workspace, top_k=4)}
    for name, context in contexts.items():
        result = result_of(outcomes[name])
        assert asked_result_of(result) == {**ask(QUESTION, context), "timings_ms": result["timings_ms"]}, name


def test_what_cannot_be_run_fails_with_a_message_that_is_readable_and_names_no_folder(
    server: Server, outcomes: Outcomes
) -> None:
    for name, (_, reason) in REFUSED.items():
        message = outcomes[name]
        assert isinstance(message, str), name
        assert re.search(reason, message, re.DOTALL), message
        assert "internal error" not in message
        assert str(server.sources.parent) not in message


def test_a_thread_goes_on_after_a_refused_question_and_its_state_can_be_edited(server: Server) -> None:
    threads = server.client.threads
    thread = threads.create()["thread_id"]
    assert isinstance(server.run(offline({"question": ""}), thread), str)
    first = result_of(server.run(offline({"question": QUESTION}), thread))
    assert "1203" in first["answer"]
    state = threads.get_state(thread)["values"]
    assert isinstance(state, dict)
    assert state["question"] == QUESTION

    before = next(past for past in threads.get_history(thread, limit=100) if past["next"] == ["seed_graph"])
    none_kept = [{**fact, "kept": False} for fact in first["facts"]]
    fork = threads.update_state(thread, {"facts": none_kept}, as_node="filter_facts", checkpoint=before["checkpoint"])
    forked = server.client.runs.wait(thread, "mara", input=None, context=OFFLINE, checkpoint=fork["checkpoint"])
    assert isinstance(forked, dict)
    assert [seed["text"] for seed in forked["seeds"]["entities"]] == ["Lake Sund"]
    assert len(first["seeds"]["entities"]) > 1


def test_nothing_else_is_complained_of_in_the_log(server: Server, outcomes: Outcomes) -> None:
    assert len(outcomes) == len(ANSWERED) + len(REFUSED)
    unexpected = [line for line in server.complaints() if not any(expected in line for expected in EXPECTED)]
    assert unexpected == []
