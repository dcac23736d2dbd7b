"""``langgraph dev`` serves the conversation: the requests of agent-chat-ui, Studio, A2A, MCP and other applications.

The server has a (scripted) chat model; runs with ``model: offline`` do without it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph

from tests.docs.pages import ROOT, blocks, read
from tests.scripted_server import ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER
from tests.workflows.dev_server import Server
from tests.workflows.small_world import ANSWERED, QUESTION, QUESTION_PASSAGES, shown_to_model
from tests.workflows.test_dev_server import EXPECTED
from workflows.conversation.messages import METADATA
from workflows.conversation.settings import ChatContext

OFFLINE = {"model": "offline"}
FOLLOW_UP, HE = FOUNDER, BIRTH

Message = dict[str, Any]

SHOWN = f"{ANSWERED}\n\n**Sources**\n\n- [1] Lake Sund · `corpus.jsonl`"
SHOWN_NEXT = SHOWN.replace("Lake Sund", "Marn")


@pytest.fixture
def server(dev: Server) -> Server:
    return dev


@pytest.fixture
def model(dev_model: ScriptedServer) -> ScriptedServer:
    return dev_model


class ChatUi:
    """A thread as agent-chat-ui uses it: the requests of its hook ``useStream``."""

    def __init__(self, server: Server, **context: Any) -> None:
        self.threads, self.runs = server.client.threads, server.client.runs
        self.thread = self.threads.create()["thread_id"]
        self.context = context
        self.events: list[str] = []

    def submit(self, given: Any = None, **how: Any) -> dict[str, Any]:
        """Run as a submission of the interface does; return the last state that it is shown."""
        shown: dict[str, Any] = {}
        stream = self.runs.stream(
            self.thread,
            "chat",
            input=given,
            context=self.context,
            stream_mode=["values"],
            stream_subgraphs=True,
            stream_resumable=True,
            **how,
        )
        for part in stream:
            self.events.append(part.event)
            assert part.event != "error", part.data
            if part.event == "values":
                shown = {**shown, **part.data}
        return shown

    def say(self, text: str, **how: Any) -> dict[str, Any]:
        """Send what the user typed: blocks, and beside them a context that the interface keeps for itself."""
        message = {"id": str(uuid4()), "type": "human", "content": [{"type": "text", "text": text}]}
        return self.submit({"messages": [message], "context": {"artifact": 1}}, **how)

    def before(self, message_id: str) -> Any:
        """The parent of the first checkpoint that holds a message: where its branch begins."""
        pasts = reversed(self.threads.get_history(self.thread, limit=1000))
        return next(past["parent_checkpoint"] for past in pasts if message_id in ids_of(past["values"]))

    @property
    def messages(self) -> list[Message]:
        values: Any = self.threads.get_state(self.thread)["values"]
        return list(values["messages"])

    @property
    def interrupt(self) -> Any:
        (waiting,) = self.threads.get_state(self.thread)["interrupts"]
        return waiting["value"]


def ids_of(values: Any) -> list[str]:
    return [message["id"] for message in (values or {}).get("messages", [])]


def text_of(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def metadata_of(message: Message) -> dict[str, Any]:
    metadata: dict[str, Any] = message["response_metadata"][METADATA]
    return metadata


def test_the_schemas_are_those_of_a_chat(server: Server) -> None:
    (assistant,) = server.client.assistants.search(graph_id="chat")
    schemas: Any = server.client.assistants.get_schemas(assistant["assistant_id"])
    for part in ("input_schema", "output_schema", "state_schema"):
        assert list(schemas[part]["properties"]) == ["messages"], part
    form = schemas["context_schema"]["properties"]
    assert form == ChatContext.model_json_schema()["properties"]
    assert all(setting["langgraph_nodes"] == ["answer"] for setting in form.values())
    assert all(setting["title"] and setting["description"] for setting in form.values())


def test_agent_chat_ui_is_shown_the_conversation_of_which_the_thread_keeps_messages_alone(server: Server) -> None:
    chat = ChatUi(server, **OFFLINE)
    shown = chat.say(QUESTION)
    assert [message["type"] for message in shown["messages"]] == ["human", "ai"]
    assert "1203" in text_of(shown["messages"][-1])
    sources = metadata_of(shown["messages"][-1])["sources"]
    assert [source["passage_id"] for source in sources] == [*QUESTION_PASSAGES[::-1]]
    assert set(chat.events) == {"metadata", "values"}
    for past in chat.threads.get_history(chat.thread, limit=100):
        assert not past["values"] or list(past["values"]) == ["messages"]
        assert past["checkpoint"]["checkpoint_ns"] == ""
    chat.context = {**OFFLINE, "workflow": "ragenta", "top_k": 3, "where": {"source": "other"}}
    metadata = metadata_of(chat.say(FOLLOW_UP)["messages"][-1])
    assert (metadata["workflow"], metadata["answer_kind"]) == ("ragenta", "refusal")
    assert any("OutsideFilter" in note for note in metadata["notes"])


def test_a_follow_up_is_completed_from_the_thread_and_regenerated_and_edited_from_the_turns_before(
    server: Server, model: ScriptedServer
) -> None:
    chat = ChatUi(server)
    chat.say(QUESTION)
    second = chat.say(FOLLOW_UP)["messages"][-1]
    assert metadata_of(second)["understood"]["asked"] == FOLLOW_UP
    chat.say("And why?")
    asked = len(model.requests_of("rewriter"))

    chat.submit(None, checkpoint=chat.before(second["id"]))
    (again,) = model.requests_of("rewriter")[asked:]
    assert [turn["question"] for turn in shown_to_model(again.body)["turns"]] == [QUESTION]
    assert [text_of(message) for message in chat.messages] == [QUESTION, SHOWN, FOLLOW_UP, SHOWN_NEXT]
    assert chat.messages[-1]["id"] != second["id"]

    chat.say("And who drowned there?", checkpoint=chat.before(chat.messages[2]["id"]))
    *_, edited = model.requests_of("rewriter")
    assert [turn["question"] for turn in shown_to_model(edited.body)["turns"]] == [QUESTION]
    assert [text_of(message) for message in chat.messages[::2]] == [QUESTION, "And who drowned there?"]


def test_a_question_of_several_readings_is_an_interrupt_that_a_decision_or_a_message_resumes(server: Server) -> None:
    chat = ChatUi(server)
    chat.say(QUESTION)
    shown = chat.say(HE)
    assert metadata_of(shown["messages"][-1])["answer_kind"] == "clarification"
    assert chat.threads.get(chat.thread)["status"] == "interrupted"
    (action,) = chat.interrupt["action_requests"]
    edited = {"type": "edit", "edited_action": {"name": action["name"], "args": {"question": "2"}}}
    shown = chat.submit({}, command={"resume": {"decisions": [edited]}})
    assert metadata_of(shown["messages"][-1])["question"] == BIRTHS[1]
    assert chat.threads.get(chat.thread)["status"] == "idle"
    chat.say(HE)
    assert metadata_of(chat.say("1")["messages"][-1])["question"] == BIRTHS[0]
    assert chat.threads.get(chat.thread)["status"] == "idle"


def test_the_answer_comes_token_by_token_without_subgraphs_and_nothing_else_is_chat(server: Server) -> None:
    thread = server.client.threads.create()["thread_id"]
    given: Any = {"messages": QUESTION}
    parts = list(server.client.runs.stream(thread, "chat", input=given, stream_mode=["messages-tuple", "custom"]))
    pieces = [part.data[0] for part in parts if part.event == "messages"]
    assert "".join(piece["content"] for piece in pieces) == SHOWN
    assert len(pieces) > 4
    assert len({piece["id"] for piece in pieces}) == 1
    assert metadata_of(pieces[-1])["sources"]
    nodes = {part.data["node"] for part in parts if part.event == "custom"}
    assert {"filter_facts", "walk_graph", "write_answer"} <= nodes


def test_the_main_workflow_draws_no_internal_reply_as_chat(server: Server) -> None:
    thread = server.client.threads.create()["thread_id"]
    given = {"question": QUESTION}
    stream = server.client.runs.stream(thread, "mara", input=given, stream_mode="messages-tuple", stream_subgraphs=True)
    pieces = [part.data for part in stream if part.event.startswith("messages")]
    assert "".join(message["content"] for message, _ in pieces) == ANSWERED
    assert {about["langgraph_node"] for _, about in pieces} == {"write_answer"}


REFUSED: list[tuple[Any, Any, str]] = [
    ({}, {}, "ends without a question.*Send a message"),
    ({"messages": [5]}, {}, "messages cannot be read"),
    ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, {}, "no text, but image"),
    ({"messages": "x" * 1_000_000}, {}, "1,000,000 characters"),
    ({"messages": QUESTION}, {"n": 1}, "mara has no setting n"),
    ({"messages": QUESTION}, {"walk": {"damping": 5}}, "damping.*less than or equal to 0.99"),
    ({"messages": QUESTION}, {"workspace": "../small"}, "not the name of a workspace"),
]


def test_what_cannot_be_asked_fails_with_a_readable_message_and_the_thread_goes_on(server: Server) -> None:
    thread = server.client.threads.create()["thread_id"]
    for given, context, says in REFUSED:
        with pytest.raises(Exception, match=rf"(?s){says}") as refused:
            server.client.runs.wait(thread, "chat", input=given, context=context)
        assert "internal error" not in str(refused.value)
    after: Any = {"messages": QUESTION}
    answered: Any = server.client.runs.wait(thread, "chat", input=after, context=OFFLINE)
    assert "1203" in text_of(answered["messages"][-1])


class A2A:
    """The conversation as an agent of the A2A protocol."""

    def __init__(self, server: Server) -> None:
        (assistant,) = server.client.assistants.search(graph_id="chat")
        self.url = f"{server.url}/a2a/{assistant['assistant_id']}"

    def request(self, method: str, text: str, **place: str) -> dict[str, Any]:
        parts = [{"kind": "text", "text": text}]
        message = {"role": "user", "messageId": str(uuid4()), "parts": parts, **place}
        return {"jsonrpc": "2.0", "id": "1", "method": method, "params": {"message": message}}

    def send(self, text: str, **place: str) -> dict[str, Any]:
        """Send a message; return the task that came of it."""
        reply = httpx.post(self.url, json=self.request("message/send", text, **place), headers=JSON, timeout=60)
        result: dict[str, Any] = reply.json()["result"]
        return result

    def stream(self, text: str, **place: str) -> list[dict[str, Any]]:
        """Send a message; return the events of its task as they came."""
        request = self.request("message/stream", text, **place)
        with httpx.stream("POST", self.url, json=request, headers=EVENTS, timeout=60) as reply:
            lines = [line.removeprefix("data:") for line in reply.iter_lines() if line.startswith("data:")]
        return [json.loads(line)["result"] for line in lines]


JSON, EVENTS = {"accept": "application/json"}, {"accept": "text/event-stream"}


def said_in(artifact: Any) -> str:
    return "".join(str(part.get("text", "")) for part in artifact["parts"])


def test_an_agent_of_a2a_talks_on_in_its_context_is_asked_back_and_replies_in_words(
    server: Server, model: ScriptedServer
) -> None:
    agent = A2A(server)
    first = agent.send(QUESTION)
    assert first["status"]["state"] == "completed"
    assert said_in(first["artifacts"][0]) == SHOWN
    context = first["contextId"]
    events = agent.stream(FOLLOW_UP, contextId=context)
    *_, asked = model.requests_of("rewriter")
    assert [turn["question"] for turn in shown_to_model(asked.body)["turns"]] == [QUESTION]
    working = [each["status"] for each in events if each["kind"] == "status-update" and "message" in each["status"]]
    assert len(working) > 3
    assert said_in(next(each["artifact"] for each in events if each["kind"] == "artifact-update")) == SHOWN_NEXT
    assert events[-1]["status"]["state"] == "completed"
    task = agent.send(HE, contextId=context)
    assert task["status"]["state"] == "input-required"
    assert "What do you mean" in json.dumps(task)
    agent.send("2", contextId=context, taskId=task["id"])
    state: Any = server.client.threads.get_state(context)["values"]
    assert metadata_of(state["messages"][-1])["question"] == BIRTHS[1]


def call_mcp(server: Server, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    result: dict[str, Any] = httpx.post(f"{server.url}/mcp", json=request, headers=JSON, timeout=60).json()["result"]
    return result


def test_the_servers_mcp_has_the_conversation_as_a_tool(server: Server) -> None:
    tools = {tool["name"]: tool for tool in call_mcp(server, "tools/list", {})["tools"]}
    assert tools["chat"]["inputSchema"]["properties"]["messages"]["type"] == "string"
    reply = call_mcp(server, "tools/call", {"name": "chat", "arguments": {"messages": QUESTION}})
    assert json.dumps(SHOWN, ensure_ascii=False)[1:-1] in reply["content"][0]["text"]
    history = [("user", QUESTION), ("assistant", ANSWERED), ("user", FOLLOW_UP)]
    messages = [{"role": role, "content": text} for role, text in history]
    reply = call_mcp(server, "tools/call", {"name": "chat", "arguments": {"messages": messages}})
    assert "Who founded Marn?" in reply["content"][0]["text"]


def test_it_is_a_node_of_another_application(server: Server) -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("documents", RemoteGraph("chat", url=server.url))
    builder.add_edge(START, "documents")
    given: Any = {"messages": QUESTION}
    answer = builder.compile().invoke(given)["messages"][-1]
    assert answer.content == SHOWN
    assert metadata_of({"response_metadata": answer.response_metadata})["workflow"] == "mara"


@pytest.mark.slow
def test_the_documented_examples_run(server: Server, tmp_path: Path, small_workspace: Path) -> None:
    page = read(ROOT / "docs" / "chat.md")
    code = "\n".join(block.body for block in blocks(page) if block.kind == "python" and "/v1" not in block.body)
    there = code.replace("http://127.0.0.1:2024", server.url).replace("When was Nissan founded?", QUESTION)
    there = re.sub(r'"\.mara-demo"', repr(str(small_workspace)), there)
    done = subprocess.run([sys.executable, "-c", there], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("1203") >= 3


def test_nothing_else_is_complained_of_in_the_log(server: Server) -> None:
    assert [line for line in server.complaints() if not any(each in line for each in EXPECTED)] == []
