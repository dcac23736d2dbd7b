"""The packaged model on llama.cpp: it answers, keeps to a schema, and ends with the process that started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel, Field

from agents.chat.agent import json_format
from agents.chat.local_model import LocalChatModel, LocalServer, packaged_file, server_of
from tests.model.conftest import SILENCE_S
from workflows.context import Context
from workflows.mara import graph

pytestmark = pytest.mark.model

QUESTION = "When was Nissan founded?"
NAME = "local:SmolLM2-135M-Instruct.Q4_1"

STARTER = """
import sys
from agents.chat.local_model import packaged_file, server_of
server = server_of(packaged_file(), "local:model")
print(server.process.pid, server.address.port, flush=True)
sys.stdin.read()
"""


class Colour(BaseModel):
    name: str = Field(max_length=20)
    warm: bool


def asked(text: str) -> list[HumanMessage]:
    return [HumanMessage(text)]


@pytest.fixture
def running(local_model: LocalChatModel) -> LocalServer:
    return server_of(packaged_file(), local_model.name)


def test_a_question_ends_with_an_answer_or_a_refusal_and_its_model_calls_are_counted(
    local_model: LocalChatModel, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARA_CHAT_MODEL", "local")
    monkeypatch.setenv("MARA_TIMEOUT_S", str(SILENCE_S))
    result = graph.invoke({"question": QUESTION}, context=Context(workspace=str(sample)))
    assert result["answer"].strip()
    assert result["models"]["chat"] == NAME
    assert result["usage"]["calls"] >= 3
    assert result["usage"]["prompt_tokens"] > 1_000


def test_a_request_without_its_key_is_refused(running: LocalServer) -> None:
    assert running.address.url.startswith("http://127.0.0.1:")
    with httpx.Client(base_url=running.address.url, trust_env=False) as client:
        assert client.post("/chat/completions", json={"messages": []}).status_code == 401


def test_a_reply_keeps_to_the_schema(local_model: LocalChatModel) -> None:
    reply = local_model.ask(
        asked("Describe the colour red as JSON."), json_format("Colour", Colour.model_json_schema()), max_tokens=100
    )
    assert not reply.cut
    assert set(json.loads(reply.text())) == {"name", "warm"}
    Colour.model_validate_json(reply.text())


def one_short_request(sample: Path) -> Context:
    """Return the settings of a question that asks the model once, about one passage."""
    return Context(
        workspace=str(sample),
        model="local",
        filter_facts=False,
        weigh_relations=False,
        max_json_retries=0,
        answer_passages=1,
    )


def _ask(question: str, sample: Path) -> Any:
    return graph.invoke({"question": question}, context=one_short_request(sample))


def test_a_server_that_dies_in_mid_reply_is_started_again_and_the_question_ends(
    running: LocalServer, sample: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked_once = pool.submit(_ask, "Who founded Nissan, and when?", sample)
        _await_work(running)
        running.process.kill()
        assert asked_once.result()["answer"].strip()
    assert running.process.poll() is not None
    assert server_of(packaged_file(), NAME).process.poll() is None


@pytest.mark.parametrize("how", ["its input ends", "SIGTERM", "SIGINT", "SIGKILL"])
def test_the_server_is_gone_when_the_process_that_started_it_is(local_model: LocalChatModel, how: str) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert starter.stdout
    pid, port = map(int, starter.stdout.readline().split())
    descriptor = os.pidfd_open(pid)
    try:
        if how == "its input ends":
            starter.communicate()
        else:
            starter.send_signal(signal.Signals[how])
            starter.wait()
        assert _ends(descriptor), "the server outlives the process that started it"
    finally:
        os.close(descriptor)
        starter.communicate()
    with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as client:
        client.get(f"http://127.0.0.1:{port}/health")


def _ends(descriptor: int) -> bool:
    """Wait for a process that is no child of this one."""
    import select

    return bool(select.select([descriptor], [], [], SILENCE_S)[0])


def test_it_stops_at_once_in_the_middle_of_a_reply(local_model: LocalChatModel, tmp_path: Path) -> None:
    from agents.chat.local_model import open_local_model, stop_servers

    other = tmp_path / "other.gguf"
    other.symlink_to(packaged_file())
    model = open_local_model(f"local:{other}", 0.0, timeout_s=SILENCE_S, thinking_tokens=None)
    server = server_of(other, model.name)
    faults: list[BaseException] = []

    def ask() -> None:
        try:
            model.ask(asked("Write a very long story about a fox."), max_tokens=4_000)
        except Exception as fault:
            faults.append(fault)

    thread = threading.Thread(target=ask)
    thread.start()
    _await_work(server)
    stop_servers()
    thread.join(SILENCE_S)
    assert not thread.is_alive()
    assert server.process.poll() is not None
    assert [type(fault).__name__ for fault in faults] == ["TransportFault"]


def _await_work(server: LocalServer) -> None:
    url = server.address.url.removesuffix("/v1") + "/slots"
    headers = {"Authorization": f"Bearer {server.key.get_secret_value()}"}
    with httpx.Client(trust_env=False, timeout=SILENCE_S) as client:
        while not any(slot["is_processing"] for slot in client.get(url, headers=headers).json()):
            pass
