"""A source in a real Chromium: rendered, its place told in words, and what stands before and after it read on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.workflows.serving.page.handbooks import QUESTION, SURVEYORS, handbooks
from tests.workflows.serving.page.site import site_of
from tests.workflows.serving.page.window import Window
from workflows.serving.page.site import Site

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handbooks(tmp_path_factory.mktemp("sources"))


@pytest.fixture
def site(hashing: None, root: Path, tmp_path: Path) -> Site:
    return site_of(root, tmp_path)


@pytest.fixture(autouse=True, params=[(1360, False), (1024, False), (390, True)], ids=["wide", "narrow", "dark phone"])
def looks(page: Window, request: pytest.FixtureRequest) -> None:
    """Give the window a width, and the system its colours."""
    width, is_dark = request.param
    page.resize(width, 860)
    page.prefer_dark(is_dark)


def has_parts(page: Window, count: int) -> bool:
    return len(page.all(".chosen .text")) == count


def test_a_source_is_rendered_and_read_on_to_both_ends_by_keyboard(page: Window) -> None:
    page.answer_to(QUESTION)
    page.find(".turn .citation").send_keys(Keys.ENTER)
    chosen = page.find("#panel-body .chosen")
    assert page.find("#panel-body .chosen strong, #panel-body .chosen .heading").text
    assert page.text("#panel-body .chosen mark")
    assert "**" not in chosen.text
    assert "##" not in chosen.text
    assert [each.text for each in page.all("#panel-body .chosen dt")] == ["tenant"]
    assert "Chapter" in page.text("#panel-body .chosen .note")
    assert page.violations() == []
    for way in ("before", "after"):
        while any(each.text == f"Show what stands {way}" for each in page.all(".chosen button")):
            n_parts = len(page.all(".chosen .text"))
            page.button(f"Show what stands {way}", ".chosen").send_keys(Keys.ENTER)
            page.until(partial(has_parts, page, n_parts + 1))
    text = page.text("#panel-body .chosen .parts")
    places = [text.index(surveyor) for surveyor in SURVEYORS]
    assert places == sorted(places)
    assert page.run("return document.activeElement.matches('.chosen .text:last-child')")
    assert page.width_over() == 0
    assert page.violations() == []
