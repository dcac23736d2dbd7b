"""The page in a real browser: what a visitor does with eyes, mouse and keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

WAIT_S = 20
LOST_CONNECTIONS = ("net::ERR_CONNECTION_REFUSED", "net::ERR_INCOMPLETE_CHUNKED", "net::ERR_CONNECTION_RESET")


class Window:
    """A window of the browser with the page in it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Open the page as a visitor does who was never here, and wait until it can be used."""
        self.driver.get(address)
        self.run("localStorage.clear(); sessionStorage.clear();")
        self.driver.get("about:blank")
        self._log()
        self.driver.get(address)
        self.until(lambda: self.run("return document.querySelectorAll('#workflow option').length > 0"))

    def run(self, script: str, *values: Any) -> Any:
        """Run a function body and return what it returns."""
        return self.driver.execute_script(script, *values)

    def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds, and return it."""
        gone = (StaleElementReferenceException,)  # The page drew it anew meanwhile.
        return WebDriverWait(self.driver, WAIT_S, 0.05, ignored_exceptions=gone).until(lambda _: holds())

    def find(self, selector: str) -> WebElement:
        """Return the first element of that selector as soon as it is to be seen."""
        shown: WebElement = self.until(lambda: next((each for each in self.all(selector) if each.is_displayed()), None))
        return shown

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of that selector that are there now."""
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        """Return the whole text of an element, whatever of it is in view."""
        read: tuple[object] = self.until(lambda: (self.find(selector).get_property("textContent"),))
        return str(read[0])

    def button(self, label: str, within: str = "body") -> WebElement:
        """Return the last button with that text or name that is to be seen."""
        find = (
            "return [...document.querySelectorAll(`${arguments[1]} button`)].filter((each) => each.checkVisibility()"
            " && [each.textContent.trim(), each.ariaLabel].includes(arguments[0])).at(-1)"
        )
        found: WebElement = self.until(lambda: self.run(find, label, within))
        return found

    def click(self, label: str, within: str = "body") -> None:
        """Click the last button with that text or name that is to be seen; once more where it was drawn anew."""

        def is_clicked() -> bool:
            self.button(label, within).click()
            return True

        self.until(is_clicked)

    def ask(self, question: str) -> None:
        """Type a question, press Enter."""
        self.find("#question").send_keys(question, Keys.ENTER)

    def answer_to(self, question: str, turns: int = 1) -> WebElement:
        """Ask; wait until so many turns are answered, and return the last answer."""
        self.ask(question)
        return self.answered(turns)

    def show(self, conversation: str) -> WebElement:
        """Show a conversation, and return its answer."""
        self.driver.get(f"{self.driver.current_url.split('#')[0]}#/c/{conversation}")
        return self.answered(1)

    def answered(self, turns: int) -> WebElement:
        """Wait until so many turns are answered; return the last answer."""
        self.until(lambda: len(self.all(".turn .answer:not(.draft)")) >= turns and not self.all(".steps"))
        return self.all(".turn .answer:not(.draft)")[-1]

    def questions(self) -> list[str]:
        """Return the questions of the turns that are shown."""
        asked: list[str] = self.run(
            "return [...document.querySelectorAll('.asked')].map((each) => each.lastChild.textContent)"
        )
        return asked

    def focused(self) -> str:
        """Return the id, or else the text, of what has the focus."""
        return str(
            self.run("const one = document.activeElement; return one.id || one.ariaLabel || one.textContent.trim()")
        )

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def press_with_shift(self, key: str) -> None:
        """Press a key with Shift where the focus is."""
        webdriver.ActionChains(self.driver).key_down(Keys.SHIFT).send_keys(key).key_up(Keys.SHIFT).perform()

    def resize(self, width: int, height: int) -> None:
        """Give the page that many CSS pixels."""
        measures = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", measures)

    def prefer_dark(self, is_dark: bool) -> None:
        """Let the system prefer dark colours, or light ones."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def violations(self) -> list[str]:
        """Return what axe finds wrong with the page as it is."""
        self.run(_axe())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {iframes: false}).then((found) => done(found.violations));"
        )
        return [f"{each['id']}: {json.dumps([node['html'] for node in each['nodes']])[:600]}" for each in found]

    def width_over(self) -> int:
        """Return how far the page is wider than its window."""
        return int(self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def complaints(self) -> list[str]:
        """Return what the console was told since the page was opened, lost connections aside."""
        return [each for each in self._log() if not any(lost in each for lost in LOST_CONNECTIONS)]

    def _log(self) -> list[str]:
        read: Callable[[str], list[dict[str, Any]]] = self.driver.get_log
        return [str(entry["message"]) for entry in read("browser")]


@cache
def _axe() -> str:
    found = find_spec("axe_playwright_python")
    assert found
    assert found.origin
    return Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
