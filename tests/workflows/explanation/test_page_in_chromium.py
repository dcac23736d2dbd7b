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


def test_edges_are_as_wide_as_what_they_carried_and_point_where_most_went(page: Page) -> None:
    drawn = page.run("return Object.fromEntries(cy.edges().map((edge) => [edge.id(), edge.data()]))")
    by_flow = sorted(DATA["edges"], key=lambda edge: edge["forward"][-1] + edge["backward"][-1])
    widths = [drawn[edge["id"]]["width"] for edge in by_flow]
    assert widths == sorted(widths)
    heaviest = by_flow[-1]
    assert drawn[heaviest["id"]]["way"] == (1 if heaviest["forward"][-1] >= heaviest["backward"][-1] else -1)


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


def test_a_relation_type_can_be_switched_off_and_on_again(page: Page) -> None:
    hidden = "return cy.edges().filter((edge) => edge.hidden()).map((edge) => edge.data('relation'))"
    button = page.find("#legend button[data-relation=PRIMARY]")
    button.send_keys(Keys.ENTER)
    page.painted()
    assert set(page.run(hidden)) == {"PRIMARY"}
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    page.painted()
    assert page.run(hidden) == []


def test_a_path_in_words_lights_up_in_the_drawing_and_stays_when_clicked(page: Page) -> None:
    path = DATA["paths"][0]
    assert page.text("#path0 .words") == path["words"].replace("PRIMARY", "about")
    page.find("#path0").click()
    page.find("#question").click()
    lit = page.run("return cy.elements('.lit').map((one) => one.id())")
    assert set(lit) == {path["seed"], path["passage"], path["steps"][0]["edge"]}
    assert page.find("#path0").get_attribute("aria-pressed") == "true"


def test_a_node_is_found_by_name_with_the_keyboard_alone(page: Page) -> None:
    page.find("#search").clear()
    page.find("#search").send_keys("number 7", Keys.ENTER)
    assert page.text("#details h3") == "Entity number 7"
    page.find("#details button").send_keys(Keys.ENTER)
    assert page.text("#details h3") != "Entity number 7"
    assert page.run("return document.activeElement.tagName") == "H3"


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


def test_of_a_large_graph_the_faint_edges_are_drawn_from_near_or_where_a_node_is_chosen(browser: Page) -> None:
    data = explanation(entities=110, passages=35, seeds=3)
    browser.open(data)
    drawn = "return cy.edges().filter((edge) => edge.style('display') === 'element').map((edge) => edge.id())"
    flows = {edge["id"]: edge["forward"][-1] + edge["backward"][-1] for edge in data["edges"]}
    main = browser.run(drawn)
    share = sum(flows[edge] for edge in main) / sum(flows.values())
    assert min(flows[edge] for edge in main) >= max(flows[edge] for edge in flows.keys() - set(main))
    assert 0.95 <= share < 0.97
    assert "carry 95 %" in browser.text("#legend .hint")
    faint = next(edge for edge in data["edges"] if edge["id"] not in main)
    browser.run("cy.$id(arguments[0]).emit('tap')", faint["source"])
    assert faint["id"] in browser.run(drawn)
    browser.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))")
    for _ in range(3):
        browser.find("#zoom-in").click()
    assert len(browser.run(drawn)) == len(flows)
    browser.find("#fit").click()
    assert browser.run(drawn) == main
    for height in ("150px", "600px"):
        browser.run("document.querySelector('.canvas').style.height = arguments[0]", height)
        browser.painted()
    assert browser.run(drawn) == main


def test_where_nothing_walked_the_page_says_so_and_shows_the_passages(browser: Page) -> None:
    browser.open(without_walk())
    assert "by likeness (dense)" in browser.text("#no-walk-reason")
    assert not browser.find("#walk").is_displayed()
    assert not browser.find("#anchors-part").is_displayed()
    assert len(browser.all("#passages tbody tr")) == 3
    assert browser.text("#passages mark") == "The text"
    assert browser.complaints() == []
