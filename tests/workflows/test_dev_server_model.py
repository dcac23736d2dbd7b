"""``langgraph dev`` over a chat model: its tokens are streamed, its retries seen, its runs traced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.schema import StreamMode

from tests.scripted_server import ScriptedServer, scripted
from tests.trace_server import TraceServer
from tests.workflows.dev_server import Server, dev_server
from tests.workflows.ragenta_world import TWO_THINGS
from tests.workflows.ragenta_world import well_behaved as well_behaved_in_ragenta
from tests.workflows.small_world import ANSWERED, MALFORMED, MANAGED, QUESTION, well_behaved

pytestmark = pytest.mark.slow

PASSWORD = "secret-of-the-endpoint"
MODES: list[StreamMode] = ["custom", "messages-tuple", "values"]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with scripted(well_behaved()) as server:
        yield server


@pytest.fixture(scope="module")
def traces() -> Iterator[TraceServer]:
    with TraceServer() as server:
        yield server


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, small_workspace: Path, model: ScriptedServer, traces: TraceServer
) -> Iterator[Server]:
    environment = {
        "OPENAI_BASE_URL": model.base_url.replace("http://", f"http://me:{PASSWORD}@"),
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": traces.url,
        "LANGSMITH_API_KEY": "none",
    }
    with dev_server(small_workspace, tmp_path_factory.mktemp("server"), **environment) as running:
        yield running


def stream(server: Server, question: str = QUESTION, graph: str = "mara", **context: Any) -> dict[str, list[Any]]:
    """What a run on a thread of its own streams, by mode; of subgraphs what their nodes say of their work."""
    thread = server.client.threads.create()["thread_id"]
    parts: dict[str, list[Any]] = {}
    asked = server.client.runs.stream(
        thread, graph, input={"question": question}, context=context, stream_mode=MODES, stream_subgraphs=True
    )
    for part in asked:
        parts.setdefault(part.event, []).append(part.data)
    assert "error" not in parts, parts["error"]
    return parts


def answer_tokens(parts: dict[str, list[Any]]) -> list[str]:
    """The pieces of the answer as they came."""
    messages = (message for message, about in parts["messages"] if about["langgraph_node"] == "write_answer")
    return [message["content"] for message in messages if message["content"]]


def test_the_answer_comes_token_by_token(server: Server, model: ScriptedServer) -> None:
    model.script(well_behaved())
    parts = stream(server)
    tokens = answer_tokens(parts)
    assert len(tokens) > 3
    assert "".join(tokens) == parts["values"][-1]["answer"] == ANSWERED


def test_a_malformed_reply_is_seen_as_another_round_of_its_node(server: Server, model: ScriptedServer) -> None:
    model.script({**well_behaved(), "manager": [MALFORMED, MANAGED]})
    parts = stream(server)
    rounds = [told for told in parts["custom"] if told["node"] == "weigh_relations" and told["event"] != "started"]
    assert [(told["event"], told["attempt"]) for told in rounds] == [("malformed", 1), ("finished", 2)]
    assert [fault["kind"] for fault in parts["values"][-1]["errors"]] == ["MalformedReply"]


def test_ragenta_judges_checks_and_follows_up(server: Server, model: ScriptedServer) -> None:
    model.script(well_behaved_in_ragenta())
    parts = stream(server, TWO_THINGS, "ragenta", top_k=2, follow_ups={"passages": 2})
    result = parts["values"][-1]
    assert [follow_up["outcome"] for follow_up in result["follow_ups"]] == ["found"]
    assert result["coverage"] == "FULLY ANSWERED"
    assert result["errors"] == []
    assert {len(model.requests_of(role)) for role in ("final predictor", "claim judge")} == {2}
    told = [each for event, data in parts.items() if event.startswith("custom") for each in data]
    ended = [each["node"] for each in told if each["event"] == "finished"]
    assert ended.count("score_passage") == ended.count("predict_answer") == len(result["judgements"])


def test_the_log_complains_of_nothing_but_that_the_tests_langsmith_is_a_simple_one(server: Server) -> None:
    assert [line for line in server.complaints() if "langsmith.client" not in line] == []


def test_two_runs_at_once_keep_apart(server: Server, model: ScriptedServer) -> None:
    model.script(well_behaved())
    questions = [QUESTION, "Who built the Tarn Dam?"]
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda question: stream(server, question), questions))
    assert [parts["values"][-1]["question"] for parts in both] == questions
    assert [(parts["values"][-1]["generation"]) for parts in both] == [both[0]["values"][-1]["generation"]] * 2
    assert both[0]["values"][-1]["passages"] != both[1]["values"][-1]["passages"]


def test_its_runs_are_traced_with_what_they_were_about(
    server: Server, model: ScriptedServer, traces: TraceServer
) -> None:
    model.script(well_behaved())
    result = stream(server)["values"][-1]
    root = traces.wait_for_root(result)
    assert (root.name, root.metadata["mara_workspace"]) == ("mara", "workspace")
    assert root.metadata["mara_beta"] == result["relation_factors"]
    assert {step.run_type for step in root.walk()} == {"chain", "embedding", "llm", "retriever", "tool"}


def test_the_password_of_the_models_server_stands_in_no_state_no_log_and_no_trace(
    server: Server, model: ScriptedServer, traces: TraceServer
) -> None:
    model.script(well_behaved())
    thread = server.client.threads.create()["thread_id"]
    result = server.client.runs.wait(thread, "mara", input={"question": QUESTION})
    assert isinstance(result, dict)
    traces.wait_for_root(result)
    assert all(request.headers["authorization"].startswith("Basic ") for request in model.requests)
    history = json.dumps(server.client.threads.get_history(thread, limit=100))
    files = [path.read_bytes() for path in server.sources.rglob("*") if path.is_file()]
    for told in (history.encode(), server.log.read_bytes(), *files, *traces.bodies):
        assert PASSWORD.encode() not in told
