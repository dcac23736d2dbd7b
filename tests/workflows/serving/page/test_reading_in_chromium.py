"""A source in a real Chromium, on a page that keeps a history: views, related documents, the personal ranking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from tests.builders import HashEmbedder
from tests.workflows.reading_world import reading_world
from tests.workflows.remembering import views
from tests.workflows.serving.page.site import site_of
from tests.workflows.serving.page.window import Window
from workflows.runtime.resources import close_indexes
from workflows.serving.page.site import Site

pytestmark = pytest.mark.slow

QUESTION, OTHER = "Who surveyed Lake Sund?", "Who founded the Amstel Office?"
LOCAL = "local"


@pytest.fixture
def root(tmp_path: Path, embedder: HashEmbedder) -> Iterator[Path]:
    yield reading_world(tmp_path)
    close_indexes()


@pytest.fixture
def site(root: Path, tmp_path: Path) -> Site:
    return site_of(root, tmp_path, keeps_history=lambda: True)


def n_views(root: Path) -> int:
    return sum(view.view_count for view in views(root, LOCAL))


def test_a_source_tells_what_was_read_and_counts_when_it_is_closed_or_replaced(page: Window, root: Path) -> None:
    page.answer_to(QUESTION)
    before = n_views(root)
    page.all(".turn .citation")[0].click()
    assert "this document explains" in page.text(".chosen .reading .listed")
    assert "You read" not in page.text(".chosen .reading")
    assert page.violations() == []
    assert n_views(root) == before
    page.press(Keys.ESCAPE)
    page.until(lambda: n_views(root) == before + 1)
    page.find(".turn .sources button").click()
    assert "You read this document before" in page.text(".chosen .reading")
    assert page.text(".chosen .reading .note").endswith("it came up 1 time before this one.")
    page.click("Why this answer?")
    page.until(lambda: n_views(root) == before + 2)
    page.find(".turn .sources button").click()
    page.find(".chosen .reading .listed")
    page.driver.get("about:blank")
    page.until(lambda: n_views(root) == before + 3)
    assert all(view.duration is None or 0 <= view.duration < 600 for view in views(root, LOCAL))
