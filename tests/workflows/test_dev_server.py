"""``langgraph dev`` serves the workflows with no key and no network, and answers through its SDK."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.workflows.small_world import QUESTION, QUESTION_PASSAGES
from workflows.ask import ask
from workflows.context import Context
from workflows.indexing_context import IndexingContext, Sources

ROOT = Path(__file__).parents[2]
START_ATTEMPTS, ATTEMPT_S = 300, 0.1
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LEVEL = re.compile(r"^\S+ \[(warning|error|critical)\s*\] (.*)")

EXPECTED = (
    # A run that fails, as some of these tests make it fail on purpose, is logged twice by the server's worker,
    "Run encountered an error in graph: ",
    "Background run failed. Exception: ",
    # and the first such exception makes the server's log formatter warn of its own set-up.
    "Remove `format_exc_info` from your processor chain",
)
"""What the log may hold above the level of info."""

GRAPHS = ("mara", "retrieval")
SIBLING = "workspace"
"""The name of the small workspace's folder."""

Outcomes = dict[str, dict[str, Any] | str]
"""The result of a run, or the message it failed with."""


class Case(NamedTuple):
    """A run to ask of the server."""

    given: dict[str, Any]
    context: Mapping[str, Any] = MappingProxyType({})
    assistant: str = "mara"


ANSWERED = {
    "defaults": Case({"question": QUESTION}),
    "settings": Case({"question": QUESTION}, {"mode": "sparse", "top_k": 2, "answer_passages": 1}),
    "named workspace": Case({"question": QUESTION}, {"workspace": SIBLING, "mode": "dense"}),
    "retrieval": Case({"question": QUESTION}, {"top_k": 3}, "retrieval"),
    "filter": Case({"question": QUESTION}, {"where": {"source": {"$in": ["corpus.jsonl", "other"]}}}),
    "filter of nothing": Case({"question": QUESTION}, {"where": {"source": "other"}}),
}
REFUSED = {
    "damping": (Case({"question": QUESTION}, {"damping": 5}), "damping.*less than or equal to 0.99"),
    "mode": (Case({"question": QUESTION}, {"mode": "bm25"}), "mode.*'mara', 'hipporag2'"),
    "where": (Case({"question": QUESTION}, {"where": {"source": {"$regex": ""}}}), "where.*'source' has .*Use one of"),
    "empty question": (Case({"question": ""}), "question.*at least 1 character"),
    "long question": (Case({"question": "?" * 10_001}), "question.*at most 10000 characters"),
    "no question": (Case({}), "question.*required"),
    "path up": (Case({"question": QUESTION}, {"workspace": "../small"}), "not the name of a workspace.*Give the name"),
    "absolute path": (Case({"question": QUESTION}, {"workspace": "/etc"}), "not the name of a workspace"),
    "windows path": (Case({"question": QUESTION}, {"workspace": "a\\b"}), "not the name of a workspace"),
    "parent": (Case({"question": QUESTION}, {"workspace": ".."}), "not the name of a workspace"),
    "missing workspace": (Case({"question": QUESTION}, {"workspace": "nobody"}), "no workspace.*nobody.*mara index"),
    "model without a key": (Case({"question": QUESTION}, {"model": "any"}), "ModelUnavailable.*OPENAI_API_KEY"),
}


