"""The server goes away and comes back: the page says so, keeps what was typed, and offers what was cut again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.keys import Keys

from tests.dictation import Held
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.explanation.browser import chromium
from tests.workflows.serving.page.site import new_id
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from workflows.access.identity import LOCAL
from workflows.conversation.kept import ANSWERED as IS_ANSWERED
from workflows.conversation.kept import Conversations

pytestmark = pytest.mark.slow


class Server:
    """A `mara serve` that can be killed and started again on its port."""

    def __init__(self, workspace: Path, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}/"
        self._options = ["-w", str(workspace), "--conversations", str(folder / "conversations")]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("mara")), "serve", "--port", str(self._port), *self._options]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ)
        assert self._process.stderr
        assert self.address in self._process.stderr.readline()

    def stop(self, how: signal.Signals = signal.SIGKILL) -> int:
        assert self._process
        self._process.send_signal(how)
        code = self._process.wait(30)
        assert self._process.stderr
        self._process.stderr.close()
        self._process = None
        return code

    def signal(self, what: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(what)

    def is_up(self) -> bool:
        return self._process is not None


@pytest.fixture
def server(small_workspace: Path, tmp_path: Path) -> Iterator[Server]:
    started = Server(small_workspace, tmp_path)
    started.start()
    yield started
    if started.is_up():
        started.stop()


@pytest.fixture
def page(server: Server, tmp_path: Path) -> Iterator[Window]:
    with chromium(tmp_path / "profile") as driver:
        window = Window(driver)
        window.open(server.address)
        yield window


def test_the_page_waits_for_the_server_and_keeps_what_was_typed(page: Window, server: Server) -> None:
    page.answer_to(QUESTION)
    server.stop()
    page.find("#question").send_keys("Who built the Tarn Dam?")
    page.until(lambda: "The server does not answer" in page.text("#trouble"))
    page.press(Keys.ENTER)
    page.until(lambda: page.run("return document.getElementById('question').value") == "Who built the Tarn Dam?")
    server.start()
    page.until(lambda: not page.run("return document.getElementById('trouble').checkVisibility()"))
    page.driver.refresh()
    page.answered(1)
    page.until(lambda: page.run("return document.getElementById('question').value") == "Who built the Tarn Dam?")
    assert page.questions() == [QUESTION]
    page.find("#question").send_keys(Keys.ENTER)
    page.answered(2)
    assert page.questions() == [QUESTION, "Who built the Tarn Dam?"]


@pytest.fixture
def slow_model(chat_server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    def endlessly() -> Iterator[str]:
        yield "It was"
        chat_server.released.wait(60)

    monkeypatch.setenv("MARA_TIMEOUT_S", "60")
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=endlessly()), ANSWERED]})
    return chat_server


def test_a_turn_that_was_cut_is_offered_again_and_not_doubled(
    slow_model: ScriptedServer, page: Window, server: Server
) -> None:
    page.ask(QUESTION)
    page.until(lambda: page.all(".draft") and page.text(".draft") == "It was")
    server.stop()
    page.until(lambda: "The server does not answer" in page.text("#trouble"))
    assert page.text(".draft") == "It was"
    server.start()
    page.until(lambda: not page.run("return document.getElementById('trouble').checkVisibility()"))
    assert page.questions() == [QUESTION]
    assert page.text(".broken").startswith("The answer was cut off")
    assert page.text(".draft") == "It was"
    page.click("Ask again")
    assert page.answered(1).text.startswith("It was founded in 1203")
    page.driver.refresh()
    page.answered(1)
    assert page.questions() == [QUESTION]


def test_a_server_that_is_to_end_writes_answers_that_no_window_waits_for(
    chat_server: ScriptedServer, server: Server, tmp_path: Path
) -> None:
    held, turn = Held("It was founded", " in 1203 [1]."), new_id()
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=held)]})
    body = {"conversation": new_id(), "turn": turn, "question": QUESTION}
    with httpx.stream("POST", f"{server.address}page/api/turns", json=body, timeout=30) as reply:
        assert any('"kind": "token"' in line for line in reply.iter_lines())

    def go_on_once_it_is_closed() -> None:
        while True:
            try:
                httpx.get(f"{server.address}health")
            except httpx.TransportError:
                break
        held.go_on.set()

    going_on = threading.Thread(target=go_on_once_it_is_closed)
    going_on.start()
    assert server.stop(signal.SIGTERM) == 0
    going_on.join()
    assert Conversations(tmp_path / "conversations").turn(LOCAL.owner, turn).state == IS_ANSWERED
