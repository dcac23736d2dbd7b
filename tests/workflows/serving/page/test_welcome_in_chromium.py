"""The first screen and the settings in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from tests.scripted_server import ScriptedServer
from tests.workflows.serving.page.site import KeyRack, on_a_port, site_of
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION, well_behaved
from tests.workflows.workspaces import BRANDT, Indexer
from workflows.access.identity import Identity, Keyring

pytestmark = pytest.mark.slow

SIZES = ((1400, 860), (1024, 768), (390, 780))
DAM = {"id": "dam", "title": "Tarn Dam", "text": "The Tarn Dam was designed by Ida Brandt. It opened in 1911."}


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


@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing_wrong_on_it_and_in_the_settings(page: Window, is_dark: bool) -> None:
    page.prefer_dark(is_dark)
    page.find("#suggestions button")
    for size in SIZES:
        page.resize(*size)
        assert page.violations() == []
        assert page.width_over() == 0
        page.click("Settings")
        page.find("#settings-dialog summary").click()
        assert page.violations() == []
        page.press(Keys.ESCAPE)


def test_adding_documents_is_large_where_there_are_none(page: Window, hashing: None, tmp_path: Path) -> None:
    (tmp_path / "dam.md").write_text("# Tarn Dam\n\nThe Tarn Dam was designed by Ida Brandt.", encoding="utf-8")
    with on_a_port(site_of(tmp_path / "empty", tmp_path, uploads=tmp_path / "uploads")) as address:
        page.open(address)
        assert page.text("#holdings") == "There are no documents yet."
        large = page.find("#first-documents")
        assert large.size["height"] > 1.5 * page.find("#documents").size["height"]
        large.click()
        page.run("return document.getElementById('files')").send_keys(str(tmp_path / "dam.md"))
        page.until(lambda: page.text("#stage").startswith("Added 1 passage"))
        page.click("Close")
        page.until(lambda: page.text("#holdings") == "1 passage from 1 document.")
        assert not large.is_displayed()
    page.complaints()  # What a workspace that is not there yet was asked for.


def test_without_a_model_it_says_how_to_set_one_to_whoever_runs_the_server_alone(
    page: Window, hashing: None, world: Path, tmp_path: Path
) -> None:
    assert "MARA_CHAT_MODEL" in page.text("#model-card")
    keys = cast(Keyring, KeyRack(**{"key-of-ada": Identity("ada")}))
    with on_a_port(site_of(world, tmp_path, keyring=lambda: keys)) as address:
        page.driver.get(address)
        page.find("#key").send_keys("key-of-ada", Keys.ENTER)
        page.until(lambda: "ada" in page.text("#served"))
        assert page.text("#model-card").endswith("The operator of this server can set one.")
        assert not page.all("#model-card code")
    page.complaints()  # The request without a key.


def test_with_a_model_nothing_is_said_of_it(page: Window, chat_server: ScriptedServer) -> None:
    chat_server.script(well_behaved())
    page.driver.refresh()
    page.until(lambda: page.text("#served") and page.all("#suggestions button"))
    assert not page.run("return document.getElementById('model-card').checkVisibility()")


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


def test_a_filter_is_shown_with_the_turn_that_it_held_for(
    page: Window, hashing: None, index: Indexer, root: Path, tmp_path: Path
) -> None:
    index([{**BRANDT, "year": 1911}, {**DAM, "year": 1950}], root)
    with on_a_port(site_of(root, tmp_path)) as address:
        page.open(address)
        page.click("Settings")
        page.click("Filter")
        page.until(lambda: page.all("#filter-rows select"))
        Select(page.find("#filter-rows select")).select_by_visible_text("year")
        page.find("#filter-rows input").send_keys("1950", Keys.ENTER)
        page.until(lambda: [chip.text for chip in page.all("#conditions button")] == ["year is 1950 ✕"])
        page.click("Close", "#settings-dialog")
        page.answer_to("Who designed the Tarn Dam?")
        assert about(page) == ["year is 1950"]


def test_what_is_kept_in_the_browser_names_no_day_and_no_filter(page: Window) -> None:
    set_to(page, "workflow", "Thorough: checks each claim")
    kept: Any = json.loads(page.run("return localStorage.getItem('mara-settings')"))
    assert kept == {"workspace": "", "workflow": "ragenta", "mode": ""}
