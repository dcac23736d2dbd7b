"""The page in a browser: its drawing, mouse and keyboard."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.workflows.explanation.browser import Page, chromium
from tests.workflows.explanation.made_up import explanation, without_walk
from tests.workflows.serving.page.window import Window

pytestmark = pytest.mark.slow

DATA = explanation()
BREAK = "document.title='broken'"
HOSTILE = f'</script><img src=x onerror="{BREAK}"><script>{BREAK}</script>\u2028\u202e\'`\x00'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The browser, one for all tests of the module."""
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield Page(driver, tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def opened(browser: Page) -> Page:
    """The browser with the made-up explanation open, as the test before left it."""
    browser.open(DATA)
    return browser


@pytest.fixture
def page(opened: Page) -> Iterator[Page]:
    """The made-up explanation as it looks when it was just opened; afterwards the browser has no complaint."""
    if opened.run("return document.getElementById('question').textContent") != DATA["question"]:
        opened.open(DATA)
    slide(opened, len(DATA["stops"]) - 1)
    opened.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    yield opened
    assert opened.complaints() == []


def slide(page: Page, stop: int) -> None:
    """Move the slider."""
    page.run(
        "const slider = document.getElementById('stop'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'));",
        stop,
    )


def node(identity: str) -> dict[str, Any]:
    return next(node for node in DATA["nodes"] if node["id"] == identity)


def test_the_page_opens_without_a_request_or_a_complaint_and_may_ask_no_server(browser: Page) -> None:
    browser.open(DATA)
    assert {url.partition(":")[0] for url in browser.requests()} <= {"file", "data"}
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.complaints() == []
    stopped = browser.driver.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('asked'), () => done('stopped'));"
    )
    assert stopped == "stopped"
    assert all("Content Security Policy" in complaint for complaint in browser.complaints())


@pytest.mark.parametrize("data", [DATA, without_walk()], ids=["walked", "not walked"])
def test_axe_finds_nothing_wrong_with_all_of_it_unfolded(browser: Page, data: dict[str, Any]) -> None:
    browser.open(data)
    browser.run("for (const part of document.querySelectorAll('details')) part.open = true")
    assert Window(browser.driver).violations() == []


def test_every_node_and_edge_is_drawn_each_kind_with_its_shape(page: Page) -> None:
    assert page.run("return [cy.nodes().length, cy.edges().length]") == [len(DATA["nodes"]), len(DATA["edges"])]
    shapes = page.run(
        "return ['e0', 'e9', 'p5', 'p0'].map((id) => [cy.$id(id).style('shape'), cy.$id(id).style('label')])"
    )
    assert shapes == [["diamond", ""], ["ellipse", ""], ["round-rectangle", ""], ["round-rectangle", "1"]]
    assert page.run(
        "return document.getElementById('labels').getContext('2d').getImageData(0, 0, 9999, 600).data.some(Boolean)"
    )


def test_a_citation_shows_its_passage_with_the_cited_words_marked(page: Page) -> None:
    page.run("document.getElementById('answer-part').open = true")
    page.find(".citation").click()
    assert node("p0")["label"] in page.text("#details h3")
    assert page.text("#details mark") == node("p0")["text"][:8]
    assert page.run("return cy.$id('p0').hasClass('lit') && cy.nodes('.faded').length > 0")


def test_the_slider_changes_sizes_widths_ranks_and_what_is_said_of_them(page: Page) -> None:
    look = (
        "return [cy.nodes().map((node) => node.width()), cy.edges().map((edge) => edge.width()),"
        "document.getElementById('passages').textContent]"
    )
    with_beta, story = page.run(look), page.text("#story")
    for _ in DATA["stops"][1:]:
        page.find("#stop").send_keys(Keys.ARROW_LEFT)
    page.painted()
    without = page.run(look)
    assert all(one != other for one, other in zip(with_beta, without, strict=True))
    assert page.text("#stop-label") == "all alike"
    assert "compared with all alike" in story
    moved = min((n for n in DATA["nodes"] if n["rank"] and n["rank"][0] != n["rank"][-1]), key=lambda n: n["rank"][-1])
    assert f"{moved['label']} rises from rank {moved['rank'][0]} to {moved['rank'][-1]}" in story


def test_the_passages_stand_in_the_order_of_their_ranks_at_every_stop(page: Page) -> None:
    for stop in range(len(DATA["stops"])):
        slide(page, stop)
        titles = page.run(
            "return [...document.querySelectorAll('#passages tbody button')].map((one) => one.textContent)"
        )
        shown = [title.split("] ")[-1] for title in titles]
        passages = sorted((n for n in DATA["nodes"] if n["rank"]), key=lambda n: n["rank"][stop])
        assert shown == [n["label"] for n in passages]


def test_hostile_texts_are_shown_and_do_nothing(browser: Page) -> None:
    data = copy.deepcopy(DATA)
    data |= {"question": HOSTILE, "answer": f"{HOSTILE} [1]", "fact_outcome": HOSTILE, "workspace": HOSTILE}
    for each in data["nodes"]:
        each |= {"label": HOSTILE, "text": HOSTILE, "source": HOSTILE}
    for each in data["edges"]:
        each |= {"predicates": [HOSTILE], "link": HOSTILE}
    for each in data["facts"]:
        each |= {"subject": HOSTILE, "relation": HOSTILE}
    data["paths"][0]["steps"][0] |= {"predicate": HOSTILE, "relation": HOSTILE}
    data["why"][0][1]["text"] = HOSTILE
    browser.open(data)
    browser.run("document.getElementById('answer-part').open = true")
    browser.find(".citation").click()
    browser.run("cy.edges()[0].emit('tap')")
    assert "onerror" in browser.text("#question")
    assert "onerror" in browser.driver.title
    assert browser.run("return document.querySelectorAll('img, body script').length") == 6
    assert browser.run("return /[\\u0000\\u2028\\u202e]/.test(document.body.innerText)") is False
    assert browser.complaints() == []