class Server:
    """A running server: its client, its log, and the folder whose files its clients may have indexed."""

    def __init__(self, port: int, log: Path, sources: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.client: SyncLangGraphClient = get_sync_client(url=self.url)
        self.log = log
        self.sources = sources

    def complaints(self) -> list[str]:
        """Return the warnings and errors of the log."""
        lines = (COLOUR.sub("", line) for line in self.log.read_text(encoding="utf-8").splitlines())
        return [found[2] for line in lines if (found := LEVEL.match(line))]

    def is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/ok", timeout=5) as reply:
                return json.load(reply)["ok"] is True
        except OSError:
            return False

    def run(self, case: Case, thread: str | None = None) -> dict[str, Any] | str:
        """Return a run's result, or the message it fails with; on a thread of its own unless one is given."""
        thread = thread or self.client.threads.create()["thread_id"]
        try:
            result = self.client.runs.wait(thread, case.assistant, input=case.given, context=dict(case.context))
        except Exception as failure:
            return str(failure)
        assert isinstance(result, dict)
        return result


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, small_workspace: Path) -> Iterator[Server]:
    """The server on the small workspace, in a folder of its own with the project's configuration."""
    assert small_workspace.name == SIBLING
    folder = tmp_path_factory.mktemp("server")
    configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    (folder / "langgraph.json").write_text(json.dumps({**configuration, "dependencies": [str(ROOT)]}), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as output:
        process = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("langgraph")), "dev", "--no-browser", "--no-reload"),
                *("--port", str(port), "--n-jobs-per-worker", "8"),
            ],
            cwd=folder,
            env={**environment(small_workspace), "MARA_SOURCES": str(folder)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield started(process, Server(port, folder / "log", folder))
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def environment(workspace: Path) -> dict[str, str]:
    """The caller's environment without settings, keys or tracing, and without a look at the network."""
    private = ("OPENAI_", "MARA_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(private)},
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGSMITH_TRACING": "false",
        "MARA_WORKSPACE": str(workspace),
    }


def started(process: subprocess.Popen[bytes], server: Server) -> Server:
    """Wait until the server answers, as long as it lives and attempts are left."""
    for _ in range(START_ATTEMPTS):
        if server.is_up():
            return server
        try:
            process.wait(ATTEMPT_S)
        except subprocess.TimeoutExpired:
            continue
        break
    pytest.fail(f"The server is not up: {server.log.read_text(encoding='utf-8')}")


@pytest.fixture(scope="module")
def outcomes(server: Server) -> Outcomes:
    """What the server says to every case, asked all together: it takes a second to notice each run."""
    cases = {**ANSWERED, **{name: case for name, (case, _) in REFUSED.items()}}
    with ThreadPoolExecutor(len(cases)) as pool:
        return dict(zip(cases, pool.map(server.run, cases.values()), strict=True))


def result_of(outcome: dict[str, Any] | str) -> dict[str, Any]:
    assert isinstance(outcome, dict), outcome
    return outcome


def test_the_configuration_names_the_workflows_by_their_modules() -> None:
    configuration = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    paths = {name: graph["path"] for name, graph in configuration["graphs"].items()}
    assert paths == {name: f"workflows.{name}:graph" for name in ("mara", "retrieval", "indexing")}
    assert all(graph["description"] for graph in configuration["graphs"].values())


@pytest.mark.parametrize("name", GRAPHS)
def test_the_schemas_make_a_form(server: Server, name: str) -> None:
    (assistant,) = server.client.assistants.search(graph_id=name)
    schemas = server.client.assistants.get_schemas(assistant["assistant_id"])
    assert schemas["input_schema"] is not None
    assert list(schemas["input_schema"]["properties"]) == ["question"]
    assert schemas["context_schema"] is not None
    assert schemas["context_schema"]["properties"] == Context.model_json_schema()["properties"]
    assert schemas["output_schema"] is not None
    assert {"passages", "facts", "relation_factors", "errors"} <= schemas["output_schema"]["properties"].keys()
    assert ("answer" in schemas["output_schema"]["properties"]) == (name == "mara")


def test_the_server_draws_the_retry_loops_and_fallbacks(server: Server) -> None:
    drawing = server.client.assistants.get_graph("mara")
    nodes = {str(node["id"]) for node in drawing["nodes"]}
    assert {"keep_top_facts", "neutral_relations", "quote_passages"} <= nodes
    loops = {edge["source"] for edge in drawing["edges"] if edge["source"] == edge["target"]}
    assert loops == {"filter_facts", "weigh_relations", "write_answer"}


def test_a_run_answers_as_in_python_with_citations(outcomes: Outcomes, small_workspace: Path) -> None:
    result = result_of(outcomes["defaults"])
    assert "1203" in result["answer"]
    assert tuple(citation["passage_id"] for citation in result["citations"]) == QUESTION_PASSAGES
    assert result["models"]["chat"] == "offline"
    assert result["errors"] == []
    assert result == {**ask(QUESTION, Context(workspace=str(small_workspace))), "timings_ms": result["timings_ms"]}


def test_settings_of_the_form_are_obeyed(outcomes: Outcomes) -> None:
    result = result_of(outcomes["settings"])
    assert (result["mode"], len(result["passages"])) == ("sparse", 2)
    assert {citation["number"] for citation in result["citations"]} == {1}


def test_a_filter_is_obeyed(outcomes: Outcomes) -> None:
    everything, nothing = result_of(outcomes["filter"]), result_of(outcomes["filter of nothing"])
    assert everything["answer"] == result_of(outcomes["defaults"])["answer"]
    assert (nothing["passages"], nothing["errors"][0]["kind"]) == ([], "NothingSelected")


def test_a_workspace_beside_the_default_one_may_be_named(outcomes: Outcomes) -> None:
    assert result_of(outcomes["named workspace"])["passages"][0]["id"] == "lake-sund"


def test_retrieval_is_served_by_itself(outcomes: Outcomes) -> None:
    result = result_of(outcomes["retrieval"])
    assert len(result["passages"]) == 3
    assert "answer" not in result


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_run_fails_with_a_readable_message(outcomes: Outcomes, name: str) -> None:
    message = outcomes[name]
    assert isinstance(message, str)
    assert re.search(REFUSED[name][1], message, re.DOTALL), message
    assert "internal error" not in message


def test_a_thread_goes_on_after_a_refused_question_and_its_state_can_be_edited(server: Server) -> None:
    threads = server.client.threads
    thread = threads.create()["thread_id"]
    assert isinstance(server.run(Case({"question": ""}), thread), str)
    first = result_of(server.run(Case({"question": QUESTION}), thread))
    assert "1203" in first["answer"]
    state = threads.get_state(thread)["values"]
    assert isinstance(state, dict)
    assert state["question"] == QUESTION

    before = next(past for past in threads.get_history(thread, limit=100) if past["next"] == ["seed_graph"])
    none_kept = [{**fact, "kept": False} for fact in first["facts"]]
    fork = threads.update_state(thread, {"facts": none_kept}, as_node="filter_facts", checkpoint=before["checkpoint"])
    forked = server.client.runs.wait(thread, "mara", input=None, checkpoint=fork["checkpoint"])
    assert isinstance(forked, dict)
    assert [seed["text"] for seed in forked["seeds"]["entities"]] == ["Lake Sund"]
    assert len(first["seeds"]["entities"]) > 1


@pytest.mark.slow
def test_a_folder_is_indexed_asked_and_synchronised_and_no_other_can_be_reached(server: Server) -> None:
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
    there = {"workspace": "indexed"}
    first = result_of(server.run(Case({"sources": ["documents"]}, there, "indexing")))["report"]
    assert (first["added"], first["refused"]) == (2, [])
    asked = result_of(server.run(Case({"question": "When was Marn founded?"}, there)))
    assert "1203" in asked["answer"]
    (folder / "kesh.txt").unlink()
    again = result_of(server.run(Case({"sources": ["documents"], "sync": True}, there, "indexing")))["report"]
    assert (again["removed"], again["passages"], again["unchanged"]) == (1, 1, 1)
    for name in ("/etc", "../documents", "documents/../.."):
        refused = server.run(Case({"sources": [name]}, there, "indexing"))
        assert "MARA_SOURCES" in str(refused)
    assert "sources" in str(server.run(Case({}, there, "indexing")))


def test_nothing_else_is_complained_of_in_the_log(server: Server, outcomes: Outcomes) -> None:
    assert len(outcomes) == len(ANSWERED) + len(REFUSED)
    unexpected = [line for line in server.complaints() if not any(expected in line for expected in EXPECTED)]
    assert unexpected == []
