"""The list of conversations in a real Chromium: searched, by date, with a menu for each, and by the keyboard."""

from __future__ import annotations

import json
import time

import pytest
from selenium.webdriver.common.keys import Keys

from tests.workflows.serving.page.site import new_id
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION
from workflows.access.identity import LOCAL
from workflows.answering import ask
from workflows.context import Context
from workflows.conversation.kept import ANSWERED, Conversations, Report
from workflows.serving.page.site import Site

pytestmark = pytest.mark.slow

DAY_S = 86_400


@pytest.fixture
def talks(page: Window, site: Site) -> dict[str, str]:
    """Four conversations of different days, by their titles; the page shows none of them."""
    result = json.loads(json.dumps(ask(QUESTION, Context(workspace=str(site.own)))))
    made = {}
    for days, title in ((30, "Rivers"), (3, "Lakes"), (1, "Dams"), (0, "Towns")):
        store = Conversations(site.conversations.root, lambda days=days: time.time() - days * DAY_S)  # type: ignore[misc]
        made[title], turn = new_id(), new_id()
        store.begin(LOCAL.owner, made[title], turn, title, {})
        store.tell(Report(turn, state=ANSWERED, result={**result, "answer": f"What is said of {title.lower()} [1]."}))
    page.driver.refresh()
    page.until(lambda: len(page.all("#thread-list a")) == 4)
    return made


def titles(page: Window) -> list[str]:
    return [link.text for link in page.all("#thread-list a")]


def choose(page: Window, item: str, title: str) -> None:
    """Choose something in the menu of a conversation."""
    page.click(f"Menu of {title}")
    page.click(item, "#thread-menu")


def test_it_goes_by_date_and_is_searched_by_titles_questions_and_answers(page: Window, talks: dict[str, str]) -> None:
    groups = page.run(
        "return [...document.querySelectorAll('#thread-list section')]"
        ".map((each) => [each.ariaLabel, each.querySelector('a').textContent])"
    )
    assert groups == [["Today", "Towns"], ["Yesterday", "Dams"], ["Last 7 days", "Lakes"], ["Earlier", "Rivers"]]
    page.find("#search").send_keys("said RIVERS")
    page.until(lambda: titles(page) == ["Rivers"])
    page.find("#search").clear()
    page.find("#search").send_keys("glaciers")
    page.until(lambda: page.text("#no-threads") == "No conversation holds these words.")
    page.run("document.getElementById('search').value = ''")
    page.find("#search").send_keys(" ")
    page.until(lambda: len(titles(page)) == 4)


def test_a_conversation_that_is_not_shown_is_renamed_and_deleted_by_its_menu(
    page: Window, talks: dict[str, str]
) -> None:
    page.find("#thread-list a[title='Towns']").click()
    page.answered(1)
    choose(page, "Rename", "Lakes")
    page.find("#new-title").clear()
    page.find("#new-title").send_keys("Lakes of Ostra", Keys.ENTER)
    page.until(lambda: "Lakes of Ostra" in titles(page))
    choose(page, "Delete", "Rivers")
    assert page.text("#delete-named") == "Rivers"
    page.click("Delete", "#delete-dialog")
    page.until(lambda: titles(page) == ["Lakes of Ostra", "Towns", "Dams"])
    assert (page.text("#title"), page.questions()) == ("Towns", ["Towns"])
