"""``langgraph dev`` serves the conversation: the requests of agent-chat-ui, Studio, A2A, MCP and other applications.

The server has a (scripted) chat model; runs with ``model: offline`` do without it.
"""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.scripted_server import ScriptedServer
from tests.workflows.conversing import BIRTH, BIRTHS, FOUNDER
from tests.workflows.dev_server import Server
from tests.workflows.small_world import ANSWERED, QUESTION, QUESTION_PASSAGES, shown_to_model
from tests.workflows.test_dev_server import EXPECTED
from workflows.conversation.messages import METADATA

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


def text_of(message: Message) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def metadata_of(message: Message) -> dict[str, Any]:
    metadata: dict[str, Any] = message["response_metadata"][METADATA]
    return metadata


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


def test_nothing_else_is_complained_of_in_the_log(server: Server) -> None:
    assert [line for line in server.complaints() if not any(each in line for each in EXPECTED)] == []
