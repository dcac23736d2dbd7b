"""agent-chat-ui itself, built from its packages and driven in Chromium against a real ``langgraph dev``."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from selenium.webdriver.common.keys import Keys

from tests.scripted_server import ScriptedServer, scripted
from tests.workflows.dev_server import Server, dev_server
from tests.workflows.explanation.browser import chromium, served
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION, shown_to_model, well_behaved

pytestmark = pytest.mark.slow

PACKAGE = "create-agent-chat-app@0.1.6"
"""The package that holds the sources of agent-chat-ui, to build with vite or Next.js."""

BUILT_WITHIN_S = 300
MESSAGES = "p.whitespace-pre-wrap, .markdown-content"
FOLLOW_UP, EDITED = "And who founded it?", "And who rules it?"
HE, READINGS = "Where was he born?", ["Where was Duke Orlo born?", "Where was Ada Brandt born?"]
WHOLE = {FOLLOW_UP: "Who founded Marn?", EDITED: "Who rules Marn?", HE: HE}


def built(folder: Path) -> Path:
    """Build the interface in a folder; skip the test where there is no npm, or no registry."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: agent-chat-ui cannot be built")
    try:
        npm_does(npm, folder, "pack", PACKAGE)
        with tarfile.open(next(folder.glob("*.tgz"))) as package:
            package.extractall(folder, filter="data")
        sources = folder / "package" / "templates" / "vite"
        npm_does(npm, sources, "install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund")
    except subprocess.SubprocessError as fault:
        pytest.skip(f"agent-chat-ui cannot be had from a package registry: {getattr(fault, 'stderr', fault)}")
    npm_does(npm, sources, "exec", "--offline", "--", "vite", "build")
    return sources / "dist"


def npm_does(npm: str, folder: Path, *command: str) -> None:
    subprocess.run([npm, *command], cwd=folder, check=True, capture_output=True, text=True, timeout=BUILT_WITHIN_S)


def completes(body: Any) -> str:
    """Reply as a rewriter that knows the questions of this test."""
    asked = shown_to_model(body)["question"]
    choices = READINGS if asked == HE else []
    return json.dumps({"stands_alone": asked not in WHOLE, "question": WHOLE.get(asked, asked), "choices": choices})


class Model:
    """A model whose answers count themselves, and that tries to show a picture of another site."""

    def __init__(self) -> None:
        self.written = 0

    def __call__(self, body: Any) -> str:
        self.written += 1
        return f"Answer {self.written} [1]. ![so](http://evil.example/seen.png)"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with scripted({**well_behaved(), "rewriter": completes, "answerer": Model()}) as server:
        yield server


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(built(tmp_path_factory.mktemp("interface"))) as address:
        yield address


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, small_workspace: Path, model: ScriptedServer, origin: str
) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with dev_server(small_workspace, folder, OPENAI_BASE_URL=model.base_url, MARA_ORIGINS=origin) as running:
        yield running


class Interface(Window):
    """The interface in a window."""

    def say(self, text: str) -> None:
        """Type into the field below the conversation, and press Enter."""
        self.find("form textarea").send_keys(text, Keys.ENTER)

    def shown(self) -> list[str]:
        """Return the messages as they are shown, in their order."""
        messages: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", MESSAGES
        )
        return messages

    def shows(self, *messages: str) -> None:
        """Wait until these messages are shown, and no others."""
        self.until(lambda: [*map(" ".join, map(str.split, self.shown()))] == [*messages])


@pytest.fixture
def chat(server: Server, origin: str, tmp_path: Path) -> Iterator[Interface]:
    with chromium(tmp_path / "profile") as driver:
        driver.get(f"{origin}/?{urlencode({'apiUrl': server.url, 'assistantId': 'chat'})}")
        yield Interface(driver)


def test_it_asks_follows_up_regenerates_and_edits_and_shows_the_sources(chat: Interface) -> None:
    chat.say(QUESTION)
    first = "Answer 1 [1]. Sources [1] Lake Sund · corpus.jsonl"
    chat.shows(QUESTION, first)
    chat.say(FOLLOW_UP)
    chat.shows(QUESTION, first, FOLLOW_UP, "Answer 2 [1]. Sources [1] Marn · corpus.jsonl")
    chat.click("Refresh")
    chat.shows(QUESTION, first, FOLLOW_UP, "Answer 3 [1]. Sources [1] Marn · corpus.jsonl")
    chat.until(lambda: "2 / 2" in chat.text("body"))
    chat.click("Edit")
    chat.find("textarea.focus-visible\\:ring-0").send_keys(Keys.CONTROL, "a")
    chat.press(EDITED)
    chat.click("Submit")
    chat.shows(QUESTION, first, EDITED, "Answer 4 [1]. Sources [1] Marn · corpus.jsonl")
    read: Any = chat.driver.get_log
    assert not [entry for entry in read("performance") if "evil.example" in entry["message"]]


def test_a_question_back_is_answered_by_a_number(chat: Interface, model: ScriptedServer) -> None:
    chat.say(QUESTION)
    chat.until(lambda: len(chat.shown()) == 2 and "Sources" in chat.shown()[1])
    chat.say(HE)
    chat.until(lambda: chat.shown()[-1].endswith("Reply with a number from 1 to 2, or in your own words."))
    chat.say("2")
    chat.until(lambda: "Ada Brandt · corpus.jsonl" in chat.shown()[-1])
    assert shown_to_model(model.requests_of("answerer")[-1].body)["question"] == READINGS[1]
