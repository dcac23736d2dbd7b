"""A headless Chromium of the machine's own, for tests that need a page to be really opened."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from workflows.explanation.page import render_page

WAIT_S = 20
_TWO_FRAMES = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,1000",
)


@contextmanager
def chromium(profile: Path) -> Iterator[webdriver.Chrome]:
    """Start the browser with an empty profile; skip the test where the machine has none."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    try:
        yield started
    finally:
        started.quit()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as another site; yield its origin."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Page:
    """An explanation that is open in the browser."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self.driver = driver
        self._folder = folder

    def open(self, data: Mapping[str, Any]) -> None:
        """Write the explanation, open it from disk, and wait until it was painted."""
        path = self._folder / "explanation.html"
        path.write_text(render_page(data), encoding="utf-8")
        for kind in ("browser", "performance"):
            self._log(kind)
        self.driver.get(path.as_uri())
        self.painted()

    def painted(self) -> None:
        """Wait until what was done is on the screen."""
        self.driver.execute_async_script(_TWO_FRAMES)

    def run(self, script: str, *values: Any) -> Any:
        """Run a function body that knows ``cy``, the drawing, and return what it returns."""
        return self.driver.execute_script(
            f"const cy = document.getElementById('drawing')._cyreg?.cy; {script}", *values
        )

    def find(self, selector: str) -> WebElement:
        """Return the first element of that selector as soon as it is there."""
        return WebDriverWait(self.driver, WAIT_S).until(lambda driver: driver.find_element("css selector", selector))

    def all(self, selector: str) -> list[WebElement]:
        """Return the elements of that selector that are there now."""
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        """Return the whole text of an element, whatever of it is in view."""
        return str(self.find(selector).get_property("textContent"))

    def complaints(self) -> list[str]:
        """Return what the browser's console was told since the page opened: errors, refusals, warnings."""
        return self._log("browser")

    def requests(self) -> list[str]:
        """Return the addresses that the page asked for since it opened, its own and those of data among them."""
        events = [json.loads(message)["message"] for message in self._log("performance")]
        asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        own = ("chrome:", "chrome-untrusted:")
        return [request["request"]["url"] for request in asked if not request["documentURL"].startswith(own)]

    def _log(self, kind: str) -> list[str]:
        read: Callable[[str], list[dict[str, Any]]] = self.driver.get_log
        return [str(entry["message"]) for entry in read(kind)]
