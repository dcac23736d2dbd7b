from __future__ import annotations

import base64
import copy
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from importlib import resources
from typing import Any

from tests.workflows.explanation.made_up import explanation
from workflows.explanation.page import render_page

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    '<img src=x onerror="alert(1)">',
    "]]>'\"`${alert(1)}",
    "{{data}}{{script}}",
    "\u2028\u2029\u202e\u2066\x00\x1b\ufeff\ud800",
    "&lt;b&gt;&amp;",
)
ASSETS = resources.files("workflows.explanation")


class Parts(HTMLParser):
    """The parts of a page to a browser: its tags with their attributes, and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str | None]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in attrs]
        self._in_script = tag == "script"
        if self._in_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts[-1] += data

    @property
    def data(self) -> dict[str, Any]:
        return dict(json.loads(self.scripts[0]))


def embedded(page: str) -> str:
    """Return the data as the page holds it."""
    _, _, rest = page.partition('<script type="application/json" id="data">')
    return rest.partition("</script>")[0]


def hostile(text: str) -> dict[str, Any]:
    """Return an explanation in which every string that comes from people, documents or models is that text."""
    data = copy.deepcopy(explanation())
    data |= {"question": text, "answer": f"{text} [1]", "workspace": text, "fact_outcome": text}
    data["models"] = dict.fromkeys(data["models"], text)
    for node in data["nodes"]:
        node |= {"label": text, "text": text, "source": text, "ref": f"{text}{node['id']}"}
    for edge in data["edges"]:
        edge |= {"predicates": [text], "link": text}
    for fact in data["facts"]:
        fact |= {"subject": text, "predicate": text, "object": text, "relation": text}
    for path in data["paths"]:
        path["words"] = text
        path["steps"][0]["predicate"] = text
    return data


def test_no_text_changes_the_parts_of_the_page() -> None:
    tame = Parts(render_page(hostile("tame")))
    for text in ("".join(HOSTILE), *HOSTILE[1:]):
        page = Parts(render_page(hostile(text)))
        assert page.tags == tame.tags, text
        assert page.attributes == tame.attributes
        assert page.scripts[1:] == tame.scripts[1:]
        assert page.data["question"] == text
    written = embedded(render_page(hostile("".join(HOSTILE))))
    assert re.fullmatch(r"[ -%'-;=?-~]+", written), "no sign that HTML or a script could read"


def test_the_page_may_run_its_own_scripts_alone_and_load_nothing() -> None:
    page = Parts(render_page(explanation()))
    ((_, _, policy),) = [
        entry for entry in page.attributes if entry[1] == "content" and "default-src" in (entry[2] or "")
    ]
    rules = {rule.split()[0]: rule.split()[1:] for rule in (policy or "").split("; ")}
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts[1:]]
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [f"'sha256-{digest}'" for digest in hashes]
    assert rules.keys() == {"default-src", "script-src", "style-src", "img-src", "base-uri", "form-action"}
    assert rules["img-src"] == ["data:"]


def test_nothing_in_the_page_points_outside_and_no_script_writes_markup() -> None:
    page = Parts(render_page(explanation()))
    addresses = [value for _, name, value in page.attributes if name in ("src", "href", "srcset", "action")]
    assert addresses == ["data:,"]
    assert not re.search(r"url\(|@import", (ASSETS / "page.css").read_text(encoding="utf-8"))
    for name in ("page.js", "drawing.js", "elements.js", "reasons.js"):
        script = (ASSETS / name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", script)
