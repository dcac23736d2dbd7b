"""Questions that are edited, and the room on the screen, in a real Chromium."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION

pytestmark = pytest.mark.slow

OTHER, THIRD, EDITED = "Who built the Tarn Dam?", "Who was Ada Brandt?", "When was Duke Orlo born?"


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
