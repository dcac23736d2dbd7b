"""Questions that are edited, and the room on the screen, in a real Chromium."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.test_runs_in_chromium import second_window
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved

pytestmark = pytest.mark.slow

OTHER, THIRD, EDITED = "Who built the Tarn Dam?", "Who was Ada Brandt?", "When was Duke Orlo born?"
SIZES = ((1400, 860), (1024, 768), (390, 780))


def edit(page: Window, turn: int, words: str) -> None:
    """Ask a turn in other words."""
    page.all(".turn")[turn].find_element("css selector", "[aria-label='Edit this question']").click()
    page.find(".correction textarea").clear()
    page.find(".correction textarea").send_keys(words, Keys.ENTER)


def versions(page: Window) -> list[str]:
    shown: list[str] = page.run(
        "return [...document.querySelectorAll('.versions')].map((each) => each.textContent.replace(/[‹›]/g, '').trim())"
    )
    return shown


@pytest.fixture
def two_turns(page: Window) -> None:
    page.answer_to(QUESTION)
    page.answer_to(OTHER, 2)


@pytest.mark.usefixtures("two_turns")
def test_an_edited_question_is_a_version_and_what_followed_stays_with_the_one_before(page: Window) -> None:
    edit(page, 0, EDITED)
    page.until(lambda: page.questions() == [EDITED] and versions(page) == ["2 of 2"])
    page.click("The version before")
    page.until(lambda: page.questions() == [QUESTION, OTHER])
    assert versions(page) == ["1 of 2"]
    page.answer_to(THIRD, 3)
    assert page.questions() == [QUESTION, OTHER, THIRD]
    page.driver.refresh()
    page.until(lambda: page.questions() == [QUESTION, OTHER, THIRD])
    page.click("The next version")
    page.until(lambda: page.questions() == [EDITED])


@pytest.mark.usefixtures("two_turns")
def test_a_second_window_sees_a_version_come_and_one_that_turned_to_another_stays(page: Window) -> None:
    first = page.driver.current_window_handle
    with second_window(page):
        page.answered(2)
        edit(page, 1, EDITED)
        page.until(lambda: page.questions() == [QUESTION, EDITED] and versions(page) == ["2 of 2"])
        second = page.driver.current_window_handle
        page.driver.switch_to.window(first)
        page.until(lambda: page.questions() == [QUESTION, EDITED])
        page.click("The version before")
        page.until(lambda: page.questions() == [QUESTION, OTHER])
        page.driver.switch_to.window(second)
        page.answer_to(THIRD, 3)
        page.driver.switch_to.window(first)
        page.until(lambda: page.run("return document.querySelector('#thread-list .working') === null"))
        assert page.questions() == [QUESTION, OTHER]
        page.driver.switch_to.window(second)
        assert page.questions() == [QUESTION, EDITED, THIRD]


def test_an_answer_stays_one_step_away_where_its_next_version_failed(page: Window, chat_server: ScriptedServer) -> None:
    chat_server.script({**well_behaved(), "answerer": [ANSWERED, Reply("wrong key", status=401)]})
    page.answer_to(QUESTION)
    page.click("Ask again")
    assert "401" in page.text(".broken")
    assert versions(page) == ["2 of 2"]
    page.click("The version before")
    assert page.answered(1).text.startswith("It was founded in 1203")


@pytest.mark.usefixtures("two_turns")
def test_by_keyboard_alone_a_question_is_edited_and_its_versions_turned(page: Window) -> None:
    page.run("document.querySelectorAll('[aria-label=\"Edit this question\"]')[1].focus()")
    page.press(Keys.ENTER)
    assert page.focused() == "The question"
    page.press(Keys.ESCAPE)
    assert page.focused() == "Edit this question"
    page.press(Keys.ENTER)
    page.press(EDITED, Keys.ENTER)
    page.until(lambda: page.questions() == [QUESTION, EDITED] and versions(page) == ["2 of 2"])
    page.press(Keys.TAB)
    assert page.focused() == "The version before"
    page.press(Keys.ENTER)
    page.until(lambda: page.questions() == [QUESTION, OTHER])
    page.until(lambda: page.focused() == "The next version")
    assert page.text("#announcer") == "Version 1 of 2"


@pytest.mark.usefixtures("two_turns")
@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing_wrong_with_versions_and_the_field_for_another(page: Window, is_dark: bool) -> None:
    page.prefer_dark(is_dark)
    edit(page, 1, EDITED)
    page.until(lambda: versions(page) == ["2 of 2"])
    page.click("Edit this question")
    for size in SIZES:
        page.resize(*size)
        assert page.violations() == []
        assert page.width_over() == 0


@pytest.mark.parametrize("width", [1080, 1024, 800, 761])
def test_an_open_panel_covers_nothing_of_what_one_asks_with(page: Window, width: int) -> None:
    page.resize(width, 768)
    page.answer_to(QUESTION)
    page.all(".turn .citation")[0].click()
    page.find(".passage")
    at_send = "const box = document.getElementById('send').getBoundingClientRect(); return document.elementFromPoint("
    assert page.run(f"{at_send}box.right - 8, (box.top + box.bottom) / 2)?.id") == "send"
    assert page.width_over() == 0
    page.answer_to(OTHER, 2)


def test_a_phone_with_its_keyboard_open_leaves_most_of_the_room_to_the_conversation(page: Window) -> None:
    page.resize(390, 420)
    page.answer_to(QUESTION)
    assert page.run("return document.getElementById('conversation').clientHeight / innerHeight") > 0.65
    viewport = page.run("return document.querySelector('meta[name=viewport]').content")
    assert "interactive-widget=resizes-content" in viewport
