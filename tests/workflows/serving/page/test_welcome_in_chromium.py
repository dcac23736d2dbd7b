"""The first screen and the settings in a real Chromium."""

from __future__ import annotations

import pytest
from selenium.webdriver.support.select import Select

from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION

pytestmark = pytest.mark.slow


def set_to(page: Window, setting: str, value: str) -> None:
    """Choose a value of a setting, and close the settings."""
    page.click(page.text("#open-settings"))
    if setting == "mode":
        page.find("#settings-dialog summary").click()
    Select(page.find(f"#{setting}")).select_by_visible_text(value)
    page.click("Close", "#settings-dialog")


def about(page: Window) -> list[str]:
    """Return the settings that each turn shows."""
    shown: list[str] = page.run("return [...document.querySelectorAll('.about bdi')].map((each) => each.textContent)")
    return shown


def test_it_says_what_is_there_and_asks_a_question_that_is_chosen(page: Window) -> None:
    page.until(lambda: page.text("#holdings") == "15 passages from 15 documents.")
    suggested = page.find("#suggestions button")
    question = suggested.text
    suggested.click()
    page.answered(1)
    assert page.questions() == [question]
    assert page.all(".sources")


def test_settings_are_behind_one_button_that_counts_those_that_differ(page: Window) -> None:
    assert not any(
        page.run("return document.getElementById(arguments[0]).checkVisibility()", each)
        for each in ("workflow", "mode", "as_of", "filter")
    )
    set_to(page, "workflow", "Thorough: checks each claim")
    set_to(page, "mode", "By words")
    assert page.text("#open-settings") == "Settings (2)"
    page.driver.refresh()
    page.until(lambda: page.text("#open-settings") == "Settings (2)")
    page.click("Settings (2)")
    page.click("Use the defaults")
    page.click("Close", "#settings-dialog")
    assert page.text("#open-settings") == "Settings"


def test_a_turn_shows_what_it_was_asked_with_and_is_asked_again_with_either(page: Window) -> None:
    page.answer_to(QUESTION)
    assert about(page) == [""]
    assert not page.run("return document.body.textContent.includes('with the settings of then')")
    set_to(page, "workflow", "Thorough: checks each claim")
    page.click("Ask again with the settings of then")
    page.until(lambda: "2 of 2" in page.text(".versions"))
    assert about(page) == [""]
    page.click("Ask again")
    page.until(lambda: "3 of 3" in page.text(".versions"))
    assert about(page) == ["Thorough: checks each claim"]
    assert not page.run("return document.body.textContent.includes('with the settings of then')")
