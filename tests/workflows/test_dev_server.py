"""``langgraph dev`` serves the workflows with no key and no network, and answers through its SDK."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.schema import StreamMode

from graph.storage.workspace import Workspace
from tests.docs.pages import blocks, read
from tests.workflows.dev_server import ROOT, Case, Server
from tests.workflows.small_world import QUESTION, QUESTION_PASSAGES
from workflows.answering import ask
from workflows.context import Context
from workflows.nodes.retrieval import walk_graph
from workflows.results import result_of as asked_result_of
from workflows.runtime.workflow_graph import AGAIN
from workflows.settings.indexing import IndexingContext, Sources
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

READABLE = 100_000
"""Characters of JSON that a part of a stream has at most."""

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
    "settings": offline({"question": QUESTION}, mode="sparse", top_k=2, answer_passages=1),
    "named workspace": offline({"question": QUESTION}, workspace=SIBLING, mode="dense"),
    "retrieval": offline({"question": QUESTION}, "retrieval", top_k=3),
    "ragenta": offline({"question": QUESTION}, "ragenta", top_k=4),
    "filter": offline({"question": QUESTION}, where={"source": {"$in": ["corpus.jsonl", "other"]}}),
    "filter of nothing": offline({"question": QUESTION}, where={"source": "other"}),
}
REFUSED = {
    "damping": (offline({"question": QUESTION}, walk={"damping": 5}), "damping.*less than or equal to 0.99"),
    "bar": (offline({"question": QUESTION}, "ragenta", n=9), "n.*less than or equal to 5"),
    "where": (offline({"question": QUESTION}, where={"source": {"$regex": ""}}), "where.*'source' has .*Use one of"),
    "empty question": (offline({"question": ""}), "question.*at least 1 character"),
    "no question": (offline({}), "question.*required"),
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


def test_the_schemas_make_a_form_that_offers_each_setting_at_nodes_of_the_drawing(server: Server) -> None:
    for name, settings in GRAPHS.items():
        (assistant,) = server.client.assistants.search(graph_id=name)
        schemas: Any = server.client.assistants.get_schemas(assistant["assistant_id"])
        assert list(schemas["input_schema"]["properties"]) == ["question", "turns"], name
        form = schemas["context_schema"]["properties"]
        assert form == settings.model_json_schema()["properties"], name
        result = schemas["output_schema"]["properties"].keys()
        assert {"passages", "facts", "relation_factors", "errors"} <= result, name
        assert ("answer" in result) == (name != "retrieval")
        drawing = server.client.assistants.get_graph("mara" if name == "retrieval" else name)
        drawn = {str(node["id"]) for node in drawing["nodes"]}
        for setting in form.values():
            assert set(setting["langgraph_nodes"]) <= drawn, setting
            assert setting["title"]
            assert setting["description"], setting


def test_the_server_draws_retry_loops_fallbacks_and_subgraphs_and_says_when_a_branch_is_taken(server: Server) -> None:
    fallbacks = {"keep_top_facts", "neutral_relations", "quote_passages"}
    within = {"judge_passage:predict_answer", "judge_passage:score_passage", "check_claims:settle_claims"}
    for name, expected in (("mara", fallbacks), ("ragenta", within)):
        drawing = server.client.assistants.get_graph(name, xray=True)
        assert expected <= {str(node["id"]) for node in drawing["nodes"]}
        assert all(edge["data"] for edge in drawing["edges"] if edge.get("conditional")), name
    drawing = server.client.assistants.get_graph("mara", xray=True)
    loops = {edge["source"]: edge["data"] for edge in drawing["edges"] if edge["source"] == edge["target"]}
    looping = ("rewrite_question", "filter_facts", "weigh_relations", "write_answer", "check_claims:judge_claims")
    assert loops == dict.fromkeys(looping, AGAIN)


def test_a_run_answers_as_in_python_with_citations(outcomes: Outcomes, small_workspace: Path) -> None:
    result = result_of(outcomes["defaults"])
    assert "1203" in result["answer"]
    assert tuple(citation["passage_id"] for citation in result["citations"]) == QUESTION_PASSAGES[::-1]
    assert result["errors"] == []
    alone = ask(QUESTION, Context(workspace=str(small_workspace)))
    assert asked_result_of(result) == {**alone, "timings_ms": result["timings_ms"]}


def test_each_claim_of_ragentas_answer_is_checked_as_in_python(outcomes: Outcomes, small_workspace: Path) -> None:
    result = result_of(outcomes["ragenta"])
    assert {claim["verdict"] for claim in result["claims"]} == {"quoted"}
    alone = ask(QUESTION, RagentaContext(workspace=str(small_workspace), top_k=4))
    assert asked_result_of(result) == {**alone, "timings_ms": result["timings_ms"]}


def test_settings_filters_and_names_of_workspaces_are_obeyed(outcomes: Outcomes) -> None:
    result = result_of(outcomes["settings"])
    assert (result["mode"], len(result["passages"])) == ("sparse", 2)
    assert {citation["number"] for citation in result["citations"]} == {1, 2}
    everything, nothing = result_of(outcomes["filter"]), result_of(outcomes["filter of nothing"])
    assert everything["answer"] == result_of(outcomes["defaults"])["answer"]
    assert (nothing["passages"], nothing["errors"][0]["kind"]) == ([], "NothingSelected")
    assert result_of(outcomes["named workspace"])["passages"][0]["id"] == "lake-sund"
    retrieval = result_of(outcomes["retrieval"])
    assert (len(retrieval["passages"]), "answer" in retrieval) == (3, False)


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


MODES: list[StreamMode] = ["values", "updates", "tasks", "debug", "custom", "messages-tuple"]


@pytest.fixture(scope="module")
def streamed(server: Server) -> dict[str, list[Any]]:
    """The stream of a run on a thread, by mode."""
    thread = server.client.threads.create()["thread_id"]
    parts: dict[str, list[Any]] = {}
    given = {"question": QUESTION}
    for part in server.client.runs.stream(thread, "mara", input=given, context=OFFLINE, stream_mode=MODES):
        parts.setdefault(part.event, []).append(part.data)
    return parts


def test_every_node_tells_its_progress_and_all_modes_agree_on_the_answer(streamed: dict[str, list[Any]]) -> None:
    events = [(event["node"], event["event"]) for event in streamed["custom"]]
    ended = {task["name"] for task in streamed["tasks"] if "result" in task}
    assert sorted(events) == sorted((node, event) for node in ended for event in ("started", "finished"))
    ends = {event["node"]: event for event in streamed["custom"] if event["event"] == "finished"}
    filtered, walked = ends["filter_facts"], ends["walk_graph"]
    assert (filtered["attempt"], filtered["facts"], "kept" in filtered) == (1, 10, True)
    assert (walked["ranked_by"], walked["passages"]) == ("walk", 10)
    assert "1203" in streamed["values"][-1]["answer"]
    (answered,) = (update["write_answer"] for update in streamed["updates"] if "write_answer" in update)
    assert answered["answer"] == streamed["values"][-1]["answer"]
    assert "error" not in streamed


def test_what_is_streamed_is_small_enough_to_read(streamed: dict[str, list[Any]]) -> None:
    for mode in ("values", "updates", "tasks", "debug", "custom"):
        assert max(len(json.dumps(part)) for part in streamed[mode]) < READABLE, mode
    (walk,) = (task for task in streamed["tasks"] if task["name"] == "walk_graph" and "input" in task)
    assert walk["input"].keys() <= walk_graph.__annotations__["state"].__annotations__.keys()


@pytest.mark.slow
def test_a_second_question_on_a_thread_starts_afresh(server: Server) -> None:
    thread = server.client.threads.create()["thread_id"]
    server.run(Case({"question": QUESTION}, {"where": {"source": "other"}}), thread)
    second = result_of(server.run(Case({"question": "Who built the Tarn Dam?"}), thread))
    alone = result_of(server.run(Case({"question": "Who built the Tarn Dam?"})))
    assert {**second, "timings_ms": {}} == {**alone, "timings_ms": {}}
    assert second["errors"] == []


@pytest.mark.slow
def test_a_thread_can_be_run_again_from_any_node(server: Server) -> None:
    threads = server.client.threads
    thread = threads.create()["thread_id"]
    first = result_of(server.run(Case({"question": QUESTION}), thread))
    pasts = [past for past in threads.get_history(thread, limit=100) if past["next"] not in ([], ["__start__"])]
    assert {node for past in pasts for node in past["next"]} == first["timings_ms"].keys()
    for past in pasts:
        again = server.client.runs.wait(thread, "mara", input=None, checkpoint=past["checkpoint"])
        assert isinstance(again, dict)
        assert {**again, "timings_ms": {}} == {**first, "timings_ms": {}}, past["next"]


@pytest.mark.slow
def test_the_documented_fork_walks_again_without_beta(server: Server) -> None:
    (code,) = (block.body for block in blocks(read(ROOT / "docs" / "studio.md")) if "get_sync_client" in block.body)
    there = code.replace("http://127.0.0.1:2024", server.url).replace("When was Nissan founded?", QUESTION)
    assert there.count(server.url) == there.count(QUESTION) == 1
    done = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with_beta, without = map(float, done.stdout.split())
    assert with_beta != without


@pytest.mark.slow
def test_a_folder_is_indexed_asked_and_synchronised_and_no_other_can_be_reached(
    server: Server, small_workspace: Path
) -> None:
    (assistant,) = server.client.assistants.search(graph_id="indexing")
    schemas = server.client.assistants.get_schemas(assistant["assistant_id"])
    assert (schemas["input_schema"] or {})["properties"] == Sources.model_json_schema()["properties"]
    assert (schemas["context_schema"] or {})["properties"] == IndexingContext.model_json_schema()["properties"]
    drawing = server.client.assistants.get_graph(assistant["assistant_id"], xray=True)
    edges = {(str(edge["source"]), str(edge["target"])) for edge in drawing["edges"]}
    assert {("extract", "embed"), ("embed", "commit"), ("commit", "extract"), ("commit", "publish")} <= edges

    folder = server.sources / "documents"
    folder.mkdir()
    (folder / "marn.txt").write_text("Marn is a town in Ostra. It was founded in 1203.", encoding="utf-8")
    (folder / "kesh.txt").write_text("Kesh is a harbour in Belavia.", encoding="utf-8")
    Workspace(small_workspace.with_name("indexed")).create()
    there = {"workspace": "indexed", **OFFLINE}
    first = result_of(server.run(Case({"sources": ["documents"]}, there, "indexing")))["report"]
    assert (first["added"], first["refused"]) == (2, [])
    marn = result_of(server.run(Case({"question": "When was Marn founded?"}, there)))
    assert "1203" in marn["answer"]
    (folder / "kesh.txt").unlink()
    thread = server.client.threads.create()["thread_id"]
    waiting = result_of(server.run(Case({"sources": ["documents"], "sync": True}, there, "indexing"), thread))
    (action,) = waiting["__interrupt__"][0]["value"]["action_requests"]
    assert action["args"] == {"passages": 1, "sources": ["kesh.txt"]}
    approved: Any = {"resume": {"decisions": [{"type": "approve"}]}}
    done: Any = server.client.runs.wait(thread, "indexing", command=approved, context=there)
    again = done["report"]
    assert (again["removed"], again["passages"], again["unchanged"]) == (1, 1, 1)
    (folder / "kesh.txt").write_text("Kesh is a harbour in Belavia.", encoding="utf-8")
    server.run(Case({"sources": ["documents"]}, there, "indexing"))
    (folder / "kesh.txt").unlink()
    asked: Any = {"sources": ["documents"], "sync": True}
    with pytest.raises(
        Exception, match=r"would remove 1 passages.*Run it on a thread, or set confirm_removals to false"
    ):
        server.client.runs.wait(None, "indexing", input=asked, context=there)
    for name in ("/etc", "../documents", "documents/../.."):
        refused = server.run(Case({"sources": [name]}, there, "indexing"))
        assert "MARA_SOURCES" in str(refused)
    assert "sources" in str(server.run(Case({}, there, "indexing")))


def test_nothing_else_is_complained_of_in_the_log(server: Server, outcomes: Outcomes) -> None:
    assert len(outcomes) == len(ANSWERED) + len(REFUSED)
    unexpected = [line for line in server.complaints() if not any(expected in line for expected in EXPECTED)]
    assert unexpected == []
