"""The page in a real Chromium: asked, read, stopped and corrected; alone with the keyboard, on a phone, in the dark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import pytest
from selenium.webdriver.common.keys import Keys

from tests.scripted_server import ScriptedServer
from tests.workflows.serving.page.site import KeyRack, on_a_port, site_of
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import QUESTION, well_behaved
from tests.workflows.workspaces import Indexer
from workflows.access.identity import Identity, Keyring
from workflows.serving.page.site import Site

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=\"document.title='broken'\">"
DROP = """
const files = new DataTransfer();
files.items.add(new File([arguments[1]], arguments[0]));
document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: files, bubbles: true, cancelable: true}));
"""
"""Drops a file of that name and text on the page."""

TITLES = (HOSTILE, "javascript:document.title='broken'", "\u202eevil\u202c <b>bold</b>", "a" * 300)


@pytest.fixture
def site(hashing: None, world: Path, tmp_path: Path) -> Site:
    return site_of(world, tmp_path, uploads=tmp_path / "uploads")


@pytest.fixture
def model(chat_server: ScriptedServer) -> ScriptedServer:
    chat_server.script(well_behaved())
    return chat_server


def test_a_citation_opens_its_passage_with_the_cited_words_marked(page: Window) -> None:
    page.answer_to(QUESTION)
    page.all(".turn .citation")[0].click()
    assert page.find(".passage.chosen mark").text
    assert page.focused() == "panel-title"
    page.press(Keys.ESCAPE)
    assert not page.find("#main").find_elements("css selector", "[aria-expanded=true]")
    assert not page.all("#panel:not([hidden])")
    assert re.fullmatch(r"Source \d+: .+", page.focused())


def test_what_is_behind_an_answer_stands_beside_it_and_its_drawing_fills_the_window(page: Window) -> None:
    page.answer_to(QUESTION)
    page.click("Why this answer?")
    sentences = page.until(lambda: [each.text for each in page.all("#panel-body .why li")])
    assert len(sentences) == 3
    assert sentences[0].startswith("The search began at ")
    assert sentences[1].startswith("From there the path leads on: ")
    assert sentences[2] == "The answer quotes its passages word for word; no model wrote or checked it."
    page.driver.switch_to.frame(page.find("#graph"))
    page.until(lambda: page.run("return Boolean(document.getElementById('drawing')?._cyreg?.cy)"))
    assert not page.find("#drawing").get_attribute("hidden")
    assert not page.all("#question")[0].is_displayed()
    page.driver.switch_to.default_content()
    page.button("Show it large").send_keys(Keys.ENTER)
    assert page.run("return document.getElementById('main').inert")
    assert page.violations() == []
    page.press(Keys.ESCAPE)
    page.until(lambda: page.focused() == "Why this answer?")
    assert not page.run("return document.getElementById('main').inert")


def test_what_a_question_was_understood_as_can_be_corrected(page: Window, model: ScriptedServer) -> None:
    understood = json.dumps({"stands_alone": False, "question": "Who founded Kesh?", "choices": []})
    model.script({**well_behaved(), "rewriter": [understood]})
    page.answer_to(QUESTION)
    page.answer_to("And who founded it?", 2)
    assert page.text(".understood bdi") == "Who founded Kesh?"
    page.click("Correct what the question was understood as")
    page.press(Keys.ESCAPE)
    assert page.focused() == "Correct what the question was understood as"
    page.click("Correct what the question was understood as")
    field = page.find(".correction textarea")
    assert field.get_property("value") == "Who founded Kesh?"
    field.clear()
    field.send_keys("Who founded Marn?", Keys.ENTER)
    page.until(lambda: page.questions() == [QUESTION, "Who founded Marn?"])
    page.answered(2)
    assert not page.all(".understood")


def test_hostile_words_are_words(page: Window, hashing: None, index: Indexer, root: Path, tmp_path: Path) -> None:
    rows = [{"id": f"p{n}", "title": title, "text": f"The Velm {n} flows. {HOSTILE}"} for n, title in enumerate(TITLES)]
    index(rows, root)
    with on_a_port(site_of(root, tmp_path)) as address:
        page.open(address)
        page.answer_to(f"Where does the Velm flow? {HOSTILE}")
        page.all(".sources button")[0].click()
        page.find(".passage")
        page.click("Why this answer?")
        page.until(lambda: "How long it took" in page.text("#panel-body"))
        assert page.all("main img, aside img, main b:not(.sources b), iframe[srcdoc]") == []
        assert page.width_over() == 0
        assert "broken" not in page.driver.title.replace(HOSTILE, "")
        assert page.run("return document.querySelectorAll('script').length") == 1
        assert "\u202e" not in page.text("main")


def test_a_filter_is_chosen_from_what_the_passages_have(page: Window) -> None:
    page.click("Settings")
    page.click("Filter")
    page.until(lambda: page.all("#filter-rows select"))
    assert page.run(
        "return [...document.querySelectorAll('#filter-rows datalist option')].map((each) => each.value)"
    ) == ["corpus.jsonl"]
    page.run("document.querySelectorAll('#filter-rows select')[1].value = '$ne'")
    page.find("#filter-rows input").send_keys("corpus.jsonl", Keys.ENTER)
    page.until(lambda: [chip.text for chip in page.all("#conditions button")] == ["source is not corpus.jsonl ✕"])
    page.click("Close", "#settings-dialog")
    assert page.text("#open-settings") == "Settings (1)"
    page.answer_to(QUESTION)
    assert not page.all(".sources")
    page.click("Remove the condition source is not corpus.jsonl")
    page.answer_to(QUESTION, 2)
    assert page.all(".sources")


def test_dropped_documents_are_taken_in_and_refused_with_reasons(
    page: Window, hashing: None, root: Path, tmp_path: Path
) -> None:
    for name, text in {"karv.md": "# Karv\n\nKarv is a harbour town.", "tool.exe": "x", "empty.txt": ""}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with on_a_port(site_of(root, tmp_path, uploads=tmp_path / "uploads")) as address:
        page.open(address)
        page.click("Add documents")
        field = page.run("return document.getElementById('files')")
        assert (
            field.value_of_css_property("clip-path") == "inset(50%)"
        )  # The browser's own button is not seen; ours is, and the focus on it.
        page.press(Keys.TAB)
        page.press_with_shift(Keys.TAB)
        assert (page.focused(), page.text("#drop b")) == ("files", "Choose files")
        assert page.find("#drop").value_of_css_property("outline-style") == "solid"
        field.send_keys("\n".join(str(tmp_path / name) for name in ("karv.md", "tool.exe", "empty.txt")))
        page.until(lambda: page.text("#stage").startswith("Added 1 passage"))
        assert page.violations() == []
        lines = [line.text for line in page.all("#file-list li")]
        assert lines[0].endswith("added")
        assert "of a kind that is not read" in lines[1]
        assert "is empty" in lines[2]
        page.click("Close")
        page.ask("What is Karv?")
        assert "harbour town" in page.answered(1).text
    page.complaints()  # The refused requests are in the console.


def test_a_document_that_is_dropped_anywhere_can_replace_another(
    page: Window, hashing: None, root: Path, tmp_path: Path
) -> None:
    with on_a_port(site_of(root, tmp_path, uploads=tmp_path / "uploads")) as address:
        page.open(address)
        dialog = "document.getElementById('documents-dialog')"
        page.run(f"{dialog}.addEventListener('close', () => {{ window.dialogClosed = true; }})")
        for text in ("Karv is a harbour town.", "Karv is a mining village."):
            page.run("window.dialogClosed = false")
            page.run(DROP, "karv.md", text)
            if "mining" in text:
                page.click("Replace")
            page.until(lambda: page.text("#file-list li").endswith("added"))
            page.click("Close")
            page.until(lambda: page.run("return window.dialogClosed"))
        page.press("What is Karv?", Keys.ENTER)
        assert "mining village" in page.answered(1).text
    page.complaints()  # The refused request is in the console.


def test_a_key_is_asked_for_and_kept_until_the_tab_is_closed(
    page: Window, hashing: None, world: Path, tmp_path: Path
) -> None:
    keys = cast(Keyring, KeyRack(**{"key-of-ada": Identity("ada")}))
    with on_a_port(site_of(world, tmp_path, keyring=lambda: keys)) as address:
        page.driver.get(address)
        page.find("#key").send_keys("guessed", Keys.ENTER)
        page.until(lambda: "The key is not known" in page.text("#key-refused"))
        assert page.violations() == []
        page.find("#key").send_keys("key-of-ada", Keys.ENTER)
        page.until(lambda: "ada" in page.text("#served"))
        page.answer_to(QUESTION)
        page.click("Why this answer?")
        page.driver.switch_to.frame(page.find("#graph"))
        page.until(lambda: page.run("return Boolean(document.getElementById('drawing')?._cyreg?.cy)"))
        page.driver.switch_to.default_content()
        page.driver.refresh()
        page.answered(1)
    page.complaints()  # The refused requests are in the console.


@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing_wrong(page: Window, model: ScriptedServer, is_dark: bool) -> None:
    understood = json.dumps({"stands_alone": False, "question": "Who founded Marn?", "choices": []})
    model.script({**well_behaved(), "rewriter": [understood]})
    page.prefer_dark(is_dark)
    assert page.violations() == []
    page.answer_to(QUESTION)
    page.answer_to("And who founded it?", 2)
    page.click("Correct what the question was understood as")
    page.find(".sources button").click()
    page.find(".passage")
    assert page.violations() == []
    page.click("Why this answer?")
    page.find("#graph")
    page.run("for (const each of document.querySelectorAll('#panel-body details')) each.open = true")
    assert page.violations() == []
    for opener, dialog in (
        ("Settings", "settings"),
        ("Keyboard", "keys"),
        ("Rename", "rename"),
        ("Delete", "delete"),
        ("Add documents", "documents"),
    ):
        page.button(opener).click()
        page.find(f"#{dialog}-dialog")
        assert page.violations() == [], dialog
        page.press(Keys.ESCAPE)
