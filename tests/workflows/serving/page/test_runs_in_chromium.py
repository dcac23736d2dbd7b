"""Several questions and windows in a real Chromium: an answer goes on behind what is shown, and comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tests.dictation import Held
from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved

pytestmark = pytest.mark.slow

OTHER, THIRD = "Who built the Tarn Dam?", "When was Duke Orlo born?"
FIRST, REST = "It was founded", " in 1203 [1]."


@pytest.fixture
def held(chat_server: ScriptedServer) -> Iterator[Held]:
    """The first answer, whose last words come when the test says so; others come at once."""
    pieces = Held(FIRST, REST)
    chat_server.script({**well_behaved(), "answerer": [Reply("", pieces=pieces), ANSWERED]})
    yield pieces
    pieces.go_on.set()


def threads(page: Window) -> list[tuple[str, bool]]:
    """Return the titles in the list of conversations, each with whether it is marked as being answered."""
    listed = page.run(
        "return [...document.querySelectorAll('#thread-list a')]"
        ".map((each) => [each.title, Boolean(each.querySelector('.working'))])"
    )
    return [(title, is_marked) for title, is_marked in listed]


def choose(page: Window, title: str) -> None:
    page.until(
        lambda: page.run('return document.querySelector(`#thread-list a[title="${arguments[0]}"]`)', title)
    ).click()


def is_running(page: Window) -> bool:
    return bool(page.until(lambda: page.all(".draft") and page.text(".draft") == FIRST))


def test_another_conversation_is_shown_renamed_and_deleted_while_an_answer_runs_and_that_one_comes_back(
    page: Window, held: Held, chat_server: ScriptedServer
) -> None:
    chat_server.script({**well_behaved(), "answerer": [ANSWERED, Reply("", pieces=held), ANSWERED]})
    page.answer_to(OTHER)
    page.click("New conversation")
    page.ask(QUESTION)
    assert is_running(page)
    choose(page, OTHER)
    page.answered(1)
    assert (page.text("#title"), page.questions()) == (OTHER, [OTHER])
    assert not page.run("return document.getElementById('stop').checkVisibility()")
    page.click("Rename")
    page.find("#new-title").clear()
    page.find("#new-title").send_keys("Dams", Keys.ENTER)
    page.until(lambda: ("Dams", False) in threads(page))
    page.click("Delete")
    page.click("Delete", "#delete-dialog")
    page.until(lambda: threads(page) == [(QUESTION, True)])
    assert page.focused() == "question"
    choose(page, QUESTION)
    assert is_running(page)
    assert (page.text("#title"), page.questions()) == (QUESTION, [QUESTION])
    assert page.find("#stop").is_displayed()
    held.go_on.set()
    assert page.answered(1).text.startswith("It was founded in 1203")


def test_what_was_typed_and_the_place_stay_with_their_conversation(page: Window, chat_server: ScriptedServer) -> None:
    chat_server.script({**well_behaved(), "answerer": ["\n\n".join(["It was founded in 1203 [1]."] * 60)]})
    page.answer_to(QUESTION)
    page.run("document.getElementById('conversation').scrollTop = 120")
    page.find("#question").send_keys("half a thou")
    page.click("New conversation")
    page.answer_to(OTHER)
    choose(page, QUESTION)
    page.until(lambda: page.questions() == [QUESTION])
    assert page.run("return document.getElementById('question').value") == "half a thou"
    assert page.run("return document.getElementById('conversation').scrollTop") == 120


def test_an_answer_goes_on_while_the_page_is_loaded_again(page: Window, held: Held) -> None:
    page.ask(QUESTION)
    assert is_running(page)
    page.driver.refresh()
    assert is_running(page)
    assert (page.text("#title"), page.questions()) == (QUESTION, [QUESTION])
    assert "Write answer" in page.text(".steps summary")
    held.go_on.set()
    assert page.answered(1).text.startswith("It was founded in 1203")


def test_a_question_in_a_conversation_that_was_deleted_elsewhere_comes_back_and_is_asked_in_a_new_one(
    page: Window, chat_server: ScriptedServer
) -> None:
    chat_server.script(well_behaved())
    page.answer_to(QUESTION)
    conversation = page.driver.current_url.rpartition("/")[2]
    page.run("for (let each = 0; each < 1000; each += 1) clearInterval(each);")  # The page looks for nothing by itself.
    page.run("return fetch(`api/conversations/${arguments[0]}`, {method: 'DELETE'})", conversation)
    page.ask(OTHER)
    page.until(lambda: "There is no such conversation" in page.text("#trouble"))
    page.until(lambda: page.run("return document.getElementById('question').value") == OTHER)
    assert (page.questions(), threads(page)) == ([], [])
    page.find("#question").send_keys(Keys.ENTER)
    page.answered(1)
    assert (page.questions(), threads(page)) == ([OTHER], [(OTHER, False)])
    page.complaints()  # The page looked for the deleted conversation.


@pytest.mark.parametrize("width", [1360, 390])
def test_back_closes_the_panel_before_it_leaves(page: Window, width: int) -> None:
    page.answer_to(QUESTION)
    page.click("New conversation")
    page.until(lambda: page.questions() == [])
    page.answer_to(OTHER)
    page.resize(width, 740)
    for _ in range(2):
        opener = page.all(".turn .citation")[0]
        opener.click()
        page.find(".passage")
        page.driver.back()
        page.until(lambda: not page.all("#panel:not([hidden])"))
        assert page.questions() == [OTHER]
        assert page.driver.switch_to.active_element == opener
    page.all(".turn .citation")[0].click()
    page.find(".passage")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.run("return history.state?.covered"))
    page.driver.back()
    page.until(lambda: page.questions() == [QUESTION])
