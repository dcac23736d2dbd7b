"""The page in a real Chromium: asked, read, stopped and corrected; alone with the keyboard, on a phone, in the dark."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from selenium.webdriver.common.keys import Keys

from tests.scripted_server import Reply, ScriptedServer
from tests.workflows.serving.page.site import PATIENCE_S, KeyRack, new_id, on_a_port, site_of
from tests.workflows.serving.page.window import Window
from tests.workflows.small_world import ANSWERED, QUESTION, well_behaved
from tests.workflows.workspaces import Indexer
from workflows.access.identity import LOCAL, Identity, Keyring
from workflows.answering import ask
from workflows.context import Context
from workflows.conversation.kept import ANSWERED as IS_ANSWERED
from workflows.conversation.kept import Report
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
def address(site: Site) -> Iterator[str]:
    with on_a_port(site) as served:
        yield served


@pytest.fixture
def page(driver: Any, address: str) -> Iterator[Window]:
    """The page as it is when it was just opened; afterwards the browser has no complaint."""
    window = Window(driver)
    window.resize(1360, 860)
    window.prefer_dark(False)
    window.open(address)
    yield window
    assert window.complaints() == []


@pytest.fixture
def model(chat_server: ScriptedServer) -> ScriptedServer:
    chat_server.script(well_behaved())
    return chat_server


def kept(site: Site, answer: str, title: str = "") -> str:
    """Keep a conversation whose one answer is as given; return its id."""
    result = json.loads(json.dumps(ask(QUESTION, Context(workspace=str(site.workspaces.own)))))
    if title:
        for hit in result["passages"]:
            hit["title"] = hit["source"] = title
    conversation, turn = new_id(), new_id()
    site.conversations.begin(LOCAL.owner, conversation, turn, title or QUESTION, {})
    site.conversations.tell(Report(turn, state=IS_ANSWERED, result={**result, "answer": answer}))
    return conversation


# ---- Asking and reading


def test_a_citation_opens_its_passage_with_the_cited_words_marked(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    page.all(".turn .citation")[0].click()
    assert page.find(".passage.chosen mark").text
    assert page.focused() == "panel-title"
    page.press(Keys.ESCAPE)
    assert not page.find("#main").find_elements("css selector", "[aria-expanded=true]")
    assert not page.all("#panel:not([hidden])")
    assert re.fullmatch(r"Source \d+: .+", page.focused())


def test_what_is_behind_an_answer_stands_beside_it_with_its_graph(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
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
    shown = page.run("return document.getElementById('drawing').getBoundingClientRect().bottom <= innerHeight")
    page.driver.switch_to.default_content()
    assert shown
    assert page.run("return document.getElementById('graph').getBoundingClientRect().bottom <= innerHeight")
    assert [each.is_displayed() for each in page.all("#panel-body details ul, #panel-body details dl")][:1] == [False]
    page.run("document.querySelector('#panel-body summary').focus()")
    page.press(Keys.ENTER)
    assert page.find("#panel-body .facts").text


def test_the_drawing_fills_the_window_and_lets_go_of_it_again(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    page.click("Why this answer?")
    page.button("Show it large").send_keys(Keys.ENTER)
    assert page.run("return document.getElementById('panel').getBoundingClientRect().width") == 1360
    assert page.run("return document.getElementById('main').inert")
    assert page.focused() == "Show it small"
    assert page.violations() == []
    page.press(Keys.ENTER)
    assert not page.run("return document.getElementById('main').inert")
    page.press(Keys.ENTER)
    page.press(Keys.ESCAPE)
    page.until(lambda: page.focused() == "Why this answer?")
    assert not page.run("return document.getElementById('main').inert")


def test_words_are_shown_as_a_slow_model_writes_them(page: Window, model: ScriptedServer) -> None:
    gates = [threading.Event() for _ in range(3)]

    def slowly() -> Iterator[str]:
        for piece, gate in zip(("It was", " founded in", " 1203 [1]."), gates, strict=True):
            yield piece
            gate.wait(PATIENCE_S)

    model.script({**well_behaved(), "answerer": [Reply("", pieces=slowly())]})
    page.ask(QUESTION)
    page.until(lambda: page.text(".draft") == "It was")
    assert page.text(".steps summary") == "Writing the answer …"
    gates[0].set()
    page.until(lambda: page.text(".draft") == "It was founded in")
    assert not page.all(".citation")
    for gate in gates:
        gate.set()
    assert page.answered(1).text.startswith("It was founded in 1203")
    assert [mark.text for mark in page.all(".answer .citation")] == ["1"]


def test_an_answer_can_be_stopped_and_asked_for_again(page: Window, model: ScriptedServer) -> None:
    go_on = threading.Event()

    def endlessly() -> Iterator[str]:
        yield "It was"
        go_on.wait(PATIENCE_S)
        for _ in range(100_000):
            yield " so"

    model.script({**well_behaved(), "answerer": [Reply("", pieces=endlessly()), ANSWERED]})
    page.ask(QUESTION)
    page.until(lambda: page.text(".draft") == "It was")
    page.click("Stop")
    assert page.text(".broken") == "The answer was stopped."
    assert page.text(".draft") == "It was"
    assert page.find(".broken").rect["y"] >= page.find(".draft").rect["y"] + page.find(".draft").rect["height"] + 10
    assert page.focused() == "question"
    go_on.set()
    page.click("Ask again")
    assert page.answered(1).text.startswith("It was founded in 1203")
    assert page.questions() == [QUESTION]


def test_what_a_question_was_understood_as_can_be_corrected(page: Window, model: ScriptedServer) -> None:
    understood = json.dumps({"stands_alone": False, "question": "Who founded Kesh?", "choices": []})
    model.script({**well_behaved(), "rewriter": [understood]})
    page.ask(QUESTION)
    page.answered(1)
    page.ask("And who founded it?")
    page.answered(2)
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


def test_a_question_back_offers_its_choices_as_buttons(page: Window, model: ScriptedServer) -> None:
    choices = ["When was Ada Brandt born?", "When was Duke Orlo born?"]
    reply = json.dumps({"stands_alone": False, "question": choices[0], "choices": choices})
    model.script({**well_behaved(), "rewriter": [reply]})
    page.ask(QUESTION)
    page.answered(1)
    page.ask("When was he born?")
    page.answered(2)
    assert [button.text for button in page.all(".choices button")] == choices
    assert page.all(".turn .answer")[-1].text == "Which do you mean?"
    page.button(choices[1]).click()
    page.answered(3)
    assert page.questions() == [QUESTION, "When was he born?", choices[1]]


def test_a_failure_is_told_where_the_answer_would_be(page: Window, model: ScriptedServer) -> None:
    model.script([Reply("wrong key", status=401)])
    page.ask(QUESTION)
    assert "401" in page.text(".broken")
    assert page.button("Ask again").is_enabled()


# ---- Conversations


def test_a_conversation_has_an_address_that_survives_a_reload(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    assert re.search(r"#/c/[0-9a-f-]{36}$", page.driver.current_url)
    page.driver.refresh()
    page.answered(1)
    assert page.questions() == [QUESTION]
    page.click("New conversation")
    page.until(lambda: page.questions() == [])
    page.driver.back()
    page.answered(1)


def test_conversations_are_renamed_and_deleted(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    page.click("Rename")
    page.find("#new-title").clear()
    page.find("#new-title").send_keys("Towns", Keys.ENTER)
    page.until(lambda: [link.text for link in page.all("#thread-list a")] == ["Towns"])
    assert page.text("#title") == "Towns"
    page.click("Delete")
    page.click("Delete", "#delete-dialog")
    page.until(lambda: page.all("#thread-list a") == [])
    assert page.questions() == []


def test_other_conversations_are_read_asked_and_deleted_while_one_is_being_answered(
    page: Window, model: ScriptedServer
) -> None:
    go_on = threading.Event()

    def slowly() -> Iterator[str]:
        yield "It was"
        go_on.wait(PATIENCE_S)
        yield " founded in 1203 [1]."

    other, running = "Who built the Tarn Dam?", "When was Marn founded?"
    model.script({**well_behaved(), "answerer": [ANSWERED, Reply("", pieces=slowly()), ANSWERED]})
    page.ask(other)
    page.answered(1)
    page.click("New conversation")
    page.ask(running)
    page.until(lambda: page.text(".draft") == "It was")
    address = page.driver.current_url

    page.find(f"#thread-list a[title='{other}']").click()
    page.until(lambda: page.questions() == [other])
    assert page.text("#title") == other
    page.ask(QUESTION)
    page.answered(2)
    page.click("Delete")
    page.click("Delete", "#delete-dialog")
    page.until(lambda: page.questions() == [] and not page.run("return location.hash.slice(2)"))

    page.driver.get(address)
    assert page.text(".draft") == "It was"
    assert (page.text("#title"), page.questions()) == (running, [running])
    page.click("Rename")
    page.find("#new-title").clear()
    page.find("#new-title").send_keys("Marn", Keys.ENTER)
    page.until(lambda: page.text("#title") == "Marn")
    go_on.set()
    assert page.answered(1).text.startswith("It was founded in 1203")
    page.until(lambda: [link.text for link in page.all("#thread-list a")] == ["Marn"])
    page.complaints()  # The page may have looked for the deleted conversation.


def test_a_second_window_sees_what_the_first_one_asked_and_nothing_twice(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    first = page.driver.current_window_handle
    here = page.driver.current_url
    page.driver.switch_to.new_window("tab")
    try:
        page.driver.get(here)
        page.answered(1)
        page.ask("Who built the Tarn Dam?")
        page.answered(2)
        page.driver.switch_to.window(first)
        page.answered(2)
        page.ask("When was Duke Orlo born?")
        page.answered(3)
        page.driver.switch_to.window(page.driver.window_handles[-1])
        page.answered(3)
        assert page.questions() == [QUESTION, "Who built the Tarn Dam?", "When was Duke Orlo born?"]
    finally:
        page.driver.switch_to.window(page.driver.window_handles[-1])
        page.driver.close()
        page.driver.switch_to.window(first)
    page.until(lambda: len(page.questions()) == 3)


def test_a_turn_that_ended_here_is_not_loaded_again(page: Window) -> None:
    page.ask(QUESTION)
    page.answered(1)
    page.ask("Who built the Tarn Dam?")
    page.answered(2)
    loaded = "return performance.getEntriesByType('resource').map((each) => each.name.split('/api/')[1] ?? '')"

    def known() -> set[str]:
        return {name.partition("?")[2] for name in page.run(loaded) if name.startswith("conversations/")}

    page.until(lambda: "version=4" in known())
    assert known() <= {"version=2", "version=4"}


# ---- What is long or hostile


def test_a_long_answer_fits_a_phone(page: Window, site: Site) -> None:
    row = "| " + " | ".join(["a long cell of a table"] * 8) + " |\n"
    parts = [
        "# A heading",
        "- one [1]\n- two [1, 2]\n  - three",
        f"{row}|{'---|' * 8}\n{row * 3}",
        "`" + "x" * 400 + "`",
        "y" * 500,
        "```\n" + "z" * 300 + "\n```",
        *["The town on its shore is Marn, founded in 1203 by Duke Orlo [1]."] * 60,
    ]
    answer = "\n\n".join(parts)
    assert len(answer) > 5000
    conversation = kept(site, answer)
    page.resize(360, 740)
    page.driver.get(f"{page.driver.current_url.split('#')[0]}#/c/{conversation}")
    page.answered(1)
    assert page.width_over() == 0
    assert page.run("return document.getElementById('conversation').scrollWidth") <= 360
    assert len(page.all(".answer table tr")) == 4
    assert page.violations() == []


def test_the_words_of_a_table_stay_whole_and_its_columns_aligned(page: Window, site: Site) -> None:
    heads = ("customer", "manager", "installed", "maintenance", "contract", "property")
    table = "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---", *["--:"] * 5), heads))
    conversation = kept(site, f"{table}\n\nMarn [1].")
    page.resize(360, 740)
    page.driver.get(f"{page.driver.current_url.split('#')[0]}#/c/{conversation}")
    page.answered(1)
    lines = page.run(
        "const words = document.createRange();"
        " return [...document.querySelectorAll('.answer td, .answer th')].map((cell) => {"
        " words.selectNodeContents(cell); return words.getClientRects().length; })"
    )
    assert lines == [1] * 12
    aligned = "return [...document.querySelectorAll('.answer td')].map((cell) => getComputedStyle(cell).textAlign)"
    assert [each.removeprefix("-webkit-") for each in page.run(aligned)] == ["start", *["right"] * 5]
    assert page.width_over() == 0


@pytest.mark.parametrize("width", [360, 1360])
def test_a_source_of_a_long_title_is_shortened_to_its_column(page: Window, site: Site, width: int) -> None:
    conversation = kept(site, "Marn [1].", "A title of many words " * 9)
    page.resize(width, 860)
    page.driver.get(f"{page.driver.current_url.split('#')[0]}#/c/{conversation}")
    page.answered(1)
    if width > 1080:
        page.all(".sources button")[0].click()
        page.find(".passage")
    over = "return document.querySelector(arguments[0]).scrollWidth - document.querySelector(arguments[0]).clientWidth"
    assert page.run(over, "#conversation") == 0
    assert page.run(over, ".sources") == 0
    assert page.run(over, ".sources bdi") > 0


def test_hostile_words_are_words(page: Window, hashing: None, index: Indexer, root: Path, tmp_path: Path) -> None:
    rows = [{"id": f"p{n}", "title": title, "text": f"The Velm {n} flows. {HOSTILE}"} for n, title in enumerate(TITLES)]
    index(rows, root)
    with on_a_port(site_of(root, tmp_path)) as address:
        page.open(address)
        page.ask(f"Where does the Velm flow? {HOSTILE}")
        page.answered(1)
        page.all(".sources button")[0].click()
        page.find(".passage")
        page.click("Why this answer?")
        page.until(lambda: "How it was made" in page.text("#panel-body"))
        assert page.all("main img, aside img, main b:not(.sources b), iframe[srcdoc]") == []
        assert page.width_over() == 0
        assert "broken" not in page.driver.title.replace(HOSTILE, "")
        assert page.run("return document.querySelectorAll('script').length") == 1
        assert "\u202e" not in page.text("main")


@pytest.mark.parametrize(
    "answer",
    [HOSTILE, f"[click](javascript:alert(1)) ![x](https://evil.example/x.png) {HOSTILE} <script>alert(1)</script>"],
)
def test_hostile_answers_ask_nobody_for_anything(page: Window, site: Site, answer: str) -> None:
    conversation = kept(site, answer, HOSTILE)
    page.driver.get(f"{page.driver.current_url.split('#')[0]}#/c/{conversation}")
    page.answered(1)
    assert page.all(".answer img, .answer script, .answer [href^=javascript]") == []
    loaded = page.run("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert [name for name in loaded if "evil.example" in name] == []


# ---- Filters, documents, keys


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
    page.ask(QUESTION)
    page.answered(1)
    assert not page.all(".sources")
    page.click("Remove the condition source is not corpus.jsonl")
    page.ask(QUESTION)
    page.answered(2)
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
        for text in ("Karv is a harbour town.", "Karv is a mining village."):
            page.run(DROP, "karv.md", text)
            if "mining" in text:
                page.click("Replace")
            page.until(lambda: page.text("#file-list li").endswith("added"))
            page.click("Close")
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
        page.ask(QUESTION)
        page.answered(1)
        page.click("Why this answer?")
        page.driver.switch_to.frame(page.find("#graph"))
        page.until(lambda: page.run("return Boolean(document.getElementById('drawing')?._cyreg?.cy)"))
        page.driver.switch_to.default_content()
        page.driver.refresh()
        page.answered(1)
    page.complaints()  # The refused requests are in the console.


# ---- The keyboard, small windows, the dark, and axe


def test_all_is_reached_by_keyboard_alone(page: Window) -> None:
    assert page.focused() == "question"
    page.press("Where is")
    page.press_with_shift(Keys.ENTER)
    page.press("the town on the shore of Lake Sund?")
    assert page.run("return document.getElementById('question').value").splitlines()[1:] == [
        "the town on the shore of Lake Sund?"
    ]
    page.press(Keys.ENTER)
    page.answered(1)
    title = " ".join(page.text("#title").split())
    page.run("document.body.tabIndex = -1; document.body.focus();")
    reached = []
    for _ in range(40):
        page.press(Keys.TAB)
        reached.append(page.focused())
        if reached[-1] == "open-settings":
            break
    wanted = ["Skip to the question", "new", "search", f"Menu of {title}", "theme", "rename", "delete", "conversation"]
    assert [each for each in reached if each in wanted] == wanted
    last = ["Edit this question", "Why this answer?", "Copy", "Ask again", "question", "send", "open-settings"]
    assert [each for each in reached if each in last] == last
    assert any(each.startswith("Source 1: ") for each in reached)
    page.run("document.querySelector('.citation').focus()")
    page.press(Keys.ENTER)
    page.find(".passage")
    page.press(Keys.ESCAPE)
    assert page.focused().startswith("Source ")


def test_a_phone_has_all_of_it(page: Window) -> None:
    page.resize(360, 740)
    page.ask(QUESTION)
    page.answered(1)
    assert page.width_over() == 0
    page.click("Conversations")
    page.until(lambda: page.text("#thread-list a") == QUESTION)
    assert page.violations() == []
    page.press(Keys.ESCAPE)
    page.until(lambda: page.focused() == "open-threads")
    page.all(".turn .citation")[0].click()
    page.find(".passage")
    assert page.run("return document.getElementById('panel').getBoundingClientRect().width") == 360
    assert page.violations() == []
    page.click("Close the panel")
    page.click("Settings")
    labels = [label for label in page.all(".setting label") if label.is_displayed()]
    assert [label.text for label in labels] == ["Answering", "As of"]
    assert page.violations() == []
    page.click("Filter")
    value, dialog = page.find(".condition input"), page.find("#filter-form")
    assert value.size["width"] > 0.75 * dialog.size["width"]
    assert page.violations() == []
    page.press(Keys.ESCAPE)
    page.press(Keys.ESCAPE)


def test_colours_follow_the_system_and_the_switch(page: Window) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = page.run(colour)
    page.prefer_dark(True)
    dark = page.run(colour)
    assert dark != light
    page.find("#theme").send_keys("Light")
    page.until(lambda: page.run(colour) == light)
    page.driver.refresh()
    page.until(lambda: page.run(colour) == light)


@pytest.mark.parametrize("is_dark", [False, True])
def test_axe_finds_nothing_wrong(page: Window, model: ScriptedServer, is_dark: bool) -> None:
    understood = json.dumps({"stands_alone": False, "question": "Who founded Marn?", "choices": []})
    model.script({**well_behaved(), "rewriter": [understood]})
    page.prefer_dark(is_dark)
    assert page.violations() == []
    page.ask(QUESTION)
    page.answered(1)
    page.ask("And who founded it?")
    page.answered(2)
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
