"""Answers in a real Chromium: as they are written, once they are whole, where they are cut, and where there is none."""

from __future__ import annotations

import pytest

from tests.dictation import Held
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved

pytestmark = pytest.mark.slow

SCROLLED = "return document.getElementById('conversation').scrollTop"
LONG = "\n\n".join(f"**{number}** The town on its shore is Marn, founded in 1203 [1]." for number in range(30))


def dictated(chat_server: ScriptedServer, *pieces: str) -> Held:
    """Let the model write an answer, the last piece when the test says so."""
    held = Held(*pieces)
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=held), ANSWERED]})
    return held


def test_markdown_is_drawn_as_it_is_written(page: Window, chat_server: ScriptedServer) -> None:
    held = dictated(chat_server, "**Marn** is old [1].\n\n| a | b |\n|---|--:|\n| c |", " d |\n\nSo it is.")
    page.ask(QUESTION)
    page.until(lambda: page.all(".draft td"))
    assert page.text(".draft strong") == "Marn"
    assert "**" not in page.text(".draft")
    assert page.text(".draft .citation") == "1"
    assert page.violations() == []
    held.go_on.set()
    assert page.answered(1).text.endswith("So it is.")


def test_who_scrolled_up_stays_there_and_comes_to_the_end_with_a_button(
    page: Window, chat_server: ScriptedServer
) -> None:
    held = dictated(chat_server, LONG, "\n\nEnd [1].")
    page.ask(QUESTION)
    page.until(lambda: len(page.all(".draft > p")) == 30)
    assert page.find(".asked").rect["y"] >= 0
    page.run("document.getElementById('conversation').scrollTop = 40")
    page.find("#to-end")
    assert page.violations() == []
    held.go_on.set()
    page.answered(1)
    assert page.run(SCROLLED) == 40
    page.click("To the end")
    page.until(lambda: not page.find("#conversation").find_elements("css selector", ".draft"))
    page.until(lambda: not page.run("return document.getElementById('to-end').checkVisibility()"))
    assert page.find(".tools").is_displayed()
    assert page.focused() == "conversation"


def test_an_answer_that_reached_its_limit_says_so_and_goes_on(page: Window, chat_server: ScriptedServer) -> None:
    cut = Reply("It was founded in 1203 [1]. Duke", finish_reason="length")
    chat_server.script({**well_behaved(), "answerer": [cut, ANSWERED]})
    page.ask(QUESTION)
    assert page.answered(1).text.endswith("Duke")
    assert page.text(".remark") == "The answer stops here: the model reached its length limit."
    assert page.violations() == []
    page.click("Go on")
    page.until(lambda: not page.all(".remark") and page.answered(1))
    assert page.questions() == [QUESTION]
    assert [request.body["max_tokens"] for request in chat_server.requests_of("answerer")] == [320, 640]
